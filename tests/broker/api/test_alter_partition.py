"""AlterPartition (56)."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas.security.authorizer import AuthorizerSettings
from barnabas.wire import Uuid
from barnabas.wire.messages.alter_partition import AlterPartitionRequest
from tests.broker.harness import MemoryNode
from tests.broker.simulated_broker import SimulatedBroker, cluster, create_topic

State = AlterPartitionRequest.BrokerState


def of_three(**configs: str) -> tuple[MemoryNode, list[SimulatedBroker]]:
    node, brokers = cluster(3)
    create_topic(node, "t", [1, 2, 3], **configs)
    return node, brokers


def test_a_leader_shrinks_and_expands_its_isr_and_the_leader_epoch_stays() -> None:
    _, brokers = of_three()
    row = brokers[1].propose_isr("t", 0, [1, 3])
    assert (row.error_code, row.leader_id, row.leader_epoch, row.isr, row.partition_epoch) == (0, 1, 0, [1, 3], 1)
    row = brokers[1].propose_isr("t", 0, [1, 2, 3])
    assert (row.error_code, row.leader_epoch, row.isr, row.partition_epoch) == (0, 0, [1, 2, 3], 2)


def test_what_is_so_already_is_answered_and_not_written() -> None:
    node, brokers = of_three()
    count = len(node.written)
    row = brokers[1].propose_isr("t", 0, [1, 2, 3])
    assert (row.error_code, row.isr, row.partition_epoch) == (0, [1, 2, 3], 0)
    assert len(node.written) == count


def test_before_3_6_a_smaller_isr_begins_a_leader_epoch() -> None:
    node, brokers = cluster(2, features={"metadata.version": 11})
    create_topic(node, "t", [1, 2])
    assert brokers[1].propose_isr("t", 0, [1]).leader_epoch == 1
    assert brokers[1].propose_isr("t", 0, [1, 2]).leader_epoch == 1


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"leader_epoch": 1}, 41),
        ({"partition_epoch": 9}, 41),
        ({"leader_epoch": -1}, 74),
        ({"partition_epoch": -1}, 95),
        ({"partition_index": 4}, 3),
        ({"partition_index": -1}, 3),
        ({"new_isr_with_epochs": [State(broker_id=1), State(broker_id=1)]}, 42),
        ({"new_isr_with_epochs": [State(broker_id=1), State(broker_id=4)]}, 42),
        ({"new_isr_with_epochs": [State(broker_id=2)]}, 42),
        ({"new_isr_with_epochs": []}, 42),
        ({"leader_recovery_state": 1}, 42),
        ({"leader_recovery_state": 7}, 42),
        ({"new_isr_with_epochs": [State(broker_id=1), State(broker_id=2, broker_epoch=1000)]}, 107),
    ],
)
def test_proposals_that_do_not_fit_are_refused(fields: dict[str, Any], code: int) -> None:
    node, brokers = of_three()
    count = len(node.written)
    assert brokers[1].propose_isr("t", 0, [1, 2], **fields).error_code == code
    assert len(node.written) == count


def test_only_the_leader_speaks_for_a_partition() -> None:
    _, brokers = of_three()
    assert brokers[2].propose_isr("t", 0, [1, 2]).error_code == 42


def test_fenced_brokers_and_those_that_shut_down_are_not_eligible() -> None:
    node, brokers = of_three()
    create_topic(node, "u", [2])
    brokers[3].beat(want_fence=True)
    assert brokers[1].propose_isr("t", 0, [1, 2, 3]).error_code == 107
    brokers[2].beat(want_shut_down=True)
    assert brokers[2].registration.in_controlled_shutdown
    assert brokers[1].propose_isr("t", 0, [1, 2]).error_code == 107


def test_version_2_has_no_broker_epochs() -> None:
    node, brokers = of_three()
    data = AlterPartitionRequest.PartitionData(partition_index=0, new_isr=[1])
    topics = [AlterPartitionRequest.TopicData(topic_id=node.image.topics.ids["t"], partitions=[data])]
    request = AlterPartitionRequest(broker_id=1, broker_epoch=brokers[1].epoch, topics=topics)
    (row,) = brokers[1].call(request, 2).topics[0].partitions
    assert (row.error_code, row.isr) == (0, [1])


def test_an_unknown_topic_is_unknown_for_each_partition() -> None:
    _, brokers = cluster(1)
    asked = [AlterPartitionRequest.PartitionData(partition_index=index) for index in (0, 1)]
    topics = [AlterPartitionRequest.TopicData(topic_id=Uuid(b"x" * 16), partitions=asked)]
    request = AlterPartitionRequest(broker_id=1, broker_epoch=brokers[1].epoch, topics=topics)
    rows = brokers[1].call(request, 3).topics[0].partitions
    assert [(row.partition_index, row.error_code) for row in rows] == [(0, 100), (1, 100)]


def test_a_stale_broker_is_refused_as_a_whole_unless_it_asks_for_nothing() -> None:
    _, brokers = of_three()
    topics = [AlterPartitionRequest.TopicData(topic_id=Uuid(b"x" * 16))]
    response = brokers[1].call(AlterPartitionRequest(broker_id=1, broker_epoch=0, topics=topics), 3)
    assert (response.error_code, response.topics) == (77, [])
    assert brokers[1].call(AlterPartitionRequest(broker_id=1, broker_epoch=0), 3).error_code == 0


def test_a_leader_that_has_recovered_from_an_unclean_election_says_so_before_others_join_it() -> None:
    node, brokers = cluster(2)
    create_topic(node, "t", [1, 2], unclean_leader_election_enable="true")
    brokers[1].propose_isr("t", 0, [1])
    brokers[1].beat(want_fence=True)
    partition = brokers[2].partition("t", 0)
    assert (partition.leader, partition.leader_recovery_state) == (2, 1)
    brokers[1].beat()
    assert brokers[2].propose_isr("t", 0, [2, 1]).error_code == 42
    row = brokers[2].propose_isr("t", 0, [2, 1], leader_recovery_state=0)
    assert (row.error_code, row.isr, row.leader_recovery_state) == (0, [2, 1], 0)


def test_it_needs_cluster_action() -> None:
    node = MemoryNode(authorizer=AuthorizerSettings(enabled=True))
    response = node.call(AlterPartitionRequest(broker_id=1), 3, listener="controller")
    assert response.error_code == 31
