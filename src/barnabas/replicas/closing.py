"""Closing many logs."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor

from barnabas.storage import Log

CLOSED_AT_ONCE = 16


async def close_all(logs: Iterable[Log]) -> None:
    """Close many logs in parallel, because disks can combine concurrent flushes."""
    loop = asyncio.get_running_loop()
    with ThreadPoolExecutor(CLOSED_AT_ONCE) as threads:
        await asyncio.gather(*(loop.run_in_executor(threads, log.close) for log in logs))
