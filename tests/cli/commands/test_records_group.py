"""`records consume --group` commits the records that it printed, and no others."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Self

import pytest

from barnabas.client import sync
from barnabas.testing import Broker
from tests.command_line import TIMEOUT_S, Command, Done, Process, environment, program

LARGE = 40_000
run = Command("records")


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(config={"group.initial.rebalance.delay.ms": 0}) as started:
        write(started, "large", {0: range(LARGE)})
        yield started


def write(broker: Broker, topic: str, values: dict[int, Any]) -> None:
    broker.create_topic(topic, max(values) + 1)
    more(broker, topic, values)


def more(broker: Broker, topic: str, values: dict[int, Any]) -> None:
    lines = [f'{{"partition":{place},"value":"{each}"}}' for place, some in values.items() for each in some]
    run(broker, "produce", topic, "--format", "json", stdin="\n".join(lines), code=0)


def consume(broker: Broker, topic: str, *arguments: object, code: int = 0) -> Done:
    return run(broker, "consume", topic, *arguments, "-o", "jsonl", code=code)


def rows(text: str) -> list[tuple[int, int]]:
    return [(row["partition"], row["offset"]) for row in map(json.loads, text.splitlines())]


def committed(broker: Broker, group: str, topic: str, partitions: int = 1) -> dict[int, int]:
    with sync.Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": group}) as consumer:
        found = consumer.committed([(topic, number) for number in range(partitions)])
    return {place.partition: each.offset for place, each in found.items() if each is not None}


def following(printed: list[tuple[int, int]]) -> dict[int, int]:
    """The offsets after the last printed record of each partition."""
    return {partition: offset + 1 for partition, offset in sorted(printed)}


def wait_until(happened: Callable[[], bool]) -> None:
    deadline_s = time.monotonic() + TIMEOUT_S
    while not happened():
        assert time.monotonic() < deadline_s
        time.sleep(0.05)


def interrupt(process: Process, number: signal.Signals = signal.SIGINT) -> Done:
    """Send the signal, and read what is still in the pipe, so that `process.lines` has all lines."""
    process.popen.send_signal(number)
    return rest(process)


def rest(process: Process) -> Done:
    """Read to the end. Not `ended`: it would lose what the file of the pipe has buffered."""
    assert process.popen.stdout is not None
    assert process.popen.stderr is not None
    process.lines += process.popen.stdout.read().splitlines()
    errors = process.popen.stderr.read()
    return Done(process.popen.wait(TIMEOUT_S), "\n".join(process.lines), errors)


# --- to the end


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_maximum_of_one_commits_one_record_of_one_partition(broker: Broker, protocol: str) -> None:
    topic = f"one-{protocol}"
    write(broker, topic, {0: "ab", 1: "cd"})
    how = ["--group", topic, "-X", f"group.protocol={protocol}", "-n", 1]
    printed = []
    for _ in range(4):
        printed += rows(consume(broker, topic, *how).stdout)
        assert committed(broker, topic, topic, 2) == following(printed)
    assert sorted(printed) == [(0, 0), (0, 1), (1, 0), (1, 1)]
    assert consume(broker, topic, *how).stdout == ""


def test_an_end_in_the_past_commits_nothing(broker: Broker) -> None:
    write(broker, "past", {0: "ab", 1: "cd"})
    assert consume(broker, "past", "--group", "past", "--until", "1h").stdout == ""
    assert committed(broker, "past", "past", 2) == {}
    assert len(rows(consume(broker, "past", "--group", "past").stdout)) == 4


def test_records_that_a_filter_skips_are_committed_with_the_next_printed_one_only(broker: Broker) -> None:
    write(broker, "filtered", {0: "abab", 1: "bb"})
    assert rows(consume(broker, "filtered", "--group", "filtered", "--value", "a").stdout) == [(0, 0), (0, 2)]
    assert committed(broker, "filtered", "filtered", 2) == {0: 3}


@pytest.mark.parametrize("limit", [["--max-scanned", 2], ["--max-bytes", "2B"]], ids=["records", "bytes"])
def test_a_limit_of_a_search_commits_no_record_after_it(broker: Broker, limit: list[object]) -> None:
    topic = f"limited{limit[0]}"
    write(broker, topic, {0: "aba"})
    result = consume(broker, topic, "--group", topic, "--value", "a", *limit)
    assert rows(result.stdout) == [(0, 0)]
    assert "stopped by" in result.stderr
    assert committed(broker, topic, topic) == {0: 1}


def test_beside_a_producer_every_record_is_printed_once(broker: Broker) -> None:
    write(broker, "busy", {0: range(100), 1: range(100)})
    stop = threading.Event()

    def produce() -> None:
        with sync.Producer({"bootstrap.servers": broker.bootstrap_servers}) as producer:
            while not stop.is_set():
                for number in range(200):
                    producer.send("busy", b"%d" % number, partition=number % 2)
                producer.flush()

    thread = threading.Thread(target=produce)
    thread.start()
    printed: list[tuple[int, int]] = []
    try:
        for _ in range(4):
            printed += rows(consume(broker, "busy", "--group", "busy").stdout)
            assert committed(broker, "busy", "busy", 2) == following(printed)
    finally:
        stop.set()
        thread.join()
    printed += rows(consume(broker, "busy", "--group", "busy").stdout)
    assert sorted(printed) == [(each.partition, each.offset) for each in broker.records("busy")]


def test_a_group_without_partitions_for_this_member_is_named(broker: Broker) -> None:
    write(broker, "taken", {0: "a"})
    how = ["--group", "taken", "-X", "partition.assignment.strategy=cooperative-sticky"]
    more = ["--follow", "--from-beginning", "-o", "jsonl", "-b", broker.bootstrap_servers]
    with Process("records", "consume", "taken", *how, *more) as owner:
        owner.until('"a"')
        result = consume(broker, "taken", *how)
    assert (result.stdout, "assigned no partitions" in result.stderr) == ("", True)


# --- without an end


@pytest.mark.parametrize("form", ["json", "jsonl", "table"])
def test_following_commits_regularly_and_at_ctrl_c_which_exits_with_0(broker: Broker, form: str) -> None:
    topic = f"followed-{form}"
    write(broker, topic, {0: ["first"], 1: []})
    how = ["--group", topic, "--follow", "--from-beginning", "-X", "auto.commit.interval.ms=200", "-o", form]
    with Process("records", "consume", topic, *how, "-b", broker.bootstrap_servers) as process:
        wait_until(lambda: committed(broker, topic, topic, 2) == {0: 1})  # while it runs
        more(broker, topic, {1: ["second", "third"]})
        wait_until(lambda: committed(broker, topic, topic, 2) == {0: 1, 1: 2})
        result = interrupt(process)
    assert (result.exit_code, result.stderr) == (0, "")
    assert committed(broker, topic, topic, 2) == {0: 1, 1: 2}
    if form == "json":
        assert [row["value"] for row in result.json] == ["first", "second", "third"]


@pytest.mark.parametrize(("number", "exit_code"), [(signal.SIGINT, 0), (signal.SIGTERM, 143)])
def test_a_signal_while_following_commits_what_the_interval_has_not(
    broker: Broker, number: signal.Signals, exit_code: int
) -> None:
    topic = f"hour-{exit_code}"
    write(broker, topic, {0: "abc"})
    how = ["--group", topic, "--follow", "--from-beginning", "-X", "auto.commit.interval.ms=3600000", "-o", "jsonl"]
    with Process("records", "consume", topic, *how, "-b", broker.bootstrap_servers) as process:
        process.until('"c"')
        assert committed(broker, topic, topic) == {}
        assert interrupt(process, number).exit_code == exit_code
    assert committed(broker, topic, topic) == {0: 3}


def test_following_without_a_group_ends_with_0_at_ctrl_c(broker: Broker) -> None:
    write(broker, "alone", {0: "a"})
    how = ["consume", "alone", "--follow", "-o", "jsonl", "-b", broker.bootstrap_servers]
    with Process("records", *how) as process:
        process.until('"a"')
        result = interrupt(process)
    assert (result.exit_code, result.stderr) == (0, "")


# --- interrupted


def test_ctrl_c_before_the_end_commits_what_was_printed_and_exits_with_1(broker: Broker) -> None:
    how = ["consume", "large", "--group", "stopped", "-o", "jsonl", "-b", broker.bootstrap_servers]
    with Process("records", *how) as process:
        process.until('"offset":0,')
        result = interrupt(process)
        printed = rows("\n".join(process.lines))
    assert (result.exit_code, "Aborted!" in result.stderr) == (1, True)
    assert 0 < len(printed) < LARGE
    assert committed(broker, "stopped", "large") == following(printed)


@pytest.mark.parametrize("extra", [["-o", "jsonl"], ["-o", "table"], ["--values"]], ids=["jsonl", "table", "values"])
def test_a_closed_pipe_commits_no_more_than_it_took(broker: Broker, extra: list[str]) -> None:
    group = f"piped-{'-'.join(extra)}"
    reader, writer = os.pipe()
    pipe_size = fcntl.fcntl(reader, fcntl.F_SETPIPE_SZ, 4096)
    command = program("records", "consume", "large", "--group", group, *extra, "-b", broker.bootstrap_servers)
    with subprocess.Popen(command, stdout=writer, stderr=subprocess.PIPE, env=environment()) as process:
        os.close(writer)
        taken = b""
        while len(taken) < 60_000:
            taken += os.read(reader, 4096)
        os.close(reader)
        _, errors = process.communicate(timeout=TIMEOUT_S)
    assert (process.returncode, errors) == (1, b"")
    least = min(len(line) for line in taken.splitlines()[2:-1]) + 1
    offset = committed(broker, group, "large").get(0, 0)
    assert taken.count(b"\n") - 600 <= offset <= (len(taken) + pipe_size) // least
    assert offset > 0


def test_a_broken_record_commits_those_before_it(tmp_path: Path) -> None:
    with Broker(config={"group.initial.rebalance.delay.ms": 0}, data_dir=tmp_path) as broker:
        write(broker, "broken", {0: "ab"})
        more(broker, "broken", {0: "cd"})
        segment = next(tmp_path.glob("**/broken-0/*.log"))
        data = bytearray(segment.read_bytes())
        data[-1] ^= 0xFF
        segment.write_bytes(data)
        result = consume(broker, "broken", "--group", "broken", code=1)
        assert rows(result.stdout) == [(0, 0), (0, 1)]
        assert "CORRUPT_MESSAGE" in result.stderr
        assert committed(broker, "broken", "broken") == {0: 2}


# --- rebalances


class Member:
    """A consumer that prints to a file: with a full pipe it would not take part in rebalances."""

    def __init__(self, path: Path, *arguments: object) -> None:
        self.path = path
        with path.open("wb") as file:
            self.popen = subprocess.Popen(program("records", *arguments), stdout=file, env=environment())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        if self.popen.poll() is None:
            self.popen.kill()
        self.popen.wait()

    def until(self, text: str) -> None:
        wait_until(lambda: text in self.path.read_text())

    def interrupted(self) -> list[tuple[int, int]]:
        self.popen.send_signal(signal.SIGINT)
        assert self.popen.wait(TIMEOUT_S) == 0
        return rows(self.path.read_text())


@pytest.mark.parametrize("settings", [[], ["cooperative-sticky"], None], ids=["eager", "cooperative", "consumer"])
def test_members_that_come_and_go_print_every_record_once(
    broker: Broker, settings: list[str] | None, tmp_path: Path
) -> None:
    topic = f"shared-{'consumer' if settings is None else 'classic' if not settings else settings[0]}"
    write(broker, topic, {number: range(50) for number in range(4)})
    how = ["consume", topic, "--group", topic, "--follow", "--from-beginning", "-o", "jsonl"]
    if settings is None:
        how += ["-X", "group.protocol=consumer"]
    for each in settings or ():
        how += ["-X", f"partition.assignment.strategy={each}"]
    stop = threading.Event()

    def produce() -> None:
        with sync.Producer({"bootstrap.servers": broker.bootstrap_servers}) as producer:
            for number in range(1 << 30):
                producer.send(topic, b"%d" % number, partition=number % 4)
                producer.flush()
                if stop.wait(0.002):
                    return

    thread = threading.Thread(target=produce)
    thread.start()
    printed: list[tuple[int, int]] = []
    try:
        with Member(tmp_path / "first", *how, "-b", broker.bootstrap_servers) as first:
            first.until('"partition":3')
            with Member(tmp_path / "second", *how, "-b", broker.bootstrap_servers) as second:
                second.until('"offset"')
                time.sleep(1)
                printed += first.interrupted()
                time.sleep(3)
                stop.set()
                thread.join()
                wait_until(lambda: sum(committed(broker, topic, topic, 4).values()) == len(broker.records(topic)))
                printed += second.interrupted()
    finally:
        stop.set()
        thread.join()
    assert sorted(printed) == [(each.partition, each.offset) for each in broker.records(topic)]
    assert committed(broker, topic, topic, 4) == following(printed)


def test_reading_to_the_end_goes_on_after_a_rebalance(broker: Broker) -> None:
    """A member that joins meanwhile takes partitions, and the rest are read to their end."""
    write(broker, "joined", {number: range(10_000) for number in range(4)})
    how = ["consume", "joined", "--group", "joined", "-o", "jsonl", "-b", broker.bootstrap_servers]
    with Process("records", *how) as first:
        first.until('"offset":0,')  # the pipe is full, and the loop waits
        with Process("records", *how, "--follow") as second:
            time.sleep(2)
            assert rest(first).exit_code == 0
            wait_until(lambda: sum(committed(broker, "joined", "joined", 4).values()) == 40_000)
            interrupt(second)
            printed = rows("\n".join([*first.lines, *second.lines]))
    assert set(printed) == {(partition, offset) for partition in range(4) for offset in range(10_000)}
