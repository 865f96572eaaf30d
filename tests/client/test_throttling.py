"""Throttling by quotas: after a response with a throttle time, nothing is sent to the node until it has passed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from barnabas.client import CallTimeoutError, ClosedError, Cluster, controller, coordinator, leader, node
from barnabas.client.links import GROUP_LANE
from barnabas.client.throttling import FIRST_VERSIONS, throttle_time_ms
from barnabas.wire import APIS, Message, message_class
from barnabas.wire.messages.describe_cluster import DescribeClusterResponse
from barnabas.wire.messages.find_coordinator import FindCoordinatorResponse
from barnabas.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from barnabas.wire.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from barnabas.wire.messages.produce import ProduceRequest
from barnabas.wire.messages.sasl_handshake import SaslHandshakeResponse
from tests.client.peers import Asked
from tests.client.test_misbehaving_nodes import ScriptedNode, against, partition

HOUR_MS = 3_600_000


def throttling(times_ms: list[int]) -> Callable[[Asked], Message | bytes | None]:
    """ListGroups is answered with these throttle times in turn, and then without."""
    found = FindCoordinatorResponse(coordinators=[FindCoordinatorResponse.Coordinator(key="g", node_id=1)])
    others: dict[str, Message | bytes] = {"FindCoordinator": found, "Heartbeat": HeartbeatResponse(), "Produce": b""}

    def answers(asked: Asked) -> Message | bytes | None:
        if asked.name == "ListGroups":
            return ListGroupsResponse(throttle_time_ms=times_ms.pop(0) if times_ms else 0)
        return others.get(asked.name)

    return answers


async def is_refused(call: Any) -> None:
    """A call waits until its timeout, and its request was certainly not carried out."""
    with pytest.raises(CallTimeoutError) as raised:
        await call
    assert not raised.value.maybe_done


def test_nothing_is_sent_on_any_lane_until_the_time_has_passed() -> None:
    async def scenario(cluster: Cluster, scripted: ScriptedNode) -> None:
        scripted.topics = [partition(1, 3)]
        await cluster.refresh(["t"])
        await cluster.call(ListGroupsRequest())
        await is_refused(cluster.call(ListGroupsRequest(), timeout_ms=50))
        await is_refused(cluster.call(ListGroupsRequest(), controller(), lane="slow", timeout_ms=50))
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await cluster.post(ProduceRequest(acks=0), leader("t", 0))
        assert (scripted.asked["ListGroups"], scripted.asked["Produce"]) == (1, 0)

    against(throttling([HOUR_MS]), scenario)


def test_members_of_groups_send_heartbeats_while_their_fetches_are_throttled() -> None:
    async def scenario(cluster: Cluster, scripted: ScriptedNode) -> None:
        await cluster.coordinators(["g"])
        await cluster.call(ListGroupsRequest())
        await cluster.send(HeartbeatRequest(group_id="g"), coordinator("g"), lane=GROUP_LANE)
        assert scripted.asked["Heartbeat"] == 1

    against(throttling([HOUR_MS]), scenario)


def test_requests_go_on_when_the_time_has_passed() -> None:
    async def scenario(cluster: Cluster, scripted: ScriptedNode) -> None:
        for count in range(1, 5):
            await cluster.send(ListGroupsRequest(), timeout_ms=20)  # the time of the throttle is not counted
            assert scripted.asked["ListGroups"] == count

    against(throttling([60, 60, 60]), scenario)


def test_an_old_version_was_throttled_by_the_broker_already() -> None:
    async def scenario(cluster: Cluster, scripted: ScriptedNode) -> None:
        for _ in range(3):
            await cluster.send(ListGroupsRequest(), version=1)
        assert scripted.asked["ListGroups"] == 3

    against(throttling([HOUR_MS] * 3), scenario)


def test_a_connection_that_is_made_again_is_still_throttled() -> None:
    async def scenario(cluster: Cluster, scripted: ScriptedNode) -> None:
        await cluster.call(ListGroupsRequest())
        (await cluster._connection(1)).close()
        await is_refused(cluster.call(ListGroupsRequest(), node(1), timeout_ms=100))
        assert scripted.asked["ListGroups"] == 1

    against(throttling([HOUR_MS]), scenario)


def test_closing_the_client_ends_calls_that_wait() -> None:
    async def scenario(cluster: Cluster, scripted: ScriptedNode) -> None:
        await cluster.call(ListGroupsRequest())
        waiting = asyncio.create_task(cluster.call(ListGroupsRequest()))
        await asyncio.sleep(0.02)
        await cluster.close()
        with pytest.raises(ClosedError):
            await waiting

    against(throttling([HOUR_MS]), scenario)


def test_versions_count_from_the_first_that_is_answered_before_it_is_throttled() -> None:
    apis = {api.name: api for api in APIS.values()}
    response = ListGroupsResponse(throttle_time_ms=7)
    assert [throttle_time_ms(apis["ListGroups"], version, response) for version in (1, 2, 3)] == [0, 7, 7]
    assert throttle_time_ms(apis["DescribeCluster"], 0, DescribeClusterResponse(throttle_time_ms=7)) == 7
    assert throttle_time_ms(apis["SaslHandshake"], 1, SaslHandshakeResponse()) == 0


@pytest.mark.parametrize("name", FIRST_VERSIONS)
def test_a_listed_api_had_the_time_before_its_first_version(name: str) -> None:
    api = next(api for api in APIS.values() if api.name == name)
    fields = {field.name: field for field in message_class(api.response).schema().root.fields}
    assert fields["throttle_time_ms"].versions.first < FIRST_VERSIONS[name] <= api.versions.last
