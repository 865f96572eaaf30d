"""`--watch`: repeat a command until Ctrl-C; and the end of commands after Ctrl-C.

Its one rule: on a terminal, new output replaces the old; in a file or a pipe, it is appended, and rows of JSON and YAML have
the time of their sample. Ctrl-C is the normal end of `--watch` and `--follow`, with exit code 0, whatever was shown.
"""

from __future__ import annotations

import asyncio
import signal
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import NoReturn

import click

from barnabas.cli.terminal.exit_codes import EXIT_OK, EXIT_TERMINATED
from barnabas.cli.terminal.output import Output, note

watch_option = click.option(
    "--watch",
    type=click.FloatRange(min=0.1),
    metavar="SECONDS",
    help="Repeat every SECONDS until Ctrl-C, which exits with 0.",
)


async def watched(output: Output, every_s: float | None, show: Callable[[], Awaitable[bool | None]]) -> None:
    """Call `show` once, or every `every_s` seconds until it returns True. Ctrl-C while repeating exits with 0."""
    if every_s is None:
        await show()
        return
    try:
        while True:
            output.sample_timestamp = time.time_ns() // 1_000_000
            if sys.stdout.isatty():
                click.clear()
            if await show():
                return
            await asyncio.sleep(every_s)
    except asyncio.CancelledError:  # only Ctrl-C cancels the task of a command
        interrupted(is_normal=True)


@contextmanager
def cancelled_by_sigterm() -> Iterator[Callable[[], bool]]:
    """Make SIGTERM cancel the task of the command, as Ctrl-C does. Yield a function that returns whether it arrived."""
    task, loop = asyncio.current_task(), asyncio.get_running_loop()
    if task is None or threading.current_thread() is not threading.main_thread():
        yield lambda: False
        return
    came: list[bool] = []

    def end() -> None:
        came.append(True)
        task.cancel()

    loop.add_signal_handler(signal.SIGTERM, end)
    try:
        yield lambda: bool(came)
    finally:
        loop.remove_signal_handler(signal.SIGTERM)


def terminated() -> NoReturn:
    """End the command after SIGTERM."""
    raise click.exceptions.Exit(EXIT_TERMINATED)


def interrupted(*, is_normal: bool) -> NoReturn:
    """End the command after Ctrl-C: with exit code 0 if that is its normal end, otherwise as aborted, with 1."""
    if sys.stderr.isatty():
        note("")  # the line of ^C
    if is_normal:
        raise click.exceptions.Exit(EXIT_OK)
    raise click.Abort
