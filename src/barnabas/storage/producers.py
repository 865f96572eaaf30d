"""The producer state of a log: sequences, epochs and transactions of the producers that wrote to it.

Its one rule: the state is a value that follows from the batches of the log alone. `Producers.check` decides whether a
leader accepts a batch and changes nothing. `update` applies a batch that was written and rejects nothing, because
followers and recovery accept whatever a leader accepted. So a state rebuilt from the log equals the original.

The last five batches of each producer are kept to detect duplicates. A transaction starts with its first transactional
batch and ends with a marker. The last stable offset is that of the first transaction that has not ended, or whose
marker is not replicated yet. This module knows no files: see producer_snapshots and aborted.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from enum import Enum
from itertools import islice
from typing import NamedTuple

from barnabas.batches import (
    NO_PRODUCER_EPOCH,
    NO_TIMESTAMP,
    BatchError,
    BatchHeader,
    ControlType,
    EndTxnMarker,
    decode_end_txn_marker,
    decode_records,
)
from barnabas.batches.format import CONTROL_BIT, MAX_INT32, NO_SEQUENCE, TRANSACTIONAL_BIT, Buffer
from barnabas.config.hash_order import hash_order
from barnabas.wire.errors import ErrorCode, KafkaError

NO_OFFSET = -1
NO_COORDINATOR_EPOCH = -1
UNKNOWN_TRANSACTION_VERSION = -1
_RETAINED_BATCHES = 5
_MAX_FORGOTTEN = 4  # in one turn
_COMPARED = 8  # producers among which the one to forget is chosen
_MAX_EPOCH = 2**15 - 1


class AppendOrigin(Enum):
    """The source of an append: batches of clients have sequence numbers, those of coordinators have none."""

    CLIENT = "client"
    COORDINATOR = "coordinator"


class BatchMetadata(NamedTuple):
    """One of a producer's last batches, kept to detect duplicates."""

    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp: int

    @property
    def first_sequence(self) -> int:
        return (self.last_sequence - self.offset_delta) & MAX_INT32

    @property
    def first_offset(self) -> int:
        return self.last_offset - self.offset_delta


class ProducerState(NamedTuple):
    """The state of one producer id after some batch. `batches` are those of its current epoch, oldest first."""

    producer_id: int
    producer_epoch: int = NO_PRODUCER_EPOCH
    coordinator_epoch: int = NO_COORDINATOR_EPOCH
    last_timestamp: int = NO_TIMESTAMP
    current_txn_first_offset: int = NO_OFFSET
    batches: tuple[BatchMetadata, ...] = ()

    @property
    def last_sequence(self) -> int:
        return self.batches[-1].last_sequence if self.batches else NO_SEQUENCE

    @property
    def last_data_offset(self) -> int:
        return self.batches[-1].last_offset if self.batches else NO_OFFSET


class CompletedTxn(NamedTuple):
    """A transaction that ended. `last_offset` is the offset of its marker."""

    producer_id: int
    first_offset: int
    last_offset: int
    is_aborted: bool


class ProducerBatch(NamedTuple):
    """A batch of a producer, written at `base_offset`.

    A control batch has a marker, unless compaction emptied it or it is not the end of a transaction.
    """

    header: BatchHeader
    base_offset: int
    marker: EndTxnMarker | None = None


class _Verification:
    """A transaction whose coordinator is being asked whether this partition belongs to it."""

    __slots__ = ("epoch", "guard", "lowest_sequence", "started_ms", "supports_epoch_bump")

    def __init__(self, guard: int, started_ms: int, sequence: int, epoch: int, supports_epoch_bump: bool) -> None:
        self.guard = guard
        self.started_ms = started_ms
        self.lowest_sequence = sequence
        self.epoch = epoch
        self.supports_epoch_bump = supports_epoch_bump

    def note(self, sequence: int, epoch: int) -> None:
        """Keep the lowest sequence of an epoch, because accepting a higher one first would exclude it for good."""
        if epoch > self.epoch or (epoch == self.epoch and sequence < self.lowest_sequence):
            self.epoch = epoch
            self.lowest_sequence = sequence


def producer_batch(header: BatchHeader, base_offset: int, data: Buffer, position: int) -> ProducerBatch:
    """Return the batch at `position` in `data`, with its marker if it is a control batch."""
    is_control = header.attributes & CONTROL_BIT
    return ProducerBatch(header, base_offset, _decode_marker(data, position, header) if is_control else None)


