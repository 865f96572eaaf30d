"""One client's requests in one turn of the event loop: however many it sends, only a few are answered before others are."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from pathlib import Path
from typing import Any, cast

import pytest

from barnabas import slices, wire
from barnabas.batches import Record, build_batch
from barnabas.broker import connection, dispatch
from barnabas.broker.context import Listener, Peer
from barnabas.security.principal import ANONYMOUS
from barnabas.wire.messages.header import RequestHeader
from barnabas.wire.messages.metadata import MetadataRequest
from barnabas.wire.messages.produce import ProduceRequest
from tests.broker.clients import RawClient, running_server
from tests.broker.reading_node import ReadingNode
from tests.broker.test_server import framed, request


def test_a_connection_answers_a_few_pipelined_requests_per_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    turns: list[int] = [0]
    real = dispatch.dispatch

    def counted(*arguments: Any) -> Any:
        turns[-1] += 1
        return real(*arguments)

    async def scenario() -> None:
        async with running_server() as (_server, broker, _controller):
            client = await RawClient.connect(broker)
            await client.call(request())
            monkeypatch.setattr(connection, "dispatch", counted)
            client.send(framed(request()) * 1000)
            while sum(turns) < 1000:
                turns.append(0)
                await asyncio.sleep(0)
            assert max(turns) <= connection.MAX_FRAMES_PER_TURN
            assert sum(turns) == 1000
            for _ in range(1000):
                await client.frame()
            await client.close()

    asyncio.run(scenario())


def test_another_client_is_answered_while_one_pipelines(monkeypatch: pytest.MonkeyPatch) -> None:
    served: list[str] = []
    real = dispatch.dispatch

    def noted(frame: Any, services: Any, peer: Any) -> Any:
        served.append(peer.information.port)
        return real(frame, services, peer)

    async def scenario() -> None:
        async with running_server() as (_server, broker, _controller):
            greedy, other = [await RawClient.connect(broker) for _ in range(2)]
            await greedy.call(request())
            await other.call(request())
            monkeypatch.setattr(connection, "dispatch", noted)
            greedy.send(framed(request()) * 5000)
            await asyncio.sleep(0)
            await other.call(request())
            ports = set(served)
            assert len(ports) == 2
            assert len(served) < 1000, "the other client waited for the greedy one"
            await greedy.close()
            await other.close()

    asyncio.run(scenario())


def metadata_of_unknown_topics(count: int) -> bytes:
    header = wire.encode(RequestHeader(request_api_key=3, request_api_version=12, correlation_id=1, client_id=None), 2)
    names = [MetadataRequest.MetadataRequestTopic(name=f"topic-{number}") for number in range(count)]
    return header + wire.encode(MetadataRequest(topics=names), 12)


def test_a_large_frame_is_decoded_between_the_requests_of_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slices, "MAX_STEPS", 1)
    frame = metadata_of_unknown_topics(20_000)
    assert len(frame) > dispatch.SLICED_BYTES

    async def scenario() -> None:
        async with running_server() as (_server, broker, _controller):
            greedy, other = [await RawClient.connect(broker) for _ in range(2)]
            await other.call(request())
            greedy.send(framed(frame))
            answer = asyncio.ensure_future(greedy.frame())
            for _ in range(20):
                await other.call(request())
            assert not answer.done()
            await answer
            await greedy.close()
            await other.close()

    asyncio.run(scenario())


def test_a_request_is_done_to_its_end_although_its_client_has_disconnected(tmp_path: Path) -> None:
    """A producer with acks=0 sends and closes; the log of a new topic is still being opened then."""
    batch = build_batch([Record(0, 1, b"k", b"v")])
    data = ProduceRequest.PartitionProduceData(index=0, records=batch)
    topic = ProduceRequest.TopicProduceData(name="t", partition_data=[data])
    produce = ProduceRequest(acks=0, timeout_ms=1000, topic_data=[topic])
    header = RequestHeader(request_api_key=0, request_api_version=9, correlation_id=1, client_id="x")
    frame = wire.encode(header, 2) + wire.encode(produce, 9)

    async def scenario() -> None:
        node = ReadingNode(tmp_path, t=[[1]])
        answer = dispatch.dispatch(frame, node, Peer("127.0.0.1", ANONYMOUS, Listener("PLAINTEXT", False)))
        waiting = asyncio.ensure_future(cast(Awaitable[Any], answer))
        await asyncio.sleep(0)
        waiting.cancel()
        await node.partition().open()
        async with asyncio.timeout(20):
            while not node.partition().log_end_offset:
                await asyncio.sleep(0.01)
        await node.replicas.stop()

    asyncio.run(scenario())
