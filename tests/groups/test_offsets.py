"""Offsets through the handlers: what is committed, fetched, deleted, expired, and what of it is there after a restart."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from barnabas.batches import decode_records, iterate_batches
from barnabas.controller import topics
from barnabas.groups.image import SIMPLE_GROUP, GroupMetadata
from barnabas.replicated.decision import Producer
from barnabas.replicated.loop import Marker
from barnabas.security.acl import AclOperation, ResourceType
from barnabas.security.authorizer import AuthorizerSettings
from barnabas.security.principal import KafkaPrincipal
from barnabas.wire import ErrorCode, KafkaError, Uuid
from barnabas.wire.messages.delete_groups import DeleteGroupsRequest
from barnabas.wire.messages.offset_commit import OffsetCommitRequest
from barnabas.wire.messages.offset_delete import OffsetDeleteRequest
from barnabas.wire.messages.offset_fetch import OffsetFetchRequest
from barnabas.wire.messages.txn_offset_commit import TxnOffsetCommitRequest
from tests.broker.topic_captures import allow
from tests.groups.harness import Clients, topic, topic_id_of
from tests.replicated.memory_log import MemoryLog

MINUTE_MS = 60_000
COMMIT_VERSIONS = range(2, 11)
BY_ID = 10
PRODUCER = Producer(7, 3)


def run(story: Coroutine[Any, Any, None]) -> None:
    asyncio.run(story)


def clients(properties: dict[str, str] | None = None, **arguments: Any) -> Clients:
    return Clients(properties, [*topic("t"), *topic("u")], **arguments)


def commit(
    group_id: str = "g",
    offsets: dict[tuple[str, int], int] | None = None,
    metadata: str | None = "",
    topic_id: Uuid | None = None,
    **fields: Any,
) -> OffsetCommitRequest:
    by_topic: dict[str, list[Any]] = {}
    for (name, partition), offset in ({("t", 0): 5} if offsets is None else offsets).items():
        by_topic.setdefault(name, []).append(
            OffsetCommitRequest.OffsetCommitRequestPartition(
                partition_index=partition, committed_offset=offset, committed_metadata=metadata
            )
        )
    return OffsetCommitRequest(
        group_id=group_id,
        topics=[
            OffsetCommitRequest.OffsetCommitRequestTopic(
                name=name, topic_id=topic_id_of(name) if topic_id is None else topic_id, partitions=partitions
            )
            for name, partitions in by_topic.items()
        ],
        **fields,
    )


def fetch(group_id: str = "g", asked: dict[str, list[int]] | None = None, *, stable: bool = False) -> Any:
    """A request for one group in the form of versions 8 and 9; for all offsets if nothing is asked for."""
    group = OffsetFetchRequest.OffsetFetchRequestGroup(
        group_id=group_id,
        topics=None
        if asked is None
        else [
            OffsetFetchRequest.OffsetFetchRequestTopics(
                name=name, topic_id=topic_id_of(name), partition_indexes=indexes
            )
            for name, indexes in asked.items()
        ],
    )
    return OffsetFetchRequest(groups=[group], require_stable=stable)


async def committed(clients: Clients, group_id: str = "g", **arguments: Any) -> dict[tuple[str, int], Any]:
    response = await clients.ask(fetch(group_id, **arguments), 9)
    (group,) = response.groups
    assert group.error_code == 0
    return {(topic.name, each.partition_index): each for topic in group.topics for each in topic.partitions}


def codes(response: Any) -> dict[tuple[Any, int], int]:
    return {
        (
            topic.name or topic.topic_id if hasattr(topic, "topic_id") else topic.name,
            each.partition_index,
        ): each.error_code
        for topic in response.topics
        for each in topic.partitions
    }


# --- commit


@pytest.mark.parametrize("version", COMMIT_VERSIONS)
def test_a_commit_of_nobody_makes_a_simple_group_in_every_version(version: int) -> None:
    async def story() -> None:
        async with clients() as node:
            response = await node.ask(commit(offsets={("t", 0): 5, ("t", 1): 6}, metadata="note"), version)
            assert [each.error_code for each in response.topics[0].partitions] == [0, 0]
            found = await committed(node)
            assert {key: (each.committed_offset, each.metadata) for key, each in found.items()} == {
                ("t", 0): (5, "note"),
                ("t", 1): (6, "note"),
            }
            (shard,) = node.groups.shards.all()
            assert shard.machine.image.groups["g"] is SIMPLE_GROUP
            assert shard.machine.image.offsets["g"]["t"][0].topic_id == topic_id_of("t")

    run(story())


def test_a_commit_is_one_batch_whatever_its_partitions() -> None:
    async def story() -> None:
        async with clients() as node:
            await node.ask(commit(offsets={("t", 0): 5, ("t", 1): 6, ("u", 0): 7}), 9)
            assert len(node.log.batches) == 1
            await node.ask(commit(), 9)
            assert len(node.log.batches[1]) < 130

    run(story())


def test_offsets_are_there_after_a_restart() -> None:
    async def story() -> None:
        async with clients() as node:
            await node.ask(commit(offsets={("t", 0): 5}, metadata="kept"), 9)
            before = await committed(node)
            await node.restart()
            assert await committed(node) == before

    run(story())


def test_partitions_that_do_not_exist_fail_alone() -> None:
    async def story() -> None:
        async with clients() as node:
            offsets = {("nope", 0): 1, ("t", 0): 2, ("t", 9): 3, ("t", -1): 3}
            response = await node.ask(commit(offsets=offsets), 9)
            unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            assert codes(response) == {("nope", 0): unknown, ("t", 0): 0, ("t", 9): unknown, ("t", -1): unknown}
            assert list(await committed(node)) == [("t", 0)]

    run(story())


def test_topics_that_are_given_by_an_unknown_id_fail_alone() -> None:
    async def story() -> None:
        async with clients() as node:
            response = await node.ask(commit(topic_id=Uuid(b"x" * 16)), BY_ID)
            assert [each.error_code for each in response.topics[0].partitions] == [ErrorCode.UNKNOWN_TOPIC_ID]
            assert response.topics[0].topic_id == Uuid(b"x" * 16)
            assert node.log.batches == []

    run(story())


def test_metadata_may_have_as_many_characters_as_configured() -> None:
    async def story() -> None:
        async with clients({"offset.metadata.max.bytes": "4"}) as node:
            assert codes(await node.ask(commit(metadata="1234"), 9)) == {("t", 0): 0}
            assert codes(await node.ask(commit(metadata="äöüß"), 9)) == {("t", 0): 0}
            too_large = {("t", 0): ErrorCode.OFFSET_METADATA_TOO_LARGE}
            assert codes(await node.ask(commit(metadata="12345"), 9)) == too_large
            assert codes(await node.ask(commit(metadata="12\U0001f600"), 9)) == {("t", 0): 0}
            assert codes(await node.ask(commit(metadata="123\U0001f600"), 9)) == too_large

    run(story())


def test_a_commit_without_metadata_has_an_empty_one() -> None:
    async def story() -> None:
        async with clients() as node:
            await node.ask(commit(metadata=None), 9)
            assert (await committed(node))["t", 0].metadata == ""

    run(story())


@pytest.mark.parametrize(
    ("version", "code"),
    [(8, ErrorCode.ILLEGAL_GENERATION), (9, ErrorCode.GROUP_ID_NOT_FOUND), (10, ErrorCode.GROUP_ID_NOT_FOUND)],
)
def test_a_member_of_a_group_that_is_not_there_is_refused(version: int, code: ErrorCode) -> None:
    async def story() -> None:
        async with clients() as node:
            request = commit(member_id="m", generation_id_or_member_epoch=1)
            response = await node.ask(request, version)
            assert [each.error_code for each in response.topics[0].partitions] == [code]

    run(story())


def test_a_commit_waits_until_the_log_has_committed_it() -> None:
    async def story() -> None:
        async with clients(log=MemoryLog(commits_at_once=False)) as node:
            committing = node.begin(commit(), 9)
            await node.pass_time()
            assert not committing.done()
            assert await committed(node) == {}
            node.log.commit()
            assert codes(await committing) == {("t", 0): 0}
            assert list(await committed(node)) == [("t", 0)]

    run(story())


def test_a_commit_that_the_log_refuses_is_told_as_of_a_coordinator() -> None:
    async def story() -> None:
        async with clients() as node:
            node.log.refuses = KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS)
            assert codes(await node.ask(commit(), 9)) == {("t", 0): ErrorCode.COORDINATOR_NOT_AVAILABLE}
            node.log.refuses = KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
            assert codes(await node.ask(commit(), 9)) == {("t", 0): ErrorCode.NOT_COORDINATOR}

    run(story())


def test_a_commit_that_is_not_replicated_in_time_is_told_to_try_again() -> None:
    async def story() -> None:
        properties = {"offsets.commit.timeout.ms": "20"}
        async with clients(properties, log=MemoryLog(commits_at_once=False)) as node:
            assert codes(await node.ask(commit(), 9)) == {("t", 0): ErrorCode.COORDINATOR_NOT_AVAILABLE}

    run(story())


def test_who_waits_for_a_commit_is_told_when_leadership_moves() -> None:
    async def story() -> None:
        async with clients(log=MemoryLog(commits_at_once=False)) as node:
            committing = node.begin(commit(), 9)
            await node.pass_time()
            node.groups.resigned(0)
            assert codes(await committing) == {("t", 0): ErrorCode.NOT_COORDINATOR}

    run(story())


def test_a_retention_time_of_old_versions_is_written_with_the_offset() -> None:
    async def story() -> None:
        async with clients({"offsets.retention.check.interval.ms": "1000"}) as node:
            await node.ask(commit(retention_time_ms=5000), 4)
            await node.pass_time(4999)
            assert list(await committed(node)) == [("t", 0)]
            await node.pass_time(1001)
            assert await committed(node) == {}

    run(story())


# --- fetch


def test_what_was_never_committed_is_minus_one_and_no_error() -> None:
    async def story() -> None:
        async with clients() as node:
            await node.ask(commit(), 9)
            found = await committed(node, asked={"t": [0, 1], "nope": [0]})
            assert {key: each.committed_offset for key, each in found.items()} == {
                ("t", 0): 5,
                ("t", 1): -1,
                ("nope", 0): -1,
            }
            assert {each.error_code for each in found.values()} == {0}

    run(story())


def test_offsets_of_several_groups_come_in_the_order_asked_for() -> None:
    async def story() -> None:
        async with clients() as node:
            await node.ask(commit("b"), 9)
            await node.ask(commit("a", {("u", 1): 3}), 9)
            groups = [fetch(name).groups[0] for name in ("b", "nope", "a")]
            response = await node.ask(OffsetFetchRequest(groups=groups), 9)
            assert [(g.group_id, [t.name for t in g.topics]) for g in response.groups] == [
                ("b", ["t"]),
                ("nope", []),
                ("a", ["u"]),
            ]

    run(story())


def test_topics_are_asked_for_and_answered_by_id() -> None:
    async def story() -> None:
        async with clients() as node:
            await node.ask(commit(), 9)
            request = fetch(asked={"t": [0]})
            request.groups[0].topics.append(
                OffsetFetchRequest.OffsetFetchRequestTopics(topic_id=Uuid(b"x" * 16), partition_indexes=[1])
            )
            known, unknown = (await node.ask(request, BY_ID)).groups[0].topics
            assert (known.topic_id, known.partitions[0].committed_offset) == (topic_id_of("t"), 5)
            assert unknown.partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_ID
            (everything,) = (await node.ask(fetch(), BY_ID)).groups[0].topics
            assert everything.topic_id == topic_id_of("t")

    run(story())


def test_an_offset_of_a_topic_that_was_made_again_is_not_shown_by_id() -> None:
    async def story() -> None:
        log = MemoryLog()
        async with Clients(records=topic("t", number=8), log=log) as node:
            await node.ask(commit(topic_id=Uuid(b"\x08" * 16)), BY_ID)
        async with Clients(records=topic("t", number=9), log=log) as node:
            request = fetch(asked={"t": [0]})
            request.groups[0].topics[0].topic_id = Uuid(b"\x09" * 16)
            (by_id,) = (await node.ask(request, BY_ID)).groups[0].topics
            assert (by_id.partitions[0].committed_offset, by_id.partitions[0].error_code) == (-1, 0)
            assert (await committed(node, asked={"t": [0]}))["t", 0].committed_offset == 5, "by name nobody can tell"

    run(story())


def test_a_node_that_does_not_lead_says_so_in_the_form_of_each_version() -> None:
    async def story() -> None:
        async with clients() as node:
            node.groups.resigned(0)
            code = ErrorCode.NOT_COORDINATOR
            old_topic = OffsetFetchRequest.OffsetFetchRequestTopic(name="t", partition_indexes=[0])
            old = OffsetFetchRequest(group_id="g", topics=[old_topic])
            assert codes(await node.ask(old, 1)) == {("t", 0): code}
            response = await node.ask(old, 2)
            assert (response.error_code, response.topics) == (code, [])
            assert [(g.group_id, g.error_code) for g in (await node.ask(fetch(), 8)).groups] == [("g", code)]

    run(story())


def test_stable_offsets_wait_for_commits_that_are_under_way() -> None:
    async def story() -> None:
        async with clients(log=MemoryLog(commits_at_once=False)) as node:
            committing = node.begin(commit(), 9)
            await node.pass_time()
            fetching = node.begin(fetch(asked={"t": [0]}, stable=True), 9)
            await node.pass_time()
            assert not fetching.done()
            node.log.commit()
            assert (await fetching).groups[0].topics[0].partitions[0].committed_offset == 5
            await committing

    run(story())


# --- transactions


async def commit_in_transaction(node: Clients, offset: int, producer: Producer = PRODUCER) -> None:
    request = TxnOffsetCommitRequest(
        transactional_id="tx",
        group_id="g",
        producer_id=producer.producer_id,
        producer_epoch=producer.producer_epoch,
        topics=[
            TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic(
                name="t",
                partitions=[
                    TxnOffsetCommitRequest.TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=offset)
                ],
            )
        ],
    )
    response = await node.groups.commit_transactional_offsets(request, 3, producer)
    assert codes(response) == {("t", 0): 0}


async def end(node: Clients, *, is_commit: bool, producer: Producer = PRODUCER) -> None:
    await node.groups.end_transaction(0, producer, Marker(is_commit, 0), 2)


@pytest.mark.parametrize("restarts", [False, True])
def test_an_offset_of_a_transaction_holds_once_that_is_committed(restarts: bool) -> None:
    async def story() -> None:
        async with clients() as node:
            await node.ask(commit(offsets={("t", 0): 1}), 9)
            await commit_in_transaction(node, 8)
            if restarts:
                await node.restart()
            assert (await committed(node))["t", 0].committed_offset == 1
            (unstable,) = (await committed(node, asked={"t": [0]}, stable=True)).values()
            assert (unstable.error_code, unstable.committed_offset) == (ErrorCode.UNSTABLE_OFFSET_COMMIT, -1)
            (of_all,) = (await committed(node, stable=True)).values()
            assert of_all.error_code == ErrorCode.UNSTABLE_OFFSET_COMMIT
            await end(node, is_commit=True)
            if restarts:
                await node.restart()
            assert (await committed(node, stable=True))["t", 0].committed_offset == 8
            (shard,) = node.groups.shards.all()
            assert not shard.machine.image.pending
            assert not shard.machine.image.open_transactions

    run(story())


def test_an_offset_of_a_transaction_is_forgotten_when_that_is_aborted() -> None:
    async def story() -> None:
        async with clients() as node:
            await node.ask(commit(offsets={("t", 0): 1}), 9)
            await commit_in_transaction(node, 8)
            await end(node, is_commit=False)
            assert (await committed(node, stable=True))["t", 0].committed_offset == 1

    run(story())


def test_a_later_commit_outside_the_transaction_wins() -> None:
    async def story() -> None:
        async with clients() as node:
            await commit_in_transaction(node, 8)
            await node.ask(commit(offsets={("t", 0): 9}), 9)
            await end(node, is_commit=True)
            assert (await committed(node))["t", 0].committed_offset == 9

    run(story())


def test_two_transactions_may_be_open_for_one_partition() -> None:
    async def story() -> None:
        async with clients() as node:
            other = Producer(8, 0)
            await commit_in_transaction(node, 8)
            await commit_in_transaction(node, 9, other)
            await end(node, is_commit=True)
            assert (await committed(node, asked={"t": [0]}, stable=True))["t", 0].error_code
            await end(node, is_commit=False, producer=other)
            assert (await committed(node, asked={"t": [0]}, stable=True))["t", 0].committed_offset == 8

    run(story())


def test_the_records_of_a_transactional_commit_are_the_producer_s() -> None:
    async def story() -> None:
        async with clients() as node:
            await commit_in_transaction(node, 8)
            ((_, header),) = iterate_batches(node.log.batches[0])
            assert (header.producer_id, header.producer_epoch, header.is_transactional) == (7, 3, True)
            assert header.base_sequence == -1
            assert len(decode_records(node.log.batches[0], 0, header)) == 1

    run(story())


def test_a_marker_of_a_producer_without_offsets_changes_nothing() -> None:
    async def story() -> None:
        async with clients() as node:
            await end(node, is_commit=True)
            assert await committed(node) == {}

    run(story())


# --- delete


def delete(group_id: str = "g", **partitions: list[int]) -> OffsetDeleteRequest:
    return OffsetDeleteRequest(
        group_id=group_id,
        topics=[
            OffsetDeleteRequest.OffsetDeleteRequestTopic(
                name=name,
                partitions=[OffsetDeleteRequest.OffsetDeleteRequestPartition(partition_index=i) for i in indexes],
            )
            for name, indexes in partitions.items()
        ],
    )


def test_deleted_offsets_are_gone_also_after_a_restart() -> None:
    async def story() -> None:
        async with clients() as node:
            await node.ask(commit(offsets={("t", 0): 5, ("t", 1): 6}), 9)
            response = await node.ask(delete(t=[0, 1, 7], nope=[0], u=[0]), 0)
            unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            assert codes(response) == {("t", 7): unknown, ("nope", 0): unknown, ("t", 0): 0, ("t", 1): 0, ("u", 0): 0}
            assert await committed(node) == {}
            await node.restart()
            assert await committed(node) == {}

    run(story())


def test_a_deleted_offset_takes_a_pending_one_with_it() -> None:
    async def story() -> None:
        async with clients() as node:
            await commit_in_transaction(node, 8)
            await node.ask(delete(t=[0]), 0)
            await end(node, is_commit=True)
            assert await committed(node, stable=True) == {}

    run(story())


def test_offsets_of_a_group_that_is_not_there_cannot_be_deleted() -> None:
    async def story() -> None:
        async with clients() as node:
            assert (await node.ask(delete(t=[0]), 0)).error_code == ErrorCode.GROUP_ID_NOT_FOUND
            assert (await node.ask(delete("", t=[0]), 0)).error_code == ErrorCode.INVALID_GROUP_ID

    run(story())


def test_a_deleted_group_is_gone_with_its_offsets_and_those_of_open_transactions() -> None:
    async def story() -> None:
        async with clients() as node:
            await node.ask(commit(offsets={("t", 0): 5}), 9)
            await commit_in_transaction(node, 8)
            response = await node.ask(DeleteGroupsRequest(groups_names=["g", "nope", "g"]), 2)
            assert {row.group_id: row.error_code for row in response.results} == {
                "g": 0,
                "nope": ErrorCode.GROUP_ID_NOT_FOUND,
            }
            for _ in range(2):
                (shard,) = node.groups.shards.all()
                image = shard.machine.image
                assert not image.groups
                assert not image.offsets
                assert not image.open_transactions
                await node.restart()

    run(story())


def test_a_deleted_topic_takes_its_offsets_with_it() -> None:
    async def story() -> None:
        async with clients() as node:
            await node.ask(commit(offsets={("t", 0): 5, ("u", 0): 6}), 9)
            await commit_in_transaction(node, 8)
            await node.node.controller.write(topics.delete, [topic_id_of("t")])
            assert list(await committed(node)) == [("u", 0)]
            await end(node, is_commit=True)
            assert list(await committed(node)) == [("u", 0)]

    run(story())


# --- retention

RETENTION = {"offsets.retention.minutes": "2", "offsets.retention.check.interval.ms": "60000"}


def test_offsets_of_a_simple_group_expire_after_their_last_commit_and_then_the_group_goes() -> None:
    async def story() -> None:
        async with clients(RETENTION) as node:
            await node.ask(commit(offsets={("t", 0): 5}), 9)
            await node.pass_time(MINUTE_MS)
            await node.ask(commit(offsets={("t", 1): 6}), 9)
            await node.pass_time(MINUTE_MS)
            assert list(await committed(node)) == [("t", 1)]
            await node.pass_time(MINUTE_MS)
            assert await committed(node) == {}
            (shard,) = node.groups.shards.all()
            assert "g" not in shard.machine.image.groups

    run(story())


def test_offsets_with_an_open_transaction_do_not_expire() -> None:
    async def story() -> None:
        async with clients(RETENTION) as node:
            await node.ask(commit(), 9)
            await commit_in_transaction(node, 8)
            await node.pass_time(3 * MINUTE_MS)
            assert list(await committed(node)) == [("t", 0)]
            await end(node, is_commit=False)
            await node.pass_time(MINUTE_MS)
            assert await committed(node) == {}

    run(story())


def test_expired_offsets_that_cannot_be_removed_now_are_removed_later() -> None:
    async def story() -> None:
        async with clients(RETENTION) as node:
            await node.ask(commit(), 9)
            node.log.refuses = KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS)
            await node.pass_time(2 * MINUTE_MS)
            node.log.refuses = None
            assert list(await committed(node)) == [("t", 0)]
            await node.pass_time(MINUTE_MS)
            assert await committed(node) == {}

    run(story())


def test_nothing_expires_after_leadership_is_lost() -> None:
    async def story() -> None:
        async with clients(RETENTION) as node:
            await node.ask(commit(), 9)
            batches = len(node.log.batches)
            node.groups.resigned(0)
            await node.pass_time(10 * MINUTE_MS)
            assert len(node.log.batches) == batches
            assert node.clock.waiting == 0

    run(story())


# --- who may

ALICE = KafkaPrincipal("User", "alice")
WITH_ACLS = AuthorizerSettings(enabled=True, super_users=frozenset({"User:ANONYMOUS"}))


def test_who_may_not_read_the_group_commits_nothing() -> None:
    async def story() -> None:
        async with clients(authorizer=WITH_ACLS) as node:
            response = await node.ask(commit(offsets={("t", 0): 1, ("nope", 0): 1}), 9, principal=ALICE)
            assert set(codes(response).values()) == {ErrorCode.GROUP_AUTHORIZATION_FAILED}
            assert (await node.ask(fetch(), 9, principal=ALICE)).groups[0].error_code == 30
            assert (await node.ask(delete(t=[0]), 0, principal=ALICE)).error_code == 30
            response = await node.ask(DeleteGroupsRequest(groups_names=["g"]), 2, principal=ALICE)
            assert response.results[0].error_code == ErrorCode.GROUP_AUTHORIZATION_FAILED

    run(story())


def test_topics_that_the_caller_may_not_see_are_refused_or_left_out() -> None:
    async def story() -> None:
        rights = [
            allow("User:alice", AclOperation.READ, ResourceType.GROUP, "g"),
            allow("User:alice", AclOperation.READ, ResourceType.TOPIC, "t"),
        ]
        records = [*topic("t"), *topic("u"), *rights]
        async with Clients(records=records, authorizer=WITH_ACLS) as node:
            response = await node.ask(commit(offsets={("u", 0): 1, ("t", 0): 2}), 9, principal=ALICE)
            refused = ErrorCode.TOPIC_AUTHORIZATION_FAILED
            assert codes(response) == {("u", 0): refused, ("t", 0): 0}
            await node.ask(commit(offsets={("u", 0): 1}), 9)
            (everything,) = (await node.ask(fetch(), 9, principal=ALICE)).groups
            assert [each.name for each in everything.topics] == ["t"]
            (some,) = (await node.ask(fetch(asked={"u": [0], "t": [0]}), 9, principal=ALICE)).groups
            assert [(each.name, each.partitions[0].error_code) for each in some.topics] == [("t", 0), ("u", refused)]

    run(story())


def test_an_image_has_no_topic_or_group_without_an_offset() -> None:
    async def story() -> None:
        async with clients() as node:
            await node.ask(commit(offsets={("t", 0): 5, ("u", 0): 6}), 9)
            await node.ask(delete(t=[0]), 0)
            (shard,) = node.groups.shards.all()
            assert list(shard.machine.image.offsets["g"]) == ["u"]
            await node.ask(delete(u=[0]), 0)
            assert "g" not in shard.machine.image.offsets
            assert isinstance(shard.machine.image.groups["g"], GroupMetadata)

    run(story())


def test_the_longest_retention_time_is_kept_within_its_type() -> None:
    async def story() -> None:
        async with Clients(records=topic("t", 1)) as node:
            response = await node.ask(commit(retention_time_ms=2**63 - 1), 4)
            assert response.topics[0].partitions[0].error_code == 0

    asyncio.run(story())
