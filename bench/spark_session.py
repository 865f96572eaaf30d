"""Spark in a process of its own (spark_job.py), asked from here; and the memory of a process with all that it has started."""

from __future__ import annotations

import json
import os
import subprocess
import threading
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

JOB = Path(__file__).with_name("spark_job.py")
SAMPLE_S = 0.2


class Session:
    """`said` is what it says of itself. What Spark logs goes to `log`, whose end is told when a question fails."""

    def __init__(
        self, python: Path, settings: Mapping[str, str], log: Path, environment: Mapping[str, str] = os.environ
    ) -> None:
        self._log = log
        with log.open("wb") as errors:
            self._process = subprocess.Popen(
                [str(python), str(JOB), json.dumps(dict(settings))],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                cwd=log.parent,
                env={**environment, "PYSPARK_PYTHON": str(python), "PYSPARK_DRIVER_PYTHON": str(python)},
            )
        self.said = self._answer()

    @property
    def pid(self) -> int:
        return self._process.pid

    def ask(self, **question: Any) -> dict[str, Any]:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(question) + "\n")
        self._process.stdin.flush()
        return self._answer()

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            said = [line for line in self._log.read_text(errors="replace").splitlines() if not line.startswith("\tat ")]
            raise RuntimeError("\n".join(["Spark has ended:", *said[-40:]]))
        answer: dict[str, Any] = json.loads(line)
        return answer

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.close()
        try:
            self._process.wait(60)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()


class PeakMemory:
    """The most resident memory that a process and its descendants were seen to have together, in bytes.

    Pages that forked workers share are counted for each of them, so that it is rather too much.
    """

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self.bytes = 0

    def _watch(self) -> None:
        while not self._ended.wait(SAMPLE_S):
            self.bytes = max(self.bytes, tree_rss_bytes(self._pid))

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._thread.join()


def tree_rss_bytes(pid: int) -> int:
    """Of the process and of all that it has started, and they."""
    children: dict[int, list[int]] = defaultdict(list)
    rss: dict[int, int] = {}
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        try:
            status = dict(line.split(":", 1) for line in (folder / "status").read_text().splitlines())
        except OSError:  # it has ended meanwhile
            continue
        children[int(status["PPid"])].append(int(folder.name))
        rss[int(folder.name)] = int(status.get("VmRSS", "0 kB").split()[0]) * 1024
    seen, waiting = 0, [pid]
    while waiting:
        each = waiting.pop()
        seen += rss.get(each, 0)
        waiting += children[each]
    return seen
