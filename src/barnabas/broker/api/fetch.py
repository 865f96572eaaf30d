"""Fetch (1), versions 4 to 18.

On a broker's listener: reads the logs of topics, for consumers (READ on the topic) and followers (CLUSTER_ACTION on the
cluster). Topics have names up to version 12 and ids from 13 on. Sessions (KIP-227) exist from version 7 on. A partition
that is unknown or not authorized is a row with an error, after the rows of partitions that were read. Up to version 10,
consumers can read only from leaders. The response is sent at once if there are `min_bytes`, an error, or a diverging
epoch in the fetcher's log; otherwise after `max_wait_ms` at the latest. From version 16 on, an error that names another
leader comes with its address. Records are read from disk while the client receives them.

On the controller's listener: reads the metadata log, for voters, observers and other readers (CLUSTER_ACTION). The
topic is `__cluster_metadata`, by name before version 13 and by id from there on.

A consumer above a quota on bytes or time gets an empty response with the throttle time, before its records are read, and
a session does not advance. No fetch returns more than the quota allows in all windows but one, because that would
always be throttled. Followers have no such quotas.

With `replica.selector.class` set to Kafka's RackAwareReplicaSelector, a consumer in the rack of a follower is told to
read there (`preferred_read_replica`, KIP-392). Followers that are not in sync get no records while a replication throttle
is exceeded.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import NamedTuple, cast

from barnabas.broker.context import Context
from barnabas.broker.current_leader import LED_ELSEWHERE, tell_leader
from barnabas.broker.throttling import record_time
from barnabas.config.unsupported import RACK_AWARE_SELECTOR
from barnabas.replicas import reading
from barnabas.replicas.fetch_sessions import PAUSE_EVERY, Fetch, PartitionData, Rows, Wanted
from barnabas.replicas.partition import Partition
from barnabas.replicas.reading import Found, Isolation, Limits, StoredRecords
from barnabas.replicas.waiting import WaitingFetch
from barnabas.security.acl import CLUSTER_NAME, AclOperation, ResourceType
from barnabas.slices import Slices, in_slices
from barnabas.storage import StorageError
from barnabas.wire import ErrorCode, Message, Uuid
from barnabas.wire.codec import sliced_writer
from barnabas.wire.messages.fetch import FetchRequest, FetchResponse

Topic = FetchResponse.FetchableTopicResponse

READ_AT_ONCE_BYTES = 1 << 16  # of one partition
MAX_READ_AT_ONCE_BYTES = 1 << 20  # of one response
_FIRST_WITH_REPLICA_STATE = 15
_FIRST_WITH_LEADERS = 16
_FIRST_WITH_FOLLOWER_FETCHING = 11
_FIRST_WITH_STORAGE_ERROR = 6
_NO_DIVERGENCE = FetchResponse.EpochEndOffset()
_NO_LEADER = FetchResponse.LeaderIdAndEpoch()
_NO_SNAPSHOT = FetchResponse.SnapshotId()


def handle(
    context: Context, request: FetchRequest
) -> Awaitable[Message] | Slices[FetchResponse | Awaitable[FetchResponse]]:
    if context.listener.is_controller:
        context.require_on_cluster(AclOperation.CLUSTER_ACTION)
        context.is_exempt = True
        return context.services.ask_quorum(request, context.version, context.listener.name)
    return _fetch(context, request)


class Asked(NamedTuple):
    """One request: the partitions to read, and the rows of those that are refused."""

    context: Context
    fetch: Fetch
    limits: Limits
    readable: list[Wanted]
    refused: Rows


def _fetch(context: Context, request: FetchRequest) -> Slices[FetchResponse | Awaitable[FetchResponse]]:
    services, version = context.services, context.version
    replica_id = request.replica_id if version < _FIRST_WITH_REPLICA_STATE else request.replica_state.replica_id
    max_bytes = min(request.max_bytes, context.config.get_int("fetch.max.bytes"))
    if replica_id >= 0:
        context.is_exempt = True
    elif services.quotas.fetch.bounds.is_any:
        most = services.quotas.fetch.most_at_once(context.peer.principal.name, context.client_id)
        max_bytes = int(min(max_bytes, most))
    limits = Limits(
        isolation=reading.isolation_of(replica_id, request.isolation_level),
        max_bytes=max_bytes,
        min_bytes=min(request.min_bytes, max_bytes),
        replica_id=replica_id,
        only_leader=replica_id >= 0 or (replica_id == reading.CONSUMER and version < _FIRST_WITH_FOLLOWER_FETCHING),
        replica_epoch=reading.NO_EPOCH if version < _FIRST_WITH_REPLICA_STATE else request.replica_state.replica_epoch,
        near=_nearest(context, request) if replica_id == reading.CONSUMER and request.rack_id else None,
    )
    fetch = yield from services.fetch_sessions.begin(
        request,
        version,
        services.monotonic_ms(),
        lambda topic_id: _name(context, topic_id),
        is_follower=replica_id >= 0,
    )
    readable, refused = yield from _readable(context, fetch.partitions, replica_id >= 0)
    asked = Asked(context, fetch, limits, readable, refused)
    found = yield from reading.find(services.replicas, asked.readable, limits)
    if asked.readable and request.max_wait_ms > 0 and not reading.is_enough(found, limits.min_bytes):
        return _wait(asked, found, request.max_wait_ms)
    return (yield from _answer(asked, found))


async def _wait(asked: Asked, found: list[Found], max_wait_ms: int) -> FetchResponse:
    """Wait until there are `min_bytes` or the time is over, and return the response."""
    replicas, limits = asked.context.services.replicas, asked.limits
    clock = asyncio.get_running_loop().time
    until = clock() + max_wait_ms / 1000
    is_over = False
    while not is_over:
        if not reading.has_moved(found):  # a log may have changed before this coroutine started
            partitions = [each.partition for each in found if each.partition is not None]
            left_ms = max(1, round((until - clock()) * 1000))
            waiting = WaitingFetch(limits.min_bytes - reading.size_of(found), is_follower=limits.is_follower)
            await waiting.wait(partitions, left_ms)
        found = await in_slices(reading.find(replicas, asked.readable, limits, is_first=False))
        is_over = clock() >= until or reading.is_enough(found, limits.min_bytes)
    return await in_slices(_answer(asked, found))


def _nearest(context: Context, request: FetchRequest) -> Callable[[Partition, int], int | None] | None:
    """Return what finds a follower in the consumer's rack (KIP-392), or None if it reads here anyway."""
    if context.config.get_str("replica.selector.class") != RACK_AWARE_SELECTOR:
        return None
    own = context.image.brokers.get(context.config.node_id)
    if context.version < _FIRST_WITH_FOLLOWER_FETCHING or (own is not None and own.rack == request.rack_id):
        return None

    def nearest(partition: Partition, offset: int) -> int | None:
        leading = partition.leading
        return None if leading is None else leading.nearest(request.rack_id, context.listener.name, offset)

    return nearest


