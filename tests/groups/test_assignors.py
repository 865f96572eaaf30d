"""The assignors, compared with those of Apache Kafka 4.3.1 on groups that change at random."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.groups.assignors import ASSIGNORS, Assignment, AssignorError, GroupSpecification, MemberSpecification
from barnabas.steps import ROWS_PER_STEP, at_once
from barnabas.wire import Uuid

DATA = Path(__file__).parent / "data" / "assignments.jsonl.gz"
TOPICS = [Uuid(bytes([number]) * 16) for number in range(1, 6)]


def specification(
    members: dict[str, MemberSpecification], counts: dict[Uuid, int], *, is_homogeneous: bool
) -> GroupSpecification:
    owned = {(t, p) for member in members.values() for t, some in member.assignment.items() for p in some}
    return GroupSpecification(members, is_homogeneous, lambda topic, number: (topic, number) in owned, counts.get)


def cases() -> list[Any]:
    return [json.loads(line) for line in gzip.decompress(DATA.read_bytes()).splitlines()]


def test_every_member_gets_what_kafka_gives_it_in_the_same_order() -> None:
    for case in cases():
        members = {
            member_id: MemberSpecification(
                instance_id,
                [Uuid.parse(topic) for topic in topics],
                {Uuid.parse(topic): numbers for topic, numbers in before},
                len(topics),
            )
            for member_id, instance_id, topics, before in case["members"]
        }
        counts = {Uuid.parse(topic): count for topic, count in case["counts"].items()}
        group = specification(members, counts, is_homogeneous=case["homogeneous"])
        ours = at_once(ASSIGNORS[case["assignor"]](group))
        assert {member: [(str(t), list(n)) for t, n in some.items()] for member, some in ours.items()} == {
            member: [(topic, numbers) for topic, numbers in some] for member, some in case["result"].items()
        }


@st.composite
def groups(draw: st.DrawFn) -> tuple[str, dict[Uuid, int], list[tuple[str, list[Uuid]]], bool]:
    counts = draw(st.dictionaries(st.sampled_from(TOPICS), st.integers(1, 20), min_size=1))
    is_homogeneous = draw(st.booleans())
    wanted = st.lists(st.sampled_from(sorted(counts)), unique=True)
    common = draw(wanted)
    names = draw(st.lists(st.text("abcdef", min_size=1, max_size=4), unique=True, min_size=1, max_size=8))
    members = [(name, common if is_homogeneous else draw(wanted)) for name in names]
    return draw(st.sampled_from(sorted(ASSIGNORS))), counts, members, is_homogeneous


@given(groups())
def test_every_partition_has_one_owner_who_wants_it_and_nothing_moves_without_a_reason(
    group: tuple[str, dict[Uuid, int], list[tuple[str, list[Uuid]]], bool],
) -> None:
    name, counts, members, is_homogeneous = group

    def assign(before: dict[str, Assignment]) -> dict[str, Assignment]:
        specs = {
            member_id: MemberSpecification(None, topics, before.get(member_id, {}), len(topics))
            for member_id, topics in members
        }
        return at_once(ASSIGNORS[name](specification(specs, counts, is_homogeneous=is_homogeneous)))

    first = assign({})
    owners = [(topic, number) for some in first.values() for topic, numbers in some.items() for number in numbers]
    wanted = {topic for _, topics in members for topic in topics}
    assert sorted(owners) == sorted((topic, number) for topic in wanted for number in range(counts[topic]))
    assert all(set(first.get(member_id, {})) <= set(topics) for member_id, topics in members)
    again = assign(first)
    assert as_sets(again) == as_sets(first)
    if name == "uniform" and is_homogeneous and wanted:
        sizes = [sum(map(len, first[member_id].values())) for member_id, _ in members]
        assert max(sizes) - min(sizes) <= 1


def as_sets(assignments: dict[str, Assignment]) -> dict[str, dict[Uuid, set[int]]]:
    return {member: {topic: set(numbers) for topic, numbers in some.items()} for member, some in assignments.items()}


@pytest.mark.parametrize("name", sorted(ASSIGNORS))
def test_a_group_without_members_gets_nothing(name: str) -> None:
    assert at_once(ASSIGNORS[name](specification({}, {}, is_homogeneous=True))) == {}


@pytest.mark.parametrize("is_homogeneous", [True, False])
@pytest.mark.parametrize("name", sorted(ASSIGNORS))
def test_a_topic_that_is_not_there_is_an_error(name: str, is_homogeneous: bool) -> None:
    members = {"m": MemberSpecification(None, [TOPICS[0]], {}, 1)}
    with pytest.raises(AssignorError, match=r"exist"):
        at_once(ASSIGNORS[name](specification(members, {}, is_homogeneous=is_homogeneous)))


def test_range_gives_static_members_their_place_by_instance_id() -> None:
    members = {
        member_id: MemberSpecification(instance_id, [TOPICS[0]], {}, 1)
        for member_id, instance_id in (("a", None), ("z", "1"), ("y", "2"))
    }
    found = at_once(ASSIGNORS["range"](specification(members, {TOPICS[0]: 3}, is_homogeneous=True)))
    assert {member_id: some[TOPICS[0]] for member_id, some in found.items()} == {"z": (0,), "y": (1,), "a": (2,)}


@pytest.mark.parametrize("is_homogeneous", [True, False])
@pytest.mark.parametrize("name", sorted(ASSIGNORS))
def test_a_large_group_is_assigned_a_few_topics_and_members_at_a_time(name: str, is_homogeneous: bool) -> None:
    topics = [Uuid(number.to_bytes(16)) for number in range(1, 501)]
    counts = dict.fromkeys(topics, 2)
    asked = 0

    def partition_count(topic_id: Uuid) -> int:
        nonlocal asked
        asked += 1
        return counts[topic_id]

    members: dict[str, MemberSpecification] = {}
    for number in range(100):
        wanted = topics if is_homogeneous else topics[number % 7 :]
        members[f"member-{number}"] = MemberSpecification(None, wanted, {}, len(wanted))
    work = ASSIGNORS[name](GroupSpecification(members, is_homogeneous, lambda topic, each: False, partition_count))
    pauses, most = 0, 0
    while True:
        before = asked
        try:
            next(work)
        except StopIteration as end:
            found = end.value
            break
        pauses, most = pauses + 1, max(most, asked - before)
    assert sum(len(numbers) for some in found.values() for numbers in some.values()) == 1000
    assert most <= ROWS_PER_STEP
    assert pauses >= 100 + 1000 // ROWS_PER_STEP
