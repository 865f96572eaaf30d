"""How much a node works in one turn of the event loop, counted in calls: time would differ from run to run.

Its one rule: a call takes a fixed time, so that work in slices pauses as it does in reality, and a step that never pauses
exceeds the limit. Counting makes a run about three times as long, so only some runs are counted.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import Callable, Iterator
from typing import Any
from unittest.mock import patch

from barnabas import slices
from tests.simulation.loop import RUNNING, Process, SimulatedLoop

CALL_S = 1e-7  # what a call, a return or a call of a C function took on the machine where this was written
LIMIT_S = 0.008  # a turn of slices is 2 ms long, and may be followed by other work of the same turn


class Turns:
    """Counts calls while a run lasts. `is_watched` says of which processes, `violated` takes what took too long."""

    def __init__(
        self, loop: SimulatedLoop, is_watched: Callable[[Process], bool], violated: Callable[[str], None]
    ) -> None:
        self.longest_s = 0.0
        self._loop = loop
        self._is_watched = is_watched
        self._violated = violated
        self._calls = 0

    @contextlib.contextmanager
    def counted(self) -> Iterator[None]:
        run = asyncio.Handle._run

        def counted_run(handle: asyncio.Handle) -> None:
            process: Process | None = handle._context.get(RUNNING)  # type: ignore[attr-defined]
            what, before = handle._callback, self._calls  # type: ignore[attr-defined]
            self._loop.is_in_thread = False
            run(handle)
            if process is not None and not self._loop.is_in_thread and self._is_watched(process):
                self._ended(process, what, (self._calls - before) * CALL_S)

        with (
            patch.object(asyncio.Handle, "_run", counted_run),
            patch.object(slices, "_clock", lambda: self._now_s),
            _profiled(self._count),
        ):
            yield

    @contextlib.contextmanager
    def aside(self) -> Iterator[None]:
        """Leave out what is done meanwhile: it is not work of the node."""
        before = self._calls
        try:
            yield
        finally:
            self._calls = before

    def _now_s(self) -> float:
        return self._calls * CALL_S

    def _count(self, frame: object, event: str, argument: object) -> None:
        self._calls += 1

    def _ended(self, process: Process, what: Any, took_s: float) -> None:
        self.longest_s = max(self.longest_s, took_s)
        if took_s > LIMIT_S:
            task = getattr(what, "__self__", None)
            where = task.get_coro() if isinstance(task, asyncio.Task) else what
            self._violated(f"{process} works for about {took_s * 1000:.0f} ms in one turn: {where}")


@contextlib.contextmanager
def _profiled(count: Callable[[Any, str, Any], None]) -> Iterator[None]:
    before = sys.getprofile()
    sys.setprofile(count)
    try:
        yield
    finally:
        sys.setprofile(before)
