"""The decisions of a transaction coordinator: pure functions from a situation and a request to records and a response.

The behavior depends on the version of the request, not only on the cluster's transaction.version: a client of
transaction version 2 (KIP-890) gets a new epoch at the end of each transaction. Errors are raised as KafkaError and
change nothing. While the markers of a transaction are being written, every other request for it raises
CONCURRENT_TRANSACTIONS.
"""

from __future__ import annotations

from collections.abc import Iterator, Set
from typing import Final, NamedTuple

from barnabas.replicated.decision import Producer, Records, Result
from barnabas.storage.checkpoints import TopicPartition
from barnabas.transactions.state import (
    AT_REST,
    MAX_EPOCH,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_TIMEOUT_MS,
    PREPARED,
    Transaction,
    TransactionsImage,
    TransactionState,
    is_epoch_exhausted,
    no_producer_id,
    record,
    tombstone,
    transit,
)
from barnabas.wire import ErrorCode, KafkaError

NO_PRODUCER: Final = Producer(NO_PRODUCER_ID, NO_PRODUCER_EPOCH)
EPOCH_BUMP_VERSION: Final = 2
"""Since this transaction version, the end of a transaction starts a new epoch."""

_COMPLETE: Final = {
    TransactionState.PREPARE_COMMIT: TransactionState.COMPLETE_COMMIT,
    TransactionState.PREPARE_ABORT: TransactionState.COMPLETE_ABORT,
}


class TransactionSituation(NamedTuple):
    """The input of a decision.

    A decision that uses the next producer id says so in its response; the caller then claims the id.
    """

    image: TransactionsImage
    now_ms: int
    transaction_version: int  # of the cluster
    next_producer_id: int | None  # None: the controller has to grant a new block first

    def get(self, transactional_id: str) -> Transaction | None:
        return self.image.transactions.get(transactional_id)

    def records(self, transaction: Transaction) -> Records:
        return [record(transaction, self.transaction_version)]

    def new_producer_id(self) -> int:
        """Return the next producer id. Raises COORDINATOR_LOAD_IN_PROGRESS if there is none."""
        if self.next_producer_id is None:
            raise no_producer_id()
        return self.next_producer_id


class Outcome(NamedTuple):
    """The transaction after a decision, and the epoch of its producer before this one."""

    transaction: Transaction
    last_producer_epoch: int
    is_fenced: bool = False  # it was ongoing: it is aborted first, and the producer has to retry
    claims_producer_id: bool = False  # the situation's next producer id is used


class Ended(NamedTuple):
    """The producer of the next transaction, as the client gets it; the other fields as in Outcome."""

    producer: Producer
    last_producer_epoch: int | None = None
    claims_producer_id: bool = False


# --- InitProducerId


def transaction_timeout_ms(
    transactional_id: str,
    timeout_ms: int,
    *,
    enable_2pc: bool,
    keep_prepared: bool,
    is_2pc_enabled: bool,
    max_timeout_ms: int,
) -> int:
    """Return the timeout of its transactions. Raises KafkaError if the request is invalid in any state."""
    if not transactional_id:
        raise KafkaError(ErrorCode.INVALID_REQUEST)
    if enable_2pc and not is_2pc_enabled:
        raise KafkaError(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    if keep_prepared:
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION)
    if enable_2pc:
        return NO_TIMEOUT_MS
    if not 0 < timeout_ms <= max_timeout_ms:
        raise KafkaError(ErrorCode.INVALID_TRANSACTION_TIMEOUT)
    return timeout_ms


