"""`barnabas cluster up` and its companions: a real cluster on this machine, one process per node."""

from __future__ import annotations

import contextlib
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas.operations.local_cluster import processes
from barnabas.operations.local_cluster.directory import read
from barnabas.operations.local_cluster.layout import nodes_of
from tests.cli.node.local_clusters import ended_afterwards, rows
from tests.command_line import Process, invoke, spawn


@pytest.fixture
def directory(tmp_path: Path) -> Iterator[Path]:
    yield from ended_afterwards(tmp_path / "cluster")


def test_a_cluster_of_processes_lives_through_kills_pauses_additions_and_a_restart(directory: Path) -> None:
    where = ("--dir", directory)
    quick = ("--override", "broker.session.timeout.ms=3000", "--override", "broker.heartbeat.interval.ms=500")
    assert spawn("cluster", "up", "--nodes", 3, "--racks", "a,b", *quick, "--detach", *where).exit_code == 0
    local = read(directory)
    assert local is not None
    before = rows(directory)
    assert [row["state"] for row in before.values()] == ["running"] * 3
    assert sorted(row["quorum"] for row in before.values()) == ["leader", "voter", "voter"]
    assert [row["rack"] for row in before.values()] == ["a", "b", "a"]
    servers = ("-b", local.bootstrap_servers)
    invoke("topics", "create", "kept", "--partitions", 3, "--replication-factor", 1, *servers, code=0)

    leader = next(node for node, row in before.items() if row["quorum"] == "leader")
    assert f"process {before[leader]['pid']}: killed" in invoke("cluster", "kill", leader, *where, code=0).stdout
    assert "is not running" in invoke("cluster", "kill", leader, *where, code=1).stderr
    invoke("topics", "create", "made-without-it", *servers, code=0)
    assert spawn("cluster", "start", leader, *where).exit_code == 0
    assert "already running" in invoke("cluster", "start", leader, *where, code=1).stderr
    voter = next(node for node, row in rows(directory).items() if row["quorum"] == "voter")
    invoke("cluster", "pause", voter, *where, code=0)
    for _ in range(3):  # whichever node is asked first
        paused = rows(directory)
        assert paused[voter]["state"] == "paused"
        assert "leader" in [row.get("quorum") for row in paused.values()], "the others do not say how the cluster is"
    invoke("cluster", "resume", voter, *where, code=0)
    assert spawn("cluster", "add", *where).exit_code == 0
    assert "has a node 4 already" in invoke("cluster", "add", 4, *where, code=1).stderr
    added = rows(directory)[4]
    assert (added["roles"], added["state"], added["quorum"]) == ("broker", "running", "observer")

    invoke("cluster", "stop", *where, code=0)
    logs = [local.log_file(node).read_text() for node in local.nodes]
    assert all("without its consent" not in each and "stopping" in each for each in logs)
    assert "there is a cluster" in invoke("cluster", "up", "--nodes", 2, *where, code=1).stderr
    with Process("cluster", "up", *where, merged=True) as up:
        up.until("reach it with")
        assert [row["state"] for row in rows(directory).values()] == ["running"] * 4
        assert "made-without-it" in invoke("topics", "list", *servers, code=0).stdout
        assert up.stop().exit_code == 0
    assert [processes.pid_of(local, node) for node in local.nodes] == [None] * 3


