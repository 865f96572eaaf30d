"""The transaction coordinator of a node: runs decisions on the machines it leads, sends markers, and runs the timers.

Its one rule: every transaction that is prepared in a committed image is being ended by a task, whoever prepared it and
whether or not a client waits. So a transaction that was prepared before a crash is ended after it. Decisions are in
`decide`. Requests and their authorization are in the broker's handlers.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Iterable
from enum import Enum
from functools import partial
from typing import Any, Final, NamedTuple, TypeVar

from barnabas.config.server_config import ServerConfig
from barnabas.metadata.image import MetadataImage
from barnabas.replicated.decision import Producer, Result
from barnabas.replicated.loop import Marker
from barnabas.replicated.machines import Coordinator, Machine, MachineLog, Machines
from barnabas.replicated.placement import partition_for
from barnabas.replicated.scheduler import Handle, Scheduler, pause
from barnabas.storage.checkpoints import TopicPartition
from barnabas.transactions import decide
from barnabas.transactions.markers import (
    FIRST_BACKOFF_MS,
    MAX_BACKOFF_MS,
    AskBroker,
    EndedTransaction,
    MarkerSender,
    TakenOverError,
    WriteMarkers,
)
from barnabas.transactions.producer_ids import ProducerIds
from barnabas.transactions.state import (
    EMPTY_IMAGE,
    NO_PRODUCER_EPOCH,
    PREPARED,
    TOPIC,
    Transaction,
    TransactionsImage,
    TransactionState,
    apply,
    by_topic,
)
from barnabas.wire import ErrorCode, KafkaError
from barnabas.wire.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnResponse

_log = logging.getLogger(__name__)

R = TypeVar("R")

TOMBSTONE_BATCH_BYTES: Final = 16_384
MAX_IDS: Final = "barnabas.transactional.ids.max.count"
MAX_OPEN: Final = "barnabas.transactions.max.open"
LOG_INTERVAL_MS: Final = 60_000
TRANSACTION_VERSION: Final = "transaction.version"

# The error for the client when an append of the coordinator fails.
_APPEND_ERRORS: Final = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
    ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.RECORD_LIST_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
}


class Operation(Enum):
    """The kind of check before a transactional write to a partition. It depends on the version of the request."""

    VERIFY = 0  # for clients that do not know TRANSACTION_ABORTABLE
    VERIFY_OR_ABORT = 1
    ADD = 2


def operation_of_produce(version: int) -> Operation:
    return Operation.ADD if version >= 12 else Operation.VERIFY_OR_ABORT if version == 11 else Operation.VERIFY


def operation_of_txn_offset_commit(version: int) -> Operation:
    return Operation.ADD if version >= 5 else Operation.VERIFY_OR_ABORT if version == 4 else Operation.VERIFY


class _Ending:
    """A transaction whose markers are being written. `remaining` are the partitions without one."""

    def __init__(self, transaction: Transaction) -> None:
        self.remaining = set(transaction.partitions)
        self.task: asyncio.Task[None] | None = None
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()


class _SoftState:
    """State of a machine that is not in its log. It is lost with leadership."""

    def __init__(self) -> None:
        self.last_producer_epochs: dict[str, int] = {}
        self.endings: dict[str, _Ending] = {}


class DescribedTransaction(NamedTuple):
    """A committed transaction, and the partitions that are still part of it."""

    transaction: Transaction
    partitions: Collection[TopicPartition]


class TransactionCoordinator:
    """The coordinator. `start` starts the timers; `elected` and `resigned` load and unload machines."""

    def __init__(
        self,
        config: Callable[[], ServerConfig],
        image: Callable[[], MetadataImage],
        scheduler: Scheduler,
        producer_ids: ProducerIds,
        write_markers: WriteMarkers,
        ask_broker: AskBroker | None = None,
    ) -> None:
        self._config = config
        self._image = image
        self._scheduler = scheduler
        self.producer_ids = producer_ids
        self._ask_broker = ask_broker
        self._markers = MarkerSender(config().node_id, image, write_markers, ask_broker, scheduler)
        self.refused_total = 0  # requests that would have exceeded a limit
        self._refusal_logged_ms = -LOG_INTERVAL_MS
        self._soft: dict[int, _SoftState] = {}
        self._timers: dict[str, Handle] = {}
        coordinator = Coordinator(TOPIC, "transaction", EMPTY_IMAGE, apply, self._loaded, self._unloaded)
        self.machines: Machines[TransactionsImage] = Machines(coordinator, scheduler.now_ms)

    # --- start and stop

    def start(self) -> None:
        self._repeat("transaction.abort.timed.out.transaction.cleanup.interval.ms", self.abort_timed_out)
        self._repeat("transaction.remove.expired.transaction.cleanup.interval.ms", self.forget_expired)

    def stop(self) -> None:
        for timer in self._timers.values():
            timer.cancel()
        self.machines.stop()
        self._markers.stop()
        self.producer_ids.stop()

    def elected(self, partition_id: int, leader_epoch: int, machine_log: MachineLog) -> None:
        """Load a partition of `__transaction_state` that this node now leads."""
        self.machines.elected(partition_id, leader_epoch, machine_log)

    def resigned(self, partition_id: int) -> None:
        self.machines.resigned(partition_id)

    def image_changed(self, old: MetadataImage, new: MetadataImage) -> None:
        """Retry markers at once if topics or leaders may have changed."""
        if old.topics is not new.topics:
            self._markers.look_again()

    def _repeat(self, interval: str, action: Callable[[], None]) -> None:
        def act() -> None:
            self._repeat(interval, action)
            action()

        self._timers[interval] = self._scheduler.call_later(self._config().get_int(interval), act)

    def _loaded(self, machine: Machine[TransactionsImage]) -> None:
        self._soft[machine.partition_id] = _SoftState()
        machine.loop.subscribe(partial(self._committed, machine))
        for transaction in machine.image.transactions.values():
            if transaction.state in PREPARED:
                self._begin_ending(machine, transaction)

    def _unloaded(self, machine: Machine[TransactionsImage]) -> None:
        soft = self._soft.pop(machine.partition_id)
        for ending in soft.endings.values():
            if ending.task is not None:
                ending.task.cancel()

    # --- machines

    def partition_of(self, transactional_id: str) -> int:
        """Return the partition of `__transaction_state` that a transactional id belongs to."""
        topic = self._image().topics.get(TOPIC)
        if topic is None:
            return partition_for(transactional_id, self._config().get_int("transaction.state.log.num.partitions"))
        return partition_for(transactional_id, len(topic.partitions))

    def machine_of(self, transactional_id: str) -> Machine[TransactionsImage]:
        """Return the machine of a transactional id. Raises NOT_COORDINATOR or COORDINATOR_LOAD_IN_PROGRESS."""
        return self.machines.machine(self.partition_of(transactional_id))

    @property
    def transaction_version(self) -> int:
        """The cluster's transaction.version."""
        return self._image().features.get(TRANSACTION_VERSION, 0)

    def _decide(
        self, decision: Callable[[decide.TransactionSituation], Result[R]], image: TransactionsImage
    ) -> Result[R]:
        """Run a decision, and claim the producer id if it used it.

        The id stays claimed even if the records cannot be appended, because they may have reached the disk.
        """
        situation = decide.TransactionSituation(
            image, self._scheduler.now_ms(), self.transaction_version, self.producer_ids.next_id
        )
        result = decision(situation)
        response = result.response
        if isinstance(response, decide.Outcome | decide.Ended) and response.claims_producer_id:
            self.producer_ids.claim()
        return result

    async def _write(
        self,
        machine: Machine[TransactionsImage],
        decision: Callable[[decide.TransactionSituation], Result[R]],
        note: Callable[[R], None] = lambda response: None,
    ) -> R:
        """Decide, append, call `note` with the response, and return it after the commit."""
        try:
            response = await machine.write_soon(partial(self._decide, decision), note)
            async with asyncio.timeout(self._config().get_int("request.timeout.ms") / 1000):
                await machine.wait_head_committed()
        except KafkaError as error:
            raise KafkaError(_APPEND_ERRORS.get(error.code, error.code)) from error
        except TimeoutError:
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE) from None  # it may still be committed
        return response

    # --- limits

    @property
    def transactional_id_count(self) -> int:
        return sum(len(machine.head.transactions) for machine in self.machines.loaded())

    @property
    def open_count(self) -> int:
        """The number of ongoing transactions."""
        return sum(len(machine.head.ongoing) for machine in self.machines.loaded())

    def _check_limit(self, count: int, setting: str) -> None:
        """Raise COORDINATOR_NOT_AVAILABLE at a limit: producers retry it until their own timeout."""
        limit = self._config().get_int(setting)
        if count < limit:
            return
        self.refused_total += 1
        now_ms = self._scheduler.now_ms()
        if now_ms - self._refusal_logged_ms >= LOG_INTERVAL_MS:
            self._refusal_logged_ms = now_ms
            _log.warning("%s=%d is reached: new ones wait. Raise the setting if all are needed.", setting, limit)
        raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, f"This broker has reached {setting}.")

    # --- requests of producers

    async def init_producer_id(
        self,
        transactional_id: str | None,
        timeout_ms: int,
        expected: Producer | None = None,
        *,
        enable_2pc: bool = False,
        keep_prepared: bool = False,
    ) -> Producer:
        """Return the producer id and epoch to use. Raises KafkaError."""
        if transactional_id is None:
            await self.producer_ids.wait_available()
            return Producer(self.producer_ids.claim(), 0)
        config = self._config()
        timeout_ms = decide.transaction_timeout_ms(
            transactional_id,
            timeout_ms,
            enable_2pc=enable_2pc,
            keep_prepared=keep_prepared,
            is_2pc_enabled=config.get_bool("transaction.two.phase.commit.enable"),
            max_timeout_ms=config.get_int("transaction.max.timeout.ms"),
        )
        head = self.machine_of(transactional_id).head
        if transactional_id not in head.transactions:
            self._check_limit(self.transactional_id_count, MAX_IDS)
        if decide.takes_producer_id(head, transactional_id):
            await self.producer_ids.wait_available()
        machine = self.machine_of(transactional_id)
        epochs = self._soft[machine.partition_id].last_producer_epochs

        def decision(situation: decide.TransactionSituation) -> Result[decide.Outcome]:
            last = epochs.get(transactional_id, NO_PRODUCER_EPOCH)
            return decide.init_producer_id(situation, transactional_id, timeout_ms, expected, last)

        def note(outcome: decide.Outcome) -> None:
            epochs[transactional_id] = outcome.last_producer_epoch

        outcome = await self._write(machine, decision, note)
        if outcome.is_fenced:
            raise KafkaError(ErrorCode.CONCURRENT_TRANSACTIONS)
        return Producer(outcome.transaction.producer_id, outcome.transaction.producer_epoch)

    async def add_partitions(
        self,
        transactional_id: str,
        producer: Producer,
        partitions: Iterable[TopicPartition],
        client_transaction_version: int,
    ) -> None:
        """Add partitions to a transaction. Raises KafkaError."""
        machine, wanted = self._asked(transactional_id), frozenset(partitions)
        if transactional_id in machine.head.transactions and transactional_id not in machine.head.ongoing:
            self._check_limit(self.open_count, MAX_OPEN)
        await self._write(
            machine,
            lambda situation: decide.add_partitions(
                situation, transactional_id, producer, wanted, client_transaction_version
            ),
        )

    async def verify_partitions(
        self, transactional_id: str, producer: Producer, partitions: Iterable[TopicPartition]
    ) -> dict[TopicPartition, ErrorCode]:
        """Return the partitions that are not in a transaction, each with its error. Raises KafkaError if all fail."""
        machine, wanted = self._asked(transactional_id), frozenset(partitions)
        return await self._write(
            machine,
            lambda situation: decide.verify_partitions(situation, transactional_id, producer, wanted),
        )

    async def end(
        self, transactional_id: str, producer: Producer, *, is_commit: bool, client_transaction_version: int
    ) -> Producer:
        """Commit or abort. Return the producer id and epoch of the next transaction, or -1 and -1 before version 2."""
        known = self._asked(transactional_id).head.transactions.get(transactional_id)
        if known is not None and known.is_epoch_exhausted:
            await self.producer_ids.wait_available()
        machine = self._asked(transactional_id)
        epochs = self._soft[machine.partition_id].last_producer_epochs

        def note(ended: decide.Ended) -> None:
            if ended.last_producer_epoch is not None:
                epochs[transactional_id] = ended.last_producer_epoch

        ended = await self._write(
            machine,
            lambda situation: decide.end(situation, transactional_id, producer, is_commit, client_transaction_version),
            note,
        )
        return ended.producer

    def _asked(self, transactional_id: str) -> Machine[TransactionsImage]:
        if not transactional_id:
            raise KafkaError(ErrorCode.INVALID_REQUEST)
        return self.machine_of(transactional_id)

    # --- requests of partition leaders, before they append transactional records

    async def add_or_verify(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        partitions: Iterable[TopicPartition],
        operation: Operation,
    ) -> dict[TopicPartition, ErrorCode]:
        """Return the partitions that must not be written to, each with its error. The others are ready.

        If another node is the coordinator, it is asked. On CONCURRENT_TRANSACTIONS the caller may `wait_ended` and
        retry, because markers usually take only a moment.
        """
        wanted = list(dict.fromkeys(partitions))
        if operation is not Operation.ADD and not self._config().get_bool("transaction.partition.verification.enable"):
            return {}
        producer = Producer(producer_id, producer_epoch)
        errors = await self._add_or_verify(transactional_id, producer, wanted, operation)
        return {partition: _to_writer(code, operation) for partition, code in errors.items()}

    async def wait_ended(self, transactional_id: str, timeout_ms: int) -> None:
        """Wait until the markers of a transaction are written, or until the timeout."""
        soft = self._soft.get(self.partition_of(transactional_id))
        ending = None if soft is None else soft.endings.get(transactional_id)
        # An abandoned ending is done, and there is nothing to wait for.
        sooner = None if ending is None or ending.done.done() else ending.done
        await pause(self._scheduler, timeout_ms, sooner)

    async def _add_or_verify(
        self, transactional_id: str, producer: Producer, partitions: list[TopicPartition], operation: Operation
    ) -> dict[TopicPartition, ErrorCode]:
        try:
            leader = self._leader_of(transactional_id)
            if leader == self._config().node_id:
                if operation is not Operation.ADD:
                    return await self.verify_partitions(transactional_id, producer, partitions)
                await self.add_partitions(transactional_id, producer, partitions, decide.EPOCH_BUMP_VERSION)
                return {}
            if leader < 0 or self._ask_broker is None:
                raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
            request = _add_request(transactional_id, producer, partitions, verify_only=operation is not Operation.ADD)
            return _errors_of(await self._ask_broker(leader, request))
        except KafkaError as error:
            return dict.fromkeys(partitions, error.code)
        except (OSError, TimeoutError):
            return dict.fromkeys(partitions, ErrorCode.NETWORK_EXCEPTION)

    def _leader_of(self, transactional_id: str) -> int:
        topic = self._image().topics.get(TOPIC)
        return -1 if topic is None else topic.partitions[self.partition_of(transactional_id)].leader

    # --- requests of administrators

    def now_ms(self) -> int:
        """Return the time used for the start and end of transactions."""
        return self._scheduler.now_ms()

    def describe(self, transactional_id: str) -> DescribedTransaction:
        """Return a transaction. Raises TRANSACTIONAL_ID_NOT_FOUND, and the errors of `machine_of`."""
        machine = self._asked(transactional_id)
        transaction = machine.image.transactions.get(transactional_id)
        if transaction is None:
            raise KafkaError(ErrorCode.TRANSACTIONAL_ID_NOT_FOUND)
        ending = self._soft[machine.partition_id].endings.get(transactional_id)
        return DescribedTransaction(transaction, ending.remaining if ending else transaction.partitions)

    def all(self) -> list[Transaction]:
        """Return all transactions of this node, in no particular order. Raises COORDINATOR_LOAD_IN_PROGRESS."""
        if self.machines.is_loading:
            raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        return [each for machine in self.machines.loaded() for each in machine.image.transactions.values()]

    # --- ending transactions

    def _committed(
        self, machine: Machine[TransactionsImage], old: TransactionsImage, new: TransactionsImage, records: Any
    ) -> None:
        for key, value in records:
            if value is not None and value.transaction_status in PREPARED:
                self._begin_ending(machine, new.transactions[key.transactional_id])

    def _begin_ending(self, machine: Machine[TransactionsImage], transaction: Transaction) -> None:
        endings = self._soft[machine.partition_id].endings
        ending = endings[transaction.transactional_id] = _Ending(transaction)
        ending.task = asyncio.get_running_loop().create_task(self._end(machine, transaction, ending, endings))

    async def _end(
        self,
        machine: Machine[TransactionsImage],
        prepared: Transaction,
        ending: _Ending,
        endings: dict[str, _Ending],
    ) -> None:
        completed = decide.complete(prepared, self._scheduler.now_ms())
        ended = EndedTransaction(
            Producer(prepared.producer_id, prepared.producer_epoch),
            Marker(prepared.state is TransactionState.PREPARE_COMMIT, machine.leader_epoch),
            prepared.client_transaction_version,
        )
        try:
            await self._markers.send(ended, ending.remaining)
            await self._write_completed(machine, prepared, completed)
            if endings.get(prepared.transactional_id) is ending:
                del endings[prepared.transactional_id]
        except (TakenOverError, KafkaError) as error:
            _log.warning("stopped ending the transaction of %s on this node: %s", prepared.transactional_id, error)
        finally:
            if not ending.done.done():
                ending.done.set_result(None)

    async def _write_completed(
        self, machine: Machine[TransactionsImage], prepared: Transaction, completed: Transaction
    ) -> None:
        """Write that a transaction is complete.

        Raises KafkaError if this node lost leadership; the new leader ends it again.
        """
        backoff_ms = FIRST_BACKOFF_MS
        while True:
            try:
                return await self._write(
                    machine, lambda situation: decide.write_completed(situation, prepared, completed)
                )
            except KafkaError as error:
                if error.code is not ErrorCode.COORDINATOR_NOT_AVAILABLE:
                    raise
            await pause(self._scheduler, backoff_ms)
            backoff_ms = min(backoff_ms * 2, MAX_BACKOFF_MS)

    # --- timers

    def abort_timed_out(self) -> None:
        """Abort the transactions that have timed out, and fence their producers."""
        for machine in self.machines.loaded():
            for transactional_id in decide.timed_out(machine.head, self._scheduler.now_ms()):
                self._abort_timed_out(machine, transactional_id)

    def _abort_timed_out(self, machine: Machine[TransactionsImage], transactional_id: str) -> None:
        try:
            outcome = machine.write_nowait(
                partial(self._decide, lambda situation: decide.abort_timed_out(situation, transactional_id))
            )
        except KafkaError as error:
            _log.warning("could not abort the timed out transaction of %s, will retry: %s", transactional_id, error)
            self.producer_ids.refill()  # it may need an id
            return
        if outcome is not None:
            epochs = self._soft[machine.partition_id].last_producer_epochs
            epochs[transactional_id] = outcome.last_producer_epoch
            _log.info("aborting the transaction of %s, which has timed out", transactional_id)

    def forget_expired(self) -> None:
        """Remove the transactional ids that have expired."""
        expiration_ms = self._config().get_int("transactional.id.expiration.ms")
        now_ms = self._scheduler.now_ms()
        for machine in self.machines.loaded():
            epochs = self._soft[machine.partition_id].last_producer_epochs
            for batch in _cut(decide.expired(machine.head, now_ms, expiration_ms)):
                try:
                    machine.write_nowait(partial(decide.forget, batch, now_ms, expiration_ms))
                except KafkaError as error:
                    _log.warning("could not remove expired transactional ids, will retry: %s", error)
                    break
                for transactional_id in batch:
                    epochs.pop(transactional_id, None)


