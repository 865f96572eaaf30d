"""ConsumerProtocolSubscription.

Generated from schema/messages.txt by `make generate`; do not edit.
"""

from __future__ import annotations

from barnabas.wire.message import EMPTY, Message, Struct

__all__ = ["ConsumerProtocolSubscription"]


class ConsumerProtocolSubscription(Message):
    """Data, versions 0-3, flexible none."""

    __slots__ = ("topics", "user_data", "owned_partitions", "generation_id", "rack_id")

    topics: list[str]
    user_data: bytes | None
    owned_partitions: list[ConsumerProtocolSubscription.TopicPartition]
    generation_id: int
    rack_id: str | None

    def __init__(
        self,
        *,
        topics: list[str] = EMPTY,
        user_data: bytes | None = None,
        owned_partitions: list[ConsumerProtocolSubscription.TopicPartition] = EMPTY,
        generation_id: int = -1,
        rack_id: str | None = None,
    ) -> None:
        self.topics = [] if topics is EMPTY else topics
        self.user_data = user_data
        self.owned_partitions = [] if owned_partitions is EMPTY else owned_partitions
        self.generation_id = generation_id
        self.rack_id = rack_id
        self.unknown_tagged_fields = None

    SCHEMA = """
ConsumerProtocolSubscription data versions=0-3 flexible=none
  topics []string
  user_data bytes nullable default=null
  owned_partitions []TopicPartition 1+ ignorable
    topic string 1+ key
    partitions []int32 1+
  generation_id int32 2+ default=-1 ignorable
  rack_id string 3+ nullable default=null ignorable
"""

    class TopicPartition(Struct):
        __slots__ = ("topic", "partitions")

        topic: str
        partitions: list[int]

        def __init__(
            self,
            *,
            topic: str = "",
            partitions: list[int] = EMPTY,
        ) -> None:
            self.topic = topic
            self.partitions = [] if partitions is EMPTY else partitions
            self.unknown_tagged_fields = None
