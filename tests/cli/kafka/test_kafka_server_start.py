"""`kafka-server-start` runs a node with a file of Kafka, in the foreground or as a daemon."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest
from tools.apache_kafka import free_ports

from tests.command_line import Process, environment, invoke, program

USAGE = "USAGE: kafka-server-start [-daemon] server.properties [--override property=value]*\n"


@pytest.fixture
def server_properties(tmp_path: Path) -> Path:
    broker, controller = free_ports(2)
    path = tmp_path / "server.properties"
    path.write_text(
        "process.roles=broker,controller\nnode.id=1\ncontroller.listener.names=CONTROLLER\n"
        f"listeners=PLAINTEXT://127.0.0.1:{broker},CONTROLLER://127.0.0.1:{controller}\n"
        f"controller.quorum.bootstrap.servers=127.0.0.1:{controller}\nlog.dirs={tmp_path / 'data'}\n"
        "offsets.topic.replication.factor=1\n"
    )
    return path


def server_of(path: Path) -> str:
    return path.read_text().partition("PLAINTEXT://")[2].partition(",")[0]


def wait_until_it_answers(server: str) -> None:
    deadline_s = time.monotonic() + 60
    while invoke("kafka-topics", "--bootstrap-server", server, "--list").exit_code:
        assert time.monotonic() < deadline_s, "the node does not answer"


def test_a_node_runs_until_it_is_terminated(server_properties: Path) -> None:
    with Process("kafka-server-start", server_properties, "--override", "num.partitions=7", merged=True) as process:
        server = server_of(server_properties)
        wait_until_it_answers(server)
        invoke("kafka-topics", "--bootstrap-server", server, "--create", "--topic", "wide", code=0)
        described = invoke("kafka-topics", "--bootstrap-server", server, "--describe", "--topic", "wide", code=0)
        assert "PartitionCount: 7" in described.stdout
        assert process.stop(signal.SIGTERM).exit_code == 0


def test_a_daemon_outlives_the_command_and_logs_to_a_file(server_properties: Path, tmp_path: Path) -> None:
    env = environment({"LOG_DIR": str(tmp_path / "logs")})
    command = program("kafka-server-start", "-daemon", server_properties)
    subprocess.run(command, env=env, cwd=tmp_path, check=True, timeout=30)
    try:
        wait_until_it_answers(server_of(server_properties))
        assert (tmp_path / "logs" / "kafkaServer.out").read_text() != ""
    finally:
        pids = [int(each.name) for each in Path("/proc").iterdir() if each.name.isdigit() and runs(each, tmp_path)]
        for pid in pids:
            os.kill(pid, signal.SIGTERM)
        assert len(pids) == 1


def runs(process: Path, directory: Path) -> bool:
    """Whether this process runs a node with a file of this directory."""
    try:
        words = (process / "cmdline").read_bytes().split(b"\0")
    except OSError:
        return False
    return b"serve" in words and any(word.startswith(bytes(directory)) for word in words)


def test_wrong_usage_is_answered_with_the_usage_of_the_script() -> None:
    assert invoke("kafka-server-start", code=1).stderr == USAGE
    assert invoke("kafka-server-start", "a.properties", "--nonsense", code=1).stderr.endswith(USAGE)
    missing = invoke("kafka-server-start", "/nowhere/server.properties", code=1)
    assert "/nowhere/server.properties: no such file" in missing.stderr
