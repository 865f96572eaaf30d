"""The client without an event loop: the same answers, waited for."""

from __future__ import annotations

import asyncio
import threading

import pytest

from barnabas.client import sync
from barnabas.client.admin.part import checked
from barnabas.client.admin.topics import NewTopic
from barnabas.client.errors import CallTimeoutError
from barnabas.testing import Broker
from barnabas.wire import KafkaError


def client_threads() -> int:
    return sum(thread.name == "barnabas-client" for thread in threading.enumerate())


def test_methods_wait_and_asynchronous_iterators_are_iterators() -> None:
    with Broker({"orders": 3}) as broker, sync.Admin({"bootstrap.servers": broker.bootstrap_servers}) as admin:
        checked(admin.create_topics([NewTopic("payments", 1)]))
        assert isinstance(admin.create_topics([NewTopic("payments", 1)])["payments"], KafkaError)
        described = dict(admin.describe_topic_partitions())
        assert {name: len(topic.partitions) for name, topic in described.items()} == {"orders": 3, "payments": 1}
        assert "describe_quorum" in dir(admin)
        with pytest.raises(AttributeError, match="no_such_method"):
            admin.no_such_method()
    assert client_threads() == 0


def test_records_go_out_and_come_back() -> None:
    with Broker({"orders": 2}) as broker:
        settings = {"bootstrap.servers": broker.bootstrap_servers, "auto.offset.reset": "earliest"}
        with sync.Producer({"bootstrap.servers": broker.bootstrap_servers}) as producer:
            written = [producer.send("orders", b"%d" % number, partition=number % 2) for number in range(4)]
        assert [(each.partition, each.offset) for each in written] == [(0, 0), (1, 0), (0, 1), (1, 1)]
        with sync.Consumer(settings) as consumer:
            consumer.assign([("orders", 0), ("orders", 1)])
            values = [record.value for _, record in zip(range(4), consumer, strict=False)]
        assert sorted(values) == [b"0", b"1", b"2", b"3"]


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
