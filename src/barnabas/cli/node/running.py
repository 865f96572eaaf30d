"""Run a node in this process until a signal comes, for `serve` and `demo`.

Its one rule: whether a signal or a failure ends the run, the task beside the node is cancelled first, and then the node is shut
down cleanly. SIGUSR1 announces that all nodes of the cluster stop: the broker leaves, and the controller goes on, because
the other brokers need it to do the same. The ready file is removed when that is done. Then nobody waits for a next leader.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable, Coroutine, Iterator, Mapping
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import click

from barnabas.cli.node.ready_file import Announced, announced, tell_not_ready
from barnabas.cli.terminal.event_loop import fast_loop
from barnabas.cli.terminal.exit_codes import EXIT_FAILED, EXIT_OK


class RunningNode(Announced, Protocol):
    """The methods of a node that `run_node` needs."""

    failed: asyncio.Future[None]

    async def start(self) -> None: ...

    async def stop(self) -> None: ...

    def describe(self) -> Iterator[str]: ...


@runtime_checkable
class Leaving(Protocol):
    """A node whose broker can leave before the node stops."""

    async def leave(self) -> None: ...

    async def stop(self, *, hands_over: bool = True) -> None: ...


class Restartable:
    """A node that can be started again after a stop. A restart builds a new node with the same data and addresses.

    `build` is called with the addresses of the previous node, and with an empty mapping at first.
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
    """Run the node that `build` returns until a signal comes or it fails, and return the exit code.

    `beside` is started as soon as the node answers, and cancelled before the node stops. `at_once` is called at a second
    signal, before the process exits without a clean shutdown.
    """
    from barnabas.broker.allocator import keep_large_blocks
    from barnabas.broker.node import NodeError
    from barnabas.broker.process_limits import collect_when_quiet, raise_open_file_limit, spare_long_lived_objects
    from barnabas.config.definitions import ConfigError

    keep_large_blocks()
    raise_open_file_limit()

    async def main() -> int:
        told, asked_to_leave = _listen_for_signals(at_once)
        try:
            node = build()
        except ConfigError as error:
            click.echo(f"Error: {error}", err=True)
            return EXIT_FAILED
        spare_long_lived_objects()  # the modules, before the first client can be waiting
        collecting = asyncio.create_task(collect_when_quiet())
        preloading: asyncio.Task[None] | None = None
        try:
            await _first_of(node.start(), told)
            if not told.is_set():
                preloading = asyncio.create_task(_preload())
                for line in node.describe():
                    click.echo(line)
                sys.stdout.flush()
                with announced(ready_file, node):
                    leaving = asyncio.create_task(_leave(node, asked_to_leave, ready_file))
                    await _first_of(_until(told, beside), told, node.failed)
                    leaving.cancel()
                    await asyncio.wait([leaving])
        except (NodeError, OSError) as error:
            click.echo(f"Error: {error}", err=True)
            await stops_cleanly(node)
            return EXIT_FAILED
        finally:
            collecting.cancel()
            if preloading is not None:
                preloading.cancel()
                await asyncio.wait([preloading])
        failure = node.failed.exception() if node.failed.done() else None
        if failure is not None:
            click.echo(f"Error: this node has failed: {failure}", err=True)
        click.echo("stopping (signal again to stop at once)")
        is_clean = await stops_cleanly(node, hands_over=not asked_to_leave.is_set())
        return EXIT_OK if failure is None and is_clean else EXIT_FAILED

    async def stops_cleanly(node: RunningNode, *, hands_over: bool = True) -> bool:
        try:
            if not hands_over and isinstance(node, Leaving):
                await node.stop(hands_over=False)
            else:
                await node.stop()
        except NodeError as error:
            click.echo(f"Error: {error}", err=True)
            return False
        return True

    with asyncio.Runner(loop_factory=fast_loop()) as runner:
        return runner.run(main())


async def _preload() -> None:
    """Import what the first requests will need, and leave it and what the start has made out of collections."""
    from barnabas.broker.preloading import preload
    from barnabas.broker.process_limits import spare_long_lived_objects

    await preload()
    spare_long_lived_objects()


async def _until(told: asyncio.Event, beside: Beside | None) -> None:
    if beside is not None:
        await beside()
    await told.wait()


async def _leave(node: RunningNode, asked: asyncio.Event, ready_file: Path | None) -> None:
    await asked.wait()
    if isinstance(node, Leaving):
        await node.leave()
    tell_not_ready(ready_file)


def _listen_for_signals(at_once: Callable[[], None]) -> tuple[asyncio.Event, asyncio.Event]:
    """Return an event that the first SIGINT or SIGTERM sets, and one for SIGUSR1. A second SIGINT or SIGTERM ends the
    process at once.
    """
    loop, told, asked_to_leave = asyncio.get_running_loop(), asyncio.Event(), asyncio.Event()

    def on_signal() -> None:
        if told.is_set():
            at_once()
            os._exit(EXIT_FAILED)
        told.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, on_signal)
    loop.add_signal_handler(signal.SIGUSR1, asked_to_leave.set)
    return told, asked_to_leave


async def _first_of(work: Coroutine[Any, Any, Any], told: asyncio.Event, *failed: asyncio.Future[None]) -> None:
    """Await the work. Cancel it if a signal comes or the node fails before."""
    working, stopped = asyncio.create_task(work), asyncio.create_task(told.wait())
    either: set[asyncio.Future[Any]] = {working, stopped, *failed}
    await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
    stopped.cancel()
    if working.done():
        working.result()
    else:
        working.cancel()
        await asyncio.wait([working])
