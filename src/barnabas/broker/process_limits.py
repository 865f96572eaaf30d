"""Settings of a process that runs a node and nothing else: open files and garbage collection."""

from __future__ import annotations

import gc
import logging
import resource

from barnabas.storage import files

_log = logging.getLogger(__name__)

# New container objects before a collection of the youngest, of those before one of the next, and of those before one of all.
COLLECTIONS = (50_000, 10, 50)


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
    """Leave what the start has made, which stays until the end, out of all later collections."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*COLLECTIONS)


def _text(limit: int) -> str:
    return "any number" if limit == resource.RLIM_INFINITY else f"{limit:,}"
