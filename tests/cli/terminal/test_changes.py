"""Deletions are confirmed by their number."""

from __future__ import annotations

import asyncio
import contextlib
import os
import pty
import select
import signal
import sys
import threading

import click
import pytest
from click.testing import CliRunner

from barnabas.cli.terminal.changes import confirm, confirm_count
from barnabas.cli.terminal.failures import Failure


@click.command()
@click.option("--yes", is_flag=True)
def delete(yes: bool) -> None:
    confirm_count("Delete?", 12, "topics", yes=yes)
    click.echo("deleted")


@pytest.mark.parametrize(
    ("answer", "is_done"), [("12", True), ("yes", True), ("YES", True), ("y", False), ("11", False), ("", False)]
)
def test_a_number_or_yes_is_needed(answer: str, is_done: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("barnabas.cli.terminal.changes.is_terminal", lambda: True)
    result = CliRunner().invoke(delete, input=f"{answer}\n")
    assert ("deleted" in result.stdout) is is_done
    assert "Delete? Type 12, the number of topics, or yes" in result.stderr
    assert is_done or "not confirmed: nothing was changed" in result.stderr


def test_scripts_say_yes() -> None:
    assert CliRunner().invoke(delete, ["--yes"]).stdout == "deleted\n"
    refused = CliRunner().invoke(delete)
    assert refused.exit_code == 1
    assert "standard input is not a terminal" in refused.stderr


QUESTION = """
import asyncio
from barnabas.cli.terminal.changes import confirm, confirm_count

async def main():
    {question}

with asyncio.Runner() as runner:
    runner.run(main())
"""


@pytest.mark.parametrize("question", ["confirm('Sure?', yes=False)", "confirm_count('Sure?', 2, 'topics', yes=False)"])
def test_ctrl_c_ends_a_question_at_once(question: str) -> None:
    pid, terminal = pty.fork()
    if pid == 0:
        os.execv(sys.executable, [sys.executable, "-c", QUESTION.format(question=question)])
    said = b""
    hangs = threading.Timer(60, os.kill, (pid, signal.SIGKILL))
    hangs.start()
    try:
        while b": " not in said:
            said += os.read(terminal, 1024)
        with contextlib.suppress(OSError):  # the terminal is gone when the process has ended
            while True:
                # Again and again, because the first may come before the process waits for input. But slowly: one that comes
                # while Python exits would end it without its exit code.
                os.write(terminal, b"\x03")
                while select.select([terminal], [], [], 5)[0]:
                    said += os.read(terminal, 1024)
    finally:
        hangs.cancel()
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        os.close(terminal)
        _, status = os.waitpid(pid, 0)
    assert b"Sure?" in said
    assert b"not confirmed: nothing was changed" in said, said
    assert os.waitstatus_to_exitcode(status) == 1


def test_ctrl_c_just_before_a_question_is_a_no(monkeypatch: pytest.MonkeyPatch) -> None:
    """The event loop has only noted it, and nobody presses Ctrl-C again."""
    monkeypatch.setattr("barnabas.cli.terminal.changes.is_terminal", lambda: True)
    monkeypatch.setattr(click, "confirm", lambda *args, **how: pytest.fail("it was asked"))

    async def ask() -> None:
        signal.raise_signal(signal.SIGINT)
        confirm("Sure?", yes=False)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # with another one, a runner notes nothing
    try:
        with asyncio.Runner() as runner, pytest.raises(Failure, match="nothing was changed"):
            runner.run(ask())
    finally:
        signal.signal(signal.SIGINT, before)
