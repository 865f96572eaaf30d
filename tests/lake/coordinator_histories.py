"""Logs of coordinators, read from files or made up, and folds that are driven by them without Spark."""

from __future__ import annotations

import tarfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from barnabas.batches import decode_records, iterate_batches
from barnabas.lake.facts import schema
from barnabas.lake.facts.coordinator_logs import RecordsFold
from barnabas.lake.facts.log_facts import LogPosition
from barnabas.lake.facts.schema import Fact

DATA = Path(__file__).parent / "data"


class Line(NamedTuple):
    """A record, and the number of its batch."""

    offset: int
    batch: int
    key: bytes | None
    value: bytes | None
    time_us: int = 0
    producer_id: int | None = None
    is_control: bool = False


Facts = dict[str, list[Fact]]


def extract_coordinators(directory: Path) -> Path:
    """All partitions of both topics, as a node of Apache Kafka left them."""
    with tarfile.open(DATA / "coordinators.tar.gz") as archive:
        archive.extractall(directory, filter="data")
    return directory / "node2"


def read_lines(segment: Path) -> Iterator[Line]:
    data = segment.read_bytes()
    for number, (position, header) in enumerate(iterate_batches(data)):
        producer_id = header.producer_id if header.is_transactional else None
        for record in decode_records(data, position, header):
            time_us = record.timestamp * 1000
            yield Line(record.offset, number, record.key, record.value, time_us, producer_id, header.is_control)


def run(make: Callable[[], RecordsFold], lines: Iterable[Line], before: Facts | None = None) -> tuple[Facts, Facts]:
    """What has ended, and what is open after these lines; what was open before goes through Arrow, as in Spark."""
    fold = make()
    for kind, facts in (before or {}).items():
        fold.restore(kind, through_arrow(kind, facts))
    batch = None
    for line in lines:
        if line.batch != batch:
            fold.end_batch()
            batch = line.batch
        place = LogPosition(line.offset, line.time_us, 0)
        if line.is_control:
            fold.apply_marker(line.key, line.value, place, line.producer_id or 0)
        else:
            fold.apply(line.key, line.value, place, line.producer_id)
    fold.end_batch()
    found: Facts = {}
    for kind, fact in fold.all_open():
        found.setdefault(kind, []).append(fact)
    return fold.facts.ended, found


def through_arrow(kind: str, facts: list[Fact]) -> list[Fact]:
    batch = schema.fact_batch("c", "log-0", kind, facts)
    return [fact for _, _, _, found in schema.facts_of(batch) for fact in found]


def run_in_cuts(make: Callable[[], RecordsFold], lines: Sequence[Line], cuts: Iterable[int]) -> tuple[Facts, Facts]:
    """The same in several runs, each of which has only what the one before left open."""
    all_ended: Facts = {}
    found: Facts = {}
    edges = [0, *sorted(cuts), 1 << 62]
    for start, end in pairwise(edges):
        ended, found = run(make, (line for line in lines if start <= line.batch < end), found)
        for kind, facts in ended.items():
            all_ended.setdefault(kind, []).extend(facts)
    return all_ended, found


def as_of(facts: Iterable[Fact], offset: int) -> dict[str, Any]:
    """Values by key, after everything up to an offset."""
    rows = [fact for fact in facts if fact[1] <= offset and (fact[4] is None or fact[4] > offset)]
    found = {fact[0]: fact[7] for fact in rows}
    assert len(found) == len(rows), "two facts of one key hold at once"
    return found


def rows(facts: Facts) -> dict[str, list[Fact]]:
    """In an order that does not depend on how they were found; visible kinds alone."""
    return {
        kind: sorted(found, key=lambda fact: (fact[0], fact[1]))
        for kind, found in facts.items()
        if kind[0] != "_" and found
    }
