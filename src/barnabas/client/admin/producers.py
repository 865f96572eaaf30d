"""Active producers of partitions: DescribeProducers (KIP-664)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from barnabas.client.admin.leaders import Answers, ask_leaders, by_topic
from barnabas.client.admin.part import Part, failed, pieces
from barnabas.client.records import TopicPartition
from barnabas.client.retry import NOT_DONE
from barnabas.client.routing import node
from barnabas.wire.errors import KafkaError
from barnabas.wire.messages.describe_producers import DescribeProducersRequest, DescribeProducersResponse

_FEATURE = "describing producers"
_MAX_IN_REQUEST = 1_000


@dataclass(frozen=True, slots=True)
class ProducerState:
    """A producer of a partition. A field is None without an open transaction there, or before the first marker."""

    producer_id: int
    producer_epoch: int
    last_sequence: int
    last_timestamp: int
    coordinator_epoch: int | None
    current_txn_start_offset: int | None


class Producers(Part):
    """Producers of partitions."""

    async def describe_producers(
        self, partitions: Iterable[TopicPartition], *, broker_id: int | None = None, timeout_ms: float | None = None
    ) -> dict[TopicPartition, list[ProducerState] | KafkaError]:
        """Return the active producers of each partition, as known to its leader, or to the replica on `broker_id`.

        >>> import asyncio
        >>> from barnabas.client import Cluster
        >>> from barnabas.testing import Broker
        >>> async def main() -> None:
        ...     async with Broker({"orders": 1}) as broker, Cluster({"bootstrap.servers": broker.bootstrap_servers}) as cluster:
        ...         print(await Producers(cluster).describe_producers([TopicPartition("orders", 0)]))
        >>> asyncio.run(main())
        {TopicPartition(topic='orders', partition=0): []}
        """
        wanted = list(dict.fromkeys(TopicPartition(*each) for each in partitions))

        async def ask(node_id: int, asked: list[TopicPartition], wait_ms: float) -> Answers[list[ProducerState]]:
            return _states(
                await self.cluster.send(_request(asked), node(node_id), feature=_FEATURE, timeout_ms=wait_ms)
            )

        if broker_id is None:
            return await ask_leaders(self.cluster, wanted, ask, timeout_ms=timeout_ms)
        results: Answers[list[ProducerState]] = {}
        for few in pieces(wanted, _MAX_IN_REQUEST):
            # The caller chose the broker, so retrying does not help if it has no replica.
            response = await self.cluster.call(
                _request(few), node(broker_id), feature=_FEATURE, timeout_ms=timeout_ms, give_up_on=NOT_DONE
            )
            results.update(_states(response))
        return results


def _request(partitions: Iterable[TopicPartition]) -> DescribeProducersRequest:
    return DescribeProducersRequest(
        topics=[
            DescribeProducersRequest.TopicRequest(name=topic, partition_indexes=indexes)
            for topic, indexes in by_topic(partitions).items()
        ]
    )


def _states(response: DescribeProducersResponse) -> Answers[list[ProducerState]]:
    return {
        TopicPartition(topic.name, row.partition_index): failed(row.error_code, row.error_message)
        or [
            ProducerState(
                producer_id=each.producer_id,
                producer_epoch=each.producer_epoch,
                last_sequence=each.last_sequence,
                last_timestamp=each.last_timestamp,
                coordinator_epoch=each.coordinator_epoch if each.coordinator_epoch >= 0 else None,
                current_txn_start_offset=each.current_txn_start_offset if each.current_txn_start_offset >= 0 else None,
            )
            for each in row.active_producers
        ]
        for topic in response.topics
        for row in topic.partitions
    }
