"""Applications of Kafka Streams 4.3.1 with `group.protocol=streams`: the same results as on Apache Kafka, also after kills.

The topologies are in java/Streams.java, compiled here. Each instance is a process of its own.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import shutil
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple, TypeVar

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from tools.apache_kafka import (
    TOOL_JVM,
    VERSION,
    ApacheKafka,
    Barnabas,
    Node,
    ensure,
    java_command,
    maven_jars,
    run_tool,
)

from barnabas.client import Admin, AlterConfigOp, AlterConfigOpType, ConfigResource, KafkaError
from barnabas.operations.security.node_settings import jaas_line
from barnabas.security.acl import AclEntry, AclOperation, AclPermissionType, PatternType, ResourceType
from tests.crash.clients import wait_until
from tests.interop.conftest import jars
from tests.interop.side_by_side import WITH_ACLS

pytestmark = pytest.mark.interop

SOURCE = Path(__file__).parent / "java" / "Streams.java"
EXACTLY_ONCE = "processing.guarantee=exactly_once_v2"
# What members wait for is soon. The records are old by their timestamps, and stay.
SETTINGS = {
    "log.retention.ms": "-1",
    "group.streams.initial.rebalance.delay.ms": "100",
    "group.streams.min.heartbeat.interval.ms": "300",
    "group.streams.heartbeat.interval.ms": "300",
    "group.streams.min.session.timeout.ms": "6000",
    "group.streams.session.timeout.ms": "6000",
}
PARTITIONS = 3
LIMIT_S = 90

T = TypeVar("T")
Row = tuple[str, str, int]
"""Key, value, time."""


@pytest.fixture(scope="module")
def application(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The command of an instance; its arguments follow."""
    jars(VERSION)
    if shutil.which("javac") is None:
        pytest.skip("javac is missing: install the package openjdk-17-jdk-headless")
    classes = tmp_path_factory.mktemp("classes")
    more = maven_jars(f"kafka-streams-{VERSION}", [("org.apache.kafka", "kafka-streams", VERSION)])
    libraries = f"{ensure(VERSION) / 'libs'}/*:{more}/*"
    done = subprocess.run(
        ["javac", "-Xlint:all,-classfile", "-d", str(classes), "-cp", libraries, str(SOURCE)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    *before, path, main = java_command(VERSION, TOOL_JVM, "tools", "Streams")
    return [*before, f"{classes}:{path}:{more}/*", main]


class Where(NamedTuple):
    """Ports of the instance that has a count and of its standbys, and the count, if the instance that was asked has it."""

    active: int
    standbys: tuple[int, ...]
    known: int | None


class Instance:
    """A running instance of an application."""

    def __init__(self, command: list[str], node: Node, topology: str, directory: Path, *settings: str) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._log = directory / "instance.log"
        arguments = [node.bootstrap, "app", topology, str(directory), *settings]
        with self._log.open("ab") as out:
            self._process = subprocess.Popen(
                [*command, *arguments], stdin=subprocess.PIPE, stdout=out, stderr=subprocess.STDOUT
            )

    @property
    def said(self) -> str:
        return self._log.read_text(errors="replace")

    def wait_running(self) -> None:
        self.wait_said("running")

    def wait_said(self, *wanted: str) -> str:
        """Wait until a line begins with one of these, and return it."""
        deadline = time.monotonic() + LIMIT_S
        while True:
            found = [line for line in self.said.splitlines() if line.startswith(wanted)]
            if found:
                return found[0]
            assert self._process.poll() is None and time.monotonic() < deadline, self.said[-3000:]
            time.sleep(0.1)

    def where_is(self, word: str) -> Where:
        """Ask the instance where the count of a word is, and for the count as it has it."""
        assert self._process.stdin is not None
        begin = len(self.said)
        self._process.stdin.write(f"{word}\n".encode())
        self._process.stdin.flush()
        deadline = time.monotonic() + LIMIT_S
        while not (
            line := re.search(r"^count of \w+: active (-?\d+) standby (\S*) here (\w+)\n", self.said[begin:], re.M)
        ):
            assert self._process.poll() is None and time.monotonic() < deadline, self.said[-3000:]
            time.sleep(0.02)
        active, standbys, count = line.groups()
        return Where(
            int(active),
            tuple(int(each) for each in standbys.split(",") if each),
            None if count == "null" else int(count),
        )

    def leave(self) -> None:
        """Close the application, which leaves its group."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        assert self._process.wait(LIMIT_S) == 0, self.said[-3000:]

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()
        with contextlib.suppress(BrokenPipeError):
            if self._process.stdin is not None:
                self._process.stdin.close()


@contextlib.contextmanager
def started(
    command: list[str], node: Node, topology: str, directory: Path, *settings: str, wait: bool = True
) -> Iterator[Instance]:
    instance = Instance(command, node, topology, directory, *settings)
    try:
        if wait:
            instance.wait_running()
        yield instance
    finally:
        instance.kill()


def create(node: Node, *topics: str) -> None:
    admin = AdminClient({"bootstrap.servers": node.bootstrap})
    made = admin.create_topics([NewTopic(name, PARTITIONS, 1) for name in topics], request_timeout=30)
    for each in made.values():
        each.result()


def produce(node: Node, rows: Mapping[str, list[Row]]) -> None:
    producer = Producer(
        {"bootstrap.servers": node.bootstrap, "enable.idempotence": True, "partitioner": "murmur2_random"}
    )
    for topic, of_topic in rows.items():
        for key, value, timestamp_ms in of_topic:
            producer.produce(topic, value, key, timestamp=timestamp_ms)
        assert producer.flush(LIMIT_S) == 0


def results(node: Node) -> list[tuple[str, str]]:
    """All committed records of the results, in the order of their partitions."""
    consumer = Consumer(
        {
            "bootstrap.servers": node.bootstrap,
            "group.id": "reader",
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
        }
    )
    consumer.assign([TopicPartition("results", partition, 0) for partition in range(PARTITIONS)])
    found: list[tuple[str, str]] = []
    ended: set[int] = set()
    deadline = time.monotonic() + LIMIT_S
    while len(ended) < PARTITIONS and time.monotonic() < deadline:
        message = consumer.poll(1)
        if message is None:
            continue
        key, value, partition = message.key(), message.value(), message.partition()
        if message.error() and partition is not None:
            ended.add(partition)
        elif key is not None and value is not None:
            found.append((key.decode(), value.decode()))
    consumer.close()
    return found


def settled(node: Node, expected: Mapping[str, str]) -> list[tuple[str, str]]:
    """The results when the last one of each key is as expected."""
    deadline = time.monotonic() + LIMIT_S
    while True:
        found = results(node)
        if dict(found) == expected or time.monotonic() > deadline:
            assert dict(found) == expected
            return found
        time.sleep(0.5)


def lines(first: int, count: int) -> list[Row]:
    words = ("red", "green", "blue", "white", "black", "grey", "brown")
    texts = (f"{words[number % 7]} {words[number % 5]} {words[number % 3]}" for number in range(first, first + count))
    return [(f"k{number % 11}", text, 1_000_000 + 100 * number) for number, text in enumerate(texts, first)]


def word_counts(count: int) -> dict[str, str]:
    found = Counter(word for _, text, _ in lines(0, count) for word in text.split())
    return {word: str(number) for word, number in found.items()}


def window_counts(count: int) -> dict[str, str]:
    found = Counter(f"{key}@{at // 10_000 * 10_000}" for key, _, at in lines(0, count))
    return {window: str(number) for window, number in found.items()}


ORDERS: list[Row] = [(f"o{number}", f"c{number % 5} thing{number}", 2_000_000 + number * 100) for number in range(60)]
PAYMENTS: list[Row] = [(f"o{number}", f"{number} EUR", 2_000_050 + number * 100) for number in range(0, 60, 2)]
ORDERED = {key: value for key, value, _ in ORDERS}
JOINED = {
    **{key: f"{key} {value} by name of {value.split()[0]}" for key, value, _ in ORDERS},
    **{f"{key} paid": f"{ORDERED[key]} paid {value}" for key, value, _ in PAYMENTS},
}
CASES: dict[str, tuple[dict[str, list[Row]], dict[str, str]]] = {
    "words": ({"lines": lines(0, 300)}, word_counts(300)),
    "windows": ({"lines": lines(0, 300)}, window_counts(300)),
    "joins": (
        {
            "customers": [(f"c{number}", f"name of c{number}", 1_000_000) for number in range(5)],
            "orders": ORDERS,
            "payments": PAYMENTS,
        },
        JOINED,
    ),
}


def side_by_side(work: Callable[[Node, str], T]) -> tuple[T, T]:
    """What happens on barnabas, and on Apache Kafka."""
    with ApacheKafka(SETTINGS) as kafka, Barnabas(SETTINGS) as barnabas, ThreadPoolExecutor(2) as pool:
        theirs, ours = pool.submit(work, kafka, "theirs"), pool.submit(work, barnabas, "ours")
        return ours.result(), theirs.result()


@pytest.mark.parametrize("guarantee", ["at_least_once", "exactly_once_v2"])
@pytest.mark.parametrize("topology", CASES)
def test_an_application_has_the_same_results_as_on_apache_kafka(
    topology: str, guarantee: str, application: list[str], tmp_path: Path
) -> None:
    rows, expected = CASES[topology]

    def work(node: Node, name: str) -> tuple[list[tuple[str, str]], list[str]]:
        create(node, *rows, "results")
        produce(node, rows)
        with started(application, node, topology, tmp_path / name, f"processing.guarantee={guarantee}") as instance:
            found = settled(node, expected)
            instance.leave()
        listed = run_tool("kafka-topics", "--bootstrap-server", node.bootstrap, "--list").stdout.split()
        return sorted(found), sorted(each for each in listed if each.startswith("app-"))

    ours, theirs = side_by_side(work)
    assert ours == theirs


def test_two_instances_come_and_go_while_the_broker_is_killed(application: list[str], tmp_path: Path) -> None:
    """Exactly once: each word is counted once, and each count is written once, whatever was killed."""
    total = 0

    def add(node: Node, count: int) -> dict[str, str]:
        nonlocal total
        produce(node, {"lines": lines(total, count)})
        total += count
        return word_counts(total)

    settings = (EXACTLY_ONCE, "num.stream.threads=2", "producer.transaction.timeout.ms=10000")
    with Barnabas(SETTINGS, directory=tmp_path / "node") as node:
        create(node, "lines", "results")
        with started(application, node, "words", tmp_path / "first", *settings) as first:
            settled(node, add(node, 200))
            with started(application, node, "words", tmp_path / "second", *settings, wait=False) as second:
                expected = add(node, 200)
                node.kill()
                node.start()
                settled(node, expected)
                second.wait_running()
                first.leave()
                expected = add(node, 200)
                node.kill()
                node.start()
                settled(node, expected)
                expected = add(node, 200)
                second.kill()
        with started(application, node, "words", tmp_path / "second", *settings, wait=False):
            expected = add(node, 100)
            found = settled(node, expected)
        assert "Traceback" not in node.log.read_text()
    # No count is missing and none is there twice.
    assert sorted(found) == sorted(
        (word, str(count)) for word, last in expected.items() for count in range(1, int(last) + 1)
    )


@pytest.mark.parametrize("is_first_ours", [True, False], ids=["barnabas first", "Apache Kafka first"])
def test_an_application_goes_on_when_its_directory_moves(
    is_first_ours: bool, application: list[str], tmp_path: Path
) -> None:
    order = (Barnabas, ApacheKafka, Barnabas) if is_first_ours else (ApacheKafka, Barnabas, ApacheKafka)
    total = 0
    for turn, make in enumerate(order):
        with make(SETTINGS, directory=tmp_path / "node") as node:
            if not turn:
                create(node, "lines", "results")
            produce(node, {"lines": lines(total, 100)})
            total += 100
            with started(application, node, "words", tmp_path / f"state {turn}", EXACTLY_ONCE) as instance:
                found = settled(node, word_counts(total))
                if turn != 1:
                    instance.leave()
            # In the middle turn, the member is still in the group when the node stops, and the next one fences it.
            node.stop()
    last = word_counts(total)
    assert sorted(found) == sorted((word, str(n)) for word, count in last.items() for n in range(1, int(count) + 1))


def test_an_application_waits_for_its_source_topic(application: list[str], tmp_path: Path) -> None:
    def work(node: Node, name: str) -> str:
        create(node, "results")
        with started(application, node, "words", tmp_path / name, wait=False) as instance:
            error = instance.wait_said("error")
            create(node, "lines")
            produce(node, {"lines": lines(0, 50)})
            settled(node, word_counts(50))
            instance.leave()
        return re.sub(r"\d+ms", "a while", error)

    ours, theirs = side_by_side(work)
    assert ours == theirs
    assert ours.startswith("error MissingSourceTopicException: ")


def test_counts_are_found_at_the_instance_that_has_them_and_its_standby_takes_over(
    application: list[str], tmp_path: Path
) -> None:
    """Interactive queries: each instance knows the endpoints of all. The ports are names only; nobody listens there."""
    expected = {word: int(count) for word, count in word_counts(300).items()}

    async def want_standbys(node: Node) -> None:
        async with Admin({"bootstrap.servers": node.bootstrap}) as admin:
            op = AlterConfigOp("streams.num.standby.replicas", AlterConfigOpType.SET, "1")
            results = await admin.incremental_alter_configs({ConfigResource.group("app"): [op]})
            assert set(results.values()) == {None}

    def work(node: Node, name: str) -> None:
        create(node, "lines", "results")
        asyncio.run(want_standbys(node))
        produce(node, {"lines": lines(0, 300)})
        ports = (11, 12)
        commands = [tmp_path / name / str(port) for port in ports]
        first, second = (
            started(application, node, "words", directory, f"application.server=localhost:{port}")
            for directory, port in zip(commands, ports, strict=True)
        )
        with second as survivor:
            with first as other:
                settled(node, {word: str(count) for word, count in expected.items()})
                instances = dict(zip(ports, (other, survivor), strict=True))

                def is_spread() -> bool:
                    found = {word: [each.where_is(word) for each in instances.values()] for word in expected}
                    return {each.active for rows in found.values() for each in rows} == set(ports) and all(
                        row.standbys == (sum(ports) - row.active,)
                        and instances[row.active].where_is(word).known == expected[word]
                        for word, rows in found.items()
                        for row in rows
                    )

                wait_until(is_spread, "both instances have counts, and standbys of each other's")
            # The first was killed. Its counts are at its standby.
            wait_until(
                lambda: all(survivor.where_is(word) == (ports[1], (), count) for word, count in expected.items()),
                "the other instance has all counts",
            )
            survivor.leave()

    side_by_side(work)


PERMISSIONS = [
    ("GROUP", "app", "LITERAL", "READ"),
    *(("TOPIC", name, "LITERAL", "DESCRIBE") for name in ("lines", "results")),
    ("TOPIC", "lines", "LITERAL", "READ"),
    ("TOPIC", "results", "LITERAL", "WRITE"),
    *(("TOPIC", "app-", "PREFIXED", operation) for operation in ("CREATE", "READ", "WRITE", "DELETE")),
    ("TRANSACTIONAL_ID", "app-", "PREFIXED", "WRITE"),
]
"""Those of the table in docs/streams-groups.md."""
WITH_LOGINS = {
    **SETTINGS,
    **WITH_ACLS,
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT",
    "sasl.enabled.mechanisms": "PLAIN",
    "listener.name.sasl_plaintext.plain.sasl.jaas.config": jaas_line("PLAIN", ("node", "x"), {"app": "y"}),
}


def test_an_application_needs_the_permissions_in_the_guide_and_no_more(application: list[str], tmp_path: Path) -> None:
    """Exactly once, with internal topics that its own principal creates. Without CREATE, it waits for them."""

    async def allow(node: Node, rows: list[tuple[str, str, str, str]]) -> None:
        entries = [
            AclEntry(
                ResourceType[kind],
                name,
                PatternType[pattern],
                "User:app",
                "*",
                AclOperation[operation],
                AclPermissionType.ALLOW,
            )
            for kind, name, pattern, operation in rows
        ]
        async with Admin({"bootstrap.servers": node.bootstrap}) as admin:
            assert set((await admin.create_acls(entries)).values()) == {None}

    async def state(node: Node) -> str | None:
        async with Admin({"bootstrap.servers": node.bootstrap}) as admin:
            group = (await admin.describe_streams_groups(["app"]))["app"]
            return None if isinstance(group, KafkaError) else group.state

    def work(node: ApacheKafka | Barnabas, name: str) -> None:
        host, port = node.addresses["SASL_PLAINTEXT"]
        login = (
            f"bootstrap.servers={host}:{port}",
            "security.protocol=SASL_PLAINTEXT",
            "sasl.mechanism=PLAIN",
            f"sasl.jaas.config={jaas_line('PLAIN', ('app', 'y'), {})}",
        )
        create(node, "lines", "results")
        produce(node, {"lines": lines(0, 100)})
        creating = [each for each in PERMISSIONS if each[3] == "CREATE"]
        asyncio.run(allow(node, [each for each in PERMISSIONS if each not in creating]))
        with started(application, node, "words", tmp_path / name, *login, EXACTLY_ONCE, wait=False) as instance:
            wait_until(lambda: asyncio.run(state(node)) == "NotReady", "it has joined")
            asyncio.run(allow(node, creating))
            found = settled(node, word_counts(100))
            assert len(found) == 300  # each count once
            instance.leave()

    with (
        ApacheKafka(WITH_LOGINS, more_listeners=("SASL_PLAINTEXT",)) as kafka,
        Barnabas(WITH_LOGINS, more_listeners=("SASL_PLAINTEXT",)) as barnabas,
        ThreadPoolExecutor(2) as pool,
    ):
        runs = pool.submit(work, kafka, "theirs"), pool.submit(work, barnabas, "ours")
        for run in runs:
            run.result()


def test_a_fatal_error_shuts_the_whole_application_down(application: list[str], tmp_path: Path) -> None:
    def work(node: Node, name: str) -> list[str]:
        create(node, "lines", "results")
        produce(node, {"lines": lines(0, 50)})
        with (
            started(application, node, "words", tmp_path / name / "1") as first,
            started(application, node, "words", tmp_path / name / "2") as second,
        ):
            settled(node, word_counts(50))
            produce(node, {"lines": [("k", "shut down", 1_000_000)]})
            return [instance.wait_said("pending_error") for instance in (first, second)]

    ours, theirs = side_by_side(work)
    assert ours == theirs


def test_another_topology_is_refused_and_the_application_goes_on(application: list[str], tmp_path: Path) -> None:
    def work(node: Node, name: str) -> str:
        create(node, "lines", "results")
        with (
            started(application, node, "words", tmp_path / name / "1") as first,
            started(application, node, "windows", tmp_path / name / "2", wait=False) as other,
        ):
            error = other.wait_said("error")
            produce(node, {"lines": lines(0, 50)})
            settled(node, word_counts(50))
            first.leave()
        return error

    ours, theirs = side_by_side(work)
    assert ours == theirs
