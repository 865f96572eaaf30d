"""Share groups: the commands against Apache Kafka, and Kafka's tools beside ours."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest
from tools.apache_kafka import VERSION, ApacheKafka, run_tool

from barnabas.client import Admin, KafkaError, ShareConsumer, ShareOffset, TopicPartition, checked
from tests.client.share_scenes import BROKER_CONFIGS, prepare, read
from tests.command_line import invoke
from tests.interop.conftest import jars
from tests.interop.test_cli_groups import Compared

pytestmark = pytest.mark.interop


@pytest.fixture(scope="module")
def node() -> Iterator[ApacheKafka]:
    jars(VERSION)
    with ApacheKafka(BROKER_CONFIGS) as node:
        yield node


@pytest.fixture
def compare(node: ApacheKafka) -> Iterator[Compared]:
    compared = Compared(node.bootstrap)
    yield compared
    mine, theirs = ([each[at] for each in compared.differences] for at in (0, 1))
    assert mine == theirs


def rows(*arguments: object) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = invoke(*arguments, "-o", "json", code=0).json
    return found


async def some_done(bootstrap: str, name: str, partitions: int = 2) -> None:
    """A group without members that has done four of ten records."""
    topic, settings = await prepare(bootstrap, name, 10, partitions)
    limited = {**settings, "share.acquire.mode": "record_limit"}
    async with ShareConsumer(limited, topics=[topic]) as consumer:
        found: list[Any] = []
        while len(found) < 4:
            found += await consumer.poll(500, max_records=2)
        assert len(found) == 4
        await consumer.commit()


def test_admin_shows_and_changes_share_groups(node: ApacheKafka) -> None:
    async def scenario() -> None:
        await some_done(node.bootstrap, "admin-shares")
        async with Admin({"bootstrap.servers": node.bootstrap}) as admin:
            found = await admin.describe_share_groups(["admin-shares", "nobody"])
            assert isinstance(found["nobody"], KafkaError)
            group = checked({"admin-shares": found["admin-shares"]})["admin-shares"]
            assert (group.type, group.state, group.assignor, group.members) == ("Share", "Empty", "simple", ())
            offsets = checked(await admin.list_share_group_offsets(["admin-shares"]))["admin-shares"]
            assert sum(each.lag or 0 for each in checked(offsets).values()) == 6
            wanted = {TopicPartition("admin-shares", 0): 1, TopicPartition("admin-shares", 1): 4}
            assert set((await admin.alter_share_group_offsets("admin-shares", wanted)).values()) == {None}
            offsets = checked(await admin.list_share_group_offsets({"admin-shares": list(wanted)}))["admin-shares"]
            assert {place: (each.start_offset, each.lag) for place, each in checked(offsets).items()} == {
                TopicPartition("admin-shares", 0): (1, 4),
                TopicPartition("admin-shares", 1): (4, 1),
            }
            assert isinstance(offsets[TopicPartition("admin-shares", 0)], ShareOffset)
            assert await admin.delete_share_group_offsets("admin-shares", ["admin-shares"]) == {"admin-shares": None}
            assert checked(await admin.list_share_group_offsets(["admin-shares"]))["admin-shares"] == {}
            assert await admin.delete_groups(["admin-shares"]) == {"admin-shares": None}

    asyncio.run(scenario())


def test_the_commands_show_and_change_share_groups(node: ApacheKafka) -> None:
    server = ("--bootstrap-server", node.bootstrap)
    asyncio.run(some_done(node.bootstrap, "shown"))
    assert [row["type"] for row in rows("groups", "list", "--type", "share", *server) if row["groupId"] == "shown"] == [
        "Share"
    ]
    shown = rows("groups", "describe", "shown", *server)
    assert sum(row["lag"] for row in shown) == 6
    assert {row["lagMs"] for row in shown} <= {0, None}
    assert [row["type"] for row in rows("groups", "state", "shown", *server)] == ["Share"]
    assert rows("groups", "members", "shown", *server) == []
    invoke("groups", "reset", "shown", "--topic", "shown", "--to-earliest", "--yes", *server, code=0)
    assert [(row["currentOffset"], row["lag"]) for row in rows("groups", "describe", "shown", *server)] == [
        (0, 5),
        (0, 5),
    ]
    refused = invoke("groups", "delete-offsets", "shown", "--topic", "shown:0", "--yes", *server, code=2)
    assert "whole topics" in refused.stderr
    invoke("groups", "delete-offsets", "shown", "--topic", "shown", "--yes", *server, code=0)
    assert rows("groups", "describe", "shown", *server) == []
    invoke("groups", "delete", "shown", "--yes", *server, code=0)
    assert "shown" not in {row["groupId"] for row in rows("groups", "list", *server)}


def test_a_group_with_members_cannot_be_changed(node: ApacheKafka) -> None:
    server = ("--bootstrap-server", node.bootstrap)

    async def scenario() -> None:
        topic, settings = await prepare(node.bootstrap, "busy", 2)
        async with ShareConsumer(settings, topics=[topic]) as consumer:
            await read(consumer, 2)

            def look() -> None:
                (row,) = rows("groups", "members", "busy", *server)
                assert row["assignment"] == [{"topic": "busy", "partitions": [0]}]
                assert row["memberId"] == consumer.member_id()
                refused = invoke("groups", "reset", "busy", "--topic", "busy", "--to-latest", "--yes", *server, code=1)
                assert "is Stable, with 1 member" in refused.stderr
                assert "NON_EMPTY_GROUP" in invoke("groups", "delete", "busy", "--yes", *server, code=1).output

            await asyncio.to_thread(look)

    asyncio.run(scenario())


def test_records_are_consumed_as_a_member(node: ApacheKafka) -> None:
    server = ("--bootstrap-server", node.bootstrap)
    asyncio.run(prepare(node.bootstrap, "consumed", 7))
    consume = ("records", "consume", "consumed", "--share-group", "consumed", *server, "-o", "jsonl")
    limited = invoke(*consume, "--max", "3", "-X", "share.acquire.mode=record_limit", code=0)
    assert limited.stdout.count("\n") == 3
    rest = invoke(*consume, code=0).stdout
    assert [int(each) for each in re.findall(r'"value":"(\d+)"', rest)] == [3, 4, 5, 6]
    assert invoke(*consume, code=0).stdout == ""
    assert "cannot be combined with --where" in invoke(*consume, "--where", "a=1", code=2).stderr


# --- Kafka's tools beside ours

TOOL = "kafka-share-groups"


def test_kafka_share_groups_lists_and_describes(compare: Compared) -> None:
    server = compare.bootstrap
    asyncio.run(some_done(server, "listed-shares"))
    asyncio.run(some_done(server, "another-share-group-with-a-long-name", partitions=1))
    compare(TOOL, "--list")
    compare(TOOL, "--list", "--state")
    compare(TOOL, "--list", "--state", "Empty,stable")
    wrong = invoke(TOOL, "--bootstrap-server", server, "--list", "--state", "wrong", code=1)
    assert wrong.stderr.startswith(
        "Invalid state list 'wrong'. Valid states are: "
    )  # in another order each time, in Java
    for shown in (
        ("--group", "listed-shares"),
        ("--group", "listed-shares", "--verbose"),
        ("--group", "listed-shares", "--members"),
        ("--group", "listed-shares", "--state"),
        ("--all-groups", "--state", "--verbose"),
        ("--all-groups",),
        ("--group", "nobody"),
    ):
        compare(TOOL, "--describe", *shown)


def test_kafka_share_groups_describes_members(compare: Compared) -> None:
    async def scenario() -> None:
        topic, settings = await prepare(compare.bootstrap, "member-shares", 4, 3)
        async with ShareConsumer({**settings, "client.id": "the-client"}, topics=[topic]) as consumer:
            await read(consumer, 4)

            def look() -> None:
                compare(TOOL, "--describe", "--group", "member-shares", "--members")
                compare(TOOL, "--describe", "--group", "member-shares", "--members", "--verbose")
                compare(TOOL, "--describe", "--group", "member-shares", "--state", "--verbose")
                compare(TOOL, "--delete", "--group", "member-shares")
                compare(
                    TOOL,
                    "--reset-offsets",
                    "--group",
                    "member-shares",
                    "--all-topics",
                    "--to-latest",
                    "--execute",
                    code=1,
                )
                compare(TOOL, "--delete-offsets", "--group", "member-shares", "--topic", "member-shares")

            await asyncio.to_thread(look)

    asyncio.run(scenario())


def test_kafka_share_groups_resets_and_deletes(compare: Compared) -> None:
    server = compare.bootstrap
    for name in ("reset-shares", "gone-shares"):
        asyncio.run(some_done(server, name))
    reset = ("--reset-offsets", "--group", "reset-shares")
    compare(TOOL, *reset, "--topic", "reset-shares", "--to-earliest", "--dry-run")
    compare(TOOL, *reset, "--topic", "reset-shares:1", "--to-latest", "--execute")
    compare(TOOL, *reset, "--all-topics", "--to-datetime", "2026-01-31T12:30:00.000", "--execute")
    compare(TOOL, *reset, "--topic", "not-there", "--to-latest", "--execute")
    compare(TOOL, *reset, "--topic", "reset-shares:9", "--to-latest", "--execute")
    compare(TOOL, "--reset-offsets", "--group", "new-shares", "--topic", "reset-shares", "--to-latest", "--execute")
    compare(TOOL, "--describe", "--group", "reset-shares")
    compare(TOOL, "--delete-offsets", "--group", "nobody", "--topic", "reset-shares")
    compare(TOOL, "--delete-offsets", "--group", "gone-shares", "--topic", "not-there")
    compare(TOOL, "--delete", "--group", "nobody")


@pytest.mark.parametrize(
    "line",
    [
        "",
        "--list --describe",
        "--describe",
        "--describe --group a --members --state",
        "--describe --group a --state Stable",
        "--list --group a",
        "--delete",
        "--delete --group a --all-groups",
        "--delete --group a --topic t",
        "--list --members",
        "--delete --group a --verbose",
        "--reset-offsets --group a --state",
        "--delete-offsets --group a",
        "--reset-offsets --group a --to-latest",
        "--reset-offsets --execute --group a --to-latest",
        "--reset-offsets --execute --group a --topic t",
        "--reset-offsets --execute --group a --topic t --to-latest --to-earliest",
        "--reset-offsets --execute --dry-run --group a --topic t --to-latest",
    ],
)
def test_kafka_share_groups_refuses(compare: Compared, line: str) -> None:
    compare(TOOL, *line.split(), code=1)


CONSOLE = "kafka-console-share-consumer"


@pytest.mark.parametrize(
    "line",
    [
        "--max-messages 2 --timeout-ms 20000 --release",
        "--max-messages 2 --timeout-ms 20000 --reject --formatter-property print.partition=true",
        "--timeout-ms 6000 --formatter-property print.headers=true --formatter-property print.epoch=true",
    ],
)
def test_kafka_console_share_consumer_prints_the_same_lines(node: ApacheKafka, line: str) -> None:
    shown = "--formatter-property print.delivery=true --formatter-property print.offset=true"
    printed = []
    for name in ("console-ours", "console-kafka"):
        own = f"{name}-{abs(hash(line)) % 10_000}"
        asyncio.run(prepare(node.bootstrap, own, 6))
        words = ["--bootstrap-server", node.bootstrap, "--topic", own, "--group", own, *line.split(), *shown.split()]
        if name == "console-ours":
            done = invoke(CONSOLE, *words)
            printed.append((done.exit_code, done.stdout, "Processed a total of" in done.stderr))
        else:
            theirs = run_tool(CONSOLE, *words, timeout_s=120)
            printed.append((theirs.returncode, theirs.stdout, "Processed a total of" in theirs.stderr))
    assert printed[0] == printed[1]
    assert printed[0][1]


@pytest.mark.parametrize("tool", [partial(run_tool, timeout_s=120), invoke], ids=["of Kafka", "ours"])
def test_kafka_console_share_consumer_has_a_group_of_its_own(node: ApacheKafka, tool: Callable[..., Any]) -> None:
    name = "console-share-consumer"
    server = ("--bootstrap-server", node.bootstrap)
    asyncio.run(prepare(node.bootstrap, name, 1))
    tool(CONSOLE, *server, "--topic", name, "--timeout-ms", "6000")
    (row,) = rows("groups", "describe", name, *server)
    assert (row["topic"], row["lag"]) == (name, 0)
    invoke("groups", "delete", name, "--yes", *server, code=0)


@pytest.mark.parametrize("line", ["--topic t --reject --release", "--topic t --group a --command-property group.id=b"])
def test_kafka_console_share_consumer_refuses(compare: Compared, line: str) -> None:
    compare(CONSOLE, *line.split(), code=1)
