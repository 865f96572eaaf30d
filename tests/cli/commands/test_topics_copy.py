"""`barnabas topics copy` between topics and between clusters: settings, records, limits, and what is refused."""

from __future__ import annotations

import shlex
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from barnabas.testing import Broker
from tests.command_line import Command, Process, environment, program

T0_MS = 1_700_000_000_000
topics = Command("topics")
rows = topics.rows


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(config={"auto.create.topics.enable": False}) as broker:
        broker.create_topic("orders", 3, config={"retention.ms": "-1", "segment.bytes": "1048576"})
        producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
        for number in range(90):
            value = None if number % 10 == 0 else f"v{number}".encode()
            headers: list[tuple[str, str | bytes | None]] = [("n", str(number)), ("n", None)]
            producer.produce("orders", value, b"k%d" % (number % 7), timestamp=T0_MS + number, headers=headers)
        producer.flush()
        yield broker


@pytest.fixture(scope="module")
def other() -> Iterator[Broker]:
    with Broker(config={"auto.create.topics.enable": False}) as broker:
        yield broker


def contents(broker: Broker, topic: str, *options: object) -> list[dict[str, Any]]:
    found = Command("records").rows(broker, "consume", topic, *options)
    return sorted(({**row, "topic": None} for row in found), key=lambda row: (row["partition"], row["offset"]))


def test_settings_partitions_and_replicas_are_copied_without_records(broker: Broker) -> None:
    preview = topics(broker, "copy", "orders", "like", "--dry-run", code=0)
    assert preview.stderr == (
        "would create topic like, partitions: 3, replication factor: 1, retention.ms=-1, segment.bytes=1048576\n"
    )
    assert topics(broker, "describe", "like").exit_code == 1
    (made,) = rows(broker, "copy", "orders", "like", "--config", "retention.ms=1000")
    assert (made["topic"], made["numPartitions"], made["records"], made["error"]) == ("like", 3, 0, None)
    (described,) = rows(broker, "describe", "like")
    assert described["configs"] == {"retention.ms": "1000", "segment.bytes": "1048576"}
    assert contents(broker, "like") == []


def test_records_are_copied_as_they_are_to_the_same_partitions(broker: Broker) -> None:
    refused = topics(broker, "copy", "orders", "same", "--records")
    assert (refused.exit_code, "pass --yes" in refused.stderr) == (1, True)
    assert "copy records of orders to same: 90 offsets\n" in refused.stderr
    assert topics(broker, "describe", "same").exit_code == 1
    (made,) = rows(broker, "copy", "orders", "same", "--records", "--yes")
    assert (made["records"], made["error"]) == (90, None)
    copied = contents(broker, "same")
    assert copied == contents(broker, "orders")
    assert {row["timestamp"] for row in copied} == set(range(T0_MS, T0_MS + 90))
    assert copied[0]["headers"][1] == {"key": "n", "value": None}


def test_records_are_copied_to_another_cluster(broker: Broker, other: Broker) -> None:
    to = ("--to-bootstrap-server", other.bootstrap_servers)
    (made,) = rows(broker, "copy", "orders", "orders", "--records", "--yes", "--compression-type", "zstd", *to)
    assert (made["records"], made["error"]) == (90, None)
    assert contents(other, "orders") == contents(broker, "orders")
    exists = topics(broker, "copy", "orders", "orders", *to, "-o", "json")
    assert (exists.exit_code, exists.json[0]["error"]) == (1, "TOPIC_ALREADY_EXISTS")
    assert "--existing" in exists.stderr
    again = rows(broker, "copy", "orders", "orders", "--records", "--existing", "--max-records", 10, "--yes", *to)
    assert (again[0]["records"], len(contents(other, "orders"))) == (10, 100)


def test_a_copy_has_limits(broker: Broker) -> None:
    (made,) = rows(broker, "copy", "orders", "ten", "--records", "--max-records", 10, "--yes")
    assert (made["records"], len(contents(broker, "ten"))) == (10, 10)
    (made,) = rows(broker, "copy", "orders", "small", "--records", "--max-bytes", 100, "--yes")
    assert 0 < made["sizeBytes"] <= 100
    assert len(contents(broker, "small")) == made["records"]
    between = ("--from", T0_MS + 10, "--until", T0_MS + 20)
    (made,) = rows(broker, "copy", "orders", "between", "--records", *between, "--yes")
    assert sorted(row["timestamp"] - T0_MS for row in contents(broker, "between")) == list(range(10, 20))
    assert made["records"] == 10


