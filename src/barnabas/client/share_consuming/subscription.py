"""The subscription of a share consumer: its topics, the membership in the group, and the assigned partitions."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable

from barnabas.client.cluster import Cluster
from barnabas.client.records import TopicPartition
from barnabas.client.share_consuming.membership import ShareMembership
from barnabas.client.share_consuming.settings import ShareConsumerSettings
from barnabas.client.shared import begin, end


class ShareSubscription:
    """The subscription. Implements `consuming.membership.Reader`, the interface that the membership needs.

    `revoked` is called with partitions that are not assigned any more, `changed` after each change and error.
    """

    def __init__(
        self,
        cluster: Cluster,
        settings: ShareConsumerSettings,
        revoked: Callable[[Collection[TopicPartition]], None],
        changed: Callable[[], None],
        random: Callable[[], float],
        topics: Iterable[str],
    ) -> None:
        self.membership: ShareMembership | None = None
        self.assigned: set[TopicPartition] = set()
        self.polled_at_s = 0.0  # time of the last poll
        self.polls = 0  # polls that are waiting
        self.topics = _distinct(topics)
        self._cluster = cluster
        self._settings = settings
        self._revoked = revoked
        self._changed = changed
        self._random = random
        self._task: asyncio.Task[None] | None = None

    async def change(self, topics: Iterable[str]) -> None:
        """Subscribe to other topics, and join the group unless the consumer is a member already."""
        self.topics = _distinct(topics)
        self._cluster.follow(self.topics)
        if self.membership is None or self.membership.error is not None:
            self.membership = ShareMembership(self._cluster, self._settings, self, self._random)
            self.membership.on_error = self._changed
            self._task = begin(self.membership.run())
        else:
            self.membership.subscription_changed()

    async def end(self) -> None:
        """Leave the group, and subscribe to nothing."""
        await end([self._task])
        self._task = None
        if self.membership is not None:
            await self.membership.leave()
            self.membership = None
        self.topics = ()
        self.assigned.clear()

    # --- consuming.membership.Reader

    def subscribed_topics(self) -> tuple[str, ...]:
        return tuple(sorted(self.topics))

    def subscribed_pattern(self) -> str | None:
        return None

    def owned(self) -> tuple[TopicPartition, ...]:
        return tuple(sorted(self.assigned))

    def last_poll_s(self) -> float:
        return asyncio.get_running_loop().time() if self.polls else self.polled_at_s

    def may_revoke(self) -> bool:
        return True  # who else gets a partition does not get the records that this member has acquired

    async def revoke(self, partitions: Collection[TopicPartition]) -> None:
        self.assigned.difference_update(partitions)
        self._revoked(partitions)
        self._changed()

    async def assign(self, partitions: Collection[TopicPartition]) -> None:
        self.assigned.update(partitions)
        self._cluster.follow({place.topic for place in partitions})
        self._changed()

    async def lose_all(self) -> None:
        if self.assigned:
            await self.revoke(list(self.assigned))


def _distinct(topics: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(topics))
