"""docs/growing.md, run as it is written: blocks with a file's name are written, those with a node's name run until they are
replaced, the others run to their end. Only the ports are others.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import NamedTuple

import confluent_kafka as ck
import pytest
from tools.apache_kafka import HOST, ROOT, VERSION, Node, free_ports, write_home

from tests.crash.clients import committed, consumer, create_topic, producer, read, wait_until
from tests.crash.loads import Group, Load, Stream, Transactions, settled_first
from tests.crash.test_log_kill import Crew
from tests.interop.conftest import jars

pytestmark = pytest.mark.interop

PAGE = ROOT / "docs" / "growing.md"
PORTS = ("9092", "9093", "9192", "9193", "9292", "9293", "9392", "9393", "9492", "9493")
LIVE = "## Without stopping clients"
BLOCK = re.compile(r"^```(\w+) ?(.*)\n((?:.*\n)*?)```$", re.MULTILINE)
PLACES = [("orders", number) for number in range(3)]
BUSY = {  # so that clients of a short test see all of it
    "auto.create.topics.enable": "false",
    "offsets.topic.num.partitions": "3",
    "transaction.state.log.num.partitions": "3",
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "500",
    "group.consumer.min.heartbeat.interval.ms": "100",
    "group.consumer.heartbeat.interval.ms": "200",
}


class Block(NamedTuple):
    language: str
    about: str  # a file, a node, or what must be gone from the output; or nothing
    text: str


def blocks(*headings: str) -> list[Block]:
    """Blocks below these headings, or of all sections but those about the way without stopping."""
    sections = re.split("^(?=## )", PAGE.read_text(), flags=re.MULTILINE)
    wanted = [each for each in sections if (each.startswith(headings) if headings else not each.startswith(LIVE))]
    return [Block(*found) for found in BLOCK.findall("".join(wanted))]


class Reader:
    """Does what the page says."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.ports = dict(zip(PORTS, map(str, free_ports(len(PORTS))), strict=True))
        self.nodes: dict[str, Node] = {}
        self.settings = ""  # for all nodes, beside those of the page
        self.environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
        write_home(directory)

    def do(self, block: Block) -> str:
        text = re.sub("|".join(PORTS), lambda found: self.ports[found[0]], block.text)
        if block.language == "properties":
            (self.directory / block.about).write_text(text + self.settings)
        elif re.fullmatch(r"node\d", block.about):
            self._serve(block.about, text)
        elif block.about.startswith("after "):
            for name in block.about.split()[1:]:
                assert self.nodes.pop(name).stop(90) in (0, 143)
            return self._run(text)
        elif block.about:
            gone = re.findall(r'"(.*)"', block.about)[0]
            wait_until(lambda: gone not in self._run(text), gone, patience_s=240)
        else:
            return self._run(text)
        return ""

    def _serve(self, name: str, text: str) -> None:
        if name in self.nodes:
            assert self.nodes[name].stop(60) in (0, 143)
        address = (HOST, int(self.ports[f"9{int(name[-1]) - 1}92"]))
        ready = "Kafka Server started" if "kafka-server-start" in text else None
        path = self.environment["PATH"]
        command = ["env", f"PATH={path}", "sh", "-c", f"cd {self.directory} && exec {text.strip()}"]
        self.nodes[name] = Node(command, address, self.directory / f"{name}.log", ready)
        self.nodes[name].start()

    def _run(self, text: str) -> str:
        done = subprocess.run(
            ["sh", "-e", "-c", text],
            cwd=self.directory,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert done.returncode == 0, text + done.stdout + done.stderr
        return done.stdout

    def close(self) -> None:
        for node in self.nodes.values():
            node.kill()


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[Reader]:
    jars(VERSION)
    made = Reader(tmp_path)
    yield made
    made.close()


class Life:
    """A producer in the middle of a transaction, and a group at an offset."""

    def __init__(self, bootstrap: str) -> None:
        create_topic(bootstrap, "orders", len(PLACES))
        self.bootstrap = bootstrap
        self._once = producer(bootstrap, enable_idempotence=True)
        self.sent: list[bytes] = []
        self.send(3000)
        self._transactional = producer(bootstrap, transactional_id="shop", transaction_timeout_ms=900_000)
        self._transactional.init_transactions(60)
        self._transactional.begin_transaction()
        for number in range(30):
            self._transactional.produce("orders", b"in a transaction %d" % number, partition=number % 3)
        assert self._transactional.flush(60) == 0
        member = consumer(bootstrap, group_id="billing")
        member.commit(
            offsets=[ck.TopicPartition("orders", number, 100 + number) for number in range(3)], asynchronous=False
        )
        member.close()

    def send(self, count: int) -> None:
        begin = len(self.sent)
        for number in range(begin, begin + count):
            value = b"%d %s" % (number, b"x" * (number % 500))
            self._once.produce("orders", value, partition=number % 3)
            self.sent.append(value)
        assert self._once.flush(120) == 0

    def commit(self) -> None:
        self._transactional.commit_transaction(60)

    def check(self, bootstrap: str, *, is_committed: bool) -> None:
        found = [each.value for records in read(bootstrap, PLACES, "read_uncommitted").values() for each in records]
        mine = [value for value in found if not value.startswith(b"in a")]
        assert sorted(mine) == sorted(self.sent)
        seen = [each.value for records in read(bootstrap, PLACES, "read_committed").values() for each in records]
        assert sum(value.startswith(b"in a") for value in seen) == (30 if is_committed else 0)
        assert committed(bootstrap, "billing", PLACES) == {("orders", number): 100 + number for number in range(3)}


def test_the_page_leads_from_one_node_to_three_without_losing_a_record(reader: Reader) -> None:
    page = iter(blocks())
    bootstrap = f"{HOST}:{reader.ports['9092']}"
    for block in page:  # up to the first node
        reader.do(block)
        if block.about == "node1":
            break
    life = Life(bootstrap)
    for block in page:  # up to the switch, and what it shows
        shown = reader.do(block)
        if "--all-groups" in block.text:
            assert re.search(r"billing +orders +2 +102 ", shown), shown
            break
    life.check(bootstrap, is_committed=False)
    life.commit()
    life.send(300)
    for block in page:
        if "describe --replication" in block.text:
            assert len(voters(reader, block)) == 3
        else:
            reader.do(block)
    life.send(300)
    life.check(bootstrap, is_committed=True)
    reader.nodes["node1"].kill()  # what it had is elsewhere too
    others = f"{HOST}:{reader.ports['9192']},{HOST}:{reader.ports['9292']}"
    wait_until(lambda: answers(others), "the two that are left", patience_s=90)
    life.check(others, is_committed=True)


def test_nodes_join_replace_the_first_and_are_replaced_while_clients_work(reader: Reader) -> None:
    reader.settings = "".join(f"{name}={value}\n" for name, value in BUSY.items())
    for block in blocks("## Before"):
        reader.do(block)
    everyone = ",".join(f"{HOST}:{port}" for name, port in reader.ports.items() if name.endswith("92"))
    stream = Stream("orders", Random(1), enable_idempotence=True)
    groups = [Group(f"billing-{protocol}", Random(2), stream, protocol) for protocol in ("classic", "consumer")]
    loads: list[Load] = [stream, Transactions("shop", Random(3)), *groups]
    for load in loads:
        load.prepare(f"{HOST}:{reader.ports['9092']}" if load is stream else everyone)
    crew = Crew(loads)
    try:
        crew.work()
        for block in blocks(LIVE):
            before = [load.acknowledged for load in loads]
            reader.do(block)
            crew.raise_errors()
            if block.language == "sh":
                wait_for_all(loads, before, block.text)
        for load in settled_first(loads):
            if not isinstance(load, Group):
                crew.rest(load)
            load.settle()
            crew.rest(load)
        for load in loads:
            load.bootstrap = f"{HOST}:{reader.ports['9492']}"
            load.check()
    finally:
        crew.close()
        for load in loads:
            load.close()
    assert set(reader.nodes) == {"node5"}
    assert reader.nodes["node5"].stop(60) == 0


def wait_for_all(loads: list[Load], before: list[int], what: str) -> None:
    """Every client has had something acknowledged since."""

    def have_gone_on() -> bool:
        return all(load.acknowledged > count for load, count in zip(loads, before, strict=True))

    wait_until(have_gone_on, f"clients after {what}", 120)


def voters(reader: Reader, block: Block) -> list[str]:
    """They join one after the other."""
    deadline = time.monotonic() + 90
    while True:
        rows = [line.split() for line in reader.do(block).splitlines()[1:]]
        found = [row[0] for row in rows if row[-1] in ("Leader", "Follower")]
        if len(found) == 3 or time.monotonic() > deadline:
            return found


def answers(bootstrap: str) -> bool:
    try:
        return len(committed(bootstrap, "billing", PLACES)) == 3
    except ck.KafkaException:
        return False