def init_producer_id(
    situation: TransactionSituation,
    transactional_id: str,
    timeout_ms: int,
    expected: Producer | None,
    last_producer_epoch: int = NO_PRODUCER_EPOCH,
) -> Result[Outcome]:
    """Initialize a producer, or continue the `expected` one after an error."""
    found = situation.get(transactional_id)
    current = found or _new_transaction(transactional_id, situation.new_producer_id())
    if current.state in PREPARED:
        raise KafkaError(ErrorCode.CONCURRENT_TRANSACTIONS)
    if expected is not None and not _may_go_on(current, expected):
        raise KafkaError(ErrorCode.PRODUCER_FENCED)
    if current.state is TransactionState.ONGOING:
        return fence(situation, current)
    epoch = current.producer_epoch
    producer_id = current.producer_id
    claims_producer_id = found is None
    if expected is None or epoch in (expected.producer_epoch, NO_PRODUCER_EPOCH):
        last = NO_PRODUCER_EPOCH if expected is None else epoch
        if is_epoch_exhausted(epoch):
            producer_id, epoch, claims_producer_id = situation.new_producer_id(), 0, True
        else:
            epoch += 1
    elif expected.producer_epoch == last_producer_epoch:
        last = last_producer_epoch  # a retry: return the same epoch again
    else:
        raise KafkaError(ErrorCode.PRODUCER_FENCED)
    following = transit(
        current,
        TransactionState.EMPTY,
        producer_id=producer_id,
        producer_epoch=epoch,
        timeout_ms=timeout_ms,
        partitions=frozenset(),
        start_timestamp_ms=-1,
        last_update_timestamp_ms=situation.now_ms,
    )
    outcome = Outcome(following, last, claims_producer_id=claims_producer_id)
    return Result(situation.records(following), outcome)


def takes_producer_id(image: TransactionsImage, transactional_id: str) -> bool:
    """Whether InitProducerId may need a new producer id."""
    found = image.transactions.get(transactional_id)
    return found is None or found.is_epoch_exhausted


def _new_transaction(transactional_id: str, producer_id: int) -> Transaction:
    return Transaction(
        transactional_id,
        producer_id,
        NO_PRODUCER_ID,
        NO_PRODUCER_ID,
        NO_PRODUCER_EPOCH,
        0,
        TransactionState.EMPTY,
        frozenset(),
        -1,
        -1,
        0,
    )


def _may_go_on(current: Transaction, expected: Producer) -> bool:
    """Whether `expected` may be the current producer. Its epoch is checked later.

    An expired transactional id accepts any producer.
    """
    return (
        current.producer_epoch == NO_PRODUCER_EPOCH
        or expected.producer_id == current.producer_id
        # Its epochs were exhausted and it got another id, but the response did not reach it.
        or (expected.producer_id == current.previous_producer_id and is_epoch_exhausted(expected.producer_epoch))
    )


# --- partitions of a transaction


def add_partitions(
    situation: TransactionSituation,
    transactional_id: str,
    producer: Producer,
    partitions: Set[TopicPartition],
    client_transaction_version: int,
) -> Result[None]:
    """Add partitions to the transaction, which starts with the first of them."""
    current = _require(situation, transactional_id)
    if current.state in PREPARED:
        # Checked first, because the producer may already have the id of the next transaction.
        raise KafkaError(ErrorCode.CONCURRENT_TRANSACTIONS)
    _require_producer(current, producer)
    if current.state is TransactionState.ONGOING and partitions <= current.partitions:
        return Result([], None)
    begins = current.state in AT_REST
    following = transit(
        current,
        TransactionState.ONGOING,
        partitions=current.partitions | partitions,
        start_timestamp_ms=situation.now_ms if begins else current.start_timestamp_ms,
        last_update_timestamp_ms=situation.now_ms,
        client_transaction_version=client_transaction_version,
    )
    return Result(situation.records(following), None)


def verify_partitions(
    situation: TransactionSituation, transactional_id: str, producer: Producer, partitions: Set[TopicPartition]
) -> Result[dict[TopicPartition, ErrorCode]]:
    """Return the partitions that are not in the transaction, each with its error."""
    current = _require(situation, transactional_id)
    _require_producer(current, producer)
    if current.state in PREPARED:
        raise KafkaError(ErrorCode.CONCURRENT_TRANSACTIONS)
    missing = partitions - current.partitions
    return Result([], dict.fromkeys(missing, ErrorCode.TRANSACTION_ABORTABLE))


