"""DescribeTransactionsRequest and DescribeTransactionsResponse.

Generated from schema/messages.txt by `make generate`; do not edit.
"""

from __future__ import annotations

from barnabas.wire.message import EMPTY, Message, Struct

__all__ = ["DescribeTransactionsRequest", "DescribeTransactionsResponse"]


class DescribeTransactionsRequest(Message):
    """DescribeTransactions request, API key 65, versions 0, flexible 0+."""

    __slots__ = ("transactional_ids",)

    transactional_ids: list[str]

    def __init__(
        self,
        *,
        transactional_ids: list[str] = EMPTY,
    ) -> None:
        self.transactional_ids = [] if transactional_ids is EMPTY else transactional_ids
        self.unknown_tagged_fields = None

    SCHEMA = """
DescribeTransactionsRequest request key=65 versions=0 flexible=0+ listeners=broker
  transactional_ids []string
"""


class DescribeTransactionsResponse(Message):
    """DescribeTransactions response, API key 65, versions 0, flexible 0+."""

    __slots__ = ("throttle_time_ms", "transaction_states")

    throttle_time_ms: int
    transaction_states: list[DescribeTransactionsResponse.TransactionState]

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        transaction_states: list[DescribeTransactionsResponse.TransactionState] = EMPTY,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.transaction_states = [] if transaction_states is EMPTY else transaction_states
        self.unknown_tagged_fields = None

    SCHEMA = """
DescribeTransactionsResponse response key=65 versions=0 flexible=0+
  throttle_time_ms int32
  transaction_states []TransactionState
    error_code int16
    transactional_id string
    transaction_state string
    transaction_timeout_ms int32
    transaction_start_time_ms int64
    producer_id int64
    producer_epoch int16
    topics []TopicData
      topic string key
      partitions []int32
"""

    class TopicData(Struct):
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

    class TransactionState(Struct):
        __slots__ = ("error_code", "transactional_id", "transaction_state", "transaction_timeout_ms", "transaction_start_time_ms", "producer_id", "producer_epoch", "topics")

        error_code: int
        transactional_id: str
        transaction_state: str
        transaction_timeout_ms: int
        transaction_start_time_ms: int
        producer_id: int
        producer_epoch: int
        topics: list[DescribeTransactionsResponse.TopicData]

        def __init__(
            self,
            *,
            error_code: int = 0,
            transactional_id: str = "",
            transaction_state: str = "",
            transaction_timeout_ms: int = 0,
            transaction_start_time_ms: int = 0,
            producer_id: int = 0,
            producer_epoch: int = 0,
            topics: list[DescribeTransactionsResponse.TopicData] = EMPTY,
        ) -> None:
            self.error_code = error_code
            self.transactional_id = transactional_id
            self.transaction_state = transaction_state
            self.transaction_timeout_ms = transaction_timeout_ms
            self.transaction_start_time_ms = transaction_start_time_ms
            self.producer_id = producer_id
            self.producer_epoch = producer_epoch
            self.topics = [] if topics is EMPTY else topics
            self.unknown_tagged_fields = None
