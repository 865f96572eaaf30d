"""`kafka-topics`, `kafka-get-offsets` and `kafka-delete-records` against a node of barnabas.

That the lines are Kafka's own is shown beside Kafka, in tests/interop/test_cli_topics.py.
"""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer

from barnabas.cli.kafka.kafka_topics import lines as topic_command
from barnabas.testing import Broker
from tests.command_line import Script

T0_MS = 1_700_000_000_000


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker({"kept": 2}, config={"auto.create.topics.enable": False}) as broker:
        producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
        for time_ms in (T0_MS, T0_MS + 900, T0_MS + 500):
            producer.produce("kept", b"x", partition=1, timestamp=time_ms)
        producer.flush()
        yield broker


run = Script().split


def test_a_topic_is_created_described_altered_and_deleted(broker: Broker) -> None:
    made = run(broker, "kafka-topics --create --topic tried --partitions 2 --config retention.ms=5")
    assert (made.exit_code, made.stdout) == (0, "Created topic tried.\n")
    again = run(broker, "kafka-topics --create --topic tried")
    assert (again.exit_code, again.stdout) == (
        1,
        "Error while executing topic command : Topic 'tried' already exists.\n",
    )
    assert run(broker, "kafka-topics --create --topic tried --if-not-exists").exit_code == 0
    assert run(broker, "kafka-topics --alter --topic tried --partitions 3").exit_code == 0
    head, *partitions = run(broker, "kafka-topics --describe --topic tried").stdout.splitlines()
    assert head.startswith("Topic: tried\tTopicId: ")
    assert "\tPartitionCount: 3\tReplicationFactor: 1\tConfigs: " in head
    assert "retention.ms=5" in head
    expected = "\tTopic: tried\tPartition: 2\tLeader: 1\tReplicas: 1\tIsr: 1\tElr: \tLastKnownElr: "
    assert partitions[2] == expected
    assert run(broker, "kafka-topics --list --topic 'tri.*'").stdout == "tried\n"
    assert run(broker, "kafka-topics --delete --topic tried").stdout == ""
    gone = run(broker, "kafka-topics --describe --topic tried")
    assert (gone.exit_code, gone.stdout) == (
        1,
        "Error while executing topic command : Topic 'tried' does not exist as expected\n",
    )


def test_options_that_do_not_go_together_are_refused_in_kafkas_words(broker: Broker) -> None:
    for line, message in {
        "kafka-topics": "Command must include exactly one action: --list, --describe, --create, --alter or --delete",
        "kafka-topics --create": 'Missing required argument "[topic]"',
        "kafka-topics --list --partitions 2": 'Option "[partitions]" can\'t be used with option "[list]"',
        "kafka-topics --describe --nonsense": "nonsense is not a recognized option",
        "kafka-topics --list --topic": "Option topic requires an argument",
        "kafka-get-offsets --topic a --time noon": "Error occurred: Malformed time argument noon. Please use -1 or latest",
        "kafka-get-offsets --nonsense": "Error occurred: nonsense is not a recognized option",
        "kafka-delete-records": 'Missing required argument "[offset-json-file]"',
    }.items():
        result = run(broker, line)
        assert result.exit_code == 1
        assert result.stderr.splitlines()[0].startswith(message), line


def test_a_node_that_is_not_there_is_what_kafka_calls_it(tmp_path: Path) -> None:
    settings = tmp_path / "client.properties"
    settings.write_text("default.api.timeout.ms=200\n")
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{unused.getsockname()[1]}"
        result = run(address, f"kafka-topics --list --command-config {settings}")
    said = "Error while executing topic command : Timed out waiting for a node assignment. Call: listTopics\n"
    assert (result.exit_code, result.stdout) == (1, said)


def test_offsets_are_printed_by_kinds_and_patterns(broker: Broker) -> None:
    assert run(broker, "kafka-get-offsets --topic kept").stdout == "kept:0:0\nkept:1:3\n"
    assert run(broker, f"kafka-get-offsets --topic kept --time {T0_MS + 1}").stdout == "kept:1:1\n"
    assert run(broker, "kafka-get-offsets --topic-partitions ke.*:1- --time max-timestamp").stdout == "kept:1:1\n"
    nothing = run(broker, "kafka-get-offsets --topic none")
    said = "Error occurred: Could not match any topic-partitions with the specified filters\n"
    assert (nothing.exit_code, nothing.stderr) == (1, said)


def test_records_are_deleted_as_a_file_says(broker: Broker, tmp_path: Path) -> None:
    file = tmp_path / "offsets.json"
    broker.create_topic("cut", 1)
    rows = [{"topic": "cut", "partition": 0, "offset": 0}, {"topic": "none", "partition": 0, "offset": 1}]
    file.write_text(json.dumps({"partitions": rows, "version": 1}))
    result = run(broker, f"kafka-delete-records --offset-json-file {file}")
    assert result.exit_code == 0
    assert result.stdout.splitlines() == [
        "Executing records delete operation",
        "Records delete operation completed:",
        "partition: cut-0\tlow_watermark: 0",
        "partition: none-0\terror: org.apache.kafka.common.errors.UnknownTopicOrPartitionException: "
        "This server does not host this topic-partition.",
    ]
    for text, message in {
        "{": "The input string is not a valid JSON",
        "[]": "Expected JSON object, received []",
        '{"version": 2}': "Not supported version field value 2",
        '{"partitions": {}}': "Expected JSON array, received {}",
        '{"partitions": [{"topic": 5}]}': "Expected `String` value, received 5",
        json.dumps({"partitions": [rows[0], rows[0]]}): "Offset json file contains duplicate topic partitions: cut-0",
    }.items():
        file.write_text(text)
        refused = run(broker, f"kafka-delete-records --offset-json-file {file}")
        assert (refused.exit_code, refused.stderr) == (1, message + "\n")
    missing = run(broker, f"kafka-delete-records --offset-json-file {tmp_path / 'absent'}")
    assert missing.stderr == f"{tmp_path / 'absent'}\n"


def test_assignments_and_settings_are_read_as_kafka_does() -> None:
    assert topic_command.parse_replica_assignment("0:1, 1:0") == [[0, 1], [1, 0]]
    for wrong, message in {
        "1:1": "Partition replica lists may not contain duplicate entries: 1",
        "1:2,1": r"Partition 1 has different replication factor: \[1\]",
        "one": 'For input string: "one"',
    }.items():
        with pytest.raises(ValueError, match=message):
            topic_command.parse_replica_assignment(wrong)
    for text in ("a", "a=", "a=b=c"):
        with pytest.raises(ValueError, match="requirement failed"):
            topic_command.parse_configs([text])
