"""What producers and consumers hand over: records, where they are, and what a group has read. Values, nothing else."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from barnabas.batches.format import Headers


class TopicPartition(NamedTuple):
    """One partition of a topic."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


class RecordMetadata(NamedTuple):
    """Where a record was written; -1 is an offset that nobody was asked for (acks=0)."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int


class ConsumerRecord(NamedTuple):
    """One record, with where it was read. `timestamp` is in milliseconds, of the producer's clock or the broker's."""

    topic: str
    partition: int
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Headers = ()


class OffsetAndMetadata(NamedTuple):
    """What a group has read of a partition: the next offset, and what its members noted beside it."""

    offset: int
    metadata: str = ""
    leader_epoch: int = -1


class OffsetAndTimestamp(NamedTuple):
    """The first record at or after a time."""

    offset: int
    timestamp: int
    leader_epoch: int = -1


class GroupMetadata(NamedTuple):
    """Who commits: a member of a group, for `send_offsets_to_transaction`; a group's name alone will do for no member."""

    group_id: str
    generation_id: int = -1
    member_id: str = ""
    group_instance_id: str | None = None


HeadersLike: TypeAlias = Headers | list[tuple[str, bytes | None]] | dict[str, bytes | None]
