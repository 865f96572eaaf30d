"""Producer, consumer and admin above real quotas: nothing is sent to a node while it throttles the client."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from barnabas.client import Admin, Consumer, NewTopic, Producer
from barnabas.client.connection import Connection
from barnabas.client.throttling import Throttle
from barnabas.testing import Broker

VALUE = b"v" * 60_000
COUNT = 5
SETTINGS = {"quota.window.num": "2", "group.initial.rebalance.delay.ms": "0"}  # so one second counts


class Seen:
    """The throttle times that nodes asked for, and how long the client should still have waited at each request."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.times_ms: list[float] = []
        self.too_early_s: list[float] = []
        extend, write = Throttle.extend, Connection._write

        def seen_extend(throttle: Throttle, time_ms: float, now_s: float) -> None:
            self.times_ms += [time_ms] if time_ms else []
            extend(throttle, time_ms, now_s)

        def seen_write(connection: Connection, *request: Any) -> int:
            self.too_early_s.append(connection.throttle.left_s(asyncio.get_running_loop().time()))
            return write(connection, *request)

        monkeypatch.setattr(Throttle, "extend", seen_extend)
        monkeypatch.setattr(Connection, "_write", seen_write)


@pytest.mark.parametrize(
    ("key", "value"),
    [("producer_byte_rate", 100_000.0), ("consumer_byte_rate", 100_000.0), ("request_percentage", 0.2)],
)
def test_all_records_arrive_and_no_request_is_sent_too_early(
    monkeypatch: pytest.MonkeyPatch, key: str, value: float
) -> None:
    seen = Seen(monkeypatch)

    async def scenario(bootstrap_servers: str) -> list[bytes | None]:
        config = {"bootstrap.servers": bootstrap_servers, "client.id": "slow"}
        async with Admin({"bootstrap.servers": bootstrap_servers}) as admin:
            await admin.create_topics([NewTopic("t", 1)])
            await admin.alter_client_quotas({(("client-id", "slow"),): {key: value}})
        assert not seen.times_ms
        async with Producer({**config, "batch.size": 1}) as producer:
            for _ in range(COUNT):
                await producer.send_and_wait("t", VALUE)
        found: list[bytes | None] = []
        async with Consumer({**config, "group.id": "g", "auto.offset.reset": "earliest"}, topics=["t"]) as consumer:
            async for record in consumer:
                found.append(record.value)
                if len(found) == COUNT:
                    break
        return found

    with Broker(config=SETTINGS) as broker:
        assert asyncio.run(scenario(broker.bootstrap_servers)) == [VALUE] * COUNT
    assert seen.times_ms, "nothing was throttled"
    assert set(seen.too_early_s) == {0.0}
