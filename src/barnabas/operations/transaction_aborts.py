"""Ends of transactions: abort a hanging one in a partition, or fence the producer of a transactional id."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from barnabas.client.admin.producers import Producers, ProducerState
from barnabas.client.admin.transactions import TransactionDescription, Transactions
from barnabas.client.cluster import Cluster
from barnabas.client.records import TopicPartition
from barnabas.operations.errors import OperationError, refused
from barnabas.operations.proposal import Proposal
from barnabas.wire.errors import KafkaError

_PAUSES_S = (0.05, 0.1, 0.2, 0.5, 1, 1, 1)
OPEN_STATES = ("Ongoing", "PrepareCommit", "PrepareAbort", "PrepareEpochFence")


async def open_at(cluster: Cluster, partition: TopicPartition, start_offset: int) -> ProducerState:
    """Return the producer whose transaction is open from this offset on. Raises OperationError."""
    states = (await Producers(cluster).describe_producers([partition]))[partition]
    if isinstance(states, KafkaError):
        raise refused(states, str(partition))
    found = [state for state in states if state.current_txn_start_offset == start_offset]
    if not found:
        raise OperationError(
            f"no open transaction starts at offset {start_offset}",
            resource=str(partition),
            advice="list open transactions with: "
            f"barnabas producers list {partition.topic} --partition {partition.partition} --open",
        )
    return found[0]


def propose_abort(
    cluster: Cluster, partition: TopicPartition, found: ProducerState
) -> Proposal[TopicPartition, ProducerState]:
    """Propose to write an abort marker for a hanging transaction. The result has the producer's state after it."""
    topic, index = partition

    async def carry_out() -> dict[TopicPartition, ProducerState]:
        await Transactions(cluster).abort_transaction(
            topic,
            index,
            producer_id=found.producer_id,
            producer_epoch=found.producer_epoch,
            coordinator_epoch=found.coordinator_epoch or 0,
        )
        return {partition: await _state_after(cluster, partition, found)}

    return Proposal(
        {partition: found},
        (f"abort the transaction of producer {found.producer_id} (epoch {found.producer_epoch}) in {topic}-{index}",),
        question="Consumers that read committed records will not see its records. Abort it?",
        carry_out=carry_out,
    )


async def _state_after(cluster: Cluster, partition: TopicPartition, before: ProducerState) -> ProducerState:
    """Return the state of a producer after its transaction was aborted. If it is not known, the transaction counts as ended."""
    states = (await Producers(cluster).describe_producers([partition]))[partition]
    if not isinstance(states, KafkaError):
        for state in states:
            if state.producer_id == before.producer_id:
                return state
    return replace(before, current_txn_start_offset=None)


async def propose_fencing(cluster: Cluster, transactional_id: str) -> Proposal[str, TransactionDescription]:
    """Propose to abort the open transaction of a transactional id by fencing its producer. Raises OperationError."""
    transactions = Transactions(cluster)
    found = (await transactions.describe_transactions([transactional_id]))[transactional_id]
    if isinstance(found, KafkaError):  # fencing an unknown id would create it
        raise refused(found, f"transactional id {transactional_id}")

    async def carry_out() -> dict[str, TransactionDescription]:
        await transactions.force_terminate_transaction(transactional_id)
        return {transactional_id: await _ended(transactions, transactional_id, found)}

    return Proposal(
        {transactional_id: found},
        (f"fence the producer of {transactional_id}; its transaction is {found.state}",),
        question="A running producer with this id will fail. Fence it?",
        carry_out=carry_out,
    )


async def _ended(
    transactions: Transactions, transactional_id: str, before: TransactionDescription
) -> TransactionDescription:
    """Wait until the coordinator has ended the transaction, for a few seconds at most. Return the last state seen."""
    for pause_s in _PAUSES_S:
        found = (await transactions.describe_transactions([transactional_id]))[transactional_id]
        if isinstance(found, KafkaError):
            return before
        before = found
        if found.state not in OPEN_STATES:
            break
        await asyncio.sleep(pause_s)
    return before
