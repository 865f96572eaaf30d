"""The group coordinator of a node: runs decisions on the machines it leads, keeps who waits, and watches the time.

Its one rule: a group is asked only through its machine, which is there between the end of its load and the loss of its
leadership; else callers get COORDINATOR_LOAD_IN_PROGRESS or NOT_COORDINATOR. Decisions are in `classic` and `offsets`;
consumer groups are a part of their own, which is asked for what concerns them. Kafka's requests and who may send them
are for the broker's handlers.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import partial
from random import Random
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from barnabas.batches.format import Compression
from barnabas.config.server_config import ServerConfig
from barnabas.groups import offsets, replay
from barnabas.groups.classic import expiry, joining, sessions, syncing
from barnabas.groups.classic.group import ClassicGroup
from barnabas.groups.classic.member import NEVER
from barnabas.groups.classic.records import group_record
from barnabas.groups.classic.requests import (
    UNKNOWN_MEMBER_ID,
    AnswerJoin,
    Join,
    Leaver,
    Moment,
    Sync,
    Write,
    join_failed,
    sync_failed,
)
from barnabas.groups.classic.settings import ClassicSettings
from barnabas.groups.classic.state import State
from barnabas.groups.consumer_coordinator import ConsumerCoordinator
from barnabas.groups.errors import response_error
from barnabas.groups.image import EMPTY_IMAGE, Group, GroupMetadata, GroupsImage, GroupType
from barnabas.groups.shard import Shard, Timer
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.pmap import differences
from barnabas.replicated.decision import Producer, Records, Result
from barnabas.replicated.loop import Marker
from barnabas.replicated.machines import Coordinator, Machine, MachineLog, Machines
from barnabas.replicated.placement import partition_for
from barnabas.replicated.scheduler import Scheduler
from barnabas.wire import ZERO_UUID, ErrorCode, KafkaError, Uuid
from barnabas.wire.messages.join_group import JoinGroupResponse
from barnabas.wire.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from barnabas.wire.messages.offset_delete import OffsetDeleteRequest, OffsetDeleteResponse
from barnabas.wire.messages.offset_fetch import OffsetFetchRequest
from barnabas.wire.messages.sync_group import SyncGroupResponse
from barnabas.wire.messages.txn_offset_commit import TxnOffsetCommitRequest, TxnOffsetCommitResponse

if TYPE_CHECKING:
    from barnabas.groups.consumer_group import ConsumerGroup

log = logging.getLogger(__name__)

R = TypeVar("R")

TOPIC = "__consumer_offsets"
GROUPS_AT_ONCE = 1000  # looked at for expired offsets before others have their turn
RECORDS_AT_ONCE = 5000


class ListedGroup(NamedTuple):
    """A group as ListGroups shows it."""

    group_id: str
    protocol_type: str | None
    state: str
    type: GroupType


class GroupCoordinator:
    """Machines come and go with `elected` and `resigned`. What concerns consumer groups is for `consumer`."""

    def __init__(
        self,
        config: Callable[[], ServerConfig],
        image: Callable[[], MetadataImage],
        scheduler: Scheduler,
        steady_ms: Callable[[], float],
        random: Random,
    ) -> None:
        self._config = config
        self._image = image
        self._scheduler = scheduler
        self._steady_ms = steady_ms
        self._random = random
        self._tasks: set[asyncio.Task[None]] = set()
        self._shards: dict[int, Shard] = {}
        self.consumer = ConsumerCoordinator(self, config, image, scheduler, steady_ms, random)
        codec = config().get_int("offsets.topic.compression.codec")
        coordinator = Coordinator(
            TOPIC, "group", EMPTY_IMAGE, replay.apply, self._loaded, self._unloaded, Compression(codec)
        )
        self.machines = Machines(coordinator, scheduler.now_ms)

    # --- its life

    def elected(self, partition_id: int, leader_epoch: int, machine_log: MachineLog) -> None:
        """This node leads a partition of `__consumer_offsets`."""
        self.machines.elected(partition_id, leader_epoch, machine_log)

    def resigned(self, partition_id: int) -> None:
        self.machines.resigned(partition_id)

    def stop(self) -> None:
        self.machines.stop()
        for task in self._tasks:
            task.cancel()

    def image_changed(self, old: MetadataImage, new: MetadataImage, touched: Collection[Uuid] | None = None) -> None:
        """The cluster's metadata changed: offsets of topics that are gone are forgotten.

        With `touched`, the topics that may differ, the cost is theirs.
        """
        if old.topics is new.topics:
            return
        changed = list(differences(old.topics.by_id, new.topics.by_id, touched))
        deleted = [(was.name, topic_id) for topic_id, was, now in changed if was is not None and now is None]
        if deleted:
            self._forget_topics(deleted)
        if any(was is None for _, was, _ in changed):
            self.consumer.topics_came(new)

    def _loaded(self, machine: Machine[GroupsImage]) -> None:
        shard = self._shards[machine.partition_id] = Shard(machine, self._classic_settings())
        for group_id, stored in machine.image.groups.items():
            if isinstance(stored, GroupMetadata) and stored.members:
                group = shard.revive(group_id, stored)
                self.settle(shard, group, sessions.begin_sessions(group, self.moment()))
        self.consumer.loaded(shard)
        self._schedule_expiry(shard)

    def _unloaded(self, machine: Machine[GroupsImage]) -> None:
        shard = self._shards.pop(machine.partition_id, None)
        if shard is None:
            return
        if shard.expiry is not None:
            shard.expiry.cancel()
        for group in list(shard.classic.values()):
            group.members.fail_all(ErrorCode.NOT_COORDINATOR)
            shard.forget(group.group_id)
        self.consumer.unloaded(shard)

    def _classic_settings(self) -> ClassicSettings:
        config = self._config()
        return ClassicSettings(config.get_int("group.initial.rebalance.delay.ms"), config.get_int("group.max.size"))

    # --- finding

    def moment(self) -> Moment:
        return Moment(self._scheduler.now_ms(), self._steady_ms())

    def partition_for(self, group_id: str) -> int:
        topic = self._image().topics.get(TOPIC)
        count = self._config().get_int("offsets.topic.num.partitions") if topic is None else len(topic.partitions)
        return partition_for(group_id, count)

    def shard(self, group_id: str) -> Shard:
        """Who has a group. Raises NOT_COORDINATOR or COORDINATOR_LOAD_IN_PROGRESS."""
        machine = self.machines.machine(self.partition_for(group_id))
        return self._shards[machine.partition_id]

    def shards(self) -> list[Shard]:
        """Those that answer. Raises COORDINATOR_LOAD_IN_PROGRESS while others are being loaded."""
        if self.machines.is_loading:
            raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        return list(self._shards.values())

    def committed_group(self, group_id: str) -> ClassicGroup | ConsumerGroup | None:
        """A group that is committed, in the state that it is in now."""
        shard = self.shard(group_id)
        return shard.group(shard.machine.image, group_id)

    def listed(self) -> list[ListedGroup]:
        """All committed groups, by name."""
        found = [listed for shard in self.shards() for listed in _listed(shard)]
        found.sort(key=lambda group: group.group_id)
        return found

    async def write(self, shard: Shard, decide: Callable[[GroupsImage], Result[R]]) -> R:
        """Decide, append, and return the response once it is committed. Raises KafkaError as `wait_committed` does."""
        try:
            response = shard.machine.write_nowait(decide)
        except KafkaError as error:
            raise _to_client(error) from error
        await self.wait_committed(shard)
        return response

    async def wait_committed(self, shard: Shard) -> None:
        """Wait until everything that was written to the shard so far is committed, at most `offsets.commit.timeout.ms`.

        Raises KafkaError with the codes that clients know: COORDINATOR_NOT_AVAILABLE after the timeout.
        """
        machine = shard.machine
        try:
            if machine.image is not machine.head:
                async with asyncio.timeout(self._config().get_int("offsets.commit.timeout.ms") / 1000):
                    await machine.wait_head_committed()
        except TimeoutError:
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE) from None
        except KafkaError as error:
            raise _to_client(error) from error

    # --- classic groups

    async def join(self, group_id: str, request: Join) -> JoinGroupResponse:
        future: asyncio.Future[JoinGroupResponse] = asyncio.get_running_loop().create_future()
        self._join(self.shard(group_id), group_id, request, partial(_set_result, future))
        return await future

    def _join(self, shard: Shard, group_id: str, request: Join, answer: AnswerJoin) -> None:
        stored = shard.machine.head.groups.get(group_id)
        before: Records = ()
        if stored is not None and not isinstance(stored, GroupMetadata):
            if not stored.is_empty:
                self.consumer.join(shard, group_id, request, answer)
                return
            before, stored = stored.tombstones(group_id), None
        if stored is None and request.member_id != UNKNOWN_MEMBER_ID:
            answer(join_failed(ErrorCode.UNKNOWN_MEMBER_ID, request.member_id))
            return
        if stored is None:
            shard.forget(group_id)  # what there was has been deleted
        now = self.moment()
        group = shard.revive(group_id, stored or GroupMetadata(state_timestamp_ms=now.now_ms))
        write = joining.join(group, request, partial(self._new_member_id, request), now, answer)
        if stored is None and write is None:
            write = self._creation(shard, group, before, answer)
        self.settle(shard, group, write)

    def _creation(self, shard: Shard, group: ClassicGroup, before: Records, answer: AnswerJoin) -> Write:
        """A new group is written at once, so that it is there for everybody who looks into the image."""

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
        return f"{prefix}-{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"

    async def sync(self, group_id: str, request: Sync) -> SyncGroupResponse:
        shard = self.shard(group_id)
        group = shard.group(shard.machine.head, group_id)
        future: asyncio.Future[SyncGroupResponse] = asyncio.get_running_loop().create_future()
        answer = partial(_set_result, future)
        if isinstance(group, ClassicGroup):
            self.settle(shard, group, syncing.sync(group, request, self.moment(), answer))
        elif group is None or group.is_empty:
            answer(sync_failed(ErrorCode.UNKNOWN_MEMBER_ID))
        else:
            self.consumer.sync(shard, group_id, request, answer)
        return await future

    def heartbeat(self, group_id: str, member_id: str, group_instance_id: str | None, generation: int) -> ErrorCode:
        """Answers at once: what it rests on is soft anyway."""
        shard = self.shard(group_id)
        group = shard.group(shard.machine.head, group_id)
        if isinstance(group, ClassicGroup):
            return sessions.heartbeat(group, member_id, group_instance_id, generation, self._steady_ms())
        if group is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        return self.consumer.heartbeat(shard, group_id, group, member_id, group_instance_id, generation)

    async def leave(self, group_id: str, leavers: Sequence[Leaver]) -> list[ErrorCode]:
        """For each that leaves whether it is out."""
        shard = self.shard(group_id)
        group = shard.group(shard.machine.head, group_id)
        if isinstance(group, ClassicGroup):
            errors, write = sessions.leave(group, leavers, self.moment())
            self.settle(shard, group, write)
            if write is not None:
                await self.wait_committed(shard)
            return errors
        if group is None:
            return [ErrorCode.UNKNOWN_MEMBER_ID] * len(leavers)
        return await self.consumer.leave(shard, group_id, leavers)

    # --- what classic groups want to have written, and when they want to be looked at

    def settle(self, shard: Shard, group: ClassicGroup, write: Write | None = None) -> None:
        """After anything was done to a classic group: write what it wants, and set its timer."""
        if write is not None:
            self._write(shard, group, write)
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
        for write in expiry.tick(group, self.moment()):
            self._write(shard, group, write)
        self.settle(shard, group)

    def _write(self, shard: Shard, group: ClassicGroup, write: Write) -> None:
        machine = shard.machine
        try:
            machine.write_nowait(lambda _: Result(write.records, None))
        except KafkaError as error:
            log.warning("group %s cannot be written: %s", group.group_id, error)
            if write.done is not None:
                write.done(error, self.moment())
            return
        if write.done is None:
            return
        if machine.image is machine.head:
            write.done(None, self.moment())
            return
        task = asyncio.get_running_loop().create_task(self._finish(shard, group, write.done))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _finish(
        self, shard: Shard, group: ClassicGroup, done: Callable[[KafkaError | None, Moment], None]
    ) -> None:
        error = None
        try:
            await self.wait_committed(shard)
        except KafkaError as failure:
            error = failure
        if shard.classic.get(group.group_id) is group:
            done(error, self.moment())
            self.settle(shard, group)

    # --- offsets

    async def commit_offsets(self, request: OffsetCommitRequest, version: int) -> OffsetCommitResponse:
        shard = self.shard(request.group_id)
        situation = self._situation(version)

        def decide(head: GroupsImage) -> Result[OffsetCommitResponse]:
            group = shard.group(head, request.group_id)
            result = offsets.commit(group, request, situation)
            if isinstance(group, ClassicGroup):
                sessions.keep_session(group, request.member_id, self._steady_ms())
            return result

        return await self.write(shard, decide)

    async def commit_transactional_offsets(
        self, request: TxnOffsetCommitRequest, version: int, producer: Producer
    ) -> TxnOffsetCommitResponse:
        """The transaction coordinator has agreed already, and the producer has what the log wants."""
        shard = self.shard(request.group_id)
        situation = self._situation(version)

        def decide(head: GroupsImage) -> Result[TxnOffsetCommitResponse]:
            group = shard.group(head, request.group_id)
            return offsets.commit_in_transaction(group, request, producer, self._topic_id, situation)

        return await self.write(shard, decide)

    async def end_transaction(
        self, partition_id: int, producer: Producer, marker: Marker, transaction_version: int
    ) -> None:
        """Write a producer's marker into a partition of `__consumer_offsets`, and make its offsets hold or be forgotten."""
        await self.machines.machine(partition_id).write_marker(producer, marker, transaction_version)

    def _situation(self, version: int) -> offsets.Situation:
        max_metadata_size = self._config().get_int("offset.metadata.max.bytes")
        return offsets.Situation(self._scheduler.now_ms(), version, max_metadata_size)

    def _topic_id(self, name: str) -> Uuid:
        return self._image().topics.ids.get(name, ZERO_UUID)

    def fetch_offsets(self, request: OffsetFetchRequest.OffsetFetchRequestGroup) -> offsets.FetchedGroup:
        """What is committed, whatever may still be under way."""
        shard = self.shard(request.group_id)
        image = shard.machine.image
        return offsets.fetch(image, shard.group(image, request.group_id), request, stable=False)

    async def fetch_stable_offsets(self, request: OffsetFetchRequest.OffsetFetchRequestGroup) -> offsets.FetchedGroup:
        """What is decided: commits under way are waited for, and those of open transactions are errors."""
        shard = self.shard(request.group_id)

        def decide(head: GroupsImage) -> Result[offsets.FetchedGroup]:
            return Result((), offsets.fetch(head, shard.group(head, request.group_id), request, stable=True))

        return await self.write(shard, decide)

    async def delete_offsets(self, request: OffsetDeleteRequest) -> OffsetDeleteResponse:
        shard = self.shard(request.group_id)
        return await self.write(shard, lambda head: offsets.delete(head, shard.group(head, request.group_id), request))

    async def delete_groups(self, group_ids: Iterable[str]) -> list[tuple[str, ErrorCode]]:
        """The error of each group; those of one partition are deleted together."""
        rows: list[tuple[str, ErrorCode]] = []
        by_partition: dict[int, list[str]] = {}
        for group_id in group_ids:
            by_partition.setdefault(self.partition_for(group_id), []).append(group_id)
        for of_partition in by_partition.values():
            try:
                shard = self.shard(of_partition[0])
                found = await self.write(shard, partial(_delete_groups, shard, of_partition))
                for group_id, _ in found:
                    if group_id not in shard.machine.head.groups:
                        shard.forget(group_id)
            except KafkaError as error:
                found = [(group_id, error.code) for group_id in of_partition]
            rows += found
        return rows

    # --- retention

    def _schedule_expiry(self, shard: Shard) -> None:
        interval_ms = self._config().get_int("offsets.retention.check.interval.ms")
        shard.expiry = self._scheduler.call_later(interval_ms, partial(self._begin_expiry, shard))

    def _begin_expiry(self, shard: Shard) -> None:
        self._expire(shard, list(shard.machine.head.groups))

    def _expire(self, shard: Shard, group_ids: list[str]) -> None:
        """Some groups now, the others after whatever waits."""
        now_ms = self._scheduler.now_ms()
        retention_ms = self._config().get_int("offsets.retention.minutes") * 60_000
        result = offsets.expire(shard.machine.head, shard.group, group_ids[:GROUPS_AT_ONCE], now_ms, retention_ms)
        if self._write_some(shard, result.records):
            for group_id in result.response:
                shard.forget(group_id)
        if len(group_ids) > GROUPS_AT_ONCE:
            rest = group_ids[GROUPS_AT_ONCE:]
            shard.expiry = self._scheduler.call_later(0, partial(self._expire, shard, rest))
        else:
            self._schedule_expiry(shard)

    def _forget_topics(self, deleted: list[tuple[str, Uuid]]) -> None:
        for shard in self._shards.values():
            self._write_some(shard, offsets.forget_topics(shard.machine.head, deleted).records)

    def _write_some(self, shard: Shard, records: Records) -> bool:
        """Tombstones, as many at once as the log takes; nobody waits for them."""
        try:
            for start in range(0, len(records), RECORDS_AT_ONCE):
                some = records[start : start + RECORDS_AT_ONCE]
                shard.machine.write_nowait(partial(_these, some))
        except KafkaError as error:
            log.warning("offsets in %s-%d cannot be removed now: %s", TOPIC, shard.machine.partition_id, error)
            return False
        return True


def _listed(shard: Shard) -> Iterator[ListedGroup]:
    for group_id, group in shard.machine.image.groups.items():
        live: Group | None = shard.classic.get(group_id) or (None if isinstance(group, GroupMetadata) else group)
        state = State.EMPTY if live is None else live.state  # a group with members lives
        kind = GroupType.CLASSIC if live is None else live.type
        yield ListedGroup(group_id, group.protocol_type if live is None else live.protocol_type, state, kind)


def _to_client(error: KafkaError) -> KafkaError:
    """An error of the log with the code that clients know."""
    code = response_error(error.code)
    return KafkaError(code, error.message if code is error.code else None)


def _these(records: Records, image: GroupsImage) -> Result[None]:
    return Result(records, None)


def _delete_groups(shard: Shard, group_ids: list[str], head: GroupsImage) -> Result[list[tuple[str, ErrorCode]]]:
    return offsets.delete_groups(head, shard.group, group_ids)


def _set_result(future: asyncio.Future[Any], response: Any) -> None:
    if not future.done():
        future.set_result(response)
