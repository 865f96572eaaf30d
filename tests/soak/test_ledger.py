"""The ledger finds each kind of loss; without one it says nothing."""

from __future__ import annotations

import pytest

from tests.crash.loads import content
from tests.soak.ledger import MAX_VIOLATIONS, Ledger

NAME = "some"


@pytest.fixture
def ledger() -> Ledger:
    return Ledger([NAME])


def transact(ledger: Ledger, number: int, outcome: str, seen: list[int], count: int = 3) -> None:
    for offset, index in enumerate(seen):
        ledger.saw_transacted(NAME, index % 2, offset, b"%d:%d:%d" % (number, index, count))
    ledger.said(NAME, f"T {number} {outcome} {count}")


def test_what_is_acknowledged_and_seen_is_right_in_either_order(ledger: Ledger) -> None:
    ledger.said(NAME, "A 0:5:10 1:5:11")
    for partition, offset, number in ((0, 5, 10), (1, 5, 11), (0, 6, 12)):
        ledger.saw_once(NAME, partition, offset, content(number))
    ledger.said(NAME, "A 0:6:12")
    ledger.check_records()
    assert ledger.violations == []
    assert ledger.counts(NAME)["acknowledged"] == ledger.records_seen == 3


def test_a_record_that_nobody_acknowledged_may_be_there(ledger: Ledger) -> None:
    ledger.saw_once(NAME, 0, 0, content(1))
    ledger.check_records()
    assert ledger.violations == []


def test_a_lost_record_is_found(ledger: Ledger) -> None:
    ledger.said(NAME, "A 0:5:10 0:6:12")
    ledger.saw_once(NAME, 0, 6, content(12))
    ledger.check_records()
    assert ledger.violations == ["some-once-0: 1 acknowledged records were never seen: {5: 10}"]


def test_a_duplicate_of_an_idempotent_producer_is_found(ledger: Ledger) -> None:
    ledger.said(NAME, "A 0:5:10")
    ledger.saw_once(NAME, 0, 5, content(10))
    ledger.saw_once(NAME, 0, 6, content(10))
    assert ledger.violations == ["some-once-0: 10 is there twice, again at 6"]


@pytest.mark.parametrize("is_seen_first", [True, False])
def test_a_record_at_another_offset_than_was_acknowledged_is_found(ledger: Ledger, is_seen_first: bool) -> None:
    for step in (0, 1) if is_seen_first else (1, 0):
        if step == 0:
            ledger.saw_once(NAME, 0, 5, content(12))
        else:
            ledger.said(NAME, "A 0:5:10")
    assert ledger.violations == ["some-once-0: 10 was acknowledged at 5, where 12 is"]


def test_changed_content_is_found(ledger: Ledger) -> None:
    ledger.saw_once(NAME, 0, 5, content(10)[:-1] + b"!")
    assert ledger.violations == ["some-once-0: what is at 5 was never sent"]


@pytest.mark.parametrize(("outcome", "seen"), [("c", [0, 1, 2]), ("a", []), ("u", []), ("u", [2, 0, 1])], ids=str)
def test_a_transaction_that_is_whole_or_invisible_is_right(ledger: Ledger, outcome: str, seen: list[int]) -> None:
    transact(ledger, 7, outcome, seen)
    ledger.check_records()
    assert ledger.violations == []


@pytest.mark.parametrize(("outcome", "seen"), [("c", [0, 2]), ("c", []), ("a", [1]), ("u", [0, 1])])
def test_a_half_visible_transaction_is_found(ledger: Ledger, outcome: str, seen: list[int]) -> None:
    transact(ledger, 7, outcome, seen)
    ledger.check_records()
    assert ledger.violations == [f"some-txn: transaction 7 ({outcome}) has {len(seen)} of 3 records"]


def test_a_record_of_a_transaction_that_is_there_twice_is_found(ledger: Ledger) -> None:
    transact(ledger, 7, "c", [0, 1, 2, 1])
    assert ledger.violations == ["some-txn-1: record 1 of transaction 7 is there twice"]


def test_records_of_a_transaction_that_nobody_began_are_found(ledger: Ledger) -> None:
    ledger.saw_transacted(NAME, 0, 0, b"9:0:1")
    ledger.check_records()
    assert ledger.violations == ["some-txn: transaction 9 has 1 records, and nobody said how it ended"]


def test_an_offset_behind_an_acknowledged_commit_is_found(ledger: Ledger) -> None:
    ledger.said(NAME, "C 0:5 1:8")
    ledger.check_offsets(NAME, dict(ledger.committed[NAME]), {0: 5, 1: 9})
    assert ledger.violations == []
    ledger.check_offsets(NAME, dict(ledger.committed[NAME]), {0: 4, 1: 9})
    assert ledger.violations == ["group some: committed 5 of partition 0, and now it is 4"]


def test_an_offset_that_goes_back_is_found_without_an_answered_commit(ledger: Ledger) -> None:
    ledger.check_offsets(NAME, {}, {0: 9})
    ledger.check_offsets(NAME, dict(ledger.committed[NAME]), {0: 8})
    assert ledger.violations == ["group some: committed 9 of partition 0, and now it is 8"]


def test_a_lost_offset_is_found(ledger: Ledger) -> None:
    ledger.said(NAME, "C 0:5")
    ledger.check_offsets(NAME, dict(ledger.committed[NAME]), {})
    assert ledger.violations == ["group some: committed 5 of partition 0, and now it is None"]


def test_an_older_commit_that_is_told_later_hides_nothing(ledger: Ledger) -> None:
    ledger.said(NAME, "C 0:9")
    ledger.said(NAME, "C 0:5")
    ledger.check_offsets(NAME, dict(ledger.committed[NAME]), {0: 5})
    assert ledger.violations == ["group some: committed 9 of partition 0, and now it is 5"]


def test_a_lost_topic_and_one_that_came_back_are_found(ledger: Ledger) -> None:
    for line in ("N one", "N two", "D two", "X three", "N four"):
        ledger.said(NAME, line)
    ledger.check_topics({"two", "three", "four"})
    assert ledger.violations == ["one was created, and is not there", "two was deleted, and is there"]


def test_what_a_client_calls_impossible_is_a_violation_and_an_error_is_not(ledger: Ledger) -> None:
    ledger.said(NAME, "V offset 7 has what nobody sent")
    ledger.said(NAME, "E producing: the connection was lost")
    assert ledger.violations == ["some: offset 7 has what nobody sent"]
    assert dict(ledger.errors) == {"some producing: the connection was lost": 1}


def test_violations_are_bounded(ledger: Ledger) -> None:
    for number in range(2 * MAX_VIOLATIONS):
        ledger.violated(str(number))
    assert len(ledger.violations) == MAX_VIOLATIONS
