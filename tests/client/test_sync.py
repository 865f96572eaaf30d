"""The client without an event loop: the same answers, waited for."""

from __future__ import annotations

import asyncio
import inspect
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from barnabas.client import consumer as async_consumer
from barnabas.client import producer as async_producer
from barnabas.client import sync
from barnabas.client.admin import admin as async_admin
from barnabas.client.admin.part import checked
from barnabas.client.admin.topics import NewTopic
from barnabas.client.errors import CallTimeoutError, ClosedError
from barnabas.client.records import RecordMetadata, TopicPartition
from barnabas.client.sync import outbox
from barnabas.testing import Broker
from barnabas.wire import ErrorCode, KafkaError

ROOT = Path(__file__).resolve().parents[2]
TIMEOUT_S = 30


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as started:
        yield started


def client_threads() -> int:
    return sum(thread.name == "barnabas-client" for thread in threading.enumerate())


def test_methods_wait_and_asynchronous_iterators_are_iterators() -> None:
    with Broker({"orders": 3}) as broker, sync.Admin({"bootstrap.servers": broker.bootstrap_servers}) as admin:
        checked(admin.create_topics([NewTopic("payments", 1)]))
        assert isinstance(admin.create_topics([NewTopic("payments", 1)])["payments"], KafkaError)
        described = checked(dict(admin.describe_topic_partitions()))
        assert {name: len(topic.partitions) for name, topic in described.items()} == {"orders": 3, "payments": 1}
        assert "describe_quorum" in dir(admin)
    assert client_threads() == 0


def test_records_go_out_and_come_back() -> None:
    with Broker({"orders": 2}) as broker:
        settings = {"bootstrap.servers": broker.bootstrap_servers, "auto.offset.reset": "earliest"}
        with sync.Producer({"bootstrap.servers": broker.bootstrap_servers}) as producer:
            futures = [producer.send("orders", b"%d" % number, partition=number % 2) for number in range(4)]
            written = [future.result(TIMEOUT_S) for future in futures]
        assert [(each.partition, each.offset) for each in written] == [(0, 0), (1, 0), (0, 1), (1, 1)]
        with sync.Consumer(settings) as consumer:
            consumer.assign([("orders", 0), ("orders", 1)])
            values = [record.value for _, record in zip(range(4), consumer, strict=False)]
        assert sorted(value or b"" for value in values) == [b"0", b"1", b"2", b"3"]


def test_it_works_while_another_loop_runs() -> None:
    async def notebook(servers: str) -> str:
        with sync.Admin({"bootstrap.servers": servers}) as admin:
            return str(admin.describe_cluster().cluster_id)

    with Broker() as broker:
        assert asyncio.run(notebook(broker.bootstrap_servers)) == broker.cluster_id


def test_a_cluster_that_is_not_there_leaves_no_thread() -> None:
    with pytest.raises(CallTimeoutError):
        sync.Admin({"bootstrap.servers": "127.0.0.1:1", "default.api.timeout.ms": 300, "request.timeout.ms": 200})
    assert client_threads() == 0


# --- sending


def test_send_does_not_wait_and_flush_does(broker: Broker) -> None:
    broker.create_topic("flushed")
    settings = {"bootstrap.servers": broker.bootstrap_servers, "linger.ms": 60_000}
    with sync.Producer(settings) as producer:
        futures = [producer.send("flushed", b"%d" % number) for number in range(1_000)]
        assert not futures[-1].done()
        producer.flush()
        assert [future.result(0).offset for future in futures] == list(range(1_000))
    assert [record.value for record in broker.records("flushed")] == [b"%d" % number for number in range(1_000)]


