"""The index of aborted transactions: which of them a fetch has to know of."""

from __future__ import annotations

from pathlib import Path

import pytest

from barnabas.storage import AbortedTxn
from barnabas.storage.aborted import TransactionIndex
from barnabas.storage.files import File

ENTRY_SIZE = 34
# Three that lie over each other, and one behind them.
TRANSACTIONS = [
    AbortedTxn(producer_id=1, first_offset=100, last_offset=130, last_stable_offset=110),
    AbortedTxn(producer_id=2, first_offset=110, last_offset=131, last_stable_offset=120),
    AbortedTxn(producer_id=3, first_offset=120, last_offset=140, last_stable_offset=141),
    AbortedTxn(producer_id=1, first_offset=150, last_offset=155, last_stable_offset=156),
]


def index_at(path: Path) -> TransactionIndex:
    return TransactionIndex(File(path), 100)


@pytest.fixture
def index(tmp_path: Path) -> TransactionIndex:
    made = index_at(tmp_path / "00000000000000000100.txnindex")
    for transaction in TRANSACTIONS:
        made.append(transaction)
    return made


def test_there_is_no_file_before_the_first_transaction(tmp_path: Path) -> None:
    index = index_at(tmp_path / "x.txnindex")
    assert list(index.transactions()) == []
    assert index.collect(0, 1000) == ([], False)
    assert index.fault() is None
    index.truncate_to(0)
    index.reset()
    index.flush()
    assert list(tmp_path.iterdir()) == []


def test_entries_are_as_kafka_writes_them(index: TransactionIndex) -> None:
    content = index.file.path.read_bytes()
    assert content[:ENTRY_SIZE].hex() == "0000" + "".join(f"{number:016x}" for number in (1, 100, 130, 110))
    assert len(content) == 4 * ENTRY_SIZE
    assert list(index_at(index.file.path).transactions()) == TRANSACTIONS


def test_a_fetch_gets_the_transactions_that_have_records_in_it(index: TransactionIndex) -> None:
    for fetch_offset in range(90, 165):
        for upper_bound in range(fetch_offset + 1, 165):
            expected = [
                transaction
                for transaction in TRANSACTIONS
                if transaction.last_offset >= fetch_offset and transaction.first_offset < upper_bound
            ]
            assert index.collect(fetch_offset, upper_bound)[0] == expected


def test_the_search_ends_where_no_later_transaction_can_have_records(index: TransactionIndex) -> None:
    assert index.collect(100, 110) == (TRANSACTIONS[:1], True)
    assert index.collect(100, 120) == (TRANSACTIONS[:2], True)
    assert index.collect(100, 156) == (TRANSACTIONS, True)
    assert index.collect(100, 157) == (TRANSACTIONS, False)


def test_truncation_keeps_the_transactions_that_ended_before(index: TransactionIndex) -> None:
    for offset, kept in ((200, 4), (156, 4), (155, 3), (141, 3), (131, 1), (130, 0)):
        index.truncate_to(offset)
        assert list(index.transactions()) == TRANSACTIONS[:kept]
        assert index.file.size() == kept * ENTRY_SIZE
    index.append(TRANSACTIONS[3])
    assert list(index.transactions()) == TRANSACTIONS[3:]


def test_an_index_that_cannot_be_right_is_found_out(index: TransactionIndex) -> None:
    content = index.file.path.read_bytes()
    assert index.fault() is None
    for damaged in (
        content[:-1],
        content + b"\0",
        content[ENTRY_SIZE:] + content[:ENTRY_SIZE],
        b"\1" + content[1:],
        bytes(ENTRY_SIZE),
    ):
        index.file.path.write_bytes(damaged)
        assert index_at(index.file.path).fault() is not None


def test_it_goes_on_behind_what_a_torn_write_left(index: TransactionIndex) -> None:
    path = index.file.path
    path.write_bytes(path.read_bytes()[:-10])
    again = index_at(path)
    again.append(TRANSACTIONS[3])
    assert list(again.transactions()) == TRANSACTIONS


def test_it_goes_with_its_file(index: TransactionIndex) -> None:
    path = index.file.path
    index.file.rename(path.with_name("renamed"))
    assert index.collect(0, 1000)[0] == TRANSACTIONS
    index.file.unlink()
    assert list(path.parent.iterdir()) == []
