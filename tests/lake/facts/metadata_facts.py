"""Metadata logs through the fold without Spark: records to Arrow, to shards, to facts; and images as the same rows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import pyarrow as pa

from barnabas import wire
from barnabas.lake.facts import metadata, schema
from barnabas.lake.facts.spark import METADATA, PACKED, pack_facts, run_shard
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.scram import SCRAM_MECHANISMS
from barnabas.wire.message import Message
from barnabas.wire.records import control

CLUSTER = "cluster-1"


class Item(NamedTuple):
    """A record of the log, or of a snapshot: then `offset` is its end offset."""

    offset: int
    record: Message
    is_snapshot: bool = False
    time_ms: int = 1_000
    epoch: int = 1
    raw: bytes | None = None

    def value(self) -> bytes:
        return self.raw or wire.encode_record(self.record, self.record.schema().versions.last)


def log_items(records: Iterable[Message], first: int = 0) -> list[Item]:
    return [Item(offset, record, time_ms=1_000 + offset) for offset, record in enumerate(records, first)]


def snapshot_items(end_offset: int, records: Iterable[Message], time_ms: int = 999) -> list[Item]:
    whole = [
        control.SnapshotHeaderRecord(last_contained_log_timestamp=time_ms),
        *records,
        control.SnapshotFooterRecord(),
    ]
    return [Item(end_offset, record, is_snapshot=True, time_ms=time_ms) for record in whole]


def record_batch(shard: int, items: Sequence[Item]) -> pa.RecordBatch:
    """What Spark would hand to a shard."""
    columns: dict[str, tuple[list[Any], str]] = {
        "shard": ([shard] * len(items), "int"),
        "cluster_id": ([CLUSTER] * len(items), "string"),
        "log": ([metadata.LOG] * len(items), "string"),
        "packed": ([None] * len(items), "binary"),
        "at": ([item.offset for item in items], "bigint"),
        "time": ([item.time_ms * 1000 for item in items], "timestamp"),
        "epoch": ([item.epoch for item in items], "int"),
        "is_snapshot": ([item.is_snapshot for item in items], "boolean"),
        "record_type": ([type(item.record).__name__ for item in items], "string"),
        "raw": ([item.value() for item in items], "binary"),
    }
    arrays = {name: pa.array(values, schema.arrow_type(kind)) for name, (values, kind) in columns.items()}
    return pa.RecordBatch.from_pydict(arrays)


def fold(items: Sequence[Item], open_facts: Sequence[pa.RecordBatch] = (), *, shards: int = 1) -> list[pa.RecordBatch]:
    """One run: the facts that end, and those that are open in the end."""
    routed: list[list[Item]] = [[] for _ in range(shards)]
    for item in items:
        for shard in metadata.destinations(item.record, shards):
            routed[shard].append(item)
    packed = [pack for batch in open_facts for pack in pack_facts(batch, METADATA, shards)]
    made: list[pa.RecordBatch] = []
    for shard in range(shards):
        mine = [pack for pack in packed if pack.column("shard")[0].as_py() == shard]
        batches = [_with_record_columns(pack) for pack in mine]
        if routed[shard]:
            batches.append(record_batch(shard, routed[shard]))
        made += run_shard(batches, METADATA, shards)
    return made


def _with_record_columns(pack: pa.RecordBatch) -> pa.RecordBatch:
    template = record_batch(0, [])
    names = {column.name for column in PACKED}
    arrays = [
        pack.column(field.name) if field.name in names else pa.nulls(pack.num_rows, field.type)
        for field in template.schema
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=template.schema)


def fold_in_runs(runs: Sequence[tuple[Sequence[Item], int]]) -> list[dict[str, Any]]:
    """Several runs, each with a number of shards; all facts that have ended in any, and those open after the last."""
    ended: list[dict[str, Any]] = []
    opened: list[pa.RecordBatch] = []
    for items, shards in runs:
        batches = fold(items, opened, shards=shards)
        ended += [row for row in rows_of(batches) if row["valid_to_offset"] is not None]
        opened = [batch.filter(batch.column("valid_to_offset").is_null()) for batch in batches]
    return sorted([*ended, *rows_of(opened)], key=lambda row: (row["kind"], row["key"], row["valid_from_offset"]))


def rows_of(batches: Iterable[pa.RecordBatch]) -> list[dict[str, Any]]:
    """Facts as dicts; the value, as a dict, is `value`."""
    rows = []
    for batch in batches:
        assert all(field == schema.arrow_schema().field(field.name) for field in batch.schema)
        for row in batch.to_pylist():
            kind = row["kind"]
            common = {column.name: row[column.name] for column in (*schema.PLACE, *schema.VALIDITY)}
            others = {name for name in schema.kinds() if name != kind and row.get(name) is not None}
            assert not others, f"a row of {kind} has {others}"
            rows.append({**common, "value": row["state"] if kind[0] == "_" else row[kind]})
    return rows


def public(rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    return [row for row in rows if row["kind"][0] != "_"]


def as_of(rows: Iterable[dict[str, Any]], offset: int) -> dict[str, list[dict[str, Any]]]:
    """What was true at an offset, by kind, in a fixed order."""
    found: dict[str, list[dict[str, Any]]] = {}
    for row in public(rows):
        ended_at = row["valid_to_offset"]
        if row["valid_from_offset"] <= offset and (ended_at is None or ended_at > offset):
            found.setdefault(row["kind"], []).append(row["value"])
    return {kind: sorted(values, key=repr) for kind, values in found.items()}


def image_rows(image: MetadataImage) -> dict[str, list[dict[str, Any]]]:
    """What an image says, as the rows that facts ought to be."""
    topics = image.topics.by_id.values()
    rows: dict[str, list[dict[str, Any]]] = {
        "topics": [{"topic_id": str(topic.topic_id), "name": topic.name} for topic in topics],
        "partitions": [
            {
                "topic_id": str(topic.topic_id),
                "topic_name": topic.name,
                "partition": index,
                "leader": p.leader,
                "leader_epoch": p.leader_epoch,
                "partition_epoch": p.partition_epoch,
                "replicas": list(p.replicas),
                "directories": [str(directory) for directory in p.directories],
                "isr": list(p.isr),
                "elr": list(p.elr),
                "last_known_elr": list(p.last_known_elr),
                "adding_replicas": list(p.adding_replicas),
                "removing_replicas": list(p.removing_replicas),
                "leader_recovery_state": ["RECOVERED", "RECOVERING"][p.leader_recovery_state],
            }
            for topic in topics
            for index, p in enumerate(topic.partitions)
        ],
        "configs": [
            {
                "resource_type": {2: "TOPIC", 4: "BROKER", 16: "CLIENT_METRICS", 32: "GROUP"}[resource.type],
                "resource_name": resource.name,
                "name": name,
                "value": value,
            }
            for resource, config in image.configs.items()
            for name, value in config.items()
        ],
        "acls": [
            {
                "acl_id": str(acl_id),
                "resource_type": acl.resource_type.name,
                "resource_name": acl.resource_name,
                "pattern_type": acl.pattern_type.name,
                "principal": acl.principal,
                "host": acl.host,
                "operation": acl.operation.name,
                "permission": acl.permission.name,
            }
            for acl_id, acl in image.acls.by_id.items()
        ],
        "features": [{"name": name, "level": level} for name, level in image.features.items()],
        "quotas": [
            {"entity": [{"type": kind, "name": who} for kind, who in entity], "name": name, "value": value}
            for entity, values in image.quotas.items()
            for name, value in values.items()
        ],
        "users": [
            {
                "name": user.name,
                "mechanism": SCRAM_MECHANISMS[user.mechanism],
                "iterations": credential.iterations,
                "salt": credential.salt,
                "stored_key": credential.stored_key,
                "server_key": credential.server_key,
            }
            for user, credential in image.scram.items()
        ],
        "tokens": [
            {
                "token_id": token.token_id,
                "owner": token.owner,
                "requester": token.requester,
                "renewers": list(token.renewers),
                "issued_at": _time(token.issue_timestamp_ms),
                "max_lifetime_until": _time(token.max_timestamp_ms),
                "expires_at": _time(token.expiration_timestamp_ms),
            }
            for token in image.tokens.values()
        ],
        **_node_rows(image),
    }
    if image.producer_ids.next_producer_id >= 0:
        rows["producer_ids"] = [{"next_producer_id": image.producer_ids.next_producer_id}]
    return {kind: sorted(values, key=repr) for kind, values in rows.items() if values}


def _node_rows(image: MetadataImage) -> dict[str, list[dict[str, Any]]]:
    return {
        "brokers": [
            {
                "broker_id": broker_id,
                "epoch": broker.epoch,
                "incarnation_id": str(broker.incarnation_id),
                "rack": broker.rack,
                "fenced": broker.fenced,
                "in_controlled_shutdown": broker.in_controlled_shutdown,
                "is_migrating_zk_broker": broker.is_migrating_zk_broker,
                "listeners": _listeners(broker.listeners),
                "features": _ranges(broker.features),
                "log_dirs": [str(directory) for directory in broker.log_dirs],
                "cordoned_log_dirs": None
                if broker.cordoned_log_dirs is None
                else [str(directory) for directory in broker.cordoned_log_dirs],
            }
            for broker_id, broker in image.brokers.items()
        ],
        "controllers": [
            {
                "controller_id": controller_id,
                "incarnation_id": str(controller.incarnation_id),
                "zk_migration_ready": controller.zk_migration_ready,
                "listeners": _listeners(controller.listeners),
                "features": _ranges(controller.features),
            }
            for controller_id, controller in image.controllers.items()
        ],
    }


def _listeners(listeners: Any) -> list[dict[str, Any]]:
    return [
        {"name": name, "host": e.host, "port": e.port, "security_protocol": e.security_protocol}
        for name, e in sorted(listeners.items())
    ]


def _ranges(features: Any) -> list[dict[str, Any]]:
    return [{"name": name, "min": low, "max": high} for name, (low, high) in sorted(features.items())]


def _time(time_ms: int) -> datetime:
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=time_ms)


def comparable(found: dict[str, list[dict[str, Any]]]) -> dict[str, list[dict[str, Any]]]:
    """Without what an image does not hold: who got producer ids, and the quorum's own records."""
    kept = {kind: rows for kind, rows in found.items() if kind not in ("voters", "leader_epochs")}
    if "producer_ids" in kept:
        kept["producer_ids"] = [{"next_producer_id": row["next_producer_id"]} for row in kept["producer_ids"]]
    if "features" in kept:
        kept["features"] = [row for row in kept["features"] if row["name"] != "kraft.version"]
    return {kind: rows for kind, rows in kept.items() if rows}
