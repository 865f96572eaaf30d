"""WriteTxnMarkers (27), versions 1 and 2.

Writes markers into partitions that this broker leads, for a transaction coordinator or an administrator who ends a
hanging transaction. Before version 2, the markers have transaction version 0. Each partition has its own error. The
markers of a producer share one row, and rows have the order of the request. Needs ALTER or CLUSTER_ACTION on the
cluster.
"""

from __future__ import annotations

from barnabas.broker.context import Context
from barnabas.broker.txn_markers import write_markers
from barnabas.replicated.decision import Producer
from barnabas.replicated.loop import Marker
from barnabas.security.acl import CLUSTER_NAME, AclOperation, ResourceType
from barnabas.slices import Breather, in_slices
from barnabas.steps import Slices
from barnabas.storage.checkpoints import TopicPartition
from barnabas.transactions.markers import EndedTransaction
from barnabas.wire import ErrorCode
from barnabas.wire.messages.write_txn_markers import WriteTxnMarkersRequest, WriteTxnMarkersResponse

Row = WriteTxnMarkersResponse.WritableTxnMarkerResult


async def handle(context: Context, request: WriteTxnMarkersRequest) -> WriteTxnMarkersResponse:
    if not context.is_allowed(AclOperation.ALTER, ResourceType.CLUSTER, CLUSTER_NAME):
        context.require_on_cluster(AclOperation.CLUSTER_ACTION)
    errors: dict[int, dict[TopicPartition, ErrorCode]] = {}
    others_first = Breather()
    for marker in request.markers:
        await others_first()
        partitions = await in_slices(_partitions(marker))
        ended = EndedTransaction(
            Producer(marker.producer_id, marker.producer_epoch),
            Marker(marker.transaction_result, marker.coordinator_epoch),
            marker.transaction_version,
        )
        if partitions:
            written = await write_markers(context.services, partitions, ended)
            errors.setdefault(marker.producer_id, {}).update(written)
    return WriteTxnMarkersResponse(markers=await in_slices(_rows(errors)))


def _partitions(marker: WriteTxnMarkersRequest.WritableTxnMarker) -> Slices[list[TopicPartition]]:
    """Return the partitions, each once."""
    found: dict[TopicPartition, None] = {}
    for topic in marker.topics:
        yield
        for index in topic.partition_indexes:
            found[TopicPartition(topic.name, index)] = None
            yield
    return list(found)


def _rows(errors: dict[int, dict[TopicPartition, ErrorCode]]) -> Slices[list[Row]]:
    rows = []
    for producer_id, of_producer in errors.items():
        rows.append((yield from _row(producer_id, of_producer)))
    return rows


def _row(producer_id: int, errors: dict[TopicPartition, ErrorCode]) -> Slices[Row]:
    topics: dict[str, WriteTxnMarkersResponse.WritableTxnMarkerTopicResult] = {}
    for (topic, index), code in errors.items():
        yield
        row = topics.setdefault(topic, WriteTxnMarkersResponse.WritableTxnMarkerTopicResult(name=topic))
        row.partitions.append(
            WriteTxnMarkersResponse.WritableTxnMarkerPartitionResult(partition_index=index, error_code=code)
        )
    return Row(producer_id=producer_id, topics=list(topics.values()))
