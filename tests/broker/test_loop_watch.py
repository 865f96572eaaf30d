"""The watch over the event loop: a turn that takes long is counted, and logged with the code that was running."""

from __future__ import annotations

import asyncio
import logging
import sys
import threading

import pytest

from barnabas.broker import loop_watch
from barnabas.broker.loop_watch import LOG_EVERY_MS, MAX_TURN_MS, LoopWatch
from barnabas.wire import json_text


class Clock:
    def __init__(self) -> None:
        self.ms = 1000

    def __call__(self) -> int:
        return self.ms


def test_a_long_turn_is_logged_with_what_ran_and_not_too_often(caplog: pytest.LogCaptureFixture) -> None:
    clock, cpu = Clock(), Clock()
    watch = LoopWatch(clock, cpu)
    looked = threading.Event()

    def long_turn() -> None:
        """Hold the loop until the watching thread has seen it, then let a second pass."""
        clock.ms += 1000
        cpu.ms += 900
        for _ in range(1000):
            if watch._seen:
                looked.set()
                return
            threading.Event().wait(0.01)

    async def beat() -> None:
        before = watch._last_beat_ms
        async with asyncio.timeout(20):
            while watch._last_beat_ms == before:
                await asyncio.sleep(0.01)

    async def scenario() -> None:
        watch.start()
        try:
            long_turn()
            await beat()
            clock.ms += MAX_TURN_MS * 3
            await beat()
            assert (watch.long_turns, watch.longest_ms) == (2, 950)
            clock.ms += LOG_EVERY_MS
            await beat()
        finally:
            watch.stop()

    with caplog.at_level(logging.INFO, loop_watch.__name__):
        asyncio.run(scenario())
    assert looked.is_set()
    first, second = (record.getMessage() for record in caplog.records)
    assert first.startswith("the event loop was late by 950 ms, of which it worked 900 ms: ")
    assert "worked 0 ms (1 more since the last message)" in second
    assert [record.levelno for record in caplog.records] == [logging.WARNING, logging.INFO]
    assert not watch._thread.is_alive()


def test_the_innermost_code_of_this_project_is_named() -> None:
    assert "test_loop_watch" in loop_watch._describe(sys._getframe())  # none of the project: the innermost of all
    namespace = {"__name__": json_text.__name__, "describe": loop_watch._describe, "sys": sys}
    exec("def inner():\n    return describe(sys._getframe())\n", namespace)
    assert namespace["inner"]() == "barnabas.wire.json_text:2 inner"  # type: ignore[operator]
