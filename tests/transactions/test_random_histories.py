"""Random histories of producers, crashes, timeouts and failing partitions: a transaction ends everywhere in the same way.

The model is what a user relies on, and knows nothing of states: each transaction has a number; its records are in partitions,
which check epochs as logs do; and whatever happens, all its partitions have the same end, which is the one its producer was
told of.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas import wire
from barnabas.batches import build_batch
from barnabas.batches.format import Record
from barnabas.replicated.decision import Producer
from barnabas.storage.checkpoints import TopicPartition
from barnabas.transactions.coordinator import Operation
from barnabas.transactions.markers import EndedTransaction
from barnabas.transactions.state import Transaction, TransactionState, record
from barnabas.wire import ErrorCode, KafkaError
from tests.transactions.world import T, World

IDS = ["a", "b"]
TIMEOUT_MS = 5_000
FENCING = {
    ErrorCode.PRODUCER_FENCED,
    ErrorCode.INVALID_PRODUCER_EPOCH,
    ErrorCode.INVALID_PRODUCER_ID_MAPPING,
    ErrorCode.INVALID_TXN_STATE,
    ErrorCode.TRANSACTION_ABORTABLE,
}


class Data:
    """A partition's log as far as transactions go: the last epoch of each producer, and what is open."""

    def __init__(self) -> None:
        self.epochs: dict[int, int] = {}
        self.coordinator_epochs: dict[int, int] = {}
        self.open: dict[int, int] = {}
        self.ends: dict[int, bool] = {}  # of a transaction that was here, whether it was committed

    def write(self, producer: Producer, number: int) -> bool:
        producer_id, epoch = producer[:2]
        if epoch < self.epochs.get(producer_id, -1):
            return False
        self.epochs[producer_id] = epoch
        assert self.open.setdefault(producer_id, number) == number, "two transactions are one"
        assert number not in self.ends, "a transaction goes on after its end"
        return True

    def marker(self, ended: EndedTransaction) -> ErrorCode:
        producer_id, epoch = ended.producer[:2]
        last = self.epochs.get(producer_id, -1)
        is_again = epoch == last and producer_id not in self.open
        if epoch < last or (ended.transaction_version >= 2 and epoch == last and not is_again):
            return ErrorCode.INVALID_PRODUCER_EPOCH
        if ended.marker.coordinator_epoch < self.coordinator_epochs.get(producer_id, -1):
            return ErrorCode.TRANSACTION_COORDINATOR_FENCED
        self.epochs[producer_id] = epoch
        self.coordinator_epochs[producer_id] = ended.marker.coordinator_epoch
        if producer_id in self.open:
            self.ends[self.open.pop(producer_id)] = ended.marker.is_commit
        return ErrorCode.NONE


class Client:
    """A producer as long as it lives, which may be longer than it is welcome."""

    def __init__(self, transactional_id: str, producer: Producer, version: int) -> None:
        self.transactional_id = transactional_id
        self.producer = producer
        self.version = version
        self.number: int | None = None  # of the transaction that goes on
        self.last_end: tuple[Producer, bool] | None = None


