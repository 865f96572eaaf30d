"""The faults of a run: drawn from the seed before it begins, so that a plan can be shown, and shrunk by leaving faults out."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from random import Random
from typing import NamedTuple

MIN_PAUSE_S, MAX_PAUSE_S = 0.1, 3.0
ONE_BY_ONE_S = 12.0
CLIENT = "client"


class Kind(Enum):
    """What can go wrong, with its weight among the faults of a plan.

    In STUTTER a machine stands still again and again for a moment, so that much happens in one turn.
    What a machine sends in LATE arrives late on a connection that it has given up, and so after what it sent again on another.
    The last three wait for a weak moment of several nodes. In BALLOT the metadata has just elected a leader, which is cut
    off, and those that voted are killed. In LAGGARD a follower was cut off from a leader for long, its fetches are slow after
    that, and the leader dies as soon as the follower is in its ISR again. In TRIM the leader of the metadata stands still
    while it writes a snapshot, and fetches of a follower that is late come in the turn in which it trims its log.
    """

    KILL = 6
    POWER = 5
    BLACKOUT = 2
    RESTART = 2
    PAUSE = 3
    STUTTER = 1.5
    CUT = 4
    ISOLATE = 3
    LOSE = 4.0
    LATE = 2.5
    SLOW_LINK = 2.0
    SLOW_DISK = 2.1
    FULL_DISK = 1
    FLUSH_ERROR = 0.5
    READ_ERROR = 0.4
    CLOCK = 1.1
    BALLOT = 0.6
    LAGGARD = 0.7
    TRIM = 0.8


NEEDS_NODES = (Kind.BALLOT, Kind.LAGGARD, Kind.TRIM)
NEEDS_FLUSHES = (Kind.POWER, Kind.BLACKOUT)  # lose what was acknowledged, unless logs are flushed before


class Fault(NamedTuple):
    at_s: float
    kind: Kind
    machine: str
    other: str  # the other end of a link
    duration_s: float
    amount: float

    def __str__(self) -> str:
        what = self.kind.name.lower().replace("_", " ")
        where = f"{self.machine} -> {self.other}" if self.kind in _OF_LINKS else self.machine
        return f"{self.at_s:7.3f} s  {what:<11} {where:<14} for {self.duration_s:.3f} s, {self.amount:.3f}"


_OF_LINKS = (Kind.CUT, Kind.LOSE, Kind.LATE, Kind.SLOW_LINK)


def draw_plan(
    random: Random,
    machines: Sequence[str],
    duration_s: float,
    *,
    without: Sequence[Kind] = (),
    only: Kind | None = None,
) -> list[Fault]:
    """Draw the faults of a run of some length, in order of time. With `only`, each has time to end before the next."""
    kinds = [kind for kind in Kind if kind not in without] if only is None else [only]
    pause_s = (MIN_PAUSE_S, MAX_PAUSE_S) if only is None else (MAX_PAUSE_S, ONE_BY_ONE_S)
    weights = [kind.value for kind in kinds]
    plan: list[Fault] = []
    at_s = 0.0
    while True:
        at_s += random.uniform(*pause_s)
        kind = random.choices(kinds, weights)[0]
        machine = random.choice(machines)
        other = random.choice([each for each in (*machines, CLIENT) if each != machine])
        if kind in _OF_LINKS and random.random() < 0.5:
            machine, other = other, machine
        long = random.random() < 0.2
        fault = Fault(
            round(at_s, 3),
            kind,
            machine,
            other,
            round(random.uniform(0, 12 if long else 3), 3),
            round(random.random(), 3),
        )
        if at_s >= duration_s:
            return plan
        plan.append(fault)
