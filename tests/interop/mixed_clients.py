"""Kafka's Java clients and librdkafka at work on a cluster: the programs of the soak, and its ledger of their answers."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from pathlib import Path

from confluent_kafka.admin import OffsetSpec

from tests.crash.clients import admin, committed, create_topic, offsets, wait_until
from tests.soak.ledger import Ledger
from tests.soak.programs import commands
from tests.soak.soak import END_S, KINDS, Program, Reader
from tests.soak.worker import PARTITIONS

NAMES = ("java", "confluent")
REST_S = 180.0


class Clients:
    """Each produces with idempotence, transacts, consumes in a group what the other sent, and creates and deletes topics."""

    def __init__(self, bootstrap: str, directory: Path, names: Sequence[str] = NAMES) -> None:
        directory.mkdir()
        programs, missing = commands(names, directory)
        assert not missing, missing
        self._bootstrap = bootstrap
        self._mutex = threading.Lock()
        self.ledger = Ledger(names)
        for name in names:
            for kind in KINDS:
                create_topic(bootstrap, f"{name}-{kind}", PARTITIONS)
        self._read = dict(zip(names, (f"{name}-once" for name in [*names[1:], names[0]]), strict=True))
        self._reader = Reader(bootstrap, self.ledger, self._mutex)
        self._programs = [
            Program(
                name, [*program, bootstrap, self._read[name], "1"], self.ledger, self._mutex, directory / f"{name}.err"
            )
            for name, program in programs.items()
        ]

    @property
    def topics(self) -> list[str]:
        return [f"{name}-{kind}" for name in self.ledger.names for kind in KINDS]

    def go_on(self, what: str) -> None:
        """Wait until each client has had something acknowledged, and has ended a transaction, since now."""
        before = self._progress()

        def has_gone_on() -> bool:
            for program in self._programs:
                assert program.process.poll() is None, f"{program.name} ended with {program.process.returncode}"
            return all(now > then for now, then in zip(self._progress(), before, strict=True))

        wait_until(has_gone_on, f"clients after {what}: {before}", 120)
        assert not self.ledger.violations, self.ledger.violations

    def _progress(self) -> list[int]:
        with self._mutex:
            counts = [self.ledger.counts(name) for name in self.ledger.names]
        return [each[name] for each in counts for name in ("acknowledged", "committed transactions", "read")]

    def finish(self) -> None:
        """Let producers rest and groups read to the end, and check every record."""
        for program in self._programs:
            program.rest()
        wait_until(lambda: all(program.rests.is_set() for program in self._programs), "the clients rest", REST_S)
        places = [(topic, partition) for topic in self.topics for partition in range(PARTITIONS)]
        ends = offsets(self._bootstrap, places, OffsetSpec.latest())
        assert offsets(self._bootstrap, places, OffsetSpec.latest(), stable=True) == ends, "a transaction is open"
        for name, topic in self._read.items():
            goal = {(topic, partition): ends[topic, partition] for partition in range(PARTITIONS)}

            def is_read(name: str = name, goal: dict[tuple[str, int], int] = goal) -> bool:
                found = committed(self._bootstrap, name, goal)
                return all(found[place] >= end for place, end in goal.items())

            wait_until(is_read, f"the group {name} does not read to {goal}", REST_S)
        wait_until(lambda: self._has_seen(ends), f"the reader does not come to {ends}", REST_S)
        with self._mutex:
            self.ledger.check_topics(set(admin(self._bootstrap).list_topics(timeout=30).topics))
            self.ledger.check_records()
            assert not self.ledger.violations, self.ledger.violations

    def _has_seen(self, ends: dict[tuple[str, int], int]) -> bool:
        with self._mutex:
            return all(self._reader.positions[place] >= end for place, end in ends.items())

    def close(self) -> None:
        for program in self._programs:
            program.leave()
        for program in self._programs:
            program.end(time.monotonic() + END_S)
        self._reader.close()
