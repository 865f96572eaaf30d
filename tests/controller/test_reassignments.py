"""Reassignments: what one request makes of partitions."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas.controller import reassignments
from barnabas.steps import at_once
from barnabas.wire.records.metadata import BrokerRegistrationChangeRecord, PartitionChangeRecord
from tests.controller.situations import TOPIC, Story, partition, topic


def alter(story: Story, replicas: list[int] | None, *, same_factor: bool = False) -> tuple[int, str | None]:
    ((name, ((index, error),)),) = story.decide(reassignments.alter, [("t", [(0, replicas)])], not same_factor)
    assert (name, index) == ("t", 0)
    return (error.code, error.message) if error else (0, None)


def shape(story: Story) -> tuple[Any, ...]:
    partition = story.partition()
    return partition.replicas, partition.adding_replicas, partition.removing_replicas, partition.isr, partition.leader


def test_new_replicas_stand_first_and_old_ones_stay_until_these_are_in_sync() -> None:
    story = Story(topic(partition([1, 2])))
    assert alter(story, [4, 3]) == (0, None)
    assert shape(story) == ((4, 3, 1, 2), (3, 4), (1, 2), (1, 2), 1)
    assert story.partition().leader_epoch == 5


def test_a_new_order_is_taken_at_once() -> None:
    story = Story(topic(partition([1, 2])))
    alter(story, [2, 1])
    assert shape(story) == ((2, 1), (), (), (1, 2), 1)


def test_what_is_so_already_writes_nothing() -> None:
    story = Story(topic(partition([1, 2])))
    assert alter(story, [1, 2]) == (0, None)
    assert story.written == []


def test_replicas_that_are_only_taken_away_go_at_once_with_a_new_leader_epoch() -> None:
    story = Story(topic(partition([1, 2, 3])))
    alter(story, [2, 3])
    assert shape(story) == ((2, 3), (), (), (2, 3), 2)
    story = Story(topic(partition([1, 2, 3])))
    alter(story, [1, 2])
    assert (shape(story), story.partition().leader_epoch) == (((1, 2), (), (), (1, 2), 1), 6)


def test_the_last_in_sync_replica_is_not_taken_away() -> None:
    story = Story(topic(partition([1, 2], [1])))
    alter(story, [2])
    assert shape(story) == ((2, 1), (), (1,), (1,), 1)


def test_a_reassignment_can_be_changed_on_the_way() -> None:
    story = Story(topic(partition([1, 2])))
    alter(story, [3, 4])
    alter(story, [4, 2])
    assert shape(story) == ((4, 2, 1, 3), (3, 4), (1, 3), (1, 2), 1)


def test_a_cancelled_reassignment_leaves_the_replicas_from_before() -> None:
    story = Story(topic(partition([1, 2])))
    alter(story, [3, 4])
    assert alter(story, None) == (0, None)
    assert shape(story) == ((1, 2), (), (), (1, 2), 1)
    assert alter(story, None)[0] == 85


def test_a_cancel_that_would_lose_records_needs_unclean_elections() -> None:
    moving = {"adding_replicas": [2], "removing_replicas": [1]}
    story = Story(topic(partition([2, 1], [2], **moving)))
    message = "Unable to revert partition assignment for t:0 because it would require an unclean leader election."
    assert alter(story, None) == (39, message)
    story = Story(topic(partition([2, 1], [2], **moving), configs={"unclean.leader.election.enable": "true"}))
    assert alter(story, None) == (0, None)
    assert shape(story) == ((1,), (), (), (1,), 1)


def test_a_cancel_where_all_replicas_are_added_ones_is_invalid() -> None:
    story = Story(topic(partition([2], adding_replicas=[2])))
    assert alter(story, None) == (39, "Invalid replica assignment: addingReplicas contains all replicas.")


@pytest.mark.parametrize(
    ("replicas", "message"),
    [
        ([], "The manual partition assignment includes an empty replica list."),
        ([1, 9], "The manual partition assignment includes broker 9, but no such broker is registered."),
        ([1, 1], "The manual partition assignment includes the broker 1 more than once."),
    ],
)
def test_replicas_must_be_registered_and_named_once(replicas: list[int], message: str) -> None:
    story = Story(topic(partition([1, 2])))
    assert alter(story, replicas) == (39, message)
    assert story.written == []


def test_fenced_brokers_may_be_chosen() -> None:
    story = Story([*topic(partition([1])), BrokerRegistrationChangeRecord(broker_id=2, broker_epoch=102, fenced=1)])
    assert alter(story, [2]) == (0, None)
    assert shape(story) == ((2, 1), (2,), (1,), (1,), 1)


def test_the_number_of_replicas_can_be_held() -> None:
    story = Story(topic(partition([1, 2])))
    assert alter(story, [1], same_factor=True) == (38, "The replication factor is changed from 2 to 1")
    assert alter(story, [3, 4], same_factor=True) == (0, None)
    # Four replicas now, but two when it is done.
    assert alter(story, [2, 3, 4], same_factor=True) == (38, "The replication factor is changed from 2 to 3")
    assert alter(story, [2, 4], same_factor=True) == (0, None)


def test_beyond_the_size_of_one_step_partitions_fail_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reassignments, "MAX_RECORDS_PER_USER_OPERATION", 1)
    story = Story(topic(partition([1, 2]), partition([1, 2]), partition([1, 2])))
    ((_, rows),) = story.decide(reassignments.alter, [("t", [(0, [2, 1]), (1, [2, 1]), (2, [1, 2])])])
    assert [error.code if error else 0 for _, error in rows] == [0, -1, 0]
    assert [r.partition_id for r in story.written if isinstance(r, PartitionChangeRecord)] == [0]


def test_what_is_going_on_is_found_by_name_or_at_all() -> None:
    moving = {"adding_replicas": [2], "removing_replicas": [1]}
    story = Story(topic(partition([2, 1], [1], **moving), partition([1, 2])))
    wanted = [("t", [1, 0, 9, -1]), ("nope", [0])]
    for found in (at_once(reassignments.ongoing(story.image, each)) for each in (wanted, None)):
        assert [[(p.topic.topic_id, p.partition_id) for p in partitions] for partitions in found] == [[(TOPIC, 0)]]
    assert at_once(reassignments.ongoing(story.image, [("t", [1])])) == []
