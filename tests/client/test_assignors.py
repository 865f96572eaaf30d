"""How a classic group shares out partitions. No node."""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from barnabas.client.consuming.assignors import (
    Member,
    assign_cooperatively,
    assign_range,
    assign_roundrobin,
    assign_sticky,
)
from barnabas.client.records import TopicPartition

TOPICS = ("a", "b", "c")


def places(topic: str, *partitions: int) -> list[TopicPartition]:
    return [TopicPartition(topic, partition) for partition in partitions]


@st.composite
def groups(draw: st.DrawFn) -> tuple[dict[str, Member], dict[str, int]]:
    partitions = {topic: draw(st.integers(0, 6)) for topic in TOPICS}
    every = [TopicPartition(topic, index) for topic in TOPICS for index in range(partitions[topic])]
    members = {}
    for number in range(draw(st.integers(1, 5))):
        topics = tuple(sorted(draw(st.sets(st.sampled_from(TOPICS), min_size=1))))
        owned = tuple(draw(st.lists(st.sampled_from(every), unique=True))) if every else ()
        members[f"m{number}"] = Member(topics, owned, draw(st.integers(1, 3)))
    return members, partitions


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(groups())
def test_every_partition_that_is_wanted_has_one_owner_who_wants_it(
    group: tuple[dict[str, Member], dict[str, int]],
) -> None:
    members, partitions = group
    wanted = {
        TopicPartition(topic, index)
        for topic, count in partitions.items()
        if any(topic in member.topics for member in members.values())
        for index in range(count)
    }
    for assign in (assign_range, assign_roundrobin, assign_sticky):
        assignment = assign(members, partitions)
        given_out = [place for places_ in assignment.values() for place in places_]
        assert sorted(given_out) == sorted(wanted), assign
        for member_id, places_ in assignment.items():
            assert all(place.topic in members[member_id].topics for place in places_)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(groups())
def test_what_moves_is_first_given_to_nobody(group: tuple[dict[str, Member], dict[str, int]]) -> None:
    members, partitions = group
    latest = max(member.generation for member in members.values())
    final, now = assign_sticky(members, partitions), assign_cooperatively(members, partitions)
    for member_id, places_ in now.items():
        assert set(places_) <= set(final[member_id])
        for place in places_:
            others = [each for name, each in members.items() if name != member_id and each.generation == latest]
            assert place in members[member_id].owned or not any(place in each.owned for each in others)


def test_ranges_are_neighbours_and_the_first_get_more() -> None:
    members = {name: Member(("a",)) for name in ("x", "y", "z")}
    assert assign_range(members, {"a": 5}) == {"x": places("a", 0, 1), "y": places("a", 2, 3), "z": places("a", 4)}


def test_turns_go_over_all_topics() -> None:
    members = {"x": Member(("a", "b")), "y": Member(("a", "b"))}
    assert assign_roundrobin(members, {"a": 3, "b": 1}) == {
        "x": places("a", 0, 2),
        "y": [*places("a", 1), *places("b", 0)],
    }


def test_a_newcomer_gets_a_share_and_the_others_keep_the_rest() -> None:
    owned = tuple(places("a", 0, 1, 2, 3))
    members = {"old": Member(("a",), owned, 1), "new": Member(("a",), (), -1)}
    first = assign_cooperatively(members, {"a": 4})
    assert first == {"old": places("a", 0, 1), "new": []}
    members = {"old": Member(("a",), tuple(first["old"]), 2), "new": Member(("a",), (), 2)}
    assert assign_cooperatively(members, {"a": 4}) == {"old": places("a", 0, 1), "new": places("a", 2, 3)}