def _cut(transactional_ids: Iterable[str]) -> Iterable[list[str]]:
    """Yield lists of ids whose tombstones fit into one batch."""
    batch: list[str] = []
    size = 0
    for transactional_id in transactional_ids:
        size += len(transactional_id.encode()) + 20
        if batch and size > TOMBSTONE_BATCH_BYTES:
            yield batch
            batch, size = [], 0
        batch.append(transactional_id)
    if batch:
        yield batch


def _to_writer(code: ErrorCode, operation: Operation) -> ErrorCode:
    """Convert an error for the producer that writes records."""
    if code is ErrorCode.PRODUCER_FENCED:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    if code is ErrorCode.TRANSACTION_ABORTABLE and operation is Operation.VERIFY:
        return ErrorCode.INVALID_TXN_STATE
    return code


def _add_request(
    transactional_id: str, producer: Producer, partitions: list[TopicPartition], *, verify_only: bool
) -> AddPartitionsToTxnRequest:
    return AddPartitionsToTxnRequest(
        transactions=[
            AddPartitionsToTxnRequest.AddPartitionsToTxnTransaction(
                transactional_id=transactional_id,
                producer_id=producer.producer_id,
                producer_epoch=producer.producer_epoch,
                verify_only=verify_only,
                topics=[
                    AddPartitionsToTxnRequest.AddPartitionsToTxnTopic(name=topic, partitions=indexes)
                    for topic, indexes in by_topic(frozenset(partitions)).items()
                ],
            )
        ]
    )


def _errors_of(response: AddPartitionsToTxnResponse) -> dict[TopicPartition, ErrorCode]:
    """Return the errors by partition. Raises KafkaError if the whole request failed."""
    code = ErrorCode(response.error_code)
    if code is ErrorCode.CLUSTER_AUTHORIZATION_FAILED:
        code = ErrorCode.INVALID_TXN_STATE  # missing authorization between brokers must not be visible to the client
    if code:
        raise KafkaError(code)
    return {
        TopicPartition(topic.name, each.partition_index): ErrorCode(each.partition_error_code)
        for transaction in response.results_by_transaction
        for topic in transaction.topic_results
        for each in topic.results_by_partition
        if each.partition_error_code
    }
