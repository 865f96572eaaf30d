"""Reassignment files, in the JSON format of Kafka's own tool. Pure.

Its one rule: a file that Kafka's tool rejects is rejected here, with the same message (`ReassignmentFileError`). A file that
is accepted here is accepted there. `log_dirs` are optional, and `any` leaves the choice to the broker.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from barnabas.client.admin.log_dirs import Replica
from barnabas.operations.partitions import Key

T = TypeVar("T")

ANY_LOG_DIR = "any"
_VERSION = 1
_RANGES = {"Integer": 2**31, "Long": 2**63}


class ReassignmentFileError(ValueError):
    """A file that is not a reassignment, or one that cannot be carried out."""


class NotJsonError(ReassignmentFileError):
    """A file that is not JSON."""


class FieldError(ReassignmentFileError):
    """JSON with a missing field, or with a field of the wrong type."""


class Reassignment(NamedTuple):
    """The partitions of a file with their replicas, in order and with duplicates, and the log dirs it chooses."""

    partitions: Sequence[tuple[Key, tuple[int, ...]]]
    log_dirs: Mapping[Replica, str]

    @property
    def targets(self) -> dict[Key, tuple[int, ...]]:
        return dict(self.partitions)


def parse_reassignment(text: str) -> Reassignment:
    """Parse a reassignment file. Raises ReassignmentFileError.

    >>> parse_reassignment('{"version": 1, "partitions": [{"topic": "orders", "partition": 0, "replicas": [1, 2]}]}').targets
    {('orders', 0): (1, 2)}
    """
    whole = _document(text)
    partitions: list[tuple[Key, tuple[int, ...]]] = []
    log_dirs: dict[Replica, str] = {}
    for item in list_of(whole.get("partitions", [])):
        row = object_of(item)
        topic, index = text_of(field_of(row, "topic")), number_of(field_of(row, "partition"))
        replicas = [number_of(each) for each in list_of(field_of(row, "replicas"))]
        chosen = (
            [text_of(each) for each in list_of(row["log_dirs"])] if "log_dirs" in row else [ANY_LOG_DIR] * len(replicas)
        )
        if len(replicas) != len(chosen):
            raise ReassignmentFileError(
                f"Size of replicas list {_java(replicas)} is different from size of log dirs list {_java(chosen)} "
                f"for partition {topic}-{index}"
            )
        partitions.append(((topic, index), tuple(replicas)))
        log_dirs |= {
            Replica(topic, index, broker_id): path
            for broker_id, path in zip(replicas, chosen, strict=True)
            if path != ANY_LOG_DIR
        }
    return Reassignment(partitions, log_dirs)


def parse_topics(text: str) -> list[str]:
    """Parse a file of topics to move, and return their names. Raises ReassignmentFileError.

    >>> parse_topics('{"topics": [{"topic": "orders"}], "version": 1}')
    ['orders']
    """
    whole = _document(text)
    topics = [text_of(field_of(object_of(item), "topic")) for item in list_of(whole.get("topics", []))]
    if twice := duplicates(topics):
        raise ReassignmentFileError(f"List of topics to reassign contains duplicate entries: {_java(twice)}")
    return topics


def parse_partitions(text: str) -> list[Key]:
    """Parse a file of partitions for elections. Raises ReassignmentFileError, also for duplicates.

    >>> parse_partitions('{"partitions": [{"topic": "orders", "partition": 1}]}')
    [('orders', 1)]
    """
    try:
        whole = object_of(json.loads(text))
    except json.JSONDecodeError:
        raise NotJsonError("Replica election data is empty") from None
    if "partitions" not in whole:
        raise ReassignmentFileError('Replica election data is missing "partitions" field')
    rows = map(object_of, list_of(whole["partitions"]))
    return [(text_of(field_of(row, "topic")), number_of(field_of(row, "partition"))) for row in rows]


def check_executable(reassignment: Reassignment) -> None:
    """Check that there are partitions and replicas, and no duplicates. Raises ReassignmentFileError."""
    if not reassignment.partitions:
        raise ReassignmentFileError("Partition reassignment list cannot be empty")
    if any(not replicas for _, replicas in reassignment.partitions):
        raise ReassignmentFileError("Partition replica list cannot be empty")
    if twice := duplicates([key for key, _ in reassignment.partitions]):
        names = ",".join(f"{topic}-{index}" for topic, index in twice)
        raise ReassignmentFileError(f"Partition reassignment contains duplicate topic partitions: {names}")
    doubled = [(key, again) for key, replicas in reassignment.partitions if (again := duplicates(replicas))]
    if doubled:
        said = ". ".join(
            f"{topic}-{index} contains multiple entries for {','.join(map(str, again))}"
            for (topic, index), again in doubled
        )
        raise ReassignmentFileError(f"Partition replica lists may not contain duplicate entries: {said}")


def format_reassignment(targets: Mapping[Key, Sequence[int]], log_dirs: Mapping[Replica, str] | None = None) -> str:
    """Format a reassignment as one line of JSON, by topic and partition.

    >>> format_reassignment({("orders", 0): (1, 2)})
    '{"version":1,"partitions":[{"topic":"orders","partition":0,"replicas":[1,2],"log_dirs":["any","any"]}]}'
    """
    chosen = log_dirs or {}
    rows = [
        {
            "topic": topic,
            "partition": index,
            "replicas": list(targets[topic, index]),
            "log_dirs": [chosen.get(Replica(topic, index, each), ANY_LOG_DIR) for each in targets[topic, index]],
        }
        for topic, index in sorted(targets)
    ]
    return json.dumps({"version": _VERSION, "partitions": rows}, separators=(",", ":"), ensure_ascii=False)


def duplicates(items: Iterable[T]) -> list[T]:
    """Return the items that occur more than once, each once."""
    seen: set[T] = set()
    again: dict[T, None] = {}
    for item in items:
        if item in seen:
            again[item] = None
        seen.add(item)
    return list(again)


# --- JSON, with the error messages of Kafka's tools


def _document(text: str) -> dict[str, Any]:
    try:
        whole = object_of(json.loads(text))
    except json.JSONDecodeError as error:
        raise NotJsonError(str(error)) from None
    version = number_of(whole["version"]) if "version" in whole else _VERSION
    if version != _VERSION:
        raise ReassignmentFileError(f"Not supported version field value {version}")
    return whole


def object_of(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise FieldError(f"Expected JSON object, received {_json(value)}")
    return value


def list_of(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise FieldError(f"Expected JSON array, received {_json(value)}")
    return value


def field_of(row: dict[str, Any], name: str) -> Any:
    if name not in row:
        raise FieldError(f"No such field exists: `{name}`")
    return row[name]


def text_of(value: Any) -> str:
    if not isinstance(value, str):
        raise FieldError(f"Expected `String` value, received {_json(value)}")
    return value


def number_of(value: Any, kind: str = "Integer") -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not -_RANGES[kind] <= value < _RANGES[kind]:
        raise FieldError(f"Expected `{kind}` value, received {_json(value)}")
    return value


def _json(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def _java(items: Iterable[object]) -> str:
    return f"[{', '.join(map(str, items))}]"
