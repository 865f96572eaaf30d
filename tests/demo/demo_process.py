"""`barnabas demo` as a process, line by line."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

TIMEOUT_S = 90
HANGS_S = 600  # with Spark, a line may take minutes
READY = "reach it with bootstrap.servers="


class Demo:
    """A process, and the lines that it has printed so far."""

    def __init__(self, *arguments: object, **environment: str) -> None:
        command = [sys.executable, "-m", "barnabas", "demo", "--port", "0", *map(str, arguments)]
        env = {**os.environ, "PYTHONUNBUFFERED": "1", **environment}
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=env, start_new_session=True
        )
        self.lines: list[str] = []

    def until(self, text: str) -> str:
        """The line with this text in it."""
        assert self.process.stdout is not None
        hangs = threading.Timer(HANGS_S, self.process.kill)
        hangs.start()
        try:
            for line in self.process.stdout:
                self.lines.append(line.rstrip())
                if text in line:
                    return self.lines[-1]
        finally:
            hangs.cancel()
        raise AssertionError("\n".join(self.lines))

    @property
    def servers(self) -> str:
        line = next(line for line in self.lines if line.startswith(READY))
        return line.removeprefix(READY).partition(";")[0]

    def stop(self) -> int:
        self.process.send_signal(signal.SIGINT)
        out, _ = self.process.communicate(timeout=TIMEOUT_S)
        self.lines += out.splitlines()
        return self.process.returncode


@contextmanager
def running(*arguments: object, **environment: str) -> Iterator[Demo]:
    demo = Demo(*arguments, **environment)
    try:
        yield demo
    finally:
        if demo.process.poll() is None:
            demo.process.kill()
        demo.process.communicate()
