"""What a few records may change: which open facts are needed to fold them by themselves. Pure.

Its one rule: too much is harmless, too little is wrong. A fold of these records, restored from the facts that are named here,
ends and starts the same facts as one that was restored from all. Where that cannot be known from the records (a snapshot, an
open transaction, a log that was replaced), the answer is None, and all facts are needed.
"""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from barnabas.lake.facts import groups, metadata, transactions
from barnabas.lake.facts.coordinator_logs import family as family_of
from barnabas.lake.facts.log_facts import LOG_KIND, next_offset_of
from barnabas.lake.facts.spark import METADATA, Family
from barnabas.lake.reading.decoding.coordinator_records import GROUPS as GROUP_LOG
from barnabas.lake.reading.decoding.coordinator_records import decode_key

if TYPE_CHECKING:
    import pyarrow as pa

Keys = frozenset[str] | None
"""Values of the column by which facts of a kind are found; None: all of them."""
Touched = Mapping[str, Keys]
"""By kind. Kinds that are not named cannot change."""
Internal = Iterable[tuple[str, str, bytes]]
"""Internal facts: kind, log, state."""
LookUp = Callable[[str, frozenset[str], str], frozenset[str]]
"""look_up(kind, keys, column) -> the values of this column in the open facts with these keys."""


@dataclass(frozen=True, slots=True)
class Narrowing:
    """How the records of a stream are folded by themselves."""

    family: Family
    columns: Mapping[str, str]
    """The column by which facts of a kind are found. Kinds that are not named have few facts, which are always read whole."""
    route: Callable[[pa.Table], pa.Table]
    """Returns records with `cluster_id`, `log` and the columns of the family, in order."""
    touched: Callable[[pa.Table, Internal, LookUp], Touched | None]


# --- metadata --------------------------------------------------------------------------------------------------------


def _route_metadata(records: pa.Table) -> pa.Table:
    import pyarrow as pa
    from pyarrow import compute

    kinds = pa.array(metadata.WITHOUT_EFFECT)
    rows = records.filter(compute.invert(compute.is_in(records["record_type"], kinds))).sort_by("offset")
    return pa.table(
        {
            "cluster_id": rows["cluster_id"],
            "log": pa.repeat(pa.scalar(metadata.LOG), rows.num_rows),
            "at": rows["offset"],
            "time": rows["append_time"],
            "epoch": rows["leader_epoch"],
            "is_snapshot": rows["is_snapshot"],
            "record_type": rows["record_type"],
            "raw": rows["raw"],
        }
    )


def _touched_metadata(records: pa.Table, internal: Internal, look_up: LookUp) -> Touched | None:
    names = ("record_type", "is_snapshot", "topic_id", "resource_name", "raw")
    rows = list(zip(*(records[name].to_pylist() for name in names), strict=True))
    if any(from_snapshot for _, from_snapshot, *_ in rows) or any(kind == metadata.PENDING for kind, _, _ in internal):
        return None
    topics = {topic_id for _, _, topic_id, _, _ in rows if topic_id is not None}
    removed = frozenset(topic_id for kind, _, topic_id, _, _ in rows if kind == "RemoveTopicRecord")
    resources = {resource for kind, _, _, resource, _ in rows if kind == "ConfigRecord" and resource is not None}
    if removed:  # the settings of a topic end with it
        resources |= look_up("topics", removed, "name")
    found: dict[str, set[str] | None] = {"topics": topics, "partitions": topics, "configs": resources}
    if any(kind == "ClearElrRecord" for kind, *_ in rows):  # it changes every partition that has some
        found |= {"topics": None, "partitions": None}
    for kind, _, _, resource, raw in rows:
        touched = metadata.SAME_SHARD.get(kind)
        if touched == "acls":
            _keys(found, touched).add(str(metadata.decode(raw, kind).id))  # type: ignore[attr-defined]
        elif touched == "users":
            _keys(found, touched).add(resource)
        elif touched is not None:
            found[touched] = None
    return {kind: None if keys is None else frozenset(keys) for kind, keys in found.items() if keys is None or keys}


def _keys(found: dict[str, set[str] | None], kind: str) -> set[str]:
    keys = found.setdefault(kind, set())
    assert keys is not None
    return keys


OF_METADATA: Final = Narrowing(
    METADATA,
    {
        "topics": "topic_id",
        "partitions": "topic_id",
        "configs": "resource_name",
        "acls": "acl_id",
        "users": "name",
    },
    _route_metadata,
    _touched_metadata,
)

# --- logs of coordinators --------------------------------------------------------------------------------------------


def _route_log(topic: str, family: Family, records: pa.Table) -> pa.Table:
    import pyarrow as pa
    from pyarrow import compute

    rows = records.sort_by([("partition", "ascending"), ("offset", "ascending")])
    log = compute.binary_join_element_wise(f"{topic}-", rows["partition"].cast(pa.string()), "")
    columns = {name: rows[name] for name in family.columns}
    return pa.table({"cluster_id": rows["cluster_id"], "log": log, **columns})


def _is_continued(topic: str, records: pa.Table, internal: Internal) -> bool:
    """Return whether all logs go on behind what was read of them. Another log under the same name makes all facts doubtful."""
    read = {log: next_offset_of(state) for kind, log, state in internal if kind == LOG_KIND}
    first = records.group_by("partition").aggregate([("offset", "min")])
    pairs = zip(first["partition"].to_pylist(), first["offset_min"].to_pylist(), strict=True)
    return all(offset >= read.get(f"{topic}-{partition}", 0) for partition, offset in pairs)


def _touched_groups(records: pa.Table, internal: Internal, look_up: LookUp) -> Touched | None:
    if not _is_continued(groups.TOPIC, records, internal):
        return None
    found = {group_id for group_id in records["group_id"].unique().to_pylist() if group_id is not None}
    if any(records["is_control"].to_pylist()):  # offsets of a transaction, which count from its end on
        states = (json.loads(state) for kind, _, state in internal if kind == groups.PENDING)
        keys = (decode_key(b64decode(key), GROUP_LOG) for _, kept in states for _, key, _ in kept)
        found |= {key.group_id for key in keys if key.group_id is not None}
    return dict.fromkeys((kind.name for kind in groups.KINDS), frozenset(found)) if found else {}


def _touched_transactions(records: pa.Table, internal: Internal, look_up: LookUp) -> Touched | None:
    if not _is_continued(transactions.TOPIC, records, internal):
        return None
    found = frozenset(each for each in records["transactional_id"].unique().to_pylist() if each is not None)
    return {kind.name: found for kind in transactions.KINDS} if found else {}


def _of_log(
    topic: str, family: Family, key: str, touched: Callable[[pa.Table, Internal, LookUp], Touched | None]
) -> Narrowing:
    from functools import partial

    kinds = groups.KINDS if topic == groups.TOPIC else transactions.KINDS
    return Narrowing(family, {kind.name: key for kind in kinds}, partial(_route_log, topic, family), touched)


OF_GROUPS: Final = _of_log(groups.TOPIC, family_of(groups.TOPIC, groups.GroupsFold), "group_id", _touched_groups)
OF_TRANSACTIONS: Final = _of_log(
    transactions.TOPIC,
    family_of(transactions.TOPIC, transactions.TransactionsFold),
    "transactional_id",
    _touched_transactions,
)
