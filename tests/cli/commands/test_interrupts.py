"""Ctrl-C at prompts is a no; Ctrl-C ends --watch with exit code 0."""

from __future__ import annotations

import os
import pty
import select
import signal
import subprocess
import time
from collections.abc import Iterator

import pytest

from barnabas.testing import Broker
from tests.command_line import TIMEOUT_S, Command, environment, invoke, program

run = Command()


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(["kept"], config={"group.initial.rebalance.delay.ms": 0}) as started:
        run(started, "records", "produce", "kept", stdin="a\nb\n", code=0)
        run(started, "records", "consume", "kept", "--group", "kept", code=0)
        password = ("users", "set", "kept", "--password-stdin")
        run(started, *password, stdin="secret\n", code=0)
        yield started


class Terminal:
    """A command on a terminal of its own."""

    def __init__(self, broker: Broker, *arguments: object) -> None:
        self.fd, theirs = pty.openpty()
        self.said = b""
        command = program(*arguments, "-b", broker.bootstrap_servers)
        self.popen = subprocess.Popen(
            command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment(), start_new_session=True
        )
        os.close(theirs)

    def until(self, text: bytes) -> None:
        deadline_s = time.monotonic() + TIMEOUT_S
        while text not in self.said:
            assert time.monotonic() < deadline_s, self.said
            if select.select([self.fd], [], [], 0.2)[0]:
                self.said += os.read(self.fd, 10_000)

    def ended(self) -> int:
        code = self.popen.wait(20)
        try:
            while select.select([self.fd], [], [], 0)[0] and (some := os.read(self.fd, 10_000)):
                self.said += some
        except OSError:  # the other side is closed
            pass
        os.close(self.fd)
        return code


def interrupt(process: subprocess.Popen[bytes]) -> int:
    """Press Ctrl-C until the process ends.

    Python notices a signal that comes between the prompt and the wait for a line only at the next signal. One that comes
    while it exits would end it without its exit code, so the next one comes late.
    """
    deadline_s = time.monotonic() + 60
    try:
        while time.monotonic() < deadline_s:
            process.send_signal(signal.SIGINT)
            try:
                return process.wait(5)
            except subprocess.TimeoutExpired:
                continue
    finally:
        process.kill()
    raise AssertionError("the process goes on after Ctrl-C")


def check_unchanged(broker: Broker) -> None:
    assert len(broker.records("kept")) == 2
    (row,) = run.rows(broker, "groups", "describe", "kept")
    assert row["currentOffset"] == 2
    assert "kept" in run(broker, "users", "list").stdout


ASKING = {
    "topics-delete": ["topics", "delete", "kept"],
    "groups-reset": ["groups", "reset", "kept", "--topic", "kept", "--to-earliest"],
    "records-delete": ["records", "delete", "kept", "--all"],
    "groups-delete": ["groups", "delete", "kept"],
    "users-delete": ["users", "delete", "kept"],
}


@pytest.mark.parametrize("arguments", ASKING.values(), ids=ASKING)
def test_ctrl_c_at_a_prompt_is_a_no_at_once(broker: Broker, arguments: list[str]) -> None:
    terminal = Terminal(broker, *arguments)
    terminal.until(b"[y/N]")
    assert interrupt(terminal.popen) == 1  # without another key
    assert terminal.ended() == 1
    assert b"not confirmed: nothing was changed" in terminal.said
    assert b"Aborted!" not in terminal.said
    check_unchanged(broker)


@pytest.mark.parametrize("arguments", ASKING.values(), ids=ASKING)
def test_an_answer_after_ctrl_c_changes_nothing(broker: Broker, arguments: list[str]) -> None:
    terminal = Terminal(broker, *arguments)
    terminal.until(b"[y/N]")
    os.write(terminal.fd, b"y")  # Ctrl-C comes before the line ends
    terminal.popen.send_signal(signal.SIGINT)
    os.write(terminal.fd, b"\ny\n")
    assert terminal.ended() == 1
    check_unchanged(broker)


def test_the_end_of_the_input_is_a_no(broker: Broker) -> None:
    terminal = Terminal(broker, "topics", "delete", "kept")
    terminal.until(b"[y/N]")
    os.write(terminal.fd, b"\x04")
    assert terminal.ended() == 1
    assert b"not confirmed: nothing was changed" in terminal.said
    check_unchanged(broker)


@pytest.mark.parametrize("arguments", ASKING.values(), ids=ASKING)
def test_without_a_terminal_the_option_is_named_and_an_answer_is_not_read(broker: Broker, arguments: list[str]) -> None:
    result = run(broker, *arguments, stdin="y\ny\n", code=1)
    assert "standard input is not a terminal" in result.stderr
    assert "--yes" in result.stderr
    check_unchanged(broker)


def test_ctrl_c_at_the_question_of_kafka_acls_removes_nothing() -> None:
    authorizer = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
    with Broker(config={"authorizer.class.name": authorizer, "allow.everyone.if.no.acl.found": True}) as broker:
        entry = ["--allow-principal", "User:ann", "--operation", "Read", "--topic", "t"]
        command = ["kafka-acls", "--bootstrap-server", broker.bootstrap_servers]
        invoke(*command, "--add", *entry, code=0)
        fd, theirs = pty.openpty()
        with subprocess.Popen(
            program(*command, "--remove", *entry), stdin=theirs, stdout=theirs, stderr=theirs, env=environment()
        ) as process:
            os.close(theirs)
            said = b""
            while b"(y/n)" not in said:
                assert select.select([fd], [], [], TIMEOUT_S)[0], said
                said += os.read(fd, 1000)
            assert interrupt(process) != 0
        os.close(fd)
        assert "User:ann" in invoke(*command, "--list", code=0).stdout


WATCHING = {
    "offsets-list": ["offsets", "list"],
    "topics-list": ["topics", "list"],
    "groups-describe": ["groups", "describe", "kept"],
    "quorum-status": ["quorum", "status", "--max-lag-ms", "5000", "--can-lose", "1"],  # would exit with 2
    "log-dirs-describe": ["log-dirs", "describe"],
    "transactions-list": ["transactions", "list"],
    "producers-list": ["producers", "list", "kept"],
}


@pytest.mark.parametrize("arguments", WATCHING.values(), ids=WATCHING)
def test_ctrl_c_ends_a_watch_with_exit_code_0(broker: Broker, arguments: list[str]) -> None:
    command = program(*arguments, "--watch", "0.3", "-b", broker.bootstrap_servers, "-o", "table")
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment()) as process:
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=TIMEOUT_S)
    assert (process.returncode, b"Aborted" in errors) == (0, False)
