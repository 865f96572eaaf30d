"""The common parts of membership in all group protocols, and the interface that it needs of a consumer.

Its one rule: partitions are revoked, and the listener called, before other members get them, if the member is still in
touch with the group. An error that cannot be retried is kept, and the consumer's next poll raises it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection
from typing import Any, Protocol

from barnabas.client.cluster import Cluster
from barnabas.client.consuming.settings import ConsumerSettings
from barnabas.client.links import GROUP_LANE
from barnabas.client.records import GroupMetadata, TopicPartition
from barnabas.client.routing import coordinator
from barnabas.wire import ErrorCode, KafkaError, UnsupportedVersionError

_log = logging.getLogger(__name__)

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
        """Return the subscribed topics, sorted. Empty if the broker matches a pattern."""

    def subscribed_pattern(self) -> str | None:
        """Return the pattern that the broker matches, or None."""

    def owned(self) -> tuple[TopicPartition, ...]:
        """Return the assigned partitions."""

    def last_poll_s(self) -> float:
        """Return the time of the last poll, in seconds."""

    def may_revoke(self) -> bool:
        """Return whether partitions may be revoked now. If not, the application may still work on records, and
        `Membership.poll_began` is called when its next poll begins, which returns nothing until `revoke` has ended.
        """

    async def revoke(self, partitions: Collection[TopicPartition]) -> None:
        """Commit the processed offsets of these partitions, if that is automatic, and stop reading them.

        A poll that waits for a revocation goes on, also if there are none any more.
        """

    async def assign(self, partitions: Collection[TopicPartition]) -> None:
        """Start reading these partitions."""

    async def lose_all(self) -> None:
        """Stop reading all partitions without a commit: other members may own them already."""


class MembershipSettings(Protocol):
    """The settings that every membership needs."""

    @property
    def group_id(self) -> str | None: ...

    @property
    def group_instance_id(self) -> str | None: ...

    @property
    def max_poll_interval_ms(self) -> int: ...

    @property
    def request_timeout_ms(self) -> int: ...


class Membership:
    """One member of one group. `run` is the body of a task."""

    def __init__(self, cluster: Cluster, settings: MembershipSettings, reader: Reader, random: Any) -> None:
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
        self._changed = asyncio.Event()  # the subscription or the metadata of its topics changed, or a poll began

    async def run(self) -> None:
        """Be a member until cancelled. An error that cannot be retried is kept in `error`."""
        try:
            await self._run()
        except asyncio.CancelledError:
            raise
        except Exception as error:
            if not isinstance(error, KafkaError | OSError | UnsupportedVersionError):
                _log.exception("membership in group %s failed", self.group_id)
            self.error = error
            await self.reader.lose_all()
            if self.on_error is not None:
                self.on_error()

    async def _run(self) -> None:
        raise NotImplementedError

    async def leave(self) -> None:
        """Leave the group, so that others need not wait for the session to expire. Errors are ignored."""
        raise NotImplementedError

    def subscription_changed(self) -> None:
        self._changed.set()

    def poll_began(self) -> None:
        """Go on with a revocation that waits for a poll."""
        self._changed.set()

    def metadata(self) -> GroupMetadata:
        return GroupMetadata(self.group_id, self.generation, self.member_id, self.settings.group_instance_id)

    def failed(self, code: ErrorCode, message: str | None = None) -> KafkaError:
        return KafkaError(code, f"group {self.group_id}: {message or code.message}")

    async def ask(self, request: Any, timeout_ms: float | None = None, *, feature: str = "") -> Any:
        """Send a request to the coordinator, once. If the coordinator moved, the next request looks it up again.

        `feature` names what needs the version of the request, for the error of an old broker.
        """
        try:
            response = await self.cluster.send(
                request, coordinator(self.group_id), timeout_ms=timeout_ms, feature=feature, lane=GROUP_LANE
            )
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
        from barnabas.client.consuming.heartbeats import ConsumerMembership  # noqa: PLC0415  (one protocol of two)

        return ConsumerMembership(cluster, settings, reader, random)
    from barnabas.client.consuming.classic import ClassicMembership  # noqa: PLC0415

    return ClassicMembership(cluster, settings, reader, random)