def _decode_marker(data: Buffer, position: int, header: BatchHeader) -> EndTxnMarker | None:
    try:
        records = decode_records(data, position, header)
        return decode_end_txn_marker(records[0]) if records else None
    except BatchError:
        return None


def advance(state: ProducerState, batch: ProducerBatch) -> ProducerState:
    """Return the state of a producer after one more batch."""
    header, base_offset, marker = batch
    producer_id, producer_epoch, coordinator_epoch, _, first_offset, batches = state
    _, _, _, _, _, attributes, delta, _, timestamp, _, epoch, sequence, _ = header
    if attributes & CONTROL_BIT:
        if marker is None:
            return state
        kept = batches if epoch == producer_epoch else ()
        return ProducerState(producer_id, epoch, marker.coordinator_epoch, timestamp, NO_OFFSET, kept)
    last_sequence = NO_SEQUENCE if sequence == NO_SEQUENCE else sequence + delta & MAX_INT32
    added = BatchMetadata(last_sequence, base_offset + delta, delta, timestamp)
    batches = (*batches[1 - _RETAINED_BATCHES :], added) if epoch == producer_epoch else (added,)
    if first_offset == NO_OFFSET and attributes & TRANSACTIONAL_BIT:
        first_offset = base_offset
    return ProducerState(producer_id, epoch, coordinator_epoch, timestamp, first_offset, batches)


