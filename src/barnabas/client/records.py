"""Values used by producers and consumers: records, positions and committed offsets."""

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
    """Position of a written record. With acks=0 the offset is unknown: -1."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int


class ConsumerRecord(NamedTuple):
    """A record and its position. `timestamp` is in milliseconds, of the producer's or the broker's clock."""

    topic: str
    partition: int
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Headers = ()


class OffsetAndMetadata(NamedTuple):
    """A committed offset: the next offset to read, with the metadata committed beside it."""

    offset: int
    metadata: str = ""
    leader_epoch: int = -1


class OffsetAndTimestamp(NamedTuple):
    """Position of the first record at or after a timestamp."""

    offset: int
    timestamp: int
    leader_epoch: int = -1


class GroupMetadata(NamedTuple):
    """A group and a member of it, for `send_offsets_to_transaction`. Without a member, the group id is enough."""

    group_id: str
    generation_id: int = -1
    member_id: str = ""
    group_instance_id: str | None = None


HeadersLike: TypeAlias = Headers | list[tuple[str, bytes | None]] | dict[str, bytes | None]
