"""Topics and offsets: our commands against Apache Kafka, new and old, and the drop-in tools beside Kafka's own on one node."""

from __future__ import annotations

import asyncio
import json
import re
import shlex
import time
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from confluent_kafka import Producer
from tools.apache_kafka import ApacheKafka

from barnabas.client import Cluster
from barnabas.client.admin.part import checked
from barnabas.client.admin.records import (
    TO_HIGH_WATERMARK,
    EpochEndOffset,
    IsolationLevel,
    ListedOffset,
    OffsetSpec,
    Records,
)
from barnabas.client.admin.topics import NewPartitions, NewTopic, TopicDescription, Topics
from barnabas.client.records import TopicPartition
from barnabas.wire import ErrorCode, KafkaError
from tests.command_line import Command, invoke
from tests.interop.tool_process import ToolProcess

pytestmark = pytest.mark.interop

T0_MS = 1_700_000_000_000
OURS, THEIRS = "ours", "they"  # as long as each other


@pytest.fixture(scope="module", params=["kafka", "old_kafka"])
def any_kafka(request: pytest.FixtureRequest) -> ApacheKafka:
    node: ApacheKafka = request.getfixturevalue(request.param)
    return node


def write(bootstrap: str, topic: str, times_ms: list[int], partition: int = 0) -> None:
    producer = Producer({"bootstrap.servers": bootstrap})
    for time_ms in times_ms:
        producer.produce(topic, b"x", partition=partition, timestamp=time_ms)
        producer.flush()


def with_cluster(node: ApacheKafka, scenario: Callable[[Cluster], Coroutine[Any, Any, None]]) -> None:
    async def whole() -> None:
        async with Cluster({"bootstrap.servers": node.bootstrap}) as cluster:
            await scenario(cluster)

    asyncio.run(whole())


barnabas = Command().split


def rows(node: ApacheKafka, line: str, code: int = 0) -> Any:
    return barnabas(node, f"{line} -o json", code=code).json


def partitions(node: ApacheKafka, line: str, code: int = 0) -> list[Any]:
    return [each for topic in rows(node, f"topics describe {line}", code) for each in topic["partitions"]]


def code_of(result: object) -> ErrorCode:
    assert isinstance(result, KafkaError), result
    return result.code


# --- the client


def test_topics_live_and_die_by_name_and_by_id(any_kafka: ApacheKafka) -> None:
    async def scenario(cluster: Cluster) -> None:
        topics = Topics(cluster)
        new = [NewTopic("adm.a", 3, 1, {"retention.ms": "1000"}), NewTopic("adm.b"), NewTopic("bad!", 1, 1)]
        would = await topics.create_topics(new, validate_only=True)
        assert code_of(would["bad!"]) == ErrorCode.INVALID_TOPIC_EXCEPTION
        results = await topics.create_topics(new)
        created = results["adm.a"]
        assert not isinstance(created, KafkaError)
        assert (created.num_partitions, created.replication_factor) == (3, 1)
        assert await topics.create_partitions({"adm.a": NewPartitions(5, [[1], [1]])}) == {"adm.a": None}
        async with asyncio.timeout(10):  # the broker hears of it a moment after the controller has answered
            while True:
                found = checked(await topics.describe_topics(["adm.a", created.topic_id]))
                if len(found["adm.a"].partitions) == 5:
                    break
        assert found["adm.a"] == found[created.topic_id]
        pages = {
            name: topic
            async for name, topic in topics.describe_topic_partitions(
                ["adm.a", "adm.b", "adm.none"], response_partition_limit=2
            )
        }
        assert code_of(pages["adm.none"]) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        whole = pages["adm.a"]
        assert isinstance(whole, TopicDescription)
        assert [each.partition_index for each in whole.partitions] == [0, 1, 2, 3, 4]
        listed = [topic.name for topic in await topics.list_topics()]
        assert {"adm.a", "adm.b"} <= set(listed)
        assert await topics.delete_topics(["adm.b", created.topic_id]) == {"adm.b": None, created.topic_id: None}

    with_cluster(any_kafka, scenario)


