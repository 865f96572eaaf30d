"""Transactions known to coordinators (ListTransactions, DescribeTransactions, InitProducerId), and hanging transactions, which
no coordinator knows (KIP-664: DescribeProducers, WriteTxnMarkers).
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Iterable
from dataclasses import dataclass

from barnabas.client.admin.coordinators import Deadline, ask_coordinators
from barnabas.client.admin.leaders import Answers, ask_leaders
from barnabas.client.admin.part import Part, change, checked, failed
from barnabas.client.admin.producers import Producers, ProducerState
from barnabas.client.cluster import Cluster
from barnabas.client.records import TopicPartition
from barnabas.client.routing import CoordinatorType, coordinator, node
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.describe_transactions import DescribeTransactionsRequest, DescribeTransactionsResponse
from barnabas.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from barnabas.wire.messages.list_transactions import ListTransactionsRequest, ListTransactionsResponse
from barnabas.wire.messages.write_txn_markers import WriteTxnMarkersRequest, WriteTxnMarkersResponse

DEFAULT_MAX_TRANSACTION_TIMEOUT_MS = 15 * 60 * 1000
"""Default of the broker's `transaction.max.timeout.ms`: no transaction lasts longer."""

_FENCED_TIMEOUT_MS = 30_000
_FIRST_WITH_PATTERN = 2


@dataclass(frozen=True, slots=True)
class TransactionListing:
    """A listed transactional id. `state` is Kafka's name, such as `Ongoing`."""

    transactional_id: str
    producer_id: int
    state: str
    coordinator_id: int


@dataclass(frozen=True, slots=True)
class TransactionDescription:
    """A transactional id. `topic_partitions` are the partitions of the open transaction that have no marker yet. The start time
    is that of the last transaction, None if there was none."""

    transactional_id: str
    coordinator_id: int
    state: str
    producer_id: int
    producer_epoch: int
    transaction_timeout_ms: int
    transaction_start_time_ms: int | None
    topic_partitions: tuple[TopicPartition, ...]


@dataclass(frozen=True, slots=True)
class OpenTransaction:
    """A transaction that is open in the log of a partition."""

    topic: str
    partition: int
    producer: ProducerState


@dataclass(frozen=True, slots=True)
class ProducerIdAndEpoch:
    """Producer id and epoch of a transactional id after fencing."""

    producer_id: int
    producer_epoch: int


