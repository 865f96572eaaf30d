"""TxnOffsetCommit through its handler, over a real log: who may, and what the transaction coordinator is asked."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import pytest

from barnabas.groups.shards import TOPIC
from barnabas.security.acl import AclOperation, ResourceType
from barnabas.security.authorizer import AuthorizerSettings
from barnabas.security.principal import KafkaPrincipal
from barnabas.wire import ErrorCode, Uuid
from barnabas.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from barnabas.wire.messages.init_producer_id import InitProducerIdRequest
from barnabas.wire.messages.txn_offset_commit import TxnOffsetCommitRequest
from tests.broker.harness import MemoryNode
from tests.broker.topic_captures import allow
from tests.groups.harness import Clients, settle, topic

ALICE = KafkaPrincipal("User", "alice")
WITH_ACLS = AuthorizerSettings(enabled=True, super_users=frozenset({"User:ANONYMOUS"}))


def run(story: Coroutine[Any, Any, None]) -> None:
    asyncio.run(story)


class Node:
    """A node whose `__consumer_offsets` is a log on disk, and its one producer."""

    def __init__(self, directory: Path, rights: Any = ()) -> None:
        records = [*topic(TOPIC, 1), *topic("__transaction_state", 1), *topic("t"), *rights]
        properties = {"node.id": "1", "log.dirs": str(directory)}
        self.memory = MemoryNode(
            properties, records=records, authorizer=WITH_ACLS, directory_ids={directory: Uuid(bytes([1, 1] * 8))}
        )
        self.clients = Clients(node=self.memory)
        self.producer_id = self.producer_epoch = -1

    async def __aenter__(self) -> Node:
        await self.memory.memory_transactions.load()
        self.memory.groups.elected(0, 0, self.memory.replicas.partition(TOPIC, 0))
        await self.memory.groups.machines.wait_loaded()
        await settle()
        response = await self.clients.ask(InitProducerIdRequest(transactional_id="tx", transaction_timeout_ms=5000), 4)
        assert response.error_code == 0
        self.producer_id, self.producer_epoch = response.producer_id, response.producer_epoch
        return self

    async def __aexit__(self, *_: object) -> None:
        self.memory.groups.stop()
        self.memory.transactions.stop()
        await settle()
        await self.memory.replicas.stop()

    def commit(self, *partitions: tuple[str, int], group_id: str = "g", **fields: Any) -> TxnOffsetCommitRequest:
        rows: dict[str, list[Any]] = {}
        for name, index in partitions or (("t", 0),):
            rows.setdefault(name, []).append(
                TxnOffsetCommitRequest.TxnOffsetCommitRequestPartition(partition_index=index, committed_offset=4)
            )
        return TxnOffsetCommitRequest(
            transactional_id="tx",
            group_id=group_id,
            producer_id=self.producer_id,
            producer_epoch=self.producer_epoch,
            topics=[
                TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic(name=name, partitions=found)
                for name, found in rows.items()
            ],
            **fields,
        )

    async def ask(self, request: TxnOffsetCommitRequest, version: int, **peer: Any) -> dict[tuple[str, int], int]:
        response = await self.clients.ask(request, version, **peer)
        return {(row.name, each.partition_index): each.error_code for row in response.topics for each in row.partitions}

    async def add_offsets(self) -> None:
        request = AddOffsetsToTxnRequest(
            transactional_id="tx", producer_id=self.producer_id, producer_epoch=self.producer_epoch, group_id="g"
        )
        assert (await self.clients.ask(request, 3)).error_code == 0


@pytest.mark.parametrize("version", range(5))
def test_older_producers_add_the_group_to_their_transaction_first(version: int, tmp_path: Path) -> None:
    async def story() -> None:
        async with Node(tmp_path) as node:
            refused = ErrorCode.TRANSACTION_ABORTABLE if version == 4 else ErrorCode.INVALID_TXN_STATE
            assert await node.ask(node.commit(), version) == {("t", 0): refused}
            await node.add_offsets()
            assert await node.ask(node.commit(), version) == {("t", 0): 0}
            assert await node.ask(node.commit(), version) == {("t", 0): 0}, "it has been there already"

    run(story())


def test_from_version_5_on_a_commit_adds_the_group_to_the_transaction(tmp_path: Path) -> None:
    async def story() -> None:
        async with Node(tmp_path) as node:
            assert await node.ask(node.commit(), 5) == {("t", 0): 0}
            transaction = node.memory.transactions.describe("tx").transaction
            assert [tuple(each) for each in transaction.partitions] == [(TOPIC, 0)]
            (shard,) = node.memory.groups.shards.all()
            assert shard.machine.image.has_open_transaction("g", "t", 0)

    run(story())


def test_a_producer_that_was_fenced_commits_nothing(tmp_path: Path) -> None:
    async def story() -> None:
        async with Node(tmp_path) as node:
            request = node.commit()
            request.producer_epoch -= 1
            (code,) = (await node.ask(request, 5)).values()
            assert code in (ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH)
            (shard,) = node.memory.groups.shards.all()
            assert not shard.machine.image.groups

    run(story())


def test_partitions_that_do_not_exist_fail_alone(tmp_path: Path) -> None:
    async def story() -> None:
        async with Node(tmp_path) as node:
            unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            asked = node.commit(("nope", 0), ("t", 1), ("t", 9))
            assert await node.ask(asked, 5) == {("nope", 0): unknown, ("t", 9): unknown, ("t", 1): 0}

    run(story())


def test_groups_are_checked_by_member_and_generation(tmp_path: Path) -> None:
    async def story() -> None:
        async with Node(tmp_path) as node:
            not_there = node.commit(member_id="m", generation_id=1)
            assert await node.ask(not_there, 5) == {("t", 0): ErrorCode.ILLEGAL_GENERATION}
            assert await node.ask(node.commit(group_id=""), 5) == {("t", 0): ErrorCode.INVALID_GROUP_ID}

    run(story())


def test_while_the_group_is_loaded_the_oldest_producers_are_told_that_it_is_not_available(tmp_path: Path) -> None:
    async def story() -> None:
        async with Node(tmp_path) as node:
            await node.add_offsets()
            machine = node.memory.groups.machines.machine(0)
            machine.is_loaded = False
            assert await node.ask(node.commit(), 1) == {("t", 0): ErrorCode.COORDINATOR_NOT_AVAILABLE}
            assert await node.ask(node.commit(), 2) == {("t", 0): ErrorCode.COORDINATOR_LOAD_IN_PROGRESS}
            machine.is_loaded = True

    run(story())


def test_it_needs_the_transactional_id_the_group_and_the_topic(tmp_path: Path) -> None:
    async def story() -> None:
        rights = [
            allow("User:alice", AclOperation.WRITE, ResourceType.TRANSACTIONAL_ID, "tx"),
            allow("User:alice", AclOperation.READ, ResourceType.GROUP, "mine"),
        ]
        async with Node(tmp_path, rights) as node:
            bob = KafkaPrincipal("User", "bob")
            refused = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
            assert await node.ask(node.commit(), 5, principal=bob) == {("t", 0): refused}
            refused = ErrorCode.GROUP_AUTHORIZATION_FAILED
            assert await node.ask(node.commit(), 5, principal=ALICE) == {("t", 0): refused}
            refused = ErrorCode.TOPIC_AUTHORIZATION_FAILED
            assert await node.ask(node.commit(group_id="mine"), 5, principal=ALICE) == {("t", 0): refused}

    run(story())
