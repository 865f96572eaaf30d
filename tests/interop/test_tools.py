"""Kafka's own command line tools: about barnabas they print what they print about Apache Kafka in the same state."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.interop.side_by_side import SideBySide, ok, sorted_lines

pytestmark = pytest.mark.interop


def test_kafka_topics_creates_and_describes(both: SideBySide) -> None:
    both.same("kafka-topics {server} --create --topic made --partitions 3 --config retention.ms=1000")
    both.same("kafka-topics {server} --create --topic made_2")
    described = both.same("kafka-topics {server} --describe --topic made")
    assert "PartitionCount: 3\tReplicationFactor: 1\tConfigs: min.insync.replicas=1,retention.ms=1000" in described
    both.same("kafka-topics {server} --describe --under-replicated-partitions")
    both.same("kafka-topics {server} --describe --topics-with-overrides --topic made.*")


def test_kafka_topics_is_refused_for_the_same_reasons(both: SideBySide) -> None:
    both.same("kafka-topics {server} --create --topic once")
    both.same("kafka-topics {server} --create --topic once --if-not-exists")
    both.same("kafka-topics {server} --create --topic once", code=1)
    both.same("kafka-topics {server} --create --topic bad!name", code=1)
    both.same("kafka-topics {server} --create --topic wide --replication-factor 3", code=1)
    both.same("kafka-topics {server} --create --topic odd --config no.such.setting=1", code=1)
    both.same("kafka-topics {server} --create --topic odd --config retention.ms=soon", code=1)
    both.same("kafka-topics {server} --describe --topic missing", code=1)


def test_kafka_topics_alters_and_deletes(both: SideBySide) -> None:
    both.same("kafka-topics {server} --create --topic grown --partitions 2")
    both.same("kafka-topics {server} --alter --topic grown --partitions 5")
    assert "PartitionCount: 5" in both.same("kafka-topics {server} --describe --topic grown")
    both.same("kafka-topics {server} --alter --topic grown --partitions 2", code=1)
    both.same("kafka-topics {server} --delete --topic grown")
    both.same("kafka-topics {server} --delete --topic grown", code=1)
    assert both.same("kafka-topics {server} --list --topic grown.*").split() == []


def test_kafka_configs_changes_topics(both: SideBySide) -> None:
    both.same("kafka-topics {server} --create --topic configured --config retention.ms=1000")
    topic = "kafka-configs {server} --entity-type topics --entity-name configured"
    both.same(f"{topic} --describe")
    both.same(f"{topic} --alter --add-config cleanup.policy=[compact,delete],max.message.bytes=4242")
    both.same(f"{topic} --alter --delete-config retention.ms")
    assert "max.message.bytes=4242" in both.same(f"{topic} --describe")
    assert both.same(f"{topic} --describe --all").count("\n") > 30
    both.same(f"{topic} --alter --add-config no.such.setting=1", code=1)


def test_kafka_configs_changes_brokers_and_their_default(both: SideBySide) -> None:
    broker = "kafka-configs {server} --entity-type brokers"
    both.same(f"{broker} --entity-name 1 --alter --add-config log.cleaner.threads=2")
    both.same(f"{broker} --entity-default --alter --add-config message.max.bytes=2000000")
    assert "log.cleaner.threads=2" in both.same(f"{broker} --entity-name 1 --describe")
    assert "message.max.bytes=2000000" in both.same(f"{broker} --describe")
    both.same("kafka-configs {controller} --entity-type brokers --entity-default --describe")
    both.same(f"{broker} --entity-name 1 --alter --add-config node.id=9", code=1)
    both.same(f"{broker} --entity-name 1 --alter --delete-config log.cleaner.threads")
    both.same(f"{broker} --entity-default --alter --delete-config message.max.bytes")
    both.same(f"{broker} --describe")


def test_kafka_configs_changes_client_metrics(both: SideBySide) -> None:
    both.same(
        "kafka-configs {server} --entity-type client-metrics --entity-name watched"
        " --alter --add-config interval.ms=1000,metrics=org.apache"
    )
    both.same("kafka-configs {server} --entity-type client-metrics --describe")
    assert "watched" in both.same("kafka-client-metrics {server} --list").split()
    both.same("kafka-client-metrics {server} --describe")
    both.same("kafka-client-metrics {server} --delete --name watched")
    assert "watched" not in both.same("kafka-client-metrics {server} --list").split()


def test_kafka_configs_changes_quotas(both: SideBySide) -> None:
    configs = "kafka-configs {server}"
    both.same(
        f"{configs} --entity-type users --entity-name ann"
        " --alter --add-config producer_byte_rate=1024,consumer_byte_rate=2048"
    )
    client = "--entity-type users --entity-default --entity-type clients --entity-name c1"
    both.same(f"{configs} {client} --alter --add-config request_percentage=50")
    both.same(f"{configs} --entity-type ips --entity-name 127.0.0.9 --alter --add-config connection_creation_rate=10")
    assert "producer_byte_rate=1024.0" in both.same(f"{configs} --entity-type users --entity-name ann --describe")
    both.same(f"{configs} {client} --describe")
    both.same(f"{configs} --entity-type ips --describe")
    both.same(f"{configs} --entity-type users --entity-name ann --alter --delete-config producer_byte_rate")
    both.same(f"{configs} --entity-type users --entity-name ann --describe")
    both.same(f"{configs} --entity-type users --entity-name ann --alter --add-config no_such_rate=1", code=1)


def test_kafka_configs_stores_scram_users(both: SideBySide) -> None:
    user = "kafka-configs {server} --entity-type users --entity-name bob"
    both.same(f"{user} --alter --add-config SCRAM-SHA-256=[iterations=8192,password=secret]")
    both.same(f"{user} --alter --add-config SCRAM-SHA-512=[password=secret]")
    # Kafka keeps mechanisms by the hash of an object, so that their order is another in each process.
    described = both.same(f"{user} --describe", order=lambda text: str(sorted(re.split(r"[\s,]+", text))))
    assert "SCRAM-SHA-256=iterations=8192" in described
    both.same(f"{user} --alter --delete-config SCRAM-SHA-256")
    both.same(f"{user} --describe")
    both.same(f"{user} --alter --delete-config SCRAM-SHA-256", code=1)


def test_kafka_acls_adds_lists_and_removes(both: SideBySide) -> None:
    both.same("kafka-acls {server} --add --allow-principal User:bob --operation Read --topic guarded")
    both.same(
        "kafka-acls {server} --add --deny-principal User:eve --deny-host 10.0.0.1 --operation All"
        " --topic pre --resource-pattern-type prefixed"
    )
    both.same("kafka-acls {controller} --add --allow-principal User:bob --consumer --topic guarded --group g")
    listed = both.same("kafka-acls {server} --list", order=sorted_lines)
    assert "(principal=User:eve, host=10.0.0.1, operation=ALL, permissionType=DENY)" in listed
    through_controller = both.same("kafka-acls {controller} --list", order=sorted_lines)
    assert sorted_lines(through_controller) == sorted_lines(listed)
    both.same("kafka-acls {server} --list --principal User:bob --topic guarded", order=sorted_lines)
    both.same("kafka-acls {server} --remove --force --allow-principal User:bob --operation Read --topic guarded")
    both.same("kafka-acls {server} --list", order=sorted_lines)


@pytest.mark.parametrize("where", ["{server}", "{controller}"])
def test_kafka_metadata_quorum_describes_one_voter(both: SideBySide, where: str) -> None:
    ids = re.compile(r'("directoryId": "|^1\s+)[\w-]{22}', re.MULTILINE)
    numbers = re.compile(r"(HighWatermark|LeaderEpoch):\s+\d+|\b\d{2,}\b")

    def common(text: str) -> str:
        return numbers.sub("N", ids.sub(r"\1...", text))

    status = both.same(f"kafka-metadata-quorum {where} describe --status", order=common)
    assert "LeaderId:               1\n" in status
    theirs, ours = both.each(f"kafka-metadata-quorum {where} describe --replication")
    header, row = ok(ours).splitlines()
    assert header.split() == ok(theirs).splitlines()[0].split()
    assert (row.split()[0], row.split()[3], row.split()[-1]) == ("1", "0", "Leader")


def test_kafka_leader_election_finds_nothing_to_do(both: SideBySide) -> None:
    both.same("kafka-topics {server} --create --topic elected")
    both.same("kafka-leader-election {server} --election-type preferred --topic elected --partition 0")
    both.same("kafka-leader-election {server} --election-type preferred --all-topic-partitions")
    both.same("kafka-leader-election {server} --election-type unclean --topic elected --partition 0")
    both.same("kafka-leader-election {server} --election-type preferred --topic missing --partition 0", code=1)


def test_kafka_reassign_partitions_has_none(both: SideBySide) -> None:
    both.same("kafka-reassign-partitions {server} --list")
    both.same("kafka-reassign-partitions {controller} --list")


def test_kafka_reassign_partitions_verifies_and_cancels_nothing(both: SideBySide, tmp_path: Path) -> None:
    both.same("kafka-topics {server} --create --topic placed")
    plan = tmp_path / "plan.json"
    plan.write_text('{"version": 1, "partitions": [{"topic": "placed", "partition": 0, "replicas": [1]}]}')
    command = f"kafka-reassign-partitions {{server}} --reassignment-json-file {plan}"
    both.same(f"{command} --execute")
    both.same(f"{command} --verify")
    both.same(f"{command} --cancel")


def test_kafka_features_describes_and_changes(both: SideBySide) -> None:
    both.same("kafka-features {server} describe")
    both.same("kafka-features {controller} describe")
    both.same("kafka-features {server} downgrade --feature group.version=0")
    both.same("kafka-features {server} describe")
    both.same("kafka-features {server} upgrade --feature group.version=1")
    both.same("kafka-features {server} upgrade --release-version 4.3")
    both.same("kafka-features {server} upgrade --feature metadata.version=99", code=1)
    both.same("kafka-features {server} downgrade --metadata 4.0", code=1)


def test_kafka_cluster_tells_id_and_endpoints(both: SideBySide) -> None:
    both.same("kafka-cluster cluster-id {server}")
    both.same("kafka-cluster list-endpoints {server}")
    both.same("kafka-cluster list-endpoints {controller}")
    both.same("kafka-cluster unregister {server} --id 77", code=1)


def test_kafka_log_dirs_describes_the_log_dir(both: SideBySide) -> None:
    both.same("kafka-topics {server} --create --topic stored --partitions 2")
    described = both.same("kafka-log-dirs {server} --describe --topic-list stored")
    assert '"partition":"stored-1","size":0' in described
