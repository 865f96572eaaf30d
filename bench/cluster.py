"""Three nodes of barnabas beside three of Apache Kafka: start, memory, replication, failover, reassignments, many partitions.

Both clusters run at the same time, with equal settings, and are loaded in turns. `BENCH_CLUSTER_PARTS=start,leader-failover`
runs only these parts, and `BENCH_CLUSTER_MB=1024` moves that much instead of a quarter of it.
"""

from __future__ import annotations

import asyncio
import os
import statistics
import time
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from tools.apache_kafka import HOST, VERSION

from barnabas.batches import Record, build_batch
from barnabas.client import Admin
from barnabas.client.admin import topics as topics_of_ours
from barnabas.client.connection import Connection
from barnabas.wire.messages.produce import ProduceRequest
from bench.table import Row, from_rounds
from bench.timing import alternating
from bench.trio import NODE_IDS, TIMEOUT_S, OurTrio, TheirTrio, Trio, wait_until

SECTION = "cluster"
PEER = f"3 x Apache Kafka {VERSION}"
A_FIFTH = 5.0
NOT_SLOWER = 1.0
STARTS = 2
IDLE_S = 10.0
ROUNDS = 4
RECORD = os.urandom(512) * 2
RECORDS = 60_000
SINGLE_RECORDS = 300
LEADER_FAILOVERS = 20  # the last heartbeat before the kill is up to half a second old
CONTROLLER_FAILOVERS = 12
MOVES = 6
IMPATIENT = {
    "retry.backoff.ms": 20,
    "retry.backoff.max.ms": 50,
    "reconnect.backoff.ms": 20,
    "reconnect.backoff.max.ms": 50,
    "topic.metadata.refresh.fast.interval.ms": 20,
}
"""librdkafka asks for the next leader once a second by default, which would hide how soon there is one."""
IMPATIENT_S = 0.01
PATIENCE_S = 0.2  # of a try to create a topic
PRODUCE_VERSION = 11  # the last one that names topics
MOVED_MB = int(os.environ.get("BENCH_CLUSTER_MB", "256"))
MANY_PARTITIONS = 10_000
PARTITIONS_AT_ONCE = 500
SETTINGS = {
    "broker.session.timeout.ms": "3000",
    "broker.heartbeat.interval.ms": "500",
    "controller.quorum.fetch.timeout.ms": "2000",
    "controller.quorum.election.timeout.ms": "1000",
}
"""Equal on both sides. Of failovers, they are the larger part."""


def run() -> list[Row]:
    wanted = os.environ.get("BENCH_CLUSTER_PARTS", ",".join(PARTS)).split(",")
    unknown = set(wanted) - set(PARTS)
    if unknown:
        raise SystemExit(
            f"BENCH_CLUSTER_PARTS: there is no part {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}"
        )
    rows = start() if "start" in wanted else []
    rest = [PARTS[name] for name in PARTS if name in wanted and name != "start"]
    if rest:
        with OurTrio(SETTINGS) as ours, TheirTrio(SETTINGS) as theirs:
            for part in rest:
                rows += part(ours, theirs)
    return rows


def _compared(
    question: str, seen: tuple[list[float], list[float]], unit: str, target: float | None, *, more: bool = False
) -> Row:
    return from_rounds(SECTION, question, seen[0], PEER, seen[1], unit, target, more_is_better=more)


def _sides(ours: Trio, theirs: Trio, number: int) -> list[tuple[int, Trio]]:
    return alternating([(0, ours), (1, theirs)], number)


# --- parts


def start() -> list[Row]:
    """From spawn until every node knows all brokers; then memory and processor time at rest. One cluster at a time."""
    seconds: tuple[list[float], list[float]] = ([], [])
    memory: tuple[list[float], list[float]] = ([], [])
    cpu: tuple[list[float], list[float]] = ([], [])
    for number in range(STARTS):
        for side, make in alternating([(0, OurTrio), (1, TheirTrio)], number):
            with make(SETTINGS) as trio:
                seconds[side].append(trio.started_s)
                time.sleep(IDLE_S)
                before = trio.cpu_s()
                time.sleep(IDLE_S)
                cpu[side].append((trio.cpu_s() - before) / IDLE_S * 100)
                memory[side].append(trio.rss_mb())
    return [
        _compared("start of three nodes until all serve", seconds, "s", A_FIFTH),
        _compared("resident memory of three nodes, idle", memory, "MB", A_FIFTH),
        _compared("processor time of three nodes, idle", cpu, "% of a core", None),
    ]


