"""Producer, consumer and `barnabas records` against Apache Kafka, new and old; the console tools beside Kafka's own."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tools.apache_kafka import VERSION, ApacheKafka

from barnabas.client import Admin
from barnabas.client.admin.part import checked
from barnabas.client.admin.quotas import quota_entity
from barnabas.client.producer import Producer
from tests.client import record_scenes as scenes
from tests.command_line import Command, Script, invoke
from tests.interop.conftest import jars
from tests.interop.tool_process import ToolProcess

pytestmark = pytest.mark.interop

SCENES = [
    scenes.every_codec_comes_back,
    scenes.transactions_are_seen_whole_or_not_at_all,
    scenes.offsets_are_found_by_time,
    scenes.keys_go_where_other_clients_send_them,
    scenes.records_are_exchanged_with_other_clients,
    scenes.a_group_is_shared_with_aiokafka,
    scenes.fetch_sessions_list_only_changes_and_are_closed,
]


@pytest.fixture(scope="module", params=["kafka", "old_kafka"])
def any_kafka(request: pytest.FixtureRequest) -> ApacheKafka:
    node: ApacheKafka = request.getfixturevalue(request.param)
    return node


@pytest.fixture(scope="module")
def tools() -> Iterator[ToolProcess]:
    with ToolProcess() as process:
        yield process


def run(scene: Any, bootstrap: str, prefix: str, **settings: Any) -> None:
    asyncio.run(asyncio.wait_for(scene(bootstrap, prefix, **settings), 90))


cli = Command()


# --- the client


@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: scene.__name__)
def test_scene(any_kafka: ApacheKafka, scene: Any) -> None:
    run(scene, any_kafka.bootstrap, f"scene-{scene.__name__}")


@pytest.mark.parametrize("assignor", ["range", "roundrobin", "cooperative-sticky"])
def test_members_of_a_classic_group_share_and_take_over(any_kafka: ApacheKafka, assignor: str) -> None:
    how = {"partition_assignment_strategy": assignor, "heartbeat_interval_ms": 200}
    run(scenes.members_share_and_take_over, any_kafka.bootstrap, f"classic-{assignor}", **how)


def test_members_of_a_consumer_group_share_and_take_over(kafka: ApacheKafka) -> None:
    run(scenes.members_share_and_take_over, kafka.bootstrap, "consumer", group_protocol="consumer")


def test_patterns_are_matched_by_the_broker(kafka: ApacheKafka) -> None:
    run(scenes.patterns_are_matched_by_the_broker, kafka.bootstrap, "patterns")


def test_a_consumer_that_is_throttled_reads_everything_and_sends_nothing_meanwhile(
    any_kafka: ApacheKafka, caplog: pytest.LogCaptureFixture
) -> None:
    client_id = f"throttled-{any_kafka.version}"

    async def scene(bootstrap: str, topic: str) -> None:
        await scenes.create(bootstrap, topic)
        async with Producer({"bootstrap.servers": bootstrap}) as producer:
            for _ in range(14):
                await producer.send(topic, bytes(10_000), partition=0)
        async with Admin({"bootstrap.servers": bootstrap}) as admin:
            checked(await admin.alter_client_quotas({quota_entity(client_id=client_id): {"consumer_byte_rate": 1e4}}))
        how: dict[str, Any] = {"client_id": client_id, "max_partition_fetch_bytes": 50_000}
        assert len(await scenes.read(bootstrap, topic, 14, **how)) == 14

    with caplog.at_level("INFO", "barnabas.client.connection"):
        run(scene, any_kafka.bootstrap, client_id)
    assert f"{any_kafka.bootstrap} throttles this client for" in caplog.text


def test_a_node_that_is_killed_loses_nothing_and_gets_nothing_twice() -> None:
    jars(VERSION)
    with ApacheKafka() as node:

        async def scene() -> None:
            topic = await scenes.create(node.bootstrap, "killed")
            async with Producer({"bootstrap.servers": node.bootstrap, "batch.size": 400}) as producer:
                deliveries = []
                for number in range(3_000):
                    deliveries.append(await producer.send(topic, b"%d" % number))
                    if number == 1_500:
                        await asyncio.to_thread(node.kill)
                        await asyncio.to_thread(node.start)
                for each in deliveries:
                    await each
            found = await scenes.read(node.bootstrap, topic, 3_000)
            assert [int(record.value or b"") for record in found] == list(range(3_000))

        asyncio.run(asyncio.wait_for(scene(), 120))


# --- the commands


def test_records_are_written_read_and_deleted(any_kafka: ApacheKafka) -> None:
    asyncio.run(scenes.create(any_kafka.bootstrap, "commands", 2))
    lines = "".join(f"k{number}:v{number}\n" for number in range(10))
    written = cli(any_kafka, "records", "produce", "commands", "-K", ":", "-p", 1, "-H", "h=1", stdin=lines)
    assert written.exit_code == 0, written.output
    shown = cli(any_kafka, "records", "consume", "commands:1", "--offset", "-3", "-o", "jsonl")
    rows = [json.loads(line) for line in shown.stdout.splitlines()]
    assert [(row["offset"], row["key"], row["value"]) for row in rows] == [
        (number, f"k{number}", f"v{number}") for number in (7, 8, 9)
    ]
    deleted = cli(any_kafka, "records", "delete", "commands", "--before-offset", 0, "-y")
    assert "nothing to delete" in deleted.stderr
    deleted = cli(any_kafka, "records", "delete", "commands:1", "--before-offset", 4, "-y", "-o", "json")
    assert json.loads(deleted.stdout)[0]["lowWatermark"] == 4
    for expected in (["v4", "v5", "v6"], ["v7", "v8", "v9"], []):
        grouped = cli(any_kafka, "records", "consume", "commands", "--group", "commands", "--max", 3, "--values")
        assert grouped.stdout.splitlines() == expected, grouped.output
    unknown = cli(any_kafka, "records", "consume", "not.there")
    assert "topic not.there: UNKNOWN_TOPIC_OR_PARTITION" in unknown.stderr


# --- the console tools beside Kafka's own, on one node


READER_CASES = [
    (["one", "two", "", "zwölf"], []),
    (["key\tvalue", "\t", "k\tv\tw"], ["parse.key=true"]),
    (["a:b", "a::b"], ["parse.key=true", "key.separator=:"]),
    (["h1:v1,h2:v2\tkey\tvalue", "h:\tk\tv"], ["parse.key=true", "parse.headers=true"]),
    (["NULL\tNULL\tNULL", "h:NULL\tk\tNULL"], ["parse.key=true", "parse.headers=true", "null.marker=NULL"]),
    (["no separator", "k\tv"], ["parse.key=true", "ignore.error=true"]),
    (
        ["h1|v1;h2|v2#value"],
        ["parse.headers=true", "headers.delimiter=#", "headers.separator=;", "headers.key.separator=|"],
    ),
]


def test_the_console_producers_write_the_same_records(kafka: ApacheKafka) -> None:
    for number, (lines, properties) in enumerate(READER_CASES):
        text = "".join(f"{line}\n" for line in lines)
        options = [each for pair in properties for each in ("--reader-property", pair)]
        found = []
        for who in ("ours", "they"):
            topic = f"reader-{number}-{who}"
            asyncio.run(scenes.create(kafka.bootstrap, topic))
            if who == "ours":
                done = Script("kafka-console-producer")(kafka, "--topic", topic, *options, stdin=text)
                assert (done.exit_code, done.stdout) == (0, ""), done.output
            else:
                theirs = kafka.tool("kafka-console-producer", "--topic", topic, *options, stdin=text)
                assert (theirs.returncode, theirs.stdout) == (0, ""), theirs.stderr
            records = asyncio.run(scenes.read(kafka.bootstrap, topic, len(lines)))
            found.append([(record.offset, *record[4:]) for record in records])
        assert found[0] == found[1], properties


def test_a_line_that_cannot_be_split_ends_both_console_producers(kafka: ApacheKafka) -> None:
    arguments = ["--topic", "reader-bad", "--reader-property", "parse.key=true"]
    theirs = kafka.tool("kafka-console-producer", *arguments, stdin="x\n")
    ours = Script("kafka-console-producer")(kafka, *arguments, stdin="x\n")
    assert (ours.exit_code, ours.stdout) == (theirs.returncode, theirs.stdout)
    assert ours.stderr.splitlines()[0] == theirs.stderr.splitlines()[0]


SHOWN = [f"print.{name}=true" for name in ("timestamp", "key", "offset", "epoch", "partition", "headers", "delivery")]
STRING = "org.apache.kafka.common.serialization.StringDeserializer"
INTEGER = "org.apache.kafka.common.serialization.IntegerDeserializer"
PACKAGE = "org.apache.kafka.tools.consumer."
WHOLE = ["--partition", "0", "--from-beginning"]
CONSUMER_CASES: list[list[str]] = [
    ["--from-beginning"],
    ["--partition", "0", "--offset", "earliest"],
    ["--partition", "0", "--offset", "3"],
    ["--partition", "0", "--from-beginning", "--max-messages", "2"],
    [*WHOLE, *(each for name in SHOWN for each in ("--formatter-property", name))],
    [*WHOLE, "--formatter-property", "print.key=true", "--formatter-property", "key.separator= | "],
    [*WHOLE, "--formatter-property", "null.literal=-", "--formatter-property", "line.separator=;"],
    [*WHOLE, "--formatter-property", "print.value=false", "--formatter-property", "print.offset=true"],
    [*WHOLE, "--formatter-property", "print.headers=true", "--formatter-property", "headers.separator=&"],
    ["--from-beginning", "--property", "print.key=true"],
    [*WHOLE, "--formatter-property", "print.key=true", "--key-deserializer", STRING],
    [*WHOLE, "--isolation-level", "read_committed"],
    [*WHOLE, "--formatter", PACKAGE + "NoOpMessageFormatter"],
    [*WHOLE, "--formatter", PACKAGE + "LoggingMessageFormatter"],
    [*WHOLE, "--consumer-property", "client.id=x"],
]
REFUSED_CASES: list[list[str]] = [
    ["--offset", "3"],
    ["--partition", "0", "--offset", "-3"],
    ["--partition", "0", "--offset", "x"],
    ["--partition", "0", "--offset", "1", "--from-beginning"],
    ["--partition", "0", "--group", "g"],
    ["--group", "g", "--command-property", "group.id=h"],
    ["--from-beginning", "--command-property", "auto.offset.reset=latest"],
    ["--include", "x.*"],
    ["--formatter", "no.such.Formatter"],
    ["--property", "a=b", "--formatter-property", "a=b"],
    ["--consumer-property", "a=b", "--command-property", "a=b"],
]


@pytest.fixture(scope="module")
def written(kafka: ApacheKafka) -> str:
    """Records of every kind, of a transaction that was aborted too."""

    async def write() -> None:
        await scenes.create(kafka.bootstrap, "shown")
        settings: dict[str, object] = {"bootstrap.servers": kafka.bootstrap}
        async with Producer(settings) as producer, Producer({**settings, "transactional.id": "shown"}) as other:
            await producer.send_and_wait("shown", b"value", b"key", headers=[("h", b"1"), ("i", None)])
            await producer.send_and_wait("shown", None, b"\x00\x00\x00*")
            await producer.send_and_wait("shown", "zwölf".encode(), None, headers=[("h", b"2")])
            await other.init_transactions()
            other.begin_transaction()
            await other.send_and_wait("shown", b"aborted")
            await other.abort_transaction()
            await producer.send_and_wait("shown", b"last", b"")

    asyncio.run(write())
    return "shown"


def beside(kafka: ApacheKafka, tools: ToolProcess, arguments: list[str]) -> None:
    whole = ["--bootstrap-server", kafka.bootstrap, *arguments]
    theirs = tools.run("kafka-console-consumer", *whole)
    ours = invoke("kafka-console-consumer", *whole)
    assert (ours.exit_code, ours.stdout) == (theirs.code, theirs.out), (arguments, ours.stderr, theirs.err)
    if theirs.code:
        assert ours.stderr.splitlines()[0] == theirs.err.splitlines()[0], arguments
    else:
        assert ours.stderr.splitlines()[-1] == theirs.err.splitlines()[-1], arguments


@pytest.mark.parametrize("arguments", CONSUMER_CASES, ids=" ".join)
def test_the_console_consumers_print_the_same(
    kafka: ApacheKafka, tools: ToolProcess, written: str, arguments: list[str]
) -> None:
    limit = [] if "--max-messages" in arguments else ["--max-messages", "2" if "3" in arguments else "4"]
    beside(kafka, tools, ["--topic", written, *arguments, *limit, "--timeout-ms", "60000"])


@pytest.mark.parametrize("arguments", REFUSED_CASES, ids=" ".join)
def test_the_console_consumers_refuse_the_same(
    kafka: ApacheKafka, tools: ToolProcess, written: str, arguments: list[str]
) -> None:
    beside(kafka, tools, ["--topic", written, *arguments])


def test_the_console_consumers_show_kafkas_own_topics_alike(
    kafka: ApacheKafka, tools: ToolProcess, written: str
) -> None:
    cli(kafka, "records", "consume", written, "--group", "own.topics", "--values")
    own = {
        "__consumer_offsets": ("OffsetsMessageFormatter", "GroupMetadataMessageFormatter"),
        "__transaction_state": ("TransactionLogMessageFormatter",),
    }
    for topic, formatters in own.items():
        for name in formatters:
            arguments = ["--bootstrap-server", kafka.bootstrap, "--topic", topic, "--formatter", PACKAGE + name]
            how = ["--from-beginning", "--timeout-ms", "5000", "--command-property", "exclude.internal.topics=false"]
            theirs = tools.run("kafka-console-consumer", *arguments, *how)
            ours = invoke("kafka-console-consumer", *arguments, *how)
            found = _documents(ours.stdout)
            assert found == _documents(theirs.out), name
            assert found


def _documents(text: str) -> list[str]:
    """What is printed, in order of its text, without the groups of the tools themselves."""
    decoder, found, at = json.JSONDecoder(), [], 0
    while at < len(text):
        _, end = decoder.raw_decode(text, at)
        found.append(text[at:end])
        at = end
    return sorted(each for each in found if '"group":"console-consumer-' not in each)


def test_settings_come_from_files_alike(kafka: ApacheKafka, tools: ToolProcess, written: str, tmp_path: Path) -> None:
    config, shown = tmp_path / "client.properties", tmp_path / "formatter.properties"
    config.write_text("auto.offset.reset=earliest\n")
    shown.write_text("print.key=true\nkey.separator=-\n")
    files = ["--command-config", str(config), "--formatter-config", str(shown)]
    beside(kafka, tools, ["--topic", written, *files, "--max-messages", "3"])