class History(World):
    """A world with data, and what its producers were told."""

    def __init__(self, transaction_version: int) -> None:
        super().__init__(transaction_version=transaction_version, partitions=2)
        self.version = transaction_version
        self.data = {partition: Data() for partition in T}
        self.clients: list[Client] = []
        self.told: dict[int, bool] = {}
        self.where: dict[int, set[TopicPartition]] = {}
        self.granted: set[tuple[int, int]] = set()

    async def write_markers(
        self, partitions: Sequence[TopicPartition], ended: EndedTransaction
    ) -> dict[TopicPartition, ErrorCode]:
        return {each: self.refusing.get(each) or self.data[each].marker(ended) for each in partitions}

    def client(self, number: int) -> Client | None:
        return self.clients[-1 - number % len(self.clients)] if self.clients else None

    # --- what may happen

    async def take(self, which: int, version: int) -> None:
        transactional_id = IDS[which % len(IDS)]
        try:
            producer = await self.coordinator.init_producer_id(transactional_id, TIMEOUT_MS)
        except KafkaError as error:
            assert error.code is ErrorCode.CONCURRENT_TRANSACTIONS, error
            return
        assert producer[:2] not in self.granted, "an epoch was given twice"
        self.granted.add(producer[:2])
        self.clients.append(Client(transactional_id, producer, 2 if version and self.version == 2 else 0))

    async def write(self, which: int, where: int) -> None:
        client, partition = self.client(which), T[where % len(T)]
        if client is None:
            return
        operation = Operation.ADD if client.version == 2 else Operation.VERIFY_OR_ABORT
        try:
            if client.version < 2:
                await self.coordinator.add_partitions(client.transactional_id, client.producer, [partition], 0)
            errors = await self.coordinator.add_or_verify(
                client.transactional_id, *client.producer[:2], [partition], operation
            )
        except KafkaError as error:
            errors = {partition: error.code}
        if errors:
            assert errors[partition] in {*FENCING, ErrorCode.CONCURRENT_TRANSACTIONS}
            return
        if client.number is None:
            client.number = len(self.where)
            self.where[client.number] = set()
        if self.data[partition].write(client.producer, client.number):
            self.where[client.number].add(partition)

    async def end_one(self, which: int, commits: int) -> None:
        client = self.client(which)
        if client is None:
            return
        is_commit = bool(commits % 2)
        before = client.producer
        following = await self._end(client, before, is_commit)
        if following is None:
            return
        if client.number is not None:
            self.told[client.number] = is_commit
        client.number, client.last_end = None, (before, is_commit)
        if client.version == 2:
            assert following[:2] not in self.granted, "an epoch was given twice"
            self.granted.add(following[:2])
            client.producer = following

    async def end_again(self, which: int, _: int) -> None:
        """The answer to the last end did not come: the same is asked again, and changes nothing."""
        client = self.client(which)
        if client is None or client.last_end is None or client.number is not None:
            return
        following = await self._end(client, *client.last_end)
        if following is not None and client.version == 2:
            assert following[:2] == client.producer[:2]

    async def _end(self, client: Client, producer: Producer, is_commit: bool) -> Producer | None:
        try:
            return await self.coordinator.end(
                client.transactional_id, producer, is_commit=is_commit, client_transaction_version=client.version
            )
        except KafkaError as error:
            assert error.code in {*FENCING, ErrorCode.CONCURRENT_TRANSACTIONS}, error
            return None

    async def wait(self, how_long: int, _: int) -> None:
        await self.wait_ms((20, 1_000, 6_000, 11_000)[how_long % 4])

    async def crash(self, _: int, __: int) -> None:
        await self.restart()

    async def end_in_a_crash(self, which: int, commits: int) -> None:
        """Some markers are written and some are not when the node is killed."""
        self.refusing[T[commits % len(T)]] = ErrorCode.NOT_LEADER_OR_FOLLOWER
        await self.end_one(which, commits)
        await self.settle()
        await self.restart()

    async def fail(self, where: int, _: int) -> None:
        self.refusing[T[where % len(T)]] = ErrorCode.NOT_LEADER_OR_FOLLOWER

    async def heal(self, _: int, __: int) -> None:
        self.refusing.clear()

    # --- what has to be true in the end

    def check(self) -> None:
        transactions = {each.transactional_id: each for each in self.coordinator.all()}
        for number, partitions in self.where.items():
            ends = {self.data[each].ends.get(number) for each in partitions}
            assert len(ends) <= 1, f"transaction {number} has ended here and not there"
            if number in self.told:
                assert ends <= {self.told[number]}, f"the producer of transaction {number} was told otherwise"
        for partition, data in self.data.items():
            for producer_id in data.open:
                (of,) = (each for each in transactions.values() if each.producer_id == producer_id)
                assert of.state is TransactionState.ONGOING
                assert partition in of.partitions, "records that nobody will ever end"
        assert not [each for each in transactions.values() if each.state.name.startswith("PREPARE")]


ACTIONS: list[Any] = [
    *[History.take] * 2,
    *[History.write] * 6,
    *[History.end_one] * 4,
    *[History.end_in_a_crash] * 2,
    History.end_again,
    History.wait,
    History.crash,
    History.fail,
    *[History.heal] * 2,
]
STEPS = st.lists(
    st.tuples(st.sampled_from(ACTIONS), st.integers(0, 5), st.integers(0, 5)).map(tuple), min_size=5, max_size=50
)


def _near_the_last_epoch(transactional_id: str, producer_id: int) -> bytes:
    at = Transaction(
        transactional_id,
        producer_id,
        producer_id,
        -1,
        32764,
        TIMEOUT_MS,
        TransactionState.EMPTY,
        frozenset(),
        -1,
        1 << 42,
        0,
    )
    (key, value), version = record(at, 1)
    assert value is not None
    return build_batch([Record(0, 0, wire.encode_record(key, 0), wire.encode_record(value, version))])


@pytest.mark.parametrize("is_near_the_last_epoch", [False, True])
@pytest.mark.parametrize("transaction_version", [1, 2])
@settings(max_examples=40, deadline=None)
@given(steps=STEPS)
def test_a_transaction_ends_everywhere_in_the_same_way(
    transaction_version: int, is_near_the_last_epoch: bool, steps: list[tuple[Any, int, int]]
) -> None:
    async def scenario(history: World) -> None:
        assert isinstance(history, History)
        for action, first, second in [(History.take, 0, 1), (History.take, 1, 1), *steps]:
            await action(history, first, second)
            await history.settle()
        history.refusing.clear()
        for _ in range(5):
            await history.wait_ms(1_000)
        history.check()
        images = [machine.image for machine in history.coordinator.machines.loaded()]
        await history.restart()
        assert [machine.image for machine in history.coordinator.machines.loaded()] == images

    history = History(transaction_version)
    if is_near_the_last_epoch:
        for number, transactional_id in enumerate(IDS):
            log = history.logs[_partition_of(transactional_id)]
            log.append_records(_near_the_last_epoch(transactional_id, number), 0)
    history.run(scenario)


def _partition_of(transactional_id: str) -> int:
    return ord(transactional_id) % 2  # one letter is its own hash


def test_the_model_sees_what_is_wrong() -> None:
    data, producer = Data(), Producer(1, 0)
    assert data.write(producer, 0)
    with pytest.raises(AssertionError):
        data.write(producer, 1)
