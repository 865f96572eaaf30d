"""`barnabas doctor` beside Apache Kafka 4.3.1: a healthy node has only honest notes, and broken ones are found."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tools.apache_kafka import HOST, VERSION, ApacheKafka, free_ports

from barnabas.batches import iterate_batches
from tests.command_line import invoke
from tests.interop.conftest import jars

pytestmark = pytest.mark.interop

SKIP = ("--skip", "disk-space", "--skip", "disks", "--skip", "log-dirs")  # of the machine that runs the tests


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApacheKafka]:
    jars(VERSION)
    directory = tmp_path_factory.mktemp("doctor")
    with ApacheKafka(directory=directory) as started:
        barnabas(started, "topics", "create", "orders", "--partitions", "2")
        invoke("records", "produce", "orders", "-b", started.bootstrap, stdin="one\ntwo\nthree\n", code=0)
        yield started


def barnabas(node: ApacheKafka, *words: str) -> None:
    invoke(*words, "-b", node.bootstrap, code=0)


def rows(*arguments: object) -> list[dict[str, Any]]:
    done = invoke("doctor", *arguments, *SKIP, "-o", "json")
    assert done.exit_code in (0, 2), done.output
    found: list[dict[str, Any]] = done.json
    return found


def worse(found: list[dict[str, Any]]) -> set[tuple[str, str]]:
    return {(row["check"], row["severity"]) for row in found if row["severity"] != "note"}


def test_a_healthy_node_has_nothing_worse_than_a_note(node: ApacheKafka) -> None:
    found = rows("-b", node.bootstrap)
    assert worse(found) == set()
    assert {row["check"] for row in found} <= {"features"}


def test_its_files_are_those_of_a_running_node(node: ApacheKafka) -> None:
    found = rows(node.directory / "server.properties")
    assert worse(found) == set()
    assert [row["check"] for row in found] == ["locked"]
    assert f"process {node.pid} is using it" in found[0]["message"]


def test_what_is_broken_in_a_cluster_of_kafka_is_found(node: ApacheKafka) -> None:
    barnabas(node, "topics", "create", "strict", "--config", "min.insync.replicas=2")
    barnabas(node, "configs", "set", "__consumer_offsets", "cleanup.policy=delete", "--yes") if _has_offsets(
        node
    ) else None
    barnabas(node, "configs", "set", "orders", "leader.replication.throttled.replicas=0:1", "--yes")
    barnabas(node, "configs", "set", "orders", "unclean.leader.election.enable=true", "--yes")
    try:
        found = worse(rows("-b", node.bootstrap))
    finally:
        barnabas(node, "topics", "delete", "strict", "--yes")
        keys = ("leader.replication.throttled.replicas", "unclean.leader.election.enable")
        barnabas(node, "configs", "unset", "orders", *keys, "--yes")
    assert {
        ("replication", "error"),
        ("partitions", "error"),
        ("reassignments", "warning"),
        ("topic-settings", "warning"),
    } <= found


def _has_offsets(node: ApacheKafka) -> bool:
    return "__consumer_offsets" in invoke("topics", "list", "--internal", "-b", node.bootstrap).stdout


def test_an_advertised_listener_of_kafka_that_cannot_be_reached_is_found() -> None:
    jars(VERSION)
    (unused,) = free_ports(1)
    with ApacheKafka({"advertised.listeners": f"PLAINTEXT://{HOST}:{unused}"}) as wrong:
        found = {row["check"]: row for row in rows("-b", wrong.bootstrap)}
    assert found["reachable"]["severity"] == "error"
    assert f"{HOST}:{unused}" in found["reachable"]["message"]


def test_the_directory_of_a_stopped_node_is_silent_and_damage_is_found(node: ApacheKafka, tmp_path: Path) -> None:
    node.stop()
    try:
        data = node.directory / "data"
        for what in (node.directory / "server.properties", data):
            found = rows(what, "--deep")
            # A topic that another test deleted may still have its files: Kafka deletes them a minute later.
            assert [row for row in found if row["check"] != "leftovers"] == []
        for damage, check in ((_cut, "log-ends"), (_empty, "log-ends"), (_flip, "every-batch"), (_forget, "formatted")):
            copy = Path(shutil.copytree(data, tmp_path / damage.__name__))
            damage(copy)
            assert check in {row["check"] for row in rows(copy, "--deep") if row["severity"] == "error"}, damage
    finally:
        node.start()


def _longest(data: Path) -> Path:
    return max(data.glob("orders-*/*.log"), key=lambda path: path.stat().st_size)


def _cut(data: Path) -> None:
    path = _longest(data)
    *_, (start, _) = iterate_batches(path.read_bytes())
    os.truncate(path, start)


def _empty(data: Path) -> None:
    os.truncate(_longest(data), 0)


def _flip(data: Path) -> None:
    path = _longest(data)
    content = bytearray(path.read_bytes())
    content[-1] ^= 0x80
    path.write_bytes(content)


def _forget(data: Path) -> None:
    (data / "meta.properties").unlink()