def test_a_future_has_the_error_of_its_record_and_others_are_written(broker: Broker) -> None:
    broker.create_topic("faults")
    with sync.Producer({"bootstrap.servers": broker.bootstrap_servers, "max.request.size": 1_000}) as producer:
        small, large = producer.send("faults", b"small"), producer.send("faults", bytes(2_000))
        nowhere, after = producer.send("faults", b"", partition=7), producer.send("faults", b"after")
        producer.flush()
        assert (small.result(0).offset, after.result(0).offset) == (0, 1)
        for future, code in ((large, ErrorCode.MESSAGE_TOO_LARGE), (nowhere, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)):
            error = future.exception(0)
            assert isinstance(error, KafkaError) and error.code is code
        with pytest.raises(KafkaError, match="no partition 7"):
            producer.send_and_wait("faults", b"", partition=7)
        untyped: Any = producer
        with pytest.raises(TypeError, match="value must be bytes-like or None, not the int 5"):
            untyped.send("faults", 5)


def test_leaving_the_with_writes_all_and_an_exception_does_not_wait(broker: Broker) -> None:
    broker.create_topic("left")
    settings = {"bootstrap.servers": broker.bootstrap_servers, "linger.ms": 60_000}
    with sync.Producer(settings) as producer:
        written = producer.send("left", b"written")
    assert written.result(0).offset == 0
    with pytest.raises(ZeroDivisionError), sync.Producer(settings) as producer:
        dropped = [producer.send("left", b"dropped") for _ in range(100)]
        raise ZeroDivisionError
    for each in dropped:
        with pytest.raises(ClosedError):
            each.result(0)
    assert client_threads() == 0


