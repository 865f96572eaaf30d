"""`async with Broker() as broker`: the broker in the caller's own event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
import uvloop
from aiokafka.admin import AIOKafkaAdminClient

from barnabas.testing import AsyncBroker, Broker, BrokerError
from barnabas.wire import ErrorCode, KafkaError

LOOPS = [asyncio.new_event_loop, uvloop.new_event_loop]


def run(work: Coroutine[Any, Any, None], loop_factory: Callable[[], asyncio.AbstractEventLoop] | None = None) -> None:
    with asyncio.Runner(loop_factory=loop_factory, debug=True) as runner:
        runner.run(work)


async def topics(broker: AsyncBroker) -> list[str]:
    admin = AIOKafkaAdminClient(bootstrap_servers=broker.bootstrap_servers)
    await admin.start()
    try:
        return sorted(await admin.list_topics())
    finally:
        await admin.close()


@pytest.mark.parametrize("loop_factory", LOOPS)
def test_a_client_in_the_same_loop_sees_its_topics(
    temporary: Path, loop_factory: Callable[[], asyncio.AbstractEventLoop]
) -> None:
    async def main() -> None:
        async with Broker({"orders": 3}) as broker, AsyncBroker(["payments"]) as other:
            assert await topics(broker) == ["orders"]
            assert await topics(other) == ["payments"]
            await broker.create_topic("more", 2, config={"cleanup.policy": "compact"})
            assert await topics(broker) == ["more", "orders"]
            await broker.delete_topic("orders")
            with pytest.raises(KafkaError) as refused:
                await broker.create_topic("more")
            assert refused.value.code is ErrorCode.TOPIC_ALREADY_EXISTS
            before = broker.listeners, broker.cluster_id
            await broker.restart()
            assert (broker.listeners, broker.cluster_id) == before
            assert await topics(broker) == ["more"]
        assert asyncio.all_tasks() == {asyncio.current_task()}

    run(main(), loop_factory)
    assert list(temporary.iterdir()) == []


def test_what_was_entered_in_a_loop_is_not_for_blocking_calls(temporary: Path) -> None:
    async def main() -> None:
        outer = Broker()
        async with outer as broker:
            assert outer.bootstrap_servers == broker.bootstrap_servers
            assert outer.is_running
            for forbidden in (
                lambda: outer.create_topic("orders"),
                outer.start,
                outer.stop,
                outer.close,
                outer.__enter__,
            ):
                with pytest.raises(BrokerError):
                    forbidden()
            assert broker.is_running
            assert broker.data_dir.exists()

    run(main())
    assert list(temporary.iterdir()) == []


def test_a_blocking_broker_serves_a_loop_as_well() -> None:
    async def main() -> None:
        with Broker(["orders"]) as broker:
            admin = AIOKafkaAdminClient(bootstrap_servers=broker.bootstrap_servers)
            await admin.start()
            assert await admin.list_topics() == ["orders"]
            await admin.close()

    run(main())


@pytest.mark.parametrize("after_ms", [0, 1, 2, 5, 10, 20])
def test_a_start_that_is_cancelled_leaves_nothing(temporary: Path, after_ms: int) -> None:
    async def enter() -> None:
        async with Broker({"orders": 3}):
            await asyncio.sleep(60)

    async def main() -> None:
        task = asyncio.create_task(enter())
        await asyncio.sleep(after_ms / 1000)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    run(main())
    assert list(temporary.iterdir()) == []


def test_a_start_that_fails_leaves_nothing(temporary: Path) -> None:
    async def main(port: int) -> None:
        with pytest.raises(BrokerError, match=str(port)):
            async with Broker(port=port):
                pass

    with Broker() as first:
        run(main(first.port))
        assert list(temporary.iterdir()) == [first.data_dir]


def test_without_an_event_loop_it_says_what_needs_none() -> None:
    with pytest.raises(BrokerError, match=r"with Broker\(\)"):
        AsyncBroker().start().send(None)


def test_a_second_async_with_is_an_error_and_the_broker_goes_on() -> None:
    async def main() -> None:
        outer = Broker(["orders"])
        async with outer as broker:
            for again in (outer, broker):
                with pytest.raises(BrokerError, match="already running"):
                    async with again:
                        pass
            with pytest.raises(BrokerError, match="already running"):
                await broker.start()
            assert await topics(broker) == ["orders"]

    run(main())


def test_of_two_tasks_that_start_it_one_is_refused(temporary: Path) -> None:
    async def main() -> None:
        broker = AsyncBroker(["orders"])
        results = await asyncio.gather(broker.start(), broker.start(), return_exceptions=True)
        assert sorted(type(each).__name__ for each in results) == ["AsyncBroker", "BrokerError"]
        assert await topics(broker) == ["orders"]
        await broker.close()
        assert asyncio.all_tasks() == {asyncio.current_task()}

    run(main())
    assert list(temporary.iterdir()) == []


def test_another_event_loop_is_told_that_it_is_the_wrong_one() -> None:
    broker = AsyncBroker(["orders"])
    with asyncio.Runner() as runner:
        runner.run(broker.start())
        with asyncio.Runner() as other:
            for work in (broker.create_topic("more"), broker.records("orders"), broker.stop(), broker.close()):
                with pytest.raises(BrokerError, match="another event loop"):
                    other.run(work)
        runner.run(topics(broker))
        runner.run(broker.close())
