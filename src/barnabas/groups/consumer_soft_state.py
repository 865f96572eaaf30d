"""The timers of members of one partition, and the soft state of its consumer groups. Lost with the leadership."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from typing import NamedTuple

from barnabas.groups.classic.member import NEVER
from barnabas.groups.consumer_decision import Timer, TimerChange
from barnabas.metadata.topics import Topics
from barnabas.replicated.scheduler import Handle, Scheduler


class TimerKey(NamedTuple):
    """The timer of a member."""

    group_id: str
    member_id: str
    timer: Timer


class Deadline(NamedTuple):
    """End of a timer on the monotonic clock, and the member epoch it was started in."""

    at_ms: float
    epoch: int = 0


class MemberTimers:
    """Deadlines of members. A heartbeat only notes a deadline. `wake` fires when the earliest of them may be over."""

    def __init__(self) -> None:
        self.deadlines: dict[TimerKey, Deadline] = {}
        self.earliest_ms: float = NEVER  # lower bound of all deadlines
        self.wake_ms: float = NEVER
        self.wake: Handle | None = None
        self.is_closed = False

    def set_timer(self, group_id: str, change: TimerChange, steady_ms: float) -> None:
        """Start, restart or end a timer of a member."""
        key = TimerKey(group_id, change.member_id, change.timer)
        if change.delay_ms is None:
            self.deadlines.pop(key, None)
        elif not (change.if_absent and key in self.deadlines):
            deadline = self.deadlines[key] = Deadline(steady_ms + change.delay_ms, change.epoch)
            self.earliest_ms = min(self.earliest_ms, deadline.at_ms)

    def schedule(self, scheduler: Scheduler, steady_ms: Callable[[], float], woken: Callable[[], None]) -> None:
        """Make sure that `woken` is called by the earliest deadline."""
        if self.is_closed or self.earliest_ms >= self.wake_ms or self.earliest_ms == NEVER:
            return
        if self.wake is not None:
            self.wake.cancel()
        self.wake_ms = self.earliest_ms
        delay_ms = max(0, math.ceil(self.wake_ms - steady_ms()))
        self.wake = scheduler.call_later(delay_ms, woken)

    def take_due(self, steady_ms: float) -> list[tuple[TimerKey, Deadline]]:
        """Remove and return the timers that are over. Called when `wake` has fired."""
        if self.is_closed:
            return []
        self.wake, self.wake_ms = None, NEVER
        keys = [key for key, deadline in self.deadlines.items() if deadline.at_ms <= steady_ms]
        return [(key, self.deadlines.pop(key)) for key in keys]

    def find_earliest(self) -> None:
        """Set `earliest_ms` to the earliest deadline that is left."""
        self.earliest_ms = min((deadline.at_ms for deadline in self.deadlines.values()), default=NEVER)

    def forget(self, group_id: str) -> None:
        """Forget the timers of a group."""
        for key in [key for key in self.deadlines if key.group_id == group_id]:
            del self.deadlines[key]

    def close(self) -> None:
        """Cancel the timer: the leadership was lost."""
        self.is_closed = True
        if self.wake is not None:
            self.wake.cancel()


class ConsumerSoftState(MemberTimers):
    """Timers, the metadata that consumer groups were checked against, and regular expressions being resolved."""

    def __init__(self) -> None:
        super().__init__()
        self.checked: dict[str, tuple[Topics, int]] = {}  # by group: topics its hash was compared with, group epoch
        self.resolving: dict[str, asyncio.Task[None]] = {}  # by group

    def forget(self, group_id: str) -> None:
        """Forget a group that is no consumer group any more."""
        super().forget(group_id)
        self.checked.pop(group_id, None)

    def close(self) -> None:
        """Cancel the timer and the tasks: the leadership was lost."""
        super().close()
        for task in self.resolving.values():
            task.cancel()
