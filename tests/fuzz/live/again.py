"""Sends the requests of a campaign again: all of them, or the few that are enough for a finding.

A file of requests has a line for each: the listener, the connection, whether it is closed then, and the bytes.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from barnabas.testing import Broker
from tests.fuzz.live.campaign import (
    CONFIG,
    GLANCE_S,
    IN_MEMORY,
    LINKS,
    Link,
    Report,
    Watch,
    answered,
    prepared,
    watched,
)

MAX_TRIALS = 60
SUFFIXES = (1, 3, 10, 30, 100, 300, 1000, 3000)


class Step(NamedTuple):
    """Bytes that were sent on a connection, which may have been closed then."""

    listener: str
    link: int
    closes: bool
    data: bytes

    def __str__(self) -> str:
        return f"{self.listener} {self.link} {'close' if self.closes else 'keep'} {self.data.hex()}"

    @classmethod
    def parse(cls, line: str) -> Step:
        listener, link, closes, data = line.split(" ")
        return cls(listener, int(link), closes == "close", bytes.fromhex(data.strip()))


def read_steps(path: Path) -> list[Step]:
    return [Step.parse(line) for line in path.read_text().splitlines()]


def send_again(steps: Iterable[Step]) -> Report:
    """Send these requests to a new node."""
    with (
        tempfile.TemporaryDirectory(dir=IN_MEMORY, prefix="fuzz-") as directory,
        Broker(config=CONFIG, data_dir=Path(directory, "data")) as broker,
    ):
        addresses = prepared(broker)
        report = Report(0)
        watch = Watch(report)
        links = {kind: [Link(address) for _ in range(LINKS)] for kind, address in addresses.items()}
        with watched(watch):
            for number, step in enumerate(steps):
                watch.number, watch.request = number, str(step)
                link = links[step.listener][step.link]
                with suppress(ConnectionError):
                    link.expect(step.data)
                    link.send(step.data)
                    if not step.closes:
                        answered(link, report, watch, None, GLANCE_S)
                        continue
                link.close()
            for each in links.values():
                for link in each:
                    with suppress(ConnectionError):
                        answered(link, report, watch, None, 1.0)
                    link.close()
    return report


def enough_for(what: str, steps: list[Step]) -> list[Step] | None:
    """The few requests after which the finding is there again, or None if it does not come again."""

    def is_found(some: list[Step]) -> bool:
        try:
            return what in send_again(some).findings
        except TimeoutError:  # the machine is too busy to stop the node in time
            return False

    for size in (*(size for size in SUFFIXES if size < len(steps)), len(steps)):
        if is_found(steps[-size:]):
            return fewer(steps[-size:], is_found)
    return None


def fewer(steps: list[Step], is_found: Callable[[list[Step]], bool]) -> list[Step]:
    size, trials = len(steps) // 2, 0
    while size and trials < MAX_TRIALS:
        position = 0
        while position < len(steps) and trials < MAX_TRIALS:
            shorter = steps[:position] + steps[position + size :]
            trials += 1
            if is_found(shorter):
                steps = shorter
            else:
                position += size
        size //= 2
    return steps
