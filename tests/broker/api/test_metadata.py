"""Metadata (3), and the topics that asking for them creates."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from barnabas import wire
from barnabas.broker.encoded_topics import metadata_form
from barnabas.broker.topic_creation import creatable_topic
from barnabas.config import server
from barnabas.replicated.decision import Result
from barnabas.security.acl import CLUSTER_NAME, AclOperation, ResourceType
from barnabas.steps import at_once
from barnabas.wire import ZERO_UUID, Message, Uuid
from barnabas.wire.messages.metadata import MetadataRequest
from barnabas.wire.records.metadata import (
    BrokerRegistrationChangeRecord,
    PartitionChangeRecord,
    RegisterBrokerRecord,
    RemoveTopicRecord,
    TopicRecord,
)
from tests.broker.harness import CLUSTER_ID, MemoryNode, register_broker
from tests.broker.topic_captures import ALICE, Capture, allow, final_node, node_before, params, topic

Asked = MetadataRequest.MetadataRequestTopic

VERSIONS = range(14)
NOT_ASKED = -(2**31)
A, B = Uuid(b"a" * 16), Uuid(b"b" * 16)

# Where in the cluster's log the captures of earlier phases, and those that created topics, were taken.
OFFSETS = {
    "alice, topic without rights": 938,
    "alice, unknown topic, auto creation": 938,
    "alice, all topics": 938,
    "while reassigning": 2111,
    "node 2 down": 2257,
    "no leader": 2485,
    "unknown topic, created by asking": 4845,
}


@pytest.mark.parametrize("capture", params("Metadata"))
def test_kafka_s_answers(capture: Capture) -> None:
    """What differs: Kafka chooses the controller at random, and lists all topics in the order of a hash."""
    node = node_before(OFFSETS[capture.case]) if capture.case in OFFSETS else final_node()
    answer = capture.ask(node)
    theirs, ours = capture.response, capture.decode(answer)
    if theirs.controller_id != -1:
        assert ours.controller_id in {broker.node_id for broker in ours.brokers}
        theirs.controller_id = ours.controller_id
    if capture.case == "all" or (capture.version, capture.case) == (0, "empty list"):
        theirs.topics.sort(key=lambda each: each.name)
    assert answer.endswith(wire.encode(theirs, capture.version))
    assert ours == theirs


def two_topics(*more: Any, brokers: int = 3, properties: dict[str, str] | None = None) -> MemoryNode:
    records = [*topic("a", A, [1, 2], [2, 3]), *topic("b", B, [3, 1])]
    return MemoryNode(properties, brokers=brokers, records=[*records, *more])


def ask(node: MemoryNode, names: list[str] | None, version: int = 12, create: bool = False, **peer: Any) -> Any:
    topics = None if names is None else [Asked(name=name) for name in names]
    request = MetadataRequest(topics=topics, allow_auto_topic_creation=create or version < 4)
    return node.call(request, version, **peer)


def codes(response: Any) -> list[tuple[str, int]]:
    return [(each.name, each.error_code) for each in response.topics]


@pytest.mark.parametrize("version", VERSIONS)
def test_all_topics_none_and_some(version: int) -> None:
    node = two_topics(properties={"auto.create.topics.enable": "false"})
    everything = ask(node, [] if version == 0 else None, version)
    assert codes(everything) == [("a", 0), ("b", 0)]
    if version >= 1:
        assert codes(ask(node, [], version)) == []
    some = ask(node, ["b", "no-such", "a", "b", "no such"], version)
    assert codes(some) == [("b", 0), ("a", 0), ("no-such", 3), ("no such", 17)]
    a, b = everything.topics
    assert [(p.partition_index, p.leader_id, p.replica_nodes, p.isr_nodes) for p in a.partitions] == [
        (0, 1, [1, 2], [1, 2]),
        (1, 2, [2, 3], [2, 3]),
    ]
    assert b.topic_id == (B if version >= 10 else ZERO_UUID)
    assert {p.leader_epoch for p in a.partitions} == {0 if version >= 7 else -1}
    assert everything.cluster_id == (CLUSTER_ID if version >= 2 else None)


@pytest.mark.parametrize("version", [12, 13])
def test_topics_by_id_and_names_beside_them_are_not_looked_at(version: int) -> None:
    unknown = Uuid(b"u" * 16)
    asked = [
        Asked(topic_id=unknown, name=None),
        Asked(topic_id=B, name="a"),
        Asked(name="a"),
        Asked(topic_id=B, name=None),
    ]
    response = two_topics().call(MetadataRequest(topics=asked), version)
    assert [(t.name, t.topic_id, t.error_code) for t in response.topics] == [(None, unknown, 100), ("b", B, 0)]


@pytest.mark.parametrize("version", [10, 11])
@pytest.mark.parametrize("asked", [Asked(name=None), Asked(topic_id=A, name="a")])
def test_versions_with_ids_that_cannot_be_asked_for(version: int, asked: Asked) -> None:
    response = two_topics().call(MetadataRequest(topics=[asked, Asked(name="b")]), version)
    assert codes(response) == [(asked.name or "", 42), ("b", 42)]
    assert (response.brokers, response.cluster_id, response.controller_id) == ([], None, -1)


@pytest.mark.parametrize("version", VERSIONS)
def test_brokers_that_are_alive_are_told_with_the_endpoint_that_was_asked(version: int) -> None:
    sasl = register_broker(3, rack="r")
    sasl.end_points.append(RegisterBrokerRecord.BrokerEndpoint(name="SASL", host="secure", port=7))
    node = two_topics(sasl, BrokerRegistrationChangeRecord(broker_id=2, broker_epoch=102, fenced=1))
    response = ask(node, ["a", "b"], version)
    assert [(b.node_id, b.host, b.port) for b in response.brokers] == [(1, "127.0.0.1", 19091), (3, "127.0.0.1", 19093)]
    assert [b.rack for b in response.brokers] == [None, "r" if version >= 1 else None]
    response = ask(node, ["a", "b"], version, listener="sasl")
    assert [(b.node_id, b.host, b.port) for b in response.brokers] == [(3, "secure", 7)]
    assert response.controller_id == (3 if version >= 1 else -1)
    a, b = response.topics
    assert [p.error_code for p in a.partitions] == [72 if version >= 6 else 5] * 2
    assert [p.leader_id for p in a.partitions] == [-1, -1]
    assert [(p.error_code, p.leader_id) for p in b.partitions] == [(9 if version == 0 else 0, 3)]


@pytest.mark.parametrize("version", VERSIONS)
def test_replicas_that_cannot_be_reached_are_offline_or_left_out(version: int) -> None:
    node = two_topics(
        BrokerRegistrationChangeRecord(broker_id=2, broker_epoch=102, fenced=1),
        PartitionChangeRecord(topic_id=A, partition_id=1, leader=3, isr=[3]),
    )
    zero, one = ask(node, ["a"], version).topics[0].partitions
    if version == 0:
        assert (zero.error_code, zero.replica_nodes, zero.isr_nodes) == (9, [1], [1])
        assert (one.error_code, one.replica_nodes, one.isr_nodes) == (9, [3], [3])
    else:
        assert (zero.error_code, zero.replica_nodes, zero.isr_nodes) == (0, [1, 2], [1, 2])
        assert (one.error_code, one.replica_nodes, one.isr_nodes) == (0, [2, 3], [3])
    assert [zero.offline_replicas, one.offline_replicas] == ([[2], [2]] if version >= 5 else [[], []])


def test_a_replica_in_a_lost_directory_is_offline_and_one_in_an_unknown_directory_is_not() -> None:
    lost, other = Uuid((2).to_bytes(16)), Uuid(b"o" * 16)
    change = PartitionChangeRecord(topic_id=A, partition_id=0, directories=[lost, other])
    node = two_topics(change)
    assert [p.offline_replicas for p in ask(node, ["a"]).topics[0].partitions] == [[1, 2], []]
    told = BrokerRegistrationChangeRecord(broker_id=2, broker_epoch=102, log_dirs=[other])
    assert [p.offline_replicas for p in ask(two_topics(change, told), ["a"]).topics[0].partitions] == [[1], []]


def test_a_leader_that_is_not_registered_is_not_available() -> None:
    node = two_topics(brokers=2)
    (partition,) = ask(node, ["b"]).topics[0].partitions
    assert (partition.error_code, partition.leader_id, partition.offline_replicas) == (5, -1, [3])


def change(node: MemoryNode, record: Message, version: int) -> None:
    async def run() -> None:
        await node.controller.write(lambda _: Result([(record, version)], None))

    asyncio.run(run())


def test_answers_follow_every_change() -> None:
    node = two_topics()

    def leaders() -> list[int]:
        found = [p.leader_id for t in ask(node, None).topics for p in t.partitions]
        assert found == [p.leader_id for t in ask(node, ["a", "b"]).topics for p in t.partitions]
        return found

    assert leaders() == [1, 2, 3]
    change(node, PartitionChangeRecord(topic_id=A, partition_id=1, leader=3), 2)
    assert leaders() == [1, 3, 3]
    change(node, BrokerRegistrationChangeRecord(broker_id=3, broker_epoch=103, fenced=1), 3)
    assert [b.node_id for b in ask(node, []).brokers] == [1, 2]
    assert [p.offline_replicas for t in ask(node, None).topics for p in t.partitions] == [[], [3], [3]]
    change(node, RemoveTopicRecord(topic_id=A), 0)
    assert codes(ask(node, None)) == [("b", 0)]
    assert codes(ask(node, ["a", "b"])) == [("b", 0), ("a", 3)]


def test_what_did_not_change_is_not_encoded_again() -> None:
    node = two_topics()
    view = node.encoded_topics.view(metadata_form(12), "PLAINTEXT", node.image.brokers)
    a, b = (view.topic(node.image.topics.by_id[topic_id]) for topic_id in (A, B))
    everything = at_once(view.all(node.image.topics))
    change(node, PartitionChangeRecord(topic_id=A, partition_id=1, leader=3), 2)
    assert node.encoded_topics.view(metadata_form(13), "PLAINTEXT", node.image.brokers) is view
    assert view.topic(node.image.topics.by_id[B]) is b
    assert view.topic(node.image.topics.by_id[A]) is not a
    changed = at_once(view.all(node.image.topics))
    assert changed is not everything
    assert at_once(view.all(node.image.topics)) is changed


def test_few_views_are_kept_and_those_in_use_longest() -> None:
    node = two_topics()
    encoded, brokers = node.encoded_topics, node.image.brokers
    first = encoded.view(metadata_form(12), "PLAINTEXT", brokers)
    for number in range(20):
        assert encoded.view(metadata_form(12), "PLAINTEXT", brokers) is first
        encoded.view(metadata_form(9), f"L{number}", brokers)
    others = [encoded.view(metadata_form(12), f"L{number}", brokers) for number in range(20)]
    assert len(set(map(id, others))) == 20
    assert encoded.view(metadata_form(12), "PLAINTEXT", brokers) is not first


@pytest.mark.parametrize("version", VERSIONS)
def test_internal_topics_are_marked(version: int) -> None:
    node = MemoryNode(records=[*topic("__consumer_offsets", A, [1]), *topic("__other", B, [1])])
    known = ask(node, ["__consumer_offsets", "__other"], version).topics
    assert [t.is_internal for t in known] == [version >= 1, False]


def test_names_that_may_not_be_described_are_refused_whether_they_exist_or_not() -> None:
    entry = allow("User:alice", AclOperation.WRITE, ResourceType.TOPIC, "b")
    node = node_before(98, [*topic("a", A, [1]), *topic("b", B, [1]), entry])
    assert codes(ask(node, None, principal=ALICE)) == [("b", 0)]
    assert codes(ask(node, [], 0, principal=ALICE)) == [("b", 0)]
    rows = ask(node, ["a", "b", "no-such", "__consumer_offsets"], create=True, principal=ALICE).topics
    assert [(t.name, t.topic_id, t.error_code, t.is_internal) for t in rows] == [
        ("b", B, 0, False),
        ("a", ZERO_UUID, 29, False),
        ("no-such", ZERO_UUID, 29, False),
        ("__consumer_offsets", ZERO_UUID, 29, False),
    ]
    by_id = [Asked(topic_id=each, name=None) for each in (A, B)]
    rows = node.call(MetadataRequest(topics=by_id), 12, principal=ALICE).topics
    assert [(t.name, t.topic_id, t.error_code) for t in rows] == [("b", B, 0), (None, A, 29)]


@pytest.mark.parametrize("version", range(8, 14))
def test_operations_are_told_when_asked_for(version: int) -> None:
    entries = [
        allow("User:alice", AclOperation.ALTER, ResourceType.TOPIC, "b"),
        allow("User:alice", AclOperation.DESCRIBE, ResourceType.TOPIC, "no-such"),
    ]
    node = node_before(98, [*topic("b", B, [1]), *entries])
    asked = MetadataRequest(
        topics=[Asked(name=name) for name in ("b", "no-such", "exists")],
        allow_auto_topic_creation=False,
        include_topic_authorized_operations=True,
    )
    if version in (8, 9, 10):
        asked.include_cluster_authorized_operations = True
    response = node.call(asked, version, principal=ALICE)
    bits = {each: 1 << each for each in AclOperation}
    assert [(t.name, t.topic_authorized_operations) for t in response.topics] == [
        ("b", bits[AclOperation.ALTER] | bits[AclOperation.DESCRIBE]),
        ("no-such", bits[AclOperation.DESCRIBE]),
        ("exists", NOT_ASKED),
    ]
    assert response.cluster_authorized_operations == (0 if version <= 10 else NOT_ASKED)


# --- creation


@pytest.mark.parametrize("version", VERSIONS)
def test_asking_for_a_missing_topic_begins_its_creation_and_finds_it_later(version: int) -> None:
    node = MemoryNode({"num.partitions": "3"})
    names = ["new", "bad name", "x.y"]
    assert codes(ask(node, names, version, create=True)) == [("new", 3), ("bad name", 17), ("x.y", 3)]
    assert node.image.topics.names == ("new", "x.y")
    assert codes(ask(node, ["new", "x_y"], version, create=True)) == [("new", 0), ("x_y", 3)]
    assert codes(ask(node, ["x_y"], version, create=True)) == [("x_y", 3)]  # it collides, and is never created
    made = ask(node, ["new"], version).topics[0]
    assert len(made.partitions) == 3


@pytest.mark.parametrize("version", range(4, 14))
def test_nothing_is_created_that_the_client_or_the_node_does_not_want(version: int) -> None:
    node = MemoryNode()
    assert codes(ask(node, ["new"], version)) == [("new", 3)]
    assert codes(ask(node, None, version, create=True)) == []
    assert node.written == []
    node = MemoryNode({"auto.create.topics.enable": "false"})
    assert codes(ask(node, ["new"], version, create=True)) == [("new", 3)]
    assert node.written == []


def test_creating_needs_create_on_the_cluster_or_the_topic() -> None:
    may_describe = allow("User:alice", AclOperation.DESCRIBE, ResourceType.TOPIC, "*")
    may_create = allow("User:alice", AclOperation.CREATE, ResourceType.TOPIC, "mine")
    names = ["mine", "theirs", "__consumer_offsets"]
    node = node_before(98, [may_describe, may_create])
    rows = ask(node, names, create=True, principal=ALICE).topics
    assert [(t.name, t.error_code, t.is_internal) for t in rows] == [
        ("mine", 3, False),
        ("theirs", 29, False),
        ("__consumer_offsets", 29, True),
    ]
    assert [r.name for r in node.written if isinstance(r, TopicRecord)] == ["mine"]
    on_cluster = allow("User:alice", AclOperation.CREATE, ResourceType.CLUSTER, CLUSTER_NAME)
    node = node_before(98, [may_describe, on_cluster], {"offsets.topic.replication.factor": "3"})
    assert codes(ask(node, names, create=True, principal=ALICE)) == [(name, 3) for name in names]
    assert set(names) <= set(node.image.topics.names)


def test_a_creation_that_fails_is_tried_again_by_the_next_who_asks(caplog: pytest.LogCaptureFixture) -> None:
    node = MemoryNode({"default.replication.factor": "2"})
    assert codes(ask(node, ["new"], create=True)) == [("new", 3)]
    assert "creating the topic new failed: 38 Unable to replicate the partition 2 time(s)" in caplog.text
    change(node, register_broker(2), 3)
    assert codes(ask(node, ["new"], create=True)) == [("new", 3)]
    assert codes(ask(node, ["new"], create=True)) == [("new", 0)]


def test_of_two_who_ask_at_once_one_creates() -> None:
    node = MemoryNode()

    async def run() -> None:
        node.topic_creation.begin(["new"])
        node.topic_creation.begin(["new", "other"])
        await node.topic_creation.wait_done()

    asyncio.run(run())
    assert [r.name for r in node.written if isinstance(r, TopicRecord)] == ["new", "other"]


def test_creations_end_with_the_node() -> None:
    node = MemoryNode()

    async def run() -> None:
        node.topic_creation.begin(["new"])
        await node.topic_creation.stop()

    asyncio.run(run())
    assert node.written == []


def test_kafka_s_own_topics_are_created_as_its_settings_say() -> None:
    config = server.load(None, {"offsets.topic.num.partitions": "7", "transaction.state.log.segment.bytes": "1048577"})
    made = {name: creatable_topic(name, config) for name in ("__consumer_offsets", "__transaction_state", "x")}
    made["__share_group_state"] = creatable_topic("__share_group_state", config)
    shape = {
        name: (t.num_partitions, t.replication_factor, {c.name: c.value for c in t.configs}) for name, t in made.items()
    }
    assert shape == {
        "__consumer_offsets": (
            7,
            1,
            {"cleanup.policy": "compact", "compression.type": "producer", "segment.bytes": "104857600"},
        ),
        "__transaction_state": (
            50,
            1,
            {
                "cleanup.policy": "compact",
                "compression.type": "uncompressed",
                "min.insync.replicas": "1",
                "segment.bytes": "1048577",
                "unclean.leader.election.enable": "false",
            },
        ),
        "__share_group_state": (
            50,
            1,
            {
                "cleanup.policy": "delete",
                "compression.type": "producer",
                "min.insync.replicas": "1",
                "retention.ms": "-1",
                "segment.bytes": "104857600",
            },
        ),
        "x": (-1, -1, {}),
    }
