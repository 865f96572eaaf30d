"""The state of a transactional id, its transitions, and its records.

Its one rule: a transaction changes only by `transit`, which enforces the table of states, and an image only by `apply`.
The previous epoch of a producer is not included: Kafka does not store it, so it is soft state.
"""

from __future__ import annotations

from collections.abc import Collection
from enum import IntEnum
from typing import Any, Final, NamedTuple

from barnabas.config.internal_topics import TRANSACTION_STATE_TOPIC
from barnabas.metadata.pmap import PMap
from barnabas.replicated.decision import KeyValue
from barnabas.replicated.loop import Batch
from barnabas.storage.checkpoints import TopicPartition
from barnabas.wire import ErrorCode, KafkaError, MalformedError
from barnabas.wire.records.transaction import TransactionLogKey, TransactionLogValue

TOPIC: Final = TRANSACTION_STATE_TOPIC
NO_PRODUCER_ID: Final = -1
NO_PRODUCER_EPOCH: Final = -1
MAX_EPOCH: Final = (1 << 15) - 1
NO_TIMEOUT_MS: Final = (1 << 31) - 1
"""The timeout of a two-phase commit transaction, which waits for its decision without limit."""


class TransactionState(IntEnum):
    """The states, with their numbers in records. The last two are never written; Kafka has them only in memory."""

    EMPTY = 0
    ONGOING = 1
    PREPARE_COMMIT = 2
    PREPARE_ABORT = 3
    COMPLETE_COMMIT = 4
    COMPLETE_ABORT = 5
    DEAD = 6
    PREPARE_EPOCH_FENCE = 7

    @property
    def shown(self) -> str:
        """The name in responses."""
        return self.name.title().replace("_", "")


_S = TransactionState

VALID_PREVIOUS: Final = {
    _S.EMPTY: frozenset({_S.EMPTY, _S.COMPLETE_COMMIT, _S.COMPLETE_ABORT}),
    _S.ONGOING: frozenset({_S.ONGOING, _S.EMPTY, _S.COMPLETE_COMMIT, _S.COMPLETE_ABORT}),
    _S.PREPARE_COMMIT: frozenset({_S.ONGOING}),
    # Not only from ONGOING: a client of version 2 may abort without knowing whether the transaction was started.
    _S.PREPARE_ABORT: frozenset({_S.ONGOING, _S.EMPTY, _S.COMPLETE_COMMIT, _S.COMPLETE_ABORT}),
    _S.COMPLETE_COMMIT: frozenset({_S.PREPARE_COMMIT}),
    _S.COMPLETE_ABORT: frozenset({_S.PREPARE_ABORT}),
}
PREPARED: Final = frozenset({_S.PREPARE_COMMIT, _S.PREPARE_ABORT})
AT_REST: Final = frozenset({_S.EMPTY, _S.COMPLETE_COMMIT, _S.COMPLETE_ABORT})
SHOWN: Final = {state.shown: state for state in TransactionState}


class Transaction(NamedTuple):
    """The last transaction of a transactional id, and the producer that may start the next one."""

    transactional_id: str
    producer_id: int
    previous_producer_id: int
    next_producer_id: int  # id of the next transaction, when the epochs of this one are exhausted
    producer_epoch: int
    timeout_ms: int
    state: TransactionState
    partitions: frozenset[TopicPartition]
    start_timestamp_ms: int
    last_update_timestamp_ms: int
    client_transaction_version: int

    @property
    def is_epoch_exhausted(self) -> bool:
        return is_epoch_exhausted(self.producer_epoch)


class TransactionsImage(NamedTuple):
    """The transactions of one partition of the topic. `ongoing` are the ids whose transactions may time out."""

    transactions: PMap[str, Transaction]
    ongoing: PMap[str, None]


EMPTY_IMAGE: Final = TransactionsImage(PMap(), PMap())


def is_epoch_exhausted(producer_epoch: int) -> bool:
    """Whether no epoch is left. The last one is not given to clients, but reserved to fence the producer before it."""
    return producer_epoch >= MAX_EPOCH - 1


