"""Lines of the log that clients cause: at most so many in a second, and how many more there were.

Its one rule: whoever can connect can neither fill the log, nor keep the event loop busy with writing it.
"""

from __future__ import annotations

import asyncio
import logging

_log = logging.getLogger(__name__)

MAX_LINES_PER_S = 100


class ClientLines:
    """The lines of one node. Each is written with the logger of the module that it is about."""

    def __init__(self) -> None:
        self._lines = 0  # in this second
        self._second: asyncio.TimerHandle | None = None

    def log(self, logger: logging.Logger, level: int, text: str, *values: object) -> None:
        if not logger.isEnabledFor(level):
            return
        if self._second is None:
            self._second = asyncio.get_running_loop().call_later(1, self.end_second)
        self._lines += 1
        if self._lines <= MAX_LINES_PER_S:
            logger.log(level, text, *values)

    def end_second(self) -> None:
        """Say how many lines were left out, and begin to count anew."""
        left_out, self._lines = self._lines - MAX_LINES_PER_S, 0
        if self._second is not None:
            self._second.cancel()
            self._second = None
        if left_out > 0:
            _log.warning("%d more lines about clients were left out in the last second", left_out)
