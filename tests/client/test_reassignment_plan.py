"""Plans of reassignments: examples, and what holds of every plan."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from barnabas.client import reassignment_plan
from barnabas.client.reassignment_plan import PlanError, ReassignmentPlan, plan
from barnabas.client.replica_choice import Key

PROPERTIES = settings(max_examples=80, deadline=None, phases=(Phase.explicit, Phase.reuse, Phase.generate))

Assignment = dict[Key, tuple[int, ...]]

THREE: dict[int, str | None] = {1: None, 2: None, 3: None}
RACKS: dict[int, str | None] = {1: "a", 2: "a", 3: "b", 4: "b", 5: "c", 6: "c"}


def after(made: ReassignmentPlan) -> Assignment:
    return {key: made.targets.get(key, replicas) for key, replicas in made.current.items()}


def moved(made: ReassignmentPlan) -> int:
    """How many replicas have to be copied."""
    return sum(len(made.adding(key)) for key in made.targets)


def counts(assignment: Mapping[Key, Sequence[int]], brokers: Mapping[int, str | None]) -> tuple[list[int], list[int]]:
    """Replicas and leaders of each broker."""
    replicas = Counter(each for row in assignment.values() for each in row)
    leaders = Counter(row[0] for row in assignment.values())
    return [replicas[each] for each in brokers], [leaders[each] for each in brokers]


def is_level(numbers: Sequence[int]) -> bool:
    return max(numbers) - min(numbers) <= 1


def topic(*replicas: Sequence[int], name: str = "t") -> Assignment:
    return {(name, index): tuple(each) for index, each in enumerate(replicas)}


# --- examples


def test_what_is_level_is_left_alone() -> None:
    current = topic((1, 2), (2, 3), (3, 1))
    assert plan(current, THREE, rebalance=True).targets == {}


def test_without_a_wish_there_is_nothing_to_do() -> None:
    assert plan(topic((1, 2), (1, 2), (1, 2)), THREE).targets == {}


def test_leaders_are_levelled_without_moving_bytes() -> None:
    made = plan(topic((1, 2, 3), (1, 2, 3), (1, 2, 3)), THREE, rebalance=True)
    assert moved(made) == 0
    assert counts(after(made), THREE)[1] == [1, 1, 1]
    assert len(made.targets) == 2


def test_one_broker_more_gets_its_share_and_nobody_else_gets_anything() -> None:
    made = plan(topic(*[(1, 2), (2, 1)] * 3), THREE, add=[3])
    assert moved(made) == 4
    assert all(made.adding(key) == (3,) for key in made.targets)
    assert counts(after(made), THREE) == ([4, 4, 4], [2, 2, 2])


def test_to_add_a_broker_moves_nothing_between_the_others() -> None:
    made = plan(topic(*[(1,)] * 6), {1: None, 2: None, 3: None}, add=[3])
    assert {made.adding(key) for key in made.targets} == {(3,)}
    assert counts(after(made), THREE)[0] == [3, 0, 3]


def test_a_drained_broker_has_nothing_left_and_the_rest_stays() -> None:
    current = topic((1, 2), (2, 3), (3, 1), (1, 3))
    made = plan(current, {**THREE, 4: None}, drain=[3])
    assert all(3 not in replicas for replicas in after(made).values())
    assert ("t", 0) not in made.targets
    assert moved(made) == 3
    assert made.targets["t", 1][0] == 2, "who stays, leads on"


def test_a_broker_that_does_not_run_can_be_drained_but_keeps_its_replicas_otherwise() -> None:
    current = topic((9, 1), (2, 9))
    assert plan(current, {1: None, 2: None}, rebalance=True).targets == {}
    assert plan(current, {1: None, 2: None}, drain=[9]).targets == topic((1, 2), (2, 1))


def test_more_replicas_are_added_behind_the_others_in_other_racks() -> None:
    made = plan(topic((1,), (3,), (5,), (2,), (4,), (6,)), RACKS, replication_factor=3)
    for (_, index), replicas in made.targets.items():
        assert replicas[0] == made.current["t", index][0]
        assert {RACKS[each] for each in replicas} == {"a", "b", "c"}
    assert counts(after(made), RACKS)[0] == [3] * 6


def test_fewer_replicas_keep_the_leader_and_the_racks() -> None:
    made = plan(topic((1, 2, 3), (3, 4, 1)), RACKS, replication_factor=2)
    assert made.targets == topic((1, 3), (3, 1))
    assert moved(made) == 0


def test_fewer_replicas_give_up_brokers_that_do_not_run_first() -> None:
    assert plan(topic((1, 9, 2)), {1: None, 2: None}, replication_factor=2).targets == topic((1, 2))


def test_fewer_replicas_give_up_those_out_of_sync() -> None:
    isr = {("t", 0): (1, 3), ("t", 1): (2, 1)}
    made = plan(topic((1, 2, 3), (3, 2, 1)), THREE, replication_factor=2, isr=isr)
    assert made.targets == topic((1, 3), (2, 1))
    assert plan(topic((1, 2, 3)), THREE, replication_factor=1, leaders={("t", 0): 3}).targets == topic((3,))


def test_another_number_of_replicas_alone_levels_nothing() -> None:
    made = plan(topic(*[(1,)] * 6), THREE, replication_factor=3)
    assert counts(after(made), THREE) == ([6, 6, 6], [6, 0, 0])


def test_a_drained_replica_in_sync_is_copied_before_one_out_of_sync_takes_its_place() -> None:
    current, isr = topic((1, 2, 3)), {("t", 0): (1, 2)}
    four: dict[int, str | None] = {**THREE, 4: None}
    assert plan(current, four, drain=[2], replication_factor=2, isr=isr).targets == topic((1, 4))
    assert plan(current, four, drain=[3], replication_factor=2, isr=isr).targets == topic((1, 2))
    assert plan(current, four, drain=[1, 2], replication_factor=1, isr=isr).targets == topic((4,))


def test_where_there_is_no_broker_to_copy_to_the_rest_of_the_replicas_has_to_do() -> None:
    isr = {("t", 0): (1, 2)}
    assert plan(topic((1, 2, 3)), THREE, drain=[2], replication_factor=2, isr=isr).targets == topic((1, 3))
    two: dict[int, str | None] = {1: None, 2: None}
    assert plan(topic((1, 9, 2)), two, drain=[2], replication_factor=2, isr=isr).targets == topic((1, 9))


def test_a_rebalance_does_not_mend_racks_with_a_replica_out_of_sync() -> None:
    racks: dict[int, str | None] = {1: "a", 2: "a", 3: "b"}
    isr = {("t", 0): (1, 2)}
    assert plan(topic((1, 2, 3)), racks, rebalance=True, replication_factor=2, isr=isr).targets == topic((1, 2))
    made = plan(topic((1, 2, 3)), {**racks, 4: "b"}, rebalance=True, replication_factor=2, isr=isr)
    assert set(made.targets["t", 0]) in ({1, 4}, {2, 4}), "a new replica is in sync before the old one goes"


def test_racks_are_mended_by_a_rebalance_and_only_where_they_are_broken() -> None:
    made = plan(topic((1, 2), (3, 5), (4, 1), (6, 3)), RACKS, rebalance=True)
    assert RACKS[after(made)["t", 0][0]] != RACKS[after(made)["t", 0][1]]
    assert moved(made) <= 2


def test_of_two_that_could_move_the_smaller_goes() -> None:
    current = topic((1,), (1,), (1,))
    made = plan(current, {1: None, 2: None}, rebalance=True, sizes={("t", 0): 900, ("t", 1): 5, ("t", 2): 700})
    assert made.targets == {("t", 1): (2,)}
    assert made.bytes_to_copy(("t", 1)) == 5


def test_topics_are_spread_when_there_is_a_choice() -> None:
    current = {**topic((1,), (1,), name="a"), **topic((1,), (1,), name="b")}
    made = plan(current, {1: None, 2: None}, rebalance=True)
    assert sorted(name for name, _ in made.targets) == ["a", "b"]


def test_other_topics_break_ties() -> None:
    made = plan(topic((1,)), {1: None, 2: None, 3: None}, drain=[1], others={2: 10, 3: 4})
    assert made.targets == topic((3,))


def test_loads_say_what_each_broker_has() -> None:
    made = plan(topic((1, 2), (1, 2)), {1: None, 2: None, 3: None}, drain=[2], sizes={("t", 0): 10, ("t", 1): 20})
    loads = made.loads([1, 2, 3])
    assert loads[2][:4] == (2, 0, 0, 0)
    assert loads[3] == (0, 2, 0, 1, 30)
    assert made.bytes_to_copy(("t", 0)) == 10


@pytest.mark.parametrize(
    ("wish", "message"),
    [
        ({"drain": [2, 3]}, "t-0 needs 2 replicas, but only 1 broker is available"),
        ({"replication_factor": 4}, "t-0 needs 4 replicas, but only 3 brokers are available"),
        ({"replication_factor": 0}, "the replication factor must be at least 1, not 0"),
        ({"add": [7]}, "cannot add broker 7: unknown or not running"),
        ({"drain": [7, 8]}, "cannot drain brokers 7, 8: not running, and without replicas"),
        ({"add": [3], "drain": [3]}, "broker 3 cannot be both added and drained"),
    ],
)
def test_what_cannot_be_is_said(wish: dict[str, object], message: str) -> None:
    with pytest.raises(PlanError) as error:
        plan(topic((1, 2), (2, 1)), THREE, **wish)  # type: ignore[arg-type]
    assert str(error.value) == message


# --- what holds of every plan


@st.composite
def situations(draw: st.DrawFn, *, racks: bool = True) -> tuple[Assignment, dict[int, str | None]]:
    names = st.sampled_from(["a", "b", "c"]) if racks and draw(st.booleans()) else st.none()
    brokers = {each: draw(names) for each in range(1, draw(st.integers(2, 7)) + 1)}
    current: Assignment = {}
    for name in draw(st.lists(st.sampled_from("xyz"), min_size=1, max_size=3, unique=True)):
        factor = draw(st.integers(1, len(brokers) - 1))
        for index in range(draw(st.integers(1, 12))):
            current[name, index] = tuple(draw(st.permutations(sorted(brokers)))[:factor])
    return current, brokers


def spread_as_far_as_possible(replicas: Sequence[int], brokers: Mapping[int, str | None]) -> bool:
    used = Counter(brokers[each] for each in replicas)
    room = Counter(brokers.values())
    return all(used[rack] <= other + 1 or other == room[name] for rack in used for name, other in _all(used, room))


def _all(used: Counter[str | None], room: Counter[str | None]) -> list[tuple[str | None, int]]:
    return [(name, used[name]) for name in room]


def crowding(replicas: Sequence[int], brokers: Mapping[int, str | None]) -> int:
    """The fewer replicas share a rack, the less."""
    return sum(count**2 for count in Counter(brokers[each] for each in replicas).values())


def check_shape(made: ReassignmentPlan, brokers: Mapping[int, str | None], factor: int | None = None) -> None:
    for key, replicas in after(made).items():
        assert len(replicas) == len(set(replicas)) == (factor or len(made.current[key]))
        assert set(replicas) <= set(brokers)
    for key, replicas in made.targets.items():
        staying = [each for each in made.current[key] if each in replicas]
        kept = [each for each in replicas if each in made.current[key]]
        assert kept == staying or (sorted(kept) == sorted(staying) and _only_the_leader_moved(kept, staying))


def _only_the_leader_moved(kept: list[int], staying: list[int]) -> bool:
    return kept[1:] == [each for each in staying if each != kept[0]]


@PROPERTIES
@given(situations())
def test_a_rebalance_spreads_racks_and_a_second_one_moves_nothing(
    situation: tuple[Assignment, dict[int, str | None]],
) -> None:
    current, brokers = situation
    made = plan(current, brokers, rebalance=True)
    check_shape(made, brokers)
    for replicas in after(made).values():
        assert spread_as_far_as_possible(replicas, brokers)
    assert plan(after(made), brokers, rebalance=True).targets == {}


@PROPERTIES
@given(situations(racks=False))
def test_a_rebalance_without_racks_is_level_with_as_few_moves_as_that_takes(
    situation: tuple[Assignment, dict[int, str | None]],
) -> None:
    current, brokers = situation
    made = plan(current, brokers, rebalance=True)
    before, now = counts(current, brokers)[0], counts(after(made), brokers)[0]
    assert is_level(now)
    least, extra = divmod(sum(before), len(brokers))
    full = sorted(before, reverse=True)
    needed = sum(max(0, count - (least + (place < extra))) for place, count in enumerate(full))
    assert moved(made) == needed
    if len({len(replicas) for replicas in current.values()}) == 1:
        assert is_level(counts(after(made), brokers)[1])


@PROPERTIES
@given(situations(), st.data())
def test_a_drain_empties_brokers_and_moves_only_what_was_there(
    situation: tuple[Assignment, dict[int, str | None]], data: st.DataObject
) -> None:
    current, brokers = situation
    drained = data.draw(st.sampled_from(sorted(brokers)))
    made = plan(current, brokers, drain=[drained])
    check_shape(made, brokers)
    assert all(drained not in replicas for replicas in after(made).values())
    assert set(made.targets) == {key for key, replicas in current.items() if drained in replicas}
    assert moved(made) == len(made.targets)
    for key, replicas in made.targets.items():
        (came,) = made.adding(key)
        staying = [each for each in replicas if each != came]
        others = [each for each in brokers if each not in staying and each != drained]
        assert crowding(replicas, brokers) == min(crowding([*staying, each], brokers) for each in others)


@PROPERTIES
@given(situations(), st.data())
def test_another_replication_factor_adds_or_removes_just_that_many(
    situation: tuple[Assignment, dict[int, str | None]], data: st.DataObject
) -> None:
    current, brokers = situation
    factor = data.draw(st.integers(1, len(brokers)))
    made = plan(current, brokers, replication_factor=factor)
    check_shape(made, brokers, factor)
    assert moved(made) == sum(max(0, factor - len(replicas)) for replicas in current.values())
    assert set(made.targets) == {key for key, replicas in current.items() if len(replicas) != factor}
    for key, replicas in made.targets.items():
        had = current[key]
        rest = [each for each in brokers if each not in had]
        more = factor - len(had)
        ways = combinations(had, factor) if more < 0 else ((*had, *added) for added in combinations(rest, more))
        assert crowding(replicas, brokers) == min(crowding(each, brokers) for each in ways)


@PROPERTIES
@given(situations())
def test_new_brokers_get_replicas_and_only_they(situation: tuple[Assignment, dict[int, str | None]]) -> None:
    current, brokers = situation
    new = {**brokers, 101: brokers[1], 102: brokers[2]}
    made = plan(current, new, add=[101, 102])
    check_shape(made, new)
    assert all(set(made.adding(key)) <= {101, 102} for key in made.targets)
    replicas = Counter(each for row in after(made).values() for each in row)
    assert abs(replicas[101] - replicas[102]) <= 1 or brokers[1] != brokers[2]


@PROPERTIES
@given(situations(), st.data())
def test_with_fewer_replicas_none_out_of_sync_is_kept_instead_of_one_in_sync(
    situation: tuple[Assignment, dict[int, str | None]], data: st.DataObject
) -> None:
    current, known = situation
    dead = data.draw(st.sets(st.sampled_from(sorted(known)), max_size=len(known) - 1))
    brokers = {each: rack for each, rack in known.items() if each not in dead}
    drain = data.draw(st.sets(st.sampled_from(sorted(known)), max_size=2))
    factor = data.draw(st.integers(1, max(1, min(len(each) for each in current.values()))))
    isr = {key: data.draw(st.lists(st.sampled_from(each), min_size=1, unique=True)) for key, each in current.items()}
    if factor > min(len({*brokers, *each} - drain) for each in current.values()):
        return
    rebalance = data.draw(st.booleans())
    made = plan(current, brokers, drain=drain, replication_factor=factor, rebalance=rebalance, isr=isr)
    for key, replicas in after(made).items():
        assert len(replicas) == len(set(replicas)) == factor
        assert not drain.intersection(replicas)
        running = {each for each in isr[key] if each in brokers}
        spare = len(set(brokers) - drain - set(current[key]))
        possible = min(factor, len(running - drain) + min(len(running & drain), spare))
        new = set(replicas) - set(current[key])
        assert len(running.intersection(replicas)) + len(new) >= possible, (key, replicas)


class _ScanningState(reassignment_plan._State):
    """Finds the partition whose leader moves by scanning all of them: slow, and plain to see."""

    def level_leaders(self, keys: Iterable[Key]) -> None:
        in_order = {key: list(self.replicas[key]) for key in keys}
        leader = {key: replicas[0] for key, replicas in in_order.items()}

        def find(giver: int, taker: int) -> Key | None:
            return min((key for key in leader if leader[key] == giver and taker in self.replicas[key]), default=None)

        def carry(key: Key, giver: int, taker: int) -> None:
            leader[key] = taker
            self._put(key, [taker, *(each for each in in_order[key] if each != taker)])

        reassignment_plan._level(self.leads, sorted(self.usable), find, carry)


@PROPERTIES
@given(situations(), st.booleans(), st.sampled_from([None, 1, 2]))
def test_leaders_move_as_if_all_partitions_were_scanned_for_each_move(
    situation: tuple[Assignment, dict[int, str | None]], drains: bool, factor: int | None
) -> None:
    current, brokers = situation

    def planned() -> Mapping[Key, tuple[int, ...]] | str:
        try:
            return plan(
                current, brokers, rebalance=not drains, drain={1} if drains else (), replication_factor=factor
            ).targets
        except PlanError as error:
            return str(error)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reassignment_plan, "_State", _ScanningState)
        expected = planned()
    assert planned() == expected
