"""A share consumer and a node that refuses it: one that is too old, and one that answers with errors."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from barnabas.client import ErrorCode, KafkaError, ShareConsumer, UnsupportedByNodeError, Uuid
from barnabas.wire import Message
from barnabas.wire.messages.find_coordinator import FindCoordinatorResponse
from barnabas.wire.messages.metadata import MetadataResponse
from barnabas.wire.messages.share_acknowledge import ShareAcknowledgeResponse
from barnabas.wire.messages.share_fetch import ShareFetchResponse
from barnabas.wire.messages.share_group_heartbeat import ShareGroupHeartbeatResponse
from tests.client.peers import Asked, answering, one_broker, peer, ranges

TOPIC = Uuid(b"t" * 16)


def run(
    fetch: Message, scenario: Callable[[ShareConsumer], Coroutine[Any, Any, None]], *, newest: int = 2, **settings: str
) -> list[str]:
    """Run a scenario with a node that has one topic, and answers every ShareFetch alike. Returns what was asked."""
    asked_for: list[str] = []
    port = 0

    def answer(asked: Asked) -> bytes:
        asked_for.append(asked.name)
        part = MetadataResponse.MetadataResponsePartition(leader_id=1, replica_nodes=[1], isr_nodes=[1])
        topic = MetadataResponse.MetadataResponseTopic(name="jobs", topic_id=TOPIC, partitions=[part])
        found = FindCoordinatorResponse.Coordinator(key="g", node_id=1, host="127.0.0.1", port=port)
        assigned = ShareGroupHeartbeatResponse.TopicPartitions(topic_id=TOPIC, partitions=[0])
        responses: dict[str, Message] = {
            "ApiVersions": ranges(
                Metadata=(0, 12),
                FindCoordinator=(0, 4),
                ShareGroupHeartbeat=(1, 1),
                ShareFetch=(1, newest),
                ShareAcknowledge=(1, newest),
            ),
            "Metadata": one_broker(port, topic),
            "FindCoordinator": FindCoordinatorResponse(coordinators=[found]),
            "ShareGroupHeartbeat": ShareGroupHeartbeatResponse(
                member_epoch=1,
                heartbeat_interval_ms=1_000,
                assignment=ShareGroupHeartbeatResponse.Assignment(topic_partitions=[assigned]),
            ),
            "ShareFetch": fetch,
            "ShareAcknowledge": ShareAcknowledgeResponse(),
        }
        return asked.answer(responses[asked.name])

    async def main() -> None:
        nonlocal port
        async with peer(answering(answer)) as port:
            given = {name.replace("_", "."): value for name, value in settings.items()}
            base = {"bootstrap.servers": f"127.0.0.1:{port}", "group.id": "g", "retry.backoff.ms": 10}
            async with ShareConsumer({**base, **given}, topics=["jobs"]) as consumer:
                await scenario(consumer)
            await asyncio.sleep(0.01)
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(main())
    return asked_for


def test_a_node_that_is_too_old_for_a_record_limit_is_an_error() -> None:
    async def scenario(consumer: ShareConsumer) -> None:
        with pytest.raises(UnsupportedByNodeError, match="too old for share"):
            await consumer.poll(30_000)

    asked = run(ShareFetchResponse(), scenario, newest=1, share_acquire_mode="record_limit")
    assert "ShareFetch" not in asked


def test_an_error_that_stays_is_raised_by_each_poll() -> None:
    async def scenario(consumer: ShareConsumer) -> None:
        for _ in range(2):
            with pytest.raises(KafkaError) as raised:
                await consumer.poll(30_000)
            assert raised.value.code is ErrorCode.GROUP_AUTHORIZATION_FAILED

    run(ShareFetchResponse(error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED), scenario)


@pytest.mark.parametrize(
    "code", [ErrorCode.SHARE_SESSION_NOT_FOUND, ErrorCode.INVALID_SHARE_SESSION_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID]
)
def test_errors_that_pass_are_tried_again_until_the_poll_ends(code: ErrorCode) -> None:
    async def scenario(consumer: ShareConsumer) -> None:
        while not consumer.assignment():
            await asyncio.sleep(0.01)
        assert await consumer.poll(500) == []

    assert run(ShareFetchResponse(error_code=code), scenario).count("ShareFetch") > 1
