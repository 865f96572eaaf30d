"""`barnabas doctor` against nodes, directories and files: what it finds, shows and returns."""

from __future__ import annotations

import asyncio
import shutil
import signal
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from barnabas.client import Admin, NewTopic, Producer
from barnabas.client.records import TopicPartition
from barnabas.config.internal_topics import GROUP_METADATA_TOPIC
from barnabas.testing import AsyncBroker, Broker
from tests.client.admin.absent_brokers import with_absent_brokers
from tests.client.admin.guarded import guarded_broker
from tests.command_line import Command, Done, Process, invoke, spawn
from tests.documents import ROOT

doctor = Command("doctor")
SKIP = ("--skip", "disk-space", "--skip", "disks")  # the disks of the machine that runs the tests


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker({"kept": 2}) as broker:
        yield broker


def found_by(done: Done) -> dict[str, dict[str, Any]]:
    return {row["check"]: row for row in done.json}


def run(coroutine: Any) -> Any:
    return asyncio.run(coroutine)


# --- clusters


def test_a_healthy_node_is_silent(broker: Broker) -> None:
    done = doctor(broker, *SKIP, code=0)
    assert (done.stdout, done.stderr) == ("", "nothing found, 17 checks made\n")
    assert doctor(broker, *SKIP, "-o", "json", code=0).json == []


def test_a_topic_that_refuses_every_write_is_an_error_with_exit_code_2() -> None:
    async def break_it(address: str) -> None:
        settings = {"bootstrap.servers": address}
        async with Admin(settings) as admin, Producer(settings) as producer:
            await admin.create_topics([NewTopic("strict", 1, 1, configs={"min.insync.replicas": "2"})])
            await admin.create_topics([NewTopic("orders", 1, 1)])
            await producer.send("orders", b"one")
            await producer.flush()
            await admin.alter_consumer_group_offsets("app", {TopicPartition("orders", 0): 0})
            await admin.alter_consumer_group_offsets("ahead", {TopicPartition("orders", 0): 7})

    with Broker() as node:
        run(break_it(node.bootstrap_servers))
        node_address = ("-b", node.bootstrap_servers)
        invoke("configs", "set", GROUP_METADATA_TOPIC, "cleanup.policy=delete", "--yes", *node_address, code=0)
        table = doctor(node, *SKIP, code=2)
        rows = doctor(node, *SKIP, "-o", "json", code=2).json
        assert doctor(node, "--only", "groups", code=0).stdout.count("group ") == 2
        assert doctor(node, "--only", "groups", "--fail-on", "warning", code=2).stdout.startswith(
            "warning  group ahead"
        )
    severities = [row["severity"] for row in rows]
    assert severities == sorted(severities, key=["error", "warning", "note"].index)
    found = {(row["check"], row["severity"], row["subject"]) for row in rows}
    assert {
        ("replication", "error", "topic strict"),
        ("partitions", "error", "topic strict"),
        ("topic-settings", "error", f"topic {GROUP_METADATA_TOPIC}"),
        ("groups", "note", "group app"),
        ("groups", "warning", "group ahead"),
    } <= found
    assert table.stdout.startswith("error    topic ")
    assert "\n         try: barnabas " in table.stdout
    assert "; 17 checks made" in table.stderr


def test_an_advertised_listener_that_cannot_be_reached_is_the_finding() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        told = f"127.0.0.1:{unused.getsockname()[1]}"
        with Broker(config={"advertised.listeners": f"PLAINTEXT://{told}"}) as node:
            address = node.listeners["PLAINTEXT"]
            rows = found_by(doctor(address, "-o", "json", code=2))
    assert rows["reachable"]["severity"] == "error"
    assert f"it tells clients to connect to {told}, and that fails from here" in rows["reachable"]["message"]
    assert "no broker can be reached" in rows["unanswered"]["message"]


def test_brokers_that_do_not_answer_and_topics_with_one_replica_are_found() -> None:
    with with_absent_brokers({1: None, 2: None, 3: None}, refusing=(3,)) as node:
        run(_create(node.bootstrap_servers, "single"))
        rows = doctor(node, *SKIP, "-o", "json", code=2).json
    found = {(row["check"], row["subject"]) for row in rows}
    assert ("reachable", "broker 3") in found
    assert ("replication", "1 topic") in found


async def _create(address: str, topic: str) -> None:
    async with Admin({"bootstrap.servers": address}) as admin:
        await admin.create_topics([NewTopic(topic, 1, 1)])


def test_what_may_not_be_seen_is_said_to_be_unchecked() -> None:
    with guarded_broker() as node:
        rows = found_by(doctor(node, "-o", "json", code=0))
    assert rows["unanswered"]["severity"] == "note"
    assert "CLUSTER_AUTHORIZATION_FAILED" in rows["unanswered"]["message"]


def test_a_controller_is_refused_with_advice(broker: Broker) -> None:
    done = invoke("doctor", "--bootstrap-controller", broker.listeners["CONTROLLER"], code=1)
    assert "Try: use --bootstrap-server" in done.stderr


# --- directories and files


