"""`barnabas cluster up --apache`: nodes of both programs, and the commands on either kind of node."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tools.apache_kafka import VERSION, write_home

from barnabas.operations.local_cluster import processes
from barnabas.operations.local_cluster.directory import read
from tests.cli.node.local_clusters import ended_afterwards, rows
from tests.command_line import invoke, spawn
from tests.interop.conftest import jars

pytestmark = pytest.mark.interop


@pytest.fixture
def directory(tmp_path: Path) -> Iterator[Path]:
    yield from ended_afterwards(tmp_path / "cluster")


def test_a_mixed_cluster_is_started_killed_enlarged_and_stopped(tmp_path: Path, directory: Path) -> None:
    jars(VERSION)
    where = ("--dir", directory)
    home = write_home(tmp_path / "kafka")
    up = spawn("cluster", "up", "--nodes", 2, "--apache", 1, "--kafka-home", home, "--detach", *where)
    assert up.exit_code == 0, up.stderr
    local = read(directory)
    assert local is not None
    assert [node.is_apache for node in local.nodes.values()] == [False, True]
    assert [row["state"] for row in rows(directory).values()] == ["running"] * 2
    servers = ("-b", local.bootstrap_servers)
    invoke("topics", "create", "both", "--partitions", 2, "--replication-factor", 2, *servers, code=0)
    invoke("cluster", "kill", 2, *where, code=0)
    assert rows(directory)[2]["state"] != "running"
    assert spawn("cluster", "start", 2, *where).exit_code == 0
    added = spawn("cluster", "add", "--apache", *where)
    assert added.exit_code == 0, added.stderr
    assert {node: row["state"] for node, row in rows(directory).items()} == dict.fromkeys((1, 2, 3), "running")
    assert "both" in invoke("topics", "list", *servers, code=0).stdout
    stopped = spawn(
        "cluster", "stop", *where
    )  # nodes 2 and 3 ask a controller for their shutdown, and none has to be killed
    assert (stopped.exit_code, "killed" in stopped.stderr + stopped.stdout) == (0, False), stopped
    assert [processes.pid_of(local, node) for node in local.nodes] == [None] * 2
