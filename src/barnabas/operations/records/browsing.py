"""Records of partitions as they are in the log: also control records and those of open or aborted transactions.

Its one rule: everything is bounded. One read fetches at most `MAX_PAGE_BYTES`; a search stops at its limits and says how far it
came. Consumers hide what is shown here, so requests are sent directly.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from barnabas.batches import BatchError, ControlType, decode_control_key, decode_records, iterate_batches
from barnabas.operations.errors import OperationError, refused
from barnabas.operations.records.internal_records import InternalRecord, decode_internal
from barnabas.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from barnabas.batches import BatchHeader, Headers, Record
    from barnabas.client.cluster import Cluster
    from barnabas.client.records import TopicPartition

MAX_PAGE_BYTES = 1024 * 1024
MAX_SCANNED_BYTES = 256 * 1024 * 1024
_MAX_WAIT_MS = 100
_LAST_FETCH_WITH_NAMES = 12


class SeenRecord(NamedTuple):
    """A record and the batch it is in. `control` is COMMIT, ABORT or another type of control record."""

    topic: str
    partition: int
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Headers
    producer_id: int = -1
    producer_epoch: int = -1
    is_transactional: bool = False
    control: str | None = None
    leader_epoch: int = -1
    compression: str = "NONE"
    decoded: InternalRecord | None = None


class RecordPage(NamedTuple):
    """Records of a partition. `next_offset` follows all that was read; the log is from `start` to `end`, which is exclusive."""

    records: list[SeenRecord]
    next_offset: int
    start: int
    end: int
    last_stable_offset: int


async def read_page(
    cluster: Cluster, partition: TopicPartition, offset: int, *, max_records: int, max_bytes: int = MAX_PAGE_BYTES
) -> RecordPage:
    """Read records from an offset on, at most so many. Raises OperationError."""
    from barnabas.client.admin.part import failed
    from barnabas.client.routing import node
    from barnabas.wire.messages.fetch import FetchRequest

    leader = (await cluster.metadata([partition.topic])).leader(*partition)
    if leader is None:
        raise OperationError("there is no such partition, or it has no leader", resource=str(partition))
    best = (await cluster.versions(node(leader.id))).best("Fetch")
    row = FetchRequest.FetchPartition(
        partition=partition.partition, fetch_offset=offset, partition_max_bytes=min(max_bytes, MAX_PAGE_BYTES)
    )
    request = FetchRequest(
        max_wait_ms=_MAX_WAIT_MS,
        min_bytes=1,
        max_bytes=min(max_bytes, MAX_PAGE_BYTES),
        topics=[FetchRequest.FetchTopic(topic=partition.topic, partitions=[row])],
    )
    version = None if best is None else min(best, _LAST_FETCH_WITH_NAMES)
    response = await cluster.send(request, node(leader.id), version=version, lane="batches")
    found = next((row for topic in response.responses for row in topic.partitions), None)
    if found is None:
        raise OperationError("the broker did not answer for it", resource=str(partition))
    if error := failed(found.error_code):
        if error.code is ErrorCode.OFFSET_OUT_OF_RANGE:
            return await _out_of_range(cluster, partition, offset)
        raise refused(error, str(partition))
    records = seen_records(partition, bytes(found.records or b""), offset)
    shown = records.shown[:max_records]
    next_offset = records.next_offset if len(shown) == len(records.shown) else shown[-1].offset + 1
    return RecordPage(shown, next_offset, found.log_start_offset, found.high_watermark, found.last_stable_offset)


async def _out_of_range(cluster: Cluster, partition: TopicPartition, offset: int) -> RecordPage:
    """Return an empty page at the nearest offset of the log."""
    from barnabas.operations.groups.positions import logs_of

    log = (await logs_of(cluster, [partition]))[partition]
    if isinstance(log, KafkaError):
        raise refused(log, str(partition))
    return RecordPage([], max(log.start, min(offset, log.end)), log.start, log.end, log.end)


class SeenRecords(NamedTuple):
    shown: list[SeenRecord]
    next_offset: int


def seen_records(partition: TopicPartition, data: bytes, offset: int) -> SeenRecords:
    """Return the records from an offset on that are in fetched batches. Raises OperationError if one is damaged. Pure."""
    shown: list[SeenRecord] = []
    try:
        for position, header in iterate_batches(data, tolerate_truncated=True):
            shown += (
                _seen(partition, header, record)
                for record in decode_records(data, position, header)
                if record.offset >= offset
            )
            offset = max(offset, header.last_offset + 1)
    except BatchError as error:
        raise OperationError(f"a batch cannot be read: {error}", resource=str(partition)) from error
    return SeenRecords(shown, offset)


def _seen(partition: TopicPartition, header: BatchHeader, record: Record) -> SeenRecord:
    control = None
    if header.is_control:
        try:
            control = decode_control_key(record.key).name
        except BatchError:
            control = ControlType.UNKNOWN.name
    return SeenRecord(
        *partition,
        record.offset,
        record.timestamp,
        record.key,
        record.value,
        record.headers,
        header.producer_id,
        header.producer_epoch,
        header.is_transactional,
        control,
        header.partition_leader_epoch,
        header.compression.name,
        None if control else decode_internal(partition.topic, record.key, record.value),
    )


def transaction_ends(records: Iterable[SeenRecord]) -> dict[tuple[int, int], str]:
    """Return what became of the transactional records, by partition and offset: committed, aborted, or open as far as seen.

    Pure. A marker ends the transaction of its producer; records after the last marker are open. The order is that of the log:
    the time of a marker is that of its broker, and may be before the times that producers have written.
    """
    ends: dict[tuple[int, int], str] = {}
    waiting: dict[tuple[int, int], list[SeenRecord]] = {}
    for each in sorted(records, key=lambda record: (record.partition, record.offset)):
        if not each.is_transactional:
            continue
        producer = (each.partition, each.producer_id)
        if each.control is None:
            waiting.setdefault(producer, []).append(each)
        else:
            end = {"COMMIT": "committed", "ABORT": "aborted"}.get(each.control, each.control.lower())
            for record in waiting.pop(producer, ()):
                ends[record.partition, record.offset] = end
    for records_left in waiting.values():
        for record in records_left:
            ends[record.partition, record.offset] = "not ended here"
    return ends


# --- search


class SearchLimits(NamedTuple):
    """Where a search stops."""

    max_found: int = 100
    max_records: int = 1_000_000
    max_bytes: int = MAX_SCANNED_BYTES


class SearchStep(NamedTuple):
    """What one read of a search found, and how far the search is. `reason` is why it ended, in the last step."""

    found: list[SeenRecord]
    scanned: int
    total: int
    read_bytes: int
    reason: str | None = None


async def search(
    cluster: Cluster,
    starts: Mapping[TopicPartition, int],
    fits: Callable[[SeenRecord], bool],
    limits: SearchLimits,
) -> AsyncIterator[SearchStep]:
    """Search partitions one after another, from these offsets to their present ends. Yields after each read.

    Records count as scanned by their offsets, also those that compaction has removed.
    """
    from barnabas.operations.groups.positions import logs_of

    logs = await logs_of(cluster, starts)
    ranges: list[tuple[TopicPartition, int, int]] = []
    for key, offset in starts.items():
        log = logs[key]
        if isinstance(log, KafkaError):
            raise refused(log, str(key))
        ranges.append((key, max(offset, log.start), log.end))
    total = sum(max(end - begin, 0) for _, begin, end in ranges)
    scanned = read_bytes = count = 0
    for key, begin, end in ranges:
        offset = begin
        while offset < end:
            page = await read_page(cluster, key, offset, max_records=2**31)
            if page.next_offset <= offset:
                break  # nothing can be read any more, because the log was truncated
            found = [each for each in page.records if each.offset < end and fits(each)]
            scanned += min(page.next_offset, end) - offset
            read_bytes += _size(page.records)
            offset = page.next_offset
            found = found[: limits.max_found - count]
            count += len(found)
            reason = None
            if count >= limits.max_found:
                reason = f"{count:,} records were found"
            elif scanned >= limits.max_records or read_bytes >= limits.max_bytes:
                reason = "the limit of what is read was reached"
            yield SearchStep(found, scanned, total, read_bytes, reason)
            if reason is not None:
                return
    yield SearchStep([], scanned, total, read_bytes, "everything was read")


async def offsets_at(cluster: Cluster, partitions: Sequence[TopicPartition], time_ms: int) -> dict[TopicPartition, int]:
    """Return the first offset at or after a time in each partition, or its end. Raises OperationError."""
    from barnabas.operations.groups.positions import logs_of

    found: dict[TopicPartition, int] = {}
    for key, log in (await logs_of(cluster, partitions, time_ms)).items():
        if isinstance(log, KafkaError):
            raise refused(log, str(key))
        found[key] = log.end if log.at_time is None else log.at_time
    return found


# --- several partitions at once


class Begin(NamedTuple):
    """Where to begin: at an offset, at a time, or without both so many records before the end."""

    offset: int | None = None
    time_ms: int | None = None


class Browsed(NamedTuple):
    """Records of partitions by time, and the page of each partition."""

    records: list[SeenRecord]
    pages: dict[int, RecordPage]
    is_cut: bool = False
    """Whether a partition has more of these records than fit into the limit of bytes."""


MAX_PARTITIONS = 32
"""Partitions that are read at once. Others have to be chosen by number."""


async def browse(
    cluster: Cluster,
    partitions: Sequence[TopicPartition],
    begin: Begin,
    count: int,
    *,
    max_bytes: int = MAX_PAGE_BYTES,
) -> Browsed:
    """Read `count` records of each partition, and return the newest or, from an offset or time, the oldest of all of them.

    About `max_bytes` of each partition are read at most: of large records there are fewer, but the newest are the newest.
    """
    from barnabas.operations.groups.positions import logs_of

    keys = list(partitions)[:MAX_PARTITIONS]
    logs = await logs_of(cluster, keys, begin.time_ms)
    is_newest = begin == Begin()
    records: list[SeenRecord] = []
    pages: dict[int, RecordPage] = {}
    is_cut = False
    for key in keys:
        log = logs[key]
        if isinstance(log, KafkaError):
            raise refused(log, str(key))
        offset = max(log.start, log.end - count)
        if begin.time_ms is not None:
            offset = log.end if log.at_time is None else log.at_time
        elif begin.offset is not None:
            offset = max(log.start, min(begin.offset, log.end))
        if offset >= log.end:
            pages[key.partition] = RecordPage([], offset, log.start, log.end, log.end)
            continue
        page = await _read_pages(cluster, key, offset, count, max_bytes)
        wanted = count
        while is_newest and page.next_offset < log.end and wanted > 1:
            # So many are too large. Those that fit are read again, from nearer to the end.
            is_cut, wanted = True, max(min(wanted // 2, len(page.records)), 1)
            page = await _read_pages(cluster, key, max(log.start, log.end - wanted), wanted, max_bytes)
        is_cut = is_cut or (len(page.records) < count and page.next_offset < log.end)
        pages[key.partition] = page._replace(start=log.start)
        records += page.records
    records = by_time(records)
    return Browsed(records[-count:] if is_newest else records[:count], pages, is_cut)


def by_time(records: Iterable[SeenRecord]) -> list[SeenRecord]:
    """Merge records by time. Those of one partition stay in the order of their log, whatever their times. Pure."""
    newest: dict[int, int] = {}
    found: list[tuple[int, int, int, SeenRecord]] = []
    for each in records:
        at_ms = newest[each.partition] = max(each.timestamp, newest.get(each.partition, each.timestamp))
        found.append((at_ms, each.partition, each.offset, each))
    return [each for *_, each in sorted(found, key=lambda row: row[:3])]


async def _read_pages(cluster: Cluster, key: TopicPartition, offset: int, count: int, max_bytes: int) -> RecordPage:
    """Read page after page until there are so many records, the log ends, or the limit of bytes is reached."""
    page = await read_page(cluster, key, offset, max_records=count)
    records = page.records
    left = max_bytes - _size(records)
    while len(records) < count and page.next_offset < page.end and left > 0:
        following = await read_page(cluster, key, page.next_offset, max_records=count - len(records))
        if following.next_offset <= page.next_offset:
            break
        page = following
        records = [*records, *page.records]
        left -= _size(page.records)
    return page._replace(records=records)


def _size(records: Iterable[SeenRecord]) -> int:
    return sum(len(each.key or b"") + len(each.value or b"") for each in records)