def no_producer_id() -> KafkaError:
    """Return the error for a producer that needs a new id while the broker has none available."""
    # As in Kafka, because old clients treat REQUEST_TIMED_OUT as fatal here.
    return KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, "Producer ID block is full. Waiting for next block")


def transit(transaction: Transaction, state: TransactionState, **changes: Any) -> Transaction:
    """Return the transaction in its next state."""
    if transaction.state not in VALID_PREVIOUS[state]:
        raise AssertionError(f"{transaction.transactional_id} cannot go from {transaction.state!r} to {state!r}")
    return transaction._replace(state=state, previous_producer_id=transaction.producer_id, **changes)


def apply(image: TransactionsImage, batch: Batch) -> TransactionsImage:
    """Return the image after a batch of the topic."""
    transactions, ongoing = image
    for key, value in batch.records:
        transactional_id = key.transactional_id
        if value is None:
            if transactional_id in transactions:
                transactions = transactions.delete(transactional_id)
        else:
            transactions = transactions.set(transactional_id, from_value(transactional_id, value))
        if value is not None and value.transaction_status == TransactionState.ONGOING:
            ongoing = ongoing.set(transactional_id, None)
        elif transactional_id in ongoing:
            ongoing = ongoing.delete(transactional_id)
    return TransactionsImage(transactions, ongoing)


def record(transaction: Transaction, transaction_version: int) -> tuple[KeyValue, int]:
    """Return the record of a transaction, in the version that the cluster's transaction.version requires."""
    version = 1 if transaction_version >= 1 else 0
    if version == 0 and transaction.client_transaction_version:
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, "The cluster's transaction.version is 0.")
    value = TransactionLogValue(
        producer_id=transaction.producer_id,
        producer_epoch=transaction.producer_epoch,
        transaction_timeout_ms=transaction.timeout_ms,
        transaction_status=transaction.state,
        transaction_partitions=_topics(transaction),
        transaction_last_update_timestamp_ms=transaction.last_update_timestamp_ms,
        transaction_start_timestamp_ms=transaction.start_timestamp_ms,
        client_transaction_version=transaction.client_transaction_version,
    )
    if version >= 1:
        value.previous_producer_id = transaction.previous_producer_id
        value.next_producer_id = transaction.next_producer_id
    return KeyValue(TransactionLogKey(transactional_id=transaction.transactional_id), value), version


def tombstone(transactional_id: str) -> tuple[KeyValue, int]:
    return KeyValue(TransactionLogKey(transactional_id=transactional_id), None), 0


def _topics(transaction: Transaction) -> list[TransactionLogValue.PartitionsSchema] | None:
    if transaction.state is TransactionState.EMPTY:
        return None
    return [
        TransactionLogValue.PartitionsSchema(topic=topic, partition_ids=ids)
        for topic, ids in by_topic(transaction.partitions).items()
    ]


def by_topic(partitions: Collection[TopicPartition]) -> dict[str, list[int]]:
    """Return partition ids by topic, both sorted."""
    found: dict[str, list[int]] = {}
    for topic, partition in sorted(partitions):
        found.setdefault(topic, []).append(partition)
    return found


def from_value(transactional_id: str, value: TransactionLogValue) -> Transaction:
    """Return the transaction that a record describes. Raises MalformedError if its state is unknown."""
    try:
        state = TransactionState(value.transaction_status)
    except ValueError:
        raise MalformedError(f"{transactional_id} has the unknown state {value.transaction_status}") from None
    topics = [] if state is TransactionState.EMPTY else value.transaction_partitions or []
    return Transaction(
        transactional_id,
        value.producer_id,
        value.previous_producer_id,
        value.next_producer_id,
        value.producer_epoch,
        value.transaction_timeout_ms,
        state,
        frozenset(TopicPartition(each.topic, index) for each in topics for index in each.partition_ids),
        value.transaction_start_timestamp_ms,
        value.transaction_last_update_timestamp_ms,
        value.client_transaction_version,
    )
