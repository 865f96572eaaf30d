"""What operators do to a cluster, and what they fear, under load: nothing acknowledged is lost, nothing is there twice.

Nodes are restarted one after another, a hundred partitions move, a rack is lost and returns, and all voters are replaced,
while clients write, read and commit, with and without transactions. They see no error that cannot be retried: otherwise
the load fails.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any

from barnabas.client import Admin
from barnabas.wire.errors import KafkaError
from tests.crash.clients import PATIENCE_S, create_topic, wait_until
from tests.crash.loads import Group, Load, Stream, Transactions, settled_first
from tests.crash.nodes import Nodes
from tests.crash.test_cluster_kill import STATE
from tests.crash.test_log_kill import Crew

SETTLED_S = 1.0
"""So long the clients work before and after what is done."""


@contextmanager
def under_load(nodes: Nodes, first: tuple[int, ...] = ()) -> Iterator[None]:
    """Start the nodes, and let clients work while the body runs; then everything is checked record by record."""
    random = Random(1)
    stream = Stream("stream", random, enable_idempotence=True)
    loads: list[Load] = [
        *(stream, Stream("compressed", random, enable_idempotence=True, compression_type="zstd")),
        *(Transactions("transactions", random), Group("members", random, stream, "consumer")),
    ]
    try:
        nodes.start(*first)
        for topic in ("__consumer_offsets", "__transaction_state"):
            create_topic(nodes.bootstrap, topic, 2, STATE)
        for load in loads:
            load.prepare(nodes.bootstrap)
        crew = Crew(loads)
        try:
            crew.work()
            time.sleep(SETTLED_S)
            yield
            crew.raise_errors()
            time.sleep(SETTLED_S)
            for load in settled_first(loads):
                if not isinstance(load, Group):
                    crew.rest(load)
                load.settle()
                crew.rest(load)
            for load in loads:
                assert load.acknowledged, f"{load.name} has done nothing"
                load.check()
        finally:
            crew.close()
            for load in loads:
                load.close()
    finally:
        nodes.kill()
    assert not nodes.tracebacks()


def asked(nodes: Nodes, work: Callable[[Admin], Coroutine[Any, Any, Any]]) -> Any:
    async def main() -> Any:
        async with Admin({"bootstrap.servers": nodes.bootstrap}) as admin:
            return await work(admin)

    return asyncio.run(main())


def all_in_sync(nodes: Nodes) -> bool:
    async def look(admin: Admin) -> bool:
        topics = (await admin.cluster.metadata(None)).topics.values()
        found = [partition for topic in topics for partition in topic.partitions.values()]
        return all(each.leader_id >= 0 and set(each.isr) == set(each.replicas) for each in found)

    return bool(asked(nodes, look))


def wait_in_sync(nodes: Nodes) -> None:
    wait_until(lambda: all_in_sync(nodes), "all replicas in sync", 2 * PATIENCE_S)


def test_nodes_are_restarted_one_after_another(tmp_path: Path) -> None:
    nodes = Nodes(tmp_path)
    with under_load(nodes):
        for each in nodes.node_ids:
            nodes.restart(each)
            wait_in_sync(nodes)


def test_a_hundred_partitions_move_to_another_node(tmp_path: Path) -> None:
    nodes = Nodes(tmp_path, node_ids=(1, 2, 3, 4))
    with under_load(nodes):
        create_topic(nodes.bootstrap, "many", 90)
        moves: dict[tuple[str, int], tuple[int, ...]] = {}

        async def move(admin: Admin) -> None:
            state = await admin.cluster.metadata(None)
            while "many" not in state.topics:  # a broker that has not heard of it yet
                state = await admin.cluster.metadata(None)
            for name, topic in state.topics.items():
                for index, partition in topic.partitions.items():
                    others = [each for each in nodes.node_ids if each not in partition.replicas]
                    moves[name, index] = (*others, *partition.replicas[: 3 - len(others)])
            assert len(moves) >= 100
            results = await admin.alter_partition_reassignments(moves)
            assert {each for each in results.values() if each is not None} == set()

        async def is_moving(admin: Admin) -> bool:
            return bool(await admin.list_partition_reassignments())

        async def replicas(admin: Admin) -> dict[tuple[str, int], tuple[int, ...]]:
            topics = (await admin.cluster.metadata(None)).topics.items()
            return {(name, index): each.replicas for name, topic in topics for index, each in topic.partitions.items()}

        asked(nodes, move)
        wait_until(lambda: not asked(nodes, is_moving), "the end of the reassignment", 2 * PATIENCE_S)
        assert asked(nodes, replicas) == moves


def test_a_rack_is_lost_and_returns(tmp_path: Path) -> None:
    nodes = Nodes(tmp_path, node_ids=(1, 2, 3, 4, 5), racks={1: "a", 2: "b", 3: "c", 4: "a", 5: "b"})
    with under_load(nodes):
        for rack in ((1, 4), (2, 5)):
            for each in rack:
                nodes.nodes[each].kill()
            time.sleep(2 * SETTLED_S)
            nodes.start(*rack)
            wait_in_sync(nodes)


def test_all_three_voters_are_replaced(tmp_path: Path) -> None:
    nodes = Nodes(tmp_path, node_ids=(1, 2, 3, 4, 5, 6), is_dynamic=True)
    with under_load(nodes, first=(1, 2, 3)):
        for old, new in ((1, 4), (2, 5), (3, 6)):
            nodes.start(new)
            wait_until(lambda new=new: new in voters(nodes), f"node {new} a voter")  # type: ignore[misc]
            remove(nodes, old)
            wait_until(lambda old=old: old not in voters(nodes), f"node {old} no voter")  # type: ignore[misc]
            nodes.restart(old)
        assert set(voters(nodes)) == {4, 5, 6}


def voters(nodes: Nodes) -> dict[int, Any]:
    async def look(admin: Admin) -> dict[int, Any]:
        return {each.replica_id: each.replica_directory_id for each in (await admin.describe_quorum()).voters}

    try:
        found: dict[int, Any] = asked(nodes, look)
    except (KafkaError, OSError):
        return {}  # the leader leaves
    return found


def remove(nodes: Nodes, node_id: int) -> None:
    """Remove a voter, again if the leader leaves meanwhile."""
    directory = voters(nodes)[node_id]

    async def work(admin: Admin) -> None:
        await admin.remove_raft_voter(node_id, directory)

    deadline_s = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline_s:
        try:
            asked(nodes, work)
            return
        except KafkaError as error:
            if node_id not in voters(nodes):
                return
            assert error.code.retriable or "voter" in str(error), error
            time.sleep(0.2)
