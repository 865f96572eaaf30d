"""Members of the consumer protocol for tests: each keeps what it was told, and gives up what it is told to."""

from __future__ import annotations

from typing import Any

from barnabas.wire import Uuid
from barnabas.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from tests.groups.harness import Clients

Partitions = dict[Uuid, set[int]]
REBALANCE_TIMEOUT_MS = 300_000


class Consumer:
    """One member. Its heartbeats say only what it has to say, as Kafka's consumer's do."""

    def __init__(
        self,
        clients: Clients,
        member_id: str,
        *topics: str,
        group_id: str = "g",
        instance_id: str | None = None,
        regex: str | None = None,
        assignor: str | None = None,
        rebalance_timeout_ms: int = REBALANCE_TIMEOUT_MS,
        **peer: Any,
    ) -> None:
        self.member_id = member_id
        self.epoch = 0
        self.owned: Partitions = {}
        self._clients = clients
        self._group_id = group_id
        self._instance_id = instance_id
        self._wanted: dict[str, Any] = {
            "subscribed_topic_names": list(topics) if topics or regex is None else None,
            "subscribed_topic_regex": regex,
            "server_assignor": assignor,
            "rebalance_timeout_ms": rebalance_timeout_ms,
        }
        self._peer = peer

    async def ask(self, **fields: Any) -> ConsumerGroupHeartbeatResponse:
        request = ConsumerGroupHeartbeatRequest(
            **{
                "group_id": self._group_id,
                "member_id": self.member_id,
                "member_epoch": self.epoch,
                "instance_id": self._instance_id,
                **fields,
            }
        )
        response: ConsumerGroupHeartbeatResponse = await self._clients.ask(request, 1, **self._peer)
        return response

    async def join(self, **fields: Any) -> ConsumerGroupHeartbeatResponse:
        self.epoch, self.owned = 0, {}
        return self._hear(await self.ask(**{**self._wanted, "topic_partitions": [], **fields}))

    async def beat(self, **fields: Any) -> ConsumerGroupHeartbeatResponse:
        """Say what it has, and take over at once what it is told."""
        owned = [
            ConsumerGroupHeartbeatRequest.TopicPartitions(topic_id=topic_id, partitions=sorted(partitions))
            for topic_id, partitions in self.owned.items()
        ]
        return self._hear(await self.ask(**{"topic_partitions": owned, **fields}))

    async def leave(self, epoch: int = -1) -> ConsumerGroupHeartbeatResponse:
        return await self.ask(member_epoch=epoch)

    def _hear(self, response: ConsumerGroupHeartbeatResponse) -> ConsumerGroupHeartbeatResponse:
        if not response.error_code:
            self.epoch = response.member_epoch
            if response.assignment is not None:
                self.owned = {topic.topic_id: set(topic.partitions) for topic in response.assignment.topic_partitions}
        return response

    @property
    def partitions(self) -> set[tuple[Uuid, int]]:
        return {(topic_id, partition) for topic_id, partitions in self.owned.items() for partition in partitions}


async def settle(clients: Clients, *consumers: Consumer, rounds: int = 8, interval_ms: int = 5000) -> None:
    """Heartbeats of all, again and again, until nobody has anything to do."""
    for _ in range(rounds):
        await clients.pass_time(interval_ms)
        for consumer in consumers:
            response = await consumer.beat()
            assert response.error_code == 0, response
