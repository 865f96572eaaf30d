"""One data directory with records, groups and transactions, used in turn by barnabas and by Apache Kafka.

Both listen at the same address, so that clients do not notice who answers: they go on with their transactions, sequences and
groups. Between the two is a clean stop or a kill. Who starts finds exactly what the other had.
"""

from __future__ import annotations

import random
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import confluent_kafka as ck
import pytest
from tools.apache_kafka import ApacheKafka, Barnabas

from tests.crash.clients import (
    Found,
    Place,
    committed,
    consumer,
    create_topic,
    place_of,
    producer,
    read,
    retried,
    wait_until,
)
from tests.crash.loads import Group, Load, Transactions, settled_first
from tests.crash.test_log_kill import BUSY, INTERNAL_TOPICS, STATE, Crew, groups, housekeeping, records
from tests.interop.conftest import jars
from tests.interop.side_by_side import IN_A_HURRY

with warnings.catch_warnings():  # its own way to read its schemas is deprecated in Python 3.11
    warnings.simplefilter("ignore", DeprecationWarning)
    from kafka import KafkaAdminClient, TopicPartition
    from kafka.errors import KafkaError

pytestmark = pytest.mark.interop

Node = ApacheKafka | Barnabas

SETTINGS = {
    **IN_A_HURRY,
    "auto.create.topics.enable": "false",
    "offsets.topic.num.partitions": "3",
    "transaction.state.log.num.partitions": "3",
    "log.initial.task.delay.ms": "500",
    "log.cleaner.backoff.ms": "300",
    "metadata.log.max.record.bytes.between.snapshots": "4000",
}
TOPICS = {
    "plain": {"compression.type": "producer", "index.interval.bytes": "500"},
    "transacted": {"segment.bytes": "1048576"},
    "rolling": {"segment.bytes": "1048576", "index.interval.bytes": "1000"},
    "compacted": {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01", "segment.ms": "100"},
}
PARTITIONS = 2
EXACT = [(topic, number) for topic in ("plain", "transacted", "rolling") for number in range(PARTITIONS)]
GROUPS = ("by-hand", "in-transactions", "live-classic", "live-consumer")


def pair(directory: Path, settings: dict[str, str]) -> tuple[Barnabas, ApacheKafka]:
    """Both for one directory and one address; one of them may run at a time."""
    jars("4.3.1")
    ours, theirs = Barnabas(settings, directory=directory), ApacheKafka(settings, directory=directory)
    theirs.address, theirs.controller = ours.address, ours.controller
    theirs.properties["listeners"] = ours.properties["listeners"]
    theirs.properties["controller.quorum.bootstrap.servers"] = ours.controller
    theirs.properties["node.id"] = "1"
    return ours, theirs


class State(NamedTuple):
    """What a directory is to clients."""

    records: dict[Place, list[Found]]
    committed_records: dict[Place, list[Found]]
    ends: dict[tuple[Place, str], tuple[int, int]]  # from the first to the end, as the isolation level has it
    offsets: dict[str, dict[Place, int]]
    producers: dict[Place, set[tuple[object, ...]]]
    transactions: dict[str, tuple[object, ...]]
    newest: dict[bytes | None, bytes]  # by key, of the compacted topic


def state(bootstrap: str) -> State:
    admin = KafkaAdminClient(bootstrap_servers=bootstrap)
    try:
        wait_until(lambda: not any("Prepare" in str(each) for each in transactions(admin).values()), "markers")
        return State(
            read(bootstrap, EXACT, "read_uncommitted"),
            read(bootstrap, EXACT, "read_committed"),
            {(place, level): ends(bootstrap, place, level) for place in EXACT for level in LEVELS},
            {group: committed(bootstrap, group, EXACT) for group in GROUPS[:2]},
            producers(admin),
            transactions(admin),
            newest(bootstrap),
        )
    finally:
        admin.close()


LEVELS = ("read_uncommitted", "read_committed")


def ends(bootstrap: str, place: Place, level: str) -> tuple[int, int]:
    reader = consumer(bootstrap, isolation_level=level)
    try:
        low, high = reader.get_watermark_offsets(ck.TopicPartition(*place), timeout=30)
        return low, high
    finally:
        reader.close()


def compacted(bootstrap: str) -> list[Found]:
    found = read(bootstrap, [("compacted", number) for number in range(PARTITIONS)], "read_committed")
    return [each for records in found.values() for each in records]


def newest(bootstrap: str) -> dict[bytes | None, bytes]:
    last = {each.key: each for each in compacted(bootstrap)}
    return {key: each.value for key, each in last.items() if not each.is_tombstone}


def producers(admin: KafkaAdminClient) -> dict[Place, set[tuple[object, ...]]]:
    found = admin.describe_producers([TopicPartition(*place) for place in EXACT])
    return {
        (place.topic, place.partition): {
            (each.producer_id, each.producer_epoch, each.last_sequence, each.current_transaction_start_offset)
            for each in described.active_producers
        }
        for place, described in found.items()
    }


def served(node: Node) -> None:
    """Wait for the coordinators: they load what they lead when the node is up already."""

    def all_answer() -> bool:
        try:
            for group in (*GROUPS, *(f"group-{protocol}" for protocol in ("classic", "consumer"))):
                committed(node.bootstrap, group, [("any", 0)])
            transactions(admin)
        except (ck.KafkaException, KafkaError):
            return False
        return True

    admin = KafkaAdminClient(bootstrap_servers=node.bootstrap)
    try:
        wait_until(all_answer, "coordinators")
    finally:
        admin.close()


def transactions(admin: KafkaAdminClient) -> dict[str, tuple[object, ...]]:
    names = [each.transactional_id for listed in admin.list_transactions().values() for each in listed]
    return {
        name: (each.state.value, each.producer_id, each.producer_epoch, frozenset(each.topic_partitions))
        for name, each in admin.describe_transactions(names).items()
    }


class Clients:
    """They live as long as the test: whoever serves the directory, it is the same broker to them."""

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap
        self.round = 0
        for topic, config in TOPICS.items():
            create_topic(bootstrap, topic, PARTITIONS, config)
        self._random = Random(7)
        self._once = producer(bootstrap, enable_idempotence=True)
        self._transactional = producer(bootstrap, transactional_id="ended")
        self._open = producer(bootstrap, transactional_id="open", transaction_timeout_ms=600_000)
        for each in (self._transactional, self._open):
            each.init_transactions(60)
        self._open.begin_transaction()
        self._live: list[ck.Consumer] = []
        self._seen: list[set[tuple[Place, int]]] = [set() for _ in range(2)]
        self.join()

    def join(self) -> None:
        """As members of groups of both protocols, which go on where they had come to."""
        if self._live:
            return
        ours = {"auto_offset_reset": "earliest"}
        self._live = [
            consumer(self.bootstrap, group_id="live-classic", **ours),
            consumer(self.bootstrap, group_id="live-consumer", group_protocol="consumer", **ours),
        ]
        for each in self._live:
            each.subscribe(["plain"])

    def leave(self) -> None:
        for each in self._live:
            each.close()
        self._live = []

    def work(self) -> None:
        """One round of everything."""
        self.round += 1
        self._produce()
        self._transact()
        self._commit_by_hand()
        self._consume()
        # At most the records of this round, which are in active segments, and one of each key before it.
        wait_until(lambda: len(compacted(self.bootstrap)) <= 201 + 40, "compaction")

    def _send(self, one: ck.Producer, topic: str, count: int, size: int = 50) -> None:
        for number in range(count):
            value = f"{self.round} {number} {self._random.randbytes(size).hex()}"
            one.produce(topic, value, f"key {number % 20}", number % PARTITIONS, headers={"round": str(self.round)})
            one.poll(0)
        assert one.flush(60) == 0

    def _produce(self) -> None:
        codec = ("gzip", "lz4", "zstd", "snappy")[self.round % 4]
        self._send(self._once, "plain", 100)
        self._send(producer(self.bootstrap, compression_type=codec), "plain", 100)
        self._send(self._once, "rolling", 600, size=1000)
        self._send(self._once, "compacted", 200)
        self._once.produce("compacted", None, f"key {self.round}", self.round % PARTITIONS)
        assert self._once.flush(60) == 0

    def _transact(self) -> None:
        """One is open from round to round: each ends what it began under the other."""
        self._send(self._open, "transacted", 4)
        for end in ("commit", "abort"):
            self._transactional.begin_transaction()
            self._send(self._transactional, "transacted", 10)
            member = consumer(self.bootstrap, group_id="in-transactions")
            offsets = [ck.TopicPartition("plain", 0, self.round * 10 + (end == "abort"))]
            self._transactional.send_offsets_to_transaction(offsets, member.consumer_group_metadata(), 60)
            member.close()
            if end == "commit":
                self._transactional.commit_transaction(60)
            else:
                self._transactional.abort_transaction(60)

    def go_on(self) -> None:
        """What was open under the other ends here, and a new one is opened."""
        if self.round % 2:
            self._open.commit_transaction(60)
        else:
            self._open.abort_transaction(60)
        self._open.begin_transaction()
        self._send(self._open, "transacted", 2)

    def _commit_by_hand(self) -> None:
        member = consumer(self.bootstrap, group_id="by-hand")
        offsets = [ck.TopicPartition(*place, self.round * 5, metadata=f"round {self.round}") for place in EXACT]
        member.commit(offsets=offsets, asynchronous=False)
        member.close()

    def _consume(self) -> None:
        """Until each live member has all there is, none twice, and has said so."""
        self.join()
        goals = {place: ends(self.bootstrap, place, LEVELS[0])[1] for place in EXACT if place[0] == "plain"}
        for member, seen in zip(self._live, self._seen, strict=True):
            deadline = time.monotonic() + 90
            while len(seen) < sum(goals.values()):
                assert time.monotonic() < deadline, f"{len(seen)} of {goals}"
                for message in member.consume(500, 0.2):
                    if message.error() is None:
                        one = place_of(message)
                        assert one not in seen
                        seen.add(one)
            _commit(member)
        for group in GROUPS[2:]:
            assert committed(self.bootstrap, group, goals) == goals

    def close(self) -> None:
        self.leave()
        self._open.abort_transaction(60)


def _commit(member: ck.Consumer) -> None:
    """A member that must join again first is told so; it does when it polls."""
    deadline = time.monotonic() + 60
    while True:
        try:
            member.commit(asynchronous=False)
            return
        except ck.KafkaException:
            assert time.monotonic() < deadline
            member.consume(1, 0.2)


def end(node: Node, how: str) -> None:
    if how == "kill":
        node.kill()
    else:
        assert node.stop(60) == (0 if isinstance(node, Barnabas) else 143)


@pytest.mark.parametrize("how", ["stop", "kill"])
@pytest.mark.parametrize("first", ["barnabas", "kafka"])
def test_each_goes_on_where_the_other_ended(first: str, how: str, tmp_path: Path) -> None:
    ours, theirs = pair(tmp_path, SETTINGS)
    order: list[Node] = [ours, theirs, ours, theirs] if first == "barnabas" else [theirs, ours, theirs, ours]
    before: State | None = None
    clients: Clients | None = None
    node = order[0]
    try:
        for turn, node in enumerate(order, 1):
            node.start()
            if clients is None:
                clients = Clients(node.bootstrap)
            else:
                served(node)
                after = state(node.bootstrap)
                assert before is not None
                for name in State._fields:
                    expected, found = getattr(before, name), getattr(after, name)
                    where = f"{name} under {type(node).__name__} after round {clients.round}"
                    assert different(expected, found) == {}, where
                clients.go_on()
            clients.work()
            before = state(node.bootstrap)
            check(before, clients.round)
            if turn == len(order):
                clients.close()
            elif how == "stop":
                # A single node that stops says that no broker is left, and librdkafka then forgets the one it had.
                clients.leave()
            end(node, how)
    finally:
        node.kill()
    said = ours.log.read_text()
    assert "Traceback" not in said


def different(expected: dict[Any, Any], found: dict[Any, Any]) -> dict[Any, Any]:
    """What was, and what is; of lists what is in one of them only."""
    all_of_it: dict[Any, Any] = {}
    for key in expected.keys() | found.keys():
        was, now = expected.get(key), found.get(key)
        if was == now:
            continue
        if isinstance(was, list) and isinstance(now, list):
            all_of_it[key] = [each for each in was if each not in now], [each for each in now if each not in was]
        else:
            all_of_it[key] = was, now
    return all_of_it


def check(now: State, rounds: int) -> None:
    """That there is something to compare."""
    assert sum(map(len, now.records.values())) > sum(map(len, now.committed_records.values())) > rounds * 700
    assert now.ends[("transacted", 0), "read_committed"][1] < now.ends[("transacted", 0), "read_uncommitted"][1]
    assert now.offsets["by-hand"] == dict.fromkeys(EXACT, rounds * 5)
    assert now.offsets["in-transactions"]["plain", 0] == rounds * 10
    assert now.transactions["open"][0] == "Ongoing"
    assert len(now.newest) == 19


# ---- under load


# Where a JVM has to wait for its turn, Kafka would fence its own broker, and librdkafka forget it. A node of barnabas that
# stops there may give up before its controller fences it: Kafka then waits until its session is over.
PATIENT = {**BUSY, "broker.session.timeout.ms": "60000", "initial.broker.registration.timeout.ms": "150000"}
SKIPPED = "these partitions are likely deleted already and hence can be skipped"
HASTY = {"process.roles": "controller", "broker.session.timeout.ms": "500", "broker.heartbeat.interval.ms": "100"}


def fence(killed: Barnabas) -> None:
    """Let a controller of Kafka fence the broker that was killed, before a broker of Kafka starts in its place.

    A broker of Kafka 4.3.1 leads as the one before it at first, and loads the transactions that were being ended. Then its
    controller fences the one before it, so that nobody leads. If it sends markers in that moment it takes the partitions
    for deleted, skips their markers, and may write that the transaction is complete. An aborted transaction then goes on as
    the next one of its producer, and is committed with it.
    """
    controller = ApacheKafka({**BUSY, **HASTY}, directory=killed.directory)
    host, _, port = killed.controller.rpartition(":")
    controller.address = (host, int(port))
    controller.properties["listeners"] = f"CONTROLLER://{killed.controller}"
    controller.properties["controller.quorum.bootstrap.servers"] = killed.controller
    begin = killed.log.stat().st_size
    controller.start(180)
    try:
        wait_until(
            lambda: b"Fencing broker 1 " in killed.log.read_bytes()[begin:], "a broker that was killed is not fenced"
        )
        controller.stop(60)  # what it says is written then
    finally:
        controller.kill()


def both_ways(ours: Barnabas, theirs: ApacheKafka) -> Iterator[tuple[Node, str, Node]]:
    """Who runs, how it ends, and who goes on. Not with a stop of Kafka.

    The only broker of Kafka says while it stops that no broker is left, and librdkafka forgets it (its issue 5301).
    """
    yield ours, "kill", theirs
    yield theirs, "kill", ours
    yield ours, "stop", theirs
    yield theirs, "kill", ours


class Unhurried(Transactions):
    """So that no transaction times out while a JVM starts."""

    def _new_producer(self, thread: int) -> None:
        name = f"{self.name}-{thread}"
        self.producers[thread] = producer(self.bootstrap, transactional_id=name, transaction_timeout_ms=300_000)
        retried(self.producers[thread].init_transactions)


def at_work(random: Random) -> list[Load]:
    """All that the crash tests do, but for what lives from timeouts."""
    unhurried = Unhurried("transactions", random)
    return [*records(random), unhurried, *groups(random), *housekeeping(random)]


@pytest.fixture
def seed() -> int:
    """Shown by pytest when a test fails."""
    return random.randrange(1 << 32)


def under_load(nodes: tuple[Barnabas, ApacheKafka], crew: Crew, random: Random) -> None:
    for running, how, following in both_ways(*nodes):
        crew.work()
        time.sleep(random.uniform(1.0, 2.5))
        end(running, how)
        crew.pause()  # a JVM needs the processors to start
        if how == "kill" and isinstance(running, Barnabas):
            fence(running)
        following.start(180)
        served(following)
        for load in crew.loads:
            load.restarted()
        crew.work()
        for load in settled_first(crew.loads):
            if not isinstance(load, Group):
                crew.rest(load)
            load.settle()
            crew.rest(load)
        assert SKIPPED not in nodes[1].log.read_text(), "Kafka was fenced and skipped markers, see fence()"
        for load in crew.loads:
            load.check()


def test_nothing_acknowledged_is_lost_between_the_two_under_load(tmp_path: Path, seed: int) -> None:
    random = Random(seed)
    ours, theirs = pair(tmp_path, PATIENT)
    loads = at_work(random)
    try:
        ours.start()
        for topic in INTERNAL_TOPICS:
            create_topic(ours.bootstrap, topic, 2, STATE)
        for load in loads:
            load.prepare(ours.bootstrap)
        crew = Crew(loads)
        try:
            under_load((ours, theirs), crew, random)
        finally:
            crew.close()
            for load in loads:
                load.close()
    finally:
        ours.kill()
        theirs.kill()
    assert sum(load.acknowledged for load in loads) > 1000
