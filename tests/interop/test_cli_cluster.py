"""Cluster, quorum, features, raw requests and live metadata of Apache Kafka; and the scripts of these names beside its own."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from tools.apache_kafka import HOST, OLD_VERSION, VERSION, ApacheKafka, free_ports, new_cluster_id, run_tool

from barnabas.wire.primitives import Uuid
from tests.command_line import Done, invoke
from tests.interop.conftest import jars

pytestmark = pytest.mark.interop

# So that the metadata log does not go back to its beginning.
SNAPSHOTS = {"metadata.log.max.record.bytes.between.snapshots": "3000"}
TOPICS = [f"t{number:02d}" for number in range(30)]


@pytest.fixture(scope="module")
def node() -> Iterator[ApacheKafka]:
    jars(VERSION)
    with ApacheKafka(SNAPSHOTS) as started:
        yield started


@pytest.fixture(scope="module")
def old_node() -> Iterator[ApacheKafka]:
    jars(OLD_VERSION)
    with ApacheKafka(SNAPSHOTS, version=OLD_VERSION) as started:
        yield started


@pytest.fixture(params=["node", "old_node"])
def any_node(request: pytest.FixtureRequest) -> ApacheKafka:
    found: ApacheKafka = request.getfixturevalue(request.param)
    return found


barnabas = invoke


def document(*arguments: str) -> dict[str, Any]:
    result = barnabas(*arguments, "-o", "json")
    assert result.exit_code in (0, 2), result.output
    found: dict[str, Any] = json.loads(result.stdout)
    return found


# --- commands


def test_the_cluster_is_described_through_brokers_and_controllers(any_node: ApacheKafka) -> None:
    found = document("cluster", "describe", "-b", any_node.bootstrap, "--authorized-operations")
    assert found["clusterId"] == any_node.cluster_id
    assert "ALTER" in str(found["authorizedOperations"])
    row = {"id": 1, "host": HOST, "port": any_node.address[1], "rack": None, "isFenced": False}
    assert found["brokers"] == [row]
    assert found["controllerId"] == 1
    through = document("cluster", "describe", "--bootstrap-controller", any_node.controller)
    port = int(any_node.controller.rpartition(":")[2])
    assert through["controllers"] == [{"id": 1, "host": HOST, "port": port, "isActive": True}]


def test_features_are_shown_lowered_and_raised(any_node: ApacheKafka) -> None:
    server = ("-b", any_node.bootstrap)
    rows = {row["feature"]: row for row in json.loads(barnabas("cluster", "features", *server, "-o", "json").stdout)}
    version = {VERSION: "4.3-IV0", OLD_VERSION: "3.9-IV0"}[any_node.version]
    assert rows["metadata.version"]["metadataVersion"] == version
    refused = barnabas("cluster", "upgrade", "metadata.version=99", "--dry-run", *server)
    assert (refused.exit_code, "INVALID_UPDATE_VERSION" in refused.stdout) == (1, True)
    if any_node.version == VERSION:
        assert barnabas("cluster", "downgrade", "group.version=0", "--yes", *server).exit_code == 0
        assert barnabas("cluster", "upgrade", "--release-version", "4.3", "--yes", *server).exit_code == 0
    assert barnabas("cluster", "unregister", "77", "--yes", *server).exit_code == 1


def test_the_quorum_of_one_is_healthy_and_cannot_lose_anyone(any_node: ApacheKafka) -> None:
    for where in (("-b", any_node.bootstrap), ("--bootstrap-controller", any_node.controller)):
        found = document("quorum", "status", *where)
        assert found["verdict"] == {"healthy": True, "canLose": 0, "problems": []}
        assert [row["endpoints"] for row in found["replicas"]] == [[f"CONTROLLER://{any_node.controller}"]]
        assert barnabas("quorum", "status", "--can-lose", "1", *where).exit_code == 2


def test_the_only_broker_cannot_be_stopped_when_it_has_partitions(any_node: ApacheKafka) -> None:
    any_node.tool("kafka-topics", "--create", "--topic", "kept", "--partitions", "2")
    result = barnabas("cluster", "safe-to-stop", "1", "-b", any_node.bootstrap, "-o", "json")
    assert result.exit_code == 2
    effects = {(row["topic"], row["effect"]) for row in json.loads(result.stdout)}
    assert effects >= {("kept", "offline"), ("__cluster_metadata", "quorumLost")}


def test_a_raw_request_is_answered_in_the_chosen_version(any_node: ApacheKafka) -> None:
    body = '{"topics": [{"topicName": "__cluster_metadata", "partitions": [{"partitionIndex": 0}]}]}'
    for version in (0, 1, 2):
        result = barnabas("raw", "DescribeQuorum", body, "--version", str(version), "-b", any_node.bootstrap)
        found = json.loads(result.stdout)
        assert (result.exit_code, found["version"]) == (0, version)
        assert found["body"]["topics"][0]["partitions"][0]["leaderId"] == 1
    found = json.loads(barnabas("raw", "ListGroups", "-b", any_node.bootstrap, "--to", "node:1").stdout)
    assert found["body"]["errorCode"] == 0
    refused = barnabas("raw", "Metadata", '{"topics": [{"name": "no-such"}]}', "-b", any_node.bootstrap)
    assert refused.exit_code == 1


def test_live_metadata_is_read_from_the_log_and_from_a_snapshot(any_node: ApacheKafka) -> None:
    controller = ("--bootstrap-controller", any_node.controller)
    before = barnabas("metadata", "ls", *controller, "topics/byName")
    assert before.exit_code == 0, before.output
    for topic in TOPICS:
        body = json.dumps({"topics": [{"name": topic, "numPartitions": 3, "replicationFactor": 1}]})
        assert barnabas("raw", "CreateTopics", body, "--to", "controller", "-b", any_node.bootstrap).exit_code == 0
    directory = any_node.directory / "data" / "__cluster_metadata-0"
    deadline = time.monotonic() + 30
    while len(list(directory.glob("*.checkpoint"))) < 2 and time.monotonic() < deadline:
        time.sleep(0.2)
    assert len(list(directory.glob("*.checkpoint"))) > 1, "there is a snapshot to read"
    live = barnabas("metadata", "ls", *controller, "topics/byName")
    assert set(live.stdout.split()) >= set(TOPICS)
    for path in ("configs", "brokers", "cluster/1", "producerIds", "acls/byId"):
        files = barnabas("metadata", "find", str(any_node.directory / "data"), path)
        assert barnabas("metadata", "find", *controller, path).stdout == files.stdout
    same = barnabas("metadata", "diff", str(any_node.directory / "data"), *controller, "--exit-code")
    assert (same.exit_code, same.stdout) == (0, "")
    found = barnabas("metadata", "ls", "-b", any_node.bootstrap, "topics/byName")
    assert (found.exit_code, found.stdout) == (0, live.stdout)


# --- the scripts


class Printed(NamedTuple):
    code: int
    out: str
    first_error: str


def first_line(text: str) -> str:
    lines = [line for line in text.splitlines() if line and not re.match(r"\[\d{4}-", line)]
    return lines[0] if lines else ""


def theirs(command: str, *arguments: str) -> Printed:
    done = run_tool(command, *arguments, timeout_s=120)
    return Printed(done.returncode, done.stdout, first_line(done.stderr))


def ours(command: str, *arguments: str) -> Printed:
    result = barnabas(command, *arguments)
    return Printed(result.exit_code, result.stdout, first_line(result.stderr))


NUMBERS = re.compile(r"((?:HighWatermark|Epoch|MaxFollowerLag): +)\d+")
TIMES = re.compile(r"\b\d{13}\b|\b\d+ +ms ago|\b\d{1,5}(?= *\t0 +\t)")


def common(printed: Printed) -> Printed:
    """Without what time changes."""
    return printed._replace(out=re.sub(r" *\t", "\t", TIMES.sub("N", NUMBERS.sub(r"\1N", printed.out))))


def same(node: ApacheKafka, cases: list[tuple[str, ...]]) -> None:
    """Each command line, with `{server}` and `{controller}`, gives the same in both."""
    filled = [tuple(part for word in case for part in _fill(word, node)) for case in cases]
    with ThreadPoolExecutor(2) as pool:
        expected = list(pool.map(lambda case: theirs(*case), filled))
    for case, want in zip(filled, expected, strict=True):
        got, wanted = ours(*case), want
        if want.first_error.startswith("usage: "):  # which options there are is shown in another way
            got, wanted = got._replace(first_error=""), want._replace(first_error="")
        assert (case, common(got)) == (case, common(wanted))


def _fill(word: str, node: ApacheKafka) -> list[str]:
    options = {
        "{server}": ["--bootstrap-server", node.bootstrap],
        "{controller}": ["--bootstrap-controller", node.controller],
    }
    return options.get(word, [word.replace("{file}", str(node.directory / "server.properties"))])


QUORUM = "kafka-metadata-quorum"
FEATURES = "kafka-features"
SOME_ID = "JEXY6aqzQY-32P5TStzaFg"


def test_kafka_metadata_quorum_prints_what_kafkas_script_prints(node: ApacheKafka) -> None:
    same(
        node,
        [
            (QUORUM, "{server}", "describe", "--status"),
            (QUORUM, "{controller}", "describe", "--status"),
            (QUORUM, "{controller}", "describe", "--replication"),
            (QUORUM, "{server}", "describe", "--replication", "--human-readable"),
            (QUORUM, "{server}", "describe"),
            (QUORUM, "{server}", "describe", "--status", "--replication"),
            (QUORUM, "{server}", "describe", "--status", "--human-readable"),
            (QUORUM, "describe", "--status"),
            (QUORUM, "{server}"),
            (QUORUM, "{server}", "remove-controller", "-i", "7", "-d", SOME_ID),
            (QUORUM, "{server}", "remove-controller", "-i", "7", "-d", SOME_ID, "--dry-run"),
            (QUORUM, "{server}", "remove-controller", "-i", "-7", "-d", SOME_ID),
            (QUORUM, "{server}", "remove-controller", "-i", "7", "-d", "short"),
            (QUORUM, "{server}", "remove-controller", "-i", "7", "-d", "odd!"),
            (QUORUM, "{server}", "remove-controller", "-i", "7", "-d", "shorter!"[:7]),
            (QUORUM, "{server}", "remove-controller", "-i", "7", "-d", SOME_ID * 2),
            (QUORUM, "{server}", "remove-controller", "-i", "7"),
            (QUORUM, "{server}", "add-controller"),
            (QUORUM, "--command-config", "{file}", "{server}", "add-controller", "--dry-run"),
            (QUORUM, "--command-config", "{file}", "{controller}", "add-controller"),
        ],
    )


def test_kafka_features_prints_what_kafkas_script_prints(node: ApacheKafka) -> None:
    same(
        node,
        [
            (FEATURES, "{server}", "describe"),
            (FEATURES, "{controller}", "describe"),
            (FEATURES, "{server}", "describe", "--node-id", "1"),
            (FEATURES, "{server}", "describe", "--node-id", "-1"),
            (FEATURES, "describe"),
            (FEATURES, "{server}", "upgrade"),
            (FEATURES, "{server}", "upgrade", "--feature", "group.version=1", "--dry-run"),
            (FEATURES, "{server}", "upgrade", "--feature", "group.version=9"),
            (
                FEATURES,
                "{server}",
                "upgrade",
                "--feature",
                "group.version=9",
                "--feature",
                "share.version=1",
                "--dry-run",
            ),
            (FEATURES, "{server}", "upgrade", "--feature", "group.version=1", "--feature", "group.version=1"),
            (FEATURES, "{server}", "upgrade", "--feature", "group.version=0"),
            (FEATURES, "{server}", "upgrade", "--feature", "group.version=-1"),
            (FEATURES, "{server}", "upgrade", "--feature", "group.version"),
            (FEATURES, "{server}", "upgrade", "--feature", "group.version=x"),
            (FEATURES, "{server}", "upgrade", "--release-version", "4.3"),
            (FEATURES, "{server}", "upgrade", "--release-version", "9.9"),
            (FEATURES, "{server}", "upgrade", "--release-version", "4.3", "--feature", "group.version=1"),
            (FEATURES, "{server}", "upgrade", "--metadata", "4.3-IV0"),
            (FEATURES, "{controller}", "downgrade", "--metadata", "4.0"),
            (FEATURES, "{server}", "downgrade", "--feature", "group.version=0", "--dry-run"),
            (FEATURES, "{server}", "downgrade", "--feature", "metadata.version=25", "--unsafe", "--dry-run"),
            (FEATURES, "{server}", "disable", "--feature", "streams.version", "--dry-run"),
            (FEATURES, "{server}", "disable"),
            (FEATURES, "version-mapping"),
            (FEATURES, "version-mapping", "--release-version", "3.9"),
            (FEATURES, "version-mapping", "--release-version", "9.9"),
            (FEATURES, "feature-dependencies", "--feature", "group.version=1", "--feature", "metadata.version=20"),
            (FEATURES, "feature-dependencies", "--feature", "eligible.leader.replicas.version=1"),
            (FEATURES, "feature-dependencies", "--feature", "zoo=1"),
            (FEATURES, "feature-dependencies", "--feature", "group.version=9"),
            (FEATURES, "feature-dependencies", "--feature", "metadata.version=99"),
            (FEATURES, "feature-dependencies"),
        ],
    )


def test_kafka_broker_api_versions_prints_what_kafkas_script_prints(node: ApacheKafka, old_node: ApacheKafka) -> None:
    for each in (node, old_node):
        same(each, [("kafka-broker-api-versions", "{server}"), (FEATURES, "{server}", "describe")])
    same(old_node, [(QUORUM, "{server}", "describe", "--status"), (QUORUM, "{server}", "describe", "--replication")])
    name = "kafka-broker-api-versions"
    same(
        node, [(name, "--version"), (name, "--nonsense"), (name, "--command-config", "x"), (name, "--bootstrap-server")]
    )


def test_kafka_storage_prints_what_kafkas_script_prints(node: ApacheKafka, tmp_path: Path) -> None:
    empty = tmp_path / "server.properties"
    empty.write_text(
        f"process.roles=controller\nnode.id=5\nlisteners=CONTROLLER://:9093\ncontroller.listener.names=CONTROLLER\n"
        f"controller.quorum.bootstrap.servers=localhost:9093\nlog.dirs={tmp_path / 'data'}\n"
    )
    same(
        node,
        [
            ("kafka-storage", "info", "-c", "{file}"),
            ("kafka-storage", "info", "-c", str(empty)),
            ("kafka-storage", "format", "-t", node.cluster_id, "-c", "{file}", "-N"),
            ("kafka-storage", "format", "-t", SOME_ID, "-c", str(empty)),
            ("kafka-storage", "format", "-c", str(empty)),
            ("kafka-storage", "version-mapping", "--release-version", "4.0"),
            ("kafka-storage", "feature-dependencies", "-f", "group.version=1"),
            ("kafka-storage", "nonsense"),
        ],
    )
    assert len(Uuid.parse(ours("kafka-storage", "random-uuid").out.strip())) == 16


# --- three controllers


def test_a_quorum_of_three_is_judged_while_it_loses_its_voters() -> None:
    jars(VERSION)
    ports, cluster_id = free_ports(3), new_cluster_id()
    voters = ",".join(f"{index}@{HOST}:{port}" for index, port in enumerate(ports, 1))
    nodes = []
    for index, port in enumerate(ports, 1):
        settings = {"process.roles": "controller", "node.id": str(index), "controller.quorum.voters": voters}
        node = ApacheKafka({**settings, "listeners": f"CONTROLLER://{HOST}:{port}"}, cluster_id=cluster_id)
        node.address, node._ready_text = (HOST, port), None
        nodes.append(node)
    try:
        with ThreadPoolExecutor(3) as pool:
            list(pool.map(lambda each: each.start(), nodes))
        where = ("--bootstrap-controller", ",".join(f"{HOST}:{port}" for port in ports))
        found = _status_until(where, healthy=True)
        assert found["verdict"]["canLose"] == 1
        assert [row["role"] for row in found["replicas"]] == ["leader", "voter", "voter"]
        lost = next(each for each, row in zip(nodes, range(1, 4), strict=True) if row != found["leaderId"])
        lost_id = int(lost.properties["node.id"])
        lost.stop()
        found = _status_until(where, healthy=False)
        assert found["verdict"]["canLose"] == 0
        assert found["verdict"]["problems"][0].startswith(f"voter {lost_id} ")
        assert barnabas("quorum", "status", *where).exit_code == 2
        next(each for each in nodes if each.properties["node.id"] not in (str(lost_id), str(found["leaderId"]))).stop()
        deadline = time.monotonic() + 60
        while (
            "the quorum has no leader that answers"
            not in (alone := barnabas("quorum", "status", *where, "-X", "default.api.timeout.ms=3000")).stderr
        ):
            assert time.monotonic() < deadline, alone.output
        assert alone.exit_code == 2
    finally:
        for node in nodes:
            node.close()


def test_a_controller_is_added_to_a_quorum_updated_and_removed(tmp_path: Path) -> None:
    jars(VERSION)
    ports, cluster_id = free_ports(2), new_cluster_id()
    where = ("--bootstrap-controller", f"{HOST}:{ports[0]}")
    nodes = []
    for index, port in enumerate(ports, 1):
        settings = {"process.roles": "controller", "node.id": str(index), "listeners": f"CONTROLLER://{HOST}:{port}"}
        settings["controller.quorum.bootstrap.servers"] = f"{HOST}:{ports[0]}"
        arguments = ["--standalone"] if index == 1 else ["--no-initial-controllers"]
        node = ApacheKafka(settings, cluster_id=cluster_id, format_args=arguments)
        node.address, node._ready_text = (HOST, port), None
        nodes.append(node)
    try:
        for node in nodes:
            node.start()
        second = str(nodes[1].directory / "server.properties")
        _retried("quorum", "add", "--config", second, *where)
        found = _status_until(where, healthy=True)
        assert [row["role"] for row in found["replicas"]] == ["leader", "voter"]
        directory = str(found["replicas"][1]["replicaDirectoryId"])
        twice = barnabas("quorum", "add", "--config", second, *where)
        assert (twice.exit_code, "DUPLICATE_VOTER" in twice.stderr) == (1, True)
        endpoint = f"CONTROLLER://{HOST}:{ports[1]}"
        updated = ("quorum", "update", "2", "--directory-id", directory, "--endpoint", endpoint, *where)
        assert barnabas(*updated).exit_code == 0
        removed = _retried("quorum", "remove", "2", "--yes", *where)
        assert "remaining voters: 1; working: 1; needed: 1" in removed.stderr
        assert [voter["role"] for voter in document("quorum", "status", *where)["replicas"]][1:] in ([], ["observer"])
        added = _retried("kafka-metadata-quorum", *where, "--command-config", second, "add-controller")
        assert added.stdout == f"Added controller 2 with directory id {directory} and endpoints: {endpoint}\n"
        gone = _retried("kafka-metadata-quorum", *where, "remove-controller", "-i", "2", "-d", directory)
        assert gone.stdout == f"Removed  KRaft controller 2 with directory id {directory}\n"
    finally:
        for node in nodes:
            node.close()


def _retried(*arguments: str, timeout_s: float = 60) -> Done:
    """Until it is done: a controller has to have fetched before it may vote, and one change waits for the one before."""
    deadline = time.monotonic() + timeout_s
    while (result := barnabas(*arguments)).exit_code:
        assert time.monotonic() < deadline, result.output
        time.sleep(1)
    return result


def _status_until(where: tuple[str, ...], *, healthy: bool, timeout_s: float = 60) -> dict[str, Any]:
    deadline = time.monotonic() + timeout_s
    while True:
        result = barnabas("quorum", "status", *where, "-o", "json")
        if result.stdout and json.loads(result.stdout)["verdict"]["healthy"] == healthy:
            found: dict[str, Any] = json.loads(result.stdout)
            return found
        assert time.monotonic() < deadline, result.output
        time.sleep(0.5)
