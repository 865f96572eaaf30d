"""Apache Kafka as the tests need it: it starts, its tools reach it and barnabas, its data outlive a restart."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from tools.apache_kafka import ApacheKafka, Barnabas, run_tool

pytestmark = pytest.mark.interop

API_LINE = re.compile(r"\w+\((\d+)\): (\d+)(?: to (\d+))? \[usable: (\d+)\]")


def usable(done: subprocess.CompletedProcess[str]) -> dict[int, int]:
    """The version the tool would use for each API it can use."""
    assert done.returncode == 0, done.stdout + done.stderr
    return {int(line[1]): int(line[4]) for line in API_LINE.finditer(done.stdout)}


def test_kafka_topics_creates_and_describes_a_topic(kafka: ApacheKafka) -> None:
    created = kafka.tool("kafka-topics", "--create", "--topic", "interop-first", "--partitions", "3")
    assert created.returncode == 0, created.stdout + created.stderr
    described = kafka.tool("kafka-topics", "--describe", "--topic", "interop-first")
    assert "PartitionCount: 3" in described.stdout


def test_kafka_broker_api_versions_uses_its_newest_versions_on_its_own_broker(kafka: ApacheKafka) -> None:
    versions = usable(kafka.tool("kafka-broker-api-versions"))
    assert versions[18] == 4
    assert versions[1] == 18


def test_kafka_broker_api_versions_uses_the_same_versions_on_barnabas(
    kafka: ApacheKafka, barnabas_node: Barnabas
) -> None:
    theirs = usable(kafka.tool("kafka-broker-api-versions"))
    ours = usable(run_tool("kafka-broker-api-versions", "--bootstrap-server", barnabas_node.bootstrap))
    assert ours[18] == 4
    assert ours == {key: version for key, version in theirs.items() if key in ours}


def test_the_old_kafka_answers_the_new_tools(old_kafka: ApacheKafka) -> None:
    versions = usable(run_tool("kafka-broker-api-versions", "--bootstrap-server", old_kafka.bootstrap))
    assert versions[1] == 17


def test_a_node_keeps_its_topics_when_another_starts_on_its_directory(tmp_path: Path, kafka: ApacheKafka) -> None:
    with ApacheKafka({"node.id": "7"}, directory=tmp_path) as node:
        assert node.tool("kafka-topics", "--create", "--topic", "kept").returncode == 0
    with ApacheKafka(directory=tmp_path) as node:
        assert node.properties["node.id"] == "7"
        assert node.tool("kafka-topics", "--list").stdout.split() == ["kept"]
