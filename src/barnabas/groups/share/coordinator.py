"""The shell of share groups: runs their decisions, keeps their timers, and has share partitions initialized.

What it knows beside the log is in the `ShareSoftState` of each shard.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Coroutine, Iterable, Mapping
from functools import partial
from typing import Any, TypeVar

from barnabas.config.resource_type import ConfigResourceType
from barnabas.config.server_config import ServerConfig
from barnabas.groups.consumer_decision import Asker, Timer, TimerChange
from barnabas.groups.consumer_soft_state import Deadline, TimerKey
from barnabas.groups.image import GroupsImage
from barnabas.groups.metadata_hash import TopicHashes
from barnabas.groups.room import GroupRoom
from barnabas.groups.shard import Shard
from barnabas.groups.shards import Shards
from barnabas.groups.share import heartbeat, initialization, offsets
from barnabas.groups.share.group import NO_TOPICS, ShareGroup, StateTopics
from barnabas.groups.share.heartbeat import Decided, Outcome, ShareSituation
from barnabas.groups.share.records import Record
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.topics import Topics
from barnabas.replicated.decision import Result
from barnabas.replicated.scheduler import Scheduler
from barnabas.share_state.persister import Persister
from barnabas.share_state.settings import ShareSettings, share_settings
from barnabas.steps import Slices
from barnabas.wire import ErrorCode, KafkaError, Uuid
from barnabas.wire.messages.alter_share_group_offsets import AlterShareGroupOffsetsRequest
from barnabas.wire.messages.delete_share_group_offsets import DeleteShareGroupOffsetsRequest
from barnabas.wire.messages.initialize_share_group_state import InitializeShareGroupStateRequest
from barnabas.wire.messages.share_group_heartbeat import ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse

_log = logging.getLogger(__name__)

R = TypeVar("R")
RETRY_MS = 500


class ShareGroupCoordinator:
    """The share groups of a node. The state of their partitions is at the share coordinators, behind `persister`."""

    def __init__(
        self,
        shards: Shards,
        room: GroupRoom,
        persister: Persister,
        config: Callable[[], ServerConfig],
        image: Callable[[], MetadataImage],
        scheduler: Scheduler,
        steady_ms: Callable[[], float],
    ) -> None:
        self._shards = shards
        self._room = room
        self._persister = persister
        self._config = config
        self._image = image
        self._scheduler = scheduler
        self._steady_ms = steady_ms
        self._hashes = TopicHashes()
        self._tasks: dict[asyncio.Task[None], None] = {}  # in order

    # --- lifetime

    def loaded(self, shard: Shard) -> None:
        """Start the sessions of all members of a shard that was just loaded."""
        shard.share.loaded_ms = self._scheduler.now_ms()
        for group_id, group in shard.machine.image.groups.items():
            if isinstance(group, ShareGroup) and group.members:
                session_ms = self.settings(group_id).session_timeout_ms
                for member_id in group.members:
                    self._set_timer(shard, group_id, TimerChange(member_id, Timer.SESSION, session_ms))
        self._schedule(shard)

    def unloaded(self, shard: Shard) -> None:
        shard.share.close()

    def stop(self) -> None:
        for task in self._tasks:
            task.cancel()

    def settings(self, group_id: str) -> ShareSettings:
        return share_settings(self._config(), self._image().config(ConfigResourceType.GROUP, group_id))

    # --- heartbeats

    async def heartbeat(self, request: ShareGroupHeartbeatRequest, asker: Asker) -> ShareGroupHeartbeatResponse:
        """Handle a ShareGroupHeartbeat. Share partitions are initialized after it, in the background."""
        heartbeat.check_request(request)
        shard = self._shards.of(request.group_id)
        self._room.check_share_heartbeat(shard, request)

        def decide(
            head: GroupsImage,
        ) -> Decided[ShareGroupHeartbeatResponse] | Slices[Decided[ShareGroupHeartbeatResponse]]:
            group, situation = shard.group(head, request.group_id), self._situation(shard, head, request.group_id)
            if heartbeat.is_leaving(request):
                return heartbeat.leave(group, request, situation)
            return heartbeat.heartbeat(group, request, asker, situation)

        follow = partial(self._follow, shard, request.group_id)
        outcome: Outcome[ShareGroupHeartbeatResponse] = await self._shards.write_soon(shard, decide, follow)
        await self._shards.wait_committed(shard)
        if outcome.initialize is not None:
            self._start(self._initialize(shard, outcome.initialize))
        return outcome.response

    def _situation(self, shard: Shard, head: GroupsImage, group_id: str) -> ShareSituation:
        metadata, soft, now_ms = self._image(), shard.share, self._scheduler.now_ms()
        group = head.groups.get(group_id)
        topics, epoch = soft.checked.get(group_id, (None, 0))
        initialized_ms = soft.initialized_ms.get(group_id, soft.loaded_ms)
        return ShareSituation(
            metadata,
            self.settings(group_id),
            now_ms,
            partial(self._hashes.of_group, image=metadata),
            topics is metadata.topics and isinstance(group, ShareGroup) and group.group_epoch >= epoch,
            isinstance(group, ShareGroup) and soft.is_settled(group, metadata.topics),
            now_ms - initialized_ms >= self._initialize_retry_ms(),
        )

    def _initialize_retry_ms(self) -> int:
        """Not sooner than a write by this coordinator may take, as in Kafka."""
        config = self._config()
        return max(
            config.get_int("group.share.initialize.retry.interval.ms"), config.get_int("offsets.commit.timeout.ms")
        )

    def _follow(self, shard: Shard, group_id: str, outcome: Outcome[R]) -> None:
        """Apply the outcome of a decision at once: timers and soft state. The head has its records."""
        soft, topics = shard.share, self._image().topics
        for change in outcome.timers:
            self._set_timer(shard, group_id, change)
        self._schedule(shard)
        if outcome.checked_epoch is not None:
            soft.checked[group_id] = (topics, outcome.checked_epoch)
        if outcome.settled is not None:
            soft.settled[group_id] = (topics, outcome.settled)
        if outcome.initialize is not None:
            soft.initialized_ms[group_id] = self._scheduler.now_ms()

    # --- the state of share partitions

    async def _initialize(self, shard: Shard, request: InitializeShareGroupStateRequest) -> None:
        """Have share partitions initialized, and note whether they were. If one fails, all are tried again later."""
        group_id = request.group_id
        partitions = {topic.topic_id: [row.partition for row in topic.partitions] for topic in request.topics}
        try:
            response = await self._persister.initialize(request)
            failed = next((row for topic in response.results for row in topic.partitions if row.error_code), None)
            if failed is not None:
                _log.warning(
                    "group %s: share partitions are not initialized, and tried again by a later heartbeat: %s",
                    group_id,
                    failed.error_message or ErrorCode(failed.error_code).message,
                )
                await self._write(shard, group_id, partial(initialization.failed_record, failed=partitions))
                return
            await self._write(shard, group_id, partial(initialization.initialized_record, done=partitions))
        except KafkaError as error:  # the group stays as it is, and a heartbeat tries again after the retry interval
            _log.warning("group %s: the state of share partitions cannot be written now: %s", group_id, error)

    async def _write(self, shard: Shard, group_id: str, record: Callable[..., Record | None]) -> None:
        """Write the record that `record(group, topics=...)` makes, unless the group is gone."""

        def decide(head: GroupsImage) -> Result[bool]:
            group = head.groups.get(group_id)
            made = record(group, topics=self._image().topics) if isinstance(group, ShareGroup) else None
            return Result(() if made is None else (made,), made is not None)

        def follow(is_written: bool) -> None:
            if is_written:
                shard.share.initialized_ms[group_id] = self._scheduler.now_ms()

        await self._shards.write_soon(shard, decide, follow)
        await self._shards.wait_committed(shard)

    def forget_topics(self, shard: Shard, deleted: Collection[Uuid], topics: Topics) -> Slices[list[Record]]:
        """Return the records of groups that had share partitions of deleted topics. The share coordinator forgets its own."""
        records = []
        for group_id, group in shard.machine.head.groups.items():
            yield
            if isinstance(group, ShareGroup):
                record = initialization.forgotten_record(group, deleted, topics)
                if record is not None:
                    records.append(record)
                    shard.share.initialized_ms[group_id] = self._scheduler.now_ms()
        return records

    # --- offsets

    def initialized(self, group_id: str) -> StateTopics:
        """Return the share partitions of a committed group that have a state. There are none without the group."""
        group = self._shards.of(group_id).machine.image.groups.get(group_id)
        return group.initialized if isinstance(group, ShareGroup) else NO_TOPICS

    async def alter_offsets(self, request: AlterShareGroupOffsetsRequest) -> list[offsets.AlteredTopic]:
        """Set the start offsets of partitions of an empty group, which may be new."""
        shard = self._shards.of(request.group_id)
        self._room.check_share_offsets(shard, request.group_id)

        def decide(head: GroupsImage) -> Slices[Result[offsets.Altering]]:
            return offsets.alter(shard.group(head, request.group_id), request, self._image().topics)

        def follow(_: object) -> None:
            shard.share.initialized_ms[request.group_id] = self._scheduler.now_ms()

        altering: offsets.Altering = await self._shards.write_soon(shard, decide, follow)
        rows, initialize = altering
        await self._shards.wait_committed(shard)
        if initialize is not None:
            response = await self._persister.initialize(initialize)
            errors = {
                (topic.topic_id, row.partition): row
                for topic in response.results
                for row in topic.partitions
                if row.error_code
            }
            if errors:
                return _with_errors(rows, errors)
            partitions = {topic.topic_id: [row.partition for row in topic.partitions] for topic in initialize.topics}
            await self._write(shard, request.group_id, partial(initialization.initialized_record, done=partitions))
        return rows

    async def delete_offsets(self, request: DeleteShareGroupOffsetsRequest) -> list[offsets.DeletedTopic]:
        """Delete the offsets of topics of an empty group. Returns a row for each topic."""
        shard = self._shards.of(request.group_id)

        def decide(head: GroupsImage) -> Slices[Result[offsets.Deleting]]:
            return offsets.begin_deletion(shard.group(head, request.group_id), request, self._image().topics)

        failed, delete = await self._shards.write(shard, decide)
        if delete is None:
            return failed
        response = await self._persister.delete(delete)
        deleted: list[offsets.DeletedTopic] = []
        topics = self._image().topics
        for result in response.results:
            code = next((row.error_code for row in result.partitions if row.error_code), 0)
            row = offsets.DeletedTopic(
                topic_id=result.topic_id, topic_name=initialization.named([result.topic_id], topics)[result.topic_id]
            )
            if code:
                row.error_code, row.error_message = code, ErrorCode(code).message
            (failed if code else deleted).append(row)
        if deleted:
            await self._write(
                shard, request.group_id, partial(offsets.end_deletion, deleted=[row.topic_id for row in deleted])
            )
        return [*deleted, *failed]

    async def delete_states(self, shard: Shard, group_ids: Iterable[str]) -> dict[str, ErrorCode]:
        """Delete the states of share groups that are to be deleted. Returns the groups that must not be, with an error."""

        def decide(head: GroupsImage) -> Slices[Result[offsets.GroupDeletion]]:
            found = (head.groups.get(group_id) for group_id in group_ids)
            groups = [group for group in found if isinstance(group, ShareGroup)]
            return offsets.begin_group_deletion(groups, self._image().topics)

        failed, requests = await self._shards.write(shard, decide)
        for group_id, response in zip(
            requests, await asyncio.gather(*map(self._persister.delete, requests.values())), strict=True
        ):
            for result in response.results:
                code = next((row.error_code for row in result.partitions if row.error_code), 0)
                if code:
                    failed[group_id] = ErrorCode(code)
        return failed

    # --- timers

    def _start(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks[task] = None
        task.add_done_callback(self._tasks.pop)

    def _set_timer(self, shard: Shard, group_id: str, change: TimerChange) -> None:
        shard.share.set_timer(group_id, change, self._steady_ms())

    def _schedule(self, shard: Shard) -> None:
        shard.share.schedule(self._scheduler, self._steady_ms, partial(self._woken, shard))

    def _woken(self, shard: Shard) -> None:
        """Remove the members whose sessions are over."""
        for key, deadline in shard.share.take_due(self._steady_ms()):
            self._expire(shard, key, deadline)
        shard.share.find_earliest()
        self._schedule(shard)

    def _expire(self, shard: Shard, key: TimerKey, deadline: Deadline) -> None:
        group_id, member_id, timer = key

        def decide(head: GroupsImage) -> Decided[bool]:
            group = head.groups.get(group_id)
            member = group.members.get(member_id) if isinstance(group, ShareGroup) else None
            if member is None or not isinstance(group, ShareGroup):
                return Result((), Outcome(False))
            return heartbeat.fence(group, member, True, self._situation(shard, head, group_id))

        try:
            outcome = self._shards.write_nowait(shard, decide)
        except KafkaError as error:
            _log.warning("group %s: member %s cannot be removed now: %s", group_id, member_id, error)
            self._set_timer(shard, group_id, TimerChange(member_id, timer, RETRY_MS, deadline.epoch))
            return
        self._follow(shard, group_id, outcome)
        if outcome.response:
            _log.info("group %s: member %s was removed: its session expired", group_id, member_id)


def _with_errors(
    rows: list[offsets.AlteredTopic], errors: Mapping[tuple[Uuid, int], Any]
) -> list[offsets.AlteredTopic]:
    for topic in rows:
        for row in topic.partitions:
            error = errors.get((topic.topic_id, row.partition_index))
            if error is not None and not row.error_code:
                row.error_code, row.error_message = error.error_code, error.error_message
    return rows
