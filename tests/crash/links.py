"""Links to the nodes of a cluster: proxies that can be cut, held or slow. All of them run in one thread with an event loop."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable
from typing import Any

from tools.apache_kafka import HOST

_CHUNK_BYTES = 1 << 16


class Link:
    """A port that leads to another one. `delay_s` is added to each piece; while it is `held`, nothing passes."""

    def __init__(self, target_port: int) -> None:
        self.target_port = target_port
        self.port = 0
        self.delay_s = 0.0
        self.is_cut = False
        self._open = asyncio.Event()
        self._open.set()
        self._writers: set[asyncio.StreamWriter] = set()

    async def listen(self) -> asyncio.Server:
        server = await asyncio.start_server(self._serve, HOST, 0)
        self.port = server.sockets[0].getsockname()[1]
        return server

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there: asyncio.StreamWriter | None = None
        self._writers.add(writer)
        try:
            if self.is_cut:
                return
            back, there = await asyncio.open_connection(HOST, self.target_port)
            self._writers.add(there)
            ways = [asyncio.ensure_future(self._copy(*way)) for way in ((reader, there), (back, writer))]
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)
        except OSError:
            pass  # nobody listens there now
        finally:
            for each in (writer, there):
                if each is not None:
                    self._writers.discard(each)
                    each.transport.abort()

    async def _copy(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while chunk := await reader.read(_CHUNK_BYTES):
                await self._open.wait()
                if self.delay_s:
                    await asyncio.sleep(self.delay_s)
                writer.write(chunk)
                await writer.drain()

    def cut(self) -> None:
        """Abort what is connected, and refuse what comes."""
        self.is_cut = True
        for writer in list(self._writers):
            writer.transport.abort()

    def hold(self) -> None:
        """Let nothing pass any more; connections stay, as when a cable is pulled."""
        self._open.clear()

    def heal(self) -> None:
        self.is_cut = False
        self.delay_s = 0.0
        self._open.set()


class Links:
    """The links of a cluster, and their thread."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._servers: list[asyncio.Server] = []
        self._thread = threading.Thread(target=self._loop.run_forever, name="links")
        self._thread.start()

    def add(self, target_port: int) -> Link:
        async def made() -> Link:
            link = Link(target_port)
            self._servers.append(await link.listen())
            return link

        return asyncio.run_coroutine_threadsafe(made(), self._loop).result()

    def call(self, function: Callable[[], Any]) -> None:
        """Call a function in the thread of the links."""

        async def called() -> None:
            function()

        asyncio.run_coroutine_threadsafe(called(), self._loop).result()

    def close(self) -> None:
        async def ended() -> None:
            for server in self._servers:
                server.close()
            others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
            for task in others:
                task.cancel()
            await asyncio.gather(*others, return_exceptions=True)

        asyncio.run_coroutine_threadsafe(ended(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
