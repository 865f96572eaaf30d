"""`--watch`: repeat a command until Ctrl-C; and the end of commands after Ctrl-C.

Its one rule: on a terminal, new output replaces the old; in a file or a pipe, it is appended, and rows of JSON and YAML have
the time of their sample. Ctrl-C is the normal end of `--watch` and `--follow`, with exit code 0, whatever was shown.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Awaitable, Callable
from typing import NoReturn

import click

from barnabas.cli.terminal.exit_codes import EXIT_OK
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


def interrupted(*, is_normal: bool) -> NoReturn:
    """End the command after Ctrl-C: with exit code 0 if that is its normal end, otherwise as aborted, with 1."""
    if sys.stderr.isatty():
        note("")  # the line of ^C
    if is_normal:
        raise click.exceptions.Exit(EXIT_OK)
    raise click.Abort
