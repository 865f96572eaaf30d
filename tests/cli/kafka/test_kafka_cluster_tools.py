"""kafka-metadata-quorum, -features, -broker-api-versions and -storage; tests/interop compares them with Kafka's own."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas.cli.kafka.kafka_broker_api_versions import versions_text
from barnabas.cli.kafka.kafka_metadata_quorum.lines import nodes_text, replication_lines, status_lines, table_lines
from barnabas.client.admin.quorum import QuorumInfo, RaftEndpoint, ReplicaState
from barnabas.testing import Broker
from barnabas.wire import ZERO_UUID, Uuid
from barnabas.wire.schema import Versions
from tests.command_line import Script, invoke

SOME_ID = "JEXY6aqzQY-32P5TStzaFg"


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as broker:
        yield broker


tool = Script()
run = invoke


# --- kafka-metadata-quorum


def test_status_has_the_lines_of_kafkas_script(broker: Broker) -> None:
    lines = tool(broker, "kafka-metadata-quorum", "describe", "--status").stdout.splitlines()
    assert [line.partition(":")[0] for line in lines] == [
        *("ClusterId", "LeaderId", "LeaderEpoch", "HighWatermark", "MaxFollowerLag", "MaxFollowerLagTimeMs"),
        *("CurrentVoters", "CurrentObservers"),
    ]
    assert lines[0] == f"ClusterId:              {broker.cluster_id}"
    endpoint = f'"endpoints": ["CONTROLLER://{broker.listeners["CONTROLLER"]}"]'
    assert re.fullmatch(
        r'CurrentVoters: {10}\[\{"id": 1, "directoryId": "\S{22}", ' + re.escape(endpoint) + r"\}\]", lines[6]
    )


def test_replication_is_a_table_with_tabs(broker: Broker) -> None:
    header, row = tool(broker, "kafka-metadata-quorum", "describe", "--replication").stdout.splitlines()
    assert header.startswith("NodeId\tDirectoryId           \tLogEndOffset\tLag\tLastFetchTimestamp\t")
    assert [cell.strip() for cell in row.split("\t")][-2:] == ["Leader", ""]
    ages = tool(broker, "kafka-metadata-quorum", "describe", "--replication", "--human-readable").stdout
    assert len(re.findall(r"\d+ ms ago", ages)) == 2


def test_followers_and_observers_are_told_apart() -> None:
    leader = ReplicaState(2, Uuid.parse(SOME_ID), 100, 5000, 5000)
    behind = ReplicaState(1, ZERO_UUID, 90, 4000, 3000)
    info = QuorumInfo(
        2, 7, 95, (behind, leader), (ReplicaState(9, ZERO_UUID, 100),), {1: (RaftEndpoint("C", "::1", 9),)}
    )
    assert nodes_text(info, info.voters) == (
        f'[{{"id": 1, "endpoints": ["C://[::1]:9"]}}, {{"id": 2, "directoryId": "{SOME_ID}"}}]'
    )
    rows = [[cell.strip() for cell in line.split("\t")] for line in replication_lines(info, leader)[1:]]
    assert [(row[0], row[3], row[4], row[6]) for row in rows] == [
        ("2", "0", "5000", "Leader"),
        ("1", "10", "4000", "Follower"),
        ("9", "0", "-1", "Observer"),
    ]
    lines = status_lines("c", info, leader)
    assert lines[4:6] == ["MaxFollowerLag:         10", "MaxFollowerLagTimeMs:   2000"]
    assert "1000 ms ago" in replication_lines(info, leader, now_ms=5000)[2]
    with pytest.raises(ValueError, match="possible drift in system clock"):
        replication_lines(info, leader, now_ms=4999)
    assert table_lines(("a", "long"), [["wide", "b"]]) == ["a   \tlong\t", "wide\tb   \t"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("describe",), "One of --status or --replication must be specified with describe sub-command"),
        (("describe", "--status", "--replication"), "Only one of --status or --replication should be specified"),
        (("describe", "--status", "--human-readable"), "The option --human-readable is only supported along with"),
        (("remove-controller", "-i", "-1", "-d", SOME_ID), "Invalid negative --controller-id: -1"),
        (("remove-controller", "-i", "7", "-d", SOME_ID), "org.apache.kafka.common.errors.VoterNotFoundException: "),
        (("add-controller",), "You must supply the configuration file of the controller"),
    ],
)
def test_what_is_wrong_is_said_in_kafkas_words(broker: Broker, arguments: tuple[str, ...], message: str) -> None:
    result = tool(broker, "kafka-metadata-quorum", *arguments)
    assert (result.exit_code, result.stderr.startswith(message)) == (1, True), result.output


@pytest.mark.parametrize(
    "arguments",
    [
        ("kafka-metadata-quorum",),
        ("kafka-metadata-quorum", "describe", "--status"),
        ("kafka-metadata-quorum", "--bootstrap-server", "a:1", "--bootstrap-controller", "b:1", "describe"),
        ("kafka-metadata-quorum", "--bootstrap-server", "a:1", "remove-controller"),
        ("kafka-metadata-quorum", "--bootstrap-server", "a:1", "--command-config", "/nowhere", "describe"),
        ("kafka-features", "describe"),
        ("kafka-features", "--nonsense", "describe"),
        ("kafka-broker-api-versions",),
        ("kafka-storage",),
        ("kafka-storage", "nonsense"),
        ("kafka-storage", "format"),
    ],
)
def test_what_is_not_understood_ends_with_one(arguments: tuple[str, ...]) -> None:
    result = run(*arguments)
    assert result.exit_code == 1
    assert result.stderr


def test_a_dry_run_changes_no_voters(broker: Broker) -> None:
    dry = tool(broker, "kafka-metadata-quorum", "remove-controller", "-i", "7", "-d", SOME_ID, "--dry-run")
    assert dry.stdout == f"DRY RUN of removing  KRaft controller 7 with directory id {SOME_ID}\n"


# --- kafka-features


def test_features_are_described_and_changed(broker: Broker) -> None:
    lines = tool(broker, "kafka-features", "describe").stdout.splitlines()
    assert [line.split()[1] for line in lines] == sorted(line.split()[1] for line in lines)
    row = next(line for line in lines if "metadata.version" in line)
    assert row.startswith(
        f"Feature: {'metadata.version':<40}  SupportedMinVersion: {'3.3-IV3':<15}  SupportedMaxVersion: "
    )
    down = tool(broker, "kafka-features", "disable", "--feature", "streams.version")
    assert down.stdout == "streams.version was disabled.\n"
    dry = tool(broker, "kafka-features", "upgrade", "--feature", "streams.version=1", "--dry-run")
    assert dry.stdout == "streams.version can be upgraded to 1.\n"
    up = tool(broker, "kafka-features", "upgrade", "--feature", "streams.version=1")
    assert up.stdout == "streams.version was upgraded to 1.\n"
    refused = tool(broker, "kafka-features", "upgrade", "--feature", "streams.version=9")
    assert refused.stdout.startswith("Could not upgrade streams.version to 9. ")
    assert (refused.exit_code, refused.stderr) == (1, "1 out of 1 operation(s) failed.\n")


def test_releases_and_dependencies_need_no_cluster() -> None:
    assert run("kafka-features", "version-mapping", "--release-version", "3.9").stdout.startswith(
        "metadata.version=21 (3.9)\n"
    )
    assert "4.4-IV0" in run("kafka-features", "version-mapping", "--release-version", "9.9").stderr
    needs = run("kafka-features", "feature-dependencies", "--feature", "eligible.leader.replicas.version=1").stdout
    assert needs.splitlines()[1] == "    metadata.version=23 (4.0-IV1)"
    unknown = run("kafka-features", "feature-dependencies", "--feature", "group.version=9")
    assert (unknown.exit_code, unknown.stderr) == (1, "No feature:group.version with feature level 9\n")


# --- kafka-broker-api-versions


def test_versions_of_apis_are_printed_by_broker(broker: Broker) -> None:
    text = tool(broker, "kafka-broker-api-versions").stdout
    assert text.startswith(f"{broker.bootstrap_servers} (id: 1 rack: null isFenced: false) -> (\n\tProduce(0): ")
    assert text.endswith("\n)\n")


def test_what_a_node_has_is_held_against_kafka_4_3() -> None:
    lines = versions_text({0: Versions(0, 2), 1: Versions(90, 99), 3: Versions(0, 99), 999: Versions(1, 1)}).split(
        "\n\t"
    )
    assert lines[1] == "Produce(0): 0 to 2 [unusable: node too old],"
    assert lines[2] == "Fetch(1): 90 to 99 [unusable: node too new],"
    assert "Metadata(3): 0 to 99 [usable: 13]," in lines
    assert "ListOffsets(2): UNSUPPORTED," in lines
    assert lines[-1] == "UNKNOWN(999): 1\n)"


# --- kafka-storage


def test_storage_formats_and_says_what_is_there(tmp_path: Path) -> None:
    settings = tmp_path / "server.properties"
    settings.write_text(
        "process.roles=broker,controller\nnode.id=4\ncontroller.listener.names=CONTROLLER\n"
        "listeners=PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093\n"
        f"controller.quorum.bootstrap.servers=127.0.0.1:9093\nlog.dirs={tmp_path / 'data'}\n"
    )
    assert run("kafka-storage", "format", "-t", SOME_ID, "-c", str(settings), "--standalone").exit_code == 0
    assert "Found log directory:" in run("kafka-storage", "info", "-c", str(settings)).stdout
    again = run("kafka-storage", "format", "-t", SOME_ID, "-c", str(settings), "--standalone")
    assert (again.exit_code, "is already formatted" in again.stderr) == (1, True)