class Transactions(Part):
    """Transactions and transactional ids."""

    async def list_transactions(
        self,
        *,
        states: Iterable[str] = (),
        producer_ids: Iterable[int] = (),
        running_longer_than_ms: int = -1,
        transactional_id_pattern: str | None = None,
        timeout_ms: float | None = None,
    ) -> list[TransactionListing]:
        """List the transactions of all coordinators, optionally only those in these states, of these producer ids, running
        longer than a number of milliseconds (Kafka 3.8), and with a transactional id that the pattern matches as a whole.

        Brokers before Kafka 4.1 do not support a pattern: then it is matched here, as a Python regular expression.
        """
        deadline = Deadline(self.cluster, timeout_ms)
        request = ListTransactionsRequest(
            state_filters=list(states), producer_id_filters=list(producer_ids), duration_filter=running_longer_than_ms
        )
        brokers = (await self.cluster.refresh(timeout_ms=deadline.left_ms)).brokers

        async def ask(broker_id: int) -> list[TransactionListing]:
            versions = await self.cluster.versions(node(broker_id))
            matches_there = versions.serves("ListTransactions", _FIRST_WITH_PATTERN)
            asked = request
            if transactional_id_pattern is not None and matches_there:
                asked = ListTransactionsRequest(
                    state_filters=request.state_filters,
                    producer_id_filters=request.producer_id_filters,
                    duration_filter=request.duration_filter,
                    transactional_id_pattern=transactional_id_pattern,
                )
            response: ListTransactionsResponse = await self.cluster.call(
                asked, node(broker_id), feature="filtering transactions", timeout_ms=deadline.left_ms
            )
            if response.unknown_state_filters:
                unknown = ", ".join(response.unknown_state_filters)
                raise KafkaError(
                    ErrorCode.INVALID_REQUEST, f"broker {broker_id} does not know transaction state {unknown}"
                )
            return [
                TransactionListing(each.transactional_id, each.producer_id, each.transaction_state, broker_id)
                for each in response.transaction_states
                if matches_there or _matches(transactional_id_pattern, each.transactional_id)
            ]

        answers = await asyncio.gather(*(ask(broker_id) for broker_id in sorted(brokers)))
        return [listing for answer in answers for listing in answer]

    async def describe_transactions(
        self, transactional_ids: Iterable[str], *, timeout_ms: float | None = None
    ) -> dict[str, TransactionDescription | KafkaError]:
        """Describe transactional ids. The result of an unknown id is TRANSACTIONAL_ID_NOT_FOUND.

        >>> import asyncio
        >>> from barnabas.client import Cluster
        >>> from barnabas.testing import Broker
        >>> async def main() -> None:
        ...     async with Broker() as broker, Cluster({"bootstrap.servers": broker.bootstrap_servers}) as cluster:
        ...         print((await Transactions(cluster).describe_transactions(["pay"]))["pay"].code.name)
        >>> asyncio.run(main())
        TRANSACTIONAL_ID_NOT_FOUND
        """

        async def ask(some: list[str], left_ms: float) -> dict[str, TransactionDescription | KafkaError]:
            to = coordinator(some[0], CoordinatorType.TRANSACTION)
            response: DescribeTransactionsResponse = await self.cluster.call(
                DescribeTransactionsRequest(transactional_ids=some),
                to,
                feature="describing transactions",
                timeout_ms=left_ms,
            )
            where = (await self.cluster.coordinators(some[:1], CoordinatorType.TRANSACTION))[some[0]]
            coordinator_id = where if isinstance(where, int) else -1
            return {
                row.transactional_id: failed(row.error_code) or _description(row, coordinator_id)
                for row in response.transaction_states
            }

        return await ask_coordinators(
            self.cluster, transactional_ids, ask, type=CoordinatorType.TRANSACTION, timeout_ms=timeout_ms
        )

    async def find_hanging_transactions(
        self,
        *,
        topics: Iterable[str] | None = None,
        partitions: Iterable[TopicPartition] | None = None,
        broker_id: int | None = None,
        max_transaction_timeout_ms: float = DEFAULT_MAX_TRANSACTION_TIMEOUT_MS,
        timeout_ms: float | None = None,
    ) -> list[OpenTransaction]:
        """Find transactions that are open in a partition, but that no coordinator will end. They block `read_committed`
        consumers.

        Searches these partitions, all partitions of these topics, or all partitions; with `broker_id`, the replicas there.
        Transactions younger than `max_transaction_timeout_ms` are skipped, because their coordinator will end them. Raises the
        first error of a partition.
        """
        deadline = Deadline(self.cluster, timeout_ms)
        wanted = list(partitions or ()) or await _partitions(self.cluster, topics, broker_id, deadline.left_ms)
        found = checked(
            await Producers(self.cluster).describe_producers(wanted, broker_id=broker_id, timeout_ms=deadline.left_ms)
        )
        now_ms = time.time() * 1000
        candidates = [
            OpenTransaction(topic, partition, state)
            for (topic, partition), states in found.items()
            for state in states
            if state.current_txn_start_offset is not None and now_ms - state.last_timestamp > max_transaction_timeout_ms
        ]
        if not candidates:
            return []
        listings = await self.list_transactions(
            producer_ids={each.producer.producer_id for each in candidates}, timeout_ms=deadline.left_ms
        )
        ids = {listing.producer_id: listing.transactional_id for listing in listings}
        descriptions = await self.describe_transactions(set(ids.values()), timeout_ms=deadline.left_ms)
        return [
            each for each in candidates if _is_hanging(each, descriptions.get(ids.get(each.producer.producer_id, "")))
        ]

    async def abort_transaction(
        self,
        topic: str,
        partition: int,
        *,
        producer_id: int,
        producer_epoch: int,
        coordinator_epoch: int = 0,
        timeout_ms: float | None = None,
    ) -> None:
        """Write an abort marker for a hanging transaction into a partition. The arguments come from
        `find_hanging_transactions`. Raises `KafkaError` if the leader refuses it.
        """
        key = TopicPartition(topic, partition)

        async def ask(node_id: int, asked: list[TopicPartition], wait_ms: float) -> Answers[None]:
            marker = WriteTxnMarkersRequest.WritableTxnMarker(
                producer_id=producer_id,
                producer_epoch=producer_epoch,
                coordinator_epoch=max(coordinator_epoch, 0),  # -1 before the first marker; 0 is the lowest epoch
                topics=[WriteTxnMarkersRequest.WritableTxnMarkerTopic(name=topic, partition_indexes=[partition])],
            )
            response: WriteTxnMarkersResponse = await self.cluster.send(
                WriteTxnMarkersRequest(markers=[marker]), node(node_id), timeout_ms=wait_ms
            )
            return {
                TopicPartition(each.name, row.partition_index): failed(row.error_code)
                for marked in response.markers
                for each in marked.topics
                for row in each.partitions
            }

        async def look(keys: list[TopicPartition]) -> dict[TopicPartition, bool]:
            found = checked(await Producers(self.cluster).describe_producers(keys))
            return {
                each: not any(
                    state.producer_id == producer_id and state.current_txn_start_offset is not None for state in states
                )
                for each, states in found.items()
            }

        results = await change(
            [key],
            lambda: ask_leaders(self.cluster, [key], ask, timeout_ms=timeout_ms),
            look,
            lambda _: f"aborting the transaction of producer {producer_id} in {topic}-{partition}",
        )
        checked(results)

    async def fence_producers(
        self, transactional_ids: Iterable[str], *, timeout_ms: float | None = None
    ) -> dict[str, ProducerIdAndEpoch | KafkaError]:
        """Abort the open transactions of these transactional ids and fence their producers, as a new producer with the same id
        would. An unknown id is created.
        """
        ids = list(dict.fromkeys(transactional_ids))
        answers = await asyncio.gather(*(_fence_producer(self.cluster, each, timeout_ms) for each in ids))
        return dict(zip(ids, answers, strict=True))

    async def force_terminate_transaction(self, transactional_id: str, *, timeout_ms: float | None = None) -> None:
        """Abort the open transaction of a transactional id by fencing its producer (KIP-939). Raises `KafkaError`."""
        checked(await self.fence_producers([transactional_id], timeout_ms=timeout_ms))


