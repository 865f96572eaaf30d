"""What TLS and logins cost: barnabas beside Apache Kafka in one run, each compared with itself without them.

Producing and consuming use librdkafka, as in `bench.log`; both nodes have the same certificates. A login is a new TCP
connection, a whole TLS handshake and the exchange of the mechanism, several at a time from one process. SCRAM costs its
client the derivation of a key, so that rate is limited by the client alike.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor

from confluent_kafka import Consumer, Producer, TopicPartition
from tools.apache_kafka import VERSION

from bench import log, secured
from bench.secured import Files, SecuredNode
from bench.table import Row, from_rounds
from bench.timing import alternating

SECTION = "security"
PEER = f"Apache Kafka {VERSION}"
ROUNDS = 3
RECORDS = 40_000
LOGIN_ROUNDS = 3
LOGINS = 150
LOGINS_AT_ONCE = 8
CONNECTIONS = 1_000
IDLE_S = 2.0

Rates = dict[str, list[float]]  # MB/s by protocol


def run() -> list[Row]:
    with secured.files() as files, secured.barnabas(files, log.SETTINGS) as ours:
        with secured.kafka(files, log.SETTINGS) as theirs:
            rows = [*traffic(files, ours, theirs), *logins(files, ours, theirs)]
        with secured.kafka(files, log.SETTINGS) as new:  # a heap that has grown hides what connections need
            return [*rows, connections(files, ours, new)]


def traffic(files: Files, ours: SecuredNode, theirs: SecuredNode) -> list[Row]:
    """Rounds of producing and of reading it back, over TLS and without."""
    produced: list[Rates] = [{"PLAINTEXT": [], "SSL": []} for _ in range(2)]
    consumed: list[Rates] = [{"PLAINTEXT": [], "SSL": []} for _ in range(2)]
    for number in range(ROUNDS + 1):
        for side, node in alternating([(0, ours), (1, theirs)], number):
            plain = {"bootstrap.servers": node.bootstrap}
            for protocol, how in alternating([("PLAINTEXT", plain), ("SSL", files.librdkafka(node))], number):
                topic = log.create_topic(node, log.PARTITIONS)
                produced[side][protocol].append(_produce(how, topic))
                consumed[side][protocol].append(_consume(how, topic))
                log.delete_topic(node, topic)
    rows = []
    size = f"{RECORDS * len(log.RECORD) // 1_000_000} MB of 1 kB records"
    for what, seen in ((f"produce {size}, acks=all", produced), (f"consume {size}", consumed)):
        over_tls = [each["SSL"][1:] for each in seen]
        rows.append(
            from_rounds(SECTION, f"{what} over TLS", over_tls[0], PEER, over_tls[1], "MB/s", None, more_is_better=True)
        )
        shares = [
            [tls / plain for tls, plain in zip(each["SSL"][1:], each["PLAINTEXT"][1:], strict=True)] for each in seen
        ]
        rows.append(
            from_rounds(
                SECTION, f"{what}: TLS / plaintext", shares[0], PEER, shares[1], "ratio", None, more_is_better=True
            )
        )
    return rows


def logins(files: Files, ours: SecuredNode, theirs: SecuredNode) -> list[Row]:
    for node in (ours, theirs):
        secured.create_scram_user(node)
        _logins_per_s(files, node, secured.SCRAM, wait_for_user=True)
    rows = []
    for mechanism in (secured.PLAIN, secured.SCRAM):
        rates: tuple[list[float], list[float]] = ([], [])
        cpu_ms: tuple[list[float], list[float]] = ([], [])
        for number in range(LOGIN_ROUNDS + 1):
            for side, node in alternating([(0, ours), (1, theirs)], number):
                before_s = node.cpu_s()
                rates[side].append(_logins_per_s(files, node, mechanism))
                cpu_ms[side].append((node.cpu_s() - before_s) / LOGINS * 1000)
        question = f"logins with {mechanism} over TLS, {LOGINS_AT_ONCE} at a time"
        rows += [
            from_rounds(SECTION, question, rates[0][1:], PEER, rates[1][1:], "logins/s", None, more_is_better=True),
            from_rounds(SECTION, f"{question}, server CPU each", cpu_ms[0][1:], PEER, cpu_ms[1][1:], "ms", None),
        ]
    return rows


def connections(files: Files, ours: SecuredNode, theirs: SecuredNode) -> Row:
    used = [[_bytes_per_connection(files, node) / 1e3] for node in (ours, theirs)]
    question = f"memory of an idle TLS connection, of {CONNECTIONS:,}"
    return from_rounds(SECTION, question, used[0], PEER, used[1], "kB", None)


def _produce(how: Mapping[str, str], topic: str) -> float:
    """MB a second, all of it acknowledged."""
    producer = Producer({**how, "acks": "all", "linger.ms": 5, "queue.buffering.max.messages": 1_000_000})
    producer.list_topics(topic, timeout=log.TIMEOUT_S)
    started = time.perf_counter()
    for _ in range(RECORDS):
        producer.produce(topic, log.RECORD)
    if producer.flush(log.TIMEOUT_S):
        raise RuntimeError("records were not acknowledged")
    return RECORDS * len(log.RECORD) / 1e6 / (time.perf_counter() - started)


def _consume(how: Mapping[str, str], topic: str) -> float:
    """MB a second, from the first record to the last."""
    consumer = Consumer({**how, "group.id": topic, "auto.offset.reset": "earliest", "enable.auto.commit": False})
    consumer.assign([TopicPartition(topic, number, 0) for number in range(log.PARTITIONS)])
    return log.drain(consumer, RECORDS)


def _logins_per_s(files: Files, node: SecuredNode, mechanism: str, *, wait_for_user: bool = False) -> float:
    context = files.context()

    def once(_: int) -> None:
        with secured.connect(node, "SASL_SSL", context) as connection:
            secured.log_in(connection, mechanism)

    deadline = time.monotonic() + log.TIMEOUT_S
    while wait_for_user:
        try:
            once(0)
            break
        except RuntimeError:  # Kafka has not applied the new user yet
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)
    started = time.perf_counter()
    with ThreadPoolExecutor(LOGINS_AT_ONCE) as pool:
        list(pool.map(once, range(LOGINS)))
    return LOGINS / (time.perf_counter() - started)


def _bytes_per_connection(files: Files, node: SecuredNode) -> float:
    context = files.context()
    secured.close([secured.connect(node, "SSL", context) for _ in range(10)])
    time.sleep(IDLE_S)
    before = node.rss_bytes()
    found = [secured.connect(node, "SSL", context) for _ in range(CONNECTIONS)]
    time.sleep(IDLE_S)
    seen = statistics.median(node.rss_bytes() for _ in range(3))
    secured.close(found)
    return (seen - before) / CONNECTIONS
