"""A node killed while clients produce, consume and commit: what it acknowledged is there, once, in order, and whole.

Rounds: 1 for each kind of load, or BARNABAS_CRASH_ROUNDS. A round is a while of load, a kill, in some rounds one or two more
while the node starts, and a start after which the same clients go on; then all of it comes to rest and is checked.
"""

from __future__ import annotations

import os
import random
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest
from tools.apache_kafka import Barnabas

from tests.crash.clients import PATIENCE_S, create_topic
from tests.crash.loads import (
    Abandoned,
    Churn,
    Compacted,
    Group,
    Load,
    Shrinking,
    Stream,
    Transactions,
    settled_first,
)

ROUNDS = int(os.environ.get("BARNABAS_CRASH_ROUNDS", "1"))
ROUNDS_OF_A_DIRECTORY = 6  # then another, so that reading everything again does not become all there is
LOAD_S = (0.2, 1.2)
STARTING_S = (0.05, 0.7)

# Files are small and everything that has its time has it soon, so that kills fall into all of it.
BUSY = {
    "auto.create.topics.enable": "false",  # a producer that refreshes what it knows would bring back what was deleted
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "500",
    "group.consumer.min.heartbeat.interval.ms": "100",
    "group.consumer.heartbeat.interval.ms": "200",
    "group.consumer.assignment.interval.ms": "0",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "200",
    "log.initial.task.delay.ms": "100",
    "log.cleaner.backoff.ms": "100",
    "log.cleaner.min.cleanable.ratio": "0.05",
    "log.retention.check.interval.ms": "100",
    "log.segment.delete.delay.ms": "200",
    "replica.high.watermark.checkpoint.interval.ms": "300",
    "metadata.log.max.record.bytes.between.snapshots": "8000",
}
INTERNAL_TOPICS = ("__consumer_offsets", "__transaction_state")
STATE = {"cleanup.policy": "compact", "internal.segment.bytes": "16000", "min.cleanable.dirty.ratio": "0.01"}
SMALL = {"internal.segment.bytes": "60000", "index.interval.bytes": "1000"}


def records(random: Random) -> list[Load]:
    codec = random.choice(("none", "gzip", "snappy", "lz4", "zstd"))
    plain = Stream("plain", random, enable_idempotence=False, max_in_flight=1)
    return [plain, Stream("once", random, enable_idempotence=True, compression_type=codec), Churn("churn", random)]


def transactions(random: Random) -> list[Load]:
    return [Transactions("transactions", random), Abandoned("abandoned", random)]


def groups(random: Random) -> list[Load]:
    stream = Stream("read", random, enable_idempotence=True)
    return [stream, *(Group(f"group-{protocol}", random, stream, protocol) for protocol in ("classic", "consumer"))]


def housekeeping(random: Random) -> list[Load]:
    once: dict[str, Any] = {"enable_idempotence": True, "batch_size": 20000}
    compact = {**SMALL, "cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01"}
    return [
        Stream("rolling", random, config=SMALL, **once),
        Compacted("compacted", random, config=compact, keys=40, **once),
        Shrinking("retained", random, config={**SMALL, "retention.bytes": "120000"}, **once),
        Shrinking("deleted", random, config=SMALL, delete_records=True, **once),
    ]


def everything(random: Random) -> list[Load]:
    return [*records(random), *transactions(random), *groups(random), *housekeeping(random)]


