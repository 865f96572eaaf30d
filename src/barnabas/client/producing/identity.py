"""The identity of a producer: id, epoch, and the state of its transaction. The state machine is a table.

Its one rule: a transaction with an error is never committed. After an error only `abort_transaction` is possible. After
a fatal one, from another producer with the same transactional id or missing permissions, only `close` is.
"""

from __future__ import annotations

from enum import Enum

from barnabas.batches import NO_PRODUCER_EPOCH, NO_PRODUCER_ID
from barnabas.client.records import TopicPartition
from barnabas.wire import ErrorCode, KafkaError

MAX_EPOCH = 32767
NOBODY = (NO_PRODUCER_ID, NO_PRODUCER_EPOCH)


class State(Enum):
    """State of a transactional producer."""

    NEW = "before init_transactions"
    READY = "outside of a transaction"
    OPEN = "in a transaction"
    COMMITTING = "committing"
    ABORTING = "aborting"
    FAILED = "in a transaction that failed: only abort is left"
    FENCED = "fenced: another producer has its transactional.id, or it has no permission for it"


TRANSITIONS: dict[State, frozenset[State]] = {
    State.NEW: frozenset({State.READY, State.FENCED}),
    State.READY: frozenset({State.OPEN, State.READY, State.FENCED}),
    State.OPEN: frozenset({State.COMMITTING, State.ABORTING, State.FAILED, State.FENCED}),
    State.COMMITTING: frozenset({State.READY, State.COMMITTING, State.FAILED, State.FENCED}),
    State.ABORTING: frozenset({State.READY, State.ABORTING, State.FAILED, State.FENCED}),
    State.FAILED: frozenset({State.ABORTING, State.FAILED, State.FENCED}),
    State.FENCED: frozenset({State.FENCED}),
}

FATAL = frozenset(
    {
        ErrorCode.PRODUCER_FENCED,
        ErrorCode.INVALID_PRODUCER_EPOCH,
        ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
        ErrorCode.UNSUPPORTED_VERSION,
        ErrorCode.INVALID_PRODUCER_ID_MAPPING,
        ErrorCode.TRANSACTIONAL_ID_NOT_FOUND,
    }
)
"""Errors of the coordinator that end a transactional producer."""

FATAL_TO_BATCHES = FATAL - {ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.INVALID_PRODUCER_ID_MAPPING}
"""Errors of Produce that end a transactional producer. The two that are left out may be solved by a new epoch."""


class Identity:
    """The id and epoch of an idempotent producer, and the transaction of a transactional one."""

    def __init__(self, transactional_id: str | None) -> None:
        self.transactional_id = transactional_id
        self.producer = NOBODY
        self.state = State.NEW
        self.error: Exception | None = None
        self.is_v2 = False  # transactions version 2: brokers add partitions, and every transaction has a new epoch
        self.needs_bump = False  # get a new epoch after the abort: sequence numbers have a gap
        self.new_partitions: set[TopicPartition] = set()
        self.partitions: set[TopicPartition] = set()
        self.is_started = False  # the coordinator has an open transaction

    @property
    def is_transactional(self) -> bool:
        return self.transactional_id is not None

    def known(self, producer_id: int, producer_epoch: int) -> None:
        self.producer = (producer_id, producer_epoch)
        self.needs_bump = False

    def bump(self) -> None:
        """Take the next epoch. After the last one the producer has no id, and has to request a new one."""
        producer_id, epoch = self.producer
        self.producer = (producer_id, epoch + 1) if epoch < MAX_EPOCH else NOBODY

    def go(self, state: State) -> None:
        if state not in TRANSITIONS[self.state]:
            raise KafkaError(ErrorCode.INVALID_TXN_STATE, f"the producer is {self.state.value}")
        self.state = state

    def begin(self) -> None:
        self.check_usable()
        self.go(State.OPEN)
        self.error = None
        self.new_partitions.clear()
        self.partitions.clear()
        self.is_started = False

    def touch(self, partition: TopicPartition) -> None:
        """Add a partition that a record is about to be written to. Raises `KafkaError` outside of a transaction."""
        if self.state is not State.OPEN:
            self.check_usable()
            raise KafkaError(
                ErrorCode.INVALID_TXN_STATE, f"records need a transaction; the producer is {self.state.value}"
            )
        if partition not in self.partitions:
            if self.is_v2:
                self.partitions.add(partition)
                self.is_started = True
            else:
                self.new_partitions.add(partition)

    def added(self, partitions: set[TopicPartition]) -> None:
        self.partitions |= partitions
        self.new_partitions -= partitions
        self.is_started = True

    def fail(self, error: Exception, *, is_fatal: bool) -> None:
        """Note an error that cannot be retried: the transaction fails or, if it is fatal, the producer."""
        if not self.is_transactional or self.state is State.FENCED:
            return
        self.error = error
        if is_fatal:
            self.state = State.FENCED
        elif self.state in (State.OPEN, State.COMMITTING):
            self.state = State.FAILED

    def check_usable(self) -> None:
        """Raise the error that failed the transaction or the producer, if there is one."""
        if self.state in (State.FAILED, State.FENCED) and self.error is not None:
            raise self.error
