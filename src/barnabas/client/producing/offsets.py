"""Requests that add partitions and offsets to a transaction, and their responses. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from barnabas.client.errors import error_code
from barnabas.client.records import GroupMetadata, OffsetAndMetadata, OffsetsLike, TopicPartition
from barnabas.wire import ErrorCode
from barnabas.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from barnabas.wire.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnResponse
from barnabas.wire.messages.txn_offset_commit import TxnOffsetCommitRequest


def add_partitions(
    transactional_id: str, producer: tuple[int, int], partitions: Iterable[TopicPartition]
) -> AddPartitionsToTxnRequest:
    """Return a request in the form for clients: version 3 at most."""
    by_topic: dict[str, list[int]] = {}
    for topic, partition in sorted(partitions):
        by_topic.setdefault(topic, []).append(partition)
    return AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=transactional_id,
        v3_and_below_producer_id=producer[0],
        v3_and_below_producer_epoch=producer[1],
        v3_and_below_topics=[
            AddPartitionsToTxnRequest.AddPartitionsToTxnTopic(name=topic, partitions=rows)
            for topic, rows in by_topic.items()
        ],
    )


def codes_of_added(response: AddPartitionsToTxnResponse) -> dict[TopicPartition, ErrorCode]:
    return {
        TopicPartition(topic.name, row.partition_index): error_code(row.partition_error_code)
        for topic in response.results_by_topic_v3_and_below
        for row in topic.results_by_partition
    }


def offsets_in_transaction(
    transactional_id: str,
    producer: tuple[int, int],
    offsets: OffsetsLike,
    group: GroupMetadata,
) -> tuple[AddOffsetsToTxnRequest, TxnOffsetCommitRequest]:
    """Return the requests to add the offsets of a group to a transaction, and to commit them in it."""
    add = AddOffsetsToTxnRequest(
        transactional_id=transactional_id,
        producer_id=producer[0],
        producer_epoch=producer[1],
        group_id=group.group_id,
    )
    by_topic: dict[str, list[TxnOffsetCommitRequest.TxnOffsetCommitRequestPartition]] = {}
    for (topic, partition), given in offsets.items():
        offset = given if isinstance(given, OffsetAndMetadata) else OffsetAndMetadata(given)
        by_topic.setdefault(topic, []).append(
            TxnOffsetCommitRequest.TxnOffsetCommitRequestPartition(
                partition_index=partition,
                committed_offset=offset.offset,
                committed_leader_epoch=offset.leader_epoch,
                committed_metadata=offset.metadata,
            )
        )
    commit = TxnOffsetCommitRequest(
        transactional_id=transactional_id,
        group_id=group.group_id,
        producer_id=producer[0],
        producer_epoch=producer[1],
        generation_id=group.generation_id,
        member_id=group.member_id,
        group_instance_id=group.group_instance_id,
        topics=[
            TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic(name=topic, partitions=rows)
            for topic, rows in by_topic.items()
        ],
    )
    return add, commit
