"""Apache Kafka on bare directories, as a measure of what is tolerated, and on what barnabas made of them."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from tools.apache_kafka import SMALL_JVM, VERSION, Node, java_command

from tests.broker.test_bare_directory import LOGS, Bare, check, described, make, started

pytestmark = pytest.mark.interop


def check_kafka(bare: Bare, tmp_path: Path) -> None:
    command = [*java_command(VERSION, SMALL_JVM, "server", "kafka.Kafka"), str(bare.properties)]
    with Node(command, ("127.0.0.1", bare.ports[0]), tmp_path / "kafka.log", "Kafka Server started"):
        check(bare, *asyncio.run(described(bare)))


@pytest.mark.parametrize("case", LOGS)
def test_kafka_reads_what_barnabas_reads(case: str, tmp_path: Path) -> None:
    check_kafka(make(tmp_path, LOGS[case]()), tmp_path)


@pytest.mark.parametrize("case", ["with gaps", "with repeated deltas"])
def test_kafka_goes_on_where_barnabas_stopped(case: str, tmp_path: Path) -> None:
    bare = make(tmp_path, LOGS[case]())

    async def run() -> None:
        node = await started(bare)
        check(bare, *await described(bare))
        await node.stop()

    asyncio.run(run())
    check_kafka(bare, tmp_path)
