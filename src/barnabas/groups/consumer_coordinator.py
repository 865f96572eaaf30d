"""The shell of consumer groups: runs their decisions, keeps their timers, and resolves their regular expressions.

What it knows beside the log is in the `ConsumerSoftState` of each shard.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from random import Random
from typing import TypeVar

from barnabas.config.resource_type import ConfigResourceType
from barnabas.config.server_config import ServerConfig
from barnabas.groups import consumer_classic_members, consumer_heartbeat, regular_expressions
from barnabas.groups.classic.requests import AnswerJoin, AnswerSync, Join, Leaver, Sync, join_failed, sync_failed
from barnabas.groups.classic_coordinator import ClassicCoordinator
from barnabas.groups.consumer_decision import Asker, ConsumerSituation, Decided, Outcome, Timer, TimerChange
from barnabas.groups.consumer_group import (
    LEAVE_EPOCH,
    STATIC_LEAVE_EPOCH,
    ConsumerGroup,
    MemberState,
)
from barnabas.groups.consumer_settings import ConsumerSettings, consumer_settings
from barnabas.groups.consumer_soft_state import Deadline, TimerKey
from barnabas.groups.image import GroupsImage
from barnabas.groups.metadata_hash import TopicHashes
from barnabas.groups.regular_expressions import ResolvedRegularExpression
from barnabas.groups.room import GroupRoom
from barnabas.groups.shard import Shard
from barnabas.groups.shards import Shards
from barnabas.metadata.image import MetadataImage
from barnabas.replicated.decision import Result
from barnabas.replicated.scheduler import Scheduler
from barnabas.steps import Slices
from barnabas.wire import ErrorCode, KafkaError, random_uuid
from barnabas.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from barnabas.wire.messages.join_group import JoinGroupResponse
from barnabas.wire.messages.sync_group import SyncGroupResponse

_log = logging.getLogger(__name__)

R = TypeVar("R")
NAMES_AT_ONCE = 2000  # topic names that are matched before other work gets its turn
RETRY_MS = 500
MAX_CACHED = 10_000


class ConsumerCoordinator:
    """The consumer groups of a node. A group that is downgraded passes to `classic`."""

    def __init__(
        self,
        shards: Shards,
        room: GroupRoom,
        classic: ClassicCoordinator,
        config: Callable[[], ServerConfig],
        image: Callable[[], MetadataImage],
        scheduler: Scheduler,
        steady_ms: Callable[[], float],
        random: Random,
    ) -> None:
        self._shards = shards
        self._room = room
        self._classic = classic
        self._config = config
        self._image = image
        self._scheduler = scheduler
        self._steady_ms = steady_ms
        self._random = random
        self._hashes = TopicHashes()
        self._tasks: dict[asyncio.Task[None], None] = {}  # in order
        self._new_topics_version = -1
        self._settings: dict[str, tuple[ServerConfig, object, ConsumerSettings]] = {}

    # --- lifetime

    def loaded(self, shard: Shard) -> None:
        """Start the sessions of all members of a shard that was just loaded."""
        if self._new_topics_version < 0:
            self._new_topics_version = (
                self._image().offset
            )  # topics may have been created since expressions were resolved
        for group_id, group in shard.machine.image.groups.items():
            if isinstance(group, ConsumerGroup) and group.members:
                session_ms = self.settings(group_id).session_timeout_ms
                for member in group.members.values():
                    self._set_timer(shard, group_id, TimerChange(member.member_id, Timer.SESSION, session_ms))
                    if member.state is MemberState.UNREVOKED_PARTITIONS:
                        change = TimerChange(
                            member.member_id, Timer.REBALANCE, member.rebalance_timeout_ms, member.member_epoch
                        )
                        self._set_timer(shard, group_id, change)
        self._schedule(shard)

    def unloaded(self, shard: Shard) -> None:
        shard.consumer.close()

    def topics_created(self, image: MetadataImage) -> None:
        """Note that regular expressions have to be resolved again.

        Groups detect other changes of metadata themselves.
        """
        self._new_topics_version = image.offset

    def settings(self, group_id: str) -> ConsumerSettings:
        config = self._config()
        of_group = self._image().config(ConfigResourceType.GROUP, group_id)
        known = self._settings.get(group_id)
        if known is not None and known[0] is config and known[1] is of_group:
            return known[2]
        if len(self._settings) >= MAX_CACHED:
            self._settings.clear()
        settings = consumer_settings(config, of_group)
        self._settings[group_id] = (config, of_group, settings)
        return settings

    # --- the consumer protocol

    async def consumer_heartbeat(
        self,
        request: ConsumerGroupHeartbeatRequest,
        version: int,
        asker: Asker,
        may_describe: Callable[[str], bool],
    ) -> ConsumerGroupHeartbeatResponse:
        """Handle a ConsumerGroupHeartbeat. A regular expression matches only topics that the client may describe."""
        consumer_heartbeat.check_request(request, version, self.settings(request.group_id))
        shard = self._shards.of(request.group_id)
        self._room.check_heartbeat(shard, request)
        is_leaving = request.member_epoch in (LEAVE_EPOCH, STATIC_LEAVE_EPOCH)
        new_member_id = str(random_uuid(self._random))

        def decide(head: GroupsImage) -> Slices[Decided[ConsumerGroupHeartbeatResponse]]:
            group, situation = shard.group(head, request.group_id), self._situation(shard, head, request.group_id)
            if is_leaving:
                return consumer_heartbeat.leave(group, request, situation)
            return consumer_heartbeat.heartbeat(group, request, asker, new_member_id, situation)

        return await self._decide(shard, request.group_id, decide, may_describe)

    def _situation(self, shard: Shard, head: GroupsImage, group_id: str) -> ConsumerSituation:
        metadata = self._image()
        group = head.groups.get(group_id)
        topics, epoch = shard.consumer.checked.get(group_id, (None, 0))
        is_checked = topics is metadata.topics and isinstance(group, ConsumerGroup) and group.group_epoch >= epoch
        return ConsumerSituation(
            metadata,
            self.settings(group_id),
            self._scheduler.now_ms(),
            partial(self._hashes.of_group_in_slices, image=metadata),
            is_checked,
            group_id in shard.consumer.resolving,
            self._new_topics_version,
        )

    # --- classic members of consumer groups

    def join(self, shard: Shard, group_id: str, request: Join, answer: AnswerJoin) -> None:
        """Handle the JoinGroup of a classic member to a consumer group that is not empty."""
        new_member_id = str(random_uuid(self._random))

        def decide(head: GroupsImage) -> Slices[Decided[JoinGroupResponse]]:
            situation = self._situation(shard, head, group_id)
            return consumer_classic_members.join(_consumer_group(head, group_id), request, new_member_id, situation)

        self._answer(self._decide(shard, group_id, decide), answer, join_failed)

    def sync(self, shard: Shard, group_id: str, request: Sync, answer: AnswerSync) -> None:
        def decide(head: GroupsImage) -> Decided[SyncGroupResponse]:
            situation = self._situation(shard, head, group_id)
            return consumer_classic_members.sync(_consumer_group(head, group_id), request, situation)

        self._answer(self._decide(shard, group_id, decide), answer, sync_failed)

    def heartbeat(
        self,
        shard: Shard,
        group_id: str,
        group: ConsumerGroup,
        member_id: str,
        group_instance_id: str | None,
        generation: int,
    ) -> ErrorCode:
        try:
            outcome = consumer_classic_members.heartbeat(group, member_id, group_instance_id, generation)
        except KafkaError as error:
            return error.code
        self._follow(shard, group_id, outcome)
        return outcome.response

    async def leave(self, shard: Shard, group_id: str, leavers: Sequence[Leaver]) -> list[ErrorCode]:
        def decide(head: GroupsImage) -> Slices[Decided[list[ErrorCode]]]:
            situation = self._situation(shard, head, group_id)
            return consumer_classic_members.leave(_consumer_group(head, group_id), leavers, situation)

        return await self._decide(shard, group_id, decide)

    # --- decisions and their consequences

    async def _decide(
        self,
        shard: Shard,
        group_id: str,
        decide: Callable[[GroupsImage], Decided[R] | Slices[Decided[R]]],
        may_describe: Callable[[str], bool] | None = None,
    ) -> R:
        response = await self._decide_soon(shard, group_id, decide, may_describe)
        await self._shards.wait_committed(shard)
        return response

    async def _decide_soon(
        self,
        shard: Shard,
        group_id: str,
        decide: Callable[[GroupsImage], Decided[R] | Slices[Decided[R]]],
        may_describe: Callable[[str], bool] | None = None,
    ) -> R:
        """Decide, and apply the outcome, without waiting for the commit."""

        def follow(outcome: Outcome[R]) -> None:
            self._follow(shard, group_id, outcome, may_describe)

        outcome = await self._shards.write_soon(shard, decide, follow)
        return outcome.response

    def _answer(
        self, decided: Coroutine[None, None, R], answer: Callable[[R], None], failed: Callable[[ErrorCode], R]
    ) -> None:
        """Answer a member that waits once the decision is committed."""

        async def wait() -> None:
            try:
                response = await decided
            except KafkaError as error:
                response = failed(error.code)
            answer(response)

        self._start(wait())

    def _start(self, work: Coroutine[None, None, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks[task] = None
        task.add_done_callback(self._tasks.pop)
        return task

    def _follow(
        self, shard: Shard, group_id: str, outcome: Outcome[R], may_describe: Callable[[str], bool] | None = None
    ) -> None:
        """Apply the outcome of a decision at once: timers, regular expressions, a downgrade. The head has its records."""
        state = shard.consumer
        if outcome.downgraded is not None:
            state.forget(group_id)
            self._classic.adopt(shard, outcome.downgraded, rebalance=outcome.rebalance)
            return
        if group_id in shard.classic and isinstance(shard.machine.head.groups.get(group_id), ConsumerGroup):
            shard.classic[group_id].members.fail_all(ErrorCode.REBALANCE_IN_PROGRESS)
            shard.forget(group_id)
        for change in outcome.timers:
            self._set_timer(shard, group_id, change)
        self._schedule(shard)
        if outcome.checked_epoch is not None:
            state.checked[group_id] = (self._image().topics, outcome.checked_epoch)
        if outcome.resolve and may_describe is not None and group_id not in state.resolving:
            work = self._resolve(shard, group_id, outcome.resolve, may_describe)
            state.resolving[group_id] = self._start(work)

    # --- timers

    def _set_timer(self, shard: Shard, group_id: str, change: TimerChange) -> None:
        shard.consumer.set_timer(group_id, change, self._steady_ms())

    def _schedule(self, shard: Shard) -> None:
        """Make sure that the shard is woken by its earliest deadline."""
        shard.consumer.schedule(self._scheduler, self._steady_ms, partial(self._woken, shard))

    def _woken(self, shard: Shard) -> None:
        """Fence the members whose timers are over."""
        state = shard.consumer
        due = state.take_due(self._steady_ms())
        if due:
            self._start(self._expire(shard, due))
        groups = shard.machine.head.groups
        for group_id in [group_id for group_id in state.checked if group_id not in groups]:
            del state.checked[group_id]
        state.find_earliest()
        self._schedule(shard)

    async def _expire(self, shard: Shard, due: Sequence[tuple[TimerKey, Deadline]]) -> None:
        """Fence members one after another, in slices: all members of a large group may be gone at once."""
        for key, deadline in due:
            if not shard.consumer.is_closed:
                await self._expire_one(shard, key, deadline)

    async def _expire_one(self, shard: Shard, key: TimerKey, deadline: Deadline) -> None:
        group_id, member_id, timer = key

        def decide(head: GroupsImage) -> Slices[Decided[bool]]:
            if key in shard.consumer.deadlines:
                return Result((), Outcome(False))  # a request that came before has renewed it
            group = head.groups.get(group_id)
            member = group.members.get(member_id) if isinstance(group, ConsumerGroup) else None
            if member is None or not isinstance(group, ConsumerGroup):
                return Result((), Outcome(False))
            if timer is Timer.REBALANCE and member.member_epoch != deadline.epoch:
                return Result((), Outcome(False))
            situation = self._situation(shard, head, group_id)
            try:
                return (yield from consumer_heartbeat.fence(group, [member], True, situation))
            except KafkaError:  # the group cannot be downgraded, so it stays a consumer group
                settings = situation.settings._replace(can_downgrade=False)
                without = situation._replace(settings=settings)
                return (yield from consumer_heartbeat.fence(group, [member], True, without))

        try:
            if await self._decide_soon(shard, group_id, decide):
                _log.info("group %s: member %s was removed: its %s timer expired", group_id, member_id, timer.value)
        except KafkaError as error:
            _log.warning("group %s: member %s cannot be removed now: %s", group_id, member_id, error)
            again = TimerChange(member_id, timer, RETRY_MS, deadline.epoch)
            self._set_timer(shard, group_id, again)
            self._schedule(shard)

    # --- regular expressions

    async def _resolve(
        self, shard: Shard, group_id: str, patterns: frozenset[str], may_describe: Callable[[str], bool]
    ) -> None:
        """Match patterns with all topics, a few at a time, and then update the group."""
        metadata, started_ms = self._image(), self._scheduler.now_ms()
        found: dict[str, set[str]] = {pattern: set() for pattern in patterns}
        names = metadata.topics.names
        try:
            for start in range(0, len(names), NAMES_AT_ONCE):
                matching = regular_expressions.matching(patterns, names[start : start + NAMES_AT_ONCE])
                allowed = {name for name in frozenset().union(*matching.values()) if may_describe(name)}
                for pattern, matched in matching.items():
                    found[pattern] |= matched & allowed
                await asyncio.sleep(0)
            expressions = {
                pattern: ResolvedRegularExpression(frozenset(topics), metadata.offset, started_ms)
                for pattern, topics in found.items()
            }

            def decide(head: GroupsImage) -> Slices[Decided[None]]:
                group = head.groups.get(group_id)
                if not isinstance(group, ConsumerGroup):
                    return Result((), Outcome(None))
                situation = self._situation(shard, head, group_id)
                return (yield from consumer_heartbeat.resolved(group, expressions, situation))

            await self._decide_soon(shard, group_id, decide)
        except KafkaError as error:
            _log.warning("group %s: regular expressions cannot be resolved now: %s", group_id, error)
        finally:
            shard.consumer.resolving.pop(group_id, None)


def _consumer_group(head: GroupsImage, group_id: str) -> ConsumerGroup:
    group = head.groups.get(group_id)
    if not isinstance(group, ConsumerGroup):
        raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, f"Group {group_id} not found.")
    return group
