"""Three nodes, of which one after another is killed while clients produce and consume: nothing acknowledged is lost.

Rounds: 2 for each kind of load, or BARNABAS_CRASH_ROUNDS. In a round one node is killed, in some rounds another one soon after
it has returned. Then all comes to rest, is checked record by record, and the logs of all replicas become equal.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random

import pytest
from tools.apache_kafka import Barnabas

from barnabas.raft import formatting
from barnabas.wire import random_uuid
from tests.crash.clients import create_topic, wait_until
from tests.crash.loads import Group, Load, Stream, Transactions, settled_first
from tests.crash.test_log_kill import BUSY, LOAD_S, Crew

ROUNDS = int(os.environ.get("BARNABAS_CRASH_ROUNDS", "2"))
NODE_IDS = (1, 2, 3)
AWAY_S = (0.1, 3.0)
REPLICATED = {
    **{name: value for name, value in BUSY.items() if not name.startswith("log.cleaner")},
    "default.replication.factor": "3",
    "offsets.topic.replication.factor": "3",
    "transaction.state.log.replication.factor": "3",
    "min.insync.replicas": "2",
    "broker.session.timeout.ms": "2000",
    "broker.heartbeat.interval.ms": "300",
    "replica.lag.time.max.ms": "3000",
    "controller.quorum.election.timeout.ms": "500",
    "controller.quorum.fetch.timeout.ms": "1500",
    "controller.quorum.election.backoff.max.ms": "200",
}
STATE = {"cleanup.policy": "compact"}


def records(random: Random) -> list[Load]:
    small = {"internal.segment.bytes": "100000"}
    # Without idempotence librdkafka may change the order when a leader moves.
    return [
        Stream("once", random, enable_idempotence=True, config=small, compression_type="lz4"),
        Stream("large", random, enable_idempotence=True, batch_size=100_000, linger_ms=20),
    ]


def transactions(random: Random) -> list[Load]:
    return [Transactions("transactions", random)]


def groups(random: Random) -> list[Load]:
    stream = Stream("read", random, enable_idempotence=True)
    return [stream, *(Group(f"group-{protocol}", random, stream, protocol) for protocol in ("classic", "consumer"))]


class Nodes:
    """Three nodes, each a process with a directory of its own."""

    def __init__(self, directory: Path) -> None:
        self.nodes = {
            each: Barnabas({**REPLICATED, "node.id": str(each)}, directory=directory / str(each)) for each in NODE_IDS
        }
        self.bootstrap = ",".join(node.bootstrap for node in self.nodes.values())
        voters = ",".join(f"{each}@{node.controller}" for each, node in self.nodes.items())
        cluster_id = str(random_uuid(Random()))
        for each, node in self.nodes.items():
            node.command += ["--override", f"controller.quorum.voters={voters}"]
            data = node.directory / "data"
            bootstrap = formatting.bootstrap_records(formatting.effective_features())
            wanted = formatting.Formatting(cluster_id, each, data, {data: random_uuid(Random())}, bootstrap, None)
            formatting.write_format(wanted, lambda: time.time_ns() // 1_000_000)

    def start(self) -> None:
        with ThreadPoolExecutor(len(self.nodes)) as threads:  # none is ready without another
            list(threads.map(Barnabas.start, self.nodes.values()))

    def kill(self) -> None:
        for node in self.nodes.values():
            node.kill()

    def logs_differ(self, topics: list[str]) -> bool:
        """Whether the logs of these topics are not the same bytes on all nodes."""
        found = []
        for node in self.nodes.values():
            data = node.directory / "data"
            found.append(
                {
                    f"{path.parent.name}/{path.name}": path.read_bytes()
                    for topic in topics
                    for path in data.glob(f"{topic}-[0-9]/*.log")
                }
            )
        return any(each != found[0] or not each for each in found)


def run_round(nodes: Nodes, crew: Crew, random: Random) -> None:
    crew.work()
    for _ in range(random.choice((1, 1, 2))):
        time.sleep(random.uniform(*LOAD_S))
        node = nodes.nodes[random.choice(NODE_IDS)]
        node.kill()
        time.sleep(random.uniform(*AWAY_S))
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
    topics = [load.name for load in crew.loads if isinstance(load, Stream)]
    if topics:
        wait_until(lambda: not nodes.logs_differ(topics), "equal logs on all nodes")


@pytest.fixture
def seed() -> int:
    """Shown by pytest when a test fails; what is sent and the time of the kills follow from it, what happens does not."""
    return random.randrange(1 << 32)


@pytest.mark.parametrize("make", [records, transactions, groups])
def test_what_three_nodes_acknowledged_is_there_after_kills(
    tmp_path: Path, seed: int, make: Callable[[Random], list[Load]]
) -> None:
    random = Random(seed)
    nodes = Nodes(tmp_path)
    loads = make(random)
    try:
        nodes.start()
        for topic in ("__consumer_offsets", "__transaction_state"):
            create_topic(nodes.bootstrap, topic, 2, STATE)
        for load in loads:
            load.prepare(nodes.bootstrap)
        crew = Crew(loads)
        try:
            for _ in range(ROUNDS):
                run_round(nodes, crew, random)
        finally:
            crew.close()
            for load in loads:
                load.close()
    finally:
        nodes.kill()
    for node in nodes.nodes.values():
        said = node.log.read_text()
        assert "Traceback" not in said, said[said.index("Traceback") - 500 :][:3000]
    print(f"{sum(load.acknowledged for load in loads)} answers in {ROUNDS} rounds of {make.__name__}")
