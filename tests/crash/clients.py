"""Clients of a node that is killed under them: they go on trying, and what they read they read whole.

Settings only, and reading: what is sent and what must come of it is in `loads`.
"""

from __future__ import annotations

import contextlib
import time
import warnings
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import confluent_kafka as ck
from confluent_kafka.admin import AdminClient, NewTopic, OffsetSpec

PATIENCE_S = 90.0
MESSAGE_TIMEOUT_MS = 300_000  # longer than anyone waits, so that what is late fails where it is waited for
TRANSACTION_TIMEOUT_MS = 60_000  # librdkafka's default
BEGINNING = -2
CLOSING_S = 3.0  # there may be many producers that were fenced
COORDINATOR_MOVES = {
    ck.KafkaError.NOT_COORDINATOR,
    ck.KafkaError.COORDINATOR_NOT_AVAILABLE,
    ck.KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
}

# A client that finds nobody tries again at once: the node is away for a second.
STUBBORN: dict[str, str | int | float | bool] = {
    "log_level": 0,
    "reconnect.backoff.ms": 20,
    "reconnect.backoff.max.ms": 100,
    "retry.backoff.ms": 20,
    "topic.metadata.refresh.fast.interval.ms": 50,
    # When all brokers are gone, librdkafka 2.16 would forget them, and whoever waits for the one of a group waits on.
    "metadata.recovery.strategy": "none",
}


class Found(NamedTuple):
    """A record as a reader has it."""

    offset: int
    key: bytes | None
    value: bytes
    is_tombstone: bool = False


Place = tuple[str, int]


def place_of(message: ck.Message) -> tuple[Place, int]:
    """The partition and the offset of a message that was received."""
    topic, partition, offset = message.topic(), message.partition(), message.offset()
    assert topic is not None and partition is not None and offset is not None
    return (topic, partition), offset


def producer(bootstrap: str, **settings: Any) -> ck.Producer:
    names = {name.replace("_", "."): value for name, value in settings.items()}
    ours: dict[str, Any] = {"bootstrap.servers": bootstrap, "acks": "all", "linger.ms": 1}
    is_transactional = "transactional_id" in settings
    of_transaction_ms = settings.get(
        "transaction_timeout_ms", TRANSACTION_TIMEOUT_MS
    )  # librdkafka allows no longer wait
    if not is_transactional:
        # With "none", a producer that reads in Metadata that no broker is alive forgets all, and never sends again.
        ours["metadata.recovery.strategy"] = "rebootstrap"
    ours["message.timeout.ms"] = min(MESSAGE_TIMEOUT_MS, of_transaction_ms) if is_transactional else MESSAGE_TIMEOUT_MS
    return ck.Producer({**STUBBORN, **ours, **names})


def retried(call: Any, timeout_s: float = PATIENCE_S, patience_s: float = PATIENCE_S) -> None:
    """What the client says may be tried again is tried again, with pauses: it may say so at once."""
    deadline = time.monotonic() + patience_s
    while True:
        try:
            call(timeout_s)
            return
        except ck.KafkaException as error:
            if not error.args[0].retriable() or time.monotonic() > deadline:
                raise
            time.sleep(0.1)


def abort(one: ck.Producer, patience_s: float = PATIENCE_S) -> None:
    """Abort its transaction, in several calls if need be.

    An abort of librdkafka waits for records that were under way when it began, but does not send them again if their
    connection is lost. The next call throws them away.
    """
    retried(one.abort_transaction, patience_s / 9, patience_s)


