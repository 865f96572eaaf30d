"""The cluster's state as a value: how answers of every version are merged into it."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas import wire
from barnabas.client.state import (
    CONTROLLERS,
    EMPTY_STATE,
    ClusterState,
    Node,
    forget,
    learn_leaders,
    merge_describe_cluster,
    merge_metadata,
    metadata_question,
)
from barnabas.security.acl import AclOperation
from barnabas.wire import APIS, ApiKey, ErrorCode, Uuid
from barnabas.wire.messages.describe_cluster import DescribeClusterResponse
from barnabas.wire.messages.metadata import MetadataResponse

BrokerRow = MetadataResponse.MetadataResponseBroker
TopicRow = MetadataResponse.MetadataResponseTopic
PartitionRow = MetadataResponse.MetadataResponsePartition
ONE, TWO = Uuid(b"1" * 16), Uuid(b"2" * 16)
VERSIONS = range(APIS[ApiKey.METADATA].versions.last + 1)


def topic(name: str, *leaders: tuple[int, int], id: Uuid = ONE, **fields: Any) -> TopicRow:
    partitions = [
        PartitionRow(partition_index=index, leader_id=leader, leader_epoch=epoch, replica_nodes=[1, 2], isr_nodes=[1])
        for index, (leader, epoch) in enumerate(leaders)
    ]
    return TopicRow(name=name, topic_id=id, partitions=partitions, **fields)


def answer(*topics: TopicRow, **fields: Any) -> MetadataResponse:
    brokers = [BrokerRow(node_id=2, host="two", port=9092, rack="b"), BrokerRow(node_id=1, host="one", port=9092)]
    return MetadataResponse(brokers=brokers, controller_id=2, cluster_id="c", topics=list(topics), **fields)


def merged(*answers: MetadataResponse, version: int = 13, asked: frozenset[str] | None = None) -> ClusterState:
    state = EMPTY_STATE
    for each in answers:
        state = merge_metadata(state, each, version, asked)
    return state


@pytest.mark.parametrize("version", VERSIONS)
def test_an_answer_of_every_version_has_in_it_what_that_version_tells(version: int) -> None:
    sent = answer(
        topic(
            "orders",
            (1, 5),
            (2, 6),
            is_internal=True,
            topic_authorized_operations=1 << 3 if version >= 8 else -(1 << 31),
        )
    )
    read = wire.decode(MetadataResponse, version, wire.encode(sent, version))
    state = merge_metadata(EMPTY_STATE, read, version, frozenset({"orders"}), now_s=7.0)
    assert [(each.id, each.host, each.port) for each in state.nodes.values()] == [(2, "two", 9092), (1, "one", 9092)]
    assert state.nodes[2].rack == ("b" if version >= 1 else None)
    assert state.controller_id == (2 if version >= 1 else -1)
    assert state.cluster_id == ("c" if version >= 2 else None)
    orders = state.topics["orders"]
    assert orders.is_internal is (version >= 1)
    assert orders.id == (ONE if version >= 10 else wire.ZERO_UUID)
    assert orders.authorized_operations == (frozenset({AclOperation.READ}) if version >= 8 else None)
    assert [(each.leader_id, each.replicas, each.isr) for each in orders.partitions.values()] == [
        (1, (1, 2), (1,)),
        (2, (1, 2), (1,)),
    ]
    assert [each.leader_epoch for each in orders.partitions.values()] == ([5, 6] if version >= 9 else [-1, -1])
    assert state.leader("orders", 1) == state.nodes[2]
    assert (state.updated_at_s, state.generation) == (7.0, 1)


def test_a_leader_epoch_never_goes_back() -> None:
    state = merged(answer(topic("orders", (2, 7), (1, 3))), answer(topic("orders", (1, 6), (2, 4))))
    assert [(each.leader_id, each.leader_epoch) for each in state.topics["orders"].partitions.values()] == [
        (2, 7),
        (2, 4),
    ]


def test_a_topic_that_was_made_anew_begins_anew() -> None:
    state = merged(answer(topic("orders", (2, 7))), answer(topic("orders", (1, 0), id=TWO)))
    assert state.partition("orders", 0) == merged(answer(topic("orders", (1, 0), id=TWO))).partition("orders", 0)


def test_epochs_of_old_versions_are_not_believed() -> None:
    state = merged(answer(topic("orders", (2, 7))), answer(topic("orders", (1, 6))), version=8)
    assert state.topics["orders"].partitions[0][:3] == (0, 1, -1)


def test_topics_that_were_not_asked_for_stay() -> None:
    state = merge_metadata(
        merged(answer(topic("a", (1, 1)), topic("b", (1, 1)))), answer(topic("b", (2, 2))), 13, frozenset("b")
    )
    assert {name: each.partitions[0].leader_id for name, each in state.topics.items()} == {"a": 1, "b": 2}


def test_topics_that_are_gone_go_when_all_were_asked_for() -> None:
    state = merged(answer(topic("a", (1, 1)), topic("b", (1, 1))), answer(topic("b", (1, 1))))
    assert set(state.topics) == {"b"}


def test_why_a_topic_is_not_there_is_told() -> None:
    before = merged(answer(topic("gone", (1, 1))))
    rows = [TopicRow(name="gone", error_code=3), TopicRow(name="secret", error_code=29)]
    unknown_id = TopicRow(name=None, topic_id=TWO, error_code=100)
    state = merge_metadata(before, answer(*rows, unknown_id), 13, frozenset({"gone", "secret", "silent"}))
    assert not state.topics
    assert state.errors == {
        "gone": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        "secret": ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        "silent": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        str(TWO): ErrorCode.UNKNOWN_TOPIC_ID,
    }
    again = merge_metadata(state, answer(topic("gone", (1, 1))), 13, frozenset({"gone"}))
    assert "gone" in again.topics
    assert "gone" not in again.errors


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("asked", [None, frozenset(), frozenset({"b", "a"})])
def test_no_version_creates_a_topic_by_being_asked(version: int, asked: frozenset[str] | None) -> None:
    request, covers, only, _ = metadata_question(version, asked)
    sent = wire.decode("MetadataRequest", version, wire.encode(request, version))
    names = None if sent.topics is None else [each.name for each in sent.topics]
    if version >= 4:
        assert not sent.allow_auto_topic_creation
        assert names == (None if asked is None else sorted(asked))
    elif version >= 1:
        assert names == ([] if asked == frozenset() else None)
    else:
        assert names == []
    everything = [topic("a", (1, 1)), topic("c", (1, 1))]
    told = everything if covers is None else []
    state = merge_metadata(EMPTY_STATE, answer(*told), version, covers, only=only)
    if covers is None:
        assert set(state.topics) == {name for name in ("a", "c") if asked is None or name in asked}
    if asked:
        assert state.errors["b"] is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


@pytest.mark.parametrize("version", VERSIONS)
def test_topics_are_created_when_that_is_wanted(version: int) -> None:
    request, covers, only, _ = metadata_question(version, frozenset({"a"}), allow_auto_topic_creation=True)
    sent = wire.decode("MetadataRequest", version, wire.encode(request, version))
    assert [each.name for each in sent.topics] == ["a"]
    assert sent.allow_auto_topic_creation
    assert (covers, only) == (frozenset({"a"}), None)


def test_controllers_are_nodes_where_those_were_asked_for() -> None:
    row = DescribeClusterResponse.DescribeClusterBroker(broker_id=3000, host="c", port=9093)
    response = DescribeClusterResponse(cluster_id="c", controller_id=3000, endpoint_type=2, brokers=[row])
    state = merge_describe_cluster(EMPTY_STATE, response)
    assert state.controller == Node(3000, "c", 9093)
    assert state.endpoint_type == CONTROLLERS
    assert not state.brokers


def test_a_leader_that_was_told_beside_an_error_is_believed_if_it_is_newer() -> None:
    state = merged(answer(topic("orders", (1, 5), (1, 5))))
    leaders = [("orders", 0, 2, 6), ("orders", 1, 2, 5), ("orders", 9, 2, 9), ("nope", 0, 2, 9)]
    learnt = learn_leaders(state, leaders, [Node(3, "three", 9092)])
    assert [(each.leader_id, each.leader_epoch) for each in learnt.topics["orders"].partitions.values()] == [
        (2, 6),
        (1, 5),
    ]
    assert set(learnt.nodes) == {1, 2, 3}
    assert state.topics["orders"].partitions[0].leader_id == 1


def test_states_are_compared_by_what_they_say_and_not_by_when() -> None:
    one = merge_metadata(EMPTY_STATE, answer(topic("a", (1, 1))), 13, None, now_s=1.0)
    two = merge_metadata(one, answer(topic("a", (1, 1))), 13, None, now_s=2.0)
    assert one.says_the_same_as(two)
    assert not one.says_the_same_as(forget(two, {"a"}))


def test_a_state_cannot_be_changed() -> None:
    state = merged(answer(topic("a", (1, 1))))
    for mapping in (state.nodes, state.topics, state.errors, state.topics["a"].partitions):
        with pytest.raises(TypeError):
            mapping["x"] = 1  # type: ignore[index]
