"""Kafka's own tools, many of them in one JVM: the first takes seconds, each further one a fraction of one.

What they log is not shown: only what they print themselves.
"""

from __future__ import annotations

import base64
import shutil
import subprocess
import tempfile
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

import pytest
from tools.apache_kafka import TOOL_JVM, VERSION, ensure, java_command, tool_class

SOURCE = Path(__file__).parent / "java" / "Tools.java"


class Done(NamedTuple):
    code: int
    out: str
    err: str


class ToolProcess:
    """`with ToolProcess() as tools: tools.run("kafka-topics", "--list", ...)`; not for tools that read the standard input."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None
        self._classes = tempfile.TemporaryDirectory(prefix="tool-classes-")

    def __enter__(self) -> Self:
        if shutil.which("javac") is None:
            pytest.skip("javac is missing: install the package openjdk-17-jdk-headless")
        libraries = f"{ensure(VERSION) / 'libs'}/*"
        subprocess.run(
            ["javac", "-Xlint:all", "-Werror", "-d", self._classes.name, "-cp", libraries, str(SOURCE)],
            timeout=120,
            check=True,
        )
        *before, path, main = java_command(VERSION, TOOL_JVM, "tools", "Tools")
        self._process = subprocess.Popen(
            [*before, f"{self._classes.name}:{path}", main],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        return self

    def run(self, name: str, *args: str) -> Done:
        """What a tool prints, and its exit code."""
        assert self._process is not None
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        words = (base64.b64encode(word.encode()).decode() for word in (tool_class(name), *args))
        self._process.stdin.write(" ".join(f"-{word}" for word in words) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        assert line, f"the JVM of {name} ended"
        code, out, err = line.split()
        return Done(int(code), *(base64.b64decode(text[1:]).decode() for text in (out, err)))

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process is not None:
            for pipe in (self._process.stdin, self._process.stdout):
                if pipe is not None:
                    pipe.close()
            try:
                self._process.wait(20)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        self._classes.cleanup()
