"""AlterPartitionRequest and AlterPartitionResponse.

Generated from schema/messages.txt by `make generate`; do not edit.
"""

from __future__ import annotations

from barnabas.wire.message import EMPTY, Message, Struct
from barnabas.wire.primitives import ZERO_UUID, Uuid

__all__ = ["AlterPartitionRequest", "AlterPartitionResponse"]


class AlterPartitionRequest(Message):
    """AlterPartition request, API key 56, versions 0-3, flexible 0+."""

    __slots__ = ("broker_id", "broker_epoch", "topics")

    broker_id: int
    broker_epoch: int
    topics: list[AlterPartitionRequest.TopicData]

    def __init__(
        self,
        *,
        broker_id: int = 0,
        broker_epoch: int = -1,
        topics: list[AlterPartitionRequest.TopicData] = EMPTY,
    ) -> None:
        self.broker_id = broker_id
        self.broker_epoch = broker_epoch
        self.topics = [] if topics is EMPTY else topics
        self.unknown_tagged_fields = None

    SCHEMA = """
AlterPartitionRequest request key=56 versions=0-3 kafka=2-3 flexible=0+ listeners=controller
  broker_id int32
  broker_epoch int64 default=-1
  topics []TopicData
    topic_name string 0-1 ignorable
    topic_id uuid 2+ ignorable
    partitions []PartitionData
      partition_index int32
      leader_epoch int32
      new_isr []int32 0-2
      new_isr_with_epochs []BrokerState 3+
        broker_id int32 3+
        broker_epoch int64 3+ default=-1
      leader_recovery_state int8 1+
      partition_epoch int32
"""

    class BrokerState(Struct):
        __slots__ = ("broker_id", "broker_epoch")

        broker_id: int
        broker_epoch: int

        def __init__(
            self,
            *,
            broker_id: int = 0,
            broker_epoch: int = -1,
        ) -> None:
            self.broker_id = broker_id
            self.broker_epoch = broker_epoch
            self.unknown_tagged_fields = None

    class PartitionData(Struct):
        __slots__ = ("partition_index", "leader_epoch", "new_isr", "new_isr_with_epochs", "leader_recovery_state", "partition_epoch")

        partition_index: int
        leader_epoch: int
        new_isr: list[int]
        new_isr_with_epochs: list[AlterPartitionRequest.BrokerState]
        leader_recovery_state: int
        partition_epoch: int

        def __init__(
            self,
            *,
            partition_index: int = 0,
            leader_epoch: int = 0,
            new_isr: list[int] = EMPTY,
            new_isr_with_epochs: list[AlterPartitionRequest.BrokerState] = EMPTY,
            leader_recovery_state: int = 0,
            partition_epoch: int = 0,
        ) -> None:
            self.partition_index = partition_index
            self.leader_epoch = leader_epoch
            self.new_isr = [] if new_isr is EMPTY else new_isr
            self.new_isr_with_epochs = [] if new_isr_with_epochs is EMPTY else new_isr_with_epochs
            self.leader_recovery_state = leader_recovery_state
            self.partition_epoch = partition_epoch
            self.unknown_tagged_fields = None

    class TopicData(Struct):
        __slots__ = ("topic_name", "topic_id", "partitions")

        topic_name: str
        topic_id: Uuid
        partitions: list[AlterPartitionRequest.PartitionData]

        def __init__(
            self,
            *,
            topic_name: str = "",
            topic_id: Uuid = ZERO_UUID,
            partitions: list[AlterPartitionRequest.PartitionData] = EMPTY,
        ) -> None:
            self.topic_name = topic_name
            self.topic_id = topic_id
            self.partitions = [] if partitions is EMPTY else partitions
            self.unknown_tagged_fields = None


class AlterPartitionResponse(Message):
    """AlterPartition response, API key 56, versions 0-3, flexible 0+."""

    __slots__ = ("throttle_time_ms", "error_code", "topics")

    throttle_time_ms: int
    error_code: int
    topics: list[AlterPartitionResponse.TopicData]

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        topics: list[AlterPartitionResponse.TopicData] = EMPTY,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.topics = [] if topics is EMPTY else topics
        self.unknown_tagged_fields = None

    SCHEMA = """
AlterPartitionResponse response key=56 versions=0-3 kafka=2-3 flexible=0+
  throttle_time_ms int32
  error_code int16
  topics []TopicData
    topic_name string 0-1 ignorable
    topic_id uuid 2+ ignorable
    partitions []PartitionData
      partition_index int32
      error_code int16
      leader_id int32
      leader_epoch int32
      isr []int32
      leader_recovery_state int8 1+ ignorable
      partition_epoch int32
"""

    class PartitionData(Struct):
        __slots__ = ("partition_index", "error_code", "leader_id", "leader_epoch", "isr", "leader_recovery_state", "partition_epoch")

        partition_index: int
        error_code: int
        leader_id: int
        leader_epoch: int
        isr: list[int]
        leader_recovery_state: int
        partition_epoch: int

        def __init__(
            self,
            *,
            partition_index: int = 0,
            error_code: int = 0,
            leader_id: int = 0,
            leader_epoch: int = 0,
            isr: list[int] = EMPTY,
            leader_recovery_state: int = 0,
            partition_epoch: int = 0,
        ) -> None:
            self.partition_index = partition_index
            self.error_code = error_code
            self.leader_id = leader_id
            self.leader_epoch = leader_epoch
            self.isr = [] if isr is EMPTY else isr
            self.leader_recovery_state = leader_recovery_state
            self.partition_epoch = partition_epoch
            self.unknown_tagged_fields = None

    class TopicData(Struct):
        __slots__ = ("topic_name", "topic_id", "partitions")

        topic_name: str
        topic_id: Uuid
        partitions: list[AlterPartitionResponse.PartitionData]

        def __init__(
            self,
            *,
            topic_name: str = "",
            topic_id: Uuid = ZERO_UUID,
            partitions: list[AlterPartitionResponse.PartitionData] = EMPTY,
        ) -> None:
            self.topic_name = topic_name
            self.topic_id = topic_id
            self.partitions = [] if partitions is EMPTY else partitions
            self.unknown_tagged_fields = None
