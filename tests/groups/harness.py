"""Clients of one node in memory, all in one event loop, so that they can wait for each other.

async with Clients() as clients:
    joining = clients.begin(JoinGroupRequest(...), version=9)
    clients.pass_time(3000)
    response = await joining
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Mapping, Sequence
from typing import Any, Self

from barnabas import wire
from barnabas.broker.context import Listener, Peer
from barnabas.broker.dispatch import dispatch
from barnabas.security.principal import ANONYMOUS, KafkaPrincipal
from barnabas.wire import APIS, ApiKey, Message, Uuid
from barnabas.wire.messages.header import RequestHeader
from barnabas.wire.records.metadata import PartitionRecord, TopicRecord
from tests.broker.harness import MemoryNode
from tests.replicated.memory_log import MemoryLog

BROKER = Listener("PLAINTEXT", is_controller=False)
NODE_ID = 1


def topic(name: str, partitions: int = 2, number: int | None = None) -> list[Message]:
    """The records of a topic that node 1 leads."""
    topic_id = topic_id_of(name) if number is None else Uuid(bytes([number]) * 16)
    records: list[Message] = [TopicRecord(name=name, topic_id=topic_id)]
    records += [
        PartitionRecord(partition_id=index, topic_id=topic_id, replicas=[1], isr=[1], leader=1, leader_epoch=0)
        for index in range(partitions)
    ]
    return records


def topic_id_of(name: str) -> Uuid:
    return Uuid(name.encode()[:16].ljust(16, b"\x01"))


class Clients:
    """Asks a node that leads all of `__consumer_offsets` (one partition, unless records say otherwise)."""

    def __init__(
        self,
        properties: Mapping[str, str] | None = None,
        records: Sequence[Message] = (),
        *,
        node: MemoryNode | None = None,
        log: MemoryLog | None = None,
        **arguments: Any,
    ) -> None:
        if node is None:
            given = {"node.id": str(NODE_ID), **(properties or {})}
            node = MemoryNode(given, records=[*topic("__consumer_offsets", 1), *records], **arguments)
        self.node = node
        self.groups = node.memory_groups.coordinator
        self.clock = node.memory_groups.clock
        if log is not None:
            node.memory_groups.logs[0] = log

    @property
    def log(self) -> MemoryLog:
        return self.node.memory_groups.logs[0]

    async def __aenter__(self) -> Self:
        await self.node.memory_groups.load()
        return self

    async def __aexit__(self, *_: object) -> None:
        self.groups.stop()
        await asyncio.sleep(0)

    async def restart(self) -> None:
        """Lead everything anew, from the logs."""
        for partition_id in self.node.memory_groups.logs:
            self.groups.resigned(partition_id)
        await self.node.memory_groups.load()

    async def ask_frame(self, frame: bytes, principal: KafkaPrincipal = ANONYMOUS, host: str = "127.0.0.1") -> bytes:
        answer = dispatch(frame, self.node, Peer(host, principal, BROKER))
        pieces = await answer if inspect.isawaitable(answer) else answer
        assert pieces is not None
        return b"".join(pieces)[4:]

    async def ask(self, request: Message, version: int, client_id: str | None = "test", **peer: Any) -> Any:
        """The response to a request, through its bytes."""
        key = request.schema().key or 0
        api = APIS[ApiKey(key)]
        header = RequestHeader(request_api_key=key, request_api_version=version, correlation_id=5, client_id=client_id)
        frame = wire.encode(header, api.request_header_version(version)) + wire.encode(request, version)
        answer = await self.ask_frame(frame, **peer)
        return wire.decode(api.response, version, answer[4 + api.response_header_version(version) :])

    def begin(self, request: Message, version: int, client_id: str | None = "test", **peer: Any) -> asyncio.Task[Any]:
        return asyncio.get_running_loop().create_task(self.ask(request, version, client_id, **peer))

    async def pass_time(self, by_ms: int = 0) -> None:
        """Let everybody come to where they wait, let time pass, and again."""
        await settle()
        self.clock.advance(by_ms)
        await settle()


async def settle() -> None:
    for _ in range(10):
        await asyncio.sleep(0)
