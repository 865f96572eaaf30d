"""The event loop for long work: uvloop is faster but slow to import, so short commands use asyncio's."""

from __future__ import annotations

from asyncio import AbstractEventLoop
from collections.abc import Callable


def fast_loop() -> Callable[[], AbstractEventLoop] | None:
    """Return the loop factory of uvloop, or None if it is not installed."""
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop
