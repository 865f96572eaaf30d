"""DescribeCluster (60)."""

from __future__ import annotations

import pytest

from barnabas.security.acl import CLUSTER_NAME, AclOperation, ResourceType
from barnabas.wire.messages.describe_cluster import DescribeClusterRequest
from barnabas.wire.records.metadata import RegisterControllerRecord
from tests.broker.harness import MemoryNode, register_broker
from tests.broker.topic_captures import ALICE, Capture, allow, final_node, node_before, params

# Where in the cluster's log it had a fifth broker, alive or fenced, or none any more.
OFFSETS = {
    "with a fifth broker": 2162,
    "fifth broker fenced, included": 2182,
    "fifth broker fenced, not included": 2182,
    "after the unregistration": 2190,
    "alice": 938,
}
ACTIVE_CONTROLLER = 3


@pytest.mark.parametrize("capture", params("DescribeCluster"))
def test_kafka_s_answers(capture: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    """A broker tells any live broker as the controller."""
    node = node_before(OFFSETS[capture.case]) if capture.case in OFFSETS else final_node()
    monkeypatch.setattr(MemoryNode, "quorum_leader_id", ACTIVE_CONTROLLER)
    answer = capture.ask(node)
    theirs, ours = capture.response, capture.decode(answer)
    if capture.listener != "controller" and theirs.error_code == 0:
        assert ours.controller_id in {row.broker_id for row in ours.brokers if not row.is_fenced}
        assert theirs.controller_id != -1
        theirs.controller_id = ours.controller_id
        assert ours == theirs
    else:
        assert answer == capture.answer


def test_a_broker_without_the_listener_is_not_told() -> None:
    node = MemoryNode(brokers=2)
    assert [row.broker_id for row in node.call(DescribeClusterRequest(), 2).brokers] == [1, 2]
    response = node.call(DescribeClusterRequest(), 2, listener="sasl")
    assert (response.brokers, response.controller_id) == ([], -1)


def test_without_live_brokers_there_is_no_controller() -> None:
    node = MemoryNode(brokers=0, records=[register_broker(1, fenced=True)])
    response = node.call(DescribeClusterRequest(include_fenced_brokers=True), 2)
    assert ([(row.broker_id, row.is_fenced) for row in response.brokers], response.controller_id) == ([(1, True)], -1)


def test_requests_are_given_one_live_broker_after_another_as_the_controller() -> None:
    capture = next(c.values[0] for c in params("DescribeCluster") if c.values[0].case == "fenced included")
    node, frame = final_node(), bytes.fromhex(capture.request_hex)
    found = []
    for correlation_id in range(8):
        answer = node.answer(frame[:4] + correlation_id.to_bytes(4) + frame[8:])
        assert answer is not None
        found.append(capture.decode(answer).controller_id)
    assert found == [1, 2, 3, 4] * 2


def controller(controller_id: int) -> RegisterControllerRecord:
    endpoint = RegisterControllerRecord.ControllerEndpoint(name="CONTROLLER", host="c", port=9000 + controller_id)
    return RegisterControllerRecord(controller_id=controller_id, end_points=[endpoint])


def test_an_active_controller_that_is_not_registered_is_not_told() -> None:
    node = MemoryNode(records=[controller(2)])
    asked = DescribeClusterRequest(endpoint_type=2)
    response = node.call(asked, 2, listener="controller")
    assert ([row.broker_id for row in response.brokers], response.controller_id) == ([2], -1)
    registered = MemoryNode(records=[controller(1), controller(2)])
    assert registered.call(asked, 2, listener="controller").controller_id == 1


def test_a_controller_tells_nothing_before_controllers_are_registered_in_the_metadata() -> None:
    node = MemoryNode(features={"metadata.version": 14}, records=[controller(1)])
    response = node.call(DescribeClusterRequest(endpoint_type=2), 2, listener="controller")
    assert response.error_code == 35
    text = "Direct-to-controller communication is not supported with the current MetadataVersion."
    assert response.error_message == text


def test_a_controller_needs_alter_on_the_cluster_and_a_broker_nothing() -> None:
    asked = DescribeClusterRequest(endpoint_type=2)
    assert final_node().call(asked, 2, listener="controller", principal=ALICE).error_code == 31
    allowed = allow("User:alice", AclOperation.ALTER, ResourceType.CLUSTER, CLUSTER_NAME)
    response = node_before(2190, [allowed]).call(asked, 2, listener="controller", principal=ALICE)
    assert response.error_code == 0
    assert [row.broker_id for row in response.brokers] == [1, 2, 3, 5]


def test_operations_are_those_that_the_caller_may_do_if_she_may_describe() -> None:
    asked = DescribeClusterRequest(include_cluster_authorized_operations=True)
    assert node_before(98).call(asked, 2, principal=ALICE).cluster_authorized_operations == 0
    entries = [
        allow("User:alice", AclOperation.CREATE, ResourceType.CLUSTER, CLUSTER_NAME),
        allow("User:alice", AclOperation.DESCRIBE, ResourceType.CLUSTER, CLUSTER_NAME),
    ]
    operations = node_before(98, entries).call(asked, 2, principal=ALICE).cluster_authorized_operations
    assert operations == 1 << AclOperation.CREATE | 1 << AclOperation.DESCRIBE
