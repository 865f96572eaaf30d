"""Rehearsals on images made here: what happens one after another, and what comes of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from barnabas.config import server
from barnabas.declared.document import read_document
from barnabas.metadata.image import EMPTY_IMAGE
from barnabas.metadata.topics import Partition
from barnabas.operations.errors import OperationError
from barnabas.operations.rehearsal.declared import Apply
from barnabas.operations.rehearsal.happenings import (
    DeleteTopics,
    Elect,
    FailLogDir,
    Happening,
    Kill,
    KillRack,
    Reassign,
    Start,
    StartRack,
    Stop,
    Unregister,
)
from barnabas.operations.rehearsal.outcome import BrokerState, Health, Sizes
from barnabas.operations.rehearsal.rehearse import Rehearsal, Scene, rehearse
from barnabas.wire import Uuid
from barnabas.wire.records.metadata import RegisterBrokerRecord
from tests.broker.harness import register_broker
from tests.controller.situations import TOPIC, Story, partition, topic

THREE = [partition([1, 2, 3]), partition([2, 3, 1]), partition([3, 4, 1])]


def scene(
    *records: object,
    configs: Mapping[str, str] | None = None,
    voters: tuple[int, ...] = (),
    sizes: Sizes | None = None,
    racks: Mapping[int, str] | None = None,
) -> Scene:
    registered = [register_broker(broker_id, rack=(racks or {}).get(broker_id)) for broker_id in range(1, 5)]
    for each in registered:
        each.features = [
            RegisterBrokerRecord.BrokerFeature(name=name, min_supported_version=0, max_supported_version=level)
            for name, level in (("metadata.version", 30), ("eligible.leader.replicas.version", 1))
        ]
    parts = list(records) or [partition(each.replicas) for each in THREE]
    story = Story([*registered, *topic(*parts, configs=configs)])  # type: ignore[arg-type]
    return Scene(story.image, story.config, voters, sizes)


def after(found: Rehearsal, index: int = 0) -> Partition:
    return found.image.topics.by_id[TOPIC].partitions[index]


def whats(found: Rehearsal) -> list[str]:
    return [step.what for step in found.steps]


def test_a_dead_node_loses_its_leaderships_and_leaves_every_isr() -> None:
    begin = scene()
    found = rehearse(begin, [Kill([1])])
    assert whats(found) == ["node 1 dies"]
    assert [type(record).__name__ for record, _ in found.steps[0].records] == [
        *["PartitionChangeRecord"] * 3,
        "BrokerRegistrationChangeRecord",
    ]
    assert [after(found, each).leader for each in range(3)] == [2, 2, 3]
    assert not any(1 in after(found, each).isr for each in range(3))
    states = {each.broker_id: (each.before, each.after) for each in found.outcome.brokers}
    assert states[1] == (BrokerState("ok", 1, 3, None), BrokerState("fenced", 0, 3, None))
    assert states[2] == (BrokerState("ok", 1, 2, None), BrokerState("ok", 2, 2, None))
    assert found.outcome.worse == []
    assert begin.image.brokers[1].fenced is False, "the metadata it began with is as before"


def test_partitions_below_the_minimum_and_without_a_leader_are_worse() -> None:
    begin = scene(partition([1, 2]), partition([1]), partition([2, 3]), configs={"min.insync.replicas": "2"})
    found = rehearse(begin, [Kill([1])])
    # A partition with one replica needs only that one.
    assert [(each.partition, each.after.health) for each in found.outcome.worse] == [
        (0, Health.BELOW_MIN_ISR),
        (1, Health.OFFLINE),
    ]
    assert found.outcome.partitions[0].after.elr == (1,), "it has all acknowledged records"


def test_a_node_that_returns_catches_up_and_leads_where_it_is_preferred() -> None:
    found = rehearse(scene(), [Kill([1]), Start([1])])
    assert whats(found)[:3] == ["node 1 dies", "node 1 returns", "followers catch up"]
    assert "preferred replicas lead again" in whats(found)[3]
    for index, row in enumerate(THREE):
        assert set(after(found, index).isr) == set(row.replicas)
        assert after(found, index).leader == row.replicas[0]
    assert found.outcome.worse == []
    at_once = rehearse(scene(), [Kill([1]), Start([1])], at_once=True)
    assert whats(at_once) == ["node 1 dies", "node 1 returns"]
    assert 1 not in after(at_once).isr


def test_a_clean_stop_hands_over_before_the_node_is_fenced() -> None:
    found = rehearse(scene(), [Stop(1)])
    (step,) = found.steps
    names = [type(record).__name__ for record, _ in step.records]
    assert names[0] == names[-1] == "BrokerRegistrationChangeRecord"  # in controlled shutdown first, and fenced at last
    assert [after(found, each).leader for each in range(3)] == [2, 2, 3]


def test_after_an_unclean_stop_a_replica_is_not_eligible_but_after_a_clean_one_it_is() -> None:
    rows = [partition([1, 2])]
    lost = rehearse(scene(*rows, configs={"min.insync.replicas": "2"}), [Kill([1]), Stop(2), Start([1])])
    assert (after(lost).leader, after(lost).elr) == (-1, (2,))
    rows = [partition([1, 2])]
    kept = rehearse(scene(*rows, configs={"min.insync.replicas": "2"}), [Stop(1), Stop(2), Start([1])])
    assert after(kept).leader == 1


def test_an_unclean_election_is_said_to_lose_records() -> None:
    settings = {"unclean.leader.election.enable": "true"}
    found = rehearse(scene(partition([1, 2], isr=[1]), configs=settings), [Kill([1])])
    assert after(found).leader == 2
    assert [each.may_lose_records for each in found.outcome.partitions] == [True]
    assert found.outcome.worse
    without = rehearse(scene(partition([1, 2], isr=[1])), [Kill([1])])
    assert after(without).leader == -1


def test_racks_die_and_return_as_a_whole() -> None:
    racks = {1: "a", 2: "b", 3: "c", 4: "a"}
    found = rehearse(scene(racks=racks), [KillRack("a")])
    assert whats(found)[0] == "rack a is lost: nodes 1, 4"
    assert [each.after.status for each in found.outcome.brokers] == ["fenced", "ok", "ok", "fenced"]
    back = rehearse(scene(racks=racks), [KillRack("a"), StartRack("a")])
    assert {each.after.status for each in back.outcome.brokers} == {"ok"}
    assert set(after(back, 2).isr) == {3, 4, 1}


def test_without_a_majority_of_voters_nothing_is_decided_and_the_dead_are_not_reached() -> None:
    found = rehearse(scene(voters=(1, 2, 3)), [Kill([1]), Kill([2])])
    assert [len(step.records) > 0 for step in found.steps] == [True, False]
    assert found.refusals == ["1 of 3 voters of the metadata quorum would be left: nothing could be decided"]
    # Node 2 leads two partitions in the metadata, and it is dead.
    assert [each.partition for each in found.outcome.partitions if each.after.health is Health.OFFLINE] == [0, 1]
    back = rehearse(scene(voters=(1, 2, 3)), [Kill([1]), Kill([2]), Start([2])])
    assert after(back, 1).leader == 2


def test_a_reassignment_is_copied_and_then_the_old_replicas_are_removed() -> None:
    sizes = {("t", 0): {1: 1000, 2: 900, 3: 900}, ("t", 1): {2: 50}, ("t", 2): {3: 7}}
    found = rehearse(scene(sizes=sizes), [Reassign({("t", 0): [4, 2, 3]})])
    assert after(found).replicas == (4, 2, 3)
    assert not after(found).is_reassigning
    assert found.outcome.bytes_to_copy == 1000, "as much as the leader has"
    states = {each.broker_id: each for each in found.outcome.brokers}
    assert (states[4].bytes_in, states[1].after.bytes) == (1000, 0)
    unknown = rehearse(scene(), [Reassign({("t", 0): [4, 2, 3]})])
    assert not unknown.outcome.are_bytes_known


def test_a_reassignment_to_a_dead_broker_waits_for_it() -> None:
    found = rehearse(scene(), [Kill([4]), Reassign({("t", 0): [4, 2, 3], ("t", 1): [9]})])
    assert after(found).is_reassigning
    assert after(found).replicas == (4, 2, 3, 1)
    assert found.refusals[0].startswith("t-1: INVALID_REPLICA_ASSIGNMENT: ")
    assert not after(rehearse(scene(), [Kill([4]), Reassign({("t", 0): [4, 2, 3]}), Start([4])])).is_reassigning


def test_topics_are_deleted_brokers_unregistered_and_leaders_elected() -> None:
    found = rehearse(scene(), [DeleteTopics(["t", "none"])])
    assert {each.after.health for each in found.outcome.partitions} == {Health.DELETED}
    assert found.refusals == ["none: UNKNOWN_TOPIC_OR_PARTITION: This server does not host this topic-partition."]
    found = rehearse(scene(), [Unregister(1), Unregister(9)])
    assert found.outcome.brokers[0].after.status == "missing"
    assert found.refusals == ["BROKER_ID_NOT_REGISTERED: Broker ID 9 is not currently registered"]
    found = rehearse(scene(partition([1, 2], leader=2)), [Elect("preferred")])
    assert after(found).leader == 1


def test_a_failed_log_dir_takes_its_replicas_out_of_the_isr() -> None:
    one, other = Uuid(b"1" * 16), Uuid(b"2" * 16)
    broker = register_broker(1)
    broker.log_dirs = [one, other]
    rows = [partition([1, 2]), partition([1, 2])]
    for row, directory in zip(rows, (one, other), strict=True):
        row.directories = [directory, row.directories[1]]
    story = Story([broker, *topic(*rows)])
    found = rehearse(Scene(story.image, story.config), [FailLogDir(1, one)])
    assert [after(found, each).leader for each in (0, 1)] == [2, 1]
    with pytest.raises(OperationError, match="it has no log dir"):
        rehearse(Scene(story.image, story.config), [FailLogDir(2, one)])


DECLARED = """
topics:
  t: {partitions: 5, replicationFactor: 2, configs: {min.insync.replicas: 2}}
  new: {partitions: 2, replicationFactor: 3}
  gone: {state: absent}
