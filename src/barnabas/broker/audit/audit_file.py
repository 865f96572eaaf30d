"""The file of the audit log: lines in, by a thread, into files that are rotated.

Its one rule: `put` never waits for the disk. It adds a line to a queue that is limited in bytes; if there is no room, the
line is dropped and counted. The thread writes what is in the queue, says in the node's log and in the file itself how many
lines were dropped, and carries on after an error of the disk. A line is never split between files: when a file is full,
`audit.log` becomes `audit.log.1`, that one `audit.log.2`, and the oldest is deleted.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Final

_log = logging.getLogger(__name__)

STOP_TIMEOUT_S: Final = 10.0
REPORT_EVERY_MS: Final = 60_000
_MODE: Final = 0o640


class AuditFile:
    """Lines of bytes, each with its end. `gap` makes the line that says how many were dropped.

    `written` and `dropped` count lines since the start.
    """

    def __init__(
        self,
        path: Path,
        *,
        max_bytes: int,
        max_files: int,
        queue_max_bytes: int,
        gap: Callable[[int], bytes],
        monotonic_ms: Callable[[], int],
    ) -> None:
        self.path = path
        self.written = 0
        self.dropped = 0
        self.queued_bytes = 0
        self._max_bytes = max_bytes
        self._max_files = max_files
        self._queue_max_bytes = queue_max_bytes
        self._gap = gap
        self._monotonic_ms = monotonic_ms
        self._changed = threading.Condition()
        self._queue: list[bytes] = []
        self._is_stopping = False
        self._thread: threading.Thread | None = None
        self._file: int | None = None
        self._size = 0
        self._untold = 0  # dropped lines that the file does not mention yet
        self._reported = 0  # dropped lines that the node's log mentions
        self._reported_at_ms: int | None = None
        self._problem = ""

    def start(self) -> None:
        """Open the file, so that a wrong path is found now, and start the thread. Raises OSError."""
        self._open()
        self._thread = threading.Thread(target=self._run, name="audit log", daemon=True)
        self._thread.start()

    def put(self, line: bytes) -> None:
        with self._changed:
            if self._is_stopping or self.queued_bytes + len(line) > self._queue_max_bytes:
                self.dropped += 1
                self._untold += 1
                self._report()
            else:
                self._queue.append(line)
                self.queued_bytes += len(line)
                self._changed.notify()

    def stop(self) -> None:
        """Write what is in the queue, and close the file. Waits, so it belongs into a thread."""
        if self._thread is None:
            return
        with self._changed:
            self._is_stopping = True
            self._changed.notify()
        self._thread.join(STOP_TIMEOUT_S)
        if self._thread.is_alive():
            _log.error("the audit log %s cannot be written: %d bytes of it are lost", self.path, self.queued_bytes)

    # --- the thread

    def _run(self) -> None:
        while True:
            with self._changed:
                while not self._queue and not self._is_stopping:
                    self._changed.wait()
                lines, self._queue = self._queue, []
                is_last, untold, self._untold = self._is_stopping, self._untold, 0
            self._write(lines, untold)
            if is_last and not self._queue:
                break
        self._close()

    def _write(self, lines: list[bytes], untold: int) -> None:
        done = 0
        try:
            if untold:
                self._write_line(self._gap(untold))
                untold = 0
            for line in lines:
                self._write_line(line)
                done += 1
        except OSError as error:
            self._problem = str(error.strerror or error)
            self._close()
        with self._changed:
            self.queued_bytes -= sum(map(len, lines))
            self.written += done
            self.dropped += len(lines) - done
            self._untold += untold + len(lines) - done
            self._report()

    def _write_line(self, line: bytes) -> None:
        if self._file is None:
            self._open()
        if self._size and self._size + len(line) > self._max_bytes:
            self._rotate()
        assert self._file is not None
        rest = memoryview(line)
        while rest:
            count = os.write(self._file, rest)
            self._size += count
            rest = rest[count:]

    def _open(self) -> None:
        self._file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, _MODE)
        self._size = os.fstat(self._file).st_size
        if self._size and os.pread(self._file, 1, self._size - 1) != b"\n":
            self._size += os.write(self._file, b"\n")  # after a crash or a full disk: the next line begins a new one

    def _close(self) -> None:
        if self._file is not None:
            file, self._file = self._file, None
            try:
                os.fsync(file)
            except OSError as error:
                _log.error("the audit log %s cannot be flushed: %s", self.path, error.strerror or error)
            os.close(file)

    def _rotate(self) -> None:
        self._close()
        paths = [self.path, *(self.path.with_name(f"{self.path.name}.{n}") for n in range(1, self._max_files))]
        paths[-1].unlink(missing_ok=True)
        for older, newer in zip(paths[:0:-1], paths[-2::-1], strict=True):
            if newer.exists():
                newer.rename(older)
        self._open()

    def _report(self) -> None:
        """Log new drops, at most once a minute; with the lock held."""
        now_ms, before_ms = self._monotonic_ms(), self._reported_at_ms
        is_due = before_ms is None or now_ms - before_ms >= REPORT_EVERY_MS or self._is_stopping
        if self.dropped > self._reported and is_due:
            text = "%d lines of the audit log %s were dropped: %s"
            _log.warning(text, self.dropped - self._reported, self.path, self._problem or "the disk is too slow")
            self._reported, self._reported_at_ms = self.dropped, now_ms
