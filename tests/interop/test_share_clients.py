"""Share consumers and tools that others wrote: what they see on barnabas is what they see on Apache Kafka."""

from __future__ import annotations

import asyncio
import functools
import re
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import confluent_kafka as ck
import pytest
from tools.apache_kafka import VERSION, ApacheKafka, Barnabas

from barnabas.client import ShareConsumer
from tests.client.share_scenes import BROKER_CONFIGS, prepare, read, write
from tests.crash.clients import wait_until
from tests.interop.conftest import jars
from tests.interop.java_program import compiled, printed
from tests.interop.side_by_side import SideBySide

pytestmark = pytest.mark.interop

# What is seen, and what must be among it: two brokers that both fail alike would be the same too.
SCENARIOS = {
    "implicit": "what the close released [15:15#2, 16:16#2, 17:17#2, 18:18#2, 19:19#2]",
    "explicit": "released by that [9:9#2, 10:10#2, 11:11#2]",
    "limit": "after the limit [4:4#1, 5:5#1]",
    "renewal": "commit {java-renewal-0=done}",
    "locks": "in time {java-locks-0=done}",
    "two-members": "records 100, each once: true",
    "isolation": "read_committed 15 round 3",
    "record-limit": "rest [0:0#2, 1:1#2, 2:2#2]",
}


@pytest.fixture(scope="module")
def nodes() -> Iterator[SideBySide]:
    jars(VERSION)
    with ApacheKafka(BROKER_CONFIGS) as kafka, Barnabas(BROKER_CONFIGS) as barnabas:
        yield SideBySide(kafka, barnabas)
        assert barnabas.stop() == 0
        said = barnabas.log.read_text()
    assert "Traceback" not in said, said


