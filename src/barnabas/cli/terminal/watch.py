"""`--watch`: repeat a command until it is interrupted.

Its one rule: on a terminal, new output replaces the old; in a file or a pipe, it is appended, and rows of JSON and YAML have
the time of their sample.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Awaitable, Callable

import click

from barnabas.cli.terminal.output import Output

watch_option = click.option(
    "--watch", type=click.FloatRange(min=0.1), metavar="SECONDS", help="Repeat every SECONDS until Ctrl-C."
)


async def watched(output: Output, every_s: float | None, show: Callable[[], Awaitable[bool | None]]) -> None:
    """Call `show` once, or every `every_s` seconds until it returns True."""
    while True:
        if every_s is not None:
            output.sample_timestamp = time.time_ns() // 1_000_000
            if sys.stdout.isatty():
                click.clear()
        done = await show()
        if every_s is None or done:
            return
        await asyncio.sleep(every_s)
