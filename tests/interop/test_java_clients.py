"""Kafka's own producer, consumer and admin client: they see on barnabas, word for word, what they see on Apache Kafka.

The scenarios are in java/Clients.java, compiled here against the clients of the reference version.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.interop.java_program import compiled, printed
from tests.interop.side_by_side import SideBySide

pytestmark = pytest.mark.interop

# What is seen, and what must be among it: two brokers that both fail alike would be the same too.
SCENARIOS = {
    "records": "zstd read what was sent: true",
    "transactions": "read_committed from {0=0, 1=0} to {0=39, 1=38}",
    "fencing": "transactions {f1=CompleteCommit, f2=CompleteAbort, f3=Empty}",
    "offsets": "1000455 is at 46/1000460",
    "hanging": "none open: true",
    "exactly-once-classic": "written 300, different 300",
    "exactly-once-consumer": "written 300, different 300",
    "group-cooperative": "the first gave away 4 partitions",
    "group-range": "committed 120",
    "group-consumer": "Stable Consumer 3 members, uniform",
    "static-members": "consumer rebalances of the first meanwhile: 0",
    "patterns": "a new one too",
}


@pytest.fixture(scope="module")
def clients(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[str]]:
    """The command that runs the scenarios; an address and their names follow."""
    yield compiled("Clients", tmp_path_factory.mktemp("classes"))


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_the_java_clients_see_the_same(scenario: str, both: SideBySide, clients: list[str]) -> None:
    with ThreadPoolExecutor(2) as pool:
        runs = [pool.submit(printed, clients, node.bootstrap, scenario) for node in (both.barnabas, both.kafka)]
        (code, ours, error), (_, theirs, _) = (run.result() for run in runs)
    assert code == 0, ours + error
    assert SCENARIOS[scenario] in ours.splitlines()
    assert ours.splitlines() == theirs.splitlines()
