"""The soft state of the consumer groups of one partition. Lost with the leadership of the partition."""

from __future__ import annotations

import asyncio
from typing import NamedTuple

from barnabas.groups.classic.member import NEVER
from barnabas.groups.consumer_decision import Timer, TimerChange
from barnabas.metadata.topics import Topics
from barnabas.replicated.scheduler import Handle


class TimerKey(NamedTuple):
    """The timer of a member."""

    group_id: str
    member_id: str
    timer: Timer


class Deadline(NamedTuple):
    """End of a timer on the monotonic clock, and the member epoch it was started in."""

    at_ms: float
    epoch: int = 0


class ConsumerSoftState:
    """Deadlines of members, the metadata that groups were checked against, and regular expressions being resolved.

    A heartbeat only notes a deadline. One timer, `wake`, fires when the earliest of them may be over.
    """

    def __init__(self) -> None:
        self.deadlines: dict[TimerKey, Deadline] = {}
        self.checked: dict[str, tuple[Topics, int]] = {}  # by group: topics its hash was compared with, group epoch
        self.resolving: dict[str, asyncio.Task[None]] = {}  # by group
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

    def due(self, steady_ms: float) -> list[TimerKey]:
        """Return the timers that are over."""
        return [key for key, deadline in self.deadlines.items() if deadline.at_ms <= steady_ms]

    def find_earliest(self) -> None:
        """Set `earliest_ms` to the earliest deadline that is left."""
        self.earliest_ms = min((deadline.at_ms for deadline in self.deadlines.values()), default=NEVER)

    def forget(self, group_id: str) -> None:
        """Forget a group that is no consumer group any more."""
        for key in [key for key in self.deadlines if key.group_id == group_id]:
            del self.deadlines[key]
        self.checked.pop(group_id, None)

    def close(self) -> None:
        """Cancel the timer and the tasks: the leadership was lost."""
        self.is_closed = True
        if self.wake is not None:
            self.wake.cancel()
        for task in self.resolving.values():
            task.cancel()
