"""`barnabas serve` as a process: what it prints, how it stops, and what it says when it cannot start."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

TIMEOUT_S = 60
LISTENERS = "listeners=PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:0"


def serve(*arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "barnabas", "serve", *arguments]
    env = {**os.environ, "PYTHONUNBUFFERED": "1"}
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env)


def ended(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    out, err = process.communicate(timeout=TIMEOUT_S)
    return process.returncode, out, err


@contextmanager
def running(*arguments: str) -> Iterator[tuple[subprocess.Popen[str], list[str]]]:
    """A node, and the lines that it printed until it was ready."""
    process = serve(*arguments)
    lines: list[str] = []
    try:
        assert process.stdout is not None
        while not lines or not lines[-1].startswith("reach it with"):
            line = process.stdout.readline()
            assert line, process.communicate(timeout=TIMEOUT_S)[1]
            lines.append(line.rstrip())
        yield process, lines
    finally:
        process.kill()
        process.communicate()


def test_it_says_what_is_running_and_a_signal_stops_it_cleanly(tmp_path: Path) -> None:
    with running("--override", f"log.dirs={tmp_path}/data", "--override", LISTENERS) as (process, lines):
        text = "\n".join(lines)
        assert "offsets.topic.replication.factor=1" in text
        assert "node 1 is broker and controller of cluster" in text
        assert f"formatted {tmp_path}/data for a new cluster" in text
        port = int(lines[-1].partition("bootstrap.servers=127.0.0.1:")[2].partition(";")[0])
        socket.create_connection(("127.0.0.1", port), timeout=TIMEOUT_S).close()
        process.send_signal(signal.SIGTERM)
        code, out, err = ended(process)
        assert (code, "Traceback" in err) == (0, False), err
        assert "stopping" in out
    with running("--override", f"log.dirs={tmp_path}/data", "--override", LISTENERS) as (process, lines):
        assert not any("formatted" in line for line in lines)
        process.send_signal(signal.SIGINT)
        assert ended(process)[0] == 0


def test_a_second_signal_ends_it_at_once(tmp_path: Path) -> None:
    with running("--override", f"log.dirs={tmp_path}", "--override", LISTENERS) as (process, _):
        process.send_signal(signal.SIGTERM)
        while process.poll() is None:
            process.send_signal(signal.SIGTERM)
            time.sleep(0.01)
        assert process.returncode in (0, 1, -signal.SIGTERM)


def test_a_bad_value_is_an_error_that_names_the_key_and_nothing_is_written(tmp_path: Path) -> None:
    properties = tmp_path / "server.properties"
    properties.write_text(
        "process.roles=broker,controller\nnode.id=1\ncontroller.listener.names=CONTROLLER\nnum.partitions=many\n"
        f"controller.quorum.bootstrap.servers=127.0.0.1:9093\nlog.dirs={tmp_path}/data\n{LISTENERS}\n"
    )
    code, _, err = ended(serve(str(properties)))
    assert code == 1
    assert "num.partitions" in err
    assert "Traceback" not in err
    assert not (tmp_path / "data").exists()


def test_an_unknown_key_and_too_many_replicas_are_warnings(tmp_path: Path) -> None:
    properties = tmp_path / "server.properties"
    properties.write_text(
        "process.roles=broker,controller\nnode.id=7\ncontroller.listener.names=CONTROLLER\nno.such.key=1\n"
        f"controller.quorum.bootstrap.servers=127.0.0.1:9093\nlog.dirs={tmp_path}/data\n{LISTENERS}\n"
    )
    with running(str(properties)) as (process, lines):
        assert "node 7" in lines[0]
        process.send_signal(signal.SIGTERM)
        code, _, err = ended(process)
    assert code == 0
    assert "warning: no.such.key" in err
    assert "warning: offsets.topic.replication.factor" in err


def test_a_controller_alone_runs_and_a_broker_alone_says_what_it_needs(tmp_path: Path) -> None:
    alone = ["--override", f"log.dirs={tmp_path}/c", "--override", "process.roles=controller"]
    process = serve(*alone, "--override", "listeners=CONTROLLER://127.0.0.1:0")
    assert process.stdout is not None
    lines = [process.stdout.readline() for _ in range(5)]
    process.send_signal(signal.SIGTERM)
    code, _, err = ended(process)
    assert code == 0, err
    assert any("node 1 is controller of cluster" in line for line in lines)
    broker = ["--override", f"log.dirs={tmp_path}/b", "--override", "process.roles=broker"]
    code, _, err = ended(serve(*broker, "--override", "listeners=PLAINTEXT://127.0.0.1:0"))
    assert code == 1
    assert "process.roles=broker,controller" in err
    assert not (tmp_path / "b").exists()


def test_a_port_that_is_taken_is_named(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        listeners = f"listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:0"
        code, _, err = ended(serve("--override", f"log.dirs={tmp_path}", "--override", listeners))
    assert code == 1
    assert f"127.0.0.1:{port}" in err
    assert "Traceback" not in err


@pytest.mark.parametrize("change", ["cluster.id=AAAAAAAAAAAAAAAAAAAAAQ", "node.id=5"])
def test_a_directory_of_another_node_or_cluster_is_refused_and_left_alone(tmp_path: Path, change: str) -> None:
    first, second = tmp_path / "a", tmp_path / "b"
    for directory in (first, second):
        with running("--override", f"log.dirs={directory}", "--override", LISTENERS) as (process, _):
            process.send_signal(signal.SIGTERM)
            ended(process)
    key = change.partition("=")[0]
    meta = second / "meta.properties"
    lines = [change if line.startswith(key) else line for line in meta.read_text().splitlines()]
    meta.write_text("\n".join(lines) + "\n")
    (second / ".lock").unlink()
    before = {path: path.read_bytes() for path in second.rglob("*") if path.is_file()}
    code, _, err = ended(serve("--override", f"log.dirs={first},{second}", "--override", LISTENERS))
    assert code == 1
    assert str(meta) in err
    assert {path: path.read_bytes() for path in second.rglob("*") if path.is_file()} == before