def close_producer(one: ck.Producer) -> None:
    """Whatever it was about; one that was fenced cannot end its transaction, and says so.

    The abort comes first because the one that librdkafka makes in `close` waits without a limit.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        one.purge()
        try:
            abort(one, CLOSING_S)
        except ck.KafkaException as error:
            if error.args[0].retriable():
                return  # `close` would wait for what does not end
        with contextlib.suppress(ck.KafkaException):
            one.close()


def consumer(bootstrap: str, **settings: Any) -> ck.Consumer:
    names = {name.replace("_", "."): value for name, value in settings.items()}
    ours = {"bootstrap.servers": bootstrap, "group.id": "nobody", "enable.auto.commit": False, "check.crcs": True}
    return ck.Consumer({**STUBBORN, **ours, "fetch.wait.max.ms": 20, "fetch.error.backoff.ms": 20, **names})


def admin(bootstrap: str) -> AdminClient:
    return AdminClient({**STUBBORN, "bootstrap.servers": bootstrap})


def create_topic(bootstrap: str, topic: str, partitions: int, config: Mapping[str, str] | None = None) -> None:
    client = admin(bootstrap)  # it has to live as long as the future
    deadline_s = time.monotonic() + PATIENCE_S
    while True:
        (future,) = client.create_topics([NewTopic(topic, partitions, config=dict(config or {}))]).values()
        try:
            future.result(PATIENCE_S)
        except ck.KafkaException as error:
            code = error.args[0].code()
            if code == ck.KafkaError.TOPIC_ALREADY_EXISTS:  # sent again, because the answer did not come
                return
            # The only broker was killed with the request in flight, or has just come back and is fenced for a moment.
            # Or librdkafka dropped the connection, because it had learnt the address of the broker.
            gone = (ck.KafkaError._TRANSPORT, ck.KafkaError._DESTROY_BROKER)
            expected = (*gone, ck.KafkaError.INVALID_REPLICATION_FACTOR)
            assert code in expected and time.monotonic() < deadline_s, error
            time.sleep(0.1)
        else:
            return


def read(bootstrap: str, places: Iterable[Place], isolation_level: str) -> dict[Place, list[Found]]:
    """Every record of these partitions, from the start of each to its end as the isolation level has it."""
    found: dict[Place, list[Found]] = {place: [] for place in places}
    reading = set(found)
    deadline = time.monotonic() + PATIENCE_S
    reader = consumer(bootstrap, isolation_level=isolation_level, enable_partition_eof=True)
    try:
        reader.assign([ck.TopicPartition(*place, BEGINNING) for place in found])
        while reading:
            for message in reader.consume(5000, 1.0):
                place, offset = place_of(message)
                error = message.error()
                if error is None:
                    found[place].append(Found(offset, message.key(), message.value() or b"", message.value() is None))
                elif error.code() == ck.KafkaError._PARTITION_EOF:
                    reading.discard(place)
                else:
                    assert error.retriable() or error.code() < 0, error
            assert time.monotonic() < deadline, f"{isolation_level} readers of {reading} come to no end"
    finally:
        reader.close()
    return found


def offsets(bootstrap: str, places: Iterable[Place], wanted: OffsetSpec, *, stable: bool = False) -> dict[Place, int]:
    """Where partitions begin, or end, or are stable up to."""
    level = ck.IsolationLevel.READ_COMMITTED if stable else ck.IsolationLevel.READ_UNCOMMITTED
    asked = {ck.TopicPartition(*place): wanted for place in places}
    client = admin(bootstrap)
    futures = client.list_offsets(asked, isolation_level=level, request_timeout=PATIENCE_S)
    return {(each.topic, each.partition): future.result(PATIENCE_S).offset for each, future in futures.items()}


def is_stable(bootstrap: str, places: Iterable[Place]) -> bool:
    """Whether no transaction is open in them."""
    stable = offsets(bootstrap, places, OffsetSpec.latest(), stable=True)
    return stable == offsets(bootstrap, places, OffsetSpec.latest())


def committed(bootstrap: str, group: str, places: Iterable[Place]) -> dict[Place, int]:
    """What a group has committed; what it has not is -1001."""
    reader = consumer(bootstrap, group_id=group, isolation_level="read_committed")
    deadline_s = time.monotonic() + PATIENCE_S
    try:
        while True:
            try:
                found = reader.committed([ck.TopicPartition(*place) for place in places], PATIENCE_S)
                break
            except ck.KafkaException as error:  # librdkafka leaves it to its user to ask again when a coordinator moves
                if error.args[0].code() not in COORDINATOR_MOVES or time.monotonic() > deadline_s:
                    raise
                time.sleep(0.1)
    finally:
        reader.close()
    for each in found:
        assert each.error is None, each.error
    return {(each.topic, each.partition): each.offset for each in found}


def wait_until(condition: Callable[[], bool], what: str, patience_s: float = PATIENCE_S) -> None:
    deadline = time.monotonic() + patience_s
    while not condition():
        assert time.monotonic() < deadline, f"waited in vain: {what}"
        time.sleep(0.02)
