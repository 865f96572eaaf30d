"""Transactions of a cluster: open ones, hanging ones, and the producers of a topic."""

from __future__ import annotations

from typing import NamedTuple

from barnabas.client.admin.producers import Producers, ProducerState
from barnabas.client.admin.transactions import (
    OpenTransaction,
    TransactionDescription,
    TransactionListing,
    Transactions,
)
from barnabas.client.cluster import Cluster
from barnabas.client.records import TopicPartition
from barnabas.operations.topics.changes import partition_count
from barnabas.operations.transaction_aborts import OPEN_STATES
from barnabas.wire.errors import KafkaError

MAX_DESCRIBED = 200
_SEARCH_TIMEOUT_MS = 120_000
"""For all partitions of a large cluster, many requests follow each other."""


class TransactionsOverview(NamedTuple):
    """All transactional ids, and those with an open transaction in detail."""

    listed: list[TransactionListing]
    opened: list[TransactionDescription]


async def look_at_transactions(cluster: Cluster) -> TransactionsOverview:
    """List transactions, and describe the open ones."""
    transactions = Transactions(cluster)
    listed = sorted(await transactions.list_transactions(), key=lambda each: each.transactional_id)
    wanted = [each.transactional_id for each in listed if each.state in OPEN_STATES][:MAX_DESCRIBED]
    described = await transactions.describe_transactions(wanted) if wanted else {}
    return TransactionsOverview(
        listed,
        [each for each in described.values() if not isinstance(each, KafkaError)],
    )


async def find_hanging(cluster: Cluster) -> list[OpenTransaction]:
    """Look for hanging transactions. Leaders are asked for the producers of every partition: that may take long."""
    return await Transactions(cluster).find_hanging_transactions(timeout_ms=_SEARCH_TIMEOUT_MS)


async def producers_of(cluster: Cluster, topic: str) -> dict[TopicPartition, list[ProducerState] | KafkaError]:
    """Return the active producers of each partition of a topic. Raises OperationError if it does not exist."""
    count = await partition_count(cluster, topic)
    return await Producers(cluster).describe_producers([TopicPartition(topic, number) for number in range(count)])