def settings_of(path: Path, data: Path, **more: str) -> Path:
    lines = {
        "node.id": "1",
        "process.roles": "broker,controller",
        "listeners": "PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:0",
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.bootstrap.servers": "127.0.0.1:0",
        "log.dirs": str(data),
        "offsets.topic.replication.factor": "1",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
        "share.coordinator.state.topic.replication.factor": "1",
        "share.coordinator.state.topic.min.isr": "1",
        **{name.replace("_", "."): value for name, value in more.items()},
    }
    path.write_text("".join(f"{name}={value}\n" for name, value in lines.items()))
    return path


@pytest.fixture
def data(tmp_path: Path) -> Path:
    async def fill() -> None:
        node = AsyncBroker({"orders": 1}, data_dir=tmp_path / "data")
        async with node, Producer({"bootstrap.servers": node.bootstrap_servers}) as producer:
            await producer.send("orders", b"one")
            await producer.flush()

    run(fill())
    return tmp_path / "data"


def test_a_file_is_checked_together_with_its_log_dirs(data: Path, tmp_path: Path) -> None:
    file = settings_of(tmp_path / "server.properties", data)
    skip = (*SKIP, "--skip", "log-dirs")  # the directory of a test is under /tmp
    done = invoke("doctor", file, *skip, code=0)
    assert done.stderr == "nothing found, 30 checks made\n"
    (data / "orders-0/00000000000000000000.log").write_bytes(b"")
    done = invoke("doctor", file, *skip, code=2)
    assert "[log-ends]" in done.stdout
    assert "before the recovery point 1 of the clean shutdown: records are lost" in done.stdout


def test_what_doctor_refuses_serve_refuses_in_the_same_words(data: Path, tmp_path: Path) -> None:
    file = settings_of(tmp_path / "server.properties", data, node_id="7")
    (row,) = invoke("doctor", file, "--only", "formatted", "-o", "json", code=2).json
    started = spawn("serve", file)
    assert started.exit_code == 1
    assert f"Error: {row['message']}: {row['remedy']}\n" in started.stderr


def test_a_directory_of_a_running_node_is_a_note_from_another_process(broker: Broker) -> None:
    done = spawn("doctor", broker.data_dir, *SKIP)
    assert done.exit_code == 0, done.output
    assert "is using it" in done.stdout


def test_several_things_are_checked_at_once(broker: Broker, data: Path) -> None:
    shutil.copytree(data / "orders-0", data / "gone-0")
    rows = doctor(broker, data, *SKIP, "-o", "jsonl", code=0).stdout.splitlines()
    assert any("the cluster has no gone-0" in row for row in rows)
    done = doctor(broker, data, *SKIP, code=0)
    assert done.stderr == "1 warning; 31 checks made\n"


def test_findings_are_shown_before_a_cluster_that_cannot_be_reached(data: Path) -> None:
    (data / "meta.properties").unlink()
    done = invoke("doctor", data, "-b", "127.0.0.1:1", "-X", "bootstrap.timeout.ms=300", code=1)
    assert "has no meta.properties, but it has" in done.stdout
    assert "Error: 127.0.0.1:1" in done.stderr


def test_a_path_alone_asks_no_cluster(data: Path) -> None:
    assert invoke("doctor", data, *SKIP, env={"BARNABAS_BOOTSTRAP_SERVER": "127.0.0.1:1"}, code=0).stdout == ""


def test_the_directory_of_a_partition_is_refused_with_advice(data: Path) -> None:
    done = invoke("doctor", data / "orders-0", code=1)
    assert "this is the log of one partition" in done.stderr
    assert f"Try: barnabas doctor {data}" in done.stderr


def test_a_file_that_is_no_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    done = invoke("doctor", tmp_path / "binary", code=1)
    assert "this is not a server.properties" in done.stderr


# --- options


def test_the_checks_are_listed() -> None:
    rows = invoke("doctor", "--list", "-o", "json", code=0).json
    names = [row["check"] for row in rows]
    assert len(set(names)) == len(names) == 50
    assert {row["of"] for row in rows} == {"settings", "log dirs", "cluster"}


def test_a_misspelt_check_is_wrong_usage_with_a_hint() -> None:
    done = invoke("doctor", "--only", "quorm", code=1)
    assert "there is no check 'quorm'; did you mean quorum?; --list shows all" in done.stderr


def test_a_path_that_does_not_exist_is_wrong_usage() -> None:
    assert "does not exist" in invoke("doctor", "/no/such/path", code=1).stderr


def test_ctrl_c_ends_it(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        with Process("doctor", "-b", f"127.0.0.1:{port}", "-X", "bootstrap.timeout.ms=60000") as process:
            peer, _ = silent.accept()
            done = process.stop(signal.SIGINT)
            peer.close()
    assert done.exit_code == 1
    assert "Traceback" not in done.output


def test_the_page_lists_every_check() -> None:
    page = (ROOT / "docs" / "doctor.md").read_text()
    rows = invoke("doctor", "--list", "-o", "json", code=0).json
    assert [row for row in rows if f"| `{row['check']}` | {row['finds']} |" not in page] == []
