"""The Python clients of the soak, each with its settings and its way to create and delete a topic."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from typing import Any, NamedTuple

from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.admin import NewTopic as AioNewTopic
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin import NewTopic as ConfluentNewTopic

from barnabas.client import NewTopic, checked, sync
from barnabas.client.loop_thread import LoopThread
from tests.compat.clients import CLIENTS, WAIT_S, Record
from tests.compat.clients.common import Closing, Placed

with warnings.catch_warnings():  # its own way to read its schemas is deprecated in Python 3.11
    warnings.simplefilter("ignore", DeprecationWarning)
    from kafka.admin import KafkaAdminClient
    from kafka.admin import NewTopic as KafkaPythonNewTopic


class Library(NamedTuple):
    name: str
    client: Any  # a compat Client, as far as the worker needs it
    idempotent: Mapping[str, Any]
    transactional: Mapping[str, Any]
    member: Mapping[str, Any]
    create: Callable[[str, str], None]
    delete: Callable[[str, str], None]


# --- the client of barnabas, in the shape of the others


class Own:
    name = "barnabas"

    def producer(self, bootstrap: str, settings: Mapping[str, Any]) -> OwnProducer:
        return OwnProducer({"bootstrap.servers": bootstrap, **settings})

    def consumer(self, bootstrap: str, settings: Mapping[str, Any]) -> OwnConsumer:
        return OwnConsumer({"bootstrap.servers": bootstrap, **settings})


class OwnProducer(Closing):
    def __init__(self, settings: Mapping[str, Any]) -> None:
        self._producer: sync.Producer[bytes, bytes] = sync.Producer(dict(settings))
        self._futures: list[Future[Any]] = []
        if "transactional.id" in settings:
            self._producer.init_transactions()

    def send(self, topic: str, record: Record) -> None:
        self._futures.append(self._producer.send(topic, record.value, partition=record.partition))

    def flush(self) -> list[Placed]:
        futures, self._futures = self._futures, []
        self._producer.flush()
        answers = [each.result(WAIT_S) for each in futures]
        return [(each.partition, each.offset) for each in answers]

    def begin(self) -> None:
        self._producer.begin_transaction()

    def commit(self) -> None:
        self._producer.commit_transaction()

    def abort(self) -> None:
        self._producer.abort_transaction()

    def close(self) -> None:
        self._producer.close(1000)


class OwnConsumer(Closing):
    def __init__(self, settings: Mapping[str, Any]) -> None:
        self._consumer: sync.Consumer[bytes, bytes] = sync.Consumer(dict(settings))

    def subscribe(self, topics: Sequence[str]) -> None:
        self._consumer.subscribe(topics)

    def poll(self, timeout_s: float) -> list[Record]:
        found = self._consumer.getmany(timeout_ms=timeout_s * 1000, max_records=500)
        return [
            Record(each.value, topic=place.topic, partition=place.partition, offset=each.offset)
            for place, records in found.items()
            for each in records
        ]

    def commit(self, offsets: Mapping[tuple[str, int], int]) -> None:
        self._consumer.commit(offsets)

    def close(self) -> None:
        self._consumer.close()


def _create_own(bootstrap: str, topic: str) -> None:
    with sync.Admin({"bootstrap.servers": bootstrap}) as admin:
        checked(admin.create_topics([NewTopic(topic, partitions=1)]))


def _delete_own(bootstrap: str, topic: str) -> None:
    with sync.Admin({"bootstrap.servers": bootstrap}) as admin:
        checked(admin.delete_topics([topic]))


# --- administration with the others


def _answered(futures: Iterable[Any]) -> None:
    for future in futures:
        future.result(WAIT_S)


def _create_confluent(bootstrap: str, topic: str) -> None:
    client = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    _answered(client.create_topics([ConfluentNewTopic(topic, 1, 1)], request_timeout=WAIT_S).values())


def _delete_confluent(bootstrap: str, topic: str) -> None:
    client = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    _answered(client.delete_topics([topic], request_timeout=WAIT_S).values())


def _create_kafka_python(bootstrap: str, topic: str) -> None:
    client = KafkaAdminClient(bootstrap_servers=bootstrap)
    try:
        client.create_topics([KafkaPythonNewTopic(topic, 1, 1)])
    finally:
        client.close()


def _delete_kafka_python(bootstrap: str, topic: str) -> None:
    client = KafkaAdminClient(bootstrap_servers=bootstrap)
    try:
        client.delete_topics([topic])
    finally:
        client.close()


def _with_aiokafka(bootstrap: str, ask: Callable[[AIOKafkaAdminClient], Any]) -> None:
    async def run() -> None:
        client = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
        try:
            await client.start()
            answer = await ask(client)
            for row in getattr(answer, "topic_errors", None) or answer.topic_error_codes:
                if row[1]:
                    raise RuntimeError(f"{row}")
        finally:
            await client.close()

    loop = LoopThread("aiokafka admin")
    try:
        loop.call(run(), WAIT_S)
    finally:
        loop.close(WAIT_S)


def _create_aiokafka(bootstrap: str, topic: str) -> None:
    _with_aiokafka(bootstrap, lambda client: client.create_topics([AioNewTopic(topic, 1, 1)]))


def _delete_aiokafka(bootstrap: str, topic: str) -> None:
    _with_aiokafka(bootstrap, lambda client: client.delete_topics([topic]))


CONFLUENT, AIOKAFKA, KAFKA_PYTHON = CLIENTS
_MEMBER: dict[str, Any] = {"auto.offset.reset": "earliest", "session.timeout.ms": 10_000, "heartbeat.interval.ms": 1000}
_LATE_MS = 60_000  # a node is away for seconds, and nothing is given up before
# When all brokers are gone, librdkafka 2.16 would forget them, and whoever waits for the one of a group waits on.
_REMEMBER = {"metadata.recovery.strategy": "none"}
LIBRARIES = {
    each.name: each
    for each in (
        Library(
            "confluent",
            CONFLUENT,
            {**_REMEMBER, "enable.idempotence": True, "message.timeout.ms": _LATE_MS, "compression.type": "lz4"},
            {**_REMEMBER, "message.timeout.ms": 50_000},
            {**_REMEMBER, "auto.offset.reset": "earliest", "group.protocol": "consumer"},
            _create_confluent,
            _delete_confluent,
        ),
        Library(
            "aiokafka",
            AIOKAFKA,
            {"enable.idempotence": True, "request.timeout.ms": _LATE_MS},
            {},
            _MEMBER,
            _create_aiokafka,
            _delete_aiokafka,
        ),
        Library(
            "kafka-python",
            KAFKA_PYTHON,
            {"enable.idempotence": True, "delivery.timeout.ms": _LATE_MS},
            # kafka-python 3.0.12 forgets a transactional request whose coordinator cannot be reached, and then waits.
            {"request.timeout.ms": 10_000, "delivery.timeout.ms": 20_000, "max.block.ms": 20_000},
            _MEMBER,
            _create_kafka_python,
            _delete_kafka_python,
        ),
        Library(
            "barnabas",
            Own(),
            {"delivery.timeout.ms": _LATE_MS, "compression.type": "gzip"},  # kafka-python reads it, and knows no other
            {},
            {"auto.offset.reset": "earliest", "group.protocol": "consumer"},
            _create_own,
            _delete_own,
        ),
    )
}