def test_offsets_and_deleting_records(any_kafka: ApacheKafka) -> None:
    zero, one = TopicPartition("rec", 0), TopicPartition("rec", 1)

    async def scenario(cluster: Cluster) -> None:
        checked(await Topics(cluster).create_topics([NewTopic("rec", 2)]))
        await asyncio.to_thread(write, any_kafka.bootstrap, "rec", [T0_MS, T0_MS + 900, T0_MS + 500])
        records = Records(cluster)

        async def asked(spec: int) -> list[ListedOffset]:
            return list(checked(await records.list_offsets({zero: spec, one: spec})).values())

        assert [each.offset for each in await asked(OffsetSpec.LATEST)] == [3, 0]
        assert [each[:2] for each in await asked(OffsetSpec.MAX_TIMESTAMP)] == [(1, T0_MS + 900), (-1, -1)]
        assert [each[:2] for each in await asked(T0_MS + 1)] == [(1, T0_MS + 900), (-1, -1)]
        level = IsolationLevel.READ_COMMITTED
        assert checked(await records.list_offsets({zero: OffsetSpec.LATEST}, isolation_level=level))[zero].offset == 3
        assert await records.offsets_for_leader_epochs({zero: 0}) == {zero: EpochEndOffset(0, 3)}
        assert await records.delete_records({zero: 2}) == {zero: 2}
        assert await records.delete_records({zero: TO_HIGH_WATERMARK, one: TO_HIGH_WATERMARK}) == {zero: 3, one: 0}
        refused = await records.delete_records({zero: 9, TopicPartition("no.such", 0): 1})
        assert [code_of(each).name for each in refused.values()] == [
            "OFFSET_OUT_OF_RANGE",
            "UNKNOWN_TOPIC_OR_PARTITION",
        ]

    with_cluster(any_kafka, scenario)


# --- our commands


def test_the_commands_about_topics(any_kafka: ApacheKafka) -> None:
    node = any_kafka
    (made,) = rows(node, "topics create cmd --partitions 2 --config retention.ms=1000")
    assert (made["numPartitions"], made["replicationFactor"], made["error"]) == (2, 1, None)
    assert rows(node, "topics create cmd", code=1)[0]["error"] == "TOPIC_ALREADY_EXISTS"
    assert rows(node, "topics create wide --replication-factor 3", code=1)[0]["error"] == "INVALID_REPLICATION_FACTOR"
    assert "cmd" in [row["name"] for row in rows(node, "topics list")]
    first = rows(node, "topics describe cmd")[0]
    partition = first["partitions"][0]
    assert (partition["leader"], partition["status"], first["configs"]) == (1, "ok", {"retention.ms": "1000"})
    assert rows(node, f"topics describe --id {made['topicId']}")[0]["topic"] == "cmd"
    assert rows(node, "topics describe cmd --under-replicated --unavailable --under-min-isr --exit-code") == []
    assert "cmd" in [row["topic"] for row in rows(node, "topics describe --at-min-isr --exit-code", code=2)]
    assert rows(node, "topics alter cmd --partitions 4 --yes")[0]["error"] is None
    assert rows(node, "topics alter cmd --partitions 3 --yes", code=1)[0]["error"] == "INVALID_PARTITIONS"
    assert rows(node, "topics alter cmd --replication-factor 1") == []
    rows(node, "topics create cmd-copy")
    assert rows(node, "topics copy-settings cmd cmd-copy --dry-run")[0]["changes"] == 1
    assert rows(node, "topics copy-settings cmd cmd-copy")[0]["error"] is None
    assert rows(node, "topics describe cmd-copy")[0]["configs"] == {"retention.ms": "1000"}
    write(node.bootstrap, "cmd-copy", [T0_MS])
    idle = {row["name"]: row for row in rows(node, "topics idle --since 1d")}
    assert idle["cmd-copy"]["lastTimestamp"] == T0_MS
    assert idle["cmd-copy"]["sizeBytes"] > 0
    assert "cmd-copy" not in [row["name"] for row in rows(node, f"topics idle --since {T0_MS}")]
    assert rows(node, "topics delete cmd cmd-copy --yes")[0]["error"] is None
    assert barnabas(node, "topics describe cmd").exit_code == 1


