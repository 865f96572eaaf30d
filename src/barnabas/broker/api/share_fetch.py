"""ShareFetch (78), versions 1 and 2.

Acquires records for a member of a share group (KIP-932), and acknowledges others on the way. Epoch 0 begins a share session
with the partitions of the request; later epochs add and remove some; -1 acknowledges, ends the session and releases what
the member has acquired. A session ends with its connection. If there is no room for another, the answer is
SHARE_SESSION_LIMIT_REACHED, after `max_wait_ms`.

The answer comes when there are `min_bytes`, or after `max_wait_ms`. Records are acquired for the lock duration of the group
in whole batches (acquire mode 0) or at most `max_records` of them (mode 1, KIP-1206); any other mode is
UNKNOWN_SERVER_ERROR, as in Kafka. Records are read from disk while the client receives them. With `is_renew_ack` (version 2,
KIP-1222) locks are renewed and nothing is fetched. Needs READ on the group and on each topic. Bytes count for the quota of
consumers; unlike in Kafka, what a throttled client is not sent is not acquired either.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from functools import partial
from typing import Final, NamedTuple, cast

from barnabas.broker.context import Context
from barnabas.broker.current_leader import LED_ELSEWHERE, tell_leader
from barnabas.broker.share_requests import Errors, Topics, acknowledgements, member_of, row_errors
from barnabas.broker.throttling import record_time
from barnabas.replicas.share.fetching import Fetched, ShareFetch
from barnabas.replicas.share.sessions import FINAL_EPOCH, INITIAL_EPOCH, MemberKey, PartitionKey, Session, rotated
from barnabas.slices import in_slices
from barnabas.steps import Slices
from barnabas.wire import ErrorCode, KafkaError, Uuid
from barnabas.wire.codec import sliced_writer
from barnabas.wire.messages.share_fetch import ShareFetchRequest, ShareFetchResponse

Topic = ShareFetchResponse.ShareFetchableTopicResponse
Row = ShareFetchResponse.PartitionData

BATCH_OPTIMIZED: Final = 0
RECORD_LIMIT: Final = 1

Answers = dict[PartitionKey, Fetched]


class _Asked(NamedTuple):
    """One request: its session, which is None if the request ends it, the partitions to read, and errors of others."""

    context: Context
    member: MemberKey
    session: Session | None
    epoch: int
    readable: list[tuple[PartitionKey, str]]
    refused: Answers


async def handle(context: Context, request: ShareFetchRequest) -> ShareFetchResponse:
    member = member_of(context, request.group_id, request.member_id)
    shares = context.services.share_partitions
    if request.is_renew_ack:
        _check_renewal(request)
    if request.share_acquire_mode not in (BATCH_OPTIMIZED, RECORD_LIMIT):
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)
    topics = Topics(context)
    has_acknowledgements = await in_slices(_has_acknowledgements(request))
    try:
        session = await in_slices(_session(context, member, request, has_acknowledgements=has_acknowledgements))
    except KafkaError as error:
        if error.code is ErrorCode.SHARE_SESSION_LIMIT_REACHED:
            await asyncio.sleep(max(request.max_wait_ms, 0) / 1000)  # so that the client does not ask again at once
        raise
    epoch = request.share_session_epoch
    asked = await in_slices(_readable(context, member, session, epoch, topics))
    errors: Errors = {}
    acknowledging: asyncio.Task[dict[PartitionKey, KafkaError | None]] | None = None
    if has_acknowledgements:
        said = await in_slices(acknowledgements(context, topics, request.topics, is_renewal=request.is_renew_ack))
        errors = said.errors
        acknowledging = asyncio.ensure_future(shares.acknowledge(member, said.possible))
    answers: Answers = {}
    if not request.is_renew_ack:
        answers = await _fetch(asked, request) | asked.refused
    if acknowledging is not None:
        errors = errors | row_errors(await acknowledging)
    response = await in_slices(_response(asked, answers, errors))
    if epoch == FINAL_EPOCH:
        shares.close(member)
    return response


def _check_renewal(request: ShareFetchRequest) -> None:
    """Check that a request which renews locks fetches nothing. Raises INVALID_REQUEST."""
    fields = {
        "maxBytes": request.max_bytes,
        "minBytes": request.min_bytes,
        "maxRecords": request.max_records,
        "maxWaitMs": request.max_wait_ms,
    }
    wrong = "".join(f"{name} must be set to 0, " for name, value in fields.items() if value)
    if wrong:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"{wrong}if isRenewAck is true.")


def _has_acknowledgements(request: ShareFetchRequest) -> Slices[bool]:
    for topic in request.topics:
        for partition in topic.partitions:
            if partition.acknowledgement_batches:
                return True
            yield
    return False


def _session(
    context: Context, member: MemberKey, request: ShareFetchRequest, *, has_acknowledgements: bool
) -> Slices[Session | None]:
    """Begin or continue the member's session. Raises KafkaError."""
    shares = context.services.share_partitions
    epoch = request.share_session_epoch
    if epoch == FINAL_EPOCH:
        shares.sessions.get(member)
        return None
    partitions = (
        PartitionKey(topic.topic_id, each.partition_index) for topic in request.topics for each in topic.partitions
    )
    if epoch == INITIAL_EPOCH:
        if has_acknowledgements:
            raise KafkaError(ErrorCode.INVALID_REQUEST)
        information = context.peer.information
        if information is not None and information.at_close is None:
            information.at_close = partial(shares.disconnected, information)
        return (yield from shares.sessions.begin(member, partitions, information or context))
    forgotten = (
        PartitionKey(topic.topic_id, index) for topic in request.forgotten_topics_data for index in topic.partitions
    )
    return (yield from shares.sessions.go_on(member, epoch, partitions, forgotten))