def _require(situation: TransactionSituation, transactional_id: str) -> Transaction:
    current = situation.get(transactional_id)
    if current is None:
        raise KafkaError(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    return current


def _require_producer(current: Transaction, producer: Producer) -> None:
    if current.producer_id != producer.producer_id:
        raise KafkaError(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    if current.producer_epoch != producer.producer_epoch:
        raise KafkaError(ErrorCode.PRODUCER_FENCED)


# --- the end of a transaction


def end(
    situation: TransactionSituation,
    transactional_id: str,
    producer: Producer,
    is_commit: bool,
    client_transaction_version: int,
) -> Result[Ended]:
    """Commit or abort a transaction. Its markers are written once this is committed."""
    current = _require(situation, transactional_id)
    if client_transaction_version < EPOCH_BUMP_VERSION:
        return _end_in_epoch(situation, current, producer, is_commit)
    return _end_with_epoch(situation, current, producer, is_commit, client_transaction_version)


def _end_in_epoch(
    situation: TransactionSituation, current: Transaction, producer: Producer, is_commit: bool
) -> Result[Ended]:
    _require_producer(current, producer)
    if current.state in PREPARED:
        raise KafkaError(ErrorCode.CONCURRENT_TRANSACTIONS)
    if current.state is TransactionState.ONGOING:
        following = transit(
            current,
            _prepared(is_commit),
            next_producer_id=NO_PRODUCER_ID,
            last_update_timestamp_ms=situation.now_ms,
            client_transaction_version=0,
        )
        return Result(situation.records(following), Ended(NO_PRODUCER))
    if current.state is _COMPLETE[_prepared(is_commit)]:
        return Result([], Ended(NO_PRODUCER))
    raise KafkaError(ErrorCode.INVALID_TXN_STATE)


def _end_with_epoch(
    situation: TransactionSituation,
    current: Transaction,
    producer: Producer,
    is_commit: bool,
    client_transaction_version: int,
) -> Result[Ended]:
    """End a transaction with a new epoch.

    The results in a state other than ongoing, where EB means a new epoch, ITS INVALID_TXN_STATE and PF PRODUCER_FENCED:

                        abort            commit
                        retry   new      retry   new
        EMPTY           PF      EB       PF      ITS
        COMPLETE_ABORT  ok      EB       ITS     ITS
        COMPLETE_COMMIT ITS     EB       ok      ITS
    """
    if current.state in PREPARED:
        raise KafkaError(ErrorCode.CONCURRENT_TRANSACTIONS)
    # A retry, because the response with the new epoch, or the new id, did not reach the producer.
    is_bumped = current.producer_epoch == producer.producer_epoch + 1
    is_overflown = (
        current.previous_producer_id == producer.producer_id
        and producer.producer_epoch == MAX_EPOCH - 1
        and current.producer_epoch == 0
    )
    if current.producer_id != producer.producer_id and not is_overflown:
        raise KafkaError(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    is_complete = current.state in (TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT)
    is_again = is_complete and (is_bumped or is_overflown)
    if not is_again and current.producer_epoch != producer.producer_epoch:
        raise KafkaError(ErrorCode.PRODUCER_FENCED)
    if is_again:
        if current.state is not _COMPLETE[_prepared(is_commit)]:
            raise KafkaError(ErrorCode.INVALID_TXN_STATE)
        return Result([], Ended(Producer(current.producer_id, current.producer_epoch)))
    if is_commit and current.state is not TransactionState.ONGOING:
        raise KafkaError(ErrorCode.INVALID_TXN_STATE)
    following = _in_next_epoch(situation, current, _prepared(is_commit), client_transaction_version)
    done = complete(following, situation.now_ms)
    ended = Ended(Producer(done.producer_id, done.producer_epoch), current.producer_epoch, current.is_epoch_exhausted)
    return Result(situation.records(following), ended)


def fence(situation: TransactionSituation, current: Transaction) -> Result[Outcome]:
    """Abort an ongoing transaction and fence its producer with a new epoch."""
    if situation.transaction_version >= EPOCH_BUMP_VERSION:
        version, last = situation.transaction_version, current.producer_epoch
        claims_producer_id = current.is_epoch_exhausted
        following = _in_next_epoch(situation, current, TransactionState.PREPARE_ABORT, version)
    else:
        last, claims_producer_id = NO_PRODUCER_EPOCH, False
        following = transit(
            current,
            TransactionState.PREPARE_ABORT,
            producer_epoch=min(current.producer_epoch + 1, MAX_EPOCH),
            next_producer_id=NO_PRODUCER_ID,
            last_update_timestamp_ms=situation.now_ms,
            client_transaction_version=0,
        )
    outcome = Outcome(following, last, is_fenced=True, claims_producer_id=claims_producer_id)
    return Result(situation.records(following), outcome)


def _in_next_epoch(
    situation: TransactionSituation, current: Transaction, state: TransactionState, client_transaction_version: int
) -> Transaction:
    """Return the transaction in its next epoch. It uses a new producer id if its epochs are exhausted."""
    begins = current.state in AT_REST  # an abort of a transaction that was not started
    return transit(
        current,
        state,
        producer_epoch=min(current.producer_epoch + 1, MAX_EPOCH),
        next_producer_id=situation.new_producer_id() if current.is_epoch_exhausted else NO_PRODUCER_ID,
        start_timestamp_ms=situation.now_ms if begins else current.start_timestamp_ms,
        last_update_timestamp_ms=situation.now_ms,
        client_transaction_version=client_transaction_version,
    )


def _prepared(is_commit: bool) -> TransactionState:
    return TransactionState.PREPARE_COMMIT if is_commit else TransactionState.PREPARE_ABORT


def complete(prepared: Transaction, now_ms: int) -> Transaction:
    """Return the transaction after all partitions have their marker."""
    takes_next = (
        prepared.client_transaction_version >= EPOCH_BUMP_VERSION and prepared.next_producer_id != NO_PRODUCER_ID
    )
    return transit(
        prepared,
        _COMPLETE[prepared.state],
        producer_id=prepared.next_producer_id if takes_next else prepared.producer_id,
        producer_epoch=0 if takes_next else prepared.producer_epoch,
        next_producer_id=NO_PRODUCER_ID,
        partitions=frozenset(),
        last_update_timestamp_ms=now_ms,
    )


def write_completed(situation: TransactionSituation, prepared: Transaction, completed: Transaction) -> Result[None]:
    """Write that all markers are written, unless that is already done."""
    if situation.get(prepared.transactional_id) != prepared:
        return Result([], None)
    return Result(situation.records(completed), None)


# --- timers


def timed_out(image: TransactionsImage, now_ms: int) -> list[str]:
    """Return the transactions that have exceeded their timeout."""
    found = (image.transactions[transactional_id] for transactional_id in image.ongoing)
    return [t.transactional_id for t in found if t.timeout_ms != NO_TIMEOUT_MS and _deadline_ms(t) < now_ms]


def abort_timed_out(situation: TransactionSituation, transactional_id: str) -> Result[Outcome | None]:
    """Abort a transaction if it is still ongoing and has exceeded its timeout."""
    current = situation.get(transactional_id)
    if (
        current is None
        or current.state is not TransactionState.ONGOING
        or current.timeout_ms == NO_TIMEOUT_MS
        or _deadline_ms(current) >= situation.now_ms
    ):
        return Result([], None)
    return fence(situation, current)


def _deadline_ms(transaction: Transaction) -> int:
    return transaction.start_timestamp_ms + transaction.timeout_ms


def expired(image: TransactionsImage, now_ms: int, expiration_ms: int) -> Iterator[str]:
    """Yield transactional ids that were not used for that long."""
    latest_ms = now_ms - expiration_ms
    for transaction in image.transactions.values():
        if transaction.state in AT_REST and transaction.last_update_timestamp_ms <= latest_ms:
            yield transaction.transactional_id


def forget(transactional_ids: list[str], now_ms: int, expiration_ms: int, image: TransactionsImage) -> Result[None]:
    """Remove those transactional ids that are still unused."""
    latest_ms = now_ms - expiration_ms
    records = []
    for transactional_id in transactional_ids:
        current = image.transactions.get(transactional_id)
        if current and current.state in AT_REST and current.last_update_timestamp_ms <= latest_ms:
            records.append(tombstone(transactional_id))
    return Result(records, None)
