"""A mirror of a metadata log: what it keeps, what reads it, and what it refuses."""

from __future__ import annotations

import asyncio
import re
import sys
from collections.abc import Callable, Coroutine
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from barnabas.broker.node import Node, NodeError
from barnabas.client import Cluster
from barnabas.config import server
from barnabas.lake.reading.copies import merge, verdicts
from barnabas.lake.reading.metadata_files import find_logs
from barnabas.lake.reading.metadata_scan import inspect
from barnabas.metadata.as_of import EVERYTHING
from barnabas.offline.metadata import load
from barnabas.operations.doctor.findings import findings
from barnabas.operations.doctor.log_dirs import CHECKS, LogDirs
from barnabas.operations.errors import OperationError
from barnabas.operations.metadata_mirror import Mirrored, mirror
from barnabas.raft.stored_log import metadata_log_directory
from barnabas.storage.log_dirs import read_meta_properties
from barnabas.wire.messages.create_topics import CreateTopicsRequest
from tests.command_line import Command

SMALL = {"metadata.log.max.record.bytes.between.snapshots": "2000", "metadata.max.retention.bytes": "6000"}


def with_node(directory: Path, scenario: Callable[[Node], Coroutine[Any, Any, None]], **settings: str) -> None:
    async def main() -> None:
        node = Node(settings_of(directory, **settings))
        await node.start()
        try:
            await scenario(node)
        finally:
            await node.stop()

    asyncio.run(main())


def settings_of(directory: Path, **settings: str) -> Any:
    listeners = "PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:0"
    return server.load(None, {"log.dirs": str(directory), "listeners": listeners, **settings})


def address_of(node: Node, listener: str) -> str:
    host, port = node.addresses[listener]
    return f"{host}:{port}"


async def create(node: Node, *names: str) -> None:
    async with Cluster({"bootstrap.servers": address_of(node, "PLAINTEXT")}) as cluster:
        for name in names:
            topic = CreateTopicsRequest.CreatableTopic(name=name, num_partitions=3, replication_factor=1)
            await cluster.call(CreateTopicsRequest(topics=[topic]))


async def copied(node: Node, directory: Path) -> Mirrored:
    async with Cluster({"bootstrap.controllers": address_of(node, "CONTROLLER")}) as cluster:
        states = [state async for state in mirror(cluster, directory, follow=False)]
    assert states[-1].problem is None
    return states[-1]


def topics_in(log_dir: Path) -> list[str]:
    return sorted(load(metadata_log_directory(log_dir), EVERYTHING).image.topics.names)


def log_bytes(log_dir: Path) -> bytes:
    return b"".join(path.read_bytes() for path in sorted(metadata_log_directory(log_dir).glob("*.log")))


def test_a_mirror_has_the_bytes_of_the_leader_and_goes_on_where_it_was(tmp_path: Path) -> None:
    async def scenario(node: Node) -> None:
        await create(node, "a")
        first = await copied(node, tmp_path / "mirror")
        assert (tmp_path / "mirror").stat().st_mode & 0o777 == 0o700  # the log has the keys of users
        await create(node, "b", "c")
        second = await copied(node, tmp_path / "mirror")
        assert (first.start_offset, second.start_offset) == (0, 0)
        assert second.end_offset > first.end_offset
        assert 0 < second.batches < first.batches, "only what is new is copied"
        assert log_bytes(tmp_path / "mirror") == log_bytes(tmp_path / "node")
        third = await copied(node, tmp_path / "mirror")
        assert (third.end_offset, third.batches) == (second.end_offset, 0)

    with_node(tmp_path / "node", scenario)
    assert topics_in(tmp_path / "mirror") == ["a", "b", "c"]


def test_a_mirror_keeps_what_the_cluster_cleans_up(tmp_path: Path) -> None:
    names = [f"t{number:02d}" for number in range(40)]
    kept = b""

    async def scenario(node: Node) -> None:
        nonlocal kept
        aside: list[Path] = []
        for name in names:
            await create(node, name)
            aside += (await copied(node, tmp_path / "mirror")).set_aside
            has = b"".join(map(log_bytes, [*aside, tmp_path / "mirror"]))
            assert has.startswith(kept), "nothing that was copied is removed"
            kept = has
        new = await _copied_without_beginning(node, 0, tmp_path)
        assert topics_in(new) == names
        assert len(kept) > len(log_bytes(new))

    with_node(tmp_path / "node", scenario, **SMALL)
    assert topics_in(tmp_path / "mirror") == names


async def _copied_without_beginning(node: Node, end_offset: int, folder: Path) -> Path:
    """Copy into new directories until the cluster has forgotten what is before an offset. Returns the last one."""
    async with asyncio.timeout(30):
        for number in count():
            directory = folder / f"new-{number}"
            if (await copied(node, directory)).start_offset > end_offset:
                return directory
    raise AssertionError


async def _until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(30):
        while not condition():
            await asyncio.sleep(0.05)


def test_what_was_before_a_gap_stays_in_a_directory_of_its_own(tmp_path: Path) -> None:
    found: list[Mirrored] = []

    async def scenario(node: Node) -> None:
        await create(node, "before")
        found.append(await copied(node, tmp_path / "mirror"))
        await create(node, *(f"t{number:02d}" for number in range(40)))
        await _copied_without_beginning(node, found[0].end_offset, tmp_path)
        found.append(await copied(node, tmp_path / "mirror"))

    with_node(tmp_path / "node", scenario, **SMALL)
    before, after = found
    aside = tmp_path / "mirror" / f"until-{before.end_offset}"
    assert after.set_aside == (aside,)
    assert after.start_offset > before.end_offset
    assert topics_in(aside) == ["before"]
    assert len(topics_in(tmp_path / "mirror")) == 41
    assert read_meta_properties(aside) == read_meta_properties(tmp_path / "mirror")


