"""Imports in threads what a node needs later, one module after another.

A start imports as little as possible, so that the node answers soon. What is left would be imported within a turn of the
event loop when it is first needed: 0.15 s for the coordinators, when the first group or transaction comes, and some
milliseconds for the handlers of each API. So it is imported in a thread: the coordinators during the start if the cluster
has groups or transactions, and all that is missing right after it, with pauses, so that the event loop is not slowed down
by much.
"""

from __future__ import annotations

import asyncio
from importlib import import_module
from typing import Final

from barnabas.broker.dispatch import handler_of
from barnabas.broker.served import served_apis

_COORDINATORS: Final = ("barnabas.broker.txn_markers", "barnabas.broker.coordinators")
_PAUSE_S: Final = 0.002


async def import_coordinators() -> None:
    for name in _COORDINATORS:
        await asyncio.to_thread(import_module, name)


async def preload() -> None:
    """Import the coordinators, and the handlers of all APIs that a broker serves."""
    await import_coordinators()
    for key in served_apis("broker"):
        await asyncio.sleep(_PAUSE_S)
        await asyncio.to_thread(handler_of, key)
