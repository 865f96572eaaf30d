"""Copies of topics, within a cluster or to another: settings, number of partitions, replication factor, and records.

Its one rule: a copy ends. The end offsets are fixed when it is proposed, so records that are written meanwhile are not copied.
Keys, values, headers and timestamps stay as they are; offsets do not. With as many partitions as the source, every record
goes to the partition that it is from. Otherwise keys decide, as for every producer. The order of a key's records is kept.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from barnabas.client.admin.part import errors
from barnabas.client.admin.topics import NewTopic, Topics
from barnabas.client.cluster import Cluster
from barnabas.client.consumer import Consumer
from barnabas.client.producer import Producer
from barnabas.client.records import TopicPartition
from barnabas.operations.errors import OperationError, refused
from barnabas.operations.proposal import Proposal
from barnabas.operations.quantities import bytes_text
from barnabas.operations.topics.changes import NEVER_COPIED, partition_count, wait_until_seen
from barnabas.operations.topics.facts import TopicFacts, look_at
from barnabas.wire.errors import ErrorCode, KafkaError

Progressed = Callable[[int, int], None]
"""Called with the number of offsets that were read so far, and with that of all."""

_POLL_MS = 500
_SETTLE_EVERY = 5_000
_TIMESTAMP_TYPE, _LOG_APPEND_TIME = "message.timestamp.type", "LogAppendTime"
_READING: Final = {"enable.auto.commit": "false", "auto.offset.reset": "earliest", "max.poll.records": "5000"}
_WRITING: Final = {"linger.ms": "20", "max.request.size": str(64 << 20), "buffer.memory": str(128 << 20)}
"""A record that the source has was small enough for it; the target decides whether it is small enough there."""


@dataclass(frozen=True, slots=True)
class RecordRange:
    """The records to copy: from a time (inclusive) until a time (exclusive), and at most so many records and bytes."""

    from_ms: int | None = None
    until_ms: int | None = None
    max_records: int | None = None
    max_bytes: int | None = None
    isolation_level: str = "read_committed"


@dataclass(frozen=True, slots=True)
class Copy:
    """A topic to copy, the name of the copy, and what differs in it. Without `records`, no record is copied.

    With `into_existing`, the copy exists already: only records are copied, and its settings stay as they are.
    """

    source: str
    target: str
    partitions: int | None = None
    replication_factor: int | None = None
    configs: Mapping[str, str] = field(default_factory=dict)
    records: RecordRange | None = None
    into_existing: bool = False
    compression_type: str = "none"


class CopiedTopic(NamedTuple):
    """The copy: its partitions and replication factor (None: that of an existing topic), the records in it, and an error."""

    partitions: int
    replication_factor: int | None
    records: int = 0
    size_bytes: int = 0
    error: KafkaError | None = None


async def propose_copy(
    source: Cluster, target: Cluster, copy: Copy, progressed: Progressed
) -> Proposal[str, CopiedTopic]:
    """Propose to copy a topic. `expected` has the target cluster's answer to a validation. Raises OperationError."""
    facts = await _source(source, copy.source)
    is_same_cluster = source is target or source.state.cluster_id == target.state.cluster_id
    if is_same_cluster and copy.source == copy.target:
        raise OperationError("a topic cannot be copied to itself", resource=f"topic {copy.source}")
    notes: list[str] = []
    new: NewTopic | None = None
    if copy.into_existing:
        expected = CopiedTopic(await partition_count(target, copy.target), None)
        steps = []
    else:
        new = _new_topic(facts, copy)
        check = (await Topics(target).create_topics([new], validate_only=True))[copy.target]
        count = new.partitions or len(facts.partitions)
        expected = CopiedTopic(count, new.replication_factor)
        if isinstance(check, KafkaError):
            notes += _ADVICE.get(check.code, ())
            return Proposal({copy.target: expected._replace(error=check)}, notes=tuple(notes))
        words = [f"partitions: {count}", f"replication factor: {new.replication_factor}"]
        words += [f"{name}={value}" for name, value in new.configs.items()]
        steps = [f"create topic {copy.target}, {', '.join(words)}"]
        if new.configs.get(_TIMESTAMP_TYPE) == _LOG_APPEND_TIME and copy.records is not None:
            notes.append(
                f"{copy.target} uses log append time: its records will have the time of copying; "
                f"to keep their timestamps, add --config {_TIMESTAMP_TYPE}=CreateTime"
            )
    ranges: dict[TopicPartition, tuple[int, int]] = {}
    if copy.records is not None:
        ranges = await _ranges(source, copy.source, len(facts.partitions), copy.records)
        total = sum(end - start for start, end in ranges.values())
        steps.append(_copying(copy, copy.records, total))
        if expected.partitions != len(facts.partitions):
            notes.append(
                f"{copy.source} has {len(facts.partitions)} partitions and {copy.target} {expected.partitions}: "
                "records go to partitions by their keys"
            )

    async def carry_out() -> dict[str, CopiedTopic]:
        if new is not None:
            made = errors(await Topics(target).create_topics([new]))
            if copy.target in made:
                return {copy.target: expected._replace(error=made[copy.target])}
            await wait_until_seen(target, [copy.target], lambda topic: topic is not None)
        if copy.records is None:
            return {copy.target: expected}
        keeps_partitions = expected.partitions == len(facts.partitions)
        done = await _copy_records(source, target, copy, copy.records, ranges, keeps_partitions, progressed)
        return {copy.target: expected._replace(records=done.records, size_bytes=done.size_bytes, error=done.error)}

    return Proposal(
        {copy.target: expected},
        tuple(steps),
        tuple(notes),
        question=None if copy.records is None else f"Copy records of {copy.source} to {copy.target}?",
        carry_out=carry_out,
    )


_ADVICE: Final = {
    ErrorCode.TOPIC_ALREADY_EXISTS: (
        "to copy only records into a topic that exists, pass --existing and --records; for settings, see topics copy-settings",
    ),
    ErrorCode.INVALID_REPLICATION_FACTOR: (
        "the cluster has too few brokers for the source's replicas: pass --replication-factor",
    ),
}


async def _source(cluster: Cluster, name: str) -> TopicFacts:
    found = await look_at(cluster, [name])
    if name in found.errors:
        raise refused(found.errors[name], f"topic {name}")
    facts = found.topics[0]
    if facts.topic.is_internal:
        raise OperationError("internal topics cannot be copied", resource=f"topic {name}")
    return facts


def _new_topic(facts: TopicFacts, copy: Copy) -> NewTopic:
    if facts.settings is None or isinstance(facts.settings, KafkaError):
        error = facts.settings or KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)
        raise refused(error, f"settings of topic {copy.source}")
    own = {name: value for name, value in facts.settings.overrides().items() if name not in NEVER_COPIED}
    return NewTopic(
        copy.target,
        copy.partitions or len(facts.partitions),
        copy.replication_factor or facts.topic.replication_factor,
        {**own, **copy.configs},
    )


def _copying(copy: Copy, records: RecordRange, total: int) -> str:
    limits = [f"at most {records.max_records:,} records"] if records.max_records is not None else []
    limits += [f"at most {bytes_text(records.max_bytes)}"] if records.max_bytes is not None else []
    between = f", {', '.join(limits)}" if limits else ""
    return f"copy records of {copy.source} to {copy.target}: {total:,} offsets{between}"


# --- records


async def _ranges(
    cluster: Cluster, topic: str, partitions: int, records: RecordRange
) -> dict[TopicPartition, tuple[int, int]]:
    """Return the first offset to copy in each partition, and the end."""
    places = [TopicPartition(topic, number) for number in range(partitions)]
    async with Consumer(cluster, {**_READING, "isolation.level": records.isolation_level}) as consumer:
        starts = await consumer.beginning_offsets(places)
        ends = await consumer.end_offsets(places)
        if records.from_ms is not None:
            found = await consumer.offsets_for_times(dict.fromkeys(places, records.from_ms))
            starts = {place: ends[place] if each is None else each.offset for place, each in found.items()}
        if records.until_ms is not None:
            found = await consumer.offsets_for_times(dict.fromkeys(places, records.until_ms))
            ends |= {place: min(each.offset, ends[place]) for place, each in found.items() if each is not None}
    return {place: (start, max(start, ends[place])) for place, start in starts.items()}


class _Done(NamedTuple):
    records: int
    size_bytes: int
    error: KafkaError | None


async def _copy_records(
    source: Cluster,
    target: Cluster,
    copy: Copy,
    wanted: RecordRange,
    ranges: Mapping[TopicPartition, tuple[int, int]],
    keeps_partitions: bool,
    progressed: Progressed,
) -> _Done:
    reading = {**_READING, "isolation.level": wanted.isolation_level}
    writing = {**_WRITING, "compression.type": copy.compression_type}
    left = {place: end for place, (start, end) in ranges.items() if start < end}
    total = sum(end - ranges[place][0] for place, end in left.items())
    async with Consumer(source, reading) as consumer, Producer(target, writing) as producer:
        writer = _Writer(producer, copy.target, wanted)
        progressed(0, total)
        consumer.assign(left)
        for place in left:
            consumer.seek(place, ranges[place][0])
        while left and not writer.is_full and writer.error is None:
            found = await consumer.getmany(timeout_ms=_POLL_MS)
            for place, some in found.items():
                for offset, timestamp, key, value, headers in some:
                    if offset >= left.get(place, 0) or writer.is_full or writer.error is not None:
                        break
                    if wanted.until_ms is None or timestamp < wanted.until_ms:
                        await writer.add(place.partition if keeps_partitions else None, timestamp, key, value, headers)
            positions = {place: await consumer.position(place) for place in left}
            ended = [place for place, position in positions.items() if position >= left[place]]
            consumer.pause(ended)
            left = {place: end for place, end in left.items() if place not in ended}
            unread = sum(max(end - positions[place], 0) for place, end in left.items())
            progressed(total - unread, total)
        await writer.settle()
        return _Done(writer.records, writer.size_bytes, writer.error)


class _Writer:
    """Sends records until a limit is reached or one fails. Counts the records that were written."""

    def __init__(self, producer: Producer, topic: str, wanted: RecordRange) -> None:
        self._producer, self._topic = producer, topic
        self._max_records, self._max_bytes = wanted.max_records, wanted.max_bytes
        self._sent, self._sent_bytes = 0, 0
        self._deliveries: list[tuple[Awaitable[object], int]] = []
        self.records, self.size_bytes = 0, 0
        self.is_full = self._max_records == 0
        self.error: KafkaError | None = None

    async def add(
        self,
        partition: int | None,
        timestamp_ms: int,
        key: bytes | None,
        value: bytes | None,
        headers: tuple[tuple[str, bytes | None], ...],
    ) -> None:
        size = len(key or b"") + len(value or b"") + sum(len(name) + len(each or b"") for name, each in headers)
        if self._max_bytes is not None and self._sent_bytes + size > self._max_bytes:
            self.is_full = True
            return
        try:
            delivery = await self._producer.send(
                self._topic,
                value,
                key,
                partition=partition,
                headers=headers,
                timestamp_ms=timestamp_ms if timestamp_ms >= 0 else None,
            )
        except KafkaError as error:
            self.error = error
            return
        self._deliveries.append((delivery, size))
        self._sent, self._sent_bytes = self._sent + 1, self._sent_bytes + size
        self.is_full = self._sent == self._max_records
        if len(self._deliveries) >= _SETTLE_EVERY:
            await self.settle()

    async def settle(self) -> None:
        """Wait until everything that was sent is written or has failed."""
        await self._producer.flush()
        for delivery, size in self._deliveries:
            try:
                await delivery
            except KafkaError as error:
                self.error = self.error or error
            else:
                self.records += 1
                self.size_bytes += size
        self._deliveries.clear()
