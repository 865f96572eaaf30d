"""AddPartitionsToTxnRequest and AddPartitionsToTxnResponse.

Generated from schema/messages.txt by `make generate`; do not edit.
"""

from __future__ import annotations

from barnabas.wire.message import EMPTY, Message, Struct

__all__ = ["AddPartitionsToTxnRequest", "AddPartitionsToTxnResponse"]


class AddPartitionsToTxnRequest(Message):
    """AddPartitionsToTxn request, API key 24, versions 0-5, flexible 3+."""

    __slots__ = ("transactions", "v3_and_below_transactional_id", "v3_and_below_producer_id", "v3_and_below_producer_epoch", "v3_and_below_topics")

    transactions: list[AddPartitionsToTxnRequest.AddPartitionsToTxnTransaction]
    v3_and_below_transactional_id: str
    v3_and_below_producer_id: int
    v3_and_below_producer_epoch: int
    v3_and_below_topics: list[AddPartitionsToTxnRequest.AddPartitionsToTxnTopic]

    def __init__(
        self,
        *,
        transactions: list[AddPartitionsToTxnRequest.AddPartitionsToTxnTransaction] = EMPTY,
        v3_and_below_transactional_id: str = "",
        v3_and_below_producer_id: int = 0,
        v3_and_below_producer_epoch: int = 0,
        v3_and_below_topics: list[AddPartitionsToTxnRequest.AddPartitionsToTxnTopic] = EMPTY,
    ) -> None:
        self.transactions = [] if transactions is EMPTY else transactions
        self.v3_and_below_transactional_id = v3_and_below_transactional_id
        self.v3_and_below_producer_id = v3_and_below_producer_id
        self.v3_and_below_producer_epoch = v3_and_below_producer_epoch
        self.v3_and_below_topics = [] if v3_and_below_topics is EMPTY else v3_and_below_topics
        self.unknown_tagged_fields = None

    SCHEMA = """
AddPartitionsToTxnRequest request key=24 versions=0-5 flexible=3+ listeners=broker
  transactions []AddPartitionsToTxnTransaction 4+
    transactional_id string 4+ key
    producer_id int64 4+
    producer_epoch int16 4+
    verify_only bool 4+
    topics []AddPartitionsToTxnTopic 4+
  v3_and_below_transactional_id string 0-3
  v3_and_below_producer_id int64 0-3
  v3_and_below_producer_epoch int16 0-3
  v3_and_below_topics []AddPartitionsToTxnTopic 0-3
  struct AddPartitionsToTxnTopic
    name string key
    partitions []int32
"""

    class AddPartitionsToTxnTransaction(Struct):
        __slots__ = ("transactional_id", "producer_id", "producer_epoch", "verify_only", "topics")

        transactional_id: str
        producer_id: int
        producer_epoch: int
        verify_only: bool
        topics: list[AddPartitionsToTxnRequest.AddPartitionsToTxnTopic]

        def __init__(
            self,
            *,
            transactional_id: str = "",
            producer_id: int = 0,
            producer_epoch: int = 0,
            verify_only: bool = False,
            topics: list[AddPartitionsToTxnRequest.AddPartitionsToTxnTopic] = EMPTY,
        ) -> None:
            self.transactional_id = transactional_id
            self.producer_id = producer_id
            self.producer_epoch = producer_epoch
            self.verify_only = verify_only
            self.topics = [] if topics is EMPTY else topics
            self.unknown_tagged_fields = None

    class AddPartitionsToTxnTopic(Struct):
        __slots__ = ("name", "partitions")

        name: str
        partitions: list[int]

        def __init__(
            self,
            *,
            name: str = "",
            partitions: list[int] = EMPTY,
        ) -> None:
            self.name = name
            self.partitions = [] if partitions is EMPTY else partitions
            self.unknown_tagged_fields = None


class AddPartitionsToTxnResponse(Message):
    """AddPartitionsToTxn response, API key 24, versions 0-5, flexible 3+."""

    __slots__ = ("throttle_time_ms", "error_code", "results_by_transaction", "results_by_topic_v3_and_below")

    throttle_time_ms: int
    error_code: int
    results_by_transaction: list[AddPartitionsToTxnResponse.AddPartitionsToTxnResult]
    results_by_topic_v3_and_below: list[AddPartitionsToTxnResponse.AddPartitionsToTxnTopicResult]

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        results_by_transaction: list[AddPartitionsToTxnResponse.AddPartitionsToTxnResult] = EMPTY,
        results_by_topic_v3_and_below: list[AddPartitionsToTxnResponse.AddPartitionsToTxnTopicResult] = EMPTY,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.results_by_transaction = [] if results_by_transaction is EMPTY else results_by_transaction
        self.results_by_topic_v3_and_below = [] if results_by_topic_v3_and_below is EMPTY else results_by_topic_v3_and_below
        self.unknown_tagged_fields = None

    SCHEMA = """
AddPartitionsToTxnResponse response key=24 versions=0-5 flexible=3+
  throttle_time_ms int32
  error_code int16 4+ ignorable
  results_by_transaction []AddPartitionsToTxnResult 4+
    transactional_id string 4+ key
    topic_results []AddPartitionsToTxnTopicResult 4+
  results_by_topic_v3_and_below []AddPartitionsToTxnTopicResult 0-3
  struct AddPartitionsToTxnTopicResult
    name string key
    results_by_partition []AddPartitionsToTxnPartitionResult
  struct AddPartitionsToTxnPartitionResult
    partition_index int32 key
    partition_error_code int16
"""

    class AddPartitionsToTxnResult(Struct):
        __slots__ = ("transactional_id", "topic_results")

        transactional_id: str
        topic_results: list[AddPartitionsToTxnResponse.AddPartitionsToTxnTopicResult]

        def __init__(
            self,
            *,
            transactional_id: str = "",
            topic_results: list[AddPartitionsToTxnResponse.AddPartitionsToTxnTopicResult] = EMPTY,
        ) -> None:
            self.transactional_id = transactional_id
            self.topic_results = [] if topic_results is EMPTY else topic_results
            self.unknown_tagged_fields = None

    class AddPartitionsToTxnTopicResult(Struct):
        __slots__ = ("name", "results_by_partition")

        name: str
        results_by_partition: list[AddPartitionsToTxnResponse.AddPartitionsToTxnPartitionResult]

        def __init__(
            self,
            *,
            name: str = "",
            results_by_partition: list[AddPartitionsToTxnResponse.AddPartitionsToTxnPartitionResult] = EMPTY,
        ) -> None:
            self.name = name
            self.results_by_partition = [] if results_by_partition is EMPTY else results_by_partition
            self.unknown_tagged_fields = None

    class AddPartitionsToTxnPartitionResult(Struct):
        __slots__ = ("partition_index", "partition_error_code")

        partition_index: int
        partition_error_code: int

        def __init__(
            self,
            *,
            partition_index: int = 0,
            partition_error_code: int = 0,
        ) -> None:
            self.partition_index = partition_index
            self.partition_error_code = partition_error_code
            self.unknown_tagged_fields = None
