"""What membership in a group needs of a consumer, and what both protocols have in common.

Its one rule: whoever loses partitions is told before others get them, as far as that can be known. An error that no waiting
heals is kept, and raised by the consumer's next poll.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection
from typing import Any, Protocol

from barnabas.client.cluster import Cluster
from barnabas.client.consuming.settings import ConsumerSettings
from barnabas.client.records import GroupMetadata, TopicPartition
from barnabas.client.routing import coordinator
from barnabas.wire import ErrorCode, KafkaError

log = logging.getLogger(__name__)

LANE = "group"
"""A join waits at the broker, so groups have a connection of their own."""

COORDINATOR_MOVED = frozenset(
    {
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    }
)


class Reader(Protocol):
    """The consumer, as its membership sees it."""

    def subscribed_topics(self) -> tuple[str, ...]:
        """What is wanted now, in order."""

    def owned(self) -> tuple[TopicPartition, ...]:
        """What is assigned now."""

    def last_poll_s(self) -> float:
        """When records were asked for last."""

    async def take_away(self, partitions: Collection[TopicPartition]) -> None:
        """Commit what was read of these if that is wanted, and stop reading them."""

    async def give(self, partitions: Collection[TopicPartition]) -> None:
        """Begin to read these."""

    async def lose_all(self) -> None:
        """Stop reading everything: others may have it already."""


class Membership:
    """One member of one group. `run` is for a task; `leave` ends it."""

    def __init__(self, cluster: Cluster, settings: ConsumerSettings, reader: Reader, random: Any) -> None:
        assert settings.group_id is not None
        self.cluster = cluster
        self.settings = settings
        self.reader = reader
        self.group_id = settings.group_id
        self.member_id = ""
        self.generation = -1
        self.error: Exception | None = None
        self.on_error: Any = None
        self._random = random
        self._changed = asyncio.Event()  # the subscription, or what is known of its topics

    async def run(self) -> None:
        """Be a member until cancelled; what cannot be healed is in `error`."""
        try:
            await self._run()
        except asyncio.CancelledError:
            raise
        except Exception as error:
            if not isinstance(error, KafkaError | OSError):
                log.exception("membership in group %s failed", self.group_id)
            self.error = error
            await self.reader.lose_all()
            if self.on_error is not None:
                self.on_error()

    async def _run(self) -> None:
        raise NotImplementedError

    async def leave(self) -> None:
        """Say goodbye, so that others need not wait; silently where that is not possible."""
        raise NotImplementedError

    def subscription_changed(self) -> None:
        self._changed.set()

    def metadata(self) -> GroupMetadata:
        return GroupMetadata(self.group_id, self.generation, self.member_id, self.settings.group_instance_id)

    def failed(self, code: ErrorCode, message: str | None = None) -> KafkaError:
        return KafkaError(code, f"group {self.group_id}: {message or code.message}")

    async def ask(self, request: Any, timeout_ms: float | None = None) -> Any:
        """One attempt at the coordinator; who moved is looked for anew the next time."""
        try:
            response = await self.cluster.send(request, coordinator(self.group_id), timeout_ms=timeout_ms, lane=LANE)
        except OSError:
            self.cluster.forget_coordinator(self.group_id)
            raise
        if response.error_code in COORDINATOR_MOVED:
            self.cluster.forget_coordinator(self.group_id)
        return response

    async def back_off(self, failures: int) -> None:
        await asyncio.sleep(self.cluster.settings.retry_backoff.delay_ms(failures, self._random()) / 1000)

    def is_poll_late(self) -> bool:
        idle_s = asyncio.get_running_loop().time() - self.reader.last_poll_s()
        return idle_s * 1000 > self.settings.max_poll_interval_ms


def new_membership(cluster: Cluster, settings: ConsumerSettings, reader: Reader, random: Any) -> Membership:
    """Return a membership in the protocol that `group.protocol` names."""
    if settings.group_protocol == "consumer":
        from barnabas.client.consuming.heartbeats import HeartbeatMembership  # noqa: PLC0415  (one protocol of two)

        return HeartbeatMembership(cluster, settings, reader, random)
    from barnabas.client.consuming.classic import ClassicMembership  # noqa: PLC0415

    return ClassicMembership(cluster, settings, reader, random)
