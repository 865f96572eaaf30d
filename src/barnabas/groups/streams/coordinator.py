"""The shell of streams groups: runs their decisions and keeps their timers.

What it knows beside the log is in the `StreamsSoftState` of each shard.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Mapping
from functools import partial
from typing import NamedTuple, TypeVar

from barnabas.config.resource_type import ConfigResourceType
from barnabas.config.server_config import ServerConfig
from barnabas.groups.consumer_decision import Asker, Timer, TimerChange
from barnabas.groups.consumer_soft_state import Deadline, TimerKey
from barnabas.groups.image import GroupsImage
from barnabas.groups.metadata_hash import TopicHashes
from barnabas.groups.room import GroupRoom
from barnabas.groups.shard import Shard
from barnabas.groups.shards import Shards
from barnabas.groups.streams import heartbeat
from barnabas.groups.streams.group import MemberState, StreamsGroup
from barnabas.groups.streams.heartbeat import Decided, Outcome, SoftGroup, StreamsSituation
from barnabas.groups.streams.internal_topics import ConfiguredTopology, InternalTopic
from barnabas.groups.streams.settings import StreamsSettings, streams_settings
from barnabas.metadata.image import MetadataImage
from barnabas.replicated.decision import Result
from barnabas.replicated.scheduler import Scheduler
from barnabas.steps import Slices
from barnabas.wire import KafkaError
from barnabas.wire.messages.streams_group_heartbeat import StreamsGroupHeartbeatRequest, StreamsGroupHeartbeatResponse

_log = logging.getLogger(__name__)

R = TypeVar("R")
RETRY_MS = 500


class HeartbeatResult(NamedTuple):
    """The response to a heartbeat, and the internal topics that the caller should create."""

    response: StreamsGroupHeartbeatResponse
    missing: Mapping[str, InternalTopic]


class StreamsCoordinator:
    """The streams groups of a node."""

    def __init__(
        self,
        shards: Shards,
        room: GroupRoom,
        config: Callable[[], ServerConfig],
        image: Callable[[], MetadataImage],
        scheduler: Scheduler,
        steady_ms: Callable[[], float],
    ) -> None:
        self._shards = shards
        self._room = room
        self._config = config
        self._image = image
        self._scheduler = scheduler
        self._steady_ms = steady_ms
        self._hashes = TopicHashes()
        self._tasks: dict[asyncio.Task[None], None] = {}  # in order

    # --- lifetime

    def loaded(self, shard: Shard) -> None:
        """Start the sessions of all members of a shard that was just loaded."""
        for group_id, group in shard.machine.image.groups.items():
            if isinstance(group, StreamsGroup) and group.members:
                session_ms = self.settings(group_id).session_timeout_ms
                for member in group.members.values():
                    self._set_timer(shard, group_id, TimerChange(member.member_id, Timer.SESSION, session_ms))
                    if member.state is MemberState.UNREVOKED_TASKS:
                        delay_ms, epoch = member.rebalance_timeout_ms, member.member_epoch
                        change = TimerChange(member.member_id, Timer.REBALANCE, delay_ms, epoch)
                        self._set_timer(shard, group_id, change)
        self._schedule(shard)

    def unloaded(self, shard: Shard) -> None:
        shard.streams.close()

    def settings(self, group_id: str) -> StreamsSettings:
        return streams_settings(self._config(), self._image().config(ConfigResourceType.GROUP, group_id))

    def configured(self, group_id: str) -> ConfiguredTopology | None:
        """Return the topology of a group as its last heartbeat has configured it, or None."""
        soft = self._shards.of(group_id).streams.groups.get(group_id)
        return None if soft is None else soft.configured

    # --- heartbeats

    async def heartbeat(self, request: StreamsGroupHeartbeatRequest, asker: Asker) -> HeartbeatResult:
        """Handle a StreamsGroupHeartbeat."""
        heartbeat.check_request(request)
        shard = self._shards.of(request.group_id)
        self._room.check_streams_heartbeat(shard, request)

        def decide(
            head: GroupsImage,
        ) -> Decided[StreamsGroupHeartbeatResponse] | Slices[Decided[StreamsGroupHeartbeatResponse]]:
            group, situation = shard.group(head, request.group_id), self._situation(shard, head, request.group_id)
            if heartbeat.is_leaving(request):
                return heartbeat.leave(group, request, situation)
            return heartbeat.heartbeat(group, request, asker, situation)

        outcome = await self._decide(shard, request.group_id, decide)
        return HeartbeatResult(outcome.response, outcome.missing)

    def _situation(self, shard: Shard, head: GroupsImage, group_id: str) -> StreamsSituation:
        metadata, state = self._image(), shard.streams
        group = head.groups.get(group_id)
        topics, epoch = state.checked.get(group_id, (None, 0))
        return StreamsSituation(
            metadata,
            self.settings(group_id),
            self._scheduler.now_ms(),
            partial(self._hashes.of_group_in_slices, image=metadata),
            state.groups.get(group_id, SoftGroup()),
            topics is metadata.topics and isinstance(group, StreamsGroup) and group.group_epoch >= epoch,
            TimerKey(group_id, "", Timer.INITIAL_REBALANCE) in state.deadlines,
        )

    async def _decide(
        self, shard: Shard, group_id: str, decide: Callable[[GroupsImage], Decided[R] | Slices[Decided[R]]]
    ) -> Outcome[R]:
        outcome: Outcome[R] = await self._shards.write_soon(shard, decide, partial(self._follow, shard, group_id))
        await self._shards.wait_committed(shard)
        return outcome

    def _follow(self, shard: Shard, group_id: str, outcome: Outcome[R]) -> None:
        """Apply the outcome of a decision at once: timers and soft state. The head has its records."""
        state = shard.streams
        for change in outcome.timers:
            self._set_timer(shard, group_id, change)
        self._schedule(shard)
        if outcome.soft is not None:
            state.groups[group_id] = outcome.soft
        if outcome.checked_epoch is not None:
            state.checked[group_id] = (self._image().topics, outcome.checked_epoch)
        group = shard.machine.head.groups.get(group_id)
        if group_id in shard.classic and isinstance(group, StreamsGroup):
            shard.forget_classic(group_id)
        soft = state.groups.get(group_id)
        if soft is not None and (not isinstance(group, StreamsGroup) or group.is_empty):
            state.groups[group_id] = soft._replace(shutdown_member_id=None)

    # --- timers

    def _set_timer(self, shard: Shard, group_id: str, change: TimerChange) -> None:
        shard.streams.set_timer(group_id, change, self._steady_ms())

    def _schedule(self, shard: Shard) -> None:
        shard.streams.schedule(self._scheduler, self._steady_ms, partial(self._woken, shard))

    def _woken(self, shard: Shard) -> None:
        """Handle the timers that are over."""
        for key, deadline in shard.streams.take_due(self._steady_ms()):
            if key.timer is Timer.INITIAL_REBALANCE:
                self._start(self._assign_delayed(shard, key.group_id))
            else:
                self._expire(shard, key, deadline)
        shard.streams.find_earliest()
        self._schedule(shard)

    def _start(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks[task] = None
        task.add_done_callback(self._tasks.pop)

    async def _assign_delayed(self, shard: Shard, group_id: str) -> None:
        def decide(head: GroupsImage) -> Decided[None] | Slices[Decided[None]]:
            group = head.groups.get(group_id)
            if not isinstance(group, StreamsGroup):
                return Result((), Outcome(None))
            return heartbeat.assign_delayed(group, self._situation(shard, head, group_id))

        try:
            await self._decide(shard, group_id, decide)
        except KafkaError as error:  # the next heartbeat assigns
            _log.warning("group %s: the first assignment cannot be written now: %s", group_id, error)

    def _expire(self, shard: Shard, key: TimerKey, deadline: Deadline) -> None:
        group_id, member_id, timer = key

        def decide(head: GroupsImage) -> Decided[bool]:
            group = head.groups.get(group_id)
            member = group.members.get(member_id) if isinstance(group, StreamsGroup) else None
            if member is None or not isinstance(group, StreamsGroup):
                return Result((), Outcome(False))
            if timer is Timer.REBALANCE and member.member_epoch != deadline.epoch:
                return Result((), Outcome(False))
            return heartbeat.fence(group, member, True)

        try:
            outcome = self._shards.write_nowait(shard, decide)
        except KafkaError as error:
            _log.warning("group %s: member %s cannot be removed now: %s", group_id, member_id, error)
            self._set_timer(shard, group_id, TimerChange(member_id, timer, RETRY_MS, deadline.epoch))
            return
        self._follow(shard, group_id, outcome)
        if outcome.response:
            _log.info("group %s: member %s was removed: its %s timer expired", group_id, member_id, timer.value)
