"""Large payloads: a few at a time, in threads, and room is given back whatever happens."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from barnabas.batches import AppendRules, BatchError, Compression, decode_header
from barnabas.replicas import large_payloads
from barnabas.replicas.large_payloads import LargePayloads, Ticket
from tests.batches.test_validation_slices import NOW_MS, batch_of

RULES = AppendRules()
MAX_OPEN = 3
LARGE = batch_of(100_000, Compression.ZSTD)


def ticket(payloads: LargePayloads, batch: bytes = LARGE) -> Ticket | None:
    return payloads.ticket(batch, decode_header(batch), RULES, NOW_MS)


def test_only_payloads_that_are_needed_and_may_be_large_have_a_ticket() -> None:
    async def scenario() -> None:
        payloads = LargePayloads()
        assert ticket(payloads) is not None
        assert ticket(payloads, batch_of(10, Compression.ZSTD)) is None
        assert ticket(payloads, batch_of(100_000, Compression.ZSTD, base_timestamp=1)) is None
        assert ticket(payloads, batch_of(100_000, Compression.NONE)) is None

    asyncio.run(scenario())


def test_they_are_decompressed_in_threads_a_few_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    threads: list[int] = []
    real: Any = large_payloads.decode_payload  # type: ignore[attr-defined]

    def noted(*arguments: Any, **more: Any) -> bytes:
        threads.append(threading.get_ident())
        found: bytes = real(*arguments, **more)
        return found

    monkeypatch.setattr(large_payloads, "decode_payload", noted)

    async def scenario() -> None:
        payloads = LargePayloads(lambda: MAX_OPEN)
        tickets = [each for _ in range(MAX_OPEN + 2) if (each := ticket(payloads)) is not None]
        opening = [asyncio.ensure_future(each.open()) for each in tickets]
        await asyncio.wait(opening, timeout=5, return_when=asyncio.FIRST_COMPLETED)
        async with asyncio.timeout(20):
            while sum(each.done() for each in opening) < MAX_OPEN:
                await asyncio.sleep(0.01)
        assert sum(each.done() for each in opening) == payloads.open == MAX_OPEN
        assert payloads.waiting == 2
        opening[-1].cancel()  # its client has disconnected
        tickets[-1].leave()
        assert len(tickets[0].payload if isinstance(tickets[0].payload, bytes) else b"") == 700_000
        tickets[0].leave()
        assert tickets[0].payload == b""
        await asyncio.wait_for(opening[MAX_OPEN], 20)
        assert threading.get_ident() not in threads
        assert len(threads) == MAX_OPEN + 1

    asyncio.run(scenario())


def test_an_error_of_the_codec_is_the_result() -> None:
    async def scenario() -> None:
        broken = LARGE[:100] + b"\xff" * 20 + LARGE[120:]
        found = LargePayloads().ticket(broken, decode_header(broken), RULES, NOW_MS)
        if found is not None:
            await found.open()
            assert isinstance(found.payload, BatchError)
            found.leave()

    asyncio.run(scenario())
