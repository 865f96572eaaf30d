"""The group coordinator of a node: passes requests on by the type of their group, and keeps offsets and their
retention.

Its one rule: it knows all types of groups, and they do not know it. `classic_coordinator` runs classic groups,
`consumer_coordinator` consumer groups, `streams.coordinator` streams groups; a consumer group that is downgraded passes
from the second to the first. All write through `shards`. Authorization and the form of Kafka's requests are left to the
broker's handlers.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import partial
from random import Random
from typing import NamedTuple, TypeVar

from barnabas.config.server_config import ServerConfig
from barnabas.groups import offsets
from barnabas.groups.classic.group import ClassicGroup
from barnabas.groups.classic.requests import Join, Leaver, Sync, join_failed, sync_failed
from barnabas.groups.classic.state import State
from barnabas.groups.classic_coordinator import ClassicCoordinator
from barnabas.groups.consumer_coordinator import ConsumerCoordinator
from barnabas.groups.consumer_group import ConsumerGroup
from barnabas.groups.image import Group, GroupMetadata, GroupsImage, GroupType
from barnabas.groups.room import GroupRoom
from barnabas.groups.shard import Shard
from barnabas.groups.shards import TOPIC, Shards
from barnabas.groups.share.coordinator import ShareGroupCoordinator
from barnabas.groups.share.group import ShareGroup
from barnabas.groups.streams.coordinator import StreamsCoordinator
from barnabas.groups.streams.group import StreamsGroup
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.pmap import differences
from barnabas.replicated.decision import Producer, Records, Result
from barnabas.replicated.loop import Marker
from barnabas.replicated.machines import MachineLog
from barnabas.replicated.scheduler import Scheduler
from barnabas.share_state.persister import Persister
from barnabas.slices import waited
from barnabas.steps import Slices, at_once, stepwise
from barnabas.wire import ZERO_UUID, ErrorCode, KafkaError, Uuid
from barnabas.wire.messages.join_group import JoinGroupResponse
from barnabas.wire.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from barnabas.wire.messages.offset_delete import OffsetDeleteRequest, OffsetDeleteResponse
from barnabas.wire.messages.offset_fetch import OffsetFetchRequest
from barnabas.wire.messages.sync_group import SyncGroupResponse
from barnabas.wire.messages.txn_offset_commit import TxnOffsetCommitRequest, TxnOffsetCommitResponse

_log = logging.getLogger(__name__)

R = TypeVar("R")

GROUPS_AT_ONCE = 1000  # checked for expired offsets before other work gets its turn
RECORDS_AT_ONCE = 5000


class ListedGroup(NamedTuple):
    """A group as ListGroups shows it."""

    group_id: str
    protocol_type: str | None
    state: str
    type: GroupType


class GroupCoordinator:
    """The groups of a node. `consumer` serves the requests of the consumer protocol."""

    def __init__(
        self,
        config: Callable[[], ServerConfig],
        image: Callable[[], MetadataImage],
        scheduler: Scheduler,
        steady_ms: Callable[[], float],
        random: Random,
        persister: Persister,
    ) -> None:
        self._config = config
        self._image = image
        self._scheduler = scheduler
        self.shards = Shards(config, image, scheduler.now_ms, self._loaded, self._unloaded)
        self.machines = self.shards.machines
        self.room = GroupRoom(config, self.shards.loaded, steady_ms)
        self._classic = ClassicCoordinator(self.shards, scheduler, steady_ms, random)
        self.consumer = ConsumerCoordinator(
            self.shards, self.room, self._classic, config, image, scheduler, steady_ms, random
        )
        self.share = ShareGroupCoordinator(self.shards, self.room, persister, config, image, scheduler, steady_ms)
        self.streams = StreamsCoordinator(self.shards, self.room, config, image, scheduler, steady_ms)

    # --- lifetime

    def elected(self, partition_id: int, leader_epoch: int, machine_log: MachineLog) -> None:
        """Load a partition of `__consumer_offsets` that this node leads from now on."""
        self.machines.elected(partition_id, leader_epoch, machine_log)

    def resigned(self, partition_id: int) -> None:
        self.machines.resigned(partition_id)

    def stop(self) -> None:
        self.machines.stop()
        self._classic.stop()
        self.share.stop()

    def image_changed(
        self, old: MetadataImage, new: MetadataImage, touched: Collection[Uuid] | None = None
    ) -> Slices[None]:
        """Follow a change of the cluster's metadata: offsets of deleted topics are deleted.

        `touched` are the topics that may differ. Without it, all topics are compared.
        """
        if old.topics is new.topics:
            return
        changed = list(differences(old.topics.by_id, new.topics.by_id, touched))
        deleted = [(was.name, topic_id) for topic_id, was, now in changed if was is not None and now is None]
        if deleted:
            yield from self._forget_topics(deleted)
        if any(was is None for _, was, _ in changed):
            self.consumer.topics_created(new)

    def _loaded(self, shard: Shard) -> None:
        self._classic.loaded(shard)
        self.consumer.loaded(shard)
        self.share.loaded(shard)
        self.streams.loaded(shard)
        self._schedule_expiry(shard)

    def _unloaded(self, shard: Shard) -> None:
        if shard.expiry is not None:
            shard.expiry.cancel()
        self._classic.unloaded(shard)
        self.consumer.unloaded(shard)
        self.share.unloaded(shard)
        self.streams.unloaded(shard)

    # --- finding

    def partition_for(self, group_id: str) -> int:
        """Return the partition of `__consumer_offsets` that a group belongs to, on whatever node."""
        return self.shards.partition_for(group_id)

    def committed_group(self, group_id: str) -> ClassicGroup | ConsumerGroup | ShareGroup | StreamsGroup | None:
        """Return a group that is committed, in its current state, or None."""
        shard = self.shards.of(group_id)
        return shard.group(shard.machine.image, group_id)

    def listed(self) -> Slices[list[ListedGroup]]:
        """Return all committed groups, sorted by name."""
        found: list[ListedGroup] = []
        for shard in self.shards.all():
            for some in stepwise(listed_groups(shard)):
                found += some
                yield
        found.sort(key=lambda group: group.group_id)
        return found

    # --- members that speak the classic protocol, in groups of either type

    async def join(self, group_id: str, request: Join) -> JoinGroupResponse:
        """Handle a JoinGroup. Returns when the rebalance that it waits for is complete."""
        shard = self.shards.of(group_id)
        self.room.check_join(shard, group_id, request)
        group = shard.machine.head.groups.get(group_id)
        future: asyncio.Future[JoinGroupResponse] = asyncio.get_running_loop().create_future()
        answer = partial(_set_result, future)
        if isinstance(group, ShareGroup | StreamsGroup) and not group.is_empty:
            answer(join_failed(ErrorCode.INCONSISTENT_GROUP_PROTOCOL))
        elif isinstance(group, ConsumerGroup) and not group.is_empty:
            self.consumer.join(shard, group_id, request, answer)
        else:
            self._classic.join(shard, group_id, request, answer)
        return await future

    async def sync(self, group_id: str, request: Sync) -> SyncGroupResponse:
        """Handle a SyncGroup. Returns when the assignment of the member is committed."""
        shard = self.shards.of(group_id)
        self.room.check_sync(shard, group_id, request)
        group = shard.group(shard.machine.head, group_id)
        future: asyncio.Future[SyncGroupResponse] = asyncio.get_running_loop().create_future()
        answer = partial(_set_result, future)
        if isinstance(group, ClassicGroup):
            self._classic.sync(shard, group, request, answer)
        elif not isinstance(group, ConsumerGroup) or group.is_empty:
            answer(sync_failed(ErrorCode.UNKNOWN_MEMBER_ID))
        else:
            self.consumer.sync(shard, group_id, request, answer)
        return await future

    def heartbeat(self, group_id: str, member_id: str, group_instance_id: str | None, generation: int) -> ErrorCode:
        """Handle a Heartbeat. It never waits: sessions are soft state."""
        shard = self.shards.of(group_id)
        group = shard.group(shard.machine.head, group_id)
        if isinstance(group, ClassicGroup):
            return self._classic.heartbeat(group, member_id, group_instance_id, generation)
        if not isinstance(group, ConsumerGroup):
            return ErrorCode.UNKNOWN_MEMBER_ID
        return self.consumer.heartbeat(shard, group_id, group, member_id, group_instance_id, generation)

    async def leave(self, group_id: str, leavers: Sequence[Leaver]) -> list[ErrorCode]:
        """Remove members and return an error code for each."""
        shard = self.shards.of(group_id)
        group = shard.group(shard.machine.head, group_id)
        if isinstance(group, ClassicGroup):
            return await self._classic.leave(shard, group, leavers)
        if not isinstance(group, ConsumerGroup):
            return [ErrorCode.UNKNOWN_MEMBER_ID] * len(leavers)
        return await self.consumer.leave(shard, group_id, leavers)

    # --- offsets

    async def commit_offsets(self, request: OffsetCommitRequest, version: int) -> OffsetCommitResponse:
        shard = self.shards.of(request.group_id)
        self.room.check_commit(shard, request.group_id)
        situation = self._situation(version)

        def decide(head: GroupsImage) -> Slices[Result[OffsetCommitResponse]]:
            group = shard.group(head, request.group_id)
            result = yield from offsets.commit(group, request, situation)
            if isinstance(group, ClassicGroup):
                self._classic.keep_session(group, request.member_id)
            return result

        return await self.shards.write(shard, decide)

    async def commit_transactional_offsets(
        self, request: TxnOffsetCommitRequest, version: int, producer: Producer
    ) -> TxnOffsetCommitResponse:
        """Commit offsets in a transaction that the transaction coordinator has verified."""
        shard = self.shards.of(request.group_id)
        self.room.check_commit(shard, request.group_id)
        situation = self._situation(version)

        def decide(head: GroupsImage) -> Slices[Result[TxnOffsetCommitResponse]]:
            group = shard.group(head, request.group_id)
            return offsets.commit_in_transaction(group, request, producer, self._topic_id, situation)

        return await self.shards.write(shard, decide)

    async def end_transaction(
        self, partition_id: int, producer: Producer, marker: Marker, transaction_version: int
    ) -> None:
        """Write the marker of a producer to a partition, which commits or drops its pending offsets."""
        await self.machines.machine(partition_id).write_marker(producer, marker, transaction_version)

    def _situation(self, version: int) -> offsets.OffsetSituation:
        max_metadata_size = self._config().get_int("offset.metadata.max.bytes")
        return offsets.OffsetSituation(self._scheduler.now_ms(), version, max_metadata_size)

    def _topic_id(self, name: str) -> Uuid:
        return self._image().topics.ids.get(name, ZERO_UUID)

    def fetch_offsets(self, request: OffsetFetchRequest.OffsetFetchRequestGroup) -> Slices[offsets.FetchedGroup]:
        """Return committed offsets, without waiting for commits in progress."""
        shard = self.shards.of(request.group_id)
        image = shard.machine.image
        return offsets.fetch(image, shard.group(image, request.group_id), request, stable=False)

    async def fetch_stable_offsets(self, request: OffsetFetchRequest.OffsetFetchRequestGroup) -> offsets.FetchedGroup:
        """Return offsets after all commits in progress. Partitions with offsets of open transactions have an error."""
        shard = self.shards.of(request.group_id)

        def decide(head: GroupsImage) -> Slices[Result[offsets.FetchedGroup]]:
            found = yield from offsets.fetch(head, shard.group(head, request.group_id), request, stable=True)
            return Result((), found)

        return await self.shards.write(shard, decide)

    async def delete_offsets(self, request: OffsetDeleteRequest) -> OffsetDeleteResponse:
        shard = self.shards.of(request.group_id)
        return await self.shards.write(
            shard, lambda head: offsets.delete(head, shard.group(head, request.group_id), request)
        )

    def delete_groups(self, group_ids: Iterable[str]) -> Slices[list[tuple[str, ErrorCode]]]:
        """Delete empty groups and return an error code for each. Groups of one partition are deleted together."""
        rows: list[tuple[str, ErrorCode]] = []
        by_partition: dict[int, list[str]] = {}
        for some in stepwise(group_ids):
            for group_id in some:
                by_partition.setdefault(self.partition_for(group_id), []).append(group_id)
            yield
        for of_partition in by_partition.values():
            try:
                shard = self.shards.of(of_partition[0])
                failed = yield from self._delete_share_states(shard, of_partition)
                rows += failed.items()
                rest = [group_id for group_id in of_partition if group_id not in failed]
                found = yield from waited(self.shards.write(shard, partial(_delete_groups, shard, rest)))
                for some_found in stepwise(found):
                    for group_id, _ in some_found:
                        if group_id not in shard.machine.head.groups:
                            shard.forget(group_id)
                    yield
            except KafkaError as error:
                found = [(group_id, error.code) for group_id in of_partition]
            rows += found
        return rows

    def _delete_share_states(self, shard: Shard, group_ids: list[str]) -> Slices[dict[str, ErrorCode]]:
        """Delete the states of share groups first, and return the groups that cannot be deleted."""
        share_ids = []
        for some in stepwise(group_ids):
            share_ids += [each for each in some if isinstance(shard.machine.head.groups.get(each), ShareGroup)]
            yield
        if not share_ids:
            return {}
        return (yield from waited(self.share.delete_states(shard, share_ids)))

    # --- retention

    def _schedule_expiry(self, shard: Shard) -> None:
        interval_ms = self._config().get_int("offsets.retention.check.interval.ms")
        shard.expiry = self._scheduler.call_later(interval_ms, partial(self._begin_expiry, shard))

    def _begin_expiry(self, shard: Shard) -> None:
        self._expire(shard, list(shard.machine.head.groups))

    def _expire(self, shard: Shard, group_ids: list[str]) -> None:
        """Expire offsets of `GROUPS_AT_ONCE` groups now, and of the others after other work."""
        now_ms = self._scheduler.now_ms()
        retention_ms = self._config().get_int("offsets.retention.minutes") * 60_000
        result = offsets.expire(shard.machine.head, shard.group, group_ids[:GROUPS_AT_ONCE], now_ms, retention_ms)
        if at_once(self._write_some(shard, result.records)):
            for group_id in result.response:
                shard.forget(group_id)
        if len(group_ids) > GROUPS_AT_ONCE:
            rest = group_ids[GROUPS_AT_ONCE:]
            shard.expiry = self._scheduler.call_later(0, partial(self._expire, shard, rest))
        else:
            self._schedule_expiry(shard)

    def _forget_topics(self, deleted: list[tuple[str, Uuid]]) -> Slices[None]:
        for shard in self.shards.loaded():
            if shard.machine.is_loaded:
                result = yield from offsets.forget_topics(shard.machine.head, dict(deleted))
                forgotten = yield from self.share.forget_topics(
                    shard, {topic_id for _, topic_id in deleted}, self._image().topics
                )
                yield from self._write_some(shard, [*result.records, *forgotten])

    def _write_some(self, shard: Shard, records: Records) -> Slices[bool]:
        """Write tombstones in batches of `RECORDS_AT_ONCE`, without waiting for the commit.

        Returns False on failure.
        """
        try:
            for start in range(0, len(records), RECORDS_AT_ONCE):
                some = records[start : start + RECORDS_AT_ONCE]
                shard.machine.write_nowait(partial(_these, some))
                yield
        except KafkaError as error:
            _log.warning("offsets in %s-%d cannot be removed now: %s", TOPIC, shard.machine.partition_id, error)
            return False
        return True


def listed_groups(shard: Shard) -> Iterator[ListedGroup]:
    """Yield the committed groups of a shard, in no particular order."""
    for group_id, group in shard.machine.image.groups.items():
        live: Group | None = shard.classic.get(group_id) or (None if isinstance(group, GroupMetadata) else group)
        state = State.EMPTY if live is None else live.state  # a group with members has soft state
        kind = GroupType.CLASSIC if live is None else live.type
        yield ListedGroup(group_id, group.protocol_type if live is None else live.protocol_type, state, kind)


def _these(records: Records, image: GroupsImage) -> Result[None]:
    return Result(records, None)


def _delete_groups(
    shard: Shard, group_ids: list[str], head: GroupsImage
) -> Slices[Result[list[tuple[str, ErrorCode]]]]:
    return offsets.delete_groups(head, shard.group, group_ids)


def _set_result(future: asyncio.Future[R], response: R) -> None:
    if not future.done():
        future.set_result(response)
