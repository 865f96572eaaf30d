"""`barnabas serve` as a process: what it prints, how it stops, and what it says when it cannot start."""

from __future__ import annotations

import signal
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.broker.metrics.scraping import scrape
from tests.command_line import TIMEOUT_S, Process, spawn

LISTENERS = "listeners=PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:0"


def refused(*arguments: object) -> str:
    """What it says when it does not start."""
    done = spawn("serve", *arguments)
    assert (done.exit_code, "Traceback" in done.stderr) == (1, False), done.stderr
    return done.stderr


@contextmanager
def running(*arguments: object) -> Iterator[Process]:
    """A node that is ready."""
    with Process("serve", *arguments) as process:
        process.until("reach it with")
        yield process


def test_it_says_what_is_running_and_a_signal_stops_it_cleanly(tmp_path: Path) -> None:
    with running("--override", f"log.dirs={tmp_path}/data", "--override", LISTENERS) as process:
        text = "\n".join(process.lines)
        assert "offsets.topic.replication.factor=1" in text
        assert "node 1 is broker and controller of cluster" in text
        assert f"formatted {tmp_path}/data for a new cluster" in text
        port = int(process.lines[-1].partition("bootstrap.servers=127.0.0.1:")[2].partition(";")[0])
        socket.create_connection(("127.0.0.1", port), timeout=TIMEOUT_S).close()
        done = process.stop()
        assert (done.exit_code, "Traceback" in done.stderr) == (0, False), done.stderr
        assert "stopping" in done.stdout
    with running("--override", f"log.dirs={tmp_path}/data", "--override", LISTENERS) as process:
        assert not any("formatted" in line for line in process.lines)
        assert process.stop(signal.SIGINT).exit_code == 0


def test_a_second_signal_ends_it_at_once(tmp_path: Path) -> None:
    with running("--override", f"log.dirs={tmp_path}", "--override", LISTENERS) as process:
        process.popen.send_signal(signal.SIGTERM)
        while process.popen.poll() is None:
            process.popen.send_signal(signal.SIGTERM)
            time.sleep(0.01)
        assert process.popen.returncode in (0, 1, -signal.SIGTERM)


def test_a_bad_value_is_an_error_that_names_the_key_and_nothing_is_written(tmp_path: Path) -> None:
    properties = tmp_path / "server.properties"
    properties.write_text(
        "process.roles=broker,controller\nnode.id=1\ncontroller.listener.names=CONTROLLER\nnum.partitions=many\n"
        f"controller.quorum.bootstrap.servers=127.0.0.1:9093\nlog.dirs={tmp_path}/data\n{LISTENERS}\n"
    )
    assert "num.partitions" in refused(properties)
    assert not (tmp_path / "data").exists()


def test_an_unknown_key_and_too_many_replicas_are_warnings(tmp_path: Path) -> None:
    properties = tmp_path / "server.properties"
    properties.write_text(
        "process.roles=broker,controller\nnode.id=7\ncontroller.listener.names=CONTROLLER\nno.such.key=1\n"
        f"controller.quorum.bootstrap.servers=127.0.0.1:9093\nlog.dirs={tmp_path}/data\n{LISTENERS}\n"
    )
    with running(properties) as process:
        assert "node 7" in process.lines[0]
        done = process.stop()
    assert done.exit_code == 0
    assert "warning: no.such.key" in done.stderr
    assert "warning: offsets.topic.replication.factor" in done.stderr


def test_a_controller_alone_runs_and_a_broker_alone_says_what_it_needs(tmp_path: Path) -> None:
    alone = ["--override", f"log.dirs={tmp_path}/c", "--override", "process.roles=controller"]
    with Process("serve", *alone, "--override", "listeners=CONTROLLER://127.0.0.1:0") as process:
        process.until("node 1 is controller of cluster")
        process.until("  data  ")
        assert process.stop().exit_code == 0
    broker = ["--override", f"log.dirs={tmp_path}/b", "--override", "process.roles=broker"]
    assert "its controllers are other nodes" in refused(*broker, "--override", "listeners=PLAINTEXT://127.0.0.1:0")
    assert not (tmp_path / "b").exists()