def test_keys_decide_if_the_numbers_of_partitions_differ(broker: Broker) -> None:
    result = topics(broker, "copy", "orders", "wide", "--records", "--partitions", 5, "--yes", code=0)
    assert "orders has 3 partitions and wide 5: records go to partitions by their keys" in result.stderr
    found = contents(broker, "wide")
    assert len(found) == 90
    partitions = {(row["key"], row["partition"]) for row in found}
    assert len(partitions) == 7  # one for each key
    for key in {row["key"] for row in found}:
        times = [row["timestamp"] for row in found if row["key"] == key]
        assert times == sorted(times)


def test_aborted_transactions_are_not_copied(broker: Broker) -> None:
    broker.create_topic("with-aborted", 1)
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "transactional.id": "copies"})
    producer.init_transactions()
    for value, end in ((b"no", producer.abort_transaction), (b"yes", producer.commit_transaction)):
        producer.begin_transaction()
        producer.produce("with-aborted", value)
        producer.flush()
        end()
    (made,) = rows(broker, "copy", "with-aborted", "committed", "--records", "--yes")
    assert made["records"] == 1
    assert [row["value"] for row in contents(broker, "committed")] == ["yes"]
    uncommitted = ("--isolation-level", "read_uncommitted")
    assert rows(broker, "copy", "with-aborted", "both", "--records", "--yes", *uncommitted)[0]["records"] == 2


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("nothing", "x"), 1, "Error: topic nothing: UNKNOWN_TOPIC_OR_PARTITION"),
        (("orders", "orders"), 1, "a topic cannot be copied to itself"),
        (("orders", "x", "--existing"), 2, "--existing can only be used with --records"),
        (("orders", "x", "--max-records", "1"), 2, "--max-records can only be used with --records"),
        (("orders", "x", "--from", "1h"), 2, "--from can only be used with --records"),
        (("orders", "x", "--records", "--existing", "--partitions", "1"), 2, "--existing cannot be combined"),
        (("orders", "x", "--records", "--existing"), 1, "Error: topic x: UNKNOWN_TOPIC_OR_PARTITION"),
        (("orders", "x", "--to-bootstrap-server", "127.0.0.1:1"), 1, "127.0.0.1:1 (--to-bootstrap-server)"),
        (("orders", "x", "--to-profile", "nope"), 1, "no profile 'nope'"),
        (("orders", "wide-replicas", "--replication-factor", "3"), 1, "too few brokers"),
    ],
)
def test_what_cannot_be_copied_is_refused(broker: Broker, arguments: tuple[str, ...], code: int, message: str) -> None:
    result = topics(broker, "copy", *arguments)
    assert (result.exit_code, message in result.stderr) == (code, True), result.output


def test_a_record_that_the_target_refuses_ends_the_copy_with_its_error(broker: Broker) -> None:
    (made,) = rows(
        *(broker, "copy", "orders", "strict", "--records", "--yes"), *("--config", "max.message.bytes=80"), code=1
    )
    assert made["error"] == "MESSAGE_TOO_LARGE"
    assert made["records"] == len(contents(broker, "strict")) < 90


def test_an_interrupted_copy_says_that_it_is_incomplete(broker: Broker) -> None:
    broker.create_topic("big", 1)
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    for _ in range(60_000):
        producer.produce("big", bytes(300))
        producer.poll(0)
    producer.flush()
    where = ("-b", broker.bootstrap_servers)
    with Process("topics", "copy", "big", "part", "--records", "--yes", *where, merged=True) as process:
        process.until("copy records of big")
        offsets = Command("offsets")
        for _ in range(500):
            found = offsets(broker, "list", "part", "-o", "tsv").stdout.split("\t")
            if len(found) > 3 and int(found[3]) > 5000:
                break
        done = process.stop(signal.SIGINT)
    assert done.exit_code == 1
    assert "interrupted: part has only some of the records of big" in done.stdout
    assert "Traceback" not in done.stdout


def test_a_topic_is_backed_up_to_a_file_and_restored_as_documented(broker: Broker, tmp_path: Path) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    producer.produce("orders", b"\xff\x00", None, partition=2, timestamp=T0_MS - 1)
    producer.produce("orders", b'{"base64": "eA=="}', b"text", partition=2, timestamp=T0_MS - 1)
    producer.flush()
    text = (Path(__file__).parents[3] / "docs" / "cli.md").read_text()
    block = text.split("To back up a topic to a file", 1)[1].split("```")[1]
    script = block.replace("barnabas ", f"{shlex.join(program())} ").strip()
    assert len(script.splitlines()) == 3
    env = environment({"BARNABAS_BOOTSTRAP_SERVERS": broker.bootstrap_servers})
    subprocess.run(["sh", "-e", "-c", script], cwd=tmp_path, env=env, check=True, timeout=60)
    assert contents(broker, "orders-restored", "--format", "hex") == contents(broker, "orders", "--format", "hex")
