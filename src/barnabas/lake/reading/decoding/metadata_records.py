"""Records of the metadata log, many at once: their type, version, key columns, and the JSON that Kafka's own tools print.
Pure.

Its one rule: a record that cannot be decoded keeps its bytes. An unknown type, a newer version, a record that does not match
its schema: it has no payload, and other records are not affected. Secrets are masked here, in the payload and in the bytes,
unless they are requested.

Values are grouped by type and version, and each group is decoded by one function compiled for it (`compiled`).
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Collection
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from barnabas.lake.reading.decoding.compiled import Compiler, Hide, Run
from barnabas.metadata.masking import MASK, SECRET_BYTES, SECRET_TYPES, is_hidden, masked
from barnabas.wire import message_class
from barnabas.wire.errors import MalformedError, UnsupportedVersionError
from barnabas.wire.primitives import decode_unsigned_varint
from barnabas.wire.records import metadata

Array = np.ndarray[Any, Any]

KEY_COLUMNS = ("topic_id", "topic_name", "partition", "broker_id", "resource_type", "resource_name")
CONTROL_TYPES = {
    2: "LeaderChangeMessage",
    3: "SnapshotHeaderRecord",
    4: "SnapshotFooterRecord",
    5: "KRaftVersionRecord",
    6: "VotersRecord",
}
TYPES: dict[int, str] = {
    key: name for name in metadata.__all__ if (key := getattr(metadata, name).schema().key) is not None
}
RECORD_TYPES = (*TYPES.values(), *CONTROL_TYPES.values())
"""All known names."""

_CONFIG_TYPES = {0: "UNKNOWN", 2: "TOPIC", 4: "BROKER", 8: "BROKER_LOGGER", 16: "CLIENT_METRICS", 32: "GROUP"}
ACL_TYPES = dict(
    enumerate(("UNKNOWN", "ANY", "TOPIC", "GROUP", "CLUSTER", "TRANSACTIONAL_ID", "DELEGATION_TOKEN", "USER"))
)
_TOPIC_ID = {"topic_id": "UUID[topic_id][1:-1]"}
KEYS: dict[str, dict[str, str]] = {
    "RegisterBrokerRecord": {"broker_id": "broker_id"},
    "UnregisterBrokerRecord": {"broker_id": "broker_id"},
    "FenceBrokerRecord": {"broker_id": "id"},
    "UnfenceBrokerRecord": {"broker_id": "id"},
    "BrokerRegistrationChangeRecord": {"broker_id": "broker_id"},
    "ProducerIdsRecord": {"broker_id": "broker_id"},
    "TopicRecord": {**_TOPIC_ID, "topic_name": "TEXT[name]"},
    "RemoveTopicRecord": _TOPIC_ID,
    "PartitionRecord": {**_TOPIC_ID, "partition": "partition_id"},
    "PartitionChangeRecord": {**_TOPIC_ID, "partition": "partition_id"},
    "ClearElrRecord": {"topic_name": "TEXT[topic_name]"},
    "ConfigRecord": {
        "resource_type": "CONFIG_TYPES.get(resource_type)",
        "resource_name": "TEXT[resource_name]",
        "topic_name": "TEXT[resource_name] if resource_type == 2 else None",
    },
    "AccessControlEntryRecord": {
        "resource_type": "ACL_TYPES.get(resource_type)",
        "resource_name": "TEXT[resource_name]",
    },
    "UserScramCredentialRecord": {"resource_type": "'USER'", "resource_name": "TEXT[name]"},
    "RemoveUserScramCredentialRecord": {"resource_type": "'USER'", "resource_name": "TEXT[name]"},
    "DelegationTokenRecord": {"resource_type": "'DELEGATION_TOKEN'", "resource_name": "TEXT[token_id]"},
    "RemoveDelegationTokenRecord": {"resource_type": "'DELEGATION_TOKEN'", "resource_name": "TEXT[token_id]"},
}
_CONTROL = 1 << 20
_UNREADABLE = -1
_CONTROL_KEY = struct.Struct(">hh")
_SECRET_KEYS = frozenset(key for key, name in TYPES.items() if name in SECRET_TYPES)


class Values(NamedTuple):
    """The positions of keys and values of records in `data`; a size of -1 is null."""

    data: bytes
    key_start: Array
    key_size: Array
    value_start: Array
    value_size: Array
    is_control: Array

    def take(self, rows: Array) -> Values:
        return Values(self.data, *(column[rows] for column in self[1:]))

    def value(self, row: int) -> bytes:
        start = int(self.value_start[row])
        return self.data[start : start + max(int(self.value_size[row]), 0)]


class Decoded(NamedTuple):
    """Decoded records, a row each. `masked` has the values that replace those of the log."""

    payload: Array
    keys: dict[str, Array]
    masked: dict[int, bytes | None]


def classify(values: Values) -> tuple[Array, Array]:
    """Return a number for the type of each record (see `type_name`), and its version; -1 if it has too few bytes."""
    count = len(values.value_start)
    data = np.frombuffer(values.data, dtype=np.uint8)
    types, versions = np.full(count, _UNREADABLE, dtype=np.int64), np.full(count, -1, dtype=np.int32)
    whole = (values.value_size >= 3) & ~values.is_control
    starts = values.value_start[whole]
    frame = [data[starts + at] for at in range(3)]
    types[whole] = np.where(frame[0] == 1, frame[1].astype(np.int64), _UNREADABLE)
    versions[whole] = frame[2]
    plain = (frame[0] == 1) & (frame[1] < 128) & (frame[2] < 128)
    for row in np.flatnonzero(whole)[~plain]:
        types[row], versions[row] = _frame(values.value(int(row)))
    for row in np.flatnonzero(values.is_control):
        types[row], versions[row] = _control(values, int(row))
    return types, versions


def _frame(value: bytes) -> tuple[int, int]:
    try:
        frame, position = decode_unsigned_varint(value, 0)
        kind, position = decode_unsigned_varint(value, position)
        version, position = decode_unsigned_varint(value, position)
    except (IndexError, MalformedError):
        return _UNREADABLE, -1
    return (kind, version) if frame == 1 and kind < _CONTROL else (_UNREADABLE, -1)


def _control(values: Values, row: int) -> tuple[int, int]:
    if values.key_size[row] < _CONTROL_KEY.size:
        return _UNREADABLE, -1
    _, kind = _CONTROL_KEY.unpack_from(values.data, int(values.key_start[row]))
    version = int.from_bytes(values.value(row)[:2], "big", signed=True) if values.value_size[row] >= 2 else -1
    return _CONTROL + kind, version


def type_name(kind: int) -> str | None:
    """
    >>> type_name(5), type_name(99)
    ('PartitionChangeRecord', 'UnknownRecord99')
    """
    if kind == _UNREADABLE:
        return None
    if kind >= _CONTROL:
        return CONTROL_TYPES.get(kind - _CONTROL) or f"UnknownControlRecord{kind - _CONTROL}"
    return TYPES.get(kind) or f"UnknownRecord{kind}"


def decode(
    values: Values,
    types: Array,
    versions: Array,
    columns: Collection[str],
    *,
    include_secrets: bool,
) -> Decoded:
    """Decode records of these types and versions, from `classify`. Only the given columns are made."""
    wanted = [name for name in KEY_COLUMNS if name in columns]
    payload = np.empty(len(types), dtype=object)
    keys = {name: np.empty(len(types), dtype=object) for name in wanted}
    hidden: dict[int, bytes | None] = {}
    if len(types) == 0:
        return Decoded(payload, keys, hidden)
    groups, group_of = np.unique(types * (1 << 20) + np.maximum(versions, 0), return_inverse=True)
    order = np.argsort(group_of, kind="stable")
    bounds = np.searchsorted(group_of[order], np.arange(len(groups) + 1))
    for at in range(len(groups)):
        rows = order[bounds[at] : bounds[at + 1]]
        kind, version = int(types[rows[0]]), int(versions[rows[0]])
        secret = kind in _SECRET_KEYS and not include_secrets
        run = _run_of(kind, version) if "payload" in columns or wanted or secret else None
        if run is None:
            if secret:
                hidden.update(dict.fromkeys(rows.tolist()))
            continue
        changed = _decode_group(values, rows, run, payload, keys, secret)
        if secret:
            changed += [row for row in rows.tolist() if payload[row] is None]
            hidden.update((row, masked(values.value(row))) for row in changed)
    return Decoded(payload, keys, hidden)


class _Group(NamedTuple):
    run: Run
    keys: tuple[str, ...]
    frame: int
    """Bytes of a value before its fields."""


def _decode_group(
    values: Values, rows: Array, group: _Group, payload: Array, keys: dict[str, Array], secret: bool
) -> list[int]:
    """Fill in the columns of one group, and return the rows in which something was hidden."""
    starts = values.value_start[rows]
    ends = starts + values.value_size[rows]
    texts: list[str | None] = []
    lists: list[list[Any]] = [[] for _ in group.keys]
    changed: list[int] = []
    hide: Callable[[int], None] | None = changed.append if secret else None
    group.run(
        values.data,
        rows.tolist(),
        (starts + group.frame).tolist(),
        ends.tolist(),
        texts.append,
        hide,
        *(each.append for each in lists),
    )
    payload[rows] = texts
    for name, column in zip(group.keys, lists, strict=True):
        if name in keys:
            keys[name][rows] = column
    return list(dict.fromkeys(changed))


@cache
def _run_of(kind: int, version: int) -> _Group | None:
    """Return the function for a type and version; None if it is unknown."""
    name = type_name(kind)
    if name is None or name.startswith("Unknown"):
        return None
    keys = KEYS.get(name, {})
    frame = 0 if kind >= _CONTROL else 3
    try:
        compiler = Compiler(message_class(name), version, tuple(keys.values()), _hide(name), _SCOPE)
    except UnsupportedVersionError:
        return None
    return _Group(compiler.compile(), tuple(keys), frame)


_SCOPE = {"CONFIG_TYPES": _CONFIG_TYPES, "ACL_TYPES": ACL_TYPES, "is_hidden": is_hidden}


def _hide(name: str) -> Hide:
    if name == "ConfigRecord":
        return {"value": f'is_hidden(resource_type, TEXT[name], value.decode()) => "{MASK}"'}
    return dict.fromkeys(SECRET_BYTES.get(name, ()), 'True => ""')
