"""Settings of a process that runs a node and nothing else: open files and garbage collection."""

from __future__ import annotations

import asyncio
import gc
import logging
import resource

from barnabas.storage import files

_log = logging.getLogger(__name__)

# New container objects before a collection of the youngest, and of those before one of the next. A collection is one turn
# of the event loop, so the youngest and the next may not have many objects: a request of 500,000 rows makes millions.
# With 500,000 objects in the next generation, its collection took 15 to 75 ms. A collection of all objects would take
# longer the larger the requests in progress are, 0.2 to 1 s, so Python itself never makes one (see `collect_when_quiet`).
COLLECTIONS = (10_000, 5, 1_000_000_000)
ALL_DUE = 500  # collections of the next generation, after which all objects are collected in a quiet moment
ALL_OVERDUE = 5_000  # and in any moment, so that garbage is bounded
QUIET = 5  # collections of the next generation between two looks: no large request was worked on
LOOK_EVERY_S = 1.0


def raise_open_file_limit() -> None:
    """Raise the limit of open files to what the system allows, and let logs use their share. Says so in the log."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == hard:
        _log.info("this process may open %s files", _text(soft))
        return
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    except (OSError, ValueError) as error:
        _log.warning(
            "the limit of open files stays at %s, and could not be raised to %s: %s", _text(soft), _text(hard), error
        )
        return
    files.open_files.limit = files.default_limit()
    _log.info("raised the limit of open files from %s to %s", _text(soft), _text(hard))


def spare_long_lived_objects() -> None:
    """Leave what was made so far, which stays until the end, out of all later collections.

    It is not collected before: that would be one long turn of a node that answers already.
    """
    gc.freeze()
    gc.set_threshold(*COLLECTIONS)


async def collect_when_quiet() -> None:
    """Collect all objects from time to time, in moments in which no large request is worked on. Runs until cancelled."""
    before = 0
    while True:
        await asyncio.sleep(LOOK_EVERY_S)
        due = gc.get_count()[2]
        if due >= ALL_OVERDUE or (due >= ALL_DUE and due - before <= QUIET):
            gc.collect()
            due = 0
        before = due


def _text(limit: int) -> str:
    return "any number" if limit == resource.RLIM_INFINITY else f"{limit:,}"
