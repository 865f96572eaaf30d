"""Rows of the tables of `kafka_cluster`, made from the answers of `Admin`.

Its one rule: no failure is hidden. If a whole table cannot be read, it is an error, or a row with `error` if the schema names
that column. If a part of a table cannot be read (a broker does not answer, a group may not be described), it is a row with
`error`, or else a warning in the log; in mode FAILFAST an error. Values of sensitive settings are never in a row.
Rows are made in pieces, so that a large cluster is never completely in memory.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

from barnabas.client import Admin, UnsupportedByNodeError
from barnabas.client.admin.brokers import ClusterDescription
from barnabas.client.admin.config_values import ConfigResource
from barnabas.client.admin.groups import GroupDescription, GroupListing, GroupMember, GroupOffsets
from barnabas.client.admin.part import pieces
from barnabas.client.admin.quorum import QuorumInfo, ReplicaState
from barnabas.client.admin.topics import TopicDescription
from barnabas.client.records import TopicPartition
from barnabas.client.settings import read_file
from barnabas.config.resource_type import ConfigResourceType
from barnabas.config.values import ConfigError
from barnabas.lake.reading.cluster_tables import ClusterOptions, Observation
from barnabas.operations.groups import any_type
from barnabas.operations.groups.lag import PartitionPosition
from barnabas.operations.groups.positions import positions
from barnabas.operations.quorum.active_controller import find_active_controller
from barnabas.wire import ZERO_UUID, Uuid
from barnabas.wire.errors import KafkaError, UnsupportedVersionError

if TYPE_CHECKING:
    import pyarrow as pa

_log = logging.getLogger(__name__)

ROWS_IN_A_BATCH = 4096
"""Small, since a row may have a whole group with its members."""
_RESOURCES_AT_ONCE = 200
_GROUPS_AT_ONCE = 500
_ERROR = "error"

OF_CONTROLLERS = ("configs", "acls", "quorum", "brokers", "features")
"""The tables that can be read through `bootstrap.controllers`. Controllers do not know the others."""

Row: TypeAlias = dict[str, Any]
"""Values by column; `error` says what could not be read."""
Rows: TypeAlias = AsyncIterator[list[Row]]
FAILURES = (KafkaError, UnsupportedVersionError, OSError)


class ClusterReadError(RuntimeError):
    """A table of a cluster could not be read."""


def read(options: ClusterOptions, schema: pa.Schema, observation: Observation) -> Iterator[pa.RecordBatch]:
    """Yield the rows of one observation, with the columns of the schema."""
    with asyncio.Runner() as runner:
        rows = _observe(options, observation, columns=schema.names)
        try:
            while (some := runner.run(_next(rows))) is not None:
                for piece in pieces(some, ROWS_IN_A_BATCH):
                    yield record_batch(schema, piece)
        finally:
            runner.run(rows.aclose())


async def _next(rows: AsyncIterator[list[Row]]) -> list[Row] | None:
    return await anext(rows, None)


def record_batch(schema: pa.Schema, rows: Iterable[Mapping[str, Any]]) -> pa.RecordBatch:
    """Return rows as Arrow, with the columns of the schema, null where a row lacks one."""
    import pyarrow as pa

    rows = list(rows)
    arrays = [pa.array([row.get(field.name) for row in rows], field.type) for field in schema]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


async def _observe(
    options: ClusterOptions, observation: Observation, *, columns: Sequence[str]
) -> AsyncGenerator[list[Row]]:
    """Yield the table's rows with their common columns. The options decide what becomes of failures."""
    with_errors = _ERROR in columns
    common: Row = {
        "observation_id": observation.id,
        "observed_at": datetime.now(UTC),
        "previous_observation_id": observation.previous_id,
    }
    if observation.previous_at_ms is not None:
        common["seconds_since_previous"] = common["observed_at"].timestamp() - observation.previous_at_ms / 1000
    try:
        async with Admin(client_settings(options)) as admin:
            cluster = await admin.describe_cluster(include_fenced_brokers=await admin.can_list_fenced_brokers())
            common["cluster_id"] = cluster.cluster_id
            if cluster.has_controllers and options.table not in OF_CONTROLLERS:
                raise UnsupportedByNodeError("controllers do not have this table: set bootstrap.servers")
            read_rows = READERS[options.table]
            if read_rows is _group_lag and "lag_minutes" in columns:  # without the column, nothing is fetched
                read_rows = partial(_group_lag, now_ms=round(common["observed_at"].timestamp() * 1000))
            async for rows in read_rows(admin, cluster):
                yield [common | row for row in rows if _ERROR not in row or _is_wanted(row, options, with_errors)]
    except FAILURES as error:
        if not with_errors:
            raise ClusterReadError(_failure(options, error)) from None
        yield [common | {_ERROR: _failure(options, error)}]
    except ConfigError as error:
        raise ClusterReadError(f"kafka_cluster cannot start: {error}") from None


def client_settings(options: ClusterOptions) -> dict[str, str]:
    """Return the settings of the client. Options override the file."""
    if options.client_config is None:
        return dict(options.client)
    return {**read_file(options.client_config), **options.client}


def _is_wanted(row: Row, options: ClusterOptions, with_errors: bool) -> bool:
    if with_errors:
        return True
    text = f"in table {options.table} of {options.where}: {row[_ERROR]}"
    if options.is_failfast:
        raise ClusterReadError(text)
    _log.warning("skipped: %s; a schema with the column `error` shows it", text)
    return False


def _failure(options: ClusterOptions, error: BaseException) -> str:
    said = str(error) or type(error).__name__
    return f"table {options.table} of {options.where} cannot be read: {said}"


def _text(uuid: Uuid) -> str | None:
    return None if uuid == ZERO_UUID else str(uuid)


def _time(timestamp_ms: int | None) -> datetime | None:
    return None if timestamp_ms is None else datetime.fromtimestamp(timestamp_ms / 1000, UTC)


# --- topics and partitions


async def _described(admin: Admin) -> AsyncIterator[tuple[str, TopicDescription | KafkaError]]:
    async for found in admin.describe_topic_partitions():
        yield found


async def _topics(admin: Admin, _: ClusterDescription) -> Rows:
    rows: list[Row] = []
    async for name, topic in _described(admin):
        if isinstance(topic, KafkaError):
            rows.append({"topic_name": name, _ERROR: f"topic {name}: {topic}"})
        else:
            rows.append(
                {
                    **_names(topic),
                    "is_internal": topic.is_internal,
                    "num_partitions": len(topic.partitions),
                    "replication_factor": topic.replication_factor,
                }
            )
        if len(rows) >= ROWS_IN_A_BATCH:
            yield rows
            rows = []
    yield rows


async def _partitions(admin: Admin, _: ClusterDescription) -> Rows:
    rows: list[Row] = []
    async for name, topic in _described(admin):
        if isinstance(topic, KafkaError):
            rows.append({"topic_name": name, _ERROR: f"topic {name}: {topic}"})
            continue
        for each in topic.partitions:
            row = each._asdict()
            del row[_ERROR]  # such as LEADER_NOT_AVAILABLE, which the column leader shows too
            rows.append({**_names(topic), **row, "partition": each.partition_index, "leader": each.leader_id})
        if len(rows) >= ROWS_IN_A_BATCH:
            yield rows
            rows = []
    yield rows


def _names(topic: TopicDescription) -> Row:
    return {"topic_name": topic.name, "topic_id": _text(topic.topic_id)}


# --- configs and ACLs


async def _configs(admin: Admin, cluster: ClusterDescription) -> Rows:
    resources = [ConfigResource.all_brokers(), *(ConfigResource.broker(node.id) for node in cluster.nodes)]
    if not cluster.has_controllers:
        # A topic that may not be described is not listed, and neither are its settings.
        topics = await admin.list_topics(include_internal=True)
        resources += [ConfigResource.topic(topic.name) for topic in topics]
        for kind in (ConfigResourceType.GROUP, ConfigResourceType.CLIENT_METRICS):
            try:
                resources += await admin.list_config_resources([kind])
            except UnsupportedByNodeError:
                continue  # This node cannot list resources of this type.
            except KafkaError as error:
                yield [{"resource_type": kind.name, _ERROR: f"settings of {kind.name}: {error}"}]
    for some in pieces(resources, _RESOURCES_AT_ONCE):
        found = await admin.describe_configs(some)
        yield [row for resource, config in found.items() for row in _settings(resource, config)]


