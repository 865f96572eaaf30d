"""The controller fences a broker that is silent, and not one that waits for the controller itself."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from barnabas.broker.node import Node
from barnabas.client.connection import Connection
from barnabas.config import server
from barnabas.raft.stored_log import StoredLog
from barnabas.testing.settings import TEST_DEFAULTS
from barnabas.wire import Uuid
from barnabas.wire.messages.assign_replicas_to_dirs import AssignReplicasToDirsRequest
from barnabas.wire.messages.broker_heartbeat import BrokerHeartbeatRequest
from barnabas.wire.messages.broker_registration import BrokerRegistrationRequest
from barnabas.wire.messages.create_topics import CreateTopicsRequest
from barnabas.wire.records.metadata import BrokerRegistrationChangeRecord

SESSION_MS = 800
SETTINGS = {
    **TEST_DEFAULTS,
    "listeners": "PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:0",
    "broker.heartbeat.interval.ms": "400",
    "broker.session.timeout.ms": str(SESSION_MS),
}
LONG_S = 3 * SESSION_MS / 1000


class SlowDisk:
    """Flushes of the metadata log wait while it is closed."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._is_open = threading.Event()
        self._is_open.set()
        flush = StoredLog.flush

        def slow(log: StoredLog) -> None:
            assert self._is_open.wait(60)
            flush(log)

        monkeypatch.setattr(StoredLog, "flush", slow)

    def close(self) -> None:
        self._is_open.clear()

    def open(self) -> None:
        self._is_open.set()


def run(directory: Path, scenario: Callable[[Node], Awaitable[Any]]) -> list[tuple[int, int]]:
    """Run it with a node, and return what the records say: which brokers were fenced (1) or unfenced (-1)."""
    fenced: list[tuple[int, int]] = []

    def look(old: object, new: object, records: Sequence[Any]) -> None:
        fenced.extend(
            (record.broker_id, record.fenced)
            for record in records
            if isinstance(record, BrokerRegistrationChangeRecord) and record.fenced
        )

    async def main() -> None:
        node = Node(server.load(None, {**SETTINGS, "log.dirs": str(directory)}))
        try:
            await node.start()
            node.controller.loop.subscribe(look)
            await scenario(node)
            fenced_so_far = list(fenced)
        finally:
            await node.stop()
        fenced[:] = fenced_so_far

    asyncio.run(main())
    return fenced


async def create(node: Node, name: str) -> int:
    connection = await Connection.open(*node.addresses["PLAINTEXT"], "test")
    topic = CreateTopicsRequest.CreatableTopic(name=name, num_partitions=1, replication_factor=1)
    response = await connection.call(CreateTopicsRequest(topics=[topic], timeout_ms=60_000), 7)
    connection.close()
    return int(response.topics[0].error_code)


def test_a_broker_is_not_fenced_while_its_heartbeats_wait_for_a_slow_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = SlowDisk(monkeypatch)

    async def scenario(node: Node) -> None:
        disk.close()
        creating = asyncio.create_task(create(node, "slow"))
        await asyncio.sleep(LONG_S)
        assert not creating.done()
        disk.open()
        assert await creating == 0
        await asyncio.sleep(SESSION_MS / 1000)  # the sessions are checked, before and after the next heartbeat
        assert await create(node, "afterwards") == 0

    assert run(tmp_path, scenario) == []


def test_a_broker_is_not_fenced_while_another_of_its_requests_waits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    handled = asyncio.Event()

    async def scenario(node: Node) -> None:
        lifecycle = node._lifecycle
        assert lifecycle is not None

        async def waits(*arguments: Any, **options: Any) -> Any:
            handled.set()
            await asyncio.sleep(LONG_S)
            raise AssertionError("nobody waits for this answer")

        monkeypatch.setattr("barnabas.broker.api.assign_replicas_to_dirs.handle", waits)
        node.routes.clear()
        directory = AssignReplicasToDirsRequest.DirectoryData(id=Uuid(bytes(16)))
        assigning = asyncio.create_task(lifecycle.assign_replicas_to_dirs([directory]))
        await handled.wait()
        await asyncio.sleep(LONG_S / 2)
        assigning.cancel()

    assert run(tmp_path, scenario) == []


def test_a_broker_is_not_fenced_because_the_whole_node_stood_still(tmp_path: Path) -> None:
    async def scenario(node: Node) -> None:
        for _ in range(3):  # nothing runs and nothing is read, as when a machine is suspended
            time.sleep(LONG_S)  # noqa: ASYNC251
            await asyncio.sleep(SESSION_MS / 4000)

    assert run(tmp_path, scenario) == []


def test_a_silent_broker_is_fenced_with_a_line_in_the_log(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(node: Node) -> None:
        connection = await Connection.open(*node.addresses["CONTROLLER"], "broker-7")
        registration = BrokerRegistrationRequest(
            broker_id=7,
            cluster_id=node.cluster_id,
            incarnation_id=Uuid(b"a silent broker!"),
            listeners=[BrokerRegistrationRequest.Listener(name="PLAINTEXT", host="127.0.0.1", port=1)],
            features=[
                BrokerRegistrationRequest.Feature(name=name, min_supported_version=0, max_supported_version=level)
                for name, level in {**node.image.features, "kraft.version": 1}.items()
            ],
            log_dirs=[Uuid(b"a log directory.")],
        )
        registered = await connection.call(registration, 4)
        assert registered.error_code == 0
        beat = BrokerHeartbeatRequest(broker_id=7, broker_epoch=registered.broker_epoch)
        beat.current_metadata_offset = 1 << 40
        assert not (await connection.call(beat, 1)).is_fenced
        while not node.image.brokers[7].fenced:
            await asyncio.sleep(0.02)
        connection.close()

    caplog.set_level(logging.WARNING, "barnabas")
    assert run(tmp_path, scenario) == [(7, -1), (7, 1)]
    lines = [each.getMessage() for each in caplog.records if "fencing" in each.getMessage()]
    assert len(lines) == 1
    assert lines[0].startswith("fencing broker 7 at epoch ") and "because its session has timed out" in lines[0]
