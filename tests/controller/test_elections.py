"""Elections that are asked for, and those that the controller holds by itself."""

from __future__ import annotations

import pytest

from barnabas.controller import elections, operation_size
from barnabas.wire import KafkaError, Message, Uuid
from barnabas.wire.records.metadata import BrokerRegistrationChangeRecord, ConfigRecord, PartitionChangeRecord
from tests.controller.situations import TOPIC, Story, partition, topic


def fence(*broker_ids: int) -> list[Message]:
    return [BrokerRegistrationChangeRecord(broker_id=i, broker_epoch=100 + i, fenced=1) for i in broker_ids]


def codes(elected: elections.Elected) -> list[tuple[str, list[tuple[int, int]]]]:
    return [(name, [(index, error.code if error else 0) for index, error in rows]) for name, rows in elected]


def test_the_preferred_leader_is_elected_where_it_is_in_sync() -> None:
    story = Story(topic(partition([2, 1], [1, 2]), partition([1, 2]), partition([3, 1], [1])))
    assert codes(story.decide(elections.elect, 0, [("t", [0, 1, 2, 3]), ("u", [0])])) == [
        ("t", [(0, 0), (1, 84), (2, 80), (3, 3)]),
        ("u", [(0, 3)]),
    ]
    assert story.written == [PartitionChangeRecord(topic_id=TOPIC, partition_id=0, leader=2)]
    assert (story.partition(0).leader, story.partition(0).leader_epoch) == (2, 6)


def test_of_all_only_what_was_not_as_wished_is_listed() -> None:
    records = topic(partition([2, 1], [1, 2]), partition([1, 2]), partition([3, 1], [1]))
    records += topic(partition([1]), name="a", topic_id=Uuid(b"a" * 16))
    story = Story(records)
    assert codes(story.decide(elections.elect, 0, None)) == [("a", []), ("t", [(0, 0), (2, 80)])]


def test_an_unclean_election_is_for_leaderless_partitions_only() -> None:
    partitions = partition([1, 2], [], eligible_leader_replicas=[1]), partition([2]), partition([1, 3], [])
    story = Story([*topic(*partitions), *fence(1, 3)])
    assert codes(story.decide(elections.elect, 1, [("t", [0, 1, 2])])) == [("t", [(0, 0), (1, 84), (2, 83)])]
    after = story.partition(0)
    assert (after.leader, after.isr, after.elr, after.leader_recovery_state) == (2, (2,), (), 1)


def test_a_partition_that_is_named_twice_is_elected_twice() -> None:
    story = Story(topic(partition([2, 1], [1, 2])))
    assert codes(story.decide(elections.elect, 0, [("t", [0, 0])])) == [("t", [(0, 0), (0, 0)])]
    assert story.partition(0).leader_epoch == 7


@pytest.mark.parametrize("election_type", [-1, 2, 7])
def test_there_are_two_types_of_elections(election_type: int) -> None:
    with pytest.raises(KafkaError, match=f"INVALID_REQUEST: Unknown election type {election_type}"):
        Story().decide(elections.elect, election_type, None)


def test_an_election_that_is_too_large_for_one_step_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operation_size, "MAX_RECORDS_PER_USER_OPERATION", 1)
    story = Story(topic(*(partition([2, 1], [1, 2]) for _ in range(2))))
    with pytest.raises(KafkaError, match="POLICY_VIOLATION: Unable to perform excessively large batch operation"):
        story.decide(elections.elect, 0, None)


def test_leadership_goes_back_to_the_preferred_replicas_by_itself() -> None:
    story = Story(topic(partition([2, 1], [1, 2]), partition([3, 1], [1]), partition([1])))
    assert story.decide(elections.balance_leaders) is False
    assert story.written == [PartitionChangeRecord(topic_id=TOPIC, partition_id=0, leader=2)]
    story.decide(elections.balance_leaders)
    assert story.written == []


def test_balancing_is_done_in_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(elections, "MAX_ELECTIONS_AT_ONCE", 2)
    story = Story(topic(*(partition([2, 1], [1, 2]) for _ in range(3))))
    assert story.decide(elections.balance_leaders) is True
    assert len(story.written) == 2
    assert story.decide(elections.balance_leaders) is False
    assert len(story.written) == 1


def test_balancing_can_be_switched_off() -> None:
    story = Story(topic(partition([2, 1], [1, 2])), properties={"auto.leader.rebalance.enable": "false"})
    assert story.decide(elections.balance_leaders) is False
    assert story.written == []


UNCLEAN = ConfigRecord(resource_type=4, resource_name="", name="unclean.leader.election.enable", value="true")


@pytest.mark.parametrize(
    ("topic_setting", "cluster_wide", "in_properties", "leader"),
    [
        (None, False, False, -1),
        ("true", False, False, 2),
        (None, True, False, 2),
        (None, False, True, 2),
        ("false", True, True, -1),
    ],
)
def test_unclean_elections_are_held_where_a_topic_allows_them(
    topic_setting: str | None, cluster_wide: bool, in_properties: bool, leader: int
) -> None:
    configs = {} if topic_setting is None else {"unclean.leader.election.enable": topic_setting}
    records = topic(partition([1, 2], [], eligible_leader_replicas=[1]), configs=configs)
    properties = {"unclean.leader.election.enable": "true"} if in_properties else {}
    story = Story([*records, *([UNCLEAN] if cluster_wide else []), *fence(1)], properties=properties)
    assert story.decide(elections.elect_unclean_leaders) is False
    assert story.partition(0).leader == leader


def test_a_text_that_no_broker_takes_does_not_stop_elections() -> None:
    broken = ConfigRecord(resource_type=4, resource_name="", name="unclean.leader.election.enable", value="perhaps")
    story = Story([*topic(partition([1, 2], [])), broken, *fence(1)])
    story.decide(elections.elect_unclean_leaders)
    assert story.partition(0).leader == -1
