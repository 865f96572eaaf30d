"""The event loop for long work: uvloop is faster and loads slowly, so short commands do without it."""

from __future__ import annotations

from asyncio import AbstractEventLoop
from collections.abc import Callable


def fast_loop() -> Callable[[], AbstractEventLoop] | None:
    """The loop factory of uvloop, or None on a platform that does not have it."""
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop
