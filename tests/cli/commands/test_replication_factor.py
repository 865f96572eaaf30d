"""`apply`, `topics alter` and `reassign` keep the same replicas when the replication factor changes."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from barnabas.client.cluster import Cluster
from barnabas.client.state import Partition
from barnabas.declared.difference import ChangeReplicationFactor, difference
from barnabas.declared.document import read_document
from barnabas.declared.observe import observe
from barnabas.testing import Broker
from tests.client.admin.absent_brokers import create_topic, take_out_of_sync, with_absent_brokers
from tests.command_line import Command, Done

LAGGING = 2


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with with_absent_brokers({1: None, 2: None, 3: None}) as running:
        yield running


def run(broker: Broker, *arguments: object, stdin: str = "") -> Done:
    done = Command()(broker, *arguments, stdin=stdin)
    assert done.exit_code in (0, 2), done.output
    return done


def partition(broker: Broker, topic: str, replica_count: int) -> Partition:
    """The partition of a topic, once it has that many replicas."""

    async def ask() -> Partition:
        async with Cluster({"bootstrap.servers": broker.bootstrap_servers}) as cluster:
            while True:
                found = (await cluster.metadata([topic])).topics[topic].partitions[0]
                if len(found.replicas) == replica_count:
                    return found
                await asyncio.sleep(0.01)

    return asyncio.run(ask())


def planned(broker: Broker, text: str) -> ChangeReplicationFactor:
    async def ask() -> Any:
        async with Cluster({"bootstrap.servers": broker.bootstrap_servers}) as cluster:
            document = read_document(text)
            return difference(document, await observe(cluster, ["topics"], declared=document))

    (change,) = asyncio.run(ask()).changes
    assert isinstance(change, ChangeReplicationFactor)
    return change


def declare(topic: str) -> str:
    return f"topics: {{{topic}: {{replicationFactor: 2}}}}"


def alter(broker: Broker, topic: str, _: Path) -> None:
    run(broker, "topics", "alter", topic, "--replication-factor", 2, "--yes")


def reassign(broker: Broker, topic: str, _: Path) -> None:
    run(broker, "reassign", "run", topic, "--replication-factor", 2, "--yes", "--wait")


def reassign_from_a_file(broker: Broker, topic: str, folder: Path) -> None:
    file = folder / "plan.json"
    run(broker, "reassign", "plan", topic, "--replication-factor", 2, "--save", file)
    run(broker, "reassign", "run", file, "--yes", "--wait")


def apply(broker: Broker, topic: str, _: Path) -> None:
    run(broker, "apply", "-f", "-", "--yes", stdin=declare(topic))


@pytest.mark.parametrize("change", [alter, reassign, reassign_from_a_file, apply])
def test_the_replica_that_is_out_of_sync_is_dropped(
    broker: Broker, change: Callable[[Broker, str, Path], None], tmp_path: Path
) -> None:
    topic = change.__name__
    create_topic(broker, topic, [1, 2, 3])
    take_out_of_sync(broker, LAGGING, [topic])
    assert sorted(partition(broker, topic, 3).isr) == [1, 3]
    change(broker, topic, tmp_path)
    found = partition(broker, topic, 2)
    assert (found.replicas, sorted(found.isr), found.leader_id) == ((1, 3), [1, 3], 1)


def test_all_of_them_plan_the_same(broker: Broker) -> None:
    create_topic(broker, "planned", [1, 2, 3], [2, 3, 1], [3, 2, 1], [3, 1, 2])
    take_out_of_sync(broker, LAGGING, ["planned"])
    wanted = [[1, 3], [3, 1], [3, 1], [3, 1]]
    options = ("planned", "--replication-factor", 2)
    reassigned = json.loads(run(broker, "reassign", "plan", *options, "-o", "json").stdout)
    assert [row["after"] for row in reassigned] == wanted
    altered = json.loads(run(broker, "topics", "alter", *options, "--dry-run", "-o", "json").stdout)
    assert [row["replicas"] for row in altered] == wanted
    replicas = planned(broker, declare("planned")).replicas
    assert [list(each) for _, each in sorted(replicas.items())] == wanted
