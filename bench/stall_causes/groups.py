"""Groups and transactions: very large groups of both protocols, and transactions over very many partitions."""

from __future__ import annotations

import struct
import time
from collections.abc import Iterator
from contextlib import ExitStack

from tools.apache_kafka import Node

from barnabas.wire import ErrorCode
from barnabas.wire.messages.add_partitions_to_txn import AddPartitionsToTxnRequest
from barnabas.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from barnabas.wire.messages.end_txn import EndTxnRequest
from barnabas.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from barnabas.wire.messages.join_group import JoinGroupRequest
from barnabas.wire.messages.list_groups import ListGroupsRequest
from barnabas.wire.messages.offset_commit import OffsetCommitRequest
from barnabas.wire.messages.offset_fetch import OffsetFetchRequest
from barnabas.wire.messages.sync_group import SyncGroupRequest
from bench.connection import Client, frame
from bench.stall_causes import cause
from bench.stall_causes.preparing import (
    MANY,
    TIMEOUT_MS,
    TIMEOUT_S,
    ask,
    asking,
    create_spread,
    create_topics,
    settled_coordinators,
    spread,
)

MEMBERS = 500
METADATA_BYTES = 10_000
CONSUMERS = 50
TXN_PARTITIONS = 3_000
SETTINGS = {"group.initial.rebalance.delay.ms": "1000", "group.consumer.assignment.interval.ms": "0"}
JOIN_VERSION, SYNC_VERSION, HEARTBEAT_VERSION = 5, 3, 1


def _join(metadata: bytes, member_id: str = "") -> bytes:
    protocol = JoinGroupRequest.JoinGroupRequestProtocol(name="range", metadata=metadata)
    return frame(
        JoinGroupRequest(
            group_id="large",
            session_timeout_ms=60_000,
            rebalance_timeout_ms=TIMEOUT_MS,
            member_id=member_id,
            protocol_type="consumer",
            protocols=[protocol],
        ),
        JOIN_VERSION,
    )


def _text(data: bytes, position: int) -> tuple[str, int]:
    size = struct.unpack_from(">h", data, position)[0]
    return data[position + 2 : position + 2 + size].decode(), position + 2 + size


def _member_of(answer: bytes) -> tuple[str, str, int]:
    """The member id, the leader's and the generation of a response, without its members."""
    generation = struct.unpack_from(">i", answer, 4 + 4 + 2)[0]
    _, position = _text(answer, 4 + 4 + 2 + 4)
    leader, position = _text(answer, position)
    member_id, _ = _text(answer, position)
    return member_id, leader, generation


@cause(
    f"a classic group: {MEMBERS} members with {METADATA_BYTES:,} bytes each join and get their assignments", SETTINGS
)
def classic(node: Node) -> Iterator[None]:
    settled_coordinators(node)
    metadata = bytes(METADATA_BYTES)
    with ExitStack() as stack:
        clients: list[Client] = [stack.enter_context(asking(node)) for _ in range(MEMBERS)]
        ids = []
        for client in clients:
            client.send(_join(metadata))
        ids = [_member_of(client.receive())[0] for client in clients]
        yield
        for client, member_id in zip(clients, ids, strict=True):
            client.send(_join(metadata, member_id))
        joined = [_member_of(client.receive()) for client in clients]
        assignment = SyncGroupRequest.SyncGroupRequestAssignment
        for client, (member_id, leader, generation) in zip(clients, joined, strict=True):
            rows = [assignment(member_id=each, assignment=metadata) for each in ids] if member_id == leader else []
            sync = SyncGroupRequest(group_id="large", generation_id=generation, member_id=member_id, assignments=rows)
            client.send(frame(sync, SYNC_VERSION))
        for client in clients:
            client.receive()


@cause(f"a consumer group: {CONSUMERS} members join one after another and share {MANY:,} partitions", SETTINGS)
def consumer(node: Node) -> Iterator[None]:
    topics = spread(MANY)
    create_spread(node, topics)
    settled_coordinators(node)
    with asking(node) as client:
        yield
        for number in range(CONSUMERS):
            joining = ConsumerGroupHeartbeatRequest(
                group_id="sharing",
                member_id=f"member-{number}",
                member_epoch=0,
                rebalance_timeout_ms=60_000,
                subscribed_topic_names=list(topics),
                topic_partitions=[],
            )
            ask(client, frame(joining, HEARTBEAT_VERSION))
        for number in range(CONSUMERS):
            leaving = ConsumerGroupHeartbeatRequest(group_id="sharing", member_id=f"member-{number}", member_epoch=-1)
            ask(client, frame(leaving, HEARTBEAT_VERSION))


@cause(f"a transaction over {TXN_PARTITIONS:,} partitions")
def transaction(node: Node) -> Iterator[None]:
    topics = spread(TXN_PARTITIONS)
    create_spread(node, topics)
    settled_coordinators(node)
    with asking(node) as client:
        begun = _begin(client)
        row = AddPartitionsToTxnRequest.AddPartitionsToTxnTopic
        add = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id="wide",
            v3_and_below_producer_id=begun.producer_id,
            v3_and_below_producer_epoch=begun.producer_epoch,
            v3_and_below_topics=[row(name=name, partitions=list(each)) for name, each in topics.items()],
        )
        end = EndTxnRequest(
            transactional_id="wide", producer_id=begun.producer_id, producer_epoch=begun.producer_epoch, committed=True
        )
        requests = frame(add, 3), frame(end, 3)
        yield
        for request in requests:
            ask(client, request)
        _begin(client)  # waits until all markers are written


def _begin(client: Client) -> InitProducerIdResponse:
    deadline = time.monotonic() + TIMEOUT_S
    while True:
        begun: InitProducerIdResponse
        begun, _ = client.call(InitProducerIdRequest(transactional_id="wide", transaction_timeout_ms=60_000), 4)
        if not begun.error_code:
            return begun
        if time.monotonic() > deadline:
            raise RuntimeError(f"no transaction could begin: {ErrorCode(begun.error_code).name}")
        time.sleep(0.01)


@cause(f"offsets of {MANY:,} partitions: committed, and fetched as a whole; all groups listed")
def offsets(node: Node) -> Iterator[None]:
    create_topics(node, ["wide"], MANY)
    settled_coordinators(node)
    row = OffsetCommitRequest.OffsetCommitRequestPartition
    topic = OffsetCommitRequest.OffsetCommitRequestTopic(
        name="wide", partitions=[row(partition_index=each, committed_offset=7) for each in range(MANY)]
    )
    commit = OffsetCommitRequest(group_id="committing", generation_id_or_member_epoch=-1, topics=[topic])
    fetch = OffsetFetchRequest(groups=[OffsetFetchRequest.OffsetFetchRequestGroup(group_id="committing", topics=None)])
    requests = frame(commit, 8), frame(fetch, 8), frame(ListGroupsRequest(), 4)
    with asking(node) as client:
        yield
        for request in requests:
            ask(client, request)