def test_a_directory_that_moved_is_followed_and_a_removed_broker_is_gone(directory: Path, tmp_path: Path) -> None:
    where = ("--dir", directory)
    made = spawn(
        "cluster", "up", "--nodes", 1, "--controllers", 1, "--override", "no.such.setting=1", "--detach", *where
    )
    assert (made.exit_code, "no.such.setting is not a known config" in made.stderr) == (0, True), made.output
    local = read(directory)
    assert local is not None
    servers = ("-b", local.bootstrap_servers)
    invoke("topics", "create", "kept", *servers, code=0)
    assert spawn("cluster", "add", *where).exit_code == 0

    invoke("cluster", "kill", 101, *where, code=0)
    asked = invoke("cluster", "status", *where, "-o", "json", code=0)
    assert [(row["state"], row["replicas"]) for row in asked.json] == [("running", 1), ("stopped", 0), ("running", 0)]
    assert "1 partitions, 0 under-replicated" in asked.stderr and "no controller is active" in asked.stderr
    assert spawn("cluster", "start", 101, *where).exit_code == 0

    assert "node 2 is running" in invoke("cluster", "remove", 2, *where, code=1).stderr
    assert "has no node 9" in invoke("cluster", "remove", 9, *where, code=1).stderr
    invoke("cluster", "stop", *where, code=0)
    assert "pass --yes" in invoke("cluster", "remove", 2, *where, code=1).stderr
    assert "only brokers can be removed" in invoke("cluster", "remove", 101, "--yes", *where, code=1).stderr
    assert invoke("cluster", "remove", 2, "--yes", *where, code=0).stdout == "node 2: removed\n"
    assert not (directory / "node-2").exists()

    moved = directory.rename(tmp_path / "moved")
    with Process("cluster", "up", "--dir", moved, merged=True) as up:
        up.until("reach it with")
        assert {node: row["state"] for node, row in rows(moved).items()} == {1: "running", 101: "running"}
        assert "kept" in invoke("topics", "list", *servers, code=0).stdout
        assert up.stop().exit_code == 0
    assert not directory.exists()
    properties = moved / "node-1" / "server.properties"
    properties.write_text(properties.read_text().replace(f"{moved}/node-1/data", "/elsewhere"))
    refused = invoke("cluster", "start", 1, "--dir", moved, code=1).stderr
    assert f"log.dirs is /elsewhere, and must have {moved}/node-1/data" in refused


@pytest.mark.skipif(not Path("/proc").exists(), reason="needs the command lines of processes")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_start_leaves_no_process(directory: Path, number: signal.Signals) -> None:
    with Process("cluster", "up", "--dir", directory, merged=True) as up:
        while not (directory / "node-1" / "node.log").exists():  # from here on, nodes are started
            assert up.popen.poll() is None
            time.sleep(0.01)
        assert up.stop(number).exit_code == 1
    assert not commands_with(str(directory))


def commands_with(text: str) -> list[str]:
    """The command lines of running processes that have this text."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            found.append(path.read_text())
    return [each for each in found if text in each]


def test_what_cannot_be_is_refused_before_anything_is_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert "is not empty" in invoke("cluster", "up", "--dir", tmp_path, code=1).stderr
    new = tmp_path / "new"
    assert "--override" in invoke("cluster", "up", "--dir", new, "--override", "num.partitions=x", code=1).stderr
    assert "there is no cluster" in invoke("cluster", "status", "--dir", new, code=1).stderr
    assert not new.exists()


def test_apache_kafka_is_refused_where_it_cannot_be_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    new = tmp_path / "new"
    monkeypatch.delenv("KAFKA_HOME", raising=False)
    up = ("cluster", "up", "--dir", new)
    assert "Apache Kafka was not found" in invoke(*up, "--apache", 1, code=1).stderr
    assert "not a distribution" in invoke(*up, "--apache", 1, "--kafka-home", tmp_path, code=1).stderr
    monkeypatch.setenv("KAFKA_HOME", str(tmp_path))
    assert "not a distribution" in invoke(*up, "--apache", 1, code=1).stderr
    assert "4 of 3 brokers" in invoke(*up, "--apache", 4, code=2).stderr
    assert "only be used with --apache" in invoke(*up, "--kafka-home", tmp_path, code=2).stderr
    assert not new.exists()


def test_the_last_brokers_run_apache_kafka() -> None:
    made = nodes_of(3, apache=2)
    assert [(each.node_id, each.is_apache) for each in made] == [(1, False), (2, True), (3, True)]
    assert not any(each.is_apache for each in nodes_of(3, 3) if each.is_controller)
    with pytest.raises(ValueError, match="4 of 3"):
        nodes_of(3, apache=4)
