"""A node killed at any moment: what it acknowledged is there when it starts again, and nothing is there by half.

Rounds: 3, or BARNABAS_CRASH_ROUNDS. In each, eight workers send requests until the kill; each worker has topics of its own
and one request under way, so that after the restart its topics must be those before that request, or those after it.
"""

from __future__ import annotations

import asyncio
import os
import random
import subprocess
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest
from tools.apache_kafka import Barnabas

from barnabas.client.connection import Connection
from barnabas.wire.messages.metadata import MetadataRequest
from tests.model.model import (
    Configure,
    Create,
    Delete,
    Grow,
    Operation,
    Seen,
    Topic,
    Topics,
    configs_request,
    seen,
)

ROUNDS = int(os.environ.get("BARNABAS_CRASH_ROUNDS", "3"))
WORKERS = 8
# Snapshots every few kilobytes, and old ones deleted, so that kills fall into their making too.
BUSY_SNAPSHOTS = {
    "metadata.log.max.record.bytes.between.snapshots": "4000",
    "metadata.max.retention.bytes": "20000",
}


@pytest.fixture
def seed() -> int:
    """Shown by pytest when a test fails; the moment of a kill follows from it, what the node does until then does not."""
    return random.randrange(1 << 32)


class Worker:
    """Topics that nobody else touches: what is known of them, and what the request under way would make of them."""

    def __init__(self, number: int, random: Random) -> None:
        self.prefix = f"worker{number}-"
        self.random = random
        self.known: Topics = {}
        self.under_way: Topics | None = None
        self.ids: dict[str, object] = {}
        self.acknowledged = 0
        self._created = 0

    async def work(self, connection: Connection) -> None:
        while True:
            operation = self._choose()
            after, expected = operation.apply(self.known)
            self.under_way = after
            response = await connection.call(operation.request(), operation.version)
            assert operation.codes(response) == expected == dict.fromkeys(expected, 0)
            self.known, self.under_way = after, None
            self.acknowledged += 1
            if isinstance(operation, Create):
                self.ids.update((row.name, row.topic_id) for row in response.topics)

    def _choose(self) -> Operation:
        names = sorted(self.known)
        dice = self.random.random()
        if len(names) < 3 or (dice < 0.3 and len(names) < 12):
            return Create([self._new_topic() for _ in range(self.random.choice((1, 1, 3)))])
        name = self.random.choice(names)
        if dice < 0.5:
            return Delete(self.random.sample(names, 2))
        if dice < 0.65 and self.known[name].partitions < 20:
            return Grow([(name, self.known[name].partitions + self.random.randint(1, 3))])
        other = self.random.choice(names)
        value = str(self.random.randrange(1000, 1 << 40))
        changes: list[tuple[str, dict[str, str | None]]] = [(name, {"retention.ms": value, "segment.jitter.ms": None})]
        if other != name:
            changes.append((other, {"segment.jitter.ms": value, "cleanup.policy": "compact"}))
        return Configure(changes)

    def _new_topic(self) -> tuple[str, int, dict[str, str]]:
        self._created += 1
        configs = {"retention.ms": str(self.random.randrange(1000, 9999)), "cleanup.policy": "compact,delete"}
        return f"{self.prefix}{self._created}", self.random.randint(1, 5), configs

    def check(self, found: Seen) -> None:
        mine: dict[str, Topic] = {n: topic for n, topic in found.topics.items() if n.startswith(self.prefix)}
        assert mine in (self.known, self.under_way), f"{self.prefix} {mine}"
        for name in mine.keys() & self.ids.keys() & self.known.keys():
            assert found.ids[name] == self.ids[name]
        self.known, self.under_way = mine, None


async def look(address: tuple[str, int]) -> Seen:
    connection = await Connection.open(*address, "crash")
    try:
        metadata = await connection.call(MetadataRequest(topics=None, allow_auto_topic_creation=False), 12)
        assert [broker.node_id for broker in metadata.brokers] == [1]
        configs = await connection.call(configs_request([topic.name for topic in metadata.topics]), 4)
        return seen(metadata, configs)
    finally:
        connection.close()


async def work_until_killed(node: Barnabas, workers: list[Worker], answers: int, delay_s: float) -> None:
    """The kill comes a moment after so many answers, and so into the midst of what follows them."""
    connection = await Connection.open(*node.address, "crash")
    goal = sum(worker.acknowledged for worker in workers) + answers
    tasks = [asyncio.create_task(worker.work(connection)) for worker in workers]
    while sum(worker.acknowledged for worker in workers) < goal and not any(task.done() for task in tasks):
        await asyncio.sleep(0.001)
    await asyncio.sleep(delay_s)
    node.kill()
    for error in await asyncio.gather(*tasks, return_exceptions=True):
        if not isinstance(error, ConnectionError):
            raise error if isinstance(error, BaseException) else AssertionError(error)


def metadata_segment(node: Barnabas) -> Path:
    return max((node.directory / "data" / "__cluster_metadata-0").glob("*.log"))


def tear(segment: Path, random: Random) -> str:
    """Bytes of a batch that was not written to its end, as a loss of power may leave them."""
    written = segment.read_bytes()
    kind = random.choice(("nothing", "noise", "zeros", "half a batch"))
    tails = {
        "nothing": b"",
        "noise": random.randbytes(random.randint(1, 300)),
        "zeros": bytes(random.randint(1, 5000)),
        "half a batch": written[: random.randint(1, 60)],
    }
    with segment.open("ab") as file:
        file.write(tails[kind])
    return kind


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Barnabas]:
    running = Barnabas(BUSY_SNAPSHOTS, directory=tmp_path)
    yield running
    running.kill()


def test_what_was_acknowledged_outlives_a_kill_at_any_moment(node: Barnabas, seed: int) -> None:
    random = Random(seed)
    workers = [Worker(number, Random(random.random())) for number in range(WORKERS)]
    node.start()
    for _ in range(ROUNDS):
        asyncio.run(work_until_killed(node, workers, random.randint(0, 80), random.uniform(0, 0.03)))
        tear(metadata_segment(node), random)
        node.start()
        found = asyncio.run(look(node.address))
        for worker in workers:
            worker.check(found)
        assert set(found.topics) == {name for worker in workers for name in worker.known}
    print(f"{sum(worker.acknowledged for worker in workers)} requests were acknowledged in {ROUNDS} rounds")
    assert node.stop() == 0


def test_a_kill_while_starting_does_not_keep_it_from_starting(node: Barnabas, seed: int) -> None:
    random = Random(seed)
    for _ in range(ROUNDS):
        started = subprocess.Popen(node.command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            started.wait(random.uniform(0.1, 0.6))
        except subprocess.TimeoutExpired:
            started.kill()
            started.wait()
        else:
            pytest.fail(f"the node ended by itself with {started.returncode}")
    node.start()
    assert asyncio.run(look(node.address)).topics == {}
    assert node.stop() == 0
