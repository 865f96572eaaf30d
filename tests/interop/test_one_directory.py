"""One data directory, used in turn by barnabas and by Apache Kafka: each finds what the other wrote."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tools.apache_kafka import HOST, ApacheKafka, Barnabas, free_ports, run_tool

from tests.interop.conftest import jars
from tests.interop.side_by_side import WITH_ACLS, ok, run, sorted_lines

pytestmark = pytest.mark.interop

# With snapshots all the time, so that each starts from one that the other made.
SETTINGS = {**WITH_ACLS, "metadata.log.max.record.bytes.between.snapshots": "100"}

# Enough to see that a part of the metadata came over: what it shows must not depend on who shows it.
CHANGES = (
    "kafka-topics {server} --create --topic first --partitions 3 --config retention.ms=1000",
    "kafka-topics {server} --create --topic second",
    "kafka-topics {server} --create --topic gone",
    "kafka-topics {server} --delete --topic gone",
    "kafka-topics {server} --alter --topic second --partitions 2",
    "kafka-configs {server} --entity-type topics --entity-name second --alter --add-config cleanup.policy=compact",
    "kafka-configs {server} --entity-type brokers --entity-default --alter --add-config message.max.bytes=2000000",
    "kafka-configs {server} --entity-type users --entity-name ann --alter --add-config producer_byte_rate=1024",
    "kafka-configs {server} --entity-type users --entity-name ann --alter --add-config SCRAM-SHA-512=[password=secret]",
    "kafka-acls {server} --add --allow-principal User:bob --operation Read --topic first",
)
VIEWS = (
    "kafka-topics {server} --describe",
    "kafka-configs {server} --entity-type topics --entity-name first --describe",
    "kafka-configs {server} --entity-type topics --entity-name second --describe",
    "kafka-configs {server} --entity-type brokers --describe",
    "kafka-configs {server} --entity-type users --describe",
    "kafka-acls {server} --list",
    "kafka-features {server} describe",
    "kafka-cluster cluster-id {server}",
)


def change(node: ApacheKafka | Barnabas, *commands: str) -> None:
    for command in commands:
        ok(run(node, command))


def views(node: ApacheKafka | Barnabas) -> dict[str, str]:
    return {command: sorted_lines(ok(run(node, command))) for command in VIEWS}


def topic_ids(node: ApacheKafka | Barnabas) -> dict[str, str]:
    described = ok(run_tool("kafka-topics", "--bootstrap-server", node.bootstrap, "--describe"))
    return dict(re.findall(r"^Topic: (\S+)\tTopicId: (\S+)", described, re.MULTILINE))


def snapshots(directory: Path) -> list[Path]:
    """But for the one that formatting writes."""
    return sorted((directory / "data" / "__cluster_metadata-0").glob("*.checkpoint"))[1:]


def test_kafka_starts_on_what_barnabas_wrote(tmp_path: Path) -> None:
    jars("4.3.1")
    with Barnabas(SETTINGS, directory=tmp_path) as node:
        change(node, *CHANGES)
        shown, ids = views(node), topic_ids(node)
        assert node.stop() == 0
    assert snapshots(tmp_path)
    with ApacheKafka(SETTINGS, directory=tmp_path) as kafka:
        assert topic_ids(kafka) == ids
        assert views(kafka) == shown
        change(kafka, "kafka-topics {server} --create --topic third", "kafka-topics {server} --delete --topic second")
        shown, ids = views(kafka), topic_ids(kafka)
    with Barnabas(SETTINGS, directory=tmp_path) as node:
        assert set(ids) == {"first", "third"}
        assert topic_ids(node) == ids
        assert views(node) == shown


def test_barnabas_starts_on_what_kafka_wrote_and_kafka_on_that(tmp_path: Path) -> None:
    jars("4.3.1")
    with ApacheKafka(SETTINGS, directory=tmp_path) as kafka:
        change(kafka, *CHANGES)
        shown, ids = views(kafka), topic_ids(kafka)
    assert snapshots(tmp_path)
    with Barnabas(SETTINGS, directory=tmp_path) as node:
        assert topic_ids(node) == ids
        assert views(node) == shown
        change(
            node,
            "kafka-topics {server} --create --topic third --config segment.bytes=1048576",
            "kafka-acls {server} --remove --force --allow-principal User:bob --operation Read --topic first",
            "kafka-configs {server} --entity-type users --entity-name ann --alter --delete-config SCRAM-SHA-512",
        )
        shown, ids = views(node), topic_ids(node)
        assert node.stop() == 0
    with ApacheKafka(SETTINGS, directory=tmp_path) as kafka:
        assert set(ids) == {"first", "second", "third"}
        assert topic_ids(kafka) == ids
        assert views(kafka) == shown


def test_a_quorum_of_settings_becomes_one_of_the_log_as_in_kafka(tmp_path: Path) -> None:
    jars("4.3.1")
    commands = (
        "kafka-features {server} upgrade --feature kraft.version=2",
        "kafka-features {server} upgrade --feature kraft.version=1 --dry-run",
        "kafka-features {server} upgrade --feature kraft.version=1",
        "kafka-features {server} upgrade --feature kraft.version=1",
        "kafka-features {server} downgrade --feature kraft.version=0",
        "kafka-features {server} describe",
    )
    broker, controller = free_ports(2)
    settings = {
        "node.id": "1",
        "controller.quorum.voters": f"1@{HOST}:{controller}",
        "listeners": f"PLAINTEXT://{HOST}:{broker},CONTROLLER://{HOST}:{controller}",
    }

    def made(kind: type[ApacheKafka | Barnabas], name: str) -> ApacheKafka | Barnabas:
        if kind is ApacheKafka:
            node: ApacheKafka | Barnabas = ApacheKafka(settings, directory=tmp_path / name, format_args=())
        else:
            node = Barnabas(settings, directory=tmp_path / name)
        node.address = (HOST, broker)
        return node

    def said(node: ApacheKafka | Barnabas) -> list[tuple[int, str]]:
        results = [run(node, command) for command in commands]
        return [(each.code, re.sub("Epoch: [0-9]+", "", each.out)) for each in results]

    def voters(node: ApacheKafka | Barnabas) -> str:
        return ok(run(node, "kafka-metadata-quorum {server} describe --status")).partition("CurrentVoters")[2]

    (tmp_path / "ours").mkdir()
    (tmp_path / "theirs").mkdir()
    with made(Barnabas, "ours") as node:
        our_answers, described = said(node), voters(node)
        assert node.stop() == 0
        node.start()
        assert voters(node) == described
        assert node.stop() == 0
    with made(ApacheKafka, "theirs") as kafka:
        assert our_answers == said(kafka)
    with made(ApacheKafka, "ours") as kafka:
        assert voters(kafka) == described


def test_kafka_dump_log_reads_our_log_and_our_snapshots(tmp_path: Path) -> None:
    jars("4.3.1")
    with Barnabas(SETTINGS, directory=tmp_path) as node:
        change(node, *CHANGES[:3], CHANGES[-1])
        assert node.stop() == 0
    partition = tmp_path / "data" / "__cluster_metadata-0"
    log, snapshot = max(partition.glob("*.log")), max(partition.glob("*.checkpoint"))
    for file in (log, snapshot):
        done = run_tool("kafka-dump-log", "--cluster-metadata-decoder", "--files", str(file))
        dumped = ok(done)
        assert done.stderr == ""
        assert "isvalid: false" not in dumped.lower()
        assert not re.search(r"(?i)could not|error|mismatch|non-?consecutive", dumped), dumped
        assert re.search(r'payload: \{"type":"TOPIC_RECORD","version":0,"data":\{"name":"first"', dumped)
        assert "ACCESS_CONTROL_ENTRY_RECORD" in dumped
    assert "SnapshotFooter" in dumped
