"""`barnabas serve --port 0 --ready-file F`, as a program in any language would use it."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient

from barnabas.testing import Broker
from tests.command_line import Process, spawn

TIMEOUT_S = 30


QUIET = ("--log-level", "warning")


@contextmanager
def running(path: Path, *arguments: object) -> Iterator[tuple[Process, dict[str, str]]]:
    with Process("serve", "--ready-file", path, *arguments, *QUIET) as process:
        yield process, process.until_ready(path)


def refused(code: int, *arguments: object) -> str:
    """What it says when it does not start."""
    done = spawn("serve", *arguments, *QUIET)
    assert done.exit_code == code, done.stderr
    return done.stderr


def data_in(directory: Path) -> tuple[str, str]:
    return "--override", f"log.dirs={directory / 'data'}"


def test_the_file_says_where_the_node_is_and_is_there_only_while_it_answers(tmp_path: Path) -> None:
    path = tmp_path / "ready"
    with running(path, "--port", 0, *data_in(tmp_path)) as (process, ready):
        found = AdminClient({"bootstrap.servers": ready["bootstrap.servers"]}).list_topics(timeout=TIMEOUT_S)
        assert found.cluster_id == ready["cluster.id"]
        assert list(found.brokers) == [int(ready["node.id"])]
        assert ready["listeners"].startswith(f"PLAINTEXT://{ready['bootstrap.servers']},CONTROLLER://127.0.0.1:")
        os.kill(int(ready["pid"]), signal.SIGTERM)
        done = process.ended()
        assert (done.exit_code, done.stderr) == (0, "")
    assert [each.name for each in tmp_path.iterdir()] == ["data"]


def test_several_do_not_meet(tmp_path: Path) -> None:
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
    with (
        running(tmp_path / "1", "--port", 0, *data_in(tmp_path / "first")) as (_, one),
        running(tmp_path / "2", "--port", 0, *data_in(tmp_path / "second")) as (_, two),
    ):
        assert one["cluster.id"] != two["cluster.id"]


def test_what_a_killed_node_left_is_replaced_by_the_next_one(tmp_path: Path) -> None:
    path = tmp_path / "ready"
    with running(path, "--port", 0, *data_in(tmp_path)) as (process, killed):
        process.stop(signal.SIGKILL)
    assert path.exists()
    with running(path, "--port", 0, *data_in(tmp_path)) as (next_process, found):
        ready = found
        while ready["pid"] == killed["pid"]:
            ready = next_process.until_ready(path)
        assert ready["pid"] == str(next_process.popen.pid)
        assert ready["cluster.id"] == killed["cluster.id"]


def test_a_node_that_does_not_start_leaves_no_file(tmp_path: Path) -> None:
    path = tmp_path / "ready"
    path.write_text("of an earlier one")
    with Broker() as other:
        said = refused(1, "--ready-file", path, "--port", other.port, *data_in(tmp_path))
        assert f"cannot listen on {other.bootstrap_servers}" in said
    assert not path.exists()


def test_a_place_where_no_file_can_be_is_an_error_before_anything_starts(tmp_path: Path) -> None:
    said = refused(2, "--ready-file", tmp_path / "nowhere" / "ready", "--port", 0, *data_in(tmp_path))
    assert "--ready-file" in said and "nowhere" in said
    assert not (tmp_path / "data").exists()


def test_the_port_wins_over_that_of_a_file_and_is_told(tmp_path: Path) -> None:
    settings = tmp_path / "server.properties"
    settings.write_text(
        "process.roles=broker,controller\nnode.id=7\ncontroller.listener.names=CONTROLLER\n"
        "controller.quorum.bootstrap.servers=127.0.0.1:9093\noffsets.topic.replication.factor=1\n"
        "transaction.state.log.replication.factor=1\ntransaction.state.log.min.isr=1\n"
        "share.coordinator.state.topic.replication.factor=1\nshare.coordinator.state.topic.min.isr=1\n"
        f"listeners=CONTROLLER://127.0.0.1:0,PLAINTEXT://127.0.0.1:9092\nlog.dirs={tmp_path}/data\n"
        "advertised.listeners=PLAINTEXT://localhost:9092\n"
    )
    with running(tmp_path / "ready", settings, "--port", 0) as (_, ready):
        host, _, port = ready["bootstrap.servers"].rpartition(":")
        assert (host, ready["node.id"]) == ("127.0.0.1", "7")
        found = AdminClient({"bootstrap.servers": ready["bootstrap.servers"]}).list_topics(timeout=TIMEOUT_S)
        assert f"{found.brokers[7].host}:{found.brokers[7].port}" == f"localhost:{port}"


def test_a_directory_that_is_only_shown_has_one_as_well(tmp_path: Path) -> None:
    with Broker(["orders"], data_dir=tmp_path / "kept") as broker:
        cluster_id = broker.cluster_id
    with running(tmp_path / "ready", "--port", 0, "--read-only", tmp_path / "kept") as (_, ready):
        assert ready["cluster.id"] == cluster_id
        found = AdminClient({"bootstrap.servers": ready["bootstrap.servers"]}).list_topics(timeout=TIMEOUT_S)
        assert list(found.topics) == ["orders"]


def test_a_controller_alone_has_nothing_for_clients(tmp_path: Path) -> None:
    alone = ("--override", "process.roles=controller", "--override", "listeners=CONTROLLER://127.0.0.1:0")
    with running(tmp_path / "ready", *alone, *data_in(tmp_path)) as (_, ready):
        assert "bootstrap.servers" not in ready
        assert ready["listeners"].startswith("CONTROLLER://127.0.0.1:")
    assert "listeners" in refused(1, "--port", 0, *alone, *data_in(tmp_path))


@pytest.mark.parametrize("port", [-1, 65536, "x"])
def test_a_port_that_is_none_is_refused(port: object) -> None:
    assert "--port" in refused(2, "--port", port)