def _settings(resource: ConfigResource, config: Any) -> Iterator[Row]:
    place = {"resource_type": resource.type.name, "resource_name": resource.name}
    if isinstance(config, KafkaError):
        yield {**place, _ERROR: f"settings of {resource}: {config}"}
        return
    for entry in config.values():
        yield {
            **place,
            "name": entry.name,
            "value": None if entry.is_sensitive else entry.value,
            "source": entry.source.name,
            "type": entry.type.name,
            "is_sensitive": entry.is_sensitive,
            "is_read_only": entry.is_read_only,
        }


async def _acls(admin: Admin, _: ClusterDescription) -> Rows:
    yield [
        {name: getattr(value, "name", value) for name, value in entry._asdict().items()}
        for entry in await admin.describe_acls()
    ]


# --- nodes


async def _log_dirs(admin: Admin, cluster: ClusterDescription) -> Rows:
    for node in cluster.nodes:
        if node.is_fenced:
            yield [{"broker_id": node.id, _ERROR: f"broker {node.id} is fenced: its log dirs cannot be read"}]
            continue
        found = (await admin.describe_log_dirs([node.id]))[node.id]
        if isinstance(found, KafkaError):
            yield [{"broker_id": node.id, _ERROR: f"log dirs of broker {node.id}: {found}"}]
            continue
        for path, log_dir in found.items():
            place: Row = {"broker_id": node.id, "log_dir": path}
            if log_dir.error is not None:
                yield [{**place, _ERROR: f"log dir {path} of broker {node.id}: {log_dir.error}"}]
                continue
            place |= {name: getattr(log_dir, name) for name in ("total_bytes", "usable_bytes", "is_cordoned")}
            rows = [
                {
                    **place,
                    "topic_name": each.topic,
                    "partition": each.partition,
                    "size_bytes": each.size,
                    "offset_lag": each.offset_lag,
                    "is_future": each.is_future,
                }
                for each in log_dir.replicas
            ]
            yield rows or [place]


async def _quorum(admin: Admin, _: ClusterDescription) -> Rows:
    quorum = await admin.describe_quorum()
    end = quorum.leader.log_end_offset if quorum.leader is not None else quorum.high_watermark
    yield [
        *(_replica(quorum, each, "leader" if each is quorum.leader else "voter", end) for each in quorum.voters),
        *(_replica(quorum, each, "observer", end) for each in quorum.observers),
    ]


def _replica(quorum: QuorumInfo, replica: ReplicaState, role: str, end: int) -> Row:
    endpoints = quorum.nodes.get(replica.replica_id) if role != "observer" else None
    return {
        "replica_id": replica.replica_id,
        "directory_id": _text(replica.replica_directory_id),
        "role": role,
        "log_end_offset": replica.log_end_offset,
        "lag": max(end - replica.log_end_offset, 0) if replica.log_end_offset >= 0 else None,
        "last_fetch_time": _time(replica.last_fetch_timestamp_ms),
        "last_caught_up_time": _time(replica.last_caught_up_timestamp_ms),
        "leader_epoch": quorum.leader_epoch,
        "high_watermark": quorum.high_watermark,
        "endpoints": [str(each) for each in endpoints] if endpoints else None,
    }


async def _brokers(admin: Admin, cluster: ClusterDescription) -> Rows:
    tells_fenced = await admin.can_list_fenced_brokers()
    active = await find_active_controller(admin.cluster)
    yield [
        {
            "broker_id": node.id,
            "role": "controller" if cluster.has_controllers else "broker",
            "host": node.host,
            "port": node.port,
            "rack": node.rack,
            "is_fenced": node.is_fenced if tells_fenced else None,
            "is_controller": None if active.id is None else node.id == active.id,
        }
        for node in cluster.nodes
    ]


async def _features(admin: Admin, cluster: ClusterDescription) -> Rows:
    found = await admin.api_versions([node.id for node in cluster.nodes if not node.is_fenced])
    rows: list[Row] = []
    for broker_id, node in found.items():
        if isinstance(node, KafkaError):
            rows.append({"broker_id": broker_id, _ERROR: f"features of broker {broker_id}: {node}"})
            continue
        for feature in sorted({*node.supported_features, *node.finalized_features}):
            levels, finalized = node.supported_features.get(feature), node.finalized_features.get(feature)
            rows.append(
                {
                    "broker_id": broker_id,
                    "feature": feature,
                    "min_supported_level": None if levels is None else levels.first,
                    "max_supported_level": None if levels is None else levels.last,
                    "finalized_level": 0 if finalized is None else finalized.last,
                    "finalized_epoch": node.finalized_features_epoch if node.finalized_features_epoch >= 0 else None,
                }
            )
    yield rows


