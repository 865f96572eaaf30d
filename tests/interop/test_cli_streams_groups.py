"""Streams groups: Kafka's kafka-streams-groups beside ours, against Apache Kafka."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest
from tools.apache_kafka import VERSION, ApacheKafka, run_tool

from barnabas.client import Admin, TopicPartition
from tests.cli.commands.test_groups_of_any_type import GROUP, beat, counting, join, subtopology
from tests.client.admin.group_scenes import fill
from tests.client.record_scenes import create
from tests.command_line import invoke
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


class Twins:
    """Two groups of the same topology: Kafka's tool changes one, and ours the other. Their lines must be the same."""

    def __init__(self, bootstrap: str, name: str) -> None:
        self.bootstrap = bootstrap
        self.groups = (f"{name}-1", f"{name}-2")

    def __call__(self, line: str) -> str:
        words = [["--bootstrap-server", self.bootstrap, *line.format(group=group).split()] for group in self.groups]
        theirs, ours = run_tool(TOOL, *words[0], timeout_s=120), invoke(TOOL, *words[1])
        said = [
            sorted(text.replace(group, "GROUP").splitlines())
            for text, group in zip((theirs.stdout, ours.stdout), self.groups, strict=True)
        ]
        assert (ours.exit_code, said[1]) == (theirs.returncode, said[0])
        return ours.stdout

    async def begin(self, admin: Admin, *more: str) -> None:
        """Let a member of each group get all tasks, commit offsets in all input of its tasks, and leave."""
        for group in self.groups:
            parts = counting(group)
            if more:
                parts.append(subtopology(2, "words", state_changelog_topics=list(more)))
            await join(admin, group, parts)
            await beat(admin, -1, group)
            repartition = f"{group}-by-word-repartition"
            places = [TopicPartition(topic, index) for topic in ("words", repartition) for index in (0, 1)]
            results = await admin.alter_consumer_group_offsets(group, dict.fromkeys(places, 0))
            assert set(results.values()) == {None}

    async def topics(self, admin: Admin) -> list[set[str]]:
        """What is left of the internal topics of each group."""
        names = [each.name for each in await admin.list_topics()]
        return [{each[len(group) :] for each in names if each.startswith(f"{group}-")} for group in self.groups]


def test_kafka_streams_groups_deletes_internal_topics(node: ApacheKafka) -> None:
    both = {"-by-word-repartition", "-counts-changelog"}
    every = "--reset-offsets --group {group} --all-input-topics --to-latest"

    async def scenario() -> None:
        await create(node.bootstrap, "words", 2)
        await asyncio.to_thread(fill, node.bootstrap, "words", 0, 5)
        async with Admin({"bootstrap.servers": node.bootstrap}) as admin:
            reset = Twins(node.bootstrap, "reset")
            await reset.begin(admin)
            said = await asyncio.to_thread(reset, f"{every} --dry-run")
            assert "words" in said and "repartition" not in said  # the application fills that topic itself
            await asyncio.to_thread(reset, every + " --execute --delete-internal-topic {group}-nowhere")
            assert await reset.topics(admin) == [both, both]
            await asyncio.to_thread(reset, every + " --execute --delete-internal-topic {group}-counts-changelog")
            assert await reset.topics(admin) == [{"-by-word-repartition"}] * 2
            await asyncio.to_thread(reset, "--delete --group {group} --delete-all-internal-topics")
            assert await reset.topics(admin) == [set()] * 2

            whole = Twins(node.bootstrap, "whole")
            await whole.begin(admin, "odd-name")
            said = await asyncio.to_thread(whole, f"{every} --execute --delete-all-internal-topics")
            assert "'odd-name' is not inferred as internal" in said
            assert await whole.topics(admin) == [set()] * 2
            await asyncio.to_thread(whole, "--delete-offsets --group {group} --all-input-topics")
            said = await asyncio.to_thread(whole, "--delete --group {group} --delete-all-internal-topics")
            assert "could not be deleted" in said

            plain = Twins(node.bootstrap, "plain")
            await plain.begin(admin)
            await asyncio.to_thread(plain, "--delete --group {group} --group nobody --delete-all-internal-topics")
            assert await plain.topics(admin) == [set()] * 2

    asyncio.run(scenario())


def test_kafka_streams_groups_shows_several_subtopologies(compare: Compared) -> None:
    async def scenario() -> None:
        await create(compare.bootstrap, "several", 2)
        parts = [subtopology(0, "several"), subtopology(1, "several", state_changelog_topics=["parts-s-changelog"])]
        async with Admin({"bootstrap.servers": compare.bootstrap}) as admin:
            await join(admin, "parts", parts)
            for shown in ("", "--verbose", "--members", "--members --verbose"):
                words = ("--describe", "--group", "parts", *shown.split())
                await asyncio.to_thread(compare, TOOL, *words)
            await beat(admin, -1, "parts")
            # Of a failed action, Kafka's tool also prints a stack trace.
            for line in (
                "--reset-offsets --group parts --execute --to-latest --input-topic several --input-topic nowhere",
                "--reset-offsets --group nobody --all-input-topics --to-latest --dry-run",
            ):
                words = ("--bootstrap-server", compare.bootstrap, *line.split())
                theirs = await asyncio.to_thread(run_tool, TOOL, *words, timeout_s=120)
                mine = await asyncio.to_thread(invoke, TOOL, *words)
                assert (mine.exit_code, mine.stdout) == (theirs.returncode, theirs.stdout)
                assert mine.exit_code == 1
            await asyncio.to_thread(compare, TOOL, "--delete-offsets", "--group", "parts", "--input-topic", "nowhere")

    asyncio.run(scenario())


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
        "--list --members",
        "--delete --group a --verbose",
        "--delete --group a --state",
        "--delete --group a --input-topic t",
        "--delete --group a --execute",
        "--describe --group a --input-topic t",
        "--delete-offsets --group a --group b --input-topic t",
        "--describe --group a --delete-all-internal-topics",
        "--reset-offsets --group a --all-input-topics --to-latest --dry-run --delete-all-internal-topics",
        "--delete --group a --delete-internal-topic t",
    ],
)
def test_kafka_streams_groups_refuses(compare: Compared, line: str) -> None:
    compare(TOOL, *line.split(), code=1)