def _name(context: Context, topic_id: Uuid) -> str | None:
    topic = context.image.topics.by_id.get(topic_id)
    return None if topic is None else topic.name


def _readable(context: Context, partitions: Iterable[Wanted], is_follower: bool) -> Slices[tuple[list[Wanted], Rows]]:
    """Return the readable partitions, and the rows of the others; unknown ids come first, as in Kafka."""
    readable: list[Wanted] = []
    unknown: Rows = []
    refused: Rows = []
    allowed: dict[str, bool] = {}
    replicas, topics = context.services.replicas, context.image.topics
    may_follow = is_follower and context.may(AclOperation.CLUSTER_ACTION, ResourceType.CLUSTER, CLUSTER_NAME)
    for number, wanted in enumerate(list(partitions)):
        if number % PAUSE_EVERY == PAUSE_EVERY - 1:
            yield
        topic = wanted.topic
        if is_follower and not may_follow:
            refused.append((wanted, _refused(wanted, ErrorCode.TOPIC_AUTHORIZATION_FAILED)))
            continue
        if topic is None:
            unknown.append((wanted, _refused(wanted, ErrorCode.UNKNOWN_TOPIC_ID)))
            continue
        if not is_follower:
            may = allowed.get(topic)
            if may is None:
                may = allowed[topic] = context.may(AclOperation.READ, ResourceType.TOPIC, topic)
            if not may:
                refused.append((wanted, _refused(wanted, ErrorCode.TOPIC_AUTHORIZATION_FAILED)))
                continue
        if reading.replica_of(replicas, wanted) is None:
            known = topics.get(topic)
            if known is None or not 0 <= wanted.partition < len(known.partitions):
                refused.append((wanted, _refused(wanted, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)))
                continue
        readable.append(wanted)
    return readable, unknown + refused


def _refused(wanted: Wanted, code: ErrorCode) -> PartitionData:
    return PartitionData(partition_index=wanted.partition, error_code=code, high_watermark=-1, records=b"")


def _answer(asked: Asked, found: list[Found]) -> Slices[FetchResponse]:
    rows: Rows = []
    is_incremental = asked.fetch.is_incremental
    for number, each in enumerate(found):
        if number % PAUSE_EVERY == PAUSE_EVERY - 1:
            yield
        wanted = each.wanted
        if (
            is_incremental
            and each.batches is None
            and not each.error_code
            and each.diverging is None
            and each.preferred_read_replica < 0
            and each.high_watermark == wanted.told_high_watermark
            and each.log_start_offset == wanted.told_log_start_offset
        ):
            continue  # nothing new: the usual case in a session with many partitions
        rows.append((wanted, _row(asked, each)))
    if (yield from _is_throttled(asked, rows)):
        answer = asked.fetch.throttled()
        return FetchResponse(error_code=answer.error_code, session_id=answer.session_id)
    yield from _read_small(asked, rows)
    return (yield from _respond(asked, rows + asked.refused))