# --- groups


async def _groups(admin: Admin, _: ClusterDescription) -> Rows:
    for some in pieces(await admin.list_groups(), _GROUPS_AT_ONCE):
        types = {each.group_id: each.type for each in some}
        described = await any_type.describe(admin.cluster, list(types), types)
        yield [_group(listing, described.get(listing.group_id)) for listing in some]


def _group(listing: GroupListing, found: GroupDescription | KafkaError | None) -> Row:
    row: Row = {
        "group_id": listing.group_id,
        "type": listing.type,
        "protocol_type": listing.protocol_type,
        "state": listing.state,
        "coordinator_id": listing.coordinator_id,
    }
    if isinstance(found, KafkaError):
        return {**row, _ERROR: f"group {listing.group_id}: {found}"}
    if found is None:
        return row
    return row | {
        "type": found.type,
        "state": found.state,
        "assignor": found.assignor or None,
        "group_epoch": found.group_epoch,
        "assignment_epoch": found.assignment_epoch,
        "num_members": len(found.members),
        "members": [_member(member) for member in found.members],
    }


def _member(member: GroupMember) -> Row:
    return {
        "member_id": member.member_id,
        "group_instance_id": member.group_instance_id,
        "client_id": member.client_id,
        "client_host": member.client_host,
        "member_epoch": member.member_epoch,
        "rack_id": member.rack_id,
        "assignment": [{"topic_name": each.topic, "partition": each.partition} for each in member.assignment],
    }


async def _group_lag(admin: Admin, _: ClusterDescription, *, now_ms: int | None = None) -> Rows:
    """Yield the position of each group in each partition; with `now_ms` also its lag in time at that moment."""
    for some in pieces(await admin.list_groups(), _GROUPS_AT_ONCE):
        types = {each.group_id: each.type for each in some}
        described = await any_type.describe(admin.cluster, list(types), types)
        committed = await any_type.offsets_of(admin.cluster, list(types), types)
        asked: dict[str, tuple[GroupDescription | None, GroupOffsets]] = {}
        shared_lags: dict[str, Mapping[TopicPartition, int | None]] = {}
        rows: list[Row] = []
        for listing in some:
            group, offsets = described.get(listing.group_id), committed[listing.group_id]
            if isinstance(group, KafkaError):
                rows.append({**_state(listing), _ERROR: f"group {listing.group_id}: {group}"})
            elif isinstance(offsets, KafkaError):
                rows.append({**_state(listing), _ERROR: f"group {listing.group_id}: {offsets}"})
            else:
                asked[listing.group_id] = group, offsets.offsets
                if offsets.lags is not None:
                    shared_lags[listing.group_id] = offsets.lags
        found = await positions(admin.cluster, asked, now_ms=now_ms, shared_lags=shared_lags)
        rows += (_position(each, at) for each in some for at in found.get(each.group_id, ()))
        yield rows


def _state(listing: GroupListing) -> Row:
    return {"group_id": listing.group_id, "state": listing.state}


def _position(listing: GroupListing, at: PartitionPosition) -> Row:
    row: Row = {**_state(listing), "topic_name": at.topic, "partition": at.partition}
    if at.committed_error is not None:
        text = f"offset of group {listing.group_id} in {at.topic}-{at.partition}: {at.committed_error}"
        return {**row, _ERROR: text}
    if at.committed is not None:
        row |= {"committed_offset": at.committed.offset, "committed_leader_epoch": at.committed.leader_epoch}
    if at.member is not None:
        row |= {"member_id": at.member.member_id, "client_id": at.member.client_id}
    if at.log_end_error is not None:
        # The committed offset is valid even if the end is unknown: the topic was deleted, or may not be described.
        _log.warning("the end of %s-%s is unknown: %s", at.topic, at.partition, at.log_end_error)
    lag_minutes = None if at.lag_ms is None else at.lag_ms / 60_000
    return {**row, "end_offset": at.log_end_offset, "lag": at.lag, "lag_minutes": lag_minutes}


READERS: dict[str, Callable[[Admin, ClusterDescription], Rows]] = {
    "topics": _topics,
    "partitions": _partitions,
    "configs": _configs,
    "acls": _acls,
    "log_dirs": _log_dirs,
    "quorum": _quorum,
    "groups": _groups,
    "group_lag": _group_lag,
    "brokers": _brokers,
    "features": _features,
}
