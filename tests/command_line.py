"""`barnabas` as tests run it: in this process (`invoke`, `Command`, `Script`) or in one of its own (`spawn`, `Process`).

topics = Command("topics")
topics(broker, "delete", "orders", "--yes", code=0)    # barnabas topics delete orders --yes -b ADDRESS
topics.rows(broker, "list")                            # the same with -o json, as values
Script("kafka-topics")(broker, "--list")               # barnabas kafka-topics --bootstrap-server ADDRESS --list

Its one rule: no profile of the machine counts, and an exception that a command does not handle fails the test.
"""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple, Protocol, Self, runtime_checkable

import click
from click.testing import CliRunner

from barnabas.cli.main import main
from barnabas.config import properties

TIMEOUT_S = 60.0
HANGS_S = 600.0  # with Spark, a line may take minutes
WITHOUT_PROFILES = {"XDG_CONFIG_HOME": "/nowhere"}


@runtime_checkable
class _Servers(Protocol):
    @property
    def bootstrap_servers(self) -> str: ...


class _Bootstrap(Protocol):
    @property
    def bootstrap(self) -> str: ...


Node = str | _Servers | _Bootstrap


def address(node: Node) -> str:
    if isinstance(node, str):
        return node
    return node.bootstrap_servers if isinstance(node, _Servers) else node.bootstrap


class Done(NamedTuple):
    """What a command has printed, and its exit code."""

    exit_code: int
    stdout: str
    stderr: str
    output: str = ""
    """Both, in the order in which they were written; of a process, one after the other."""
    stdout_bytes: bytes = b""

    @property
    def json(self) -> Any:
        return json.loads(self.stdout)


# --- in this process


def invoke(
    *arguments: object,
    stdin: str | bytes = b"",
    env: Mapping[str, str | None] | None = None,
    code: int | None = None,
    command: click.Command = main,
) -> Done:
    """Run one command line. With `code`, its exit code has to be that one."""
    runner = CliRunner(env={**WITHOUT_PROFILES, **(env or {})})
    result = runner.invoke(command, [str(each) for each in arguments], input=stdin, catch_exceptions=False)
    done = Done(result.exit_code, result.stdout, result.stderr, result.output, result.stdout_bytes)
    assert "Traceback" not in done.output, done.output
    assert code is None or done.exit_code == code, done.output
    return done


class Command:
    """`barnabas`, words that every call begins with, and at the end where the cluster is; None says nothing of that.

    `code` is the exit code of calls that name no other.
    """

    def __init__(self, *words: str, code: int | None = None) -> None:
        self.words = words
        self.code = code

    def line(self, node: Node | None, *arguments: object) -> list[object]:
        return [*self.words, *arguments, *(() if node is None else ("-b", address(node)))]

    def __call__(
        self,
        node: Node | None,
        *arguments: object,
        stdin: str | bytes = b"",
        env: Mapping[str, str | None] | None = None,
        code: int | None = None,
    ) -> Done:
        return invoke(*self.line(node, *arguments), stdin=stdin, env=env, code=self.code if code is None else code)

    def rows(self, node: Node | None, *arguments: object, stdin: str | bytes = b"", code: int = 0) -> Any:
        """What it prints as JSON."""
        return self(node, *arguments, "-o", "json", stdin=stdin, code=code).json

    def split(self, node: Node | None, text: str, *, stdin: str | bytes = b"", code: int | None = None) -> Done:
        """Run what a person would type."""
        return self(node, *shlex.split(text), stdin=stdin, code=code)


class Script(Command):
    """A command with the name of one of Kafka's scripts. The address follows the name, as people write it there.

    `Script()` takes the name as the first argument of each call.
    """

    def line(self, node: Node | None, *arguments: object) -> list[object]:
        whole: list[object] = [*self.words, *arguments]
        return [*whole[:1], *(() if node is None else ("--bootstrap-server", address(node))), *whole[1:]]


# --- in a process of its own


def program(*arguments: object) -> list[str]:
    return [sys.executable, "-m", "barnabas", *map(str, arguments)]


def environment(more: Mapping[str, str] | None = None) -> dict[str, str]:
    return {**os.environ, **WITHOUT_PROFILES, "PYTHONUNBUFFERED": "1", **(more or {})}


def spawn(
    *arguments: object, stdin: bytes = b"", env: Mapping[str, str] | None = None, timeout_s: float = TIMEOUT_S
) -> Done:
    """Run a process to its end."""
    done = subprocess.run(
        program(*arguments), input=stdin, capture_output=True, env=environment(env), timeout=timeout_s, check=False
    )
    out, err = done.stdout.decode(), done.stderr.decode()
    return Done(done.returncode, out, err, out + err, done.stdout)


class Process:
    """`with Process("serve", ...) as process`: it is killed at the end, if it still runs then.

    `lines` are those that were read from its standard output so far; `merged` has its standard error in them.
    """

    def __init__(
        self,
        *arguments: object,
        env: Mapping[str, str] | None = None,
        merged: bool = False,
        prepare: Callable[[], None] | None = None,
    ) -> None:
        self.popen = subprocess.Popen(
            program(*arguments),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT if merged else subprocess.PIPE,
            text=True,
            env=environment(env),
            start_new_session=True,
            preexec_fn=prepare,  # noqa: PLW1509
        )
        self.lines: list[str] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        if self.popen.poll() is None:
            self.popen.kill()
        self.popen.communicate()

    def write(self, text: str) -> None:
        assert self.popen.stdin is not None
        self.popen.stdin.write(text)
        self.popen.stdin.flush()

    def until(self, text: str) -> str:
        """The next line with this text in it. One that does not come fails, with all that was printed."""
        assert self.popen.stdout is not None
        hangs = threading.Timer(HANGS_S, self.popen.kill)
        hangs.start()
        try:
            for line in self.popen.stdout:
                self.lines.append(line.rstrip())
                if text in line:
                    return self.lines[-1]
        finally:
            hangs.cancel()
        raise AssertionError("\n".join([*self.lines, self.ended().stderr]))

    def until_ready(self, path: Path) -> dict[str, str]:
        """What is in the file of --ready-file when it first is there."""
        deadline_s = time.monotonic() + TIMEOUT_S
        while time.monotonic() < deadline_s:
            try:
                return properties.loads(path.read_text())
            except FileNotFoundError:
                assert self.popen.poll() is None, self.ended()
                time.sleep(0.002)
        raise TimeoutError(path)

    def stop(self, with_signal: signal.Signals = signal.SIGTERM) -> Done:
        self.popen.send_signal(with_signal)
        return self.ended()

    def ended(self) -> Done:
        """Wait for its end. What was read before is in `lines` alone."""
        out, err = self.popen.communicate(timeout=TIMEOUT_S)
        self.lines += out.splitlines()
        return Done(self.popen.returncode, out, err or "", out + (err or ""))
