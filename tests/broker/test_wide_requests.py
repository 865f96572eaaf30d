"""Every array of every request is walked in slices: however many rows a client puts into it, a turn walks only a few."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
from collections.abc import Generator, Sequence
from pathlib import Path
from typing import Any

import pytest
from bench.wide_requests import LOGIN, WideArray, wide_arrays

from barnabas import slices, wire
from barnabas.broker import dispatch
from barnabas.broker.context import ClientInformation, Context, Listener, Peer
from barnabas.broker.served import served_apis
from barnabas.security.principal import ANONYMOUS
from barnabas.wire import KafkaError
from tests.broker.reading_node import ReadingNode
from tests.counting import Walked

ROWS = 1000
MOST_PER_TURN = 256
IDLE_TURNS = 2000
FROM_NODES = {  # only brokers and controllers of the cluster may send them, and their arrays are as large as it is
    "AlterPartition.topics.partitions.new_isr v2",
    "AlterPartition.topics.partitions.new_isr_with_epochs v3",
    "ControllerRegistration.listeners v0",
    "ControllerRegistration.features v0",
}
ARRAYS = [(kind, each) for kind in ("broker", "controller") for each in wide_arrays(kind)]


@pytest.mark.parametrize(("kind", "wide"), ARRAYS, ids=[f"{kind} {wide}" for kind, wide in ARRAYS])
def test_a_turn_walks_a_few_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, wide: WideArray) -> None:
    if str(wide) in FROM_NODES:
        pytest.skip("sent by nodes of the cluster only")
    monkeypatch.setattr(slices, "MAX_STEPS", 1)
    monkeypatch.setattr(slices, "TURN_S", 0)
    walked: list[Walked[Any]] = []

    def as_list(rows: Sequence[Any]) -> list[Any]:
        walked.append(Walked(rows))
        return walked[0]

    request = wide.request(ROWS, as_list)
    assert len(wire.encode(request, wide.version)) > ROWS
    rows = walked[0]
    most = asyncio.run(_most_per_turn(tmp_path, kind, wide, request, rows))
    assert most <= MOST_PER_TURN, f"{most} rows of {wide} were walked in one turn"


async def _most_per_turn(directory: Path, kind: str, wide: WideArray, request: wire.Message, rows: Walked[Any]) -> int:
    topics: Any = {"name-0": [[1]]}
    node = ReadingNode(directory, **topics)
    peer = Peer("127.0.0.1", ANONYMOUS, Listener("PLAINTEXT", kind == "controller"), ClientInformation())
    context = Context(node, peer, wide.version, 1, "x")
    most = 0

    async def carry_out() -> None:
        answer: Any = dispatch.handler_of(request.schema().key or 0)(context, request)
        if isinstance(answer, Generator):
            answer = await slices.in_slices(answer)
        if inspect.isawaitable(answer):
            await answer

    rows.walked = 0
    work = asyncio.ensure_future(carry_out())
    idle = 0
    while not work.done() and idle < IDLE_TURNS:  # a member of a group may wait for others
        before = rows.walked
        await asyncio.sleep(0)
        most = max(most, rows.walked - before)
        idle = idle + 1 if rows.walked == before else 0
    work.cancel()
    with contextlib.suppress(KafkaError, dispatch.Refused, asyncio.CancelledError):
        await work
    await node.replicas.stop()
    return most


def test_all_requests_with_arrays_are_there() -> None:
    """So that an API that is added is tried too."""
    for kind in ("broker", "controller"):
        tried = {wide.api for which, wide in ARRAYS if which == kind}
        for api in served_apis(kind).values():
            struct = wire.message_class(api.request).schema().root
            if any(field.is_array for field in struct.fields) and api.name not in LOGIN:
                assert api.name in tried
