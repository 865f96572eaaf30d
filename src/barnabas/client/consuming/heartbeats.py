"""Membership in groups in which the broker assigns partitions: heartbeats send the subscription and return the assignment.

`HeartbeatMembership` is the common part of consumer groups (KIP-848, `ConsumerMembership`) and of share groups (KIP-932,
`share_consuming.membership`).

Its one rule: partitions are revoked before a heartbeat reports that, and new ones are read as soon as they are
assigned. API: ConsumerGroupHeartbeat.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import uuid
from typing import Any

from barnabas.client.consuming.membership import COORDINATOR_MOVED, Membership
from barnabas.client.consuming.settings import ConsumerSettings
from barnabas.client.errors import error_code
from barnabas.client.records import TopicPartition
from barnabas.client.routing import coordinator
from barnabas.client.state import ClusterState
from barnabas.wire import ErrorCode, KafkaError, Uuid
from barnabas.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest

_log = logging.getLogger(__name__)

JOIN_EPOCH = 0
LEAVE_EPOCH = -1
LEAVE_FOR_NOW_EPOCH = -2
_FIRST_INTERVAL_MS = 5_000
_FENCED = frozenset({ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID})


class HeartbeatMembership(Membership):
    """A member of a group in which the broker assigns partitions. Subclasses make the requests of their protocol."""

    _sent_topics: tuple[str, ...] | None = None
    _target: dict[Uuid, list[int]] | None = None
    _waits_for_poll = False  # to revoke partitions
    _interval_ms = _FIRST_INTERVAL_MS
    _reports_assignment = True  # heartbeats tell which partitions the member has

    def _request(self) -> tuple[Any, str]:
        """Return the next heartbeat, and the name of a feature that it needs, or nothing."""
        raise NotImplementedError

    def _leave_request(self) -> Any:
        raise NotImplementedError

    def _forget_sent(self) -> None:
        """Make the next heartbeat send all fields."""
        self._sent_topics = None

    async def _run(self) -> None:
        unsubscribe = self.cluster.subscribe(self._cluster_changed)
        self._begin_anew()
        failures = 0
        try:
            while True:
                self._changed.clear()
                try:
                    if self._waits_for_poll:
                        await self._reconcile()  # before the request, because a poll waits for it
                    wait_ms = await self._beat()
                    failures = 0
                except OSError as error:
                    _log.info("group %s cannot be reached: %s", self.group_id, error)
                    self._forget_sent()
                    failures += 1
                    await self.back_off(failures)
                    continue
                except KafkaError as error:
                    if not error.code.retriable and error.code not in COORDINATOR_MOVED:
                        raise
                    self._forget_sent()
                    failures += 1
                    await self.back_off(failures)
                    continue
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(wait_ms / 1000):
                        await self._changed.wait()
        finally:
            unsubscribe()

    def _begin_anew(self) -> None:
        self.member_id = self.member_id or str(Uuid(uuid.uuid4().bytes))
        self.generation = JOIN_EPOCH
        self._target = None
        self._waits_for_poll = False
        self._forget_sent()

    def _cluster_changed(self, old: ClusterState, new: ClusterState) -> None:
        if self._sent_topics is not None and self.reader.subscribed_topics() != self._sent_topics:
            self._changed.set()

    async def _beat(self) -> float:
        """Send a heartbeat and handle its response. Returns the ms until the next one."""
        if self.is_poll_late():
            _log.warning("group %s: no poll in max.poll.interval.ms; leaving", self.group_id)
            await self.leave()
            await self.reader.lose_all()
            while self.is_poll_late():
                await asyncio.sleep(1)
            self._begin_anew()
        request, feature = self._request()
        response = await self.ask(request, self.settings.request_timeout_ms, feature=feature)
        code = error_code(response.error_code)
        if code in _FENCED:
            await self.reader.lose_all()
            self._begin_anew()
            return 0
        if code is ErrorCode.UNRELEASED_INSTANCE_ID and self.generation == JOIN_EPOCH:
            self._begin_anew()
            return 1_000  # another member still has the instance id
        if code is not ErrorCode.NONE:
            raise self.failed(code, response.error_message)
        self.member_id = response.member_id or self.member_id
        self.generation = response.member_epoch
        self._interval_ms = response.heartbeat_interval_ms or self._interval_ms
        if response.assignment is not None:
            self._target = {row.topic_id: sorted(row.partitions) for row in response.assignment.topic_partitions}
        has_changed = await self._reconcile()
        return 0 if has_changed and self._reports_assignment else self._interval_ms

    async def _reconcile(self) -> bool:
        """Revoke and assign partitions to match the target. Returns whether that has to be reported at once."""
        if self._target is None:
            return False
        names = await self._names(self._target)
        wanted = {
            TopicPartition(names[each], index) for each, rows in self._target.items() if each in names for index in rows
        }
        owned = set(self.reader.owned())
        gone = owned - wanted
        waited, self._waits_for_poll = self._waits_for_poll, bool(gone) and not self.reader.may_revoke()
        if self._waits_for_poll:
            return False  # heartbeats go on meanwhile
        if gone or waited:
            await self.reader.revoke(gone)
        if new := wanted - owned:
            await self.reader.assign(sorted(new))
        if len(names) == len(self._target):
            self._target = None
        return bool(gone or new)

    async def _names(self, ids: dict[Uuid, list[int]]) -> dict[Uuid, str]:
        known = {topic.id: name for name, topic in self.cluster.state.topics.items()}
        if any(each not in known for each in ids):
            state = await self.cluster.metadata([each for each in ids if each not in known])
            known |= {topic.id: name for name, topic in state.topics.items()}
            await self.cluster.refresh(topic.name for topic in state.topics.values())
        return {each: known[each] for each in ids if each in known}

    async def leave(self) -> None:
        """Leave the group."""
        if not self.member_id or self.generation <= 0:
            return
        request = self._leave_request()
        self.generation = -1
        with contextlib.suppress(KafkaError, OSError):
            await self.cluster.call(request, coordinator(self.group_id), timeout_ms=5_000)


class ConsumerMembership(HeartbeatMembership):
    """A member of a consumer group (KIP-848).

    A pattern as text is sent to the broker, which matches it against all topics. It then has RE2 syntax.
    """

    settings: ConsumerSettings
    _sent_pattern: str | None = None
    _has_sent_pattern = False  # ever: brokers keep the pattern of a member that sends none
    _sent_owned: dict[Uuid, list[int]] | None = None

    def _forget_sent(self) -> None:
        super()._forget_sent()
        self._sent_owned = None

    def _request(self) -> tuple[ConsumerGroupHeartbeatRequest, str]:
        topics, pattern, owned = self.reader.subscribed_topics(), self.reader.subscribed_pattern(), self._owned()
        request = ConsumerGroupHeartbeatRequest(
            group_id=self.group_id, member_id=self.member_id, member_epoch=self.generation
        )
        is_joining = self.generation == JOIN_EPOCH
        is_complete = is_joining or self._sent_topics is None
        if is_complete:
            request.instance_id = self.settings.group_instance_id
            request.rack_id = self.settings.client_rack or None
            request.rebalance_timeout_ms = self.settings.max_poll_interval_ms
            request.server_assignor = self.settings.group_remote_assignor
        if is_joining or topics != self._sent_topics:
            request.subscribed_topic_names = list(topics)
        if (is_complete or pattern != self._sent_pattern) and (pattern is not None or self._has_sent_pattern):
            request.subscribed_topic_regex = pattern or ""  # the empty text ends the use of a pattern
            self._has_sent_pattern = True
        if is_joining or owned != self._sent_owned:
            request.topic_partitions = [
                ConsumerGroupHeartbeatRequest.TopicPartitions(topic_id=topic_id, partitions=partitions)
                for topic_id, partitions in ({} if is_joining else owned).items()
            ]
        self._sent_topics, self._sent_pattern, self._sent_owned = topics, pattern, owned
        return request, "a pattern that the broker matches" if request.subscribed_topic_regex else ""

    def _owned(self) -> dict[Uuid, list[int]]:
        topics = self.cluster.state.topics
        found: dict[Uuid, list[int]] = {}
        for topic, partition in sorted(self.reader.owned()):
            if topic in topics:
                found.setdefault(topics[topic].id, []).append(partition)
        return found

    def _leave_request(self) -> ConsumerGroupHeartbeatRequest:
        """Return the request with which a member leaves. A static member leaves temporarily."""
        return ConsumerGroupHeartbeatRequest(
            group_id=self.group_id,
            member_id=self.member_id,
            member_epoch=LEAVE_EPOCH if self.settings.group_instance_id is None else LEAVE_FOR_NOW_EPOCH,
            instance_id=self.settings.group_instance_id,
            topic_partitions=None,
        )
