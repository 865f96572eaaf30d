"""What is true of a transactional id, and the records that say so."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from barnabas import wire
from barnabas.batches import build_batch, decode_records, iterate_batches
from barnabas.batches.format import Record
from barnabas.replicated.decision import KeyValue
from barnabas.replicated.loop import Batch
from barnabas.replicated.machines import decode_key_value
from barnabas.storage.checkpoints import TopicPartition
from barnabas.transactions.state import (
    EMPTY_IMAGE,
    Transaction,
    TransactionsImage,
    TransactionState,
    apply,
    from_value,
    record,
    tombstone,
    transit,
)
from barnabas.wire import ErrorCode, KafkaError, MalformedError
from barnabas.wire.records.transaction import TransactionLogKey, TransactionLogValue

DATA = Path(__file__).parent / "data"
STATE = TransactionState


def golden(partition_id: int) -> bytes:
    return gzip.decompress((DATA / f"transaction_state_{partition_id}.log.gz").read_bytes())


def golden_records(partition_id: int) -> Iterator[tuple[Record, KeyValue]]:
    data = golden(partition_id)
    for position, header in iterate_batches(data):
        for each in decode_records(data, position, header):
            found = decode_key_value(each, "transaction")
            assert found is not None
            yield each, found


def load(records: Iterator[KeyValue] | list[KeyValue]) -> TransactionsImage:
    image = EMPTY_IMAGE
    for number, each in enumerate(records):
        image = apply(image, Batch(number, number, 0, 0, [each]))
    return image


def a_transaction(**changes: Any) -> Transaction:
    base = Transaction("tx", 7, 7, -1, 3, 60_000, STATE.ONGOING, frozenset({TopicPartition("t", 1)}), 10, 20, 2)
    return base._replace(**changes)


def test_the_transactions_of_kafka_s_log() -> None:
    found = {t.transactional_id: t for p in range(3) for t in load([kv for _, kv in golden_records(p)])[0].values()}
    shown = {name: (t.producer_id, t.producer_epoch, t.timeout_ms, t.state.shown) for name, t in found.items()}
    assert shown == {
        "tx-1": (2000, 0, 20_000, "CompleteCommit"),
        "tx-2": (1, 0, 20_000, "CompleteCommit"),
        "tx-3": (1001, 0, 20_000, "CompleteAbort"),
        "tx-open": (2001, 0, 600_000, "CompleteAbort"),
    }


@pytest.mark.parametrize("partition_id", range(3))
def test_records_are_written_as_kafka_writes_them(partition_id: int) -> None:
    image = EMPTY_IMAGE
    for raw, (key, value) in golden_records(partition_id):
        image = apply(image, Batch(0, 0, 0, 0, [KeyValue(key, value)]))
        assert isinstance(key, TransactionLogKey)
        (again_key, again_value), version = record(image.transactions[key.transactional_id], 2)
        assert again_value is not None
        assert wire.encode_record(again_key, 0) == raw.key
        assert wire.encode_record(again_value, version) == raw.value


@pytest.mark.parametrize("partition_id", range(3))
def test_batches_are_built_as_kafka_builds_them(partition_id: int) -> None:
    data = golden(partition_id)
    for position, header in iterate_batches(data):
        built = build_batch(
            decode_records(data, position, header),
            base_offset=header.base_offset,
            partition_leader_epoch=header.partition_leader_epoch,
        )
        assert built == data[position : position + header.size_in_bytes]


def test_fields_of_transaction_version_2_survive_a_record() -> None:
    before = a_transaction(previous_producer_id=6, next_producer_id=8, producer_epoch=32767)
    keyed, version = record(before, 2)
    assert version == 1
    assert keyed.value is not None
    decoded = wire.decode_record(wire.encode_record(keyed.value, version), "TransactionLogValue").record
    assert from_value("tx", decoded) == before


def test_transaction_version_0_writes_the_old_record_without_what_it_cannot_hold() -> None:
    keyed, version = record(a_transaction(previous_producer_id=6, client_transaction_version=0), 0)
    assert version == 0
    assert keyed.value is not None
    decoded = wire.decode_record(wire.encode_record(keyed.value, version), "TransactionLogValue").record
    assert decoded.previous_producer_id == -1


def test_a_client_of_version_2_needs_a_cluster_that_can_write_that_down() -> None:
    with pytest.raises(KafkaError) as failed:
        record(a_transaction(), 0)
    assert failed.value.code is ErrorCode.UNSUPPORTED_VERSION


def test_an_empty_transaction_has_no_list_of_partitions_and_a_complete_one_an_empty_list() -> None:
    def partitions(state: TransactionState) -> object:
        value = record(a_transaction(state=state, partitions=frozenset()), 2)[0].value
        assert isinstance(value, TransactionLogValue)
        return value.transaction_partitions

    assert partitions(STATE.EMPTY) is None
    assert partitions(STATE.COMPLETE_ABORT) == []


def test_a_tombstone_forgets_a_transactional_id_and_one_that_nobody_knows_does_no_harm() -> None:
    known, unknown = record(a_transaction(), 2)[0], tombstone("other")[0]
    assert load([known, unknown]).ongoing.get("tx", "missing") is None
    assert load([known, unknown, tombstone("tx")[0]]) == EMPTY_IMAGE


def test_what_goes_on_is_known_apart() -> None:
    states = [STATE.ONGOING, STATE.PREPARE_COMMIT, STATE.COMPLETE_COMMIT, STATE.ONGOING]
    ongoing = [dict(load([record(a_transaction(state=s), 2)[0] for s in states[: n + 1]]).ongoing) for n in range(4)]
    assert ongoing == [{"tx": None}, {}, {}, {"tx": None}]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (STATE.EMPTY, STATE.PREPARE_COMMIT),
        (STATE.PREPARE_COMMIT, STATE.PREPARE_ABORT),
        (STATE.PREPARE_COMMIT, STATE.COMPLETE_ABORT),
        (STATE.PREPARE_ABORT, STATE.EMPTY),
        (STATE.COMPLETE_COMMIT, STATE.COMPLETE_ABORT),
        (STATE.ONGOING, STATE.EMPTY),
    ],
)
def test_no_way_leads_past_the_table_of_states(before: TransactionState, after: TransactionState) -> None:
    with pytest.raises(AssertionError):
        transit(a_transaction(state=before), after)


def test_a_record_with_an_unknown_state_is_malformed() -> None:
    value = TransactionLogValue(producer_id=1, producer_epoch=0, transaction_timeout_ms=1, transaction_status=126)
    with pytest.raises(MalformedError, match="tx has the unknown state 126"):
        from_value("tx", value)
