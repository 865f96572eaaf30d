"""The share coordinator of a node: runs decisions on the partitions of `__share_group_state` that it leads.

Its one rule: a request is answered when its records are committed. Every share partition has its own error. Two timers
delete records that later snapshots replace, and write snapshots of share partitions that nobody writes to. They run
while the cluster's share.version allows share groups. Decisions are in `decide`; who may ask is checked by the handlers.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection
from functools import partial
from typing import Any, Final

from barnabas.batches.format import Compression
from barnabas.config.server_config import ServerConfig
from barnabas.metadata.image import MetadataImage
from barnabas.replicated.decision import Result
from barnabas.replicated.errors import response_error
from barnabas.replicated.machines import Coordinator, Machine, MachineLog, Machines
from barnabas.replicated.placement import partition_for
from barnabas.replicated.scheduler import Handle, Scheduler
from barnabas.share_state import decide
from barnabas.share_state.state import EMPTY_IMAGE, TOPIC, SharePartitionKey, ShareStateImage, apply, redundant_offset
from barnabas.slices import Breather, in_slices
from barnabas.steps import Slices, mapped, stepwise
from barnabas.wire import ErrorCode, KafkaError, Uuid
from barnabas.wire.messages.delete_share_group_state import DeleteShareGroupStateRequest, DeleteShareGroupStateResponse
from barnabas.wire.messages.initialize_share_group_state import (
    InitializeShareGroupStateRequest,
    InitializeShareGroupStateResponse,
)
from barnabas.wire.messages.read_share_group_state import ReadShareGroupStateRequest, ReadShareGroupStateResponse
from barnabas.wire.messages.read_share_group_state_summary import (
    ReadShareGroupStateSummaryRequest,
    ReadShareGroupStateSummaryResponse,
)
from barnabas.wire.messages.write_share_group_state import WriteShareGroupStateRequest, WriteShareGroupStateResponse

_log = logging.getLogger(__name__)

SHARE_VERSION: Final = "share.version"

DeleteRecords = Callable[[int, int], None]
"""Deletes the records of a partition of the topic that are before an offset. Raises KafkaError."""


def supports_share_groups(image: MetadataImage) -> bool:
    """Return True if the cluster's share.version allows share groups."""
    return image.features.get(SHARE_VERSION, 0) >= 1


