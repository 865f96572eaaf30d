"""Members of a share group fetch and acknowledge records of a node."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from barnabas.batches.reader import iterate_batches
from barnabas.broker.faults.faults import Faults
from barnabas.broker.surroundings import REAL_WORLD
from barnabas.replicas.share.in_flight import RecordState
from barnabas.wire import ErrorCode
from barnabas.wire.messages.alter_client_quotas import AlterClientQuotasRequest
from barnabas.wire.messages.create_acls import CreateAclsRequest
from tests.broker.clients import ask
from tests.broker.sharing import (
    ACCEPT,
    REJECT,
    RELEASE,
    RENEW,
    Member,
    acquired,
    configure_group,
    create_topic,
    initialize,
    produce,
    row_of,
    running_node,
    set_share_version,
    until,
)


def test_what_is_released_comes_again_and_what_is_accepted_does_not(tmp_path: Path) -> None:
    async def main() -> None:
        async with running_node(tmp_path) as node:
            address = node.addresses["PLAINTEXT"]
            topic = await create_topic(address)
            await initialize(address, topic)
            await produce(address, topic, 10)
            member = Member(address, topic)
            first = await member.fetch()
            assert acquired(first) == [(0, 9, 1)]
            assert first.acquisition_lock_timeout_ms == 30_000
            assert [header.records_count for _, header in iterate_batches(row_of(first).records)] == [10]
            done = await member.acknowledge([(0, 4, [ACCEPT]), (5, 9, [RELEASE])])
            assert not row_of(done).error_code
            again = await member.fetch()
            assert acquired(again) == [(5, 9, 2)]
            nothing = await member.fetch(said={0: [(5, 9, [ACCEPT])]}, max_wait_ms=0)
            assert acquired(nothing) == []
            assert not row_of(nothing).acknowledge_error_code
            await member.leave()

    asyncio.run(main())


def test_two_members_share_a_partition_and_the_one_that_disconnects_loses_what_it_holds(tmp_path: Path) -> None:
    async def main() -> None:
        async with running_node(tmp_path) as node:
            address = node.addresses["PLAINTEXT"]
            topic = await create_topic(address)
            await initialize(address, topic)
            await produce(address, topic, 5, batches=4)
            a, b = Member(address, topic, "a"), Member(address, topic, "b")
            assert acquired(await a.fetch(max_records=10)) == [(0, 9, 1)]
            assert acquired(await b.fetch()) == [(10, 19, 1)]
            waiting = asyncio.create_task(b.fetch(max_wait_ms=20_000))
            await until(lambda: node.share_partitions.all()[0].replica.waiting_count)
            await a.leave()
            assert acquired(await waiting) == [(0, 9, 2)]
            assert len(node.share_partitions.sessions) == 1
            await b.leave()
            await until(lambda: not len(node.share_partitions))
            again = Member(address, topic, "a")
            assert acquired(await again.fetch(max_records=10)) == [(0, 9, 3)]
            assert acquired(await again.close()) == []
            await again.leave()

    asyncio.run(main())


def test_a_member_that_disconnects_while_it_waits_acquires_nothing(tmp_path: Path) -> None:
    async def main() -> None:
        async with running_node(tmp_path) as node:
            address = node.addresses["PLAINTEXT"]
            topic = await create_topic(address)
            await initialize(address, topic)
            a, b = Member(address, topic, "a"), Member(address, topic, "b")
            assert acquired(await b.fetch(max_wait_ms=0)) == []
            waiting = asyncio.create_task(a.fetch(max_wait_ms=20_000))
            await until(lambda: node.share_partitions.all()[0].replica.waiting_count)
            await a.leave()
            with pytest.raises(asyncio.IncompleteReadError):
                await waiting
            await until(lambda: not node.share_partitions.all()[0].replica.waiting_count)
            await produce(address, topic, 3)
            assert acquired(await b.fetch()) == [(0, 2, 1)]
            await b.leave()

    asyncio.run(main())


def test_what_was_acknowledged_survives_a_restart_and_what_was_only_acquired_comes_again(tmp_path: Path) -> None:
    async def main() -> None:
        async with running_node(tmp_path) as node:
            address = node.addresses["PLAINTEXT"]
            topic = await create_topic(address)
            await initialize(address, topic)
            await produce(address, topic, 10)
            member = Member(address, topic)
            assert acquired(await member.fetch()) == [(0, 9, 1)]
            accepted = await member.acknowledge([(0, 2, [ACCEPT]), (4, 4, [ACCEPT])])
            assert not row_of(accepted).error_code
            await node.drop()
            await member.leave()
        async with running_node(tmp_path) as node:
            member = Member(node.addresses["PLAINTEXT"], topic)
            assert acquired(await member.fetch()) == [(3, 3, 1), (5, 9, 1)]
            await member.leave()

    asyncio.run(main())


def test_locks_expire_and_renewals_put_that_off(tmp_path: Path) -> None:
    async def main() -> None:
        faults = Faults(REAL_WORLD)
        async with running_node(tmp_path, faults.surroundings()) as node:
            address = node.addresses["PLAINTEXT"]
            topic = await create_topic(address)
            await initialize(address, topic)
            await produce(address, topic, 4)
            a, b = Member(address, topic, "a"), Member(address, topic, "b")
            assert acquired(await a.fetch()) == [(0, 3, 1)]
            waiting = asyncio.create_task(b.fetch(max_wait_ms=60_000))
            faults.clock.advance(20_000)
            renewed = await a.acknowledge([(0, 0, [RENEW]), (1, 1, [RENEW])], is_renew_ack=True)
            assert not row_of(renewed).error_code
            faults.clock.advance(20_000)
            response = await waiting
            assert acquired(response) == [(2, 3, 2)], response
            faults.clock.advance(20_000)
            assert acquired(await b.fetch()) == [(0, 1, 2)]
            late = await a.acknowledge([(0, 0, [ACCEPT])])
            assert row_of(late).error_code == ErrorCode.INVALID_RECORD_STATE
            await a.leave()
            await b.leave()

    asyncio.run(main())


def test_a_record_that_nobody_accepts_is_given_up_and_counted(tmp_path: Path) -> None:
    """Once by releases, and once because its locks expire. Rejected and accepted records are not counted."""

    async def main() -> None:
        faults = Faults(REAL_WORLD)
        async with running_node(tmp_path, faults.surroundings()) as node:
            address = node.addresses["PLAINTEXT"]
            topic = await create_topic(address)
            await initialize(address, topic)
            await configure_group(address, share_delivery_count_limit="2")
            await produce(address, topic, 4)
            member = Member(address, topic)
            assert acquired(await member.fetch()) == [(0, 3, 1)]
            await member.acknowledge([(0, 3, [ACCEPT, RELEASE, REJECT, RELEASE])])
            assert acquired(await member.fetch()) == [(1, 1, 2), (3, 3, 2)]
            assert node.share_partitions.counters.given_up == 0
            await member.acknowledge([(1, 1, [RELEASE])])
            assert node.share_partitions.counters.given_up == 1
            faults.clock.advance(40_000)
            await until(lambda: node.share_partitions.counters.given_up == 2)
            assert acquired(await member.fetch(max_wait_ms=100)) == []
            await member.leave()

    asyncio.run(main())


def test_there_is_room_for_so_many_sessions_and_their_partitions(tmp_path: Path) -> None:
    async def main() -> None:
        limits: dict[str, Any] = {"group_share_max_size": "1", "group_share_max_share_sessions": "2"} | {
            "barnabas_share_session_max_partitions": "4"
        }
        async with running_node(tmp_path, **limits) as node:
            address = node.addresses["PLAINTEXT"]
            topic = await create_topic(address, partitions=5)
            await initialize(address, topic, 5)
            a, b, c = (Member(address, topic, name) for name in "abc")
            assert not (await a.fetch(max_wait_ms=0)).error_code
            assert (await b.fetch(range(5), max_wait_ms=0)).error_code == ErrorCode.SHARE_SESSION_LIMIT_REACHED
            assert not (await b.fetch([1], max_wait_ms=0)).error_code
            assert (await c.fetch(max_wait_ms=0)).error_code == ErrorCode.SHARE_SESSION_LIMIT_REACHED
            assert node.share_partitions.sessions.partition_count == 2
            await b.leave()
            await until(lambda: len(node.share_partitions.sessions) == 1)
            assert not (await c.fetch(max_wait_ms=0)).error_code
            await a.leave()
            await c.leave()

    asyncio.run(main())


def test_without_permission_on_the_topic_nothing_is_fetched_or_acknowledged(tmp_path: Path) -> None:
    async def main() -> None:
        authorizer = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
        async with running_node(tmp_path, authorizer_class_name=authorizer, super_users="User:ANONYMOUS") as node:
            address = node.addresses["PLAINTEXT"]
            topic = await create_topic(address)
            await initialize(address, topic)
            await produce(address, topic, 4)
            member = Member(address, topic)
            assert acquired(await member.fetch()) == [(0, 3, 1)]
            node.authorizer = replace(node.authorizer, super_users=frozenset())
            refused = await member.acknowledge([(0, 3, [ACCEPT])])
            assert refused.error_code == ErrorCode.GROUP_AUTHORIZATION_FAILED
            assert (await member.fetch()).error_code == ErrorCode.GROUP_AUTHORIZATION_FAILED
            acls = node.image.acls.index
            assert acls is not None
            member.epoch = 1
            node.authorizer = replace(node.authorizer, super_users=frozenset({"User:ANONYMOUS"}))
            await allow_group(address)
            node.authorizer = replace(node.authorizer, super_users=frozenset())
            refused = await member.acknowledge([(0, 3, [ACCEPT])])
            assert row_of(refused).error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
            assert row_of(await member.fetch()).error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
            await member.leave()

    asyncio.run(main())


async def allow_group(address: tuple[str, int]) -> None:
    kind = CreateAclsRequest
    entry = kind.AclCreation(
        resource_type=3,
        resource_name="g",
        resource_pattern_type=3,
        principal="User:ANONYMOUS",
        host="*",
        operation=3,
        permission_type=3,
    )
    response = await ask(address, kind(creations=[entry]), 3)
    assert not response.results[0].error_code


def test_a_cluster_without_share_groups_refuses_members(tmp_path: Path) -> None:
    async def main() -> None:
        async with running_node(tmp_path) as node:
            address = node.addresses["PLAINTEXT"]
            topic = await create_topic(address)
            await initialize(address, topic)
            member = Member(address, topic)
            assert not (await member.fetch(max_wait_ms=0)).error_code
            await set_share_version(address, 0)
            assert len(node.share_partitions) == len(node.share_partitions.sessions) == 0
            assert (await member.fetch()).error_code == ErrorCode.UNSUPPORTED_VERSION
            assert (await member.acknowledge([])).error_code == ErrorCode.UNSUPPORTED_VERSION
            await member.leave()

    asyncio.run(main())


def test_what_a_throttled_member_is_not_sent_was_not_delivered(tmp_path: Path) -> None:
    async def main() -> None:
        async with running_node(tmp_path) as node:
            address = node.addresses["PLAINTEXT"]
            topic = await create_topic(address)
            await initialize(address, topic)
            await produce(address, topic, 10, batches=5)
            kind = AlterClientQuotasRequest
            entity = [kind.EntityData(entity_type="client-id", entity_name="test")]
            ops = [kind.OpData(key="consumer_byte_rate", value=30.0)]
            done = await ask(address, kind(entries=[kind.EntryData(entity=entity, ops=ops)]), 1)
            assert not done.entries[0].error_code, done
            member = Member(address, topic)
            throttled = False
            for _ in range(20):
                response = await member.fetch(max_wait_ms=0)
                if response.throttle_time_ms:
                    throttled = True
                    assert acquired(response) == []
                    assert not [row for each in response.responses for row in each.partitions]
                    break
                assert all(count == 1 for _, _, count in acquired(response))
            assert throttled
            (led,) = node.share_partitions.all()
            assert led.state is not None
            states = {(span.state, span.delivery_count) for span in led.state.spans}
            assert states <= {(RecordState.ACQUIRED, 1), (RecordState.AVAILABLE, 0)}
            assert (RecordState.AVAILABLE, 0) in states
            await member.leave()

    asyncio.run(main())


def test_fetchers_of_one_partition_are_served_in_turn(tmp_path: Path) -> None:
    async def main() -> None:
        async with running_node(tmp_path) as node:
            address = node.addresses["PLAINTEXT"]
            topic = await create_topic(address)
            await initialize(address, topic)
            members = [Member(address, topic, f"member-{number}") for number in range(6)]
            waiting = []
            for number, member in enumerate(members, 1):
                waiting.append(asyncio.create_task(member.fetch(max_records=1, max_wait_ms=20_000)))
                await until(lambda: sum(each.replica.waiting_count for each in node.share_partitions.all()) == number)  # noqa: B023
            await produce(address, topic, 1, batches=6)
            found = [acquired(await each) for each in waiting]
            assert sorted(each[0] for each in found) == [(offset, offset, 1) for offset in range(6)]
            assert not node.share_partitions.all()[0].replica.waiting_count
            for member in members:
                await member.leave()

    asyncio.run(main())