def _is_throttled(asked: Asked, rows: Rows) -> Slices[bool]:
    """Apply the quotas of a consumer to the response with these rows. The bytes of a throttled one do not count."""
    context = asked.context
    if context.is_exempt:
        return False
    record_time(context)
    quota = context.services.quotas.fetch
    if quota.bounds.is_any:
        pieces: list[bytes] = []
        news = [each for each in rows + asked.refused if not asked.fetch.is_incremental or each[0].is_news(each[1])]
        response = FetchResponse(responses=(yield from _by_topic(news)))
        yield from sliced_writer(FetchResponse, context.version)(response, pieces.append)
        user, size, now_ms = context.peer.principal.name, 4 + sum(map(len, pieces)), context.services.monotonic_ms()
        context.throttle(quota, quota.record(user, context.client_id, size, now_ms))
        if context.throttle_time_ms:
            quota.add(user, context.client_id, -size, now_ms)
    return context.throttle_time_ms > 0


def _by_topic(rows: Rows) -> Slices[list[Topic]]:
    topics: list[Topic] = []
    for number, (wanted, row) in enumerate(rows, 1):
        if number % PAUSE_EVERY == 0:
            yield
        if not topics or topics[-1].topic_id != wanted.topic_id or topics[-1].topic != (wanted.topic or ""):
            topics.append(Topic(topic=wanted.topic or "", topic_id=wanted.topic_id))
        topics[-1].partitions.append(row)
    return topics


def _row(asked: Asked, found: Found) -> PartitionData:
    """Return the row of a partition. Its records are not read yet."""
    row = PartitionData(
        partition_index=found.wanted.partition,
        high_watermark=found.high_watermark,
        log_start_offset=found.log_start_offset,
        diverging_epoch=_NO_DIVERGENCE,
        current_leader=_NO_LEADER,
        snapshot_id=_NO_SNAPSHOT,
        aborted_transactions=None,
        records=b"",
    )
    if found.partition is None:
        row.error_code = _shown(asked, found.error_code)
        return row
    row.last_stable_offset = found.partition.last_stable_offset
    row.preferred_read_replica = found.preferred_read_replica
    if found.diverging is not None:
        epoch, end_offset = found.diverging
        row.diverging_epoch = FetchResponse.EpochEndOffset(epoch=epoch, end_offset=end_offset)
        return row
    try:
        if asked.limits.isolation is Isolation.LAST_STABLE:
            row.aborted_transactions = [
                FetchResponse.AbortedTransaction(producer_id=each.producer_id, first_offset=each.first_offset)
                for each in reading.aborted_transactions(found)
            ]
        if found.batches is not None:
            stored = StoredRecords(found.partition, found.batches)
            row.records = cast(bytes, stored)
    except StorageError as error:
        _fail(asked, found.partition, row, error)
    return row


def _read_small(asked: Asked, rows: Rows) -> Slices[None]:
    """Read small cached batches now. All others are read while they are sent."""
    left_bytes = MAX_READ_AT_ONCE_BYTES
    for number, (_, row) in enumerate(rows, 1):
        if number % PAUSE_EVERY == 0:
            yield
        stored = row.records
        if not isinstance(stored, StoredRecords) or len(stored) > min(READ_AT_ONCE_BYTES, left_bytes):
            continue
        try:
            data = stored.read_cached()
        except StorageError as error:
            _fail(asked, stored.partition, row, error)
            continue
        if data is not None:
            row.records = cast(bytes, data)
            left_bytes -= len(data)


def _shown(asked: Asked, code: ErrorCode) -> ErrorCode:
    if code is ErrorCode.KAFKA_STORAGE_ERROR and asked.context.version < _FIRST_WITH_STORAGE_ERROR:
        return ErrorCode.NOT_LEADER_OR_FOLLOWER  # old clients know and retry this error
    return code


def _fail(asked: Asked, partition: Partition, row: PartitionData, error: StorageError) -> None:
    row.error_code = _shown(asked, partition.read_failed(error))
    row.high_watermark = row.last_stable_offset = row.log_start_offset = -1
    row.aborted_transactions, row.records = None, b""


def _respond(asked: Asked, rows: Rows) -> Slices[FetchResponse]:
    context = asked.context
    answer = yield from asked.fetch.answer(rows, context.services.monotonic_ms())
    response = FetchResponse(error_code=answer.error_code, session_id=answer.session_id)
    response.responses = yield from _by_topic(answer.rows)
    traffic = context.services.replicas.traffic.others
    topic: str | None = None
    for number, (wanted, row) in enumerate(answer.rows, 1):
        if number % PAUSE_EVERY == 0:
            yield
        if topic != (wanted.topic or ""):
            topic = wanted.topic or ""
            traffic = context.services.replicas.traffic.get(topic)
        traffic.fetch_requests += 1
        if asked.limits.is_follower:
            traffic.replication_bytes_out += len(row.records or b"")
            if row.records and wanted.replica is not None:
                reading.count_throttled(context.services.replicas, wanted.replica, len(row.records))
        else:
            traffic.bytes_out += len(row.records or b"")
        if row.error_code:
            traffic.failed_fetch_requests += 1
        if row.error_code in LED_ELSEWHERE and context.version >= _FIRST_WITH_LEADERS:
            is_consumer = not asked.limits.is_follower
            tell_leader(context, wanted.topic or "", wanted.partition, row, response, with_address=is_consumer)
    return response
