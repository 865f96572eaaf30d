"""kafka-console-consumer --group commits the records that it printed, as Kafka's own does."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator

import pytest

from barnabas.client import sync
from barnabas.testing import Broker
from tests.command_line import TIMEOUT_S, Command, environment, program

LARGE = 20_000


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker({"few": 2, "large": 1}, config={"group.initial.rebalance.delay.ms": 0}) as started:
        records = Command("records", code=0)
        for partition in range(2):
            records(started, "produce", "few", "-p", partition, stdin="a\nb\nc\n")
        records(started, "produce", "large", stdin="".join(f"{number}\n" for number in range(LARGE)))
        yield started


def start(
    broker: Broker, topic: str, group: str, *arguments: object, unbuffered: bool = False
) -> subprocess.Popen[bytes]:
    where = ["--bootstrap-server", broker.bootstrap_servers, "--topic", topic, "--group", group, "--from-beginning"]
    command = program("kafka-console-consumer", *where, *arguments)
    env = environment()
    if not unbuffered:
        del env["PYTHONUNBUFFERED"]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env)


def committed(broker: Broker, group: str, topic: str, partitions: int) -> int:
    with sync.Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": group}) as consumer:
        found = consumer.committed([(topic, number) for number in range(partitions)])
    return sum(each.offset for each in found.values() if each is not None)


def read_lines(process: subprocess.Popen[bytes], count: int) -> list[bytes]:
    """Read byte by byte, so that nothing is left in a buffer."""
    assert process.stdout is not None
    data = b""
    while data.count(b"\n") < count:
        some = os.read(process.stdout.fileno(), 1)
        assert some, data
        data += some
    return data.splitlines()


@pytest.mark.parametrize("unbuffered", [False, True])
def test_records_are_printed_at_once_and_committed_at_ctrl_c(broker: Broker, unbuffered: bool) -> None:
    with start(broker, "few", f"few-{unbuffered}", unbuffered=unbuffered) as process:
        assert len(read_lines(process, 6)) == 6  # without waiting for a seventh
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=TIMEOUT_S)
    assert (process.returncode, errors) == (130, b"Processed a total of 6 messages\n")  # as a JVM
    assert committed(broker, f"few-{unbuffered}", "few", 2) == 6


def test_a_maximum_commits_no_other_record(broker: Broker) -> None:
    with start(broker, "few", "one", "--max-messages", 1) as process:
        out, _ = process.communicate(timeout=TIMEOUT_S)
    assert (process.returncode, out) == (0, b"a\n")
    assert committed(broker, "one", "few", 2) == 1


@pytest.mark.parametrize("unbuffered", [False, True])
def test_ctrl_c_commits_what_was_printed(broker: Broker, unbuffered: bool) -> None:
    group = f"stopped-{unbuffered}"
    with start(broker, "large", group, unbuffered=unbuffered) as process:
        first = read_lines(process, 1)
        process.send_signal(signal.SIGINT)
        assert process.stdout is not None
        lines = first + process.stdout.read().splitlines()
        process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == 130
    assert lines == [b"%d" % number for number in range(len(lines))]
    assert committed(broker, group, "large", 1) == len(lines)


def test_a_closed_pipe_commits_no_more_than_it_took(broker: Broker) -> None:
    with start(broker, "large", "piped") as process:
        taken = read_lines(process, 300)
        assert process.stdout is not None
        process.stdout.close()
        assert process.stderr is not None
        errors = process.stderr.read()
        process.wait(TIMEOUT_S)
    assert (process.returncode, errors.splitlines()[0]) == (0, b"Unable to write to standard out, closing consumer.")
    assert errors.splitlines()[1].startswith(b"Processed a total of ")
    assert len(taken) - 256 <= committed(broker, "piped", "large", 1) <= len(taken) + 65_536 // 4
