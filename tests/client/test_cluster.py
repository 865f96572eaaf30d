"""A cluster as a client sees it, against a node of barnabas."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
import uvloop

from barnabas.client import (
    CallTimeoutError,
    ClosedError,
    Cluster,
    ClusterState,
    CoordinatorType,
    Node,
    UnsupportedByNodeError,
    any_broker,
    controller,
    coordinator,
    leader,
    node,
)
from barnabas.client.state import EMPTY_STATE, merge_metadata, metadata_question
from barnabas.config.values import ConfigError
from barnabas.security.acl import AclOperation
from barnabas.testing import AsyncBroker, Broker
from barnabas.wire import ErrorCode, KafkaError, Uuid
from barnabas.wire.messages.create_topics import CreateTopicsRequest
from barnabas.wire.messages.describe_cluster import DescribeClusterRequest
from barnabas.wire.messages.describe_quorum import DescribeQuorumRequest
from barnabas.wire.messages.list_groups import ListGroupsRequest
from barnabas.wire.messages.list_offsets import ListOffsetsRequest
from barnabas.wire.messages.metadata import MetadataRequest

LOOPS = [asyncio.new_event_loop, uvloop.new_event_loop]
Scenario = Callable[[AsyncBroker, Cluster], Coroutine[Any, Any, None]]


def with_cluster(scenario: Scenario, loop_factory: Any = None, **settings: Any) -> None:
    async def main() -> None:
        async with Broker({"orders": 3}) as broker:
            given = {"bootstrap.servers": broker.bootstrap_servers} | {
                name.replace("_", "."): value for name, value in settings.items()
            }
            async with Cluster(given) as cluster:
                await scenario(broker, cluster)
        assert asyncio.all_tasks() == {asyncio.current_task()}

    with asyncio.Runner(loop_factory=loop_factory, debug=True) as runner:
        runner.run(main())


def list_offsets(topic: str, partition: int) -> ListOffsetsRequest:
    row = ListOffsetsRequest.ListOffsetsPartition(partition_index=partition, timestamp=-1)
    return ListOffsetsRequest(topics=[ListOffsetsRequest.ListOffsetsTopic(name=topic, partitions=[row])])


def create(name: str) -> CreateTopicsRequest:
    row = CreateTopicsRequest.CreatableTopic(name=name, num_partitions=1, replication_factor=1)
    return CreateTopicsRequest(topics=[row], timeout_ms=5_000)


@pytest.mark.parametrize("loop_factory", LOOPS)
def test_requests_find_their_way_to_every_kind_of_destination(loop_factory: Any) -> None:
    async def scenario(broker: AsyncBroker, cluster: Cluster) -> None:
        assert cluster.state.cluster_id == broker.cluster_id
        for to in (any_broker(), controller(), node(1)):
            assert (await cluster.call(DescribeClusterRequest(), to)).cluster_id == broker.cluster_id
        offsets = await cluster.call(list_offsets("orders", 2), leader("orders", 2))
        assert offsets.topics[0].partitions[0].error_code == 0
        assert (await cluster.call(ListGroupsRequest(), coordinator("some group"))).groups == []
        assert await cluster.coordinators(["a", "b", "a"]) == {"a": 1, "b": 1}
        assert await cluster.coordinators(["t"], CoordinatorType.TRANSACTION) == {"t": 1}

    with_cluster(scenario, loop_factory)


def test_a_state_has_the_topics_that_are_followed_and_a_question_has_its_own() -> None:
    async def scenario(broker: AsyncBroker, cluster: Cluster) -> None:
        assert not cluster.state.topics
        state = await cluster.refresh(["orders", "nope"])
        assert list(state.topics["orders"].partitions) == [0, 1, 2]
        assert state.errors == {"nope": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
        await broker.create_topic("payments")
        every = await cluster.metadata(None, authorized_operations=True)
        assert set(every.topics) == {"orders", "payments"}
        assert AclOperation.ALTER in (every.topics["orders"].authorized_operations or ())
        by_id = await cluster.metadata([every.topics["payments"].id, "orders"])
        assert set(by_id.topics) == {"orders", "payments"}
        unknown = Uuid(b"?" * 16)
        assert (await cluster.metadata([unknown])).errors == {str(unknown): ErrorCode.UNKNOWN_TOPIC_ID}
        assert set(cluster.state.topics) == {"orders"}

    with_cluster(scenario)


def test_metadata_of_every_version_tells_the_same_and_creates_nothing() -> None:
    async def scenario(broker: AsyncBroker, cluster: Cluster) -> None:
        for version in range(14):
            question = metadata_question(version, frozenset({"orders", "not.created"}))
            response = await cluster.send(question.request, version=version)
            state = merge_metadata(EMPTY_STATE, response, version, question.asked, only=question.only)
            assert list(state.nodes.values()) == [Node(1, broker.host, broker.port)]
            assert [each.leader_id for each in state.topics["orders"].partitions.values()] == [1, 1, 1]
            assert state.errors == {"not.created": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
        assert set((await cluster.metadata(None)).topics) == {"orders"}

    with_cluster(scenario)


def test_a_topic_that_is_made_while_a_call_waits_for_it_is_found() -> None:
    async def scenario(broker: AsyncBroker, cluster: Cluster) -> None:
        waiting = asyncio.create_task(cluster.call(list_offsets("late", 0), leader("late", 0)))
        await asyncio.sleep(0.15)
        await broker.create_topic("late", 1)
        assert (await waiting).topics[0].partitions[0].error_code == 0

    with_cluster(scenario)


def test_a_topic_that_is_not_there_can_be_given_up_at_once() -> None:
    async def scenario(broker: AsyncBroker, cluster: Cluster) -> None:
        unknown = {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
        with pytest.raises(KafkaError, match="topic nope"):
            await cluster.call(list_offsets("nope", 0), leader("nope", 0), give_up_on=unknown)
        with pytest.raises(KafkaError, match="orders has no partition 7"):
            await cluster.call(list_offsets("orders", 7), leader("orders", 7), give_up_on=unknown)
        with pytest.raises(CallTimeoutError, match=r"ListOffsets: timed out after 200 ms and .*topic nope") as late:
            await cluster.call(list_offsets("nope", 0), leader("nope", 0), timeout_ms=200)
        assert not late.value.maybe_done

    with_cluster(scenario)


def test_a_node_that_nobody_knows_is_said_at_once() -> None:
    async def scenario(broker: AsyncBroker, cluster: Cluster) -> None:
        with pytest.raises(
            KafkaError, match=rf"node 7 is not known; known nodes: 1 \(127.0.0.1:{broker.port}\)"
        ) as refused:
            await cluster.call(DescribeClusterRequest(), node(7))
        assert refused.value.code is ErrorCode.BROKER_NOT_AVAILABLE

    with_cluster(scenario)


def test_errors_of_rows_are_values() -> None:
    async def scenario(broker: AsyncBroker, cluster: Cluster) -> None:
        response = await cluster.call(create("orders"), controller())
        assert response.topics[0].error_code == ErrorCode.TOPIC_ALREADY_EXISTS

    with_cluster(scenario)


def test_subscribers_see_changes_and_only_changes() -> None:
    async def scenario(broker: AsyncBroker, cluster: Cluster) -> None:
        seen: list[tuple[ClusterState, ClusterState]] = []
        unsubscribe = cluster.subscribe(lambda old, new: seen.append((old, new)))
        cluster.follow_all()
        await cluster.refresh()
        await broker.create_topic("payments")
        async with asyncio.timeout(5):
            while "payments" not in cluster.state.topics:
                await asyncio.sleep(0.01)
        assert [set(new.topics) - set(old.topics) for old, new in seen] == [{"orders"}, {"payments"}]
        generation = cluster.state.generation
        unsubscribe()
        await broker.create_topic("more")
        async with asyncio.timeout(5):
            while cluster.state.generation < generation + 3:
                await asyncio.sleep(0.01)
        assert len(seen) == 2

    with_cluster(scenario, metadata_max_age_ms=30)


def test_topics_that_nobody_asks_for_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("barnabas.client.cluster.TICK_S", 0.02)

    async def scenario(broker: AsyncBroker, cluster: Cluster) -> None:
        await cluster.refresh(["orders"])
        cluster._followed["orders"] -= 10
        async with asyncio.timeout(5):
            while cluster.state.topics:
                await asyncio.sleep(0.01)

    with_cluster(scenario, metadata_max_idle_ms=5_000)


def test_a_cluster_that_goes_away_and_comes_back_is_found_again() -> None:
    async def scenario(broker: AsyncBroker, cluster: Cluster) -> None:
        await broker.stop()
        waiting = [
            asyncio.create_task(cluster.call(DescribeClusterRequest(), controller())),
            asyncio.create_task(cluster.call(create("after"), controller())),
            asyncio.create_task(cluster.call(list_offsets("orders", 0), leader("orders", 0))),
            asyncio.create_task(cluster.metadata(None)),
        ]
        await asyncio.sleep(0.3)
        assert not any(task.done() for task in waiting)
        await broker.start()
        answers = await asyncio.gather(*waiting)
        assert answers[1].topics[0].error_code == 0

    with_cluster(scenario)


def test_a_cluster_that_does_not_come_back_is_a_timeout_that_says_why() -> None:
    async def scenario(broker: AsyncBroker, cluster: Cluster) -> None:
        await broker.stop()
        with pytest.raises(CallTimeoutError, match="Connection refused") as late:
            await cluster.call(create("never"), controller(), timeout_ms=400)
        assert not late.value.maybe_done
        await broker.start()

    with_cluster(scenario)


def test_controllers_can_be_begun_with() -> None:
    async def main() -> None:
        async with Broker() as broker:
            async with Cluster({"bootstrap.controllers": broker.listeners["CONTROLLER"]}) as cluster:
                assert (cluster.state.controller_id, list(cluster.state.nodes)) == (1, [1])
                assert not cluster.state.brokers
                row = DescribeQuorumRequest.PartitionData(partition_index=0)
                topic = DescribeQuorumRequest.TopicData(topic_name="__cluster_metadata", partitions=[row])
                response = await cluster.call(DescribeQuorumRequest(topics=[topic]), controller())
                assert response.topics[0].partitions[0].leader_id == 1
                with pytest.raises(UnsupportedByNodeError, match="Metadata is not served"):
                    await cluster.call(MetadataRequest())
            with pytest.raises(UnsupportedByNodeError, match=r"is a controller: use bootstrap\.controllers"):
                await Cluster({"bootstrap.servers": broker.listeners["CONTROLLER"]}).start()
            with pytest.raises(KafkaError, match="MISMATCHED_ENDPOINT_TYPE"):
                await Cluster({"bootstrap.controllers": broker.bootstrap_servers}).start()

    asyncio.run(main())


def test_one_good_bootstrap_server_is_enough() -> None:
    async def main() -> None:
        async with Broker() as broker:
            servers = f"nobody.invalid:9092,127.0.0.1:1,{broker.bootstrap_servers}"
            async with Cluster({"bootstrap.servers": servers}) as cluster:
                assert list(cluster.state.nodes) == [1]

    asyncio.run(main())


def test_no_good_bootstrap_server_is_an_error_that_names_each() -> None:
    async def main() -> None:
        with pytest.raises(CallTimeoutError, match=r"127\.0\.0\.1:1 cannot be reached: Connection refused") as late:
            await Cluster({"bootstrap.servers": "127.0.0.1:1,127.0.0.1:2"}).start(timeout_ms=300)
        assert set(getattr(late.value.last_error, "reasons", ())) == {"127.0.0.1:1", "127.0.0.1:2"}
        with pytest.raises(ConfigError, match=r"bootstrap\.servers: nobody\.invalid:9092"):
            await Cluster({"bootstrap.servers": "nobody.invalid:9092"}).start()
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(main())


def test_after_close_nothing_works_and_who_waits_is_told() -> None:
    async def main() -> None:
        async with Broker() as broker:
            cluster = await Cluster({"bootstrap.servers": broker.bootstrap_servers}).start()
            await broker.stop()
            waiting = [
                asyncio.create_task(cluster.call(DescribeClusterRequest())),
                asyncio.create_task(cluster.refresh(["orders"])),
                asyncio.create_task(cluster.call(ListGroupsRequest(), coordinator("g"))),
            ]
            await asyncio.sleep(0.1)
            await cluster.close()
            await cluster.close()
            for task in waiting:
                with pytest.raises(ClosedError):
                    await task
            with pytest.raises(ClosedError):
                await cluster.call(DescribeClusterRequest())
            assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(main(), debug=True)