users:
  u: {SCRAM-SHA-512: {password: {env: NOT_SET}}}
acls:
  - {principal: User:u, operations: [READ], resource: topic:t}
quotas:
  - {entity: {user: u}, quotas: {producer_byte_rate: 1000}}
brokers:
  <default>: {log.cleaner.threads: 2}
"""


def test_a_declared_cluster_is_applied_as_apply_would() -> None:
    apply = Apply(read_document(DECLARED, "cluster.yaml"))
    found = rehearse(scene(), [apply])
    assert found.refusals == []
    assert {len(each.replicas) for each in found.image.topics.by_id[TOPIC].partitions[:3]} == {2}
    assert len(found.image.topics.by_id[TOPIC].partitions) == 5
    assert found.image.topics.get("new") is not None
    assert {type(record).__name__ for record, _ in found.steps[0].records} >= {
        *("TopicRecord", "PartitionRecord", "ConfigRecord", "ClientQuotaRecord", "UserScramCredentialRecord"),
        *("AccessControlEntryRecord", "PartitionChangeRecord"),
    }
    again = rehearse(Scene(found.image, scene().config), [apply])
    assert [type(record).__name__ for record, _ in again.steps[0].records if "Config" in type(record).__name__] == []


def test_a_declared_cluster_that_cannot_be_is_refused() -> None:
    apply = Apply(read_document("topics:\n  t: {replicationFactor: 9}\n", "cluster.yaml"))
    found = rehearse(scene(), [apply])
    assert "cluster.yaml" in found.refusals[0]
    assert found.steps[0].records == []


@pytest.mark.parametrize(
    ("happening", "text"),
    [
        (lambda: Kill([9]), "node 9: there is no such node; there are 1, 2, 3, 4"),
        (lambda: KillRack("x"), "rack x: there is no such rack; no broker has one"),
        (lambda: Start([1]), "node 1: it runs already"),
    ],
)
def test_what_the_cluster_does_not_have_is_an_error(happening: Callable[[], Happening], text: str) -> None:
    with pytest.raises(OperationError) as caught:
        rehearse(scene(), [happening()])
    assert str(caught.value) == text
    with pytest.raises(OperationError, match="dead already"):
        rehearse(scene(), [Kill([1]), Kill([1])])


def test_an_empty_metadata_log_cannot_be_rehearsed() -> None:
    with pytest.raises(OperationError, match=r"no metadata\.version yet"):
        rehearse(Scene(EMPTY_IMAGE, server.load()), [Kill([1])])
