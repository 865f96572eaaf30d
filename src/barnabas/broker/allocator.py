"""Keep freed memory in the process, so that large buffers are reused.

By default the C library returns large free blocks to the operating system at once and gets them back page by page. For
responses of several megabytes, that costs more than reading and sending them. Only for a process that runs a node and
nothing else.
"""

from __future__ import annotations

import ctypes

# Parameters of mallopt(3).
_M_TRIM_THRESHOLD = -1
_M_MMAP_THRESHOLD = -3

LARGE_BLOCK_BYTES = 32 * 1024 * 1024  # a larger block is returned to the system as soon as it is freed
KEPT_BYTES = 64 * 1024 * 1024  # free memory that the process keeps


def keep_large_blocks() -> bool:
    """Set the thresholds of the allocator. Return False if the C library does not support them."""
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError, TypeError):
        return False
    mallopt.argtypes, mallopt.restype = (ctypes.c_int, ctypes.c_int), ctypes.c_int
    return bool(mallopt(_M_MMAP_THRESHOLD, LARGE_BLOCK_BYTES) and mallopt(_M_TRIM_THRESHOLD, KEPT_BYTES))
