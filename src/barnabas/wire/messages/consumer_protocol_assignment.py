"""ConsumerProtocolAssignment.

Generated from schema/messages.txt by `make generate`; do not edit.
"""

from __future__ import annotations

from barnabas.wire.message import EMPTY, Message, Struct

__all__ = ["ConsumerProtocolAssignment"]


class ConsumerProtocolAssignment(Message):
    """Data, versions 0-3, flexible none."""

    __slots__ = ("assigned_partitions", "user_data")

    assigned_partitions: list[ConsumerProtocolAssignment.TopicPartition]
    user_data: bytes | None

    def __init__(
        self,
        *,
        assigned_partitions: list[ConsumerProtocolAssignment.TopicPartition] = EMPTY,
        user_data: bytes | None = None,
    ) -> None:
        self.assigned_partitions = [] if assigned_partitions is EMPTY else assigned_partitions
        self.user_data = user_data
        self.unknown_tagged_fields = None

    SCHEMA = """
ConsumerProtocolAssignment data versions=0-3 flexible=none
  assigned_partitions []TopicPartition
    topic string key
    partitions []int32
  user_data bytes nullable default=null
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
