"""The verdict on a quorum, from made-up values: who is behind, how many voters it can lose."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas.client.admin.quorum import QuorumInfo, ReplicaState
from barnabas.operations.quorum.health import Role, Status, judge, loss_of, majority, seconds
from barnabas.wire import ZERO_UUID

NOW = 1_000_000


def replica(replica_id: int, behind_ms: int | None = 0, *, lag: int = 0, fetched_ms: int | None = 0) -> ReplicaState:
    """A replica that had everything `behind_ms` ago, and fetched `fetched_ms` ago."""
    return ReplicaState(
        replica_id,
        ZERO_UUID,
        1000 - lag,
        None if fetched_ms is None else NOW - fetched_ms,
        None if behind_ms is None else NOW - behind_ms,
    )


def quorum(*voters: ReplicaState, leader_id: int = 1, high_watermark: int = 990, **more: Any) -> QuorumInfo:
    return QuorumInfo(leader_id, 5, high_watermark, tuple(voters), **more)


@pytest.mark.parametrize(("voters", "can_lose"), [(1, 0), (2, 0), (3, 1), (4, 1), (5, 2), (7, 3)])
def test_a_quorum_can_lose_what_is_more_than_a_majority(voters: int, can_lose: int) -> None:
    health = judge(quorum(*map(replica, range(1, voters + 1))), NOW)
    assert (health.is_healthy, health.can_lose, health.problems) == (True, can_lose, ())
    assert majority(voters) + can_lose <= voters


def test_a_voter_that_fetches_no_more_is_silent_and_the_quorum_ill() -> None:
    health = judge(quorum(replica(1), replica(2), replica(3, 60_000, lag=40, fetched_ms=60_000)), NOW)
    assert [each.status for each in health.replicas] == [Status.OK, Status.OK, Status.SILENT]
    assert (health.is_healthy, health.can_lose) == (False, 0)
    assert health.problems == ("voter 3 last fetched 60 s ago: it is not running, or cannot reach the leader",)
    assert health.verdict() == "unhealthy: 2 of 3 voters work; it cannot lose one"


def test_a_voter_that_fetches_and_does_not_catch_up_is_behind() -> None:
    health = judge(quorum(replica(1), replica(2, 7_000, lag=300, fetched_ms=100), replica(3)), NOW)
    assert health.behind[0].status is Status.BEHIND
    assert health.problems == ("voter 2 is behind for 7.0 s: 300 records are missing",)
    assert judge(quorum(replica(1), replica(2, 7_000, lag=300), replica(3)), NOW, max_lag_ms=10_000).is_healthy


def test_a_voter_that_never_fetched_is_silent() -> None:
    health = judge(quorum(replica(1), replica(2, None, fetched_ms=None)), NOW)
    assert "voter 2 has not fetched" in health.problems[0]


def test_the_leaders_clock_counts_and_not_ours() -> None:
    assert judge(quorum(replica(1), replica(2, 400)), NOW + 3_600_000).is_healthy


def test_where_there_are_no_times_records_count() -> None:
    def old(replica_id: int, lag: int) -> ReplicaState:
        return ReplicaState(replica_id, ZERO_UUID, 10_000 - lag)

    health = judge(quorum(old(1, 0), old(2, 500), old(3, 5_000)), NOW)
    assert [each.status for each in health.replicas] == [Status.OK, Status.OK, Status.BEHIND]
    assert health.problems == ("voter 3 is behind: 5000 records are missing",)


def test_observers_are_shown_and_never_make_it_ill() -> None:
    observers = (replica(9, 99_000, fetched_ms=99_000), replica(8))
    health = judge(quorum(replica(2), replica(1), observers=observers), NOW)
    assert [(each.state.replica_id, each.role) for each in health.replicas] == [
        (1, Role.LEADER),
        (2, Role.VOTER),
        (8, Role.OBSERVER),
        (9, Role.OBSERVER),
    ]
    assert health.is_healthy
    assert [str(each) for each in health.behind] == ["observer 9"]


@pytest.mark.parametrize(
    ("info", "problem"),
    [
        (quorum(replica(1), leader_id=-1), "there is no leader"),
        (quorum(replica(1), leader_id=4), "the leader 4 is not a voter"),
        (quorum(replica(1), high_watermark=-1), "nothing is committed yet"),
    ],
)
def test_a_quorum_that_cannot_commit_is_ill(info: QuorumInfo, problem: str) -> None:
    health = judge(info, NOW)
    assert not health.is_healthy
    assert problem in health.problems[0]


def test_who_wants_more_than_it_can_lose_is_told() -> None:
    health = judge(quorum(replica(1), replica(2), replica(3)), NOW, can_lose=2)
    assert health.problems == ("it can lose 1 voters, and should be able to lose 2",)


def test_the_loss_of_a_node_counts_only_if_it_is_needed() -> None:
    three = quorum(replica(1), replica(2), replica(3))
    assert [loss_of(three, judge(three, NOW), node) for node in (1, 2, 9)] == [None, None, None]
    two_work = quorum(replica(1), replica(2), replica(3, 60_000, fetched_ms=60_000))
    health = judge(two_work, NOW)
    assert "1 of 3 voters would work, and 2 are needed" in (loss_of(two_work, health, 2) or "")
    assert loss_of(two_work, health, 3) is None


def test_durations_are_short() -> None:
    assert [seconds(each) for each in (0, 400, 9_999, 10_000, 3_600_000)] == [
        "0.0 s",
        "0.4 s",
        "10.0 s",
        "10 s",
        "3,600 s",
    ]
