"""Progress of long work in stages: what is done now, how much, how fast, since when, and how long it may still take.

Its one rule: it is shown while the work runs, even if the work says nothing for minutes, so a thread of its own writes it: on a
terminal a line that changes, elsewhere a line every few seconds, or a single one while the work only waits. All of it goes to
standard error.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable
from math import inf
from types import TracebackType
from typing import Final, Self, TextIO

from barnabas.cli.terminal.output import duration, terminal_width

FIRST_S: Final = 2.0
"""Work that is shorter shows nothing."""
_TERMINAL_EVERY_S: Final = 0.5
_PIPE_EVERY_S: Final = 5.0


class Stages:
    """The progress of one piece of work; a context manager. Any thread may call its methods."""

    def __init__(
        self, stage: str = "", *, file: TextIO | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._own = _copy_of_stderr() if file is None else None
        self._file = file or self._own or sys.stderr
        self._is_terminal = self._file.isatty()
        self._clock = clock
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._began = self._stage_began = clock()
        self._stage, self._done, self._total, self._unit = stage, 0, 0, ""
        self._width = 0
        self._lines_left = inf  # to write in a pipe, of this stage

    def begin(self, stage: str, total: int = 0, unit: str = "") -> None:
        """Begin a stage, of which this much is to be done; 0 if that is not known."""
        with self._lock:
            if stage != self._stage:
                self._stage_began = self._clock()
            self._stage, self._done, self._total, self._unit = stage, 0, total, unit
            self._lines_left = inf

    def rest(self, stage: str) -> None:
        """Begin a stage in which nothing is done until there is something new to do."""
        with self._lock:
            if stage != self._stage or self._lines_left == inf:
                self._lines_left = 1
            self._stage, self._done, self._total = stage, 0, 0

    def update(self, done: int, unit: str = "") -> None:
        """Set how much was done, of this stage if it has a total, else of all work."""
        with self._lock:
            self._done, self._unit = done, unit or self._unit

    def note(self, text: str) -> None:
        """Print a message above the line."""
        with self._lock:
            self._clear()
            print(text, file=self._file, flush=True)

    def line(self) -> str:
        """Return what is shown now."""
        now = self._clock()
        elapsed, parts = now - self._began, [self._stage]
        if self._total:
            filled = min(20, 20 * self._done // self._total)
            parts[0] += f" [{'#' * filled}{'.' * (20 - filled)}]"
            parts.append(f"{self._done:,} of {self._total:,} {self._unit}".rstrip())
        elif self._done:
            parts.append(f"{self._done:,} {self._unit}".rstrip())
            parts.append(f"{self._done / max(elapsed, 0.001):,.0f}/s")
        parts.append(duration(elapsed))
        if 0 < self._done < self._total:
            left = (now - self._stage_began) / self._done * (self._total - self._done)
            parts.append(f"{duration(left)} left")
        return ", ".join(parts)

    def show(self) -> None:
        """Write the line."""
        with self._lock:
            line = self.line()
            if not self._is_terminal:
                if self._lines_left:
                    self._lines_left -= 1
                    print(line, file=self._file, flush=True)
                return
            line = line[: terminal_width()]
            self._file.write(f"\r{line:<{self._width}}")
            self._file.flush()
            self._width = len(line)

    def _clear(self) -> None:
        if self._width:
            self._file.write(f"\r{'':<{self._width}}\r")
            self._file.flush()
            self._width = 0

    def _run(self) -> None:
        wait = FIRST_S if self._is_terminal else _PIPE_EVERY_S
        while not self._ended.wait(wait):
            self.show()
            wait = _TERMINAL_EVERY_S if self._is_terminal else _PIPE_EVERY_S

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=self._run, name="progress", daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end()

    def end(self) -> None:
        """Show nothing any more, and remove the line. May be called again."""
        self._ended.set()
        self._thread.join()
        with self._lock:
            self._clear()
            if self._own is not None:
                self._own.close()
                self._own, self._file = None, sys.stderr


def _copy_of_stderr() -> TextIO | None:
    """Return standard error as it is now: while Spark starts, what is written to the descriptor goes to Spark's log."""
    try:
        return os.fdopen(os.dup(sys.stderr.fileno()), "w", encoding=sys.stderr.encoding, errors="backslashreplace")
    except (OSError, ValueError):  # not a file
        return None