def test_topics_groups_and_brokers_are_copied_and_shown(any_kafka: ApacheKafka) -> None:
    node = any_kafka
    rows(node, "topics create copied --partitions 2 --config retention.ms=-1")
    write(node.bootstrap, "copied", [T0_MS, T0_MS + 900, T0_MS + 500])
    write(node.bootstrap, "copied", [T0_MS + 100], 1)
    (made,) = rows(node, "topics copy copied copy-1 --records --yes")
    assert (made["numPartitions"], made["records"], made["error"]) == (2, 4, None)
    kept = ("partition", "offset", "timestamp", "key", "value", "headers")
    contents = [
        sorted(tuple(map(str, (row[name] for name in kept))) for row in rows(node, f"records consume {topic}"))
        for topic in ("copied", "copy-1")
    ]
    assert contents[0] == contents[1]
    assert rows(node, "topics copy copied copy-1", code=1)[0]["error"] == "TOPIC_ALREADY_EXISTS"
    rows(node, "groups reset reader --topic copied --to-offset 1 --yes")
    assert {row["newOffset"] for row in rows(node, "groups copy reader reader-1 --yes")} == {1}
    by_time = rows(node, "groups copy reader reader-2 --renamed copied=copy-1 --yes")
    assert [(row["topic"], row["newOffset"], row["error"]) for row in by_time] == [
        ("copy-1", 1, None),
        ("copy-1", 1, None),
    ]
    assert {row["groups"] for row in rows(node, "topics idle --since 1d") if row["name"] == "copied"} == {2}
    (broker,) = rows(node, "cluster brokers")
    assert (broker["broker"], broker["status"], broker["underReplicated"]) == (1, "ok", 0)
    assert (broker["leaders"], broker["replicaSkewPercent"]) == (broker["replicas"], 0.0)
    assert broker["sizeBytes"] > 0
    rows(node, "topics delete copied copy-1 --yes")


def test_the_commands_about_offsets(any_kafka: ApacheKafka) -> None:
    node = any_kafka
    rows(node, "topics create off --partitions 2")
    write(node.bootstrap, "off", [T0_MS, T0_MS + 1000])
    zero, one = rows(node, f"offsets list off --at {T0_MS + 1}")
    assert (zero["earliestOffset"], zero["latestOffset"], zero["offsetAt"]) == (0, 2, 1)
    assert (zero["records"], zero["maxTimestamp"], one["maxTimestamp"]) == (2, T0_MS + 1000, None)
    found = rows(node, f"offsets find off {T0_MS + 1}")
    assert [(row["offset"], row["timestamp"]) for row in found] == [(1, T0_MS + 1000), (None, None)]
    assert barnabas(node, "offsets find nowhere 1h").exit_code == 1


# --- Kafka's tools and ours


class Printed(NamedTuple):
    code: int
    out: list[str]
    first_of_err: str


TWICE_THE_SAME = (
    (re.compile(rf"\b{OURS}|\b{THEIRS}"), "NAME"),
    (re.compile(r"(TopicId: )[\w-]{22}"), r"\1ID"),
)


def printed(code: int, out: str, err: str) -> Printed:
    for pattern, word in TWICE_THE_SAME:
        out, err = pattern.sub(word, out), pattern.sub(word, err)
    return Printed(code, out.splitlines(), (err.splitlines() or [""])[0])


class Tools:
    """Kafka's tools and ours, about one node."""

    def __init__(self, node: ApacheKafka, process: ToolProcess) -> None:
        self.node, self.process = node, process

    def compare(self, lines: list[str], order: Callable[[list[str]], list[str]] = list) -> None:
        """The same lines from both; `{name}` is another word for each, `{server}` the option with the address."""
        for line in lines:
            theirs = printed(*self.process.run(*self._words(line, THEIRS)))
            ours = printed(*invoke(*self._words(line, OURS))[:3])
            assert (line, ours._replace(out=order(ours.out))) == (line, theirs._replace(out=order(theirs.out)))

    def _words(self, line: str, name: str) -> list[str]:
        return shlex.split(line.format(name=name, server=f"--bootstrap-server {self.node.bootstrap}"))


@pytest.fixture(scope="module")
def tools(kafka: ApacheKafka) -> Iterator[Tools]:
    """About a node with a dozen topics, some records, and settings."""
    for line in (
        "topics create t-one --partitions 3 --config retention.ms=1000 --config cleanup.policy=compact",
        "topics create t-two t-three t-four t.five t_six --config segment.bytes=1048576 --config max.message.bytes=4242",
        "topics create a b c aa bb cc AaAa BBBB AaBB",
    ):
        assert barnabas(kafka, line).exit_code == 0
    write(kafka.bootstrap, "t-one", [T0_MS, T0_MS + 900, T0_MS + 500], partition=1)
    write(kafka.bootstrap, "t-two", [T0_MS] * 3)
    with ToolProcess() as process:
        yield Tools(kafka, process)


