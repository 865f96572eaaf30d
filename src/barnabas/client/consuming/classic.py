"""Membership in the classic protocol: join, sync, heartbeat. One member is the leader and assigns the partitions.

APIs: JoinGroup, SyncGroup, Heartbeat, LeaveGroup.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from typing import NamedTuple

from barnabas import wire
from barnabas.client.consuming.assignors import ASSIGNORS, Member
from barnabas.client.consuming.membership import COORDINATOR_MOVED, Membership
from barnabas.client.consuming.settings import ConsumerSettings
from barnabas.client.errors import error_code
from barnabas.client.records import TopicPartition
from barnabas.client.state import ClusterState
from barnabas.wire import ErrorCode, KafkaError, MalformedError, UnsupportedVersionError
from barnabas.wire.messages.consumer_protocol_assignment import ConsumerProtocolAssignment
from barnabas.wire.messages.consumer_protocol_subscription import ConsumerProtocolSubscription
from barnabas.wire.messages.heartbeat import HeartbeatRequest
from barnabas.wire.messages.join_group import JoinGroupRequest, JoinGroupResponse
from barnabas.wire.messages.leave_group import LeaveGroupRequest
from barnabas.wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse

_log = logging.getLogger(__name__)

PROTOCOL_TYPE = "consumer"
COOPERATIVE = "cooperative-sticky"
_ASSIGNMENT_VERSION = 1
_SUBSCRIPTION_VERSION = 3
_JOIN_EXTRA_MS = 5_000
_FORGOTTEN = frozenset({ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION})
_AGAIN = frozenset({ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.MEMBER_ID_REQUIRED})


class _Joined(NamedTuple):
    response: JoinGroupResponse
    topics: tuple[str, ...]


class ClassicMembership(Membership):
    """A member, which may be the leader."""

    settings: ConsumerSettings
    _leads_topics: dict[str, int] | None = None  # numbers of partitions that the leader based the assignment on
    _joined_topics: tuple[str, ...] = ()

    @property
    def _is_cooperative(self) -> bool:
        return self.settings.assignors == (COOPERATIVE,)

    async def _run(self) -> None:
        unsubscribe = self.cluster.subscribe(self._cluster_changed)
        failures = 0
        try:
            while True:
                self._changed.clear()
                try:
                    if not await self._rebalance():
                        continue
                    failures = 0
                    await self._send_heartbeats()
                except (OSError, UnsupportedVersionError) as error:
                    if isinstance(error, UnsupportedVersionError):
                        raise
                    _log.info("group %s cannot be reached: %s", self.group_id, error)
                    failures += 1
                    await self.back_off(failures)
                except KafkaError as error:
                    if not error.code.retriable and error.code not in COORDINATOR_MOVED:
                        raise
                    failures += 1
                    await self.back_off(failures)
        finally:
            unsubscribe()

    def _cluster_changed(self, old: ClusterState, new: ClusterState) -> None:
        """Join again if the subscribed topics changed or, as the leader, if their numbers of partitions did."""
        if self.reader.subscribed_topics() != self._joined_topics:
            self._changed.set()
        if self._leads_topics is not None and self._leads_topics != _counts(new, self._leads_topics):
            self._changed.set()

    # --- rebalances

    async def _rebalance(self) -> bool:
        """Join and sync. Returns False if that has to be repeated."""
        if not self._is_cooperative:
            await self._revoke(set(self.reader.owned()))
        joined = await self._join()
        if joined is None:
            return False
        response, topics = joined
        self._joined_topics = topics
        assignments: dict[str, list[TopicPartition]] = {}
        self._leads_topics = None
        if response.leader == response.member_id:
            assignments = await self._assign(response)
        assigned = await self._sync(response, assignments)
        if assigned is None:
            return False
        before = set(self.reader.owned())
        gone = before - set(assigned)
        if not await self._revoke(gone):
            return False
        await self.reader.assign([place for place in assigned if place not in before])
        if gone and self._is_cooperative:
            self._changed.set()  # others get the revoked partitions in the next rebalance
        return True

    async def _revoke(self, partitions: set[TopicPartition]) -> bool:
        """Revoke partitions when the application polls, and send heartbeats until then.

        Returns False if they were lost meanwhile, because the group went on without this member.
        """
        while partitions and not self.reader.may_revoke():
            self._changed.clear()
            await self._send_heartbeats(is_rebalancing=True)
            if not partitions & set(self.reader.owned()):
                return False
        await self.reader.revoke(partitions)
        return True

    async def _join(self) -> _Joined | None:
        topics = self.reader.subscribed_topics()
        owned = self.reader.owned() if self._is_cooperative else ()
        subscription = ConsumerProtocolSubscription(
            topics=list(topics),
            user_data=None,
            owned_partitions=[
                ConsumerProtocolSubscription.TopicPartition(topic=topic, partitions=sorted(indexes))
                for topic, indexes in sorted(_by_topic(owned).items())
            ],
            generation_id=self.generation,
            rack_id=self.settings.client_rack or None,
        )
        metadata = wire.encode_record(subscription, _SUBSCRIPTION_VERSION)
        request = JoinGroupRequest(
            group_id=self.group_id,
            session_timeout_ms=self.settings.session_timeout_ms,
            rebalance_timeout_ms=self.settings.max_poll_interval_ms,
            member_id=self.member_id,
            group_instance_id=self.settings.group_instance_id,
            protocol_type=PROTOCOL_TYPE,
            protocols=[
                JoinGroupRequest.JoinGroupRequestProtocol(name=name, metadata=metadata)
                for name in self.settings.assignors
            ],
        )
        wait_ms = max(self.settings.max_poll_interval_ms + _JOIN_EXTRA_MS, self.settings.request_timeout_ms)
        response: JoinGroupResponse = await self.ask(request, wait_ms)
        if not await self._accepted(error_code(response.error_code), response.member_id):
            return None
        self.member_id, self.generation = response.member_id, response.generation_id
        return _Joined(response, topics)

    async def _accepted(self, code: ErrorCode, member_id: str = "") -> bool:
        """Handle the error code of a response.

        Returns True for NONE, and False if the member has to join again at once. Raises `KafkaError` for other errors.
        """
        if code is ErrorCode.NONE:
            return True
        if code is ErrorCode.MEMBER_ID_REQUIRED:
            self.member_id = member_id
        elif code in _FORGOTTEN:
            self.generation = -1
            if code is ErrorCode.UNKNOWN_MEMBER_ID:
                self.member_id = ""
            await self.reader.lose_all()
        elif code not in _AGAIN:
            raise self.failed(code)
        return False

    async def _assign(self, joined: JoinGroupResponse) -> dict[str, list[TopicPartition]]:
        members: dict[str, Member] = {}
        for row in joined.members:
            try:
                subscription = wire.decode_record(row.metadata, ConsumerProtocolSubscription).record
            except (MalformedError, UnsupportedVersionError) as error:
                _log.warning(
                    "the subscription of member %s of group %s cannot be read: %s", row.member_id, self.group_id, error
                )
                members[row.member_id] = Member(())
                continue
            assert isinstance(subscription, ConsumerProtocolSubscription)
            owned = [
                TopicPartition(each.topic, index) for each in subscription.owned_partitions for index in each.partitions
            ]
            topics = tuple(subscription.topics)
            members[row.member_id] = Member(topics, tuple(owned), subscription.generation_id, row.group_instance_id)
        wanted = {topic for member in members.values() for topic in member.topics}
        state = await self.cluster.refresh(wanted)
        self._leads_topics = _counts(state, wanted)
        counts = {topic: count for topic, count in self._leads_topics.items() if count}
        return ASSIGNORS[joined.protocol_name or self.settings.assignors[0]](members, counts)

    async def _sync(
        self, joined: JoinGroupResponse, assignments: dict[str, list[TopicPartition]]
    ) -> list[TopicPartition] | None:
        request = SyncGroupRequest(
            group_id=self.group_id,
            generation_id=self.generation,
            member_id=self.member_id,
            group_instance_id=self.settings.group_instance_id,
            protocol_type=PROTOCOL_TYPE,
            protocol_name=joined.protocol_name,
            assignments=[
                SyncGroupRequest.SyncGroupRequestAssignment(member_id=member_id, assignment=_encoded(places))
                for member_id, places in assignments.items()
            ],
        )
        wait_ms = max(self.settings.max_poll_interval_ms + _JOIN_EXTRA_MS, self.settings.request_timeout_ms)
        response: SyncGroupResponse = await self.ask(request, wait_ms)
        if not await self._accepted(error_code(response.error_code)):
            return None
        if not response.assignment:
            return []
        found = wire.decode_record(response.assignment, ConsumerProtocolAssignment).record
        assert isinstance(found, ConsumerProtocolAssignment)
        return [TopicPartition(each.topic, index) for each in found.assigned_partitions for index in each.partitions]

    # --- between rebalances

    async def _send_heartbeats(self, *, is_rebalancing: bool = False) -> None:
        """Send heartbeats until the member has to join again, or until a poll begins.

        `is_rebalancing`: the member knows that it has to join again, and cannot yet.
        """
        loop = asyncio.get_running_loop()
        heard_s = loop.time()
        interval_s = self.settings.heartbeat_interval_ms / 1000
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(interval_s):
                    await self._changed.wait()
                return
            if self.is_poll_late():
                _log.warning("group %s: no poll in max.poll.interval.ms; leaving", self.group_id)
                await self.leave()
                await self.reader.lose_all()
                while self.is_poll_late():
                    await asyncio.sleep(interval_s)
                return
            try:
                answer = await self.ask(self._heartbeat(), self.settings.session_timeout_ms)
            except OSError:
                if loop.time() - heard_s > self.settings.session_timeout_ms / 1000:
                    await self.reader.lose_all()
                    raise
                await self.back_off(0)
                continue
            code = error_code(answer.error_code)
            if code in COORDINATOR_MOVED:
                await self.back_off(0)
                continue
            heard_s = loop.time()
            if code is ErrorCode.REBALANCE_IN_PROGRESS and is_rebalancing:
                continue
            if not await self._accepted(code):
                return

    def _heartbeat(self) -> HeartbeatRequest:
        return HeartbeatRequest(
            group_id=self.group_id,
            generation_id=self.generation,
            member_id=self.member_id,
            group_instance_id=self.settings.group_instance_id,
        )

    async def leave(self) -> None:
        """Leave the group. A static member does not leave: its session expires."""
        if not self.member_id or self.settings.group_instance_id is not None:
            return
        member_id, self.member_id, self.generation = self.member_id, "", -1
        with contextlib.suppress(KafkaError, OSError):
            versions = await self.cluster.versions()
            many = versions.serves("LeaveGroup", 3)
            rows = [LeaveGroupRequest.MemberIdentity(member_id=member_id, reason="the consumer was closed")]
            request = LeaveGroupRequest(group_id=self.group_id, members=rows) if many else None
            await self.ask(request or LeaveGroupRequest(group_id=self.group_id, member_id=member_id))


def _counts(state: ClusterState, topics: set[str] | dict[str, int]) -> dict[str, int]:
    return {topic: len(state.topics[topic].partitions) if topic in state.topics else 0 for topic in sorted(topics)}


def _by_topic(places: tuple[TopicPartition, ...] | list[TopicPartition]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for topic, partition in places:
        found.setdefault(topic, []).append(partition)
    return found


def _encoded(places: list[TopicPartition]) -> bytes:
    rows = [
        ConsumerProtocolAssignment.TopicPartition(topic=topic, partitions=partitions)
        for topic, partitions in _by_topic(places).items()
    ]
    return wire.encode_record(ConsumerProtocolAssignment(assigned_partitions=rows), _ASSIGNMENT_VERSION)
