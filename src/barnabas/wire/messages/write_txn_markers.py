"""WriteTxnMarkersRequest and WriteTxnMarkersResponse.

Generated from schema/messages.txt by `make generate`; do not edit.
"""

from __future__ import annotations

from barnabas.wire.message import EMPTY, Message, Struct

__all__ = ["WriteTxnMarkersRequest", "WriteTxnMarkersResponse"]


class WriteTxnMarkersRequest(Message):
    """WriteTxnMarkers request, API key 27, versions 0-2, flexible 1+."""

    __slots__ = ("markers",)

    markers: list[WriteTxnMarkersRequest.WritableTxnMarker]

    def __init__(
        self,
        *,
        markers: list[WriteTxnMarkersRequest.WritableTxnMarker] = EMPTY,
    ) -> None:
        self.markers = [] if markers is EMPTY else markers
        self.unknown_tagged_fields = None

    SCHEMA = """
WriteTxnMarkersRequest request key=27 versions=0-2 kafka=1-2 flexible=1+ listeners=broker
  markers []WritableTxnMarker
    producer_id int64
    producer_epoch int16
    transaction_result bool
    topics []WritableTxnMarkerTopic
      name string
      partition_indexes []int32
    coordinator_epoch int32
    transaction_version int8 2+ ignorable
"""

    class WritableTxnMarkerTopic(Struct):
        __slots__ = ("name", "partition_indexes")

        name: str
        partition_indexes: list[int]

        def __init__(
            self,
            *,
            name: str = "",
            partition_indexes: list[int] = EMPTY,
        ) -> None:
            self.name = name
            self.partition_indexes = [] if partition_indexes is EMPTY else partition_indexes
            self.unknown_tagged_fields = None

    class WritableTxnMarker(Struct):
        __slots__ = ("producer_id", "producer_epoch", "transaction_result", "topics", "coordinator_epoch", "transaction_version")

        producer_id: int
        producer_epoch: int
        transaction_result: bool
        topics: list[WriteTxnMarkersRequest.WritableTxnMarkerTopic]
        coordinator_epoch: int
        transaction_version: int

        def __init__(
            self,
            *,
            producer_id: int = 0,
            producer_epoch: int = 0,
            transaction_result: bool = False,
            topics: list[WriteTxnMarkersRequest.WritableTxnMarkerTopic] = EMPTY,
            coordinator_epoch: int = 0,
            transaction_version: int = 0,
        ) -> None:
            self.producer_id = producer_id
            self.producer_epoch = producer_epoch
            self.transaction_result = transaction_result
            self.topics = [] if topics is EMPTY else topics
            self.coordinator_epoch = coordinator_epoch
            self.transaction_version = transaction_version
            self.unknown_tagged_fields = None


class WriteTxnMarkersResponse(Message):
    """WriteTxnMarkers response, API key 27, versions 0-2, flexible 1+."""

    __slots__ = ("markers",)

    markers: list[WriteTxnMarkersResponse.WritableTxnMarkerResult]

    def __init__(
        self,
        *,
        markers: list[WriteTxnMarkersResponse.WritableTxnMarkerResult] = EMPTY,
    ) -> None:
        self.markers = [] if markers is EMPTY else markers
        self.unknown_tagged_fields = None

    SCHEMA = """
WriteTxnMarkersResponse response key=27 versions=0-2 kafka=1-2 flexible=1+
  markers []WritableTxnMarkerResult
    producer_id int64
    topics []WritableTxnMarkerTopicResult
      name string
      partitions []WritableTxnMarkerPartitionResult
        partition_index int32
        error_code int16
"""

    class WritableTxnMarkerPartitionResult(Struct):
        __slots__ = ("partition_index", "error_code")

        partition_index: int
        error_code: int

        def __init__(
            self,
            *,
            partition_index: int = 0,
            error_code: int = 0,
        ) -> None:
            self.partition_index = partition_index
            self.error_code = error_code
            self.unknown_tagged_fields = None

    class WritableTxnMarkerTopicResult(Struct):
        __slots__ = ("name", "partitions")

        name: str
        partitions: list[WriteTxnMarkersResponse.WritableTxnMarkerPartitionResult]

        def __init__(
            self,
            *,
            name: str = "",
            partitions: list[WriteTxnMarkersResponse.WritableTxnMarkerPartitionResult] = EMPTY,
        ) -> None:
            self.name = name
            self.partitions = [] if partitions is EMPTY else partitions
            self.unknown_tagged_fields = None

    class WritableTxnMarkerResult(Struct):
        __slots__ = ("producer_id", "topics")

        producer_id: int
        topics: list[WriteTxnMarkersResponse.WritableTxnMarkerTopicResult]

        def __init__(
            self,
            *,
            producer_id: int = 0,
            topics: list[WriteTxnMarkersResponse.WritableTxnMarkerTopicResult] = EMPTY,
        ) -> None:
            self.producer_id = producer_id
            self.topics = [] if topics is EMPTY else topics
            self.unknown_tagged_fields = None
