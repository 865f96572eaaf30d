"""Offsets of partitions, by position, timestamp or leader epoch, and deletion of records.

APIs: ListOffsets, DeleteRecords, OffsetForLeaderEpoch. All go to the leaders of partitions.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import NamedTuple

from barnabas.client.admin.leaders import Answers, ask_leaders, by_topic
from barnabas.client.admin.part import Part, change, failed
from barnabas.client.records import TopicPartition
from barnabas.client.routing import node
from barnabas.wire.errors import KafkaError
from barnabas.wire.messages.delete_records import DeleteRecordsRequest
from barnabas.wire.messages.list_offsets import ListOffsetsRequest
from barnabas.wire.messages.offset_for_leader_epoch import OffsetForLeaderEpochRequest

TO_HIGH_WATERMARK = -1
"""Used as an offset: delete all records that consumers can read."""
_CONSUMER = -1


class OffsetSpec(IntEnum):
    """An offset to look up, other than by timestamp."""

    LATEST = -1
    EARLIEST = -2
    MAX_TIMESTAMP = -3
    EARLIEST_LOCAL = -4
    LATEST_TIERED = -5
    EARLIEST_PENDING_UPLOAD = -6


class IsolationLevel(IntEnum):
    """Whether records of open transactions count."""

    READ_UNCOMMITTED = 0
    READ_COMMITTED = 1


_FIRST_VERSIONS = {
    OffsetSpec.MAX_TIMESTAMP: (7, "the offset of the largest timestamp"),
    OffsetSpec.EARLIEST_LOCAL: (8, "the first offset on the broker's own disk"),
    OffsetSpec.LATEST_TIERED: (9, "the last offset in remote storage"),
    OffsetSpec.EARLIEST_PENDING_UPLOAD: (11, "the first offset that is not in remote storage yet"),
}


def _least_version(spec: int) -> tuple[int, str]:
    return _FIRST_VERSIONS.get(OffsetSpec(spec), (1, "")) if spec < 0 else (1, "")


class ListedOffset(NamedTuple):
    """An offset, or -1 if there is none, and the timestamp of its record, or -1 if none was looked up."""

    offset: int
    timestamp: int = -1
    leader_epoch: int = -1


class EpochEndOffset(NamedTuple):
    """The largest epoch up to the requested one, and the offset after its last record; -1 if there is none."""

    leader_epoch: int
    end_offset: int


class Records(Part):
    """Offsets of partitions, and deletion of records."""

    async def list_offsets(
        self,
        partitions: Mapping[TopicPartition, int],
        *,
        isolation_level: IsolationLevel = IsolationLevel.READ_UNCOMMITTED,
        timeout_ms: float | None = None,
    ) -> dict[TopicPartition, ListedOffset | KafkaError]:
        """Return the offset of each partition, by `OffsetSpec` or as the first one at or after a timestamp in ms.

        >>> import asyncio
        >>> from barnabas.client import Cluster
        >>> from barnabas.testing import Broker
        >>> async def main() -> None:
        ...     async with Broker({"orders": 1}) as broker, Cluster({"bootstrap.servers": broker.bootstrap_servers}) as cluster:
        ...         print(await Records(cluster).list_offsets({TopicPartition("orders", 0): OffsetSpec.LATEST}))
        >>> asyncio.run(main())
        {TopicPartition(topic='orders', partition=0): ListedOffset(offset=0, timestamp=-1, leader_epoch=0)}
        """
        specs = {TopicPartition(*each): spec for each, spec in partitions.items()}
        row = ListOffsetsRequest.ListOffsetsPartition

        async def ask(node_id: int, asked: list[TopicPartition], wait_ms: float) -> Answers[ListedOffset]:
            least, feature = max(map(_least_version, {specs[each] for each in asked}))
            request = ListOffsetsRequest(
                replica_id=_CONSUMER,
                isolation_level=isolation_level,
                topics=[
                    ListOffsetsRequest.ListOffsetsTopic(
                        name=topic,
                        partitions=[
                            row(partition_index=number, timestamp=specs[TopicPartition(topic, number)])
                            for number in numbers
                        ],
                    )
                    for topic, numbers in by_topic(asked).items()
                ],
                timeout_ms=int(wait_ms),
            )
            response = await self.cluster.send(
                request, node(node_id), least_version=least, feature=feature, timeout_ms=wait_ms
            )
            return {
                TopicPartition(topic.name, found.partition_index): failed(found.error_code)
                or ListedOffset(found.offset, found.timestamp, found.leader_epoch)
                for topic in response.topics
                for found in topic.partitions
            }

        return await ask_leaders(self.cluster, specs, ask, timeout_ms=timeout_ms)

    async def delete_records(
        self, before: Mapping[TopicPartition, int], *, timeout_ms: float | None = None
    ) -> dict[TopicPartition, int | KafkaError]:
        """Delete the records before an offset, or all with `TO_HIGH_WATERMARK`. Returns the first remaining offset of each.

        If a deletion is not confirmed in time, the result is a `TimedOutError`, which tells whether it happened.
        """
        offsets = {TopicPartition(*each): offset for each, offset in before.items()}

        async def ask(node_id: int, asked: list[TopicPartition], wait_ms: float) -> Answers[int]:
            row = DeleteRecordsRequest.DeleteRecordsPartition
            request = DeleteRecordsRequest(
                topics=[
                    DeleteRecordsRequest.DeleteRecordsTopic(
                        name=topic,
                        partitions=[
                            row(partition_index=number, offset=offsets[TopicPartition(topic, number)])
                            for number in numbers
                        ],
                    )
                    for topic, numbers in by_topic(asked).items()
                ],
                timeout_ms=int(wait_ms),
            )
            response = await self.cluster.send(request, node(node_id), timeout_ms=wait_ms)
            return {
                TopicPartition(topic.name, found.partition_index): failed(found.error_code) or found.low_watermark
                for topic in response.topics
                for found in topic.partitions
            }

        async def look(late: list[TopicPartition]) -> dict[TopicPartition, bool]:
            first = await self.list_offsets(dict.fromkeys(late, OffsetSpec.EARLIEST), timeout_ms=timeout_ms)
            last = await self.list_offsets(dict.fromkeys(late, OffsetSpec.LATEST), timeout_ms=timeout_ms)
            found: dict[TopicPartition, bool] = {}
            for each in late:
                begin, end = first[each], last[each]
                if isinstance(begin, KafkaError) or isinstance(end, KafkaError):
                    continue
                target = end.offset if offsets[each] == TO_HIGH_WATERMARK else offsets[each]
                found[each] = begin.offset >= target
            return found

        return await change(
            list(offsets),
            lambda: ask_leaders(self.cluster, offsets, ask, timeout_ms=timeout_ms),
            look,
            lambda each: f"deleting records of {each} before {offsets[each]}",
        )

    async def offsets_for_leader_epochs(
        self, epochs: Mapping[TopicPartition, int], *, timeout_ms: float | None = None
    ) -> dict[TopicPartition, EpochEndOffset | KafkaError]:
        """Return the end offset of a leader epoch of each partition. Consumers use it to detect a truncated log."""
        wanted = {TopicPartition(*each): epoch for each, epoch in epochs.items()}

        async def ask(node_id: int, asked: list[TopicPartition], wait_ms: float) -> Answers[EpochEndOffset]:
            row = OffsetForLeaderEpochRequest.OffsetForLeaderPartition
            request = OffsetForLeaderEpochRequest(
                replica_id=_CONSUMER,
                topics=[
                    OffsetForLeaderEpochRequest.OffsetForLeaderTopic(
                        topic=topic,
                        partitions=[
                            row(partition=number, leader_epoch=wanted[TopicPartition(topic, number)])
                            for number in numbers
                        ],
                    )
                    for topic, numbers in by_topic(asked).items()
                ],
            )
            response = await self.cluster.send(request, node(node_id), timeout_ms=wait_ms)
            return {
                TopicPartition(topic.topic, found.partition): failed(found.error_code)
                or EpochEndOffset(found.leader_epoch, found.end_offset)
                for topic in response.topics
                for found in topic.partitions
            }

        return await ask_leaders(self.cluster, wanted, ask, timeout_ms=timeout_ms)