async def _partitions(
    cluster: Cluster, topics: Iterable[str] | None, broker_id: int | None, timeout_ms: float
) -> list[TopicPartition]:
    """Return all partitions of these topics, or of all, in order; with `broker_id` only those with a replica there."""
    state = await cluster.metadata(topics, timeout_ms=timeout_ms)
    for name, code in state.errors.items():
        raise KafkaError(code, f"{name}: {code.message}")
    return [
        TopicPartition(topic.name, partition.partition_index)
        for topic in sorted(state.topics.values())
        for partition in topic.partitions.values()
        if broker_id is None or broker_id in partition.replicas
    ]


async def _fence_producer(
    cluster: Cluster, transactional_id: str, timeout_ms: float | None
) -> ProducerIdAndEpoch | KafkaError:
    request = InitProducerIdRequest(
        transactional_id=transactional_id, transaction_timeout_ms=_FENCED_TIMEOUT_MS, producer_id=-1, producer_epoch=-1
    )
    to = coordinator(transactional_id, CoordinatorType.TRANSACTION)
    try:
        response: InitProducerIdResponse = await cluster.call(request, to, timeout_ms=timeout_ms)
    except KafkaError as error:
        return error
    return ProducerIdAndEpoch(response.producer_id, response.producer_epoch)


def _matches(pattern: str | None, transactional_id: str) -> bool:
    return pattern is None or re.fullmatch(pattern, transactional_id) is not None


def _description(row: DescribeTransactionsResponse.TransactionState, coordinator_id: int) -> TransactionDescription:
    return TransactionDescription(
        transactional_id=row.transactional_id,
        coordinator_id=coordinator_id,
        state=row.transaction_state,
        producer_id=row.producer_id,
        producer_epoch=row.producer_epoch,
        transaction_timeout_ms=row.transaction_timeout_ms,
        transaction_start_time_ms=row.transaction_start_time_ms if row.transaction_start_time_ms >= 0 else None,
        topic_partitions=tuple(
            TopicPartition(each.topic, partition) for each in row.topics for partition in each.partitions
        ),
    )


def _is_hanging(found: OpenTransaction, description: TransactionDescription | KafkaError | None) -> bool:
    """Return whether its coordinator does not know the transaction, or does not have this partition in it."""
    if isinstance(description, KafkaError):
        if description.code != ErrorCode.TRANSACTIONAL_ID_NOT_FOUND:
            raise description
        return True
    return description is None or (found.topic, found.partition) not in description.topic_partitions
