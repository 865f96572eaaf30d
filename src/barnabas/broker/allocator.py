"""How the process keeps its memory: what held records holds the next ones.

By itself, the C library gives large blocks back to the system as soon as they are free, and gets them again page by page:
for answers of megabytes that costs more than reading and sending them. Only for a process that is a node and nothing else.
"""

from __future__ import annotations

import ctypes

# Of mallopt(3).
_M_TRIM_THRESHOLD = -1
_M_MMAP_THRESHOLD = -3

LARGE_BLOCK_BYTES = 32 * 1024 * 1024  # above that, a block of its own, which goes back at once
KEPT_BYTES = 64 * 1024 * 1024  # free memory that is not given back


def keep_large_blocks() -> bool:
    """Whether this C library can be told so."""
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError, TypeError):
        return False
    mallopt.argtypes, mallopt.restype = (ctypes.c_int, ctypes.c_int), ctypes.c_int
    return bool(mallopt(_M_MMAP_THRESHOLD, LARGE_BLOCK_BYTES) and mallopt(_M_TRIM_THRESHOLD, KEPT_BYTES))
