"""The state machine of a classic group: what members are answered, and what is written."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import count
from typing import Any

import pytest

from barnabas import wire
from barnabas.groups.classic import expiry, joining, sessions, syncing
from barnabas.groups.classic.group import ClassicGroup
from barnabas.groups.classic.requests import Join, Leaver, Moment, Sync, Write
from barnabas.groups.classic.settings import ClassicSettings
from barnabas.groups.classic.state import FOLLOWS, State
from barnabas.groups.image import SIMPLE_GROUP, GroupMetadata, MemberMetadata
from barnabas.wire import ErrorCode, KafkaError
from barnabas.wire.messages.consumer_protocol_subscription import ConsumerProtocolSubscription
from barnabas.wire.records.group import GroupMetadataValue

DELAY_MS = 3000
SESSION_MS = 10_000
REBALANCE_MS = 60_000
NOW_MS = 1_700_000_000_000

EMPTY, PREPARING, COMPLETING, STABLE, DEAD = State


class Waiter:
    """Who asked, and what it was answered."""

    def __init__(self) -> None:
        self.answers: list[Any] = []
        self.write: Write | None = None

    def __call__(self, response: Any) -> None:
        self.answers.append(response)

    @property
    def response(self) -> Any:
        (response,) = self.answers
        return response

    @property
    def error(self) -> ErrorCode:
        return ErrorCode(self.response.error_code)

    @property
    def is_waiting(self) -> bool:
        return not self.answers


def subscription(*topics: str) -> bytes:
    return wire.encode_record(ConsumerProtocolSubscription(topics=list(topics)), 3)


class World:
    """A group, a clock, and the ids that members get."""

    def __init__(self, settings: ClassicSettings | None = None, stored: GroupMetadata = SIMPLE_GROUP) -> None:
        self.group = ClassicGroup("g", settings or ClassicSettings(DELAY_MS), stored)
        self.time_ms = 0.0
        self.writes: list[Write] = []
        self._ids = (f"member-{number}" for number in count())

    @property
    def now(self) -> Moment:
        return Moment(NOW_MS + int(self.time_ms), self.time_ms)

    def join(
        self,
        member_id: str = "",
        instance: str | None = None,
        protocols: Iterable[tuple[str, bytes]] = (("range", b"r"),),
        protocol_type: str = "consumer",
        *,
        needs_id: bool = False,
        skips: bool = True,
        session_ms: int = SESSION_MS,
        rebalance_ms: int = REBALANCE_MS,
    ) -> Waiter:
        waiter = Waiter()
        request = Join(
            member_id,
            instance,
            "client",
            "/host",
            protocol_type,
            tuple(protocols),
            rebalance_ms,
            session_ms,
            needs_id,
            skips,
        )
        waiter.write = joining.join(self.group, request, lambda: next(self._ids), self.now, waiter)
        self._note(waiter.write)
        return waiter

    def sync(
        self,
        member_id: str,
        generation: int | None = None,
        assignments: dict[str, bytes] | None = None,
        instance: str | None = None,
        protocol_type: str | None = None,
        protocol_name: str | None = None,
        *,
        commits: bool = True,
    ) -> Waiter:
        waiter = Waiter()
        known = self.group.generation if generation is None else generation
        request = Sync(member_id, instance, known, protocol_type, protocol_name, assignments or {})
        waiter.write = syncing.sync(self.group, request, self.now, waiter)
        self._note(waiter.write)
        if commits:
            self.commit(waiter.write)
        return waiter

    def commit(self, write: Write | None, error: KafkaError | None = None) -> None:
        if write is not None and write.done is not None:
            write.done(error, self.now)

    def heartbeat(self, member_id: str, generation: int | None = None, instance: str | None = None) -> ErrorCode:
        known = self.group.generation if generation is None else generation
        return sessions.heartbeat(self.group, member_id, instance, known, self.time_ms)

    def leave(self, *leavers: tuple[str, str | None]) -> list[ErrorCode]:
        errors, write = sessions.leave(self.group, [Leaver(*each) for each in leavers], self.now)
        self._note(write)
        return errors

    def pass_time(self, by_ms: float) -> None:
        """To the end, with a look at the group whenever it wants one."""
        end_ms = self.time_ms + by_ms
        while self.group.wake_ms <= end_ms:
            self.time_ms = max(self.time_ms, self.group.wake_ms)
            for write in expiry.tick(self.group, self.now):
                self._note(write)
        self.time_ms = end_ms

    def _note(self, write: Write | None) -> None:
        if write is not None:
            self.writes.append(write)

    @property
    def last_written(self) -> GroupMetadataValue:
        record = self.writes[-1].records[-1][0].value
        assert isinstance(record, GroupMetadataValue)
        return record


def stable(members: int = 1, settings: ClassicSettings | None = None, **join: Any) -> tuple[World, list[str]]:
    """A group with members that have their assignments."""
    world = World(settings)
    joins = [world.join(**join) for _ in range(members)]
    world.pass_time(DELAY_MS * (2 if members > 1 else 1))
    ids = [each.response.member_id for each in joins]
    for member_id in ids[1:]:
        world.sync(member_id)
    world.sync(ids[0], assignments={member_id: member_id.encode() for member_id in ids})
    assert world.group.state is STABLE
    return world, ids


# --- the first generation


def test_the_first_member_waits_for_the_initial_delay_and_leads_generation_one() -> None:
    world = World()
    joining = world.join()
    world.pass_time(DELAY_MS - 1)
    assert joining.is_waiting
    assert world.group.state is PREPARING
    world.pass_time(1)
    response = joining.response
    assert (response.generation_id, response.leader, response.member_id) == (1, "member-0", "member-0")
    assert (response.protocol_type, response.protocol_name) == ("consumer", "range")
    assert [(each.member_id, each.metadata) for each in response.members] == [("member-0", b"r")]
    assert world.group.state is COMPLETING


def test_without_an_initial_delay_the_first_member_joins_at_once() -> None:
    world = World(ClassicSettings(0))
    joining = world.join()
    world.pass_time(0)
    assert joining.error is ErrorCode.NONE


def test_members_that_come_within_the_delay_prolong_it_by_another() -> None:
    world = World()
    first = world.join()
    world.pass_time(DELAY_MS - 1)
    second = world.join()
    world.pass_time(1)
    assert first.is_waiting
    world.pass_time(DELAY_MS)
    assert (first.error, second.error) == (ErrorCode.NONE, ErrorCode.NONE)
    assert len(first.response.members) == 2
    assert second.response.members == []
    assert second.response.leader == "member-0"


def test_the_delay_is_prolonged_no_longer_than_the_rebalance_timeout() -> None:
    world = World()
    first = world.join(rebalance_ms=7000)
    for _ in range(10):
        world.join(rebalance_ms=7000)
        world.pass_time(1000)
    assert first.error is ErrorCode.NONE


def test_who_needs_a_member_id_is_told_one_and_joins_with_it() -> None:
    world = World()
    asked = world.join(needs_id=True)
    assert (asked.error, asked.response.member_id) == (ErrorCode.MEMBER_ID_REQUIRED, "member-0")
    assert world.group.state is EMPTY
    joining = world.join("member-0")
    world.pass_time(DELAY_MS)
    assert joining.response.generation_id == 1


def test_a_member_id_that_nobody_joins_with_is_forgotten_after_a_session() -> None:
    world = World()
    world.join(needs_id=True)
    assert not world.group.is_simple
    world.pass_time(SESSION_MS)
    assert world.group.is_simple
    assert world.join("member-0").error is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_rebalance_waits_for_those_that_were_told_a_member_id() -> None:
    world, (leader,) = stable()
    world.join(needs_id=True)
    rejoining = world.join(leader)
    assert rejoining.is_waiting
    world.join("member-1")
    assert rejoining.response.generation_id == 2


@pytest.mark.parametrize(("protocol_type", "protocols"), [("", [("range", b"")]), ("consumer", [])])
def test_an_empty_group_wants_a_protocol_type_and_a_protocol(protocol_type: str, protocols: Any) -> None:
    joining = World().join(protocol_type=protocol_type, protocols=protocols)
    assert joining.error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL


# --- protocols


def test_a_member_with_another_protocol_type_is_refused() -> None:
    world, _ = stable()
    assert world.join(protocol_type="connect").error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_a_member_without_a_protocol_that_all_have_is_refused() -> None:
    world, _ = stable()
    refused = world.join("", protocols=[("sticky", b"")])
    assert (refused.error, refused.response.member_id) == (ErrorCode.INCONSISTENT_GROUP_PROTOCOL, "")
    assert world.group.state is STABLE


def test_the_protocol_that_most_members_prefer_is_chosen_among_those_that_all_have() -> None:
    world = World()
    first = world.join(protocols=[("mine", b""), ("range", b"1"), ("sticky", b"2")])
    for _ in range(2):
        world.join(protocols=[("sticky", b"2"), ("range", b"1")])
    world.pass_time(2 * DELAY_MS)
    assert first.response.protocol_name == "sticky"
    assert {each.metadata for each in first.response.members} == {b"2"}


def test_the_subscribed_topics_are_those_of_all_members() -> None:
    world = World()
    world.join(protocols=[("range", subscription("a", "b"))])
    world.join(protocols=[("range", subscription("c"))])
    assert world.group.is_subscribed_to("anything"), "it may be"
    world.pass_time(2 * DELAY_MS)
    assert [world.group.is_subscribed_to(name) for name in "abcd"] == [True, True, True, False]


def test_a_subscription_that_cannot_be_read_may_be_any() -> None:
    world, _ = stable(protocols=[("range", b"\x00")])
    assert world.group.subscribed_topics is None
    assert world.group.is_subscribed_to("anything")


def test_a_group_of_another_protocol_is_subscribed_to_nothing() -> None:
    world, _ = stable(protocol_type="connect")
    assert not world.group.is_subscribed_to("anything")


# --- sync


def test_everybody_waits_for_the_leader_s_assignments_to_be_committed() -> None:
    world = World()
    world.join()
    world.join()
    world.pass_time(2 * DELAY_MS)
    follower = world.sync("member-1")
    leader = world.sync("member-0", assignments={"member-0": b"0", "member-1": b"1", "gone": b"x"}, commits=False)
    assert follower.is_waiting
    assert leader.is_waiting
    assert world.group.state is COMPLETING
    written = world.last_written
    assert (written.generation, written.leader, written.protocol) == (1, "member-0", "range")
    assert [(each.member_id, each.assignment) for each in written.members] == [("member-0", b"0"), ("member-1", b"1")]
    world.commit(leader.write)
    assert (leader.response.assignment, follower.response.assignment) == (b"0", b"1")
    assert follower.response.protocol_name == "range"
    assert world.group.state is STABLE


def test_a_member_that_the_leader_forgot_is_assigned_nothing() -> None:
    world = World()
    world.join()
    world.join()
    world.pass_time(2 * DELAY_MS)
    follower = world.sync("member-1")
    world.sync("member-0", assignments={"member-0": b"0"})
    assert (follower.error, follower.response.assignment) == (ErrorCode.NONE, b"")


def test_a_member_that_syncs_later_gets_its_assignment_at_once() -> None:
    world, (_, follower) = stable(2)
    assert world.sync(follower).response.assignment == follower.encode()


def test_assignments_that_cannot_be_written_make_everybody_join_again() -> None:
    world = World()
    world.join()
    world.pass_time(DELAY_MS)
    leader = world.sync("member-0", assignments={"member-0": b"0"}, commits=False)
    world.commit(leader.write, KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS))
    assert leader.error is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert world.group.state is PREPARING


def test_a_commit_of_an_older_generation_changes_nothing() -> None:
    world = World()
    world.join()
    world.pass_time(DELAY_MS)
    leader = world.sync("member-0", assignments={"member-0": b"0"}, commits=False)
    world.join()
    assert leader.error is ErrorCode.REBALANCE_IN_PROGRESS
    world.commit(leader.write)
    assert world.group.state is PREPARING


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ({"member_id": "nobody"}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"member_id": "member-0", "generation": 7}, ErrorCode.ILLEGAL_GENERATION),
        ({"member_id": "member-0", "instance": "i"}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"member_id": "member-0", "protocol_type": "connect"}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"member_id": "member-0", "protocol_name": "sticky"}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
    ],
)
def test_a_sync_that_does_not_fit_the_group_is_refused(arguments: dict[str, Any], code: ErrorCode) -> None:
    world, _ = stable()
    assert world.sync(**arguments).error is code


def test_a_sync_during_a_rebalance_or_to_an_empty_group_is_refused() -> None:
    world, (leader, _) = stable(2)
    world.join(leader)
    assert world.sync(leader).error is ErrorCode.REBALANCE_IN_PROGRESS
    assert World().sync("member-0").error is ErrorCode.UNKNOWN_MEMBER_ID


def test_members_that_do_not_sync_within_the_rebalance_timeout_are_out() -> None:
    world = World()
    world.join(session_ms=1_000_000)
    world.join(session_ms=1_000_000)
    world.pass_time(2 * DELAY_MS)
    leader = world.sync("member-0", assignments={"member-0": b"0"})
    assert leader.error is ErrorCode.NONE
    world.pass_time(REBALANCE_MS)
    assert list(world.group.members.by_id) == ["member-0"]
    assert world.group.state is PREPARING


# --- joining again


def test_a_follower_that_joins_a_stable_group_again_unchanged_is_answered_at_once() -> None:
    world, (leader, follower) = stable(2)
    response = world.join(follower).response
    assert (response.generation_id, response.leader, response.members) == (1, leader, [])
    assert world.group.state is STABLE


def test_a_leader_that_joins_again_makes_everybody_join_again() -> None:
    world, (leader, follower) = stable(2)
    rejoining = world.join(leader)
    assert world.heartbeat(follower) is ErrorCode.REBALANCE_IN_PROGRESS
    other = world.join(follower)
    assert (rejoining.response.generation_id, other.response.generation_id) == (2, 2)


def test_a_member_with_other_metadata_makes_everybody_join_again() -> None:
    world, (leader, follower) = stable(2)
    changed = world.join(follower, protocols=[("range", b"changed")])
    assert changed.is_waiting
    world.join(leader)
    assert changed.error is ErrorCode.NONE
    assert world.group.generation == 2


def test_a_member_that_missed_its_answer_gets_it_again() -> None:
    world = World()
    world.join()
    world.pass_time(DELAY_MS)
    again = world.join("member-0").response
    assert (again.generation_id, len(again.members)) == (1, 1)
    assert world.group.state is COMPLETING


def test_an_unknown_member_cannot_join_again() -> None:
    world, _ = stable()
    refused = world.join("nobody")
    assert (refused.error, refused.response.member_id) == (ErrorCode.UNKNOWN_MEMBER_ID, "nobody")


def test_dynamic_members_that_do_not_join_again_in_time_are_out_and_another_leads() -> None:
    world, (leader, follower) = stable(2, rebalance_ms=5000)
    joining = world.join(follower, protocols=[("range", b"new")], rebalance_ms=5000)
    world.pass_time(4999)
    assert joining.is_waiting
    world.pass_time(1)
    assert joining.response.leader == follower
    assert leader not in world.group.members.by_id


def test_who_waits_in_vain_for_a_sync_is_told_of_the_next_rebalance() -> None:
    world = World()
    world.join()
    world.join()
    world.pass_time(2 * DELAY_MS)
    waiting = world.sync("member-1")
    world.join()
    assert waiting.error is ErrorCode.REBALANCE_IN_PROGRESS


def test_cooperative_members_join_again_with_what_they_own_in_two_generations() -> None:
    world, ids = stable(2)
    for round_number in range(2):
        joins = [world.join(each, protocols=[("range", f"owned {round_number}".encode())]) for each in ids]
        assert all(each.error is ErrorCode.NONE for each in joins)
        assert {each.metadata for each in joins[0].response.members} == {f"owned {round_number}".encode()}
        world.sync(ids[1])
        world.sync(ids[0], assignments=dict.fromkeys(ids, b"a"))
    assert world.group.generation == 3
    assert world.group.state is STABLE


# --- sessions


def test_a_member_that_sends_no_heartbeat_for_a_session_is_out() -> None:
    world, (leader, follower) = stable(2)
    world.pass_time(SESSION_MS - 1)
    assert world.heartbeat(leader) is ErrorCode.NONE
    world.pass_time(1)
    assert list(world.group.members.by_id) == [leader]
    assert world.heartbeat(leader) is ErrorCode.REBALANCE_IN_PROGRESS
    assert world.heartbeat(follower) is ErrorCode.UNKNOWN_MEMBER_ID


def test_the_last_member_s_end_is_written_as_an_empty_generation() -> None:
    world, _ = stable()
    world.pass_time(SESSION_MS)
    assert world.group.state is EMPTY
    written = world.last_written
    assert (written.generation, written.protocol, written.leader, written.members) == (2, None, None, [])
    assert written.protocol_type == "consumer"
    assert written.current_state_timestamp == world.group.state_timestamp_ms


def test_who_waits_for_a_rebalance_need_not_send_heartbeats() -> None:
    world, (leader, follower) = stable(2, rebalance_ms=30_000)
    rejoining = world.join(leader)
    world.pass_time(SESSION_MS - 1)
    world.heartbeat(follower)
    world.pass_time(SESSION_MS - 1)
    assert rejoining.is_waiting
    world.pass_time(1)
    assert rejoining.response.generation_id == 2, "the other one was out, and nobody else was missing"


def test_a_new_member_that_is_not_answered_within_five_minutes_is_out() -> None:
    world, (leader,) = stable(session_ms=1_000_000, rebalance_ms=1_000_000)
    joining = world.join(rebalance_ms=1_000_000)
    world.pass_time(300_000)
    assert joining.error is ErrorCode.UNKNOWN_MEMBER_ID
    assert list(world.group.members.by_id) == [leader]


def test_a_commit_of_offsets_keeps_a_session_alive() -> None:
    world, (leader,) = stable()
    world.pass_time(SESSION_MS - 1)
    sessions.keep_session(world.group, leader, world.time_ms)
    world.pass_time(SESSION_MS - 1)
    assert world.group.state is STABLE


@pytest.mark.parametrize(
    ("member_id", "generation", "instance", "code"),
    [
        ("member-0", 1, None, ErrorCode.NONE),
        ("member-0", 2, None, ErrorCode.ILLEGAL_GENERATION),
        ("nobody", 1, None, ErrorCode.UNKNOWN_MEMBER_ID),
        ("member-0", 1, "instance", ErrorCode.UNKNOWN_MEMBER_ID),
    ],
)
def test_heartbeats(member_id: str, generation: int, instance: str | None, code: ErrorCode) -> None:
    world, _ = stable()
    assert world.heartbeat(member_id, generation, instance) is code


def test_heartbeats_are_fine_while_the_assignment_is_awaited() -> None:
    world = World()
    world.join()
    world.pass_time(DELAY_MS)
    assert world.heartbeat("member-0") is ErrorCode.NONE


def test_a_heartbeat_does_not_move_the_next_look_at_the_group() -> None:
    world, (leader,) = stable()
    world.pass_time(100)
    wake_ms = world.group.wake_ms
    world.heartbeat(leader)
    assert world.group.wake_ms == wake_ms


# --- leaving


def test_who_leaves_is_out_and_the_others_join_again() -> None:
    world, (leader, follower) = stable(2)
    assert world.leave((leader, None)) == [ErrorCode.NONE]
    assert world.heartbeat(follower) is ErrorCode.REBALANCE_IN_PROGRESS
    assert world.join(follower).response.leader == follower


def test_several_leave_at_once_each_with_its_own_error() -> None:
    world, (leader, follower) = stable(2)
    errors = world.leave((leader, None), ("nobody", None), ("", None), (follower, None))
    assert errors == [ErrorCode.NONE, ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.NONE]
    assert world.group.state is EMPTY


def test_one_that_was_told_a_member_id_may_leave() -> None:
    world = World()
    world.join(needs_id=True)
    assert world.leave(("member-0", None)) == [ErrorCode.NONE]
    assert world.group.is_simple


def test_who_leaves_while_it_waits_to_join_is_told_so() -> None:
    world = World()
    joining = world.join()
    world.leave(("member-0", None))
    assert joining.error is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_static_member_leaves_by_its_instance_alone_but_not_with_another_s_member_id() -> None:
    world, _ = stable(instance="i")
    assert world.leave(("other", "i"), ("", "j")) == [ErrorCode.FENCED_INSTANCE_ID, ErrorCode.UNKNOWN_MEMBER_ID]
    assert world.leave(("", "i")) == [ErrorCode.NONE]
    assert world.group.state is EMPTY


# --- static members


def test_a_static_member_that_comes_back_keeps_its_assignment_without_a_rebalance() -> None:
    world, (old,) = stable(instance="i")
    back = world.join(instance="i")
    assert back.is_waiting, "its new id has to be written first"
    assert [each.member_id for each in world.last_written.members] == ["member-1"]
    assert world.last_written.members[0].assignment == old.encode()
    world.commit(back.write)
    response = back.response
    assert (response.generation_id, response.member_id, response.leader) == (1, "member-1", "member-1")
    assert response.skip_assignment
    assert len(response.members) == 1
    assert world.group.state is STABLE
    assert world.sync("member-1").response.assignment == old.encode()


def test_a_static_leader_that_does_not_know_skip_assignment_is_not_told_that_it_leads() -> None:
    world, (old,) = stable(instance="i")
    back = world.join(instance="i", skips=False)
    world.commit(back.write)
    assert (back.response.leader, back.response.members, back.response.skip_assignment) == (old, [], False)


def test_the_member_id_from_before_is_fenced() -> None:
    world, (old,) = stable(instance="i")
    world.commit(world.join(instance="i").write)
    assert world.heartbeat(old, instance="i") is ErrorCode.FENCED_INSTANCE_ID
    assert world.heartbeat(old) is ErrorCode.UNKNOWN_MEMBER_ID
    assert world.sync(old, instance="i").error is ErrorCode.FENCED_INSTANCE_ID
    assert world.join(old, instance="i").error is ErrorCode.FENCED_INSTANCE_ID
    assert world.leave((old, "i")) == [ErrorCode.FENCED_INSTANCE_ID]


def test_who_still_waits_under_the_old_id_is_fenced() -> None:
    world = World()
    first = world.join(instance="i")
    second = world.join(instance="i")
    assert (first.error, first.response.member_id) == (ErrorCode.FENCED_INSTANCE_ID, "member-0")
    world.pass_time(DELAY_MS)
    assert second.response.member_id == "member-1"
    assert len(second.response.members) == 1


def test_a_static_member_that_comes_back_with_another_protocol_makes_everybody_join_again() -> None:
    world = World()
    world.join(instance="i", protocols=[("range", b""), ("sticky", b"")])
    world.pass_time(DELAY_MS)
    world.sync("member-0", assignments={"member-0": b"0"})
    back = world.join(instance="i", protocols=[("sticky", b""), ("range", b"")])
    assert back.response.generation_id == 2
    assert back.response.protocol_name == "sticky"


def test_a_static_member_that_comes_back_before_the_assignment_makes_everybody_join_again() -> None:
    world = World()
    world.join(instance="i")
    world.pass_time(DELAY_MS)
    back = world.join(instance="i")
    assert back.response.generation_id == 2


def test_a_new_id_that_cannot_be_written_is_taken_back() -> None:
    world, (old,) = stable(instance="i")
    back = world.join(instance="i", protocols=[("range", b"other")])
    world.commit(back.write, KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER))
    assert back.error is ErrorCode.NOT_COORDINATOR
    assert list(world.group.members.by_id) == [old]
    assert world.heartbeat(old, instance="i") is ErrorCode.NONE


def test_static_members_that_are_away_during_a_rebalance_stay_until_their_session_ends() -> None:
    world, (static,) = stable(instance="i", session_ms=50_000, rebalance_ms=5000)
    joining = world.join(rebalance_ms=5000)
    world.pass_time(5000)
    assert joining.response.leader == joining.response.member_id
    assert static in world.group.members.by_id
    assert [each.member_id for each in joining.response.members] == [static, "member-1"]


def test_a_rebalance_in_which_nobody_joins_goes_on_until_sessions_end() -> None:
    world, (static,) = stable(instance="i", session_ms=50_000, rebalance_ms=5000)
    leaver = world.join(rebalance_ms=5000)
    world.leave(("member-1", None))
    assert leaver.error is ErrorCode.UNKNOWN_MEMBER_ID
    world.pass_time(20_000)
    assert world.group.state is PREPARING
    assert static in world.group.members.by_id
    world.pass_time(50_000)
    assert world.group.state is EMPTY


# --- size


def test_a_full_group_takes_no_new_member() -> None:
    world, (leader, _) = stable(2, ClassicSettings(DELAY_MS, max_size=2))
    refused = world.join()
    assert (refused.error, refused.response.member_id) == (ErrorCode.GROUP_MAX_SIZE_REACHED, "")
    assert world.join(leader).is_waiting


def test_a_group_that_was_loaded_too_large_rebalances_and_lets_the_last_ones_go() -> None:
    members = tuple(MemberMetadata(f"m{n}", None, "c", "/h", 5000, SESSION_MS, b"r", b"a") for n in range(3))
    stored = GroupMetadata(4, "consumer", "range", "m0", NOW_MS, members)
    world = World(ClassicSettings(DELAY_MS, max_size=2), stored)
    assert world.group.state is STABLE
    sessions.begin_sessions(world.group, world.now)
    assert world.group.state is PREPARING
    joins = [world.join(f"m{n}") for n in range(3)]
    assert joins[2].error is ErrorCode.GROUP_MAX_SIZE_REACHED
    world.pass_time(5000)
    assert [each.response.generation_id for each in joins[:2]] == [5, 5]


# --- what stands in the log


def test_a_group_that_was_written_and_restored_is_the_same() -> None:
    world, _ = stable(3)
    stored = world.group.stored()
    assert ClassicGroup("g", ClassicSettings(), stored).stored() == stored


def test_a_restored_group_is_stable_and_its_members_may_go_on() -> None:
    world, ids = stable(2)
    restored = World(stored=world.group.stored())
    sessions.begin_sessions(restored.group, restored.now)
    assert [restored.heartbeat(each) for each in ids] == [ErrorCode.NONE] * 2
    assert restored.sync(ids[1]).response.assignment == ids[1].encode()
    restored.pass_time(SESSION_MS)
    assert restored.group.state is EMPTY


def test_a_dead_group_sends_everybody_away() -> None:
    world, (member_id,) = stable()
    world.group.die()
    assert world.heartbeat(member_id) is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert world.sync(member_id).error is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert world.join(member_id).error is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert world.join().error is ErrorCode.COORDINATOR_NOT_AVAILABLE


def test_every_state_can_end_and_only_a_rebalance_leads_out_of_stable() -> None:
    assert all(DEAD in following for following in FOLLOWS.values())
    assert FOLLOWS[STABLE] == {PREPARING, DEAD}
