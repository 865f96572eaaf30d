"""The transaction coordinator: decisions on machines, markers, time, and what survives a crash."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

import pytest

from barnabas.replicated.decision import Producer, Result
from barnabas.storage.checkpoints import TopicPartition
from barnabas.transactions.coordinator import Operation, operation_of_produce, operation_of_txn_offset_commit
from barnabas.transactions.markers import EndedTransaction
from barnabas.transactions.state import TransactionState, record
from barnabas.wire import ErrorCode, KafkaError
from barnabas.wire.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnResponse
from tests.replicated.memory_log import MemoryLog
from tests.transactions.world import ID, T, World, refusal, topic_records

STATE = TransactionState
NONE, CONCURRENT = ErrorCode.NONE, ErrorCode.CONCURRENT_TRANSACTIONS
FENCED = ErrorCode.PRODUCER_FENCED

Scenario = Callable[[World], Awaitable[None]]


def in_world(scenario: Scenario) -> Callable[[], None]:
    """A test of a coroutine in a world of its own."""

    def test() -> None:
        World().run(scenario)

    test.__name__ = scenario.__name__
    test.__doc__ = scenario.__doc__
    return test


@in_world
async def test_each_commit_and_each_abort_is_an_epoch(world: World) -> None:
    producer = await world.begin()
    for is_commit in (True, False, True):
        await world.add(producer, T[0], T[1])
        producer = await world.end(producer, is_commit=is_commit)
        await world.settle()
    assert producer == Producer(1000, 3)
    assert world.written_markers == [
        (partition, 1000, epoch, is_commit)
        for epoch, is_commit in ((1, True), (2, False), (3, True))
        for partition in (0, 1)
    ]
    assert world.state() is STATE.COMPLETE_COMMIT


@in_world
async def test_old_clients_stay_in_their_epoch(world: World) -> None:
    producer = await world.begin()
    await world.add(producer, T[0], version=0)
    assert await world.end(producer, version=0) == Producer(-1, -1)
    await world.settle()
    assert world.written_markers == [(0, 1000, 0, True)]
    assert [ended.transaction_version for _, ended in world.markers] == [0]


@in_world
async def test_while_markers_are_under_way_nothing_else_happens(world: World) -> None:
    world.refusing[T[1]] = ErrorCode.NOT_ENOUGH_REPLICAS
    producer = await world.begin()
    await world.add(producer, T[0], T[1])
    following = await world.end(producer)
    await world.settle()
    assert world.state() is STATE.PREPARE_COMMIT
    assert list(world.coordinator.describe(ID).partitions) == [T[1]]
    assert await refusal(world.add(following, T[0])) is CONCURRENT
    assert await refusal(world.end(producer)) is CONCURRENT
    assert await refusal(world.begin()) is CONCURRENT
    world.refusing.clear()
    await world.wait_ms(2_000)
    assert world.state() is STATE.COMPLETE_COMMIT
    assert sorted(partition for partition, *_ in world.written_markers) == [0, 1]
    await world.add(following, T[0])


@in_world
async def test_an_end_that_is_asked_again_is_answered_again(world: World) -> None:
    producer = await world.begin()
    await world.add(producer, T[0])
    first = await world.end(producer)
    await world.settle()
    assert await world.end(producer) == first
    assert len(world.markers) == 1


@in_world
async def test_who_begins_anew_fences_who_had_the_id(world: World) -> None:
    old = await world.begin()
    await world.add(old, T[0])
    assert await refusal(world.begin()) is CONCURRENT  # the transaction that goes on is aborted first
    await world.settle()
    assert world.written_markers == [(0, 1000, 1, False)]
    new = await world.begin()
    assert new == Producer(1000, 2)
    assert await refusal(world.add(old, T[0])) is FENCED
    assert await refusal(world.end(old)) is FENCED


@in_world
async def test_a_producer_that_recovers_keeps_its_id(world: World) -> None:
    producer = await world.begin()
    recovered = await world.coordinator.init_producer_id(ID, 60_000, producer)
    assert recovered == Producer(producer.producer_id, producer.producer_epoch + 1)
    assert await world.coordinator.init_producer_id(ID, 60_000, producer) == recovered
    other = await world.begin()
    assert await refusal(world.coordinator.init_producer_id(ID, 60_000, producer)) is FENCED
    assert other.producer_epoch == recovered.producer_epoch + 1


@in_world
async def test_a_transaction_that_takes_too_long_is_aborted(world: World) -> None:
    producer = await world.begin(timeout_ms=5_000)
    await world.add(producer, T[0])
    await world.wait_ms(4_000)
    assert world.state() is STATE.ONGOING
    await world.wait_ms(10_000)
    assert world.state() is STATE.COMPLETE_ABORT
    assert world.written_markers == [(0, 1000, 1, False)]
    assert await refusal(world.end(producer)) is ErrorCode.INVALID_TXN_STATE
    assert await refusal(world.add(producer, T[0])) is FENCED


@in_world
async def test_an_id_that_nobody_uses_is_forgotten(world: World) -> None:
    await world.begin()
    await world.begin("other")
    week_ms = world.config.get_int("transactional.id.expiration.ms")
    await world.wait_ms(week_ms - 1_000)
    await world.begin("other")
    await world.wait_ms(3_600_000)
    assert await refusal(_described(world)) is ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
    assert world.found("other").producer_id != (await world.begin()).producer_id
    await world.restart()
    assert {each.transactional_id for each in world.coordinator.all()} == {ID, "other"}


async def _described(world: World) -> None:
    world.coordinator.describe(ID)


@in_world
async def test_a_producer_id_is_claimed_by_the_decision_that_uses_it(world: World) -> None:
    ids = world.coordinator.producer_ids
    assert await world.begin() == Producer(1000, 0)
    assert await world.begin() == Producer(1000, 1)
    assert ids.next_id == 1001
    assert await refusal(world.begin("other", timeout_ms=-1)) is ErrorCode.INVALID_TRANSACTION_TIMEOUT
    assert ids.next_id == 1001
    world.logs[0].refuses = KafkaError(ErrorCode.KAFKA_STORAGE_ERROR)
    assert await refusal(world.begin("other")) is ErrorCode.NOT_COORDINATOR
    world.logs[0].refuses = None
    assert await world.begin("other") == Producer(1002, 0)  # 1001 may be on the disk


@in_world
async def test_a_late_transaction_in_its_last_epoch_waits_for_a_producer_id(world: World) -> None:
    producer = await world.begin(timeout_ms=5_000)
    await world.add(producer, T[0])
    machine = world.coordinator.machine_of(ID)
    last = world.found()._replace(producer_epoch=32766)
    machine.write_nowait(lambda image: Result([record(last, 2)], None))
    world.refuses_ids = KafkaError(ErrorCode.NOT_CONTROLLER)
    while world.coordinator.producer_ids.next_id is not None:
        world.coordinator.producer_ids.claim()
    await world.settle()
    world.refuses_ids = None
    await world.wait_ms(15_000)
    assert world.state() is STATE.ONGOING
    await world.wait_ms(15_000)
    assert (world.state(), world.found().producer_id, world.found().producer_epoch) == (STATE.COMPLETE_ABORT, 2000, 0)


@in_world
async def test_a_deleted_partition_needs_no_marker(world: World) -> None:
    producer = await world.begin()
    world.refusing = dict.fromkeys(T, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    await world.add(producer, *T)
    await world.end(producer)
    await world.settle()
    assert world.state() is STATE.PREPARE_COMMIT
    world.delete_topic("t")
    await world.settle()  # without waiting for the next try
    assert world.state() is STATE.COMPLETE_COMMIT
    assert not world.markers


@pytest.mark.parametrize("code", [ErrorCode.TRANSACTION_COORDINATOR_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH])
def test_who_was_taken_over_sends_no_more_markers(code: ErrorCode) -> None:
    async def scenario(world: World) -> None:
        producer = await world.begin()
        world.refusing[T[0]] = code
        await world.add(producer, T[0])
        await world.end(producer)
        await world.settle()
        world.refusing.clear()
        await world.wait_ms(60_000)
        assert not world.markers
        assert world.state() is STATE.PREPARE_COMMIT
        await world.restart()  # whoever leads the partition next begins again
        assert world.state() is STATE.COMPLETE_COMMIT

    World().run(scenario)


@in_world
async def test_markers_that_fail_by_a_fault_of_ours_are_tried_again(world: World) -> None:
    producer = await world.begin()
    await world.add(producer, T[0])
    works, failures = world.write_markers, iter([ValueError(), KeyError()])

    async def write(
        partitions: Sequence[TopicPartition], transaction: EndedTransaction
    ) -> Mapping[TopicPartition, ErrorCode]:
        for error in failures:
            raise error
        return await works(partitions, transaction)

    world.coordinator._markers._write_local = write
    await world.end(producer)
    await world.settle()
    assert world.state() is STATE.PREPARE_COMMIT
    for _ in range(3):
        await world.wait_ms(1_000)
    assert world.state() is STATE.COMPLETE_COMMIT


@in_world
async def test_the_end_goes_on_when_who_asked_is_gone(world: World) -> None:
    producer = await world.begin()
    await world.add(producer, T[0])
    log = world.logs[0]
    log.commits_at_once = False
    asked = asyncio.ensure_future(world.end(producer))
    await world.settle()
    asked.cancel()
    await world.settle()
    assert not world.markers  # nothing is ended before the decision is committed
    log.commits_at_once = True
    log.commit()
    await world.settle()
    assert world.state() is STATE.COMPLETE_COMMIT


@in_world
async def test_answers_wait_for_the_commit(world: World) -> None:
    log = world.logs[0]
    log.commits_at_once = False
    asked = asyncio.ensure_future(world.begin())
    await world.settle()
    assert not asked.done()
    assert not world.coordinator.all()
    log.commit()
    assert await asked == Producer(1000, 0)


@in_world
async def test_a_verification_waits_for_what_it_rests_on(world: World) -> None:
    producer = await world.begin()
    log = world.logs[0]
    log.commits_at_once = False
    adding = asyncio.ensure_future(world.add(producer, T[0]))
    asked = asyncio.ensure_future(world.coordinator.verify_partitions(ID, producer, T[:2]))
    await world.settle()
    assert not asked.done()
    log.commit()
    await adding
    assert await asked == {T[1]: ErrorCode.TRANSACTION_ABORTABLE}


@pytest.mark.parametrize(
    ("failure", "answer"),
    [
        (ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.NOT_COORDINATOR),
        (ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.NOT_COORDINATOR),
        (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.UNKNOWN_SERVER_ERROR),
    ],
)
def test_a_log_that_takes_nothing(failure: ErrorCode, answer: ErrorCode) -> None:
    async def scenario(world: World) -> None:
        producer = await world.begin()
        await world.add(producer, T[0])
        world.logs[0].refuses = KafkaError(failure)
        assert await refusal(world.end(producer)) is answer
        world.logs[0].refuses = None
        assert await world.end(producer) == Producer(1000, 1)

    World().run(scenario)


@in_world
async def test_what_is_complete_is_said_when_the_log_takes_it_again(world: World) -> None:
    producer = await world.begin()
    await world.add(producer, T[0])
    world.refusing[T[0]] = ErrorCode.NOT_LEADER_OR_FOLLOWER
    await world.end(producer)
    await world.settle()
    world.refusing.clear()
    world.logs[0].refuses = KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS)
    await world.wait_ms(1_000)
    assert (len(world.markers), world.state()) == (1, STATE.PREPARE_COMMIT)
    world.logs[0].refuses = None
    await world.wait_ms(2_000)
    assert (len(world.markers), world.state()) == (1, STATE.COMPLETE_COMMIT)


@in_world
async def test_who_asks_another_node_is_told_so(world: World) -> None:
    producer = await world.begin()
    world.coordinator.resigned(0)
    for asked in (
        world.begin(),
        world.begin("new"),
        world.add(producer, T[0]),
        world.end(producer),
        world.coordinator.verify_partitions(ID, producer, T),
    ):
        assert await refusal(asked) is ErrorCode.NOT_COORDINATOR
    assert world.coordinator.all() == []


@in_world
async def test_leadership_that_moves_ends_who_waits(world: World) -> None:
    world.logs[0].commits_at_once = False
    asked = asyncio.ensure_future(refusal(world.begin()))
    await world.settle()
    world.coordinator.resigned(0)
    assert await asked is ErrorCode.NOT_COORDINATOR


@in_world
async def test_before_it_is_loaded_a_machine_answers_nothing(world: World) -> None:
    world.coordinator.resigned(0)
    world.coordinator.elected(0, 5, world.logs[0])
    assert await refusal(world.begin()) is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    with pytest.raises(KafkaError):
        world.coordinator.all()
    await world.settle()
    assert await refusal(world.begin()) is NONE


# --- crashes


async def _two_transactions(world: World) -> None:
    producer = await world.begin()
    for is_commit in (True, False):
        await world.add(producer, T[0])
        await world.add(producer, T[1])
        producer = await world.end(producer, is_commit=is_commit)
        await world.settle()


@pytest.mark.parametrize("transaction_version", [0, 2])
def test_a_crash_after_any_record_loses_nothing(transaction_version: int) -> None:
    async def old_clients(world: World) -> None:
        producer = await world.begin()
        for is_commit in (True, False):
            await world.add(producer, T[0], version=0)
            await world.add(producer, T[1], version=0)
            await world.end(producer, is_commit=is_commit, version=0)
            await world.settle()

    whole = World(transaction_version=transaction_version)
    whole.run(_two_transactions if transaction_version else old_clients)
    batches = whole.logs[0].batches
    assert len(batches) == 9
    states = [STATE(number) for number in (0, 1, 1, 2, 4, 1, 1, 3, 5)]
    for cut in range(1, len(batches) + 1):
        world = World(transaction_version=transaction_version)
        world.logs[0] = MemoryLog(batches[:cut])

        async def scenario(world: World, state: TransactionState = states[cut - 1]) -> None:
            expected = {STATE.PREPARE_COMMIT: STATE.COMPLETE_COMMIT, STATE.PREPARE_ABORT: STATE.COMPLETE_ABORT}
            assert world.state() is expected.get(state, state)
            sent = [(p, is_commit) for p, _, _, is_commit in world.written_markers]
            is_prepared = state in expected
            assert sent == ([(0, state is STATE.PREPARE_COMMIT), (1, state is STATE.PREPARE_COMMIT)] * is_prepared)
            code = await refusal(world.begin())
            assert code is (CONCURRENT if state is STATE.ONGOING else NONE)
            await world.settle()
            assert await refusal(world.begin()) is NONE

        world.run(scenario)


@in_world
async def test_markers_of_a_new_leader_carry_its_epoch(world: World) -> None:
    world.refusing[T[0]] = ErrorCode.NOT_LEADER_OR_FOLLOWER
    producer = await world.begin()
    await world.add(producer, T[0])
    await world.end(producer)
    await world.settle()
    await world.restart()
    world.refusing.clear()
    await world.wait_ms(1_000)
    assert [ended.marker.coordinator_epoch for _, ended in world.markers] == [1]


@in_world
async def test_an_end_that_was_answered_before_the_crash_is_answered_again_after_it(world: World) -> None:
    producer = await world.begin()
    await world.add(producer, T[0])
    following = await world.end(producer)
    await world.settle()
    await world.restart()
    assert await world.end(producer) == following
    await world.add(following, T[0])


# --- what writers ask


@pytest.mark.parametrize(
    ("version", "operation"),
    [
        (3, Operation.VERIFY),
        (10, Operation.VERIFY),
        (11, Operation.VERIFY_OR_ABORT),
        (12, Operation.ADD),
        (13, Operation.ADD),
    ],
)
def test_what_a_produce_wants_of_its_transaction(version: int, operation: Operation) -> None:
    assert operation_of_produce(version) is operation


@pytest.mark.parametrize(
    ("version", "operation"),
    [(0, Operation.VERIFY), (3, Operation.VERIFY), (4, Operation.VERIFY_OR_ABORT), (5, Operation.ADD)],
)
def test_what_offsets_want_of_their_transaction(version: int, operation: Operation) -> None:
    assert operation_of_txn_offset_commit(version) is operation


def ask(world: World, producer: Producer, operation: Operation) -> Awaitable[dict[TopicPartition, ErrorCode]]:
    return world.coordinator.add_or_verify(ID, producer.producer_id, producer.producer_epoch, T[:2], operation)


@in_world
async def test_partitions_are_verified_with_codes_that_the_client_knows(world: World) -> None:
    producer = await world.begin()
    await world.add(producer, T[0], version=0)
    assert await ask(world, producer, Operation.VERIFY) == {T[1]: ErrorCode.INVALID_TXN_STATE}
    assert await ask(world, producer, Operation.VERIFY_OR_ABORT) == {T[1]: ErrorCode.TRANSACTION_ABORTABLE}
    stale = Producer(producer.producer_id, 9)
    assert await ask(world, stale, Operation.VERIFY) == dict.fromkeys(T[:2], ErrorCode.INVALID_PRODUCER_EPOCH)
    assert world.found().partitions == {T[0]}


@in_world
async def test_who_writes_in_version_2_adds(world: World) -> None:
    producer = await world.begin()
    assert await ask(world, producer, Operation.ADD) == {}
    assert (world.found().partitions, world.found().client_transaction_version) == (frozenset(T[:2]), 2)


@in_world
async def test_who_is_too_early_may_wait_for_the_markers(world: World) -> None:
    world.refusing[T[0]] = ErrorCode.NOT_LEADER_OR_FOLLOWER
    producer = await world.begin()
    await world.add(producer, T[0])
    following = await world.end(producer)
    await world.settle()
    assert await ask(world, following, Operation.ADD) == dict.fromkeys(T[:2], CONCURRENT)
    waiting = asyncio.ensure_future(world.coordinator.wait_ended(ID, 10_000))
    await world.wait_ms(5_000)
    assert not waiting.done()
    world.refusing.clear()
    await world.wait_ms(1_000)
    assert waiting.done()
    assert await ask(world, following, Operation.ADD) == {}


def test_verification_can_be_switched_off_but_not_adding() -> None:
    async def scenario(world: World) -> None:
        producer = await world.begin()
        assert await ask(world, producer, Operation.VERIFY) == {}
        assert await ask(world, producer, Operation.ADD) == {}
        assert world.state() is STATE.ONGOING

    World(properties={"transaction.partition.verification.enable": "false"}).run(scenario)


@in_world
async def test_without_a_coordinator_writers_are_told_to_wait(world: World) -> None:
    producer = await world.begin()
    world.delete_topic("__transaction_state")
    errors = await ask(world, producer, Operation.VERIFY)
    assert errors == dict.fromkeys(T[:2], ErrorCode.COORDINATOR_NOT_AVAILABLE)


@pytest.mark.parametrize("operation", Operation)
def test_where_another_node_is_the_coordinator_it_is_asked(operation: Operation) -> None:
    """The other node answers as the handler of AddPartitionsToTxn does."""
    asked: list[AddPartitionsToTxnRequest] = []
    rows = AddPartitionsToTxnResponse

    async def ask_broker(broker_id: int, request: Any) -> AddPartitionsToTxnResponse:
        assert broker_id == 2
        asked.append(request)
        codes = [(0, ErrorCode.NONE), (1, ErrorCode.TRANSACTION_ABORTABLE)]
        results = [rows.AddPartitionsToTxnPartitionResult(partition_index=i, partition_error_code=c) for i, c in codes]
        topic = rows.AddPartitionsToTxnTopicResult(name="t", results_by_partition=results)
        return rows(results_by_transaction=[rows.AddPartitionsToTxnResult(transactional_id=ID, topic_results=[topic])])

    async def scenario(world: World) -> None:
        world.delete_topic("__transaction_state")
        world.change_metadata(*topic_records("__transaction_state", [2]))
        world.coordinator._ask_broker = ask_broker
        errors = await ask(world, Producer(7, 3), operation)
        known = ErrorCode.INVALID_TXN_STATE if operation is Operation.VERIFY else ErrorCode.TRANSACTION_ABORTABLE
        assert errors == {T[1]: known}
        (transaction,) = asked[0].transactions
        assert (transaction.transactional_id, transaction.producer_id, transaction.producer_epoch) == (ID, 7, 3)
        assert transaction.verify_only is (operation is not Operation.ADD)
        assert [(topic.name, topic.partitions) for topic in transaction.topics] == [("t", [0, 1])]

    World().run(scenario)


@pytest.mark.parametrize(
    ("failure", "code"),
    [
        (ConnectionError(), ErrorCode.NETWORK_EXCEPTION),
        (TimeoutError(), ErrorCode.NETWORK_EXCEPTION),
        (ErrorCode.CLUSTER_AUTHORIZATION_FAILED, ErrorCode.INVALID_TXN_STATE),
        (ErrorCode.UNKNOWN_SERVER_ERROR, ErrorCode.UNKNOWN_SERVER_ERROR),
    ],
)
def test_a_coordinator_that_does_not_answer(failure: Exception | ErrorCode, code: ErrorCode) -> None:
    async def ask_broker(broker_id: int, request: Any) -> AddPartitionsToTxnResponse:
        if isinstance(failure, ErrorCode):
            return AddPartitionsToTxnResponse(error_code=failure)
        raise failure

    async def scenario(world: World) -> None:
        world.delete_topic("__transaction_state")
        world.change_metadata(*topic_records("__transaction_state", [2]))
        world.coordinator._ask_broker = ask_broker
        assert await ask(world, Producer(7, 3), Operation.VERIFY) == dict.fromkeys(T[:2], code)

    World().run(scenario)
