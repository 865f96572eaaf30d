"""Replicas for another replication factor: examples, and what holds in every case."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations, product

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from barnabas.client.reassignment_plan import plan
from barnabas.client.replica_choice import (
    Key,
    NotEnoughBrokersError,
    PartitionReplicas,
    ReplicaCounts,
    with_replication_factor,
)
from barnabas.client.state import NO_LEADER
from barnabas.declared.difference import ChangeReplicationFactor, difference
from barnabas.declared.document import DeclaredTopic, Document
from barnabas.declared.observed import Observed, ObservedTopic

PROPERTIES = settings(max_examples=150, deadline=None, phases=(Phase.explicit, Phase.reuse, Phase.generate))

Brokers = Mapping[int, str | None]
Partitions = dict[Key, PartitionReplicas]

RACKS: Brokers = {1: "a", 2: "a", 3: "b", 4: "b"}
THREE: Brokers = {1: None, 2: None, 3: None}


def resized(
    replicas: Sequence[int],
    factor: int,
    brokers: Brokers = THREE,
    *,
    isr: Sequence[int] = (),
    leader_id: int = NO_LEADER,
    others: Mapping[int, int] | None = None,
) -> tuple[int, ...]:
    """The new replicas of one partition; `others` are the replicas of another topic on each broker."""
    filler = {("other", index): [each] for each, count in (others or {}).items() for index in _some(each, count)}
    counts = ReplicaCounts({("t", 0): replicas, **filler})
    partitions = {("t", 0): PartitionReplicas(replicas, isr, leader_id)}
    return with_replication_factor(partitions, factor, brokers, counts).get(("t", 0), tuple(replicas))


def _some(broker_id: int, count: int) -> range:
    return range(broker_id * 1000, broker_id * 1000 + count)


# --- examples


def test_a_replica_out_of_sync_is_dropped_before_one_in_sync() -> None:
    assert resized([1, 2, 3], 2, isr=[1, 3]) == (1, 3)
    assert resized([2, 1, 3], 2, isr=[1, 3]) == (1, 3), "even if it is the preferred leader"
    assert resized([1, 2, 3], 2, {1: "a", 2: "a", 3: "b"}, isr=[1, 2]) == (1, 2), "even if the others share a rack"


def test_a_replica_on_a_broker_that_is_not_running_is_dropped_first() -> None:
    assert resized([1, 3, 9], 2) == (1, 3)
    assert resized([9, 2, 3], 2) == (2, 3)
    assert resized([9, 2, 3], 2, isr=[9, 2]) == (2, 3)


def test_the_only_replica_in_sync_is_never_dropped() -> None:
    assert resized([1, 2, 3], 1, isr=[3]) == (3,)
    assert resized([1, 2, 9], 1, isr=[9]) == (9,), "only a broker that is not running has all records"
    assert resized([1, 2, 9], 2, isr=[9]) == (1, 9)
    assert resized([1, 8, 9], 2, isr=[8, 9]) == (1, 8), "one of two is enough"
    assert resized([1, 8, 9], 2, isr=[8, 9], leader_id=9) == (1, 9)


def test_a_rack_with_another_replica_gives_one_up() -> None:
    assert resized([1, 2, 3], 2, RACKS) == (1, 3)
    assert resized([3, 1, 2], 2, RACKS) == (3, 1)


def test_the_leader_stays_and_then_the_preferred_leader() -> None:
    assert resized([1, 2, 3], 1) == (1,)
    assert resized([1, 2, 3], 1, isr=[1, 2, 3], leader_id=3) == (3,)
    assert resized([1, 2, 3], 2, isr=[1, 2, 3], leader_id=3) == (1, 3)
    assert resized([1, 2, 3], 2, RACKS, isr=[1, 2, 3], leader_id=2) == (2, 3), "two in a rack would be worse"


def test_the_preferred_leader_stays_on_a_full_broker() -> None:
    assert resized([1, 2, 3], 2, isr=[1, 2, 3], leader_id=2, others={1: 9}) == (1, 2)


def test_full_brokers_give_replicas_up() -> None:
    assert resized([1, 2, 3], 2, others={2: 5, 3: 1}) == (1, 3)
    assert resized([1, 2, 3], 2, others={2: 1, 3: 5}) == (1, 2)


def test_replicas_are_added_in_other_racks_and_where_there_are_fewest() -> None:
    assert resized([1], 2, RACKS, others={3: 5, 4: 1}) == (1, 4)
    assert resized([1], 3, RACKS, others={2: 0, 3: 5, 4: 1}) == (1, 4, 2)
    with pytest.raises(NotEnoughBrokersError, match=r"^replication factor 5 needs 5 brokers, and there are 4$"):
        resized([1], 5, RACKS)


def test_the_load_of_the_topic_counts_before_that_of_all_topics() -> None:
    partitions = {("t", 0): PartitionReplicas([1]), ("t", 1): PartitionReplicas([2])}
    counts = ReplicaCounts({("t", 0): [1], ("t", 1): [2], **{("u", index): [3] for index in range(9)}})
    assert with_replication_factor(partitions, 2, THREE, counts) == {("t", 0): (1, 3), ("t", 1): (2, 1)}
    assert (counts.of_topic["t", 3], counts.overall[3]) == (1, 10)


def test_what_has_enough_replicas_is_left_alone() -> None:
    assert resized([1, 2, 9], 3) == (1, 2, 9)
    assert with_replication_factor({("t", 0): PartitionReplicas([1, 2, 3])}, 3, THREE) == {}


def test_replicas_on_brokers_that_are_not_running_stay_when_others_are_added() -> None:
    assert resized([1, 9], 3) == (1, 9, 2)
    assert resized([1, 9], 4) == (1, 9, 2, 3)
    with pytest.raises(NotEnoughBrokersError):
        resized([1, 9], 5)


# --- what holds in every case


def crowding(replicas: Iterable[int], brokers: Brokers) -> int:
    """The fewer replicas share a rack, the less; a broker that is not running has a rack of its own."""
    return sum(count**2 for count in Counter(brokers.get(each, each) for each in replicas).values())


def in_sync(replicas: Iterable[int], partition: PartitionReplicas, brokers: Brokers) -> int:
    """How many of these are in sync on running brokers."""
    return sum(partition.is_in_sync(each) and each in brokers for each in replicas)


def check(partition: PartitionReplicas, factor: int, brokers: Brokers, result: Sequence[int]) -> None:
    """Compare a result with all others that keep or drop as many replicas."""
    before = partition.replicas
    assert len(result) == len(set(result)) == factor
    assert [each for each in before if each in result] == [each for each in result if each in before], "their order"
    if factor >= len(before):
        assert result[: len(before)] == tuple(before), "all stay"
        rest = [each for each in brokers if each not in before]
        ways = [(*before, *added) for added in combinations(rest, factor - len(before))]
        assert crowding(result, brokers) == min(crowding(each, brokers) for each in ways)
        return
    assert set(result) <= set(before), "nothing is copied"
    ways = list(combinations(before, factor))
    most = in_sync(result, partition, brokers)
    assert most == max(in_sync(each, partition, brokers) for each in ways)
    if most and partition.leader_id in brokers and partition.is_in_sync(partition.leader_id):
        assert partition.leader_id in result
    ways = [each for each in ways if in_sync(each, partition, brokers) == most]
    if any(map(partition.is_in_sync, before)):
        assert any(map(partition.is_in_sync, result)), "or committed records are lost"
        ways = [way for way in ways if any(map(partition.is_in_sync, way))]
    running = sum(each in brokers for each in result)
    assert running == max(sum(each in brokers for each in way) for way in ways)
    ways = [way for way in ways if sum(each in brokers for each in way) == running]
    assert crowding(result, brokers) == min(crowding(each, brokers) for each in ways)


def small_cases() -> Iterator[tuple[PartitionReplicas, int, Brokers]]:
    """Every case of up to four replicas on four brokers, some of which run, in one, two or three racks."""
    ids = (1, 2, 3, 4)
    for racks in ("aaaa", "aabb", "abab", "aaab", "abcc", "baaa"):
        named = dict(zip(ids, racks, strict=True))
        for runs in product((True, False), repeat=4):
            brokers = {each: named[each] for each in ids if runs[each - 1]}
            for count in range(1, 5):
                for replicas in combinations(ids, count):
                    leaders = (NO_LEADER, *replicas)
                    for size in range(count + 1):
                        for isr, leader_id in product(combinations(replicas, size), leaders):
                            for factor in range(1, len({*brokers, *replicas}) + 1):
                                yield PartitionReplicas(replicas, isr, leader_id), factor, brokers


def test_every_small_case_is_as_good_as_the_best_that_brute_force_finds() -> None:
    count = 0
    for partition, factor, brokers in small_cases():
        made = with_replication_factor({("t", 0): partition}, factor, brokers)
        try:
            check(partition, factor, brokers, made.get(("t", 0), tuple(partition.replicas)))
        except AssertionError as error:
            raise AssertionError(f"{partition} to {factor} on {brokers}: {made}") from error
        count += 1
    assert count > 50_000


@st.composite
def situations(draw: st.DrawFn) -> tuple[Partitions, Brokers]:
    """Partitions on up to seven brokers, some of which run; topics have different replication factors."""
    names = st.sampled_from(["a", "b", "c", None]) if draw(st.booleans()) else st.none()
    ids = list(range(1, draw(st.integers(2, 7)) + 1))
    running = draw(st.sets(st.sampled_from(ids), min_size=1))
    brokers = {each: draw(names) for each in ids if each in running}
    partitions: Partitions = {}
    for topic in draw(st.lists(st.sampled_from("xyz"), min_size=1, max_size=3, unique=True)):
        for index in range(draw(st.integers(1, 6))):
            replicas = draw(st.permutations(ids))[: draw(st.integers(1, len(ids)))]
            isr = draw(st.lists(st.sampled_from(replicas), unique=True))
            leader_id = draw(st.sampled_from([NO_LEADER, *isr]))
            partitions[topic, index] = PartitionReplicas(tuple(replicas), tuple(isr), leader_id)
    return partitions, brokers


def most(partitions: Partitions, brokers: Brokers) -> int:
    """The largest replication factor that is possible for all."""
    return min(len({*brokers, *each.replicas}) for each in partitions.values())


@PROPERTIES
@given(situations(), st.data())
def test_the_best_replicas_stay_whatever_the_loads_are(
    situation: tuple[Partitions, Brokers], data: st.DataObject
) -> None:
    partitions, brokers = situation
    factor = data.draw(st.integers(1, most(partitions, brokers)))
    made = with_replication_factor(partitions, factor, brokers)
    for key, partition in partitions.items():
        check(partition, factor, brokers, made.get(key, tuple(partition.replicas)))
    assert set(made) == {key for key, partition in partitions.items() if len(partition.replicas) != factor}
    again = {key: each._replace(replicas=made.get(key, each.replicas)) for key, each in partitions.items()}
    assert with_replication_factor(again, factor, brokers) == {}


@PROPERTIES
@given(situations(), st.data())
def test_a_declared_cluster_and_a_reassignment_decide_the_same(
    situation: tuple[Partitions, Brokers], data: st.DataObject
) -> None:
    partitions, brokers = situation
    factor = data.draw(st.integers(1, most(partitions, brokers)))
    topics = sorted({topic for topic, _ in partitions})
    chosen = data.draw(st.lists(st.sampled_from(topics), min_size=1, unique=True))
    some = {key: each for key, each in partitions.items() if key[0] in chosen}
    rest = Counter(each for key, row in partitions.items() if key not in some for each in row.replicas)
    planned = plan(
        {key: each.replicas for key, each in some.items()},
        brokers,
        replication_factor=factor,
        others=rest,
        isr={key: each.isr for key, each in some.items()},
        leaders={key: each.leader_id for key, each in some.items()},
    ).targets

    def of(topic: str) -> ObservedTopic:
        rows = {index: each for (name, index), each in partitions.items() if name == topic}
        return ObservedTopic(
            topic,
            {index: tuple(each.replicas) for index, each in rows.items()},
            {index: tuple(each.isr) for index, each in rows.items()},
            leaders={index: each.leader_id for index, each in rows.items()},
        )

    document = Document(topics={name: DeclaredTopic(name, replication_factor=factor) for name in chosen})
    found = difference(document, Observed(topics={name: of(name) for name in topics}, racks=brokers))
    assert not found.problems
    applied: dict[Key, tuple[int, ...]] = {}
    for change in found.changes:
        assert isinstance(change, ChangeReplicationFactor)
        applied |= {(change.topic, index): tuple(each) for index, each in change.replicas.items()}
    assert applied == planned