def test_many_threads_may_send(broker: Broker) -> None:
    broker.create_topic("threads")
    with sync.Producer({"bootstrap.servers": broker.bootstrap_servers}) as producer:

        def send(thread: int) -> None:
            for number in range(2_000):
                producer.send("threads", b"%d %d" % (thread, number))

        threads = [threading.Thread(target=send, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(TIMEOUT_S)
    values = [record.value or b"" for record in broker.records("threads")]
    assert len(values) == 8_000
    for number in range(4):
        mine = [int(value.split()[1]) for value in values if value.startswith(b"%d " % number)]
        assert mine == list(range(2_000)), "the order of each thread is kept"


def test_send_blocks_when_too_much_waits(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    """The producer has room for few bytes, and so has the queue before it."""
    broker.create_topic("blocked")
    monkeypatch.setattr(outbox, "MAX_BYTES", 100)
    settings = {"bootstrap.servers": broker.bootstrap_servers, "buffer.memory": 1_000, "batch.size": 500}
    with sync.Producer(settings) as producer:
        futures = [producer.send("blocked", b"%100d" % number) for number in range(500)]
    assert [future.result(0).offset for future in futures] == list(range(500))

    broker.create_topic("stuck")
    settings = {**settings, "max.block.ms": 200, "linger.ms": 0}
    with sync.Producer(settings) as producer:
        producer.send_and_wait("stuck", b"")
        held = threading.Event()
        producer._thread.call_soon(lambda: held.wait(TIMEOUT_S))  # as if the loop had much to do
        with pytest.raises(CallTimeoutError, match=r"no room within max\.block\.ms=200"):
            for _ in range(10):
                producer.send("stuck", bytes(100))
        held.set()


def test_a_record_that_waits_can_be_cancelled(broker: Broker) -> None:
    broker.create_topic("cancelled")
    with sync.Producer({"bootstrap.servers": broker.bootstrap_servers}) as producer:
        held = threading.Event()
        producer._thread.call_soon(lambda: held.wait(TIMEOUT_S))
        first, second = producer.send("cancelled", b"first"), producer.send("cancelled", b"second")
        assert first.cancel()
        held.set()
        assert second.result(TIMEOUT_S).offset == 0
    assert [record.value for record in broker.records("cancelled")] == [b"second"]


def test_a_callback_may_send_but_not_wait(broker: Broker) -> None:
    broker.create_topic("callback")
    second: Future[Future[RecordMetadata]] = Future()
    refused: Future[BaseException | None] = Future()
    with sync.Producer({"bootstrap.servers": broker.bootstrap_servers}) as producer:

        def done(future: Future[RecordMetadata]) -> None:
            second.set_result(producer.send("callback", b"second"))
            try:
                producer.flush()
            except RuntimeError as error:
                refused.set_result(error)

        producer.send("callback", b"first").add_done_callback(done)
        assert second.result(TIMEOUT_S).result(TIMEOUT_S).offset == 1
        assert "from another thread" in str(refused.result(TIMEOUT_S))


def test_records_belong_to_the_transaction_in_which_they_were_sent(broker: Broker) -> None:
    broker.create_topic("transactions")
    with sync.Producer({"bootstrap.servers": broker.bootstrap_servers, "transactional.id": "t"}) as producer:
        producer.init_transactions()
        outside = producer.send("transactions", b"outside")
        for number in range(3):
            producer.begin_transaction()
            for _ in range(10):
                producer.send("transactions", b"%d" % number)
            producer.send_offsets_to_transaction({TopicPartition("transactions", 0): number}, "g")
            (producer.abort_transaction if number == 1 else producer.commit_transaction)()
        assert isinstance(outside.exception(0), KafkaError)
    assert [record.value for record in broker.records("transactions")] == [b"0"] * 10 + [b"2"] * 10


# --- consuming


def test_a_listener_may_use_the_consumer(broker: Broker) -> None:
    broker.create_topic("listened")
    calls: list[object] = []
    settings = {
        "bootstrap.servers": broker.bootstrap_servers,
        "group.id": "listeners",
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
    }
    with sync.Producer({"bootstrap.servers": broker.bootstrap_servers}) as producer:
        producer.send("listened", b"one")
    with sync.Consumer(settings) as consumer:

        class Listener:
            def on_partitions_revoked(self, partitions: list[TopicPartition]) -> None:
                consumer.commit()
                calls.append(partitions)

        consumer.subscribe(["listened"], Listener())
        assert consumer.getone().value == b"one"
        consumer.unsubscribe()
        assert calls == [[("listened", 0)]]
        committed = consumer.committed([("listened", 0)])[TopicPartition("listened", 0)]
        assert committed is not None and committed.offset == 1


# --- the end


@pytest.mark.parametrize("make", [sync.Admin, sync.Producer, sync.Consumer])
def test_a_closed_client_says_so(broker: Broker, make: Callable[..., Any]) -> None:
    client = make({"bootstrap.servers": broker.bootstrap_servers})
    client.close()
    client.close()
    call = {sync.Admin: "list_topics", sync.Producer: "flush", sync.Consumer: "poll"}[make]  # type: ignore[index]
    with pytest.raises(ClosedError, match="the client is closed"):
        getattr(client, call)()
    with pytest.raises(ClosedError), client:
        pass
    if make is sync.Producer:
        with pytest.raises(ClosedError):
            client.send("orders", b"")


FORKING = """
import os, sys, warnings
from barnabas.client import ClosedError, sync
warnings.simplefilter("ignore")  # of fork itself, when there are threads
with sync.Producer({"bootstrap.servers": sys.argv[1]}) as producer:
    producer.send_and_wait("forked", b"")
    child = os.fork()
    for call in (producer.flush, lambda: producer.send("forked", b"")):
        try:
            call()
        except ClosedError as error:
            assert not child and "belongs to process" in str(error)
        else:
            assert child
    if child:
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
if not child:
    os._exit(0)  # as multiprocessing does: the parent's tasks must not be finalized a second time
"""


def test_a_forked_process_is_told_to_create_its_own(broker: Broker) -> None:
    command = [sys.executable, "-c", FORKING, broker.bootstrap_servers]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")


# --- types

RIGHT = """
from concurrent.futures import Future
from barnabas.client import NewTopic, RecordMetadata, sync

with sync.Admin({"bootstrap.servers": "localhost:9092"}) as admin:
    admin.create_topics([NewTopic("orders", 3)], timeout_ms=1_000)
    names: list[str] = [topic.name for topic in admin.list_topics()]
    for name, topic in admin.describe_topic_partitions(["orders"]):
        pass
with sync.Producer({"bootstrap.servers": "localhost:9092"}) as producer:
    future: Future[RecordMetadata] = producer.send("orders", b"two apples", key=b"alice")
    producer.flush()
def encode(number: int) -> bytes:
    return b"%d" % number
with sync.Producer({"bootstrap.servers": "localhost:9092"}, value_serializer=encode) as numbers:
    numbers.send("orders", 5, b"alice")
with sync.Consumer({"bootstrap.servers": "localhost:9092"}, value_deserializer=int) as consumer:
    values: list[int | None] = [record.value for record in consumer.poll(100)]
    key: bytes | None = next(consumer).key
"""

WRONG = {
    "from barnabas.client import NewTopics": 'Module "barnabas.client" has no attribute "NewTopics"',
    "from barnabas.testing import Brokers": 'Module "barnabas.testing" has no attribute "Brokers"',
    'admin.create_topic([NewTopic("orders", 3)])': '"Admin" has no attribute "create_topic"; maybe "create_topics"',
    "admin.create_topics([], timeout=1)": 'Unexpected keyword argument "timeout" for "create_topics"',
    "admin.describe_topics(5)": 'Argument 1 to "describe_topics" of "Admin" has incompatible type "int"',
    'producer.send("orders", "two apples")': 'Argument 2 to "send" of "Producer" has incompatible type "str"',
    "producer.sent": '"Producer[bytes | bytearray | memoryview[int], bytes | bytearray | memoryview[int]]" has no attribute',
    'numbers.send("orders", b"5")': 'Argument 2 to "send" of "Producer" has incompatible type "bytes"; expected "int | None"',
    "consumer.polls()": 'has no attribute "polls"',
    "text: str = next(consumer).value": 'expression has type "int | None", variable has type "str"',
}


@pytest.fixture(scope="module")
def mypy_says(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What mypy --strict says about the right code, followed by the wrong lines."""
    folder = tmp_path_factory.mktemp("typed")
    (folder / "program.py").write_text(RIGHT + "\n".join(WRONG) + "\n")
    (folder / "mypy.ini").write_text("[mypy]\nstrict = true\n")
    command = [sys.executable, "-m", "mypy", "--cache-dir", str(folder / "cache"), "program.py"]
    environment = {**os.environ, "MYPYPATH": str(ROOT / "src")}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stdout + done.stderr
    return done.stdout


def test_mypy_accepts_right_calls_and_finds_wrong_ones(mypy_says: str) -> None:
    errors = [line for line in mypy_says.splitlines() if "error:" in line]
    assert len(errors) == len(WRONG), mypy_says
    for line, (code, message) in zip(errors, WRONG.items(), strict=True):
        assert message in line, code


def test_the_marker_for_type_checkers_is_shipped() -> None:
    assert files("barnabas").joinpath("py.typed").is_file()


def test_the_generated_classes_are_up_to_date() -> None:
    command = [sys.executable, str(ROOT / "tools" / "sync_client.py"), "--check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("blocking", "asynchronous"),
    [
        (sync.Admin, async_admin.Admin),
        (sync.Producer, async_producer.Producer),
        (sync.Consumer, async_consumer.Consumer),
    ],
)
def test_blocking_and_asynchronous_methods_have_the_same_arguments(blocking: type, asynchronous: type) -> None:
    def methods(cls: type) -> dict[str, list[str]]:
        found = inspect.getmembers(cls, inspect.isfunction)
        return {
            name: list(map(str, inspect.signature(each).parameters.values())) for name, each in found if name[0] != "_"
        }

    expected = methods(asynchronous)
    del expected["start"]
    assert methods(blocking) == expected
    for name in expected:
        assert inspect.getdoc(getattr(blocking, name)), f"{name} has no docstring"