@pytest.fixture(scope="module")
def shares(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The command that runs the scenarios; an address and their names follow."""
    return compiled("Shares", tmp_path_factory.mktemp("classes"))


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_the_java_share_consumer_sees_the_same(scenario: str, nodes: SideBySide, shares: list[str]) -> None:
    with ThreadPoolExecutor(2) as pool:
        runs = [pool.submit(printed, shares, node.bootstrap, scenario) for node in (nodes.barnabas, nodes.kafka)]
        (code, ours, error), (_, theirs, _) = (run.result() for run in runs)
    assert code == 0, ours + error
    assert SCENARIOS[scenario] in ours.splitlines()
    assert ours.splitlines() == theirs.splitlines()


# --- librdkafka


def test_librdkafka_accepts_releases_and_rejects(nodes: SideBySide) -> None:
    name = "librdkafka"
    asyncio.run(prepare(nodes.barnabas.bootstrap, name, 9))
    kinds = (ck.AcknowledgeType.ACCEPT, ck.AcknowledgeType.RELEASE, ck.AcknowledgeType.REJECT)
    settings = {"bootstrap.servers": nodes.barnabas.bootstrap, "group.id": name}
    with ck.ShareConsumer({**settings, "share.acknowledgement.mode": "explicit"}) as consumer:
        consumer.subscribe([name])
        first = messages(consumer, 9)
        for message in first:
            consumer.acknowledge(message, kinds[offset_of(message) % 3])
        results = consumer.commit_sync(20.0)
        assert list(results.values()) == [None]
        again = messages(consumer, 3)
        assert [offset_of(message) for message in again] == [1, 4, 7]
        for message in again:
            consumer.acknowledge(message)
    with ck.ShareConsumer(settings) as consumer:  # implicitly
        consumer.subscribe([name])
        asyncio.run(write(nodes.barnabas.bootstrap, name, range(9, 12)))
        assert [offset_of(message) for message in messages(consumer, 3)] == [9, 10, 11]
        assert list(consumer.commit_sync(20.0).values()) == [None]


def messages(consumer: ck.ShareConsumer, count: int) -> list[ck.Message]:
    """Poll until there are so many messages."""
    found: list[ck.Message] = []
    deadline = time.monotonic() + 60
    while len(found) < count:
        assert time.monotonic() < deadline, found
        for message in consumer.poll(1.0):
            assert message.error() is None, message.error()
            found.append(message)
    return found


def offset_of(message: ck.Message) -> int:
    offset = message.offset()
    assert offset is not None
    return offset


# --- Kafka's tools


def consumed(nodes: SideBySide, name: str) -> None:
    """A group on each node that has accepted the first 4 of 10 records, and is without members."""

    async def on(bootstrap: str) -> None:
        topic, settings = await prepare(bootstrap, name, 10)
        async with ShareConsumer({**settings, "share.acquire.mode": "record_limit"}, topics=[topic]) as consumer:
            assert len(await read(consumer, 4, max_records=4)) == 4
            assert set((await consumer.commit()).values()) == {None}

    for node in (nodes.barnabas, nodes.kafka):
        asyncio.run(on(node.bootstrap))


def test_kafka_share_groups_says_the_same(nodes: SideBySide) -> None:
    consumed(nodes, "told")
    tool = "kafka-share-groups {server} "
    offsets = nodes.same(f"{tool} --describe --group told")
    assert re.search(r"told +told +0 .* 6\s", offsets), offsets
    nodes.same(f"{tool} --describe --group told --verbose")
    assert "Empty" in nodes.same(f"{tool} --describe --group told --state")
    nodes.same(f"{tool} --describe --group told --members")
    assert "Group nobody not found" in nodes.same(f"{tool} --describe --group nobody")
    nodes.same(f"{tool} --reset-offsets --group told --topic told --to-earliest --dry-run")
    nodes.same(f"{tool} --reset-offsets --group told --topic told --to-earliest --execute")
    assert re.search(r"told +told +0 .* 10\s", nodes.same(f"{tool} --describe --group told"))
    nodes.same(f"{tool} --delete-offsets --group told --topic told")
    nodes.same(f"{tool} --delete --group told")
    theirs, ours = nodes.each(f"{tool} --delete --group told")
    assert ours == theirs


def test_kafka_console_share_consumer_prints_the_same(nodes: SideBySide) -> None:
    for node in (nodes.barnabas, nodes.kafka):
        asyncio.run(prepare(node.bootstrap, "printed", 6))
    tool = (
        "kafka-console-share-consumer {server} --topic printed --group printed --formatter-property print.delivery=true"
    )
    nodes.same(f"{tool} --formatter-property print.offset=true --timeout-ms 15000 --max-messages 6 --release")
    assert "Delivery:2" in nodes.same(f"{tool} --timeout-ms 15000 --max-messages 6")


# --- kills


def has_accepted(said: Path, count: int) -> bool:
    return said.read_text().count("accepted") >= count


def test_the_java_share_consumer_outlives_kills(tmp_path: Path, shares: list[str]) -> None:
    """Everything is accepted in the end, and nothing comes again that the broker had accepted."""
    count, topic = 300, "outlived"
    with Barnabas(BROKER_CONFIGS, directory=tmp_path) as node:
        asyncio.run(prepare(node.bootstrap, topic, 0, share_record_lock_duration_ms="2000"))
        said = tmp_path / "said"
        with (
            said.open("w") as out,
            subprocess.Popen([*shares, node.bootstrap, "work", topic, str(count)], stdout=out) as work,
        ):
            try:
                for start in range(0, count, 100):
                    asyncio.run(write(node.bootstrap, topic, range(start, start + 100)))
                    wait_until(functools.partial(has_accepted, said, start + 1), "the member works")
                    node.kill()
                    node.start()
                wait_until(lambda: work.poll() is not None, "the member is done")
            finally:
                work.kill()
        assert work.returncode == 0
        accepted: set[int] = set()
        for what, number, *_ in (line.split() for line in said.read_text().splitlines()):
            if what == "accepted":
                accepted.add(int(number))
            else:
                assert int(number) not in accepted, f"{number} came again"
        assert accepted == set(range(count))
        assert node.stop() == 0
        assert "Traceback" not in node.log.read_text()