class Producers:
    """The state of all producers at the end of one log."""

    __slots__ = ("_guards", "_ongoing", "_states", "_unreplicated", "_verifications")

    def __init__(self, states: Iterable[ProducerState] = (), before: Producers | None = None) -> None:
        self._states = {state.producer_id: state for state in states}
        ongoing = ((state.current_txn_first_offset, state.producer_id) for state in self._states.values())
        # First offset to producer id, ordered by offset, because transactions that start later are added last.
        self._ongoing = dict(sorted(pair for pair in ongoing if pair[0] != NO_OFFSET))
        # First offset and marker offset of transactions that ended above the high watermark, ordered by marker.
        self._unreplicated: list[tuple[int, int]] = []
        self._verifications: dict[int, _Verification] = {} if before is None else before._verifications
        self._guards: int = 0 if before is None else before._guards

    @property
    def is_empty(self) -> bool:
        return not self._states and not self._unreplicated

    def __len__(self) -> int:
        return len(self._states)

    @property
    def states(self) -> tuple[ProducerState, ...]:
        """Every producer, in the iteration order of Kafka's hash map."""
        return tuple(hash_order(self._states.values(), hash_of=_hash))

    def get(self, producer_id: int) -> ProducerState | None:
        return self._states.get(producer_id)

    # Checks before a leader writes

    def check(
        self,
        batch: ProducerBatch,
        *,
        origin: AppendOrigin = AppendOrigin.CLIENT,
        guard: int | None = None,
        verify: bool = False,
        transaction_version: int = UNKNOWN_TRANSACTION_VERSION,
        earlier: Sequence[ProducerBatch] = (),
    ) -> BatchMetadata | None:
        """Return the batch that this one duplicates, or None if it may be written. Raises KafkaError if it may not.

        `earlier` are batches before it that were checked but not written yet.
        """
        header = batch.header
        state = self._states.get(header.producer_id)
        for other in earlier:
            if other.header.producer_id == header.producer_id:
                state = advance(state or ProducerState(header.producer_id), other)
        if state is None:
            state = ProducerState(header.producer_id)
        elif header.producer_epoch == state.producer_epoch and origin is AppendOrigin.CLIENT:
            if self._is_next(state, header):
                return None
            first, last = header.base_sequence, header.last_sequence
            for known in state.batches:
                if known.last_sequence == last and known.first_sequence == first:
                    return known
        if header.is_transactional and not _is_ongoing(state, header.producer_epoch):
            _check_not_fenced(state, header.producer_epoch)
            if verify and not header.is_control and not self._is_verified(header.producer_id, guard):
                raise KafkaError(
                    ErrorCode.INVALID_TXN_STATE,
                    f"producer {header.producer_id} has no ongoing transaction here, and this one was not verified",
                )
        if header.is_control:
            _check_marker(state, header.producer_epoch, batch.marker, transaction_version)
        else:
            _check_not_fenced(state, header.producer_epoch)
            if origin is AppendOrigin.CLIENT:
                self._check_sequence(state, header)
            if state.current_txn_first_offset != NO_OFFSET and not header.is_transactional:
                raise KafkaError(
                    ErrorCode.INVALID_TXN_STATE,
                    f"producer {header.producer_id} has an ongoing transaction, but the batch is not transactional",
                )
        return None

    def _is_next(self, state: ProducerState, header: BatchHeader) -> bool:
        """Whether the batch continues the last one in the same epoch and transaction, if any: the common case."""
        return (
            bool(state.batches)
            and 0 < header.base_sequence == state.batches[-1].last_sequence + 1
            and (state.current_txn_first_offset != NO_OFFSET) == (header.attributes & TRANSACTIONAL_BIT != 0)
            and not self._verifications
            and not header.is_control
        )

    def _check_sequence(self, state: ProducerState, header: BatchHeader) -> None:
        sequence, epoch, producer_id = header.base_sequence, header.producer_epoch, header.producer_id
        verification = self._verifications.get(producer_id)
        if verification is not None:
            if verification.supports_epoch_bump and sequence != 0 and not state.batches:
                raise _out_of_order(producer_id, sequence, "a producer that is unknown here must start at 0")
            if sequence > verification.lowest_sequence:
                raise _out_of_order(producer_id, sequence, f"{verification.lowest_sequence} is expected first")
        if state.producer_epoch == NO_PRODUCER_EPOCH:
            return  # its state may have been deleted, so any sequence may be the next
        if epoch != state.producer_epoch:
            if sequence != 0:
                raise _out_of_order(producer_id, sequence, f"the new epoch {epoch} must start at 0")
        elif sequence != state.last_sequence + 1 and not (sequence == 0 and state.last_sequence == MAX_INT32):
            raise _out_of_order(producer_id, sequence, f"the last one was {state.last_sequence}")

    # Updates after a batch was written

    def update(self, batch: ProducerBatch) -> CompletedTxn | None:
        """Apply a written batch. Return the transaction that it ends, which must then be passed to `complete`."""
        header = batch.header
        producer_id = header.producer_id
        before = self._states.get(producer_id)
        if before is None:
            before = ProducerState(producer_id)
        after = self._states[producer_id] = advance(before, batch)
        if header.attributes & TRANSACTIONAL_BIT and self._verifications:
            self._end_verification(header)
        first_offset = before.current_txn_first_offset
        if after.current_txn_first_offset == first_offset:
            return None
        if batch.marker is None:
            self._ongoing[after.current_txn_first_offset] = producer_id
            return None
        is_aborted = batch.marker.type is ControlType.ABORT
        return CompletedTxn(producer_id, first_offset, batch.base_offset, is_aborted)

    def stable_offset_after(self, completed: CompletedTxn) -> int:
        """Return the last stable offset once this transaction has ended."""
        others = (first for first, producer_id in self._ongoing.items() if producer_id != completed.producer_id)
        return next(others, completed.last_offset + 1)

    def complete(self, completed: CompletedTxn) -> None:
        """Mark a transaction as ended. It still holds back the last stable offset until its marker is replicated."""
        del self._ongoing[completed.first_offset]
        self._unreplicated.append((completed.first_offset, completed.last_offset))

    def forget_replicated(self, offset: int) -> None:
        """Drop ended transactions whose markers are before `offset`, because they are replicated or deleted."""
        if self._unreplicated:
            replicated = bisect_left(self._unreplicated, offset, key=lambda ended: ended[1])
            del self._unreplicated[:replicated]

    def first_unstable_offset(self) -> int | None:
        """Return the first offset of a transaction that has not ended, or that ended above the high watermark."""
        first = next(iter(self._ongoing), None)
        if self._unreplicated:
            unreplicated = min(self._unreplicated)[0]
            return unreplicated if first is None else min(first, unreplicated)
        return first

    @property
    def count(self) -> int:
        return len(self._states)

    def keep_at_most(self, count: int) -> None:
        """Forget producers above that number, idle ones first, but none with an ongoing transaction.

        A producer that was forgotten may go on: any sequence may be its next. Only duplicates of its last batches are
        no longer found.
        """
        for _ in range(min(len(self._states) - count, _MAX_FORGOTTEN)):
            oldest = [self._states.pop(producer_id) for producer_id in list(islice(self._states, _COMPARED))]
            idle = [state for state in oldest if state.current_txn_first_offset == NO_OFFSET]
            gone = min(idle, key=lambda state: state.last_data_offset, default=None)
            self._states.update((state.producer_id, state) for state in oldest if state is not gone)

    def remove_expired(self, now_ms: int, expiration_ms: int) -> None:
        """Remove producers that have been idle for that long, except those with an ongoing transaction."""
        gone = [state.producer_id for state in self._states.values() if is_expired(state, now_ms, expiration_ms)]
        for producer_id in gone:
            del self._states[producer_id]
        for producer_id, verification in list(self._verifications.items()):
            if now_ms - verification.started_ms >= expiration_ms:
                del self._verifications[producer_id]

    # Verification of transactions before their first write (KIP-890)

    def has_ongoing_transaction(self, producer_id: int, producer_epoch: int) -> bool:
        state = self._states.get(producer_id)
        return state is not None and _is_ongoing(state, producer_epoch)

    def maybe_start_verification(
        self, producer_id: int, sequence: int, producer_epoch: int, supports_epoch_bump: bool, now_ms: int
    ) -> int | None:
        """Return a guard to append with once the coordinator has agreed, or None if the transaction is ongoing here."""
        state = self._states.get(producer_id)
        if state is not None:
            _check_not_fenced(state, producer_epoch)
            if _is_ongoing(state, producer_epoch):
                return None
        verification = self._verifications.get(producer_id)
        if verification is None:
            self._guards += 1
            verification = _Verification(self._guards, now_ms, sequence, producer_epoch, supports_epoch_bump)
            self._verifications[producer_id] = verification
        verification.note(sequence, producer_epoch)
        return verification.guard

    def verification_guard(self, producer_id: int) -> int | None:
        verification = self._verifications.get(producer_id)
        return None if verification is None else verification.guard

    def _is_verified(self, producer_id: int, guard: int | None) -> bool:
        return guard is not None and guard == self.verification_guard(producer_id)

    def _end_verification(self, header: BatchHeader) -> None:
        verification = self._verifications.get(header.producer_id)
        if verification is None:
            return
        # A marker may end the transaction before the one being verified: with an epoch bump, it already has the new
        # epoch.
        is_next = verification.supports_epoch_bump and header.is_control
        if not (is_next and header.producer_epoch == verification.epoch):
            del self._verifications[header.producer_id]


