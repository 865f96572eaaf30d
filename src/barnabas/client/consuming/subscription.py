"""The subscription of a consumer: topics or a pattern, the rebalance listener, and the membership in the group.

A pattern is matched by the broker if it is text and `group.protocol` is consumer (RE2 syntax, KIP-848), else by this
client, against the topics in its metadata.

Rebalances happen in the background, but partitions are revoked only between polls: while the application may work on
the records that the last poll returned, the revocation waits for its next poll, and that poll returns nothing until the
revocation is done. So the application can end what it does with these records, such as a transaction, before another member
reads on. Records that were returned before the last poll count as processed; their offsets are committed when partitions
are revoked, if automatic commits are enabled.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import re
from collections.abc import Callable, Collection, Iterable
from typing import Any

from barnabas.client.cluster import Cluster
from barnabas.client.consuming.assignment import Assignment
from barnabas.client.consuming.commits import Commits
from barnabas.client.consuming.membership import Membership, new_membership
from barnabas.client.consuming.settings import ConsumerSettings
from barnabas.client.records import GroupMetadata, TopicPartition
from barnabas.client.shared import begin, end
from barnabas.wire import ErrorCode, KafkaError

_log = logging.getLogger(__name__)


class Subscription:
    """The subscription. Implements `membership.Reader`, the interface that the membership needs."""

    def __init__(
        self,
        cluster: Cluster,
        settings: ConsumerSettings,
        assignment: Assignment,
        commits: Commits,
        random: Callable[[], float],
        wake: Callable[[], None],
        topics: Iterable[str],
    ) -> None:
        self.membership: Membership | None = None
        self.polled_at_s = 0.0  # time of the last poll
        self.is_processing = False  # the last poll returned records, and the next one has not begun
        self.is_revoking = False  # polls return nothing: partitions are revoked, or will be as soon as a poll begins
        self.polls = 0  # polls that are waiting
        self._cluster = cluster
        self._settings = settings
        self._assignment = assignment
        self._commits = commits
        self._random = random
        self._wake = wake  # a poll that waits
        self._topics = tuple(topics)
        self._pattern: re.Pattern[str] | None = None
        self._remote_pattern: str | None = None
        self._listener: Any = None
        self._task: asyncio.Task[None] | None = None

    def topics(self) -> tuple[str, ...]:
        """Return the topics that are subscribed to now: those given, or those that match the pattern.

        If the broker matches the pattern, only topics with assigned partitions are known.
        """
        if self._remote_pattern is not None:
            return tuple(sorted({place.topic for place in self._assignment.states}))
        if self._pattern is None:
            return self._topics
        return tuple(
            sorted(
                name
                for name, topic in self._cluster.state.topics.items()
                if not topic.is_internal and self._pattern.fullmatch(name)
            )
        )

    async def change(self, topics: Iterable[str] | re.Pattern[str], pattern: str | None, listener: Any) -> None:
        """Subscribe to other topics or a pattern, and join the group unless the consumer is a member already.

        Raises INVALID_REGULAR_EXPRESSION for a pattern that this client cannot compile. A pattern that the broker
        rejects is an error of the membership.
        """
        if pattern is not None and self._settings.group_protocol != "consumer":
            topics, pattern = _compiled(pattern), None
        self._listener = listener if listener is not None else self._listener
        self._remote_pattern = pattern
        self._pattern = topics if isinstance(topics, re.Pattern) else None
        self._topics = () if isinstance(topics, re.Pattern) else tuple(dict.fromkeys(topics))
        if self._pattern is not None:
            self._cluster.follow_all()
            await self._cluster.refresh()
        elif pattern is None:
            if self._settings.allow_auto_create_topics:
                await self._cluster.metadata(self._topics, allow_auto_topic_creation=True)
            await self._cluster.refresh(self._topics)
        if self.membership is None or self.membership.error is not None:
            self.membership = new_membership(self._cluster, self._settings, self, self._random)
            self.membership.on_error = self._wake
            self._task = begin(self.membership.run())
        else:
            self.membership.subscription_changed()

    async def end(self) -> None:
        """Revoke all partitions of a member, leave the group, and subscribe to nothing."""
        await end([self._task])
        self._task = None
        if self.membership is not None:
            if self._assignment.states:
                await self.revoke(list(self._assignment.states))
            await self.membership.leave()
            self.membership = None  # only now: commits need the member
        self._topics, self._pattern, self._remote_pattern = (), None, None

    def poll_begins(self, now_s: float) -> None:
        """Note a poll: what the last one returned is processed, so partitions may be revoked."""
        self.polled_at_s = now_s
        self.is_processing = False
        if self.is_revoking and self.membership is not None:
            self.membership.poll_began()

    def group_metadata(self) -> GroupMetadata:
        """Return the member that commits. Raises INVALID_GROUP_ID without a group."""
        if self.membership is not None:
            return self.membership.metadata()
        return GroupMetadata(self._commits.require_group_id())

    # --- membership.Reader

    def subscribed_topics(self) -> tuple[str, ...]:
        return () if self._remote_pattern is not None else tuple(sorted(self.topics()))

    def subscribed_pattern(self) -> str | None:
        return self._remote_pattern

    def owned(self) -> tuple[TopicPartition, ...]:
        return tuple(sorted(self._assignment.states))

    def last_poll_s(self) -> float:
        return asyncio.get_running_loop().time() if self.polls else self.polled_at_s

    def may_revoke(self) -> bool:
        if self.is_processing:
            self.is_revoking = True
        return not self.is_processing

    async def revoke(self, partitions: Collection[TopicPartition]) -> None:
        self.is_revoking = True
        try:
            if not partitions:
                return
            if self._settings.enable_auto_commit:
                await self._commits.commit_processed(partitions)
            await self._call_listener("on_partitions_revoked", partitions)
            self._assignment.remove(partitions)
        finally:
            self._end_revoking()

    def _end_revoking(self) -> None:
        self.is_revoking = False
        self._wake()

    async def assign(self, partitions: Collection[TopicPartition]) -> None:
        self._assignment.add(partitions)
        await self._call_listener("on_partitions_assigned", partitions)

    async def lose_all(self) -> None:
        self._end_revoking()
        places = list(self._assignment.states)
        if not places:
            return
        self._assignment.remove(places)
        has_lost = hasattr(self._listener, "on_partitions_lost")
        await self._call_listener("on_partitions_lost" if has_lost else "on_partitions_revoked", places)

    async def _call_listener(self, name: str, partitions: Collection[TopicPartition]) -> None:
        """Call a method of the listener, if it has it. An exception of it is only logged."""
        method = getattr(self._listener, name, None)
        if method is None:
            return
        try:
            result = method(sorted(partitions))
            if inspect.isawaitable(result):
                await result
        except Exception:
            _log.exception("%s of a listener failed", name)


def _compiled(pattern: str) -> re.Pattern[str]:
    try:
        return re.compile(pattern)
    except re.error as error:
        text = f"`{pattern}` is not a valid regular expression: {error}"
        raise KafkaError(ErrorCode.INVALID_REGULAR_EXPRESSION, text) from error