def test_kafka_topics_shows_the_same(tools: Tools) -> None:
    tools.compare(
        [
            "kafka-topics {server} --list",
            "kafka-topics {server} --list --topic 't-.*, aa' --exclude-internal",
            "kafka-topics {server} --describe",
            "kafka-topics {server} --describe --topic t-one --partition-size-limit-per-response 2",
            "kafka-topics {server} --describe --topics-with-overrides",
            "kafka-topics {server} --describe --at-min-isr-partitions --topic 't.*'",
            "kafka-topics {server} --describe --under-replicated-partitions --unavailable-partitions",
            "kafka-topics {server} --describe --topic none --if-exists",
        ],
    )
    (topic_id,) = {row["topicId"] for row in rows(tools.node, "topics describe t-two")}
    tools.compare([f"kafka-topics {{server}} --describe --topic-id={topic_id}"])


def test_kafka_topics_changes_the_same(tools: Tools) -> None:
    tools.compare(
        [
            "kafka-topics {server} --create --topic {name}_a --partitions 2 --config retention.ms=5",
            "kafka-topics {server} --create --topic {name}_a",
            "kafka-topics {server} --create --topic {name}_a --if-not-exists",
            "kafka-topics {server} --create --topic {name}b --replica-assignment 1,1",
            "kafka-topics {server} --create --topic {name}c --replication-factor 3",
            "kafka-topics {server} --create --topic {name}d --config retention.ms=soon",
            "kafka-topics {server} --create --topic {name}d --config no.such=1",
            "kafka-topics {server} --create --topic {name}d --config retention.ms",
            "kafka-topics {server} --create --topic {name}d --replica-assignment 1:1",
            "kafka-topics {server} --create --topic {name}d --partitions 0",
            "kafka-topics {server} --alter --topic {name}b --partitions 4 --replica-assignment 1,1,1,1",
            "kafka-topics {server} --alter --topic {name}_a --partitions 1",
            "kafka-topics {server} --alter --topic {name}z --partitions 1",
            "kafka-topics {server} --describe --topic {name}b",
            "kafka-topics {server} --delete --topic {name}b",
            "kafka-topics {server} --delete --topic {name}b",
            "kafka-topics {server} --delete --topic {name}b --if-exists",
        ],
    )


def test_kafka_topics_refuses_the_same(tools: Tools) -> None:
    tools.compare(
        [
            "kafka-topics {server}",
            "kafka-topics --list",
            "kafka-topics {server} --list --create",
            "kafka-topics {server} --create",
            "kafka-topics {server} --alter --topic a",
            "kafka-topics {server} --list --partitions 3",
            "kafka-topics {server} --create --topic a --replica-assignment 1 --partitions 1",
            "kafka-topics {server} --describe --topics-with-overrides --under-replicated-partitions",
            "kafka-topics {server} --describe --nonsense",
            "kafka-topics {server} --create --topic a --partitions many",
            "kafka-topics {server} --list --topic",
            "kafka-topics {server} --describe --if-exists",
            "kafka-topics {server} --describe --topic-id Zm9v",
            "kafka-topics --version",
        ],
    )


def test_kafka_get_offsets_shows_the_same(tools: Tools) -> None:
    tools.compare(
        [
            "kafka-get-offsets {server}",
            "kafka-get-offsets {server} --topic t-one --time earliest",
            "kafka-get-offsets {server} --topic 't-.*' --time max-timestamp",
            f"kafka-get-offsets {{server}} --topic t-one --partitions 1,2 --time {T0_MS + 1}",
            "kafka-get-offsets {server} --topic-partitions t-one:0-2,t-two:0,:7-,a --exclude-internal-topics",
            "kafka-get-offsets {server} --topic t-one --time -4",
            "kafka-get-offsets {server} --topic none",
            "kafka-get-offsets {server} --topic t-one --time soon",
            "kafka-get-offsets {server} --topic t-one --partitions x",
            "kafka-get-offsets {server} --topic t-one --topic-partitions a",
            "kafka-get-offsets --topic a",
            "kafka-get-offsets --bootstrap-server nowhere",
            "kafka-get-offsets {server} --nonsense",
        ],
    )


