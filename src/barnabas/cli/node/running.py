"""A node in this process until it is told to stop: what `serve` and `demo` share.

Its one rule: whatever ends the run, a signal or a failure, the node is stopped cleanly, and what runs beside it before that.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable, Coroutine, Iterator, Mapping
from pathlib import Path
from typing import Any, Protocol

import click

from barnabas.cli.node.ready_file import Announced, announced
from barnabas.cli.terminal.event_loop import fast_loop
from barnabas.cli.terminal.exit_codes import EXIT_FAILED, EXIT_OK


class RunningNode(Announced, Protocol):
    """What is run: a node, or the remains of one."""

    failed: asyncio.Future[None]

    async def start(self) -> None: ...

    async def stop(self) -> None: ...

    def describe(self) -> Iterator[str]: ...


class Restartable:
    """A node that can be started again after it was stopped: another object then, with the same data and addresses.

    `build` is given the addresses that the node before had; none at first.
    """

    def __init__(self, build: Callable[[Mapping[str, tuple[str, int]]], RunningNode]) -> None:
        self._build = build
        self._stopping: asyncio.Future[None] | None = None
        self.failed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._take(build({}))

    def _take(self, node: RunningNode) -> None:
        self._node = node
        self.config, self.cluster_id, self.addresses = node.config, node.cluster_id, node.addresses
        node.failed.add_done_callback(self._pass_on)

    def _pass_on(self, failed: asyncio.Future[None]) -> None:
        if not failed.cancelled() and not self.failed.done() and (error := failed.exception()) is not None:
            self.failed.set_exception(error)

    async def start(self) -> None:
        if self._stopping is not None:
            self._take(self._build(self.addresses))
            self._stopping = None
        await self._node.start()
        self.cluster_id = self._node.cluster_id

    async def stop(self) -> None:
        if self._stopping is None:
            self._stopping = asyncio.ensure_future(self._node.stop())
        await asyncio.shield(self._stopping)

    def describe(self) -> Iterator[str]:
        return self._node.describe()


Beside = Callable[[], Coroutine[Any, Any, None]]


def run_node(
    build: Callable[[], RunningNode],
    ready_file: Path | None = None,
    *,
    beside: Beside | None = None,
    at_once: Callable[[], None] = lambda: None,
) -> int:
    """Run the node that `build` gives, until a signal comes; the exit code.

    `beside` runs as soon as the node answers, and is cancelled when it shall stop; `at_once` is for what must not outlive a
    process that is told twice.
    """
    from barnabas.broker.allocator import keep_large_blocks
    from barnabas.broker.node import NodeError

    keep_large_blocks()

    async def main() -> int:
        told = _listen_for_signals(at_once)
        node = build()
        try:
            await _first_of(node.start(), told)
            if not told.is_set():
                for line in node.describe():
                    click.echo(line)
                sys.stdout.flush()
                with announced(ready_file, node):
                    await _first_of(_until(told, beside), told, node.failed)
        except (NodeError, OSError) as error:
            click.echo(f"Error: {error}", err=True)
            await node.stop()
            return EXIT_FAILED
        failure = node.failed.exception() if node.failed.done() else None
        if failure is not None:
            click.echo(f"Error: this node cannot go on: {failure}", err=True)
        click.echo("stopping (once more to stop at once)")
        await node.stop()
        return EXIT_OK if failure is None else EXIT_FAILED

    with asyncio.Runner(loop_factory=fast_loop()) as runner:
        return runner.run(main())


async def _until(told: asyncio.Event, beside: Beside | None) -> None:
    if beside is not None:
        await beside()
    await told.wait()


def _listen_for_signals(at_once: Callable[[], None]) -> asyncio.Event:
    """Set at the first SIGINT or SIGTERM; a second one ends the process at once."""
    loop, told = asyncio.get_running_loop(), asyncio.Event()

    def on_signal() -> None:
        if told.is_set():
            at_once()
            os._exit(EXIT_FAILED)
        told.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, on_signal)
    return told


async def _first_of(work: Coroutine[Any, Any, Any], told: asyncio.Event, *failed: asyncio.Future[None]) -> None:
    """Wait for the work, but not longer than until a signal comes or the node cannot go on."""
    working, stopped = asyncio.create_task(work), asyncio.create_task(told.wait())
    either: set[asyncio.Future[Any]] = {working, stopped, *failed}
    await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
    stopped.cancel()
    if working.done():
        working.result()
    else:
        working.cancel()
        await asyncio.wait([working])