def produce(ours: Trio, theirs: Trio) -> list[Row]:
    """librdkafka, acks=all, three replicas, first in batches and then one record after another."""
    speed: tuple[list[float], list[float]] = ([], [])
    p50: tuple[list[float], list[float]] = ([], [])
    p99: tuple[list[float], list[float]] = ([], [])
    cpu: tuple[list[float], list[float]] = ([], [])
    for number in range(ROUNDS + 1):
        for side, trio in _sides(ours, theirs, number):
            name = _name("produce")
            trio.create_topic(name, 6)
            before = trio.cpu_s()
            speed[side].append(_throughput(trio, name))
            cpu[side].append((trio.cpu_s() - before) / (RECORDS * len(RECORD) / 1e6) * 1000)
            seen = sorted(_singles(trio, name))
            p50[side].append(statistics.median(seen))
            p99[side].append(seen[int(len(seen) * 0.99)])
            _delete(trio, name)
    what = f"produce {RECORDS * len(RECORD) // 1_000_000} MB of 1 kB records, 6 partitions, 3 replicas, acks=all"
    tail = slice(1, None)  # the first round warms up
    return [
        _compared(what, (speed[0][tail], speed[1][tail]), "MB/s", NOT_SLOWER, more=True),
        _compared(f"{what}: processor time of all nodes", (cpu[0][tail], cpu[1][tail]), "ms/MB", None),
        _compared("a single acks=all record, 3 replicas, p50", (p50[0][tail], p50[1][tail]), "ms", NOT_SLOWER),
        _compared("a single acks=all record, 3 replicas, p99", (p99[0][tail], p99[1][tail]), "ms", NOT_SLOWER),
    ]


def leader_failover(ours: Trio, theirs: Trio) -> list[Row]:
    """From kill -9 of the leader to the next acknowledged record, for librdkafka and for a client that asks every 10 ms."""
    leader: tuple[list[float], list[float]] = ([], [])
    impatient: tuple[list[float], list[float]] = ([], [])
    for number in range(LEADER_FAILOVERS):
        for side, trio in _sides(ours, theirs, number):
            for seen, seconds in zip((leader, impatient), _kill_leader(trio), strict=True):
                seen[side].append(seconds)
    what = "kill -9 of a leader until the next acknowledged record"
    return [
        _compared(f"{what}, asked every 10 ms", impatient, "s", NOT_SLOWER),
        _compared(f"{what} of librdkafka", leader, "s", NOT_SLOWER),
    ]


def controller_failover(ours: Trio, theirs: Trio) -> list[Row]:
    """From kill -9 of the active controller to the next topic."""
    seconds: tuple[list[float], list[float]] = ([], [])
    for number in range(CONTROLLER_FAILOVERS):
        for side, trio in _sides(ours, theirs, number):
            seconds[side].append(_kill_controller(trio))
    return [_compared("kill -9 of the active controller until the next created topic", seconds, "s", NOT_SLOWER)]