class Crew:
    """The threads of all loads: at work, or at rest."""

    def __init__(self, loads: list[Load]) -> None:
        self.loads = loads
        self._work = {load.name: threading.Event() for load in loads}
        self._idle: dict[tuple[str, int], threading.Event] = {}
        self._end = threading.Event()
        self._errors: list[BaseException] = []
        self._threads = []
        for load in loads:
            for number in range(load.threads):
                self._idle[load.name, number] = threading.Event()
                thread = threading.Thread(target=self._run, args=(load, number), name=f"{load.name}-{number}")
                self._threads.append(thread)
                thread.start()

    def _run(self, load: Load, number: int) -> None:
        idle = self._idle[load.name, number]
        try:
            while not self._end.is_set():
                if self._work[load.name].is_set():
                    idle.clear()
                    load.step(number)
                else:
                    idle.set()
                    self._work[load.name].wait(0.02)
        except BaseException as error:
            error.add_note(f"while {load.name} was at work")
            self._errors.append(error)
        finally:
            idle.set()

    def work(self) -> None:
        for event in self._work.values():
            event.set()

    def pause(self) -> None:
        """Begin nothing more. What was begun goes on."""
        for event in self._work.values():
            event.clear()

    def rest(self, load: Load) -> None:
        self._work[load.name].clear()
        for number in range(load.threads):
            idle = self._idle[load.name, number]
            idle.clear()
            assert idle.wait(2 * PATIENCE_S), f"{load.name} does not come to rest"
        self.raise_errors()

    def raise_errors(self) -> None:
        if self._errors:
            raise self._errors[0]

    def close(self) -> None:
        self._end.set()
        for thread in self._threads:
            thread.join(2 * PATIENCE_S)


def kill_while_starting(node: Barnabas, random: Random) -> None:
    """In some rounds; what it had begun to recover is left as it is."""
    for _ in range(random.choice((0, 0, 1, 2))):
        with node.log.open("ab") as out:
            started = subprocess.Popen(node.command, stdin=subprocess.DEVNULL, stdout=out, stderr=out)
        try:
            started.wait(random.uniform(*STARTING_S))
        except subprocess.TimeoutExpired:
            started.kill()
            started.wait()
        else:
            pytest.fail(f"the node ended by itself with {started.returncode}: {node.log.read_text()[-2000:]}")


def run_round(node: Barnabas, crew: Crew, random: Random) -> None:
    crew.work()
    time.sleep(random.uniform(*LOAD_S))
    node.kill()
    kill_while_starting(node, random)
    node.start()
    for load in crew.loads:
        load.restarted()
    for load in settled_first(crew.loads):
        if not isinstance(load, Group):
            crew.rest(load)
        load.settle()
        crew.rest(load)
    for load in crew.loads:
        load.check()


def run_rounds(directory: Path, make: Callable[[Random], list[Load]], rounds: int, random: Random) -> int:
    """In one directory; how much was acknowledged."""
    node = Barnabas(BUSY, directory=directory)
    loads = make(random)
    try:
        node.start()
        for topic in INTERNAL_TOPICS:
            create_topic(node.bootstrap, topic, 2, STATE)
        for load in loads:
            load.prepare(node.bootstrap)
        crew = Crew(loads)
        try:
            for _ in range(rounds):
                run_round(node, crew, random)
        finally:
            crew.close()
            for load in loads:
                load.close()
        assert node.stop() == 0
    finally:
        node.kill()
    said = node.log.read_text()
    assert "Traceback" not in said, said[said.index("Traceback") - 500 :][:3000]
    return sum(load.acknowledged for load in loads)


@pytest.fixture
def seed() -> int:
    """Shown by pytest when a test fails; what is sent and the time of the kills follow from it, what happens does not."""
    return random.randrange(1 << 32)


def directories(tmp_path: Path) -> Iterator[tuple[Path, int]]:
    for number, done in enumerate(range(0, ROUNDS, ROUNDS_OF_A_DIRECTORY)):
        yield tmp_path / str(number), min(ROUNDS_OF_A_DIRECTORY, ROUNDS - done)


KINDS = [records, transactions, groups, housekeeping, *([everything] if ROUNDS > 1 else [])]


@pytest.mark.parametrize("make", KINDS)
def test_what_was_acknowledged_is_there_after_a_kill(
    tmp_path: Path, seed: int, make: Callable[[Random], list[Load]]
) -> None:
    random = Random(seed)
    acknowledged = 0
    for directory, rounds in directories(tmp_path):
        acknowledged += run_rounds(directory, make, rounds, random)
    print(f"{acknowledged} answers in {ROUNDS} rounds of {make.__name__}")
