"""Requests of every served API that were good once: a whole node answers each or hangs up, and lives.

Bodies are the golden ones of every version, mutated. What a handler did not expect is in the log with a traceback, which fails
the test. At the end it is a good client's turn: it creates a topic, produces and reads.
"""

from __future__ import annotations

import asyncio
import logging
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas import wire
from barnabas.batches import Record, build_batch
from barnabas.broker.served import served_apis, served_versions
from barnabas.client.connection import Connection
from barnabas.testing import AsyncBroker
from barnabas.wire import APIS, ApiKey
from barnabas.wire.messages.header import RequestHeader
from barnabas.wire.messages.produce import ProduceRequest
from tests.wire.golden import Vector, vectors_of
from tests.wire.test_hostile_input import mutated

PATIENCE_S = 30.0
GLANCE_S = 0.02
FRAMES = 150
BATCH = build_batch([Record(0, 1, b"k", b"good")])
# These wait for others, or for as long as they were told to; whoever hangs up is not waited for.
WAITING = frozenset(
    {
        ApiKey.FETCH,
        ApiKey.JOIN_GROUP,
        ApiKey.SYNC_GROUP,
        ApiKey.PRODUCE,
    }
)
# With the right words these fence the broker, or move the quorum to another epoch: nobody else could use it for a while.
UNSETTLING = frozenset(
    {
        ApiKey.VOTE,
        ApiKey.BEGIN_QUORUM_EPOCH,
        ApiKey.END_QUORUM_EPOCH,
        ApiKey.UNREGISTER_BROKER,
        ApiKey.REMOVE_RAFT_VOTER,
    }
)


def _as_it_is(draw: Random, vector: Vector) -> bytes:
    return vector.data


def _mutated(draw: Random, vector: Vector) -> bytes:
    return mutated(draw, vector.data)


def _reworded(draw: Random, vector: Vector) -> bytes:
    """Well formed, with other words in it: some that mean something here, some that nobody says."""
    message = wire.decode(vector.name, vector.version, vector.data)
    _reword(draw, message)
    try:
        return wire.encode(message, vector.version)
    except wire.EncodeError:  # a word that does not fit its field
        return vector.data


def _reword(draw: Random, value: wire.Struct) -> None:
    for name in value.__slots__:
        old = getattr(value, name)
        if isinstance(old, wire.Struct):
            _reword(draw, old)
        elif isinstance(old, list) and old and isinstance(old[0], wire.Struct):
            for each in old:
                _reword(draw, each)
            if draw.random() < 0.1:
                setattr(value, name, old * 2 if draw.random() < 0.7 else [])
        elif draw.random() < 0.35:
            setattr(value, name, _word(draw, old))


def _word(draw: Random, old: object) -> object:
    if isinstance(old, bool):
        return not old
    if isinstance(old, int):
        return draw.choice((0, 1, 2, -1, -2, 127, 2**15 - 1, 2**31 - 1, -(2**31), 2**63 - 1, draw.randrange(70)))
    if isinstance(old, str):
        return draw.choice(("known", "known", "group", "id", "", "__consumer_offsets", "a" * 300, "consumer", "1", "*"))
    if isinstance(old, bytes):
        return draw.choice((b"", draw.randbytes(30), BATCH))
    if isinstance(old, list) and old:
        return [_word(draw, each) for each in old]
    return old


def some_frame(draw: Random, kind: str) -> tuple[ApiKey, bytes]:
    key = ApiKey(draw.choice([key for key in served_apis(kind) if key not in UNSETTLING]))
    api = APIS[key]
    good = [vector for vector in vectors_of(api.request) if vector.version in served_versions(key)]
    vector: Vector = draw.choice(good)
    header = RequestHeader(
        request_api_key=key,
        request_api_version=vector.version,
        correlation_id=draw.randrange(1 << 31),
        client_id="fuzz",
    )
    head = wire.encode(header, api.request_header_version(vector.version))
    body = draw.choice((_as_it_is, _mutated, _reworded, _reworded))(draw, vector)
    frame = head + body if draw.random() < 0.9 else mutated(draw, head) + body
    return key, frame


class Peer:
    """A connection that is made again when the node hangs up."""

    def __init__(self, address: tuple[str, int]) -> None:
        self._address = address
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        self.answered = self.closed = self.waiting = 0

    async def send(self, key: ApiKey, frame: bytes) -> None:
        if self._streams is None:
            self._streams = await asyncio.open_connection(*self._address)
        reader, writer = self._streams
        writer.write(struct.pack(">i", len(frame)) + frame)
        try:
            async with asyncio.timeout(GLANCE_S if key in WAITING else PATIENCE_S):
                (size,) = struct.unpack(">i", await reader.readexactly(4))
                await reader.readexactly(size)
            self.answered += 1
        except (asyncio.IncompleteReadError, ConnectionError):
            self.closed += 1
            self.close()
        except TimeoutError:
            assert key in WAITING, f"{key.name} was neither answered nor refused: {frame.hex()}"
            self.waiting += 1
            self.close()

    def close(self) -> None:
        if self._streams is not None:
            self._streams[1].close()
            self._streams = None


@contextmanager
def no_surprises() -> Iterator[None]:
    surprises: list[str] = []
    handler = logging.Handler(logging.ERROR)
    handler.emit = lambda record: surprises.append(handler.format(record))  # type: ignore[method-assign]
    log = logging.getLogger("barnabas")
    log.addHandler(handler)
    try:
        yield
    finally:
        log.removeHandler(handler)
    assert not surprises, f"{len(surprises)}: {surprises[0]}"


async def use(broker: AsyncBroker) -> None:
    """As a good client does, after all the others."""
    await broker.create_topic("good", 1)
    connection = await Connection.open(broker.host, broker.port, "good")
    rows = [ProduceRequest.PartitionProduceData(index=0, records=BATCH)]
    topics = [ProduceRequest.TopicProduceData(name="good", partition_data=rows)]
    response = await connection.call(ProduceRequest(acks=-1, timeout_ms=5000, topic_data=topics), 12)
    assert response.responses[0].partition_responses[0].error_code == 0
    connection.close()
    assert [record.value for record in await broker.records("good", 1)] == [b"good"]


async def fuzz(draw: Random, frames: int = FRAMES) -> Peer:
    async with AsyncBroker({"known": 2}, config={"auto.create.topics.enable": False}) as broker:
        host, _, port = broker.listeners["CONTROLLER"].rpartition(":")
        peers = {"broker": Peer((broker.host, broker.port)), "controller": Peer((host, int(port)))}
        for _ in range(frames):
            kind = draw.choice(("broker", "broker", "controller"))
            await peers[kind].send(*some_frame(draw, kind))
        for peer in peers.values():
            peer.close()
        await use(broker)
        return peers["broker"]


@settings(max_examples=4, deadline=None)
@given(st.integers(0, 1 << 32))
def test_whatever_is_asked_the_node_answers_or_hangs_up_and_lives(seed: int) -> None:
    with no_surprises():
        asyncio.run(fuzz(Random(seed)))
