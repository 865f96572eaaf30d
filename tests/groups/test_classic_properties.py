"""Whatever members do, and in whatever order: the group's counts are right, and everybody who waits is answered."""

from __future__ import annotations

from random import Random

import pytest

from barnabas.groups.classic.group import ClassicGroup
from barnabas.groups.classic.settings import ClassicSettings
from barnabas.groups.classic.state import State
from barnabas.wire import KafkaError
from barnabas.wire.errors import ErrorCode
from tests.groups.test_classic import REBALANCE_MS, SESSION_MS, Waiter, World

STEPS = 60


def check(group: ClassicGroup) -> None:
    members = group.members
    assert members.awaiting_join == sum(member.answer_join is not None for member in members)
    supported = {name: having for name, having in members.protocols.counts.items() if having}
    expected: dict[str, int] = {}
    for member in members:
        for name, _ in member.protocols:
            expected[name] = expected.get(name, 0) + 1
    assert supported == expected
    assert members.static == {m.group_instance_id: m.member_id for m in members if m.group_instance_id}
    assert (members.leader_id in members.by_id) if members else members.leader_id is None
    assert members.pending_sync <= set(members.by_id)
    assert not members.pending.keys() & members.by_id.keys()
    if group.state is State.EMPTY:
        assert not members
    if group.state in (State.EMPTY, State.COMPLETING_REBALANCE):
        assert not members.awaiting_join
    if group.state is State.STABLE:
        assert not any(member.answer_sync for member in members)
        stored = group.stored()
        assert ClassicGroup("g", ClassicSettings(), stored).stored() == stored


def step(world: World, random: Random, waiters: list[Waiter], known: list[str]) -> None:
    group = world.group
    member_id = random.choice([*known, *group.members.by_id, "", "nobody"])
    protocols = random.sample([("range", b"1"), ("range", b"2"), ("sticky", b"1")], random.randint(1, 2))
    match random.randrange(8):
        case 0 | 1:
            instance = random.choice([None, None, "i", "j"])
            known_id = member_id if instance is None else random.choice(["", group.members.static.get(instance, "")])
            try:
                waiters.append(
                    world.join(
                        known_id, instance, dict(protocols).items(), needs_id=random.random() < 0.3 and not instance
                    )
                )
            except KafkaError as error:
                assert error.code is ErrorCode.UNKNOWN_SERVER_ERROR
        case 2 | 3:
            assignments = dict.fromkeys(group.members.by_id, b"a")
            waiters.append(world.sync(member_id, group.generation, assignments, commits=False))
        case 4:
            world.heartbeat(member_id)
        case 5:
            world.leave((member_id, None))
        case 6:
            world.leave(("", random.choice(["i", "j"])))
        case 7:
            world.pass_time(random.choice([1, 100, 3000, SESSION_MS, REBALANCE_MS]))
    while world.writes and random.random() < 0.7:
        fails = random.random() < 0.2
        world.commit(world.writes.pop(0), KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS) if fails else None)
    known[:] = [w.response.member_id for w in waiters if w.answers and hasattr(w.response, "member_id")][-5:]


@pytest.mark.parametrize("seed", range(150))
def test_a_group_is_consistent_whatever_happens_to_it(seed: int) -> None:
    random = Random(seed)
    world = World(ClassicSettings(3000, max_size=random.choice([2, 5, 100])))
    waiters: list[Waiter] = []
    known: list[str] = []
    for _ in range(STEPS):
        step(world, random, waiters, known)
        check(world.group)
        assert all(len(waiter.answers) <= 1 for waiter in waiters)
    while world.writes:
        world.commit(world.writes.pop(0))
    for _ in range(20):
        world.pass_time(REBALANCE_MS + SESSION_MS)
    check(world.group)
    assert not any(waiter.is_waiting for waiter in waiters)
    assert world.group.state is State.EMPTY
