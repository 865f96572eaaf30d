"""Values used by producers and consumers: records, positions and committed offsets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeAlias

from barnabas.batches.format import Headers

BytesLike: TypeAlias = bytes | bytearray | memoryview

if TYPE_CHECKING:  # without deserializers, keys and values are bytes; Python 3.11 has no defaults of type variables
    from typing_extensions import TypeVar

    K = TypeVar("K", default=bytes)
    V = TypeVar("V", default=bytes)
else:
    from typing import TypeVar

    K, V = TypeVar("K"), TypeVar("V")


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


class ConsumerRecord(NamedTuple, Generic[K, V]):
    """A record and its position. `timestamp` is in milliseconds, of the producer's or the broker's clock.

    Key and value are bytes, or whatever the deserializers of the consumer return.
    """

    topic: str
    partition: int
    offset: int
    timestamp: int
    key: K | None
    value: V | None
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


OffsetsLike: TypeAlias = (
    Mapping[TopicPartition, int | OffsetAndMetadata] | Mapping[tuple[str, int], int | OffsetAndMetadata]
)
HeadersLike: TypeAlias = Iterable[tuple[str, BytesLike | None]] | Mapping[str, BytesLike | None]
