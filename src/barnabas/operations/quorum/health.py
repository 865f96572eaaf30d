"""The health of a metadata quorum: replicas that are behind, and the number of voters it can lose. Pure.

Its one rule: a voter works if it was caught up with the leader within the last `max_lag_ms`, by the leader's clock. A quorum
is healthy if it has a leader, has a high watermark, and all its voters work. It needs a majority of working voters to commit.
Observers are shown, and never make a quorum unhealthy.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import Enum

from barnabas.client.admin.quorum import QuorumInfo, ReplicaState

DEFAULT_MAX_LAG_MS = 5_000
_MAX_LAG_RECORDS = 1_000  # the limit if the leader is too old to report times


class Role(Enum):
    LEADER = "leader"
    VOTER = "voter"
    OBSERVER = "observer"


class Status(Enum):
    """The replication status of a replica."""

    OK = "ok"
    BEHIND = "behind"
    SILENT = "silent"


@dataclass(frozen=True, slots=True)
class Replica:
    """A replica compared with the leader. Times are None if the leader does not report them."""

    state: ReplicaState
    role: Role
    status: Status
    lag: int
    since_fetch_ms: int | None
    since_caught_up_ms: int | None

    @property
    def works(self) -> bool:
        return self.status is Status.OK

    def __str__(self) -> str:
        what = "voter" if self.role is not Role.OBSERVER else "observer"
        return f"{what} {self.state.replica_id}"


@dataclass(frozen=True, slots=True)
class Health:
    """The health of a quorum. `can_lose` is the number of working voters that may stop while it still commits."""

    replicas: tuple[Replica, ...]
    is_healthy: bool
    can_lose: int
    problems: tuple[str, ...]

    @property
    def voters(self) -> tuple[Replica, ...]:
        return tuple(each for each in self.replicas if each.role is not Role.OBSERVER)

    @property
    def majority(self) -> int:
        return majority(len(self.voters))

    @property
    def behind(self) -> tuple[Replica, ...]:
        return tuple(each for each in self.replicas if not each.works)

    def verdict(self) -> str:
        """A one-sentence summary."""
        working, count = sum(each.works for each in self.voters), len(self.voters)
        lost = f"it can lose {self.can_lose} of them" if self.can_lose else "it cannot lose one"
        if count == 1 and self.is_healthy:
            lost = "it is the only one, so it cannot be lost"
        word = "healthy" if self.is_healthy else "unhealthy"
        return f"{word}: {working} of {count} voter{'s' if count != 1 else ''} {_works(working)}; {lost}"


def _works(count: int) -> str:
    return "works" if count == 1 else "work"


def majority(voters: int) -> int:
    return voters // 2 + 1


def judge(info: QuorumInfo, now_ms: int, *, max_lag_ms: int = DEFAULT_MAX_LAG_MS, can_lose: int = 0) -> Health:
    """Judge a quorum. It is unhealthy also if it cannot lose `can_lose` voters.

    `now_ms` is used only if the leader reports no time of its own.
    """
    leader = info.leader
    if leader is not None and leader.last_fetch_timestamp_ms is not None:
        now_ms = leader.last_fetch_timestamp_ms
    replicas = tuple(_replicas(info, now_ms, max_lag_ms))
    voters = [each for each in replicas if each.role is not Role.OBSERVER]
    spare = max(sum(each.works for each in voters) - majority(len(voters)), 0)
    problems = list(_problems(info, voters))
    if spare < can_lose:
        problems.append(f"it can lose {spare or 'no'} voters, and should be able to lose {can_lose}")
    return Health(replicas, is_healthy=not problems, can_lose=spare, problems=tuple(problems))


def loss_of(info: QuorumInfo, health: Health, node_id: int) -> str | None:
    """Describe the loss of the majority if this node stopped. Returns None if the quorum would keep it."""
    lost = next((each for each in health.voters if each.state.replica_id == node_id), None)
    if lost is None:
        return None
    left = sum(each.works for each in health.voters) - lost.works
    if left >= health.majority:
        return None
    return (
        f"{left} of {len(health.voters)} voters would work, and {health.majority} are needed: "
        "without them no metadata changes"
    )


def _replicas(info: QuorumInfo, now_ms: int, max_lag_ms: int) -> Iterator[Replica]:
    end_offset = max((each.log_end_offset for each in (*info.voters, *info.observers)), default=0)
    if info.leader is not None:
        end_offset = info.leader.log_end_offset
    has_times = info.leader is not None and info.leader.last_fetch_timestamp_ms is not None
    order = sorted(info.voters, key=lambda each: (each.replica_id != info.leader_id, each.replica_id))
    for role, states in ((Role.VOTER, order), (Role.OBSERVER, sorted(info.observers, key=lambda o: o.replica_id))):
        for state in states:
            is_leader = role is Role.VOTER and state.replica_id == info.leader_id
            lag = max(end_offset - state.log_end_offset, 0)
            fetch_ms, caught_up_ms = (
                None if at_ms is None else max(now_ms - at_ms, 0)
                for at_ms in (state.last_fetch_timestamp_ms, state.last_caught_up_timestamp_ms)
            )
            status = Status.OK
            if not is_leader:
                status = _status(lag, fetch_ms, caught_up_ms, max_lag_ms, has_times=has_times)
            yield Replica(state, Role.LEADER if is_leader else role, status, lag, fetch_ms, caught_up_ms)


def _status(
    lag: int, since_fetch_ms: int | None, since_caught_up_ms: int | None, max_lag_ms: int, *, has_times: bool
) -> Status:
    if not has_times and since_fetch_ms is None:
        return Status.OK if lag <= _MAX_LAG_RECORDS else Status.BEHIND
    if since_caught_up_ms is not None and since_caught_up_ms <= max_lag_ms:
        return Status.OK
    return Status.BEHIND if since_fetch_ms is not None and since_fetch_ms <= max_lag_ms else Status.SILENT


def _problems(info: QuorumInfo, voters: Iterable[Replica]) -> Iterator[str]:
    if info.leader_id < 0:
        yield "there is no leader"
    elif info.leader is None:
        yield f"the leader {info.leader_id} is not a voter: it is about to resign"
    if info.high_watermark < 0:
        yield "nothing is committed yet: there is no high watermark"
    for each in voters:
        if each.status is Status.SILENT:
            told = (
                "has not fetched" if each.since_fetch_ms is None else f"last fetched {seconds(each.since_fetch_ms)} ago"
            )
            yield f"{each} {told}: it is not running, or cannot reach the leader"
        elif each.status is Status.BEHIND:
            since = "" if each.since_caught_up_ms is None else f" for {seconds(each.since_caught_up_ms)}"
            yield f"{each} is behind{since}: {each.lag} records are missing"


def seconds(milliseconds: int) -> str:
    """Format milliseconds as seconds.

    >>> seconds(400), seconds(12_340), seconds(7_200_000)
    ('0.4 s', '12 s', '7,200 s')
    """
    return f"{milliseconds / 1000:,.0f} s" if milliseconds >= 10_000 else f"{milliseconds / 1000:.1f} s"