def _hash(state: ProducerState) -> int:
    return (state.producer_id ^ state.producer_id >> 32) & 0xFFFFFFFF


def is_expired(state: ProducerState, now_ms: int, expiration_ms: int) -> bool:
    return state.current_txn_first_offset == NO_OFFSET and now_ms - state.last_timestamp >= expiration_ms


def _is_ongoing(state: ProducerState, producer_epoch: int) -> bool:
    return state.current_txn_first_offset != NO_OFFSET and state.producer_epoch == producer_epoch


def _check_not_fenced(state: ProducerState, producer_epoch: int) -> None:
    if producer_epoch < state.producer_epoch:
        raise _fenced(state, producer_epoch)


def _check_marker(
    state: ProducerState, producer_epoch: int, marker: EndTxnMarker | None, transaction_version: int
) -> None:
    if marker is None:
        raise BatchError("a control batch without a marker")
    if transaction_version == UNKNOWN_TRANSACTION_VERSION:
        # Any client may send one without; Kafka's answer is that of an exception it does not expect.
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "a marker needs a transaction version")
    if transaction_version < 2:
        _check_not_fenced(state, producer_epoch)
    elif producer_epoch <= state.producer_epoch:
        # Markers of version 2 increase the epoch. One that does not is a retry, unless the epoch is already the
        # largest.
        is_retry = state.current_txn_first_offset == NO_OFFSET or producer_epoch == _MAX_EPOCH
        if producer_epoch < state.producer_epoch or not is_retry:
            raise _fenced(state, producer_epoch)
    if marker.coordinator_epoch < state.coordinator_epoch:
        raise KafkaError(
            ErrorCode.TRANSACTION_COORDINATOR_FENCED,
            f"coordinator epoch {marker.coordinator_epoch} of a marker for producer {state.producer_id} "
            f"is older than {state.coordinator_epoch}, which is already in the log",
        )


def _fenced(state: ProducerState, producer_epoch: int) -> KafkaError:
    message = (
        f"producer {state.producer_id} has epoch {producer_epoch}, older than its last one, {state.producer_epoch}"
    )
    return KafkaError(ErrorCode.INVALID_PRODUCER_EPOCH, message)


def _out_of_order(producer_id: int, sequence: int, why: str) -> KafkaError:
    message = f"producer {producer_id} sent sequence {sequence}, but {why}"
    return KafkaError(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, message)
