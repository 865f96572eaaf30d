"""A cluster of which nodes lie, fall silent, hang up, move, or are not Kafka."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from barnabas.client import (
    CallTimeoutError,
    Cluster,
    ConnectionLostError,
    NoAnswerError,
    NotKafkaError,
    controller,
    coordinator,
    leader,
    maybe_done,
    node,
)
from barnabas.wire import ErrorCode, KafkaError, Message
from barnabas.wire.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from barnabas.wire.messages.find_coordinator import FindCoordinatorResponse
from barnabas.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from barnabas.wire.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from barnabas.wire.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse
from barnabas.wire.messages.metadata import MetadataResponse
from barnabas.wire.messages.produce import ProduceRequest
from tests.client.peers import Asked, answering, one_broker, peer, ranges

SERVED = ranges(
    Metadata=(0, 13),
    ListGroups=(0, 5),
    CreateTopics=(2, 7),
    FindCoordinator=(0, 6),
    Heartbeat=(0, 4),
    Produce=(3, 13),
    ListOffsets=(1, 9),
)


class ScriptedNode:
    """Answers ApiVersions and Metadata as a cluster of one; the rest as told, and counts what it is asked."""

    def __init__(self, answers: Callable[[Asked], Message | bytes | None]) -> None:
        self._answers = answers
        self.asked: Counter[str] = Counter()
        self.connections = 0
        self.port = 0
        self.topics: list[MetadataResponse.MetadataResponseTopic] = []

    def answer(self, asked: Asked) -> bytes | None:
        self.asked[asked.name] += 1
        if asked.name == "ApiVersions":
            self.connections += 1
            return asked.answer(SERVED)
        response = self._answers(asked)
        if response is None and asked.name == "Metadata":
            return asked.answer(one_broker(self.port, *self.topics))
        return asked.answer(response) if isinstance(response, Message) else response


def against(
    answers: Callable[[Asked], Message | bytes | None],
    scenario: Callable[[Cluster, ScriptedNode], Any],
    **settings: Any,
) -> None:
    async def main() -> None:
        scripted = ScriptedNode(answers)
        async with peer(answering(scripted.answer)) as scripted.port:
            given = {
                "bootstrap.servers": f"127.0.0.1:{scripted.port}",
                "retry.backoff.ms": 10,
                "reconnect.backoff.ms": 10,
            }
            given |= {name.replace("_", "."): value for name, value in settings.items()}
            async with Cluster(given) as cluster:
                await scenario(cluster, scripted)
            await asyncio.sleep(0.01)
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(main())


def in_turn(name: str, *responses: Message | bytes | None) -> Callable[[Asked], Message | bytes | None]:
    """Answers one API in turn, the last for ever; nothing else is answered for."""
    left = list(responses)

    def answers(asked: Asked) -> Message | bytes | None:
        if asked.name != name:
            return None
        return left.pop(0) if len(left) > 1 else left[0]

    return answers


def test_many_calls_share_one_connection_and_a_lane_has_its_own() -> None:
    async def scenario(cluster: Cluster, scripted: ScriptedNode) -> None:
        await asyncio.gather(*(cluster.call(ListGroupsRequest()) for _ in range(100)))
        assert scripted.connections == 1
        await asyncio.gather(*(cluster.call(ListGroupsRequest(), lane="slow") for _ in range(100)))
        assert scripted.connections == 2

    against(in_turn("ListGroups", ListGroupsResponse()), scenario)


def test_what_is_never_answered_is_not_waited_for() -> None:
    async def scenario(cluster: Cluster, scripted: ScriptedNode) -> None:
        scripted.topics = [partition(1, 3)]
        await cluster.post(ProduceRequest(acks=0), leader("t", 0))
        await cluster.send(ListOffsetsRequest(), leader("t", 0))
        assert scripted.asked["Produce"] == 1

    replies: dict[str, Message | bytes] = {"Produce": b"", "ListOffsets": offsets(0)}
    against(lambda asked: replies.get(asked.name), scenario)


def test_a_caller_of_send_can_have_a_coordinator_looked_for_anew() -> None:
    found = FindCoordinatorResponse(coordinators=[FindCoordinatorResponse.Coordinator(key="g", node_id=1)])
    replies = {"FindCoordinator": found, "Heartbeat": HeartbeatResponse(error_code=16)}

    async def scenario(cluster: Cluster, scripted: ScriptedNode) -> None:
        for lookups in (1, 1, 2):
            assert (await cluster.send(HeartbeatRequest(group_id="g"), coordinator("g"))).error_code == 16
            assert scripted.asked["FindCoordinator"] == lookups
            if scripted.asked["Heartbeat"] == 2:
                cluster.forget_coordinator("g")

    against(lambda asked: replies.get(asked.name), scenario)


def test_a_read_is_asked_again_when_the_connection_is_lost() -> None:
    async def scenario(cluster: Cluster, scripted: ScriptedNode) -> None:
        await cluster.call(ListGroupsRequest())
        assert (scripted.asked["ListGroups"], scripted.connections) == (2, 2)

    against(in_turn("ListGroups", None, ListGroupsResponse()), scenario)


def test_a_write_is_not_asked_again_when_the_connection_is_lost() -> None:
    async def scenario(cluster: Cluster, scripted: ScriptedNode) -> None:
        with pytest.raises(ConnectionLostError) as lost:
            await cluster.call(CreateTopicsRequest(), controller())
        assert maybe_done(lost.value)
        assert scripted.asked["CreateTopics"] == 1
        await cluster.call(CreateTopicsRequest(), controller(), repeat=True)
        assert scripted.asked["CreateTopics"] == 3

    against(in_turn("CreateTopics", None, None, CreateTopicsResponse()), scenario)


def test_a_write_that_is_not_answered_may_have_been_done() -> None:
    async def scenario(cluster: Cluster, scripted: ScriptedNode) -> None:
        with pytest.raises(NoAnswerError, match=r"did not answer CreateTopics within 300 ms") as silent:
            await cluster.call(CreateTopicsRequest(), controller())
        assert maybe_done(silent.value)
        with pytest.raises(CallTimeoutError) as late:
            await cluster.call(CreateTopicsRequest(), controller(), timeout_ms=200)
        assert maybe_done(late.value)
        assert scripted.connections == 2  # a connection on which nothing is answered is not used again

    against(in_turn("CreateTopics", b""), scenario, request_timeout_ms=300)


def test_a_read_that_is_not_answered_is_asked_on_another_connection() -> None:
    async def scenario(cluster: Cluster, scripted: ScriptedNode) -> None:
        await cluster.call(ListGroupsRequest())
        assert (scripted.asked["ListGroups"], scripted.connections) == (2, 2)

    against(in_turn("ListGroups", b"", ListGroupsResponse()), scenario, request_timeout_ms=300)


def test_an_answer_to_somebody_else_ends_the_connection_and_is_asked_for_again() -> None:
    def answers(asked: Asked) -> Message | bytes | None:
        if asked.name != "ListGroups":
            return None
        asked_before.append(asked)
        return (
            asked.answer(ListGroupsResponse(), correlation_id=4711) if len(asked_before) == 1 else ListGroupsResponse()
        )

    asked_before: list[Asked] = []

    async def scenario(cluster: Cluster, scripted: ScriptedNode) -> None:
        await cluster.call(ListGroupsRequest())
        assert (scripted.asked["ListGroups"], scripted.connections) == (2, 2)

    against(answers, scenario)


def test_codes_that_pass_are_tried_again_and_others_are_raised() -> None:
    passing, final = ListGroupsResponse(error_code=14), ListGroupsResponse(error_code=31)

    async def scenario(cluster: Cluster, scripted: ScriptedNode) -> None:
        with pytest.raises(KafkaError) as refused:
            await cluster.call(ListGroupsRequest())
        assert refused.value.code is ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        assert scripted.asked["ListGroups"] == 3
        assert (await cluster.send(ListGroupsRequest())).error_code == 31

    against(in_turn("ListGroups", passing, passing, final), scenario)


def test_a_time_that_is_over_tells_the_last_error_and_how_often_it_was_tried() -> None:
    async def scenario(cluster: Cluster, scripted: ScriptedNode) -> None:
        with pytest.raises(
            CallTimeoutError, match=r"and \d+ attempts; the last error: COORDINATOR_LOAD_IN_PROGRESS"
        ) as late:
            await cluster.call(ListGroupsRequest(), timeout_ms=500)
        assert isinstance(late.value.last_error, KafkaError)
        assert not late.value.maybe_done
        assert 3 <= scripted.asked["ListGroups"] <= 12  # 10, 20, 40, 80, 160 ms between them

    against(in_turn("ListGroups", ListGroupsResponse(error_code=14)), scenario)


def test_rows_that_all_say_wrong_controller_are_asked_again_after_looking_for_it() -> None:
    wrong = CreateTopicsResponse(topics=[CreateTopicsResponse.CreatableTopicResult(name="a", error_code=41)])
    right = CreateTopicsResponse(topics=[CreateTopicsResponse.CreatableTopicResult(name="a")])

    async def scenario(cluster: Cluster, scripted: ScriptedNode) -> None:
        before = scripted.asked["Metadata"]
        response = await cluster.call(CreateTopicsRequest(), controller())
        assert response.topics[0].error_code == 0
        assert scripted.asked["Metadata"] == before + 1

    against(in_turn("CreateTopics", wrong, right), scenario)


def test_a_coordinator_that_has_moved_is_looked_for_again() -> None:
    found = FindCoordinatorResponse.Coordinator(key="g", node_id=1)
    replies: dict[str, list[Message]] = {
        "FindCoordinator": [
            FindCoordinatorResponse(coordinators=[FindCoordinatorResponse.Coordinator(key="g", error_code=15)]),
            FindCoordinatorResponse(coordinators=[found]),
            FindCoordinatorResponse(coordinators=[found]),
        ],
        "Heartbeat": [HeartbeatResponse(error_code=16), HeartbeatResponse(), HeartbeatResponse()],
    }

    async def scenario(cluster: Cluster, scripted: ScriptedNode) -> None:
        await cluster.call(HeartbeatRequest(group_id="g"), coordinator("g"))
        await cluster.call(HeartbeatRequest(group_id="g"), coordinator("g"))
        assert (scripted.asked["FindCoordinator"], scripted.asked["Heartbeat"]) == (3, 3)

    against(lambda asked: replies[asked.name].pop(0) if asked.name in replies else None, scenario)


def partition(leader_id: int, epoch: int) -> MetadataResponse.MetadataResponseTopic:
    row = MetadataResponse.MetadataResponsePartition(partition_index=0, leader_id=leader_id, leader_epoch=epoch)
    return MetadataResponse.MetadataResponseTopic(name="t", partitions=[row])


def offsets(error_code: int) -> ListOffsetsResponse:
    row = ListOffsetsResponse.ListOffsetsPartitionResponse(partition_index=0, error_code=error_code)
    return ListOffsetsResponse(topics=[ListOffsetsResponse.ListOffsetsTopicResponse(name="t", partitions=[row])])


def test_a_leader_that_is_not_one_any_more_is_asked_after() -> None:
    async def scenario(cluster: Cluster, scripted: ScriptedNode) -> None:
        scripted.topics = [partition(1, 3)]
        response = await cluster.call(ListOffsetsRequest(), leader("t", 0))
        assert response.topics[0].partitions[0].error_code == 0
        assert scripted.asked["ListOffsets"] == 3
        assert cluster.state.topics["t"].partitions[0].leader_epoch == 3
        scripted.topics = [partition(2, 2)]
        await cluster.refresh()
        assert cluster.state.topics["t"].partitions[0].leader_id == 1

    against(in_turn("ListOffsets", offsets(6), offsets(74), offsets(0)), scenario)


def test_a_hundred_who_miss_the_same_topic_share_one_refresh() -> None:
    async def scenario(cluster: Cluster, scripted: ScriptedNode) -> None:
        scripted.topics = [partition(1, 3)]
        before = scripted.asked["Metadata"]
        await asyncio.gather(*(cluster.call(ListOffsetsRequest(), leader("t", 0)) for _ in range(100)))
        assert scripted.asked["Metadata"] == before + 1

    against(in_turn("ListOffsets", offsets(0)), scenario)


def test_a_node_that_moves_is_followed_and_one_that_is_gone_is_found_by_the_bootstrap_servers() -> None:
    async def main() -> None:
        old, new = (ScriptedNode(in_turn("ListGroups", ListGroupsResponse())) for _ in range(2))
        async with peer(answering(new.answer)) as new.port, peer(answering(old.answer)) as old.port:
            servers = f"127.0.0.1:{old.port},127.0.0.1:{new.port}"
            cluster = Cluster({"bootstrap.servers": servers, "retry.backoff.ms": 10}, random=lambda: 0.5)
            await cluster.start()
            first = cluster.state.nodes[1].port
            # Both say of themselves that they are node 1: whichever was not asked is where it moves.
            moved, left = (old, new) if first == new.port else (new, old)
            left.port = moved.port
            await cluster.refresh()
            assert cluster.state.nodes[1].port == moved.port
            await cluster.call(ListGroupsRequest(), node(1))
            assert (left.asked["ListGroups"], moved.asked["ListGroups"]) == (0, 1)
            await cluster.close()
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(main())


def test_when_all_known_nodes_are_gone_the_bootstrap_servers_are_asked_again() -> None:
    async def main() -> None:
        bootstrap = ScriptedNode(in_turn("ListGroups", ListGroupsResponse()))
        async with peer(answering(bootstrap.answer)) as port:
            async with peer(answering(bootstrap.answer)) as bootstrap.port:
                cluster = Cluster({"bootstrap.servers": f"127.0.0.1:{port}", "retry.backoff.ms": 10})
                await cluster.start()
                await cluster.call(ListGroupsRequest())
            bootstrap.port = port
            await cluster.call(ListGroupsRequest(), timeout_ms=5_000)
            assert cluster.state.nodes[1].port == port
            await cluster.close()

    asyncio.run(main())


@pytest.mark.parametrize("says", [b"HTTP/1.1 400 Bad Request\r\n\r\n", b"SSH-2.0-x\r\n"])
def test_a_port_that_is_not_kafkas_is_said_at_once(says: bytes) -> None:
    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(says)
        await reader.read(100)

    async def main() -> None:
        async with peer(script) as port:
            async with asyncio.timeout(5):
                with pytest.raises(NotKafkaError, match=f"127.0.0.1:{port} does not speak"):
                    await Cluster({"bootstrap.servers": f"127.0.0.1:{port}"}).start()

    asyncio.run(main())


def test_a_broker_that_knows_of_no_brokers_is_asked_again() -> None:
    async def scenario(cluster: Cluster, scripted: ScriptedNode) -> None:
        assert scripted.asked["Metadata"] == 3
        assert list(cluster.state.nodes) == [1]

    nobody = MetadataResponse()
    rebootstrap = MetadataResponse(error_code=ErrorCode.REBOOTSTRAP_REQUIRED)
    replies: list[Message | None] = [nobody, rebootstrap, None]
    against(lambda asked: replies.pop(0) if asked.name == "Metadata" else None, scenario)


def test_an_old_broker_is_spoken_to_in_its_own_versions() -> None:
    served = ranges(Metadata=(0, 1), FindCoordinator=(0, 0), ListGroups=(0, 0), Heartbeat=(0, 0))
    served.api_keys[0].max_version = 0
    seen: list[tuple[str, int]] = []

    async def main() -> None:
        def answers(asked: Asked) -> bytes | None:
            seen.append((asked.name, asked.version))
            if asked.name == "ApiVersions":
                refused = ranges()
                refused.api_keys, refused.error_code = [], ErrorCode.UNSUPPORTED_VERSION
                return asked.answer(refused, version=0) if asked.version else asked.answer(served)
            responses: dict[str, Message] = {
                "Metadata": one_broker(int(servers.partition(":")[2])),
                "FindCoordinator": FindCoordinatorResponse(node_id=1),
                "Heartbeat": HeartbeatResponse(),
            }
            return asked.answer(responses[asked.name])

        async with peer(answering(answers)) as port:
            servers = f"127.0.0.1:{port}"
            async with Cluster({"bootstrap.servers": servers}) as cluster:
                await cluster.call(HeartbeatRequest(group_id="g"), coordinator("g"))
                assert await cluster.coordinators(["g", "h"]) == {"g": 1, "h": 1}

    asyncio.run(main())
    assert seen[:2] == [("ApiVersions", 4), ("ApiVersions", 0)]
    assert seen[2:] == [("Metadata", 1), ("FindCoordinator", 0), ("Heartbeat", 0), ("FindCoordinator", 0)]
