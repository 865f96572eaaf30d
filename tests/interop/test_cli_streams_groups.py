"""Streams groups: Kafka's kafka-streams-groups beside ours, against Apache Kafka."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest
from tools.apache_kafka import VERSION, ApacheKafka

from barnabas.client import Admin, TopicPartition
from tests.cli.commands.test_groups_of_any_type import GROUP, beat, join
from tests.client.admin.group_scenes import fill
from tests.client.record_scenes import create
from tests.interop.conftest import jars
from tests.interop.test_cli_groups import Compared

pytestmark = pytest.mark.interop

TOOL = "kafka-streams-groups"


@pytest.fixture(scope="module")
def node() -> Iterator[ApacheKafka]:
    jars(VERSION)
    with ApacheKafka({"group.streams.initial.rebalance.delay.ms": "0"}) as node:
        yield node


@pytest.fixture
def compare(node: ApacheKafka) -> Iterator[Compared]:
    compared = Compared(node.bootstrap)
    yield compared
    mine, theirs = ([each[at] for each in compared.differences] for at in (0, 1))
    assert mine == theirs


def test_kafka_streams_groups_prints_the_same_lines(compare: Compared) -> None:
    async def scenario() -> None:
        await create(compare.bootstrap, "words", 2)
        await asyncio.to_thread(fill, compare.bootstrap, "words", 0, 5)
        async with Admin({"bootstrap.servers": compare.bootstrap}) as admin:
            await join(admin)
            await asyncio.to_thread(_with_a_member, compare)
            await beat(admin, -1)
            assert set((await admin.alter_consumer_group_offsets(GROUP, {TopicPartition("words", 0): 3})).values()) == {
                None
            }
            await asyncio.to_thread(_without_members, compare)

    asyncio.run(scenario())


def _with_a_member(compare: Compared) -> None:
    compare(TOOL, "--list")
    compare(TOOL, "--list", "--state")
    for shown in ("", "--verbose", "--members", "--members --verbose", "--state", "--state --verbose"):
        compare(TOOL, "--describe", "--group", GROUP, *shown.split())
    compare(TOOL, "--delete", "--group", GROUP)
    compare(TOOL, "--delete-offsets", "--group", GROUP, "--input-topic", "words")
    compare(TOOL, "--reset-offsets", "--group", GROUP, "--all-input-topics", "--to-latest", "--execute")


def _without_members(compare: Compared) -> None:
    for shown in ("", "--members", "--state"):
        compare(TOOL, "--describe", "--group", GROUP, *shown.split())
    reset = ("--reset-offsets", "--group", GROUP)
    compare(TOOL, *reset, "--all-input-topics", "--to-earliest", "--dry-run")
    compare(TOOL, *reset, "--input-topic", "words:1", "--to-latest", "--dry-run")
    compare(TOOL, *reset, "--input-topic", "words:0", "--to-offset", "2", "--execute")
    compare(TOOL, *reset, "--all-input-topics", "--to-latest", "--export", "--dry-run")
    compare(TOOL, "--delete-offsets", "--group", "nobody", "--input-topic", "words")
    compare(TOOL, "--delete-offsets", "--group", GROUP, "--input-topic", "words:1")
    compare(TOOL, "--delete", "--group", "nobody")


@pytest.mark.parametrize(
    "line",
    [
        "",
        "--list --group x",
        "--describe",
        "--describe --group a --members --state",
        "--delete",
        "--delete-offsets --group a",
        "--reset-offsets --to-latest --execute",
        "--reset-offsets --group a --to-latest --to-earliest --execute",
        "--reset-offsets --group a --to-latest --execute",
    ],
)
def test_kafka_streams_groups_refuses(compare: Compared, line: str) -> None:
    compare(TOOL, *line.split(), code=1)