def _readable(
    context: Context, member: MemberKey, session: Session | None, epoch: int, topics: Topics
) -> Slices[_Asked]:
    readable: list[tuple[PartitionKey, str]] = []
    refused: Answers = {}
    if session is not None:
        for key in rotated(list(session.partitions), epoch):
            try:
                readable.append((key, topics.readable(key)))
            except KafkaError as error:
                refused[key] = Fetched(error)
            yield
    return _Asked(context, member, session, epoch, readable, refused)


async def _fetch(asked: _Asked, request: ShareFetchRequest) -> Answers:
    if not asked.readable:
        return {}
    context, member = asked.context, asked.member
    shares, information = context.services.share_partitions, context.peer.information
    max_bytes = min(request.max_bytes, context.config.get_int("fetch.max.bytes"))
    quota = context.services.quotas.fetch
    if quota.bounds.is_any:
        max_bytes = int(min(max_bytes, quota.most_at_once(context.peer.principal.name, context.client_id)))

    def is_gone() -> bool:
        has_left = information is not None and information.closed
        return has_left or not shares.sessions.is_current(member, asked.session)

    wanted = ShareFetch(
        member.member_id,
        max(request.max_wait_ms, 0),
        min(request.min_bytes, max_bytes),
        max(max_bytes, 0),
        max(request.max_records, 0),
        request.batch_size,
        request.share_acquire_mode == RECORD_LIMIT,
        shares.settings(member.group_id).isolation_level == "read_committed",
        is_gone,
    )
    return await shares.fetch(member.group_id, wanted, asked.readable)


# --- the response


def _response(asked: _Asked, answers: Answers, errors: Errors) -> Slices[ShareFetchResponse]:
    context = asked.context
    shares = context.services.share_partitions
    response = ShareFetchResponse()
    response.acquisition_lock_timeout_ms = shares.settings(asked.member.group_id).record_lock_duration_ms
    rows: dict[PartitionKey, Row] = {}
    for key, answer in answers.items():
        yield
        row = _row(context, key, answer, response)
        if asked.session is None or asked.epoch == INITIAL_EPOCH or _is_news(asked.session, key, row):
            rows[key] = row
    if (yield from _is_throttled(asked, rows)):
        _undo(asked, answers)
        rows.clear()
        response.node_endpoints = []
    for key, error in errors.items():
        yield
        row = rows.setdefault(key, Row(partition_index=key.partition, records=b""))
        if error is not None:
            row.acknowledge_error_code, row.acknowledge_error_message = error.code, error.message
    response.responses = yield from _by_topic(rows.items())
    yield from _count(asked, rows)
    return response


def _row(context: Context, key: PartitionKey, answer: Fetched, response: ShareFetchResponse) -> Row:
    row = Row(partition_index=key.partition, records=b"")
    topic = context.image.topics.by_id.get(key.topic_id)
    if answer.error is not None:
        row.error_code = answer.error.code
        if answer.error.code in LED_ELSEWHERE and topic is not None:
            tell_leader(context, topic.name, key.partition, row, response)
    if answer.records is not None:
        row.records = cast(bytes, answer.records)
    row.acquired_records = [
        ShareFetchResponse.AcquiredRecords(first_offset=first, last_offset=last, delivery_count=count)
        for first, last, count in answer.acquired
    ]
    return row


def _is_news(session: Session, key: PartitionKey, row: Row) -> bool:
    return session.is_news(key, has_records=bool(row.records), has_error=bool(row.error_code))


def _is_throttled(asked: _Asked, rows: dict[PartitionKey, Row]) -> Slices[bool]:
    """Apply the quotas of a consumer to the response with these rows. The bytes of a throttled one do not count."""
    context = asked.context
    record_time(context)
    quota = context.services.quotas.fetch
    if quota.bounds.is_any:
        pieces: list[bytes] = []
        response = ShareFetchResponse(responses=(yield from _by_topic(rows.items())))
        yield from sliced_writer(ShareFetchResponse, context.version)(response, pieces.append)
        user, size, now_ms = context.peer.principal.name, 4 + sum(map(len, pieces)), context.services.monotonic_ms()
        context.throttle(quota, quota.record(user, context.client_id, size, now_ms))
        if context.throttle_time_ms:
            quota.add(user, context.client_id, -size, now_ms)
    return context.throttle_time_ms > 0


def _undo(asked: _Asked, answers: Answers) -> None:
    """Undo the acquisition of records that are not sent."""
    for key, answer in answers.items():
        if answer.acquired:
            asked.context.services.share_partitions.give_back(asked.member, key, answer.acquired)


def _by_topic(rows: Iterable[tuple[PartitionKey, Row]]) -> Slices[list[Topic]]:
    topics: dict[Uuid, Topic] = {}
    for key, row in rows:
        topics.setdefault(key.topic_id, Topic(topic_id=key.topic_id)).partitions.append(row)
        yield
    return list(topics.values())


def _count(asked: _Asked, rows: dict[PartitionKey, Row]) -> Slices[None]:
    replicas, names = asked.context.services.replicas, dict(asked.readable)
    for key, row in rows.items():
        yield
        if row.records and key in names:
            replicas.traffic.get(names[key]).bytes_out += len(row.records)