def test_a_port_that_is_taken_is_named(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        listeners = f"listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:0"
        assert f"127.0.0.1:{port}" in refused("--override", f"log.dirs={tmp_path}", "--override", listeners)


@pytest.mark.parametrize("change", ["cluster.id=AAAAAAAAAAAAAAAAAAAAAQ", "node.id=5"])
def test_a_directory_of_another_node_or_cluster_is_refused_and_left_alone(tmp_path: Path, change: str) -> None:
    first, second = tmp_path / "a", tmp_path / "b"
    for directory in (first, second):
        with running("--override", f"log.dirs={directory}", "--override", LISTENERS) as process:
            process.stop()
    key = change.partition("=")[0]
    meta = second / "meta.properties"
    lines = [change if line.startswith(key) else line for line in meta.read_text().splitlines()]
    meta.write_text("\n".join(lines) + "\n")
    (second / ".lock").unlink()
    before = {path: path.read_bytes() for path in second.rglob("*") if path.is_file()}
    assert str(meta) in refused("--override", f"log.dirs={first},{second}", "--override", LISTENERS)
    assert {path: path.read_bytes() for path in second.rglob("*") if path.is_file()} == before


@pytest.mark.parametrize(
    ("protocol", "reason"),
    [
        ("SSL", "ssl.keystore.location: /no/such/file cannot be read: No such file or directory"),
        (
            "SASL_PLAINTEXT",
            "enables the SASL mechanism GSSAPI (Kerberos), the default of Kafka, which is not implemented",
        ),
        ("SASL_SSL", "enables the SASL mechanism GSSAPI (Kerberos), the default of Kafka, which is not implemented"),
    ],
)
def test_a_listener_that_would_be_open_is_refused_in_one_line_and_nothing_is_written(
    tmp_path: Path, protocol: str, reason: str
) -> None:
    properties = tmp_path / "server.properties"
    properties.write_text(
        "process.roles=broker,controller\nnode.id=1\ncontroller.listener.names=CONTROLLER\nssl.client.auth=required\n"
        "controller.quorum.bootstrap.servers=127.0.0.1:9093\nssl.keystore.location=/no/such/file\n"
        f"log.dirs={tmp_path}/data\nlisteners=INSIDE://127.0.0.1:0,CONTROLLER://127.0.0.1:0\n"
        f"inter.broker.listener.name=INSIDE\nlistener.security.protocol.map=INSIDE:{protocol},CONTROLLER:PLAINTEXT\n"
    )
    from_file = refused(properties)
    by_override = refused(
        *("--override", f"log.dirs={tmp_path}/data"),
        *("--override", f"listeners={protocol}://127.0.0.1:0,CONTROLLER://127.0.0.1:0"),
        *("--override", f"security.inter.broker.protocol={protocol}"),
        *("--override", f"listener.security.protocol.map=CONTROLLER:PLAINTEXT,{protocol}:{protocol}"),
        *("--override", "ssl.keystore.location=/no/such/file"),
    )
    for text in (from_file, by_override):
        assert reason in text
        assert text.splitlines()[-1].startswith("Error: "), text
        assert "Traceback" not in text
    assert not (tmp_path / "data").exists()


def test_a_read_only_node_refuses_what_it_would_not_enforce(tmp_path: Path) -> None:
    with running("--override", f"log.dirs={tmp_path}", "--override", LISTENERS) as process:
        process.stop()
    read_only = ("--read-only", tmp_path, "--override")
    tls = ["listeners=SSL://127.0.0.1:0", "--override", "security.inter.broker.protocol=SSL"]
    protocols = "listener.security.protocol.map=SSL:SSL,CONTROLLER:PLAINTEXT"
    assert "has the security protocol SSL" in refused(*read_only, *tls, "--override", protocols)
    authorizer = "authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer"
    assert "ACLs are not enforced" in refused(*read_only, authorizer)


def test_super_users_without_an_authorizer_are_a_warning_whatever_their_text(tmp_path: Path) -> None:
    settings = ("--override", f"log.dirs={tmp_path}", "--override", LISTENERS, "--override", "super.users=nobody")
    with running(*settings) as process:
        done = process.stop()
    assert "warning: super.users has no effect without authorizer.class.name" in done.stderr


def test_metrics_are_served_where_the_option_says_and_the_ready_file_has_their_address(tmp_path: Path) -> None:
    ready = tmp_path / "ready.properties"
    settings = ("--override", f"log.dirs={tmp_path}/data", "--port", 0, "--ready-file", ready)
    with running(*settings, "--metrics", ":0") as process:
        (line,) = (line for line in process.lines if line.startswith("  metrics "))
        url = line.split()[1]
        while not ready.exists():
            time.sleep(0.01)
        assert f"metrics.url={url}\n" in ready.read_text()
        assert scrape(url)("barnabas_ready") == 1
        assert process.stop().exit_code == 0


def test_a_wrong_address_for_metrics_and_metrics_of_a_read_only_node_are_refused(tmp_path: Path) -> None:
    text = refused("--override", f"log.dirs={tmp_path}/data", "--metrics", "9404")
    assert "barnabas.metrics.listener: It must have the form host:port" in text
    done = spawn("serve", "--read-only", tmp_path, "--metrics", ":0")
    assert done.exit_code == 2
    assert "--metrics cannot be used with --read-only" in done.stderr
