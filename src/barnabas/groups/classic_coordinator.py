"""The shell of classic groups: runs the decisions of `classic`, writes their records, and keeps the timers."""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Callable, Sequence
from functools import partial
from random import Random

from barnabas.groups.classic import expiry, joining, rebalancing, sessions, syncing
from barnabas.groups.classic.group import ClassicGroup
from barnabas.groups.classic.member import NEVER
from barnabas.groups.classic.records import group_record
from barnabas.groups.classic.requests import (
    UNKNOWN_MEMBER_ID,
    AnswerJoin,
    AnswerSync,
    Join,
    Leaver,
    Moment,
    Sync,
    Write,
    join_failed,
)
from barnabas.groups.image import GroupMetadata
from barnabas.groups.shard import Shard, Timer
from barnabas.groups.shards import Shards
from barnabas.replicated.decision import Records, Result
from barnabas.replicated.errors import response_error
from barnabas.replicated.scheduler import Scheduler
from barnabas.wire import ErrorCode, KafkaError
from barnabas.wire.codec import MAX_STRING_LENGTH

_log = logging.getLogger(__name__)


class ClassicCoordinator:
    """The classic groups of a node."""

    def __init__(self, shards: Shards, scheduler: Scheduler, steady_ms: Callable[[], float], random: Random) -> None:
        self._shards = shards
        self._scheduler = scheduler
        self._steady_ms = steady_ms
        self._random = random
        self._tasks: dict[asyncio.Task[None], None] = {}  # in order

    # --- lifetime

    def loaded(self, shard: Shard) -> None:
        """Start the sessions of all members of a shard that was just loaded."""
        for group_id, stored in shard.machine.image.groups.items():
            if isinstance(stored, GroupMetadata) and stored.members:
                group = shard.revive(group_id, stored)
                self._settle(shard, group, sessions.begin_sessions(group, self._moment()))

    def unloaded(self, shard: Shard) -> None:
        """Answer all members that wait with NOT_COORDINATOR, and stop the timers."""
        for group in list(shard.classic.values()):
            group.members.fail_all(ErrorCode.NOT_COORDINATOR)
            shard.forget(group.group_id)

    def stop(self) -> None:
        for task in self._tasks:
            task.cancel()

    def _moment(self) -> Moment:
        return Moment(self._scheduler.now_ms(), self._steady_ms())

    # --- requests

    def join(self, shard: Shard, group_id: str, request: Join, answer: AnswerJoin) -> None:
        """Handle a JoinGroup to a classic group, to an empty consumer group, which it replaces, or to a new group."""
        stored = shard.machine.head.groups.get(group_id)
        before: Records = ()
        if stored is not None and not isinstance(stored, GroupMetadata):
            before, stored = stored.tombstones(group_id), None
        if stored is None and request.member_id != UNKNOWN_MEMBER_ID:
            answer(join_failed(ErrorCode.UNKNOWN_MEMBER_ID, request.member_id))
            return
        if stored is None:
            shard.forget(group_id)  # a group of this name was deleted
        now = self._moment()
        group = shard.revive(group_id, stored or GroupMetadata(state_timestamp_ms=now.now_ms))
        write = joining.join(group, request, partial(self._new_member_id, request), now, answer)
        if stored is None and write is None:
            write = self._creation(shard, group, before, answer)
        self._settle(shard, group, write)

    def _creation(self, shard: Shard, group: ClassicGroup, before: Records, answer: AnswerJoin) -> Write:
        """Return the record of a new group. It is written at once, so that the image has the group."""

        def done(error: KafkaError | None, now: Moment) -> None:
            if error is not None:
                if group.group_id not in shard.machine.head.groups:
                    shard.forget(group.group_id)
                answer(join_failed(response_error(error.code)))

        empty = GroupMetadata(state_timestamp_ms=group.state_timestamp_ms)
        return Write([*before, group_record(group.group_id, empty)], done)

    def _new_member_id(self, request: Join) -> str:
        prefix = request.client_id if request.group_instance_id is None else request.group_instance_id
        bits = self._random.getrandbits(128) & ~(0xF << 76) & ~(3 << 62) | 4 << 76 | 2 << 62
        text = f"{bits:032x}"
        member_id = f"{prefix}-{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"
        if len(member_id.encode()) > MAX_STRING_LENGTH:  # neither the response nor the group's record could have it
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "the client id or group.instance.id is too long")
        return member_id

    def sync(self, shard: Shard, group: ClassicGroup, request: Sync, answer: AnswerSync) -> None:
        self._settle(shard, group, syncing.sync(group, request, self._moment(), answer))

    def heartbeat(
        self, group: ClassicGroup, member_id: str, group_instance_id: str | None, generation: int
    ) -> ErrorCode:
        return sessions.heartbeat(group, member_id, group_instance_id, generation, self._steady_ms())

    def keep_session(self, group: ClassicGroup, member_id: str) -> None:
        """Restart the session of a member after a commit of offsets."""
        sessions.keep_session(group, member_id, self._steady_ms())

    async def leave(self, shard: Shard, group: ClassicGroup, leavers: Sequence[Leaver]) -> list[ErrorCode]:
        """Remove members and return an error code for each."""
        errors, write = sessions.leave(group, leavers, self._moment())
        self._settle(shard, group, write)
        if write is not None:
            await self._shards.wait_committed(shard)
        return errors

    def adopt(self, shard: Shard, group: ClassicGroup, *, rebalance: bool) -> None:
        """Take over a group that was a consumer group; the head has its records already."""
        shard.classic[group.group_id] = group
        now = self._moment()
        write = sessions.begin_sessions(group, now)
        if rebalance and write is None:
            write = rebalancing.prepare_rebalance(group, now)
        self._settle(shard, group, write)

    # --- writes and timers

    def _settle(self, shard: Shard, group: ClassicGroup, write: Write | None = None) -> None:
        """Write the records of a decision, and set the timer of the group. Called after every decision."""
        if write is not None:
            self._write(shard, group, write)
        if shard.classic.get(group.group_id) is group:
            shard.count(group)
        timer = shard.timers.get(group.group_id)
        if group.wake_ms == NEVER or (timer is not None and timer.wake_ms <= group.wake_ms):
            return
        if timer is not None:
            timer.handle.cancel()
        delay_ms = max(0, math.ceil(group.wake_ms - self._steady_ms()))
        handle = self._scheduler.call_later(delay_ms, partial(self._tick, shard, group))
        shard.timers[group.group_id] = Timer(group.wake_ms, handle)

    def _tick(self, shard: Shard, group: ClassicGroup) -> None:
        if shard.classic.get(group.group_id) is not group:
            return
        del shard.timers[group.group_id]
        for write in expiry.tick(group, self._moment()):
            self._write(shard, group, write)
        self._settle(shard, group)

    def _write(self, shard: Shard, group: ClassicGroup, write: Write) -> None:
        machine = shard.machine
        try:
            machine.write_nowait(lambda _: Result(write.records, None))
        except KafkaError as error:
            _log.warning("group %s cannot be written: %s", group.group_id, error)
            if write.done is not None:
                write.done(error, self._moment())
            return
        if write.done is None:
            return
        if machine.image is machine.head:
            write.done(None, self._moment())
            return
        task = asyncio.get_running_loop().create_task(self._finish(shard, group, write.done))
        self._tasks[task] = None
        task.add_done_callback(self._tasks.pop)

    async def _finish(
        self, shard: Shard, group: ClassicGroup, done: Callable[[KafkaError | None, Moment], None]
    ) -> None:
        error = None
        try:
            await self._shards.wait_committed(shard)
        except KafkaError as failure:
            error = failure
        if shard.classic.get(group.group_id) is group:
            done(error, self._moment())
            self._settle(shard, group)