def test_kafka_delete_records_does_the_same(tools: Tools, tmp_path: Path) -> None:
    def file(name: str, text: str) -> str:
        (tmp_path / name).write_text(text)
        return f"kafka-delete-records {{server}} --offset-json-file {tmp_path / name}"

    def partitions(*cells: tuple[str, int, int]) -> str:
        listed = [{"topic": topic, "partition": partition, "offset": offset} for topic, partition, offset in cells]
        return json.dumps({"partitions": listed, "version": 1})

    tools.compare(
        [
            file("some", partitions(("t-two", 0, 1), ("t-three", 0, 0))),
            file("less", partitions(("t-two", 0, 0))),
            file("all", partitions(("t-two", 0, -1))),
            file("beyond", partitions(("t-two", 0, 99), ("t-one", 1, 1))),
            file("twice", partitions(("t-two", 0, 1), ("t-two", 0, 2))),
            file("broken", "{"),
            file("list", "[1]"),
            file("version", '{"version": 2}'),
            file("empty", "{}"),
            file("field", '{"partitions": [{"topic": "a"}]}'),
            file("type", '{"partitions": [{"topic": "a", "partition": "1", "offset": 1}]}'),
            "kafka-delete-records {server}",
        ],
        sorted,  # Kafka's order is another in each process
    )


# --- two brokers


def test_replicas_come_and_go_and_a_broker_that_is_down_is_seen(tools: Tools) -> None:
    first_settings = {"broker.rack": "a", "offsets.topic.replication.factor": "1"}
    with ApacheKafka(first_settings) as first:
        settings = {
            "process.roles": "broker",
            "node.id": "2",
            "broker.rack": "b",
            "controller.quorum.bootstrap.servers": first.controller,
        }
        with ApacheKafka(settings, cluster_id=first.cluster_id) as second:
            _wait_for(lambda: rows(first, "topics create spread --replica-assignment 1:2,2:1") != [])
            for line in (
                "topics create narrow --replica-assignment 1,2,1",
                "topics create strict --replica-assignment 2:1 --config min.insync.replicas=2",
            ):
                rows(first, line)
            planned = rows(first, "topics alter narrow --replication-factor 2 --dry-run")
            assert [row["replicas"] for row in planned] == [[1, 2], [2, 1], [1, 2]]
            assert {row["error"] for row in rows(first, "topics alter narrow --replication-factor 2")} == {None}
            _wait_for(lambda: [sorted(each["isr"]) for each in partitions(first, "narrow")] == [[1, 2]] * 3)
            fewer = rows(first, "topics alter narrow --replication-factor 1 --yes")
            assert [row["replicas"] for row in fewer] == [[1], [2], [1]]
            _wait_for(lambda: [each["replicas"] for each in partitions(first, "narrow")] == [[1], [2], [1]])
            second.stop()
        _wait_for(lambda: partitions(first, "narrow")[1]["status"] == "offline")
        _wait_for(lambda: len(partitions(first, "spread --under-replicated")) == 2)
        strict = partitions(first, "strict --under-min-isr --exit-code", code=2)
        assert [(row["leader"], row["status"]) for row in strict] == [(1, "under-min-isr")]
        here = Tools(first, tools.process)
        here.compare(
            [
                "kafka-topics {server} --describe",
                "kafka-topics {server} --describe --under-replicated-partitions",
                "kafka-topics {server} --describe --unavailable-partitions",
                "kafka-topics {server} --describe --under-min-isr-partitions",
                "kafka-topics {server} --describe --at-min-isr-partitions",
            ]
        )
        offsets = barnabas(first, "offsets list narrow -o json")
        assert offsets.exit_code == 1
        assert "Error: partition narrow-1: LEADER_NOT_AVAILABLE: " in offsets.stderr
        assert [row["partition"] for row in json.loads(offsets.stdout)] == [0, 2]


def _wait_for(condition: Callable[[], bool], timeout_s: float = 60) -> None:
    deadline = time.monotonic() + timeout_s
    while True:
        try:
            if condition():
                return
        except AssertionError:
            if time.monotonic() > deadline:
                raise
        assert time.monotonic() < deadline
        time.sleep(0.2)