def reassign(ours: Trio, theirs: Trio) -> list[Row]:
    """A partition with one replica moves to another node and back, again and again."""
    seconds: tuple[list[float], list[float]] = ([], [])
    names = {}
    for side, trio in _sides(ours, theirs, 0):
        names[side] = _name("move")
        trio.create_topic(names[side], 1, on=[1])
        _throughput(trio, names[side], MOVED_MB * 1_000_000 // len(RECORD))
    for number in range(MOVES):
        for side, trio in _sides(ours, theirs, number):
            started = time.perf_counter()
            asyncio.run(_move(trio, names[side], 2 - number % 2))
            seconds[side].append(time.perf_counter() - started)
            asyncio.run(_until_left(trio, names[side], 1 + number % 2))
    for side, trio in _sides(ours, theirs, 0):
        _delete(trio, names[side])
    return [_compared(f"move a partition of {MOVED_MB} MB to another node", seconds, "s", NOT_SLOWER)]


def topics(ours: Trio, theirs: Trio) -> list[Row]:
    """How long a new topic needs to be known to all nodes of a cluster that has many partitions."""
    create: tuple[list[float], list[float]] = ([], [])
    known: tuple[list[float], list[float]] = ([], [])
    memory: tuple[list[float], list[float]] = ([], [])
    cpu: tuple[list[float], list[float]] = ([], [])
    for side, trio in _sides(ours, theirs, 0):
        started = time.perf_counter()
        for _ in range(MANY_PARTITIONS // PARTITIONS_AT_ONCE):
            trio.create_topic(_name("many"), PARTITIONS_AT_ONCE, 1)
        create[side].append(time.perf_counter() - started)
    for number in range(ROUNDS + 1):
        for side, trio in _sides(ours, theirs, number):
            known[side].append(_propagation(trio))
    for side, trio in _sides(ours, theirs, 0):
        time.sleep(IDLE_S)
        before = trio.cpu_s()
        time.sleep(IDLE_S)
        cpu[side].append((trio.cpu_s() - before) / IDLE_S * 100)
        memory[side].append(trio.rss_mb())
    beside = f"with {MANY_PARTITIONS:,} partitions"
    return [
        _compared(f"create {MANY_PARTITIONS:,} partitions, {PARTITIONS_AT_ONCE} at once", create, "s", None),
        _compared(f"a new topic until all nodes show it, {beside}", (known[0][1:], known[1][1:]), "ms", NOT_SLOWER),
        _compared(f"processor time of three nodes, idle, {beside}", cpu, "% of a core", None),
        _compared(f"resident memory of three nodes, {beside}", memory, "MB", None),
    ]


PARTS: dict[str, Callable[[Trio, Trio], list[Row]]] = {
    "start": lambda ours, theirs: start(),
    "produce": produce,
    "leader-failover": leader_failover,
    "controller-failover": controller_failover,
    "reassign": reassign,
    "topics": topics,
}


# --- what clients do


def _name(what: str) -> str:
    return f"bench-{what}-{uuid.uuid4().hex[:8]}"


def _producer(trio: Trio, **settings: object) -> Producer:
    return Producer(
        {
            "bootstrap.servers": trio.bootstrap,
            "acks": "all",
            "linger.ms": 5,
            "queue.buffering.max.messages": 1_000_000,
            **settings,
        }
    )


def _throughput(trio: Trio, topic: str, count: int = RECORDS) -> float:
    """MB a second, all of it acknowledged."""
    producer = _producer(trio, **{"enable.idempotence": True})
    failed: list[object] = []
    producer.list_topics(topic, timeout=TIMEOUT_S)
    started = time.perf_counter()
    for _ in range(count):
        while True:
            try:
                producer.produce(topic, RECORD, on_delivery=lambda error, _: failed.append(error) if error else None)
                break
            except BufferError:
                producer.poll(0.01)
        producer.poll(0)
    if producer.flush(TIMEOUT_S) or failed:
        raise RuntimeError(f"records were not acknowledged: {failed[:1]}")
    return count * len(RECORD) / 1e6 / (time.perf_counter() - started)


def _singles(trio: Trio, topic: str) -> list[float]:
    """Milliseconds until each record was acknowledged, one after another."""
    producer = _producer(trio, **{"linger.ms": 0})
    seen = []
    for _ in range(SINGLE_RECORDS):
        started = time.perf_counter()
        producer.produce(topic, RECORD, partition=0)
        producer.flush(TIMEOUT_S)
        seen.append((time.perf_counter() - started) * 1000)
    return seen[len(seen) // 10 :]  # the first ones find the leader


def _kill_leader(trio: Trio) -> tuple[float, float]:
    """Seconds until a record of librdkafka, and one of an impatient client, is acknowledged after the same kill."""
    name = _name("failover")
    controller = asyncio.run(_controller(trio))
    victim = next(each for each in NODE_IDS if each != controller)
    trio.create_topic(name, 1, on=[victim, *(each for each in NODE_IDS if each != victim)])
    producer = _producer(trio, **{"linger.ms": 0, "message.timeout.ms": int(TIMEOUT_S * 1000), **IMPATIENT})
    producer.produce(name, b"before")
    producer.flush(TIMEOUT_S)
    trio.nodes[victim].kill()
    started = time.perf_counter()
    producer.produce(name, b"after")
    with ThreadPoolExecutor(1) as thread:
        others = [port for each, port in trio.clients.items() if each != victim]
        impatient = thread.submit(asyncio.run, _produce_until_acknowledged(others, name))
        if producer.flush(TIMEOUT_S):
            raise RuntimeError("the record was not acknowledged")
        seconds = time.perf_counter() - started
        impatient_seconds = impatient.result(TIMEOUT_S) - started
    trio.nodes[victim].start(TIMEOUT_S)
    trio.wait_in_sync(name)
    _delete(trio, name)
    return seconds, impatient_seconds


async def _produce_until_acknowledged(ports: list[int], topic: str) -> float:
    """Send a record to these brokers in turn, every 10 ms, and return when one has acknowledged it."""
    data = ProduceRequest.PartitionProduceData(index=0, records=build_batch([Record(0, 1, None, b"impatient")]))
    topics = [ProduceRequest.TopicProduceData(name=topic, partition_data=[data])]
    request = ProduceRequest(acks=-1, timeout_ms=int(TIMEOUT_S * 1000), topic_data=topics)
    brokers = [await Connection.open(HOST, port, "impatient") for port in ports]
    try:
        async with asyncio.timeout(TIMEOUT_S):
            while True:
                for broker in brokers:
                    response = await broker.call(request, PRODUCE_VERSION)
                    if not response.responses[0].partition_responses[0].error_code:
                        return time.perf_counter()
                await asyncio.sleep(IMPATIENT_S)
    finally:
        for broker in brokers:
            broker.close()


def _kill_controller(trio: Trio) -> float:
    victim = asyncio.run(_controller(trio))
    others = ",".join(f"{HOST}:{port}" for each, port in trio.clients.items() if each != victim)
    trio.nodes[victim].kill()
    started = time.perf_counter()
    name = asyncio.run(_create_until_done(others))
    seconds = time.perf_counter() - started
    trio.nodes[victim].start(TIMEOUT_S)
    trio.wait_in_sync(name)
    _delete(trio, name)
    return seconds


async def _controller(trio: Trio) -> int:
    async with Admin({"bootstrap.servers": trio.bootstrap}) as admin:
        return (await admin.describe_quorum()).leader_id


async def _create_until_done(servers: str) -> str:
    """Create topics with one replica, again and again, until one exists; each try has little time."""
    async with Admin({"bootstrap.servers": servers}) as admin:
        while True:
            name = _name("controller")
            try:
                (created,) = (
                    await admin.create_topics([topics_of_ours.NewTopic(name, 1, 2)], timeout_ms=int(PATIENCE_S * 1000))
                ).values()
                if not isinstance(created, Exception):
                    return name
            except Exception:  # no controller yet
                pass
            await asyncio.sleep(0.02)


async def _move(trio: Trio, name: str, to: int) -> None:
    async with Admin({"bootstrap.servers": trio.bootstrap}) as admin:
        for error in (await admin.alter_partition_reassignments({(name, 0): [to]})).values():
            if error is not None:
                raise error
        async with asyncio.timeout(TIMEOUT_S):
            while await admin.list_partition_reassignments():
                await asyncio.sleep(0.02)


async def _until_left(trio: Trio, name: str, left: int) -> None:
    """Wait until the node has given up its replica: one that gets it back before has nothing to copy."""
    async with Admin({"bootstrap.servers": trio.bootstrap}) as admin, asyncio.timeout(TIMEOUT_S):
        while True:
            dirs = (await admin.describe_log_dirs([left], partitions=[(name, 0)]))[left]
            if isinstance(dirs, Exception):
                raise dirs
            if not any(each.replicas for each in dirs.values()):
                return
            await asyncio.sleep(0.02)


def _propagation(trio: Trio) -> float:
    """Milliseconds from the request until each node has shown the topic with a leader."""
    admins = [AdminClient({"bootstrap.servers": f"{HOST}:{port}"}) for port in trio.clients.values()]
    for admin in admins:
        admin.list_topics("none", timeout=TIMEOUT_S)
    name = _name("new")
    started = time.perf_counter()
    future = admins[0].create_topics([NewTopic(name, 1, 3)])[name]

    def shows(admin: AdminClient) -> bool:
        partitions = admin.list_topics(name, timeout=TIMEOUT_S).topics[name].partitions
        return bool(partitions) and partitions[0].leader >= 0

    future.result(TIMEOUT_S)
    for admin in admins:
        wait_until(lambda admin=admin: shows(admin), pause_s=0.001)
    milliseconds = (time.perf_counter() - started) * 1000
    _delete(trio, name)
    return milliseconds


def _delete(trio: Trio, name: str) -> None:
    admin = trio.admin()  # it has to outlive the answer
    admin.delete_topics([name])[name].result(TIMEOUT_S)
