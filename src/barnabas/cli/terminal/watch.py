"""`--watch`: the same question again and again, until it is interrupted.

Its one rule: on a terminal the new answer takes the place of the old one; in a file or a pipe answers follow each other.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable

import click

watch_option = click.option(
    "--watch", type=click.FloatRange(min=0.1), metavar="SECONDS", help="Ask again every so many seconds, until Ctrl-C."
)


async def watched(every_s: float | None, show: Callable[[], Awaitable[bool | None]]) -> None:
    """Show once, or again and again; `show` may say True when there is nothing more to see."""
    while True:
        if every_s is not None and sys.stdout.isatty():
            click.clear()
        done = await show()
        if every_s is None or done:
            return
        await asyncio.sleep(every_s)