def test_a_killed_mirror_goes_on_without_a_gap_or_a_double(tmp_path: Path) -> None:
    async def scenario(node: Node) -> None:
        await create(node, "a", "b")
        await copied(node, tmp_path / "mirror")
        log = max(metadata_log_directory(tmp_path / "mirror").glob("*.log"))
        log.write_bytes(log.read_bytes()[:-40])  # the end of the last batch was not written
        await copied(node, tmp_path / "mirror")
        assert log_bytes(tmp_path / "mirror") == log_bytes(tmp_path / "node")

    with_node(tmp_path / "node", scenario)


def test_a_mirror_without_room_names_the_file_and_goes_on_later(tmp_path: Path) -> None:
    """A limit of the size of files stands in for a full disk: both end a write."""

    async def scenario(node: Node) -> None:
        await create(node, "a", *(f"t{number:02d}" for number in range(40)))
        mirror = ["-m", "barnabas", "metadata", "mirror", str(tmp_path / "mirror"), "--until-end"]
        copying = await asyncio.create_subprocess_exec(
            "sh",
            *("-c", 'ulimit -f 8; exec "$@"', "sh", sys.executable, *mirror, "-b", address_of(node, "PLAINTEXT")),
            stderr=asyncio.subprocess.PIPE,
        )
        _, said = await copying.communicate()
        assert copying.returncode == 1
        assert re.search(r"00\.log failed: File too large", said.decode()), said.decode()
        assert 0 < len(log_bytes(tmp_path / "mirror")) < len(log_bytes(tmp_path / "node"))
        await copied(node, tmp_path / "mirror")
        assert log_bytes(tmp_path / "mirror") == log_bytes(tmp_path / "node")

    with_node(tmp_path / "node", scenario)


def test_a_mirror_that_follows_has_what_is_written_and_survives_a_restart_of_the_node(tmp_path: Path) -> None:
    async def scenario() -> None:
        node = Node(settings_of(tmp_path / "node"))
        await node.start()
        controller, port = address_of(node, "CONTROLLER"), node.addresses["CONTROLLER"][1]
        states: list[Mirrored] = []

        async def follow() -> None:
            async with Cluster({"bootstrap.controllers": controller}) as cluster:
                async for state in mirror(cluster, tmp_path / "mirror", follow=True):
                    states[:] = [state]

        following = asyncio.create_task(follow())
        await _until(lambda: bool(states))
        await create(node, "a")
        await _until(lambda: topics_in(tmp_path / "mirror") == ["a"])
        await node.stop()
        listeners = f"PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:{port}"
        node = Node(settings_of(tmp_path / "node", listeners=listeners))
        await node.start()
        await create(node, "b")
        await _until(lambda: following.done() or topics_in(tmp_path / "mirror") == ["a", "b"])
        assert not following.done(), following.exception()
        following.cancel()
        await asyncio.wait([following])
        await node.stop()

    asyncio.run(scenario())


def test_a_mirror_is_of_one_cluster_has_one_writer_and_is_no_node(tmp_path: Path) -> None:
    async def scenario(node: Node) -> None:
        await create(node, "a")
        await copied(node, tmp_path / "mirror")
        with pytest.raises(OperationError, match="is that of a node: choose an empty directory"):
            await copied(node, tmp_path / "other")
        async with Cluster({"bootstrap.controllers": address_of(node, "CONTROLLER")}) as cluster:
            writing = mirror(cluster, tmp_path / "mirror", follow=True)
            await anext(writing)
            with pytest.raises(OperationError, match="is in use"):
                await copied(node, tmp_path / "mirror")
            await writing.aclose()
        (tmp_path / "full").mkdir()
        (tmp_path / "full" / "orders-0").mkdir()
        with pytest.raises(OperationError, match="it is not formatted"):
            await copied(node, tmp_path / "full")

    async def nothing(node: Node) -> None:
        pass

    async def other(node: Node) -> None:
        with pytest.raises(OperationError, match="the mirror is of cluster"):
            await copied(node, tmp_path / "mirror")

    with_node(tmp_path / "other", nothing)
    with_node(tmp_path / "node", scenario)
    with_node(tmp_path / "third", other)
    with pytest.raises(NodeError, match="is a mirror of the metadata of cluster"):
        with_node(tmp_path / "mirror", nothing)


def test_all_of_a_mirror_is_committed_for_the_lake_and_the_doctor_finds_nothing(tmp_path: Path) -> None:
    async def scenario(node: Node) -> None:
        await create(node, "a")
        await copied(node, tmp_path / "mirror")

    with_node(tmp_path / "node", scenario)
    (log,) = find_logs([tmp_path / "mirror"])
    copy, _ = inspect(log)
    found = verdicts([copy], voters=[1, 2, 3])
    assert found[copy.name].true_end == copy.log_end > 0
    assert merge([copy], found).end == copy.log_end
    checks = [each for each in CHECKS if each.name != "disk-space"]
    assert list(findings(checks, LogDirs((tmp_path / "mirror",), None))) == []


def test_the_command_copies_and_other_commands_read_the_copy(tmp_path: Path) -> None:
    metadata = Command("metadata")

    async def scenario(node: Node) -> None:
        await create(node, "orders")
        done = await asyncio.to_thread(
            metadata,
            address_of(node, "PLAINTEXT"),
            "mirror",
            str(tmp_path / "mirror"),
            "--until-end",
            "-o",
            "json",
            code=0,
        )
        assert done.json[0]["start_offset"] == 0
        assert "are on disk" in done.stderr

    with_node(tmp_path / "node", scenario)
    assert metadata(None, "ls", str(tmp_path / "mirror"), "topics/byName", code=0).stdout.split() == ["orders"]
