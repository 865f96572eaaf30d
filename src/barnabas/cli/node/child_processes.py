"""Child processes whose output lines are passed on, and which do not outlive this process.

Its one rule: each child runs in its own session, so that Ctrl-C reaches only this process. A child is ended together with all
processes that it started.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable, Sequence
from contextlib import suppress

GRACE_S = 5.0
"""Seconds between SIGTERM and SIGKILL."""

Say = Callable[[str], None]


class Children:
    def __init__(self) -> None:
        self._groups: set[int] = set()

    async def run(self, command: Sequence[str], say: Say, say_error: Say) -> int:
        """Run a command, pass on its lines as they come, and return its exit code. Cancellation ends the command."""
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
        )
        self._groups.add(process.pid)
        try:
            assert process.stdout is not None
            assert process.stderr is not None
            await asyncio.gather(_lines(process.stdout, say), _lines(process.stderr, say_error))
            return await process.wait()
        finally:
            await self._end(process)

    async def _end(self, process: asyncio.subprocess.Process) -> None:
        _signal(process.pid, signal.SIGTERM)
        with suppress(TimeoutError):
            async with asyncio.timeout(GRACE_S):
                await process.wait()
        _signal(process.pid, signal.SIGKILL)
        await process.wait()
        self._groups.discard(process.pid)

    def kill(self) -> None:
        """Kill all children, without waiting for their end."""
        for group in self._groups:
            _signal(group, signal.SIGKILL)


def _signal(group: int, number: signal.Signals) -> None:
    """Send a signal to a process group. Does nothing if it has ended."""
    with suppress(ProcessLookupError):
        os.killpg(group, number)


async def _lines(stream: asyncio.StreamReader, say: Say) -> None:
    async for line in stream:
        say(line.decode(errors="replace").rstrip())
