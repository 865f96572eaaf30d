"""Assignors of classic groups: the leader of a group assigns partitions to the members with one of them. Pure.

range: each member gets a range of each topic. roundrobin: members take turns. cooperative-sticky: evenly, and members
keep as many of their partitions as possible; a partition that moves stays unassigned for one generation, so that its
owner can revoke it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from barnabas.client.records import TopicPartition


class Member(NamedTuple):
    """The subscription of a member, and the partitions that it owns since a generation."""

    topics: tuple[str, ...]
    owned: tuple[TopicPartition, ...] = ()
    generation: int = -1
    instance_id: str | None = None


Assignment = dict[str, list[TopicPartition]]


def _in_order(members: Mapping[str, Member]) -> list[str]:
    """Sort members: static ones first, by instance id."""
    return sorted(members, key=lambda each: ((name := members[each].instance_id) is None, name or each))


def assign_range(members: Mapping[str, Member], partitions: Mapping[str, int]) -> Assignment:
    """Return ranges of the partitions of each topic.

    >>> assign_range({"a": Member(("t",)), "b": Member(("t",))}, {"t": 3})["a"]
    [TopicPartition(topic='t', partition=0), TopicPartition(topic='t', partition=1)]
    """
    order = _in_order(members)
    assignment: Assignment = {member_id: [] for member_id in members}
    for topic in sorted({topic for member in members.values() for topic in member.topics}):
        wanting = [member_id for member_id in order if topic in members[member_id].topics]
        each, extra = divmod(partitions.get(topic, 0), len(wanting))
        start = 0
        for at, member_id in enumerate(wanting):
            end = start + each + (at < extra)
            assignment[member_id] += [TopicPartition(topic, index) for index in range(start, end)]
            start = end
    return assignment


def assign_roundrobin(members: Mapping[str, Member], partitions: Mapping[str, int]) -> Assignment:
    order = _in_order(members)
    assignment: Assignment = {member_id: [] for member_id in members}
    turn = 0
    for topic in sorted({topic for member in members.values() for topic in member.topics}):
        for index in range(partitions.get(topic, 0)):
            while topic not in members[order[turn % len(order)]].topics:
                turn += 1
            assignment[order[turn % len(order)]].append(TopicPartition(topic, index))
            turn += 1
    return assignment


def assign_sticky(members: Mapping[str, Member], partitions: Mapping[str, int]) -> Assignment:
    """Return an even assignment in which members keep as many of their partitions as possible."""
    order = _in_order(members)
    places = [TopicPartition(topic, index) for topic in sorted(partitions) for index in range(partitions[topic])]
    wanting = {topic: [each for each in order if topic in members[each].topics] for topic in partitions}
    owners = _owners(members, {place for place in places if wanting[place.topic]})
    assignment: Assignment = {member_id: [] for member_id in members}
    for place in places:
        if (owner := owners.get(place)) is not None:
            assignment[owner].append(place)
    for place in places:
        if place not in owners and wanting[place.topic]:
            least = min(wanting[place.topic], key=lambda each: len(assignment[each]))
            assignment[least].append(place)
    _even_out(assignment, wanting)
    return assignment


def _owners(members: Mapping[str, Member], places: set[TopicPartition]) -> dict[TopicPartition, str]:
    """Return the owners of partitions.

    If two members claim one, the later generation wins; if it is the same, neither does.
    """
    claims: dict[TopicPartition, list[tuple[int, str]]] = {}
    for member_id, member in members.items():
        for place in member.owned:
            if place in places and place.topic in member.topics:
                claims.setdefault(place, []).append((member.generation, member_id))
    owners = {}
    for place, claimed in claims.items():
        claimed.sort()
        if len(claimed) == 1 or claimed[-1][0] > claimed[-2][0]:
            owners[place] = claimed[-1][1]
    return owners


def _even_out(assignment: Assignment, wanting: Mapping[str, Sequence[str]]) -> None:
    """Move partitions to members with fewer, until no move makes the assignment more even."""
    has_moved = True
    while has_moved:
        has_moved = False
        for member_id in sorted(assignment, key=lambda each: -len(assignment[each])):
            mine = assignment[member_id]
            for place in reversed(list(mine)):
                least = min(wanting[place.topic], key=lambda each: len(assignment[each]))
                if len(assignment[least]) + 1 < len(mine):
                    mine.remove(place)
                    assignment[least].append(place)
                    has_moved = True


def assign_cooperatively(members: Mapping[str, Member], partitions: Mapping[str, int]) -> Assignment:
    """Return the sticky assignment without partitions that another member still owns.

    They follow in the next rebalance.
    """
    assignment = assign_sticky(members, partitions)
    latest = max((member.generation for member in members.values()), default=-1)
    held = {
        place: member_id
        for member_id, member in members.items()
        if member.generation in (latest, -1)
        for place in member.owned
    }
    return {
        member_id: [place for place in places if held.get(place, member_id) == member_id]
        for member_id, places in assignment.items()
    }


ASSIGNORS: dict[str, Callable[[Mapping[str, Member], Mapping[str, int]], Assignment]] = {
    "range": assign_range,
    "roundrobin": assign_roundrobin,
    "cooperative-sticky": assign_cooperatively,
}
