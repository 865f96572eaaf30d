"""Many connections that ask one thing and close; every tenth breaks off in the middle of a frame."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
import threading
import time

from tools.apache_kafka import api_versions_request

from tests.soak.measure import PATIENCE

BROKEN_EVERY = 10
AT_ONCE = 50
ANSWER_S = 30.0 * PATIENCE
RESET = struct.pack("ii", 1, 0)  # SO_LINGER: close with RST
REQUEST = api_versions_request(3)


class ShortConnections:
    """Opens so many, evenly over a time, at most `AT_ONCE` of them together, in an event loop of its own."""

    def __init__(self, address: tuple[str, int], count: int, over_s: float) -> None:
        self._address = address
        self.wanted = count
        self._over_s = over_s
        self._end = threading.Event()
        self.opened = self.answered = self.broken_off = self.failed = 0
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()), daemon=True)

    def start(self) -> None:
        self._thread.start()

    async def _run(self) -> None:
        started_s = time.monotonic()
        at_once = asyncio.Semaphore(AT_ONCE)
        async with asyncio.TaskGroup() as tasks:
            for number in range(self.wanted):
                early_s = started_s + self._over_s * number / self.wanted - time.monotonic()
                if early_s > 0:
                    await asyncio.sleep(early_s)
                await at_once.acquire()
                if self._end.is_set():
                    return
                tasks.create_task(self._one(number)).add_done_callback(lambda _: at_once.release())

    async def _one(self, number: int) -> None:
        self.opened += 1
        try:
            async with asyncio.timeout(ANSWER_S):
                if number % BROKEN_EVERY == BROKEN_EVERY - 1:
                    await self._break_off(number // BROKEN_EVERY)
                    self.broken_off += 1
                else:
                    await self._ask()
                    self.answered += 1
        except (OSError, EOFError):
            self.failed += 1

    async def _ask(self) -> None:
        reader, writer = await asyncio.open_connection(*self._address)
        with contextlib.closing(writer):
            writer.write(REQUEST)
            await reader.readexactly(int.from_bytes(await reader.readexactly(4)))

    async def _break_off(self, number: int) -> None:
        """Wherever in the frame; every second time with RST."""
        _, writer = await asyncio.open_connection(*self._address)
        with contextlib.closing(writer):
            if number % 2:
                writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
            writer.write(REQUEST[: number % len(REQUEST)])

    def finish(self, patience_s: float) -> None:
        """Wait for those that are left, but not for long."""
        self._thread.join(patience_s)
        self._end.set()
        self._thread.join(ANSWER_S)
