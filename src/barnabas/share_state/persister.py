"""Reads and writes the state of share partitions, at the share coordinators that keep it, on this node or others.

Its one rule: every partition of a request is in the response, with an error if its state could not be reached. No
method raises for that. A partition whose coordinator is loading, moving or not reachable is tried again, at most
`MAX_ATTEMPTS` times; all other errors are the coordinator's answer. A write that was tried again may have been made
twice, which changes nothing. Which states are valid is decided by the coordinator.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Final, NamedTuple

from barnabas.config.internal_topics import SHARE_GROUP_STATE_TOPIC
from barnabas.metadata.image import MetadataImage
from barnabas.replicated.placement import partition_for
from barnabas.replicated.scheduler import Scheduler, pause
from barnabas.share_state.coordinator import ShareCoordinator
from barnabas.share_state.state import SharePartitionKey
from barnabas.slices import Breather
from barnabas.wire import ErrorCode, KafkaError, Message, Uuid
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

FIRST_BACKOFF_MS: Final = 20
MAX_BACKOFF_MS: Final = 1_000
MAX_ATTEMPTS: Final = 12  # about six seconds in all

AskBroker = Callable[[int, Message], Awaitable[Any]]
"""Sends a request to another broker in the newest common version. Raises KafkaError, OSError or TimeoutError."""

AGAIN: Final = frozenset(
    {
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.BROKER_NOT_AVAILABLE,
        ErrorCode.NETWORK_EXCEPTION,
    }
)


class _Kind(NamedTuple):
    """One of the five APIs: its messages, and the function of the local coordinator that serves it."""

    request: Any
    topic: Any
    response: Any
    result: Any
    partition_result: Any
    local: Callable[[ShareCoordinator, Any], Awaitable[Any]]


_INITIALIZE = _Kind(
    InitializeShareGroupStateRequest,
    InitializeShareGroupStateRequest.InitializeStateData,
    InitializeShareGroupStateResponse,
    InitializeShareGroupStateResponse.InitializeStateResult,
    InitializeShareGroupStateResponse.PartitionResult,
    ShareCoordinator.initialize,
)
_READ = _Kind(
    ReadShareGroupStateRequest,
    ReadShareGroupStateRequest.ReadStateData,
    ReadShareGroupStateResponse,
    ReadShareGroupStateResponse.ReadStateResult,
    ReadShareGroupStateResponse.PartitionResult,
    ShareCoordinator.read,
)
_WRITE = _Kind(
    WriteShareGroupStateRequest,
    WriteShareGroupStateRequest.WriteStateData,
    WriteShareGroupStateResponse,
    WriteShareGroupStateResponse.WriteStateResult,
    WriteShareGroupStateResponse.PartitionResult,
    ShareCoordinator.write,
)
_DELETE = _Kind(
    DeleteShareGroupStateRequest,
    DeleteShareGroupStateRequest.DeleteStateData,
    DeleteShareGroupStateResponse,
    DeleteShareGroupStateResponse.DeleteStateResult,
    DeleteShareGroupStateResponse.PartitionResult,
    ShareCoordinator.delete,
)
_READ_SUMMARY = _Kind(
    ReadShareGroupStateSummaryRequest,
    ReadShareGroupStateSummaryRequest.ReadStateSummaryData,
    ReadShareGroupStateSummaryResponse,
    ReadShareGroupStateSummaryResponse.ReadStateSummaryResult,
    ReadShareGroupStateSummaryResponse.PartitionResult,
    ShareCoordinator.read_summary,
)


class Persister:
    """The state of share partitions, wherever their coordinators are.

    `create_topic` starts to create `__share_group_state`, without waiting, if it does not exist.
    """

    def __init__(
        self,
        node_id: int,
        image: Callable[[], MetadataImage],
        scheduler: Scheduler,
        coordinator: ShareCoordinator,
        ask_broker: AskBroker | None,
        create_topic: Callable[[], None],
    ) -> None:
        self._node_id = node_id
        self._image = image
        self._scheduler = scheduler
        self._coordinator = coordinator
        self.ask_broker = ask_broker
        self._create_topic = create_topic

    async def initialize(self, request: InitializeShareGroupStateRequest) -> InitializeShareGroupStateResponse:
        """Set the start offset and state epoch of share partitions, and forget their delivery state."""
        response: InitializeShareGroupStateResponse = await self._call(_INITIALIZE, request)
        return response

    async def read(self, request: ReadShareGroupStateRequest) -> ReadShareGroupStateResponse:
        """Return the state of share partitions. A newer leader epoch in the request fences the leaders before."""
        response: ReadShareGroupStateResponse = await self._call(_READ, request)
        return response

    async def write(self, request: WriteShareGroupStateRequest) -> WriteShareGroupStateResponse:
        """Merge new delivery states into those of share partitions."""
        response: WriteShareGroupStateResponse = await self._call(_WRITE, request)
        return response

    async def delete(self, request: DeleteShareGroupStateRequest) -> DeleteShareGroupStateResponse:
        """Delete the state of share partitions."""
        response: DeleteShareGroupStateResponse = await self._call(_DELETE, request)
        return response

    async def read_summary(self, request: ReadShareGroupStateSummaryRequest) -> ReadShareGroupStateSummaryResponse:
        """Return start offsets and epochs of share partitions, without their delivery states."""
        response: ReadShareGroupStateSummaryResponse = await self._call(_READ_SUMMARY, request)
        return response

    async def _call(self, kind: _Kind, request: Any) -> Any:
        others_first = Breather()
        waiting: dict[tuple[Uuid, int], Any] = {}
        for topic in request.topics:
            for partition in topic.partitions:
                await others_first()
                waiting[topic.topic_id, partition.partition] = partition
        wanted = list(waiting)
        done: dict[tuple[Uuid, int], Any] = {}
        backoff_ms = FIRST_BACKOFF_MS
        for attempt in range(MAX_ATTEMPTS):
            if attempt:
                await pause(self._scheduler, backoff_ms)
                backoff_ms = min(backoff_ms * 2, MAX_BACKOFF_MS)
            by_node: dict[int, dict[tuple[Uuid, int], Any]] = {}
            for key, partition in waiting.items():
                await others_first()
                leader = self._leader_of(SharePartitionKey(request.group_id, *key))
                by_node.setdefault(leader, {})[key] = partition
            answers = await asyncio.gather(
                *(self._ask(kind, node_id, request.group_id, asked) for node_id, asked in by_node.items())
            )
            for answer in answers:
                for key, row in answer.items():
                    await others_first()
                    done[key] = row
                    if row.error_code not in AGAIN:
                        waiting.pop(key, None)
            if not waiting:
                break
        return _response(kind, wanted, done)

    def _leader_of(self, key: SharePartitionKey) -> int:
        """Return the broker that coordinates a share partition, -1 if there is none now."""
        image = self._image()
        topic = image.topics.get(SHARE_GROUP_STATE_TOPIC)
        if topic is None:
            self._create_topic()
            return -1
        leader = topic.partitions[partition_for(key.coordinator_key, len(topic.partitions))].leader
        broker = image.brokers.get(leader)
        return -1 if broker is None or broker.fenced else leader

    async def _ask(
        self, kind: _Kind, node_id: int, group_id: str, partitions: dict[tuple[Uuid, int], Any]
    ) -> dict[tuple[Uuid, int], Any]:
        """Return a row for each partition that the coordinator answered for, or an error for each."""
        topics: dict[Uuid, Any] = {}
        for (topic_id, _), partition in partitions.items():
            topics.setdefault(topic_id, kind.topic(topic_id=topic_id)).partitions.append(partition)
        request = kind.request(group_id=group_id, topics=list(topics.values()))
        try:
            if node_id == self._node_id:
                response = await kind.local(self._coordinator, request)
            elif node_id < 0 or self.ask_broker is None:
                raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
            else:
                response = await self.ask_broker(node_id, request)
        except KafkaError as error:
            return {key: _failed(kind, key[1], error.code, error.message) for key in partitions}
        except (OSError, TimeoutError):
            return {key: _failed(kind, key[1], ErrorCode.NETWORK_EXCEPTION) for key in partitions}
        found = {
            (result.topic_id, row.partition): row
            for result in response.results
            for row in result.partitions
            if (result.topic_id, row.partition) in partitions
        }
        for key in partitions:
            if key not in found:  # a coordinator that leaves out a partition has refused the whole request
                found[key] = _failed(kind, key[1], ErrorCode.UNKNOWN_SERVER_ERROR)
        return found


def _failed(kind: _Kind, partition: int, code: ErrorCode, message: str | None = None) -> Any:
    return kind.partition_result(partition=partition, error_code=code, error_message=message or code.message)


def _response(kind: _Kind, wanted: list[tuple[Uuid, int]], done: dict[tuple[Uuid, int], Any]) -> Any:
    """Return the rows by topic, in the order of the request."""
    results: dict[Uuid, Any] = {}
    for key in wanted:
        results.setdefault(key[0], kind.result(topic_id=key[0])).partitions.append(done[key])
    return kind.response(results=list(results.values()))