class ShareCoordinator:
    """The coordinator. `start` starts the timers; `elected` and `resigned` load and unload machines."""

    def __init__(
        self,
        config: Callable[[], ServerConfig],
        image: Callable[[], MetadataImage],
        scheduler: Scheduler,
        delete_records: DeleteRecords,
    ) -> None:
        self._config = config
        self._image = image
        self._scheduler = scheduler
        self._delete_records = delete_records
        self._timers: dict[str, Handle] = {}
        self._tasks: dict[asyncio.Task[None], None] = {}
        self._pruned: dict[int, int] = {}  # the offset up to which each partition was pruned
        given = config()
        self._updates_per_snapshot = given.get_int("share.coordinator.snapshot.update.records.per.snapshot")
        coordinator = Coordinator(
            TOPIC,
            "share",
            EMPTY_IMAGE,
            partial(apply, self._updates_per_snapshot),
            lambda machine: None,
            self._unloaded,
            Compression(given.get_int("share.coordinator.state.topic.compression.codec")),
        )
        self.machines: Machines[ShareStateImage] = Machines(coordinator, scheduler.now_ms)

    # --- start and stop

    def start(self) -> None:
        self._repeat("share.coordinator.state.topic.prune.interval.ms", self.prune)
        self._repeat("share.coordinator.cold.partition.snapshot.interval.ms", self.snapshot_cold)

    def stop(self) -> None:
        for timer in self._timers.values():
            timer.cancel()
        for task in self._tasks:
            task.cancel()
        self.machines.stop()

    def elected(self, partition_id: int, leader_epoch: int, machine_log: MachineLog) -> None:
        """Load a partition of `__share_group_state` that this node now leads."""
        self.machines.elected(partition_id, leader_epoch, machine_log)

    def resigned(self, partition_id: int) -> None:
        self.machines.resigned(partition_id)

    def topics_deleted(self, topic_ids: Collection[Uuid]) -> None:
        """Delete the states of topics that were deleted, in the background."""
        if self.machines.loaded():
            self._begin(self._on_each(lambda situation: decide.forget_topics(situation, topic_ids), "deleted topics"))

    def _unloaded(self, machine: Machine[ShareStateImage]) -> None:
        self._pruned.pop(machine.partition_id, None)

    def _repeat(self, interval: str, action: Callable[[], Any]) -> None:
        async def act() -> None:
            try:
                if supports_share_groups(self._image()):
                    await action()
            finally:
                self._repeat(interval, action)

        self._timers[interval] = self._scheduler.call_later(
            self._config().get_int(interval), lambda: self._begin(act())
        )

    def _begin(self, work: Any) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks[task] = None
        task.add_done_callback(self._tasks.pop)

    # --- requests

    def partition_of(self, key: SharePartitionKey) -> int:
        """Return the partition of `__share_group_state` that keeps the state of a share partition."""
        topic = self._image().topics.get(TOPIC)
        if topic is None:
            count = self._config().get_int("share.coordinator.state.topic.num.partitions")
        else:
            count = len(topic.partitions)
        return partition_for(key.coordinator_key, count)

    async def initialize(self, request: InitializeShareGroupStateRequest) -> InitializeShareGroupStateResponse:
        response = InitializeShareGroupStateResponse
        rows = await self._answer(request, "initialize share group state", decide.initialize, response.PartitionResult)
        return response(results=await in_slices(_results(request, rows, response.InitializeStateResult)))

    async def read(self, request: ReadShareGroupStateRequest) -> ReadShareGroupStateResponse:
        response = ReadShareGroupStateResponse
        rows = await self._answer(request, "read share group state", decide.read, response.PartitionResult)
        return response(results=await in_slices(_results(request, rows, response.ReadStateResult)))

    async def write(self, request: WriteShareGroupStateRequest) -> WriteShareGroupStateResponse:
        response = WriteShareGroupStateResponse
        rows = await self._answer(request, "write share group state", decide.write, response.PartitionResult)
        return response(results=await in_slices(_results(request, rows, response.WriteStateResult)))

    async def delete(self, request: DeleteShareGroupStateRequest) -> DeleteShareGroupStateResponse:
        response = DeleteShareGroupStateResponse
        rows = await self._answer(request, "delete share group state", decide.delete, response.PartitionResult)
        return response(results=await in_slices(_results(request, rows, response.DeleteStateResult)))

    async def read_summary(self, request: ReadShareGroupStateSummaryRequest) -> ReadShareGroupStateSummaryResponse:
        response = ReadShareGroupStateSummaryResponse
        what = "read share group state summary"
        rows = await self._answer(request, what, decide.read_summary, response.PartitionResult)
        return response(results=await in_slices(_results(request, rows, response.ReadStateSummaryResult)))

    async def _answer(
        self, request: Any, what: str, decision: decide.Decide[Any, Any], row: Any
    ) -> dict[SharePartitionKey, Any]:
        """Return a row for each share partition. Without a group or partitions, as in Kafka, there are none."""
        if not request.group_id or not all(topic.partitions for topic in request.topics):
            return {}
        by_partition = await in_slices(self._by_partition(request))
        answers = await asyncio.gather(
            *(self._decide(partition, asked, what, decision, row) for partition, asked in by_partition.items())
        )
        rows: dict[SharePartitionKey, Any] = {}
        for answer in answers:
            rows.update(answer)
        return rows

    def _by_partition(self, request: Any) -> Slices[dict[int, dict[SharePartitionKey, Any]]]:
        found: dict[int, dict[SharePartitionKey, Any]] = {}
        for topic in request.topics:
            for asked in topic.partitions:
                key = SharePartitionKey(request.group_id, topic.topic_id, asked.partition)
                found.setdefault(self.partition_of(key), {})[key] = asked
                yield
        return found

    async def _decide(
        self,
        partition: int,
        asked: dict[SharePartitionKey, Any],
        what: str,
        decision: decide.Decide[Any, Any],
        row: Any,
    ) -> dict[SharePartitionKey, Any]:
        def failed(index: int, error: KafkaError) -> Any:
            return row(partition=index, error_code=error.code, error_message=error.message)

        try:
            machine = self.machines.machine(partition)
            decided: dict[SharePartitionKey, Any] = await machine.write_soon(
                lambda image: decide.decided(decision, failed, asked.items(), self._situation(image))
            )
            async with asyncio.timeout(self._config().get_int("share.coordinator.write.timeout.ms") / 1000):
                await machine.wait_head_committed()
        except KafkaError as error:
            code, message = response_error(error.code), error.message
        except TimeoutError:
            code, message = ErrorCode.COORDINATOR_NOT_AVAILABLE, None  # it may still be committed
        else:
            return decided
        failure = KafkaError(code, f"Unable to {what}: {message or code.message}")
        rows = await in_slices(mapped(lambda key: failed(key.partition, failure), asked))
        return dict(zip(asked, rows, strict=True))

    def _situation(self, image: ShareStateImage) -> decide.ShareSituation:
        return decide.ShareSituation(image, self._image(), self._scheduler.now_ms(), self._updates_per_snapshot)

    # --- timers

    async def snapshot_cold(self) -> None:
        """Write snapshots of share partitions that had none for some time."""
        interval_ms = self._config().get_int("share.coordinator.cold.partition.snapshot.interval.ms")
        await self._on_each(lambda situation: decide.snapshot_cold(situation, interval_ms), "cold share partitions")

    async def prune(self) -> None:
        """Delete the records that later snapshots have replaced."""
        others_first = Breather()
        for machine in self.machines.loaded():
            await others_first()
            offset = await in_slices(redundant_offset(machine.image))
            if offset <= 0 or self._pruned.get(machine.partition_id) == offset or not machine.is_loaded:
                continue
            try:
                self._delete_records(machine.partition_id, offset)
            except KafkaError as error:
                _log.warning("could not delete replaced records of %s-%d: %s", TOPIC, machine.partition_id, error)
            else:
                self._pruned[machine.partition_id] = offset

    async def _on_each(self, decision: Callable[[decide.ShareSituation], Slices[Result[None]]], what: str) -> None:
        for machine in self.machines.loaded():
            try:
                await machine.write_soon(lambda image: decision(self._situation(image)))
            except KafkaError as error:
                _log.warning("could not write the state of %s to %s-%d: %s", what, TOPIC, machine.partition_id, error)


def _results(request: Any, rows: dict[SharePartitionKey, Any], result: Any) -> Slices[list[Any]]:
    """Return the rows by topic, in the order of the request."""
    found: dict[Uuid, Any] = {}
    known: set[SharePartitionKey] = set()
    for topic in request.topics if rows else ():
        answered = found.setdefault(topic.topic_id, result(topic_id=topic.topic_id))
        yield
        for some in stepwise(topic.partitions):
            yield
            for each in some:
                key = SharePartitionKey(request.group_id, topic.topic_id, each.partition)
                if key not in known:
                    known.add(key)
                    answered.partitions.append(rows[key])
    return list(found.values())
