"""Reports the log directories of this broker's replicas to the controller (AssignReplicasToDirs), in batches, with retries.

Its one rule: only the latest assignment of each replica counts. An assignment that the image has already, or that its
metadata.version does not support, is accepted at once. An assignment of a replica that is not in the image is dropped.
After a failure all are retried, with a growing delay.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import NamedTuple

from barnabas.metadata.image import MetadataImage
from barnabas.wire import ErrorCode, KafkaError, Uuid
from barnabas.wire.messages.assign_replicas_to_dirs import AssignReplicasToDirsRequest, AssignReplicasToDirsResponse

_log = logging.getLogger(__name__)

MAX_ASSIGNMENTS_PER_REQUEST = 2250
GATHERING_S = 0.02
MIN_BACKOFF_S = 0.1
MAX_BACKOFF_S = 10.0

Request = AssignReplicasToDirsRequest


class Replica(NamedTuple):
    topic_id: Uuid
    partition_id: int


class _Assignment(NamedTuple):
    directory_id: Uuid
    accepted: Callable[[], None]


class DirectoryAssignments:
    """The assignments not accepted yet. `send` sends them to the controller; `image` returns the committed image."""

    def __init__(
        self,
        node_id: int,
        image: Callable[[], MetadataImage],
        send: Callable[[list[Request.DirectoryData]], Awaitable[AssignReplicasToDirsResponse]],
    ) -> None:
        self._node_id = node_id
        self._image = image
        self._send = send
        self._ready: dict[Replica, _Assignment] = {}
        self._sent: dict[Replica, _Assignment] = {}
        self._wanted = asyncio.Event()
        self._failures = 0
        self._sending: asyncio.Task[None] | None = None

    def assign(self, replica: Replica, directory_id: Uuid, accepted: Callable[[], None]) -> None:
        self._ready[replica] = _Assignment(directory_id, accepted)
        self._wanted.set()

    @property
    def pending(self) -> int:
        """The number of assignments not accepted yet."""
        return len(self._ready) + len(self._sent)

    def start(self) -> None:
        self._sending = asyncio.create_task(self._run())

    async def stop(self) -> None:
        if self._sending is not None:
            self._sending.cancel()
            await asyncio.wait([self._sending])

    async def _run(self) -> None:
        while True:
            await self._wanted.wait()
            backoff_s = min(MIN_BACKOFF_S * 2 ** min(self._failures - 1, 10), MAX_BACKOFF_S)
            await asyncio.sleep(backoff_s if self._failures else GATHERING_S)
            self._wanted.clear()
            try:
                await self._send_some()
            except Exception:
                _log.exception("assigning replicas to their log dirs failed")
                self._failures += 1
            if self._ready:
                self._wanted.set()

    async def _send_some(self) -> None:
        sent = self._sent = {}
        for replica, assignment in list(self._ready.items()):
            if len(sent) == MAX_ASSIGNMENTS_PER_REQUEST:
                break
            del self._ready[replica]
            known = self._known(replica)
            if known == assignment.directory_id or not self._is_supported:
                assignment.accepted()
            elif known is not None:
                sent[replica] = assignment
        if not sent:
            return
        try:
            response = await self._send(_rows(sent))
        except (KafkaError, OSError, TimeoutError) as error:
            _log.warning("reporting the log dirs of %d replicas to the controller failed: %s", len(sent), error)
            self._again(sent)
            return
        self._failures = 0
        for directory in response.directories:
            for topic in directory.topics:
                for row in topic.partitions:
                    found = sent.get(Replica(topic.topic_id, row.partition_index))
                    if found is not None and row.error_code == ErrorCode.NONE:
                        del sent[Replica(topic.topic_id, row.partition_index)]
                        found.accepted()
        if sent:
            self._again(sent)

    def _again(self, sent: dict[Replica, _Assignment]) -> None:
        self._failures += 1
        self._ready = {**sent, **self._ready}
        self._sent = {}

    def _known(self, replica: Replica) -> Uuid | None:
        """Return the replica's directory in the image, or None if this broker has no such replica."""
        partition = self._image().topics.partition(replica.topic_id, replica.partition_id)
        return None if partition is None else partition.directory(self._node_id)

    @property
    def _is_supported(self) -> bool:
        version = self._image().metadata_version
        return version is not None and version.is_directory_assignment_supported


def _rows(sent: dict[Replica, _Assignment]) -> list[Request.DirectoryData]:
    directories: dict[Uuid, Request.DirectoryData] = {}
    topics: dict[tuple[Uuid, Uuid], Request.TopicData] = {}
    for replica, (directory_id, _) in sent.items():
        directory = directories.setdefault(directory_id, Request.DirectoryData(id=directory_id))
        topic = topics.get((directory_id, replica.topic_id))
        if topic is None:
            topic = topics[directory_id, replica.topic_id] = Request.TopicData(topic_id=replica.topic_id)
            directory.topics.append(topic)
        topic.partitions.append(Request.PartitionData(partition_index=replica.partition_id))
    return list(directories.values())
