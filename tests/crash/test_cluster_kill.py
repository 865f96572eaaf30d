"""Three nodes in trouble while clients produce and consume: nothing acknowledged is lost.

Rounds: 2 for each kind of load, or BARNABAS_CRASH_ROUNDS; `make crash ROUNDS=100` runs more. In a round one node is killed,
stands still (SIGSTOP), restarts, has a full disk, or cannot be reached well by others and by clients, in some rounds
another one soon after it has returned. Then all comes to rest, is checked record by record, and the logs of all replicas
become equal.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from tests.crash.clients import create_topic, wait_until
from tests.crash.loads import Group, Load, Stream, Transactions, settled_first
from tests.crash.nodes import NODE_IDS, Nodes
from tests.crash.test_log_kill import LOAD_S, Crew

ROUNDS = int(os.environ.get("BARNABAS_CRASH_ROUNDS", "2"))
AWAY_S = (0.1, 3.0)
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


TROUBLES = {"kill": 4, "pause": 3, "cut": 2, "hold": 2, "slow": 2, "restart": 1, "full disk": 1}


def trouble(nodes: Nodes, random: Random) -> None:
    """One kind of trouble for one node, and its end."""
    (kind,) = random.choices(list(TROUBLES), list(TROUBLES.values()))
    node_id, seconds = random.choice(NODE_IDS), random.uniform(*AWAY_S)
    print(f"{kind} of node {node_id} for {seconds:.1f} s")
    if kind in ("kill", "restart"):
        nodes.restart(node_id, seconds, kill=kind == "kill")
    elif kind == "pause":
        nodes.pause(node_id, 2 * seconds)  # in half of the cases longer than its session
    elif kind == "full disk":
        nodes.fill_disk(node_id, seconds)
    else:
        nodes.disturb(node_id, kind, 2 * seconds, delay_s=random.uniform(0.02, 0.3))


def run_round(nodes: Nodes, crew: Crew, random: Random) -> None:
    crew.work()
    for _ in range(random.choice((1, 1, 2))):
        time.sleep(random.uniform(*LOAD_S))
        trouble(nodes, random)
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
def test_what_three_nodes_acknowledged_is_there_after_trouble(
    tmp_path: Path, seed: int, make: Callable[[Random], list[Load]]
) -> None:
    random = Random(seed)
    nodes = Nodes(tmp_path, with_links=True)
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
    assert not nodes.tracebacks()
    print(f"{sum(load.acknowledged for load in loads)} answers in {ROUNDS} rounds of {make.__name__}")
