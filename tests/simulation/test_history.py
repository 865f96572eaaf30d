"""The checker of histories finds each kind of wrong answer; without one it says nothing."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from tests.simulation.history import Final, History, Outcome, Place, Record

T0, T1 = Place("t", 0), Place("t", 1)
Logs = Mapping[Place, list[Record]]


def records(*values: bytes) -> list[Record]:
    return [Record(offset, value) for offset, value in enumerate(values)]


def final(committed: Logs, everything: Logs | None = None, **more: Mapping[object, object]) -> Final:
    others = (more.get(name, {}) for name in ("topics", "offsets", "settings"))
    return Final(committed, committed if everything is None else everything, *others)  # type: ignore[arg-type]


@pytest.fixture
def history() -> History:
    """Two records that were acknowledged, and one that was not."""
    history = History()
    for number in range(3):
        history.sending(b"p %d" % number, "t")
    history.acknowledged(b"p 0", T0, 0)
    history.acknowledged(b"p 1", T0, 1)
    return history


def found(history: History, end: Final) -> list[str]:
    return [what.split(":")[0] for what in history.check(end)]


@pytest.mark.parametrize("values", [(b"p 0", b"p 1"), (b"p 0", b"p 1", b"p 2")])
def test_what_nobody_acknowledged_may_be_there_or_not(history: History, values: tuple[bytes, ...]) -> None:
    assert found(history, final({T0: records(*values)})) == []


@pytest.mark.parametrize(
    ("log", "wrong"),
    [
        (records(b"p 0"), ["lost"]),
        (records(b"p 0", b"p 1", b"p 1"), ["duplicate", "moved", "disorder"]),
        (records(b"p 1", b"p 0"), ["moved", "moved", "disorder"]),
    ],
)
def test_lost_doubled_and_reordered_records_are_found(history: History, log: list[Record], wrong: list[str]) -> None:
    assert found(history, final({T0: log})) == wrong


def test_a_record_that_only_read_uncommitted_sees_is_found(history: History) -> None:
    assert found(history, final({T0: records(b"p 0")}, {T0: records(b"p 0", b"p 1")})) == ["hidden"]


@pytest.mark.parametrize(
    ("outcome", "seen", "is_wrong"),
    [
        (Outcome.COMMITTED, 2, False),
        (Outcome.COMMITTED, 1, True),
        (Outcome.COMMITTED, 0, True),
        (Outcome.ABORTED, 0, False),
        (Outcome.ABORTED, 2, True),
        (Outcome.UNKNOWN, 0, False),
        (Outcome.UNKNOWN, 2, False),
        (Outcome.UNKNOWN, 1, True),
    ],
)
def test_a_transaction_is_visible_as_a_whole_or_not_at_all(outcome: Outcome, seen: int, is_wrong: bool) -> None:
    history = History()
    for number in range(2):
        history.sending(b"x %d" % number, "t", "one")
    history.ended("one", outcome)
    assert bool(found(history, final({T0: records(*(b"x %d" % number for number in range(seen)))}))) is is_wrong


def test_two_readers_that_see_different_records_at_one_offset_contradict_each_other(history: History) -> None:
    history.received("a", T0, 0, b"p 0", committed=True)
    history.received("b", T0, 0, b"p 1", committed=True)
    assert len(history.contradictions) == 1


def test_a_record_that_was_read_and_is_replaced_is_found(history: History) -> None:
    history.received("a", T0, 2, b"p 2", committed=True)
    history.sending(b"q 0", "t")
    assert found(history, final({T0: records(b"p 0", b"p 1", b"q 0")})) == ["t-0 2"]


def test_a_copy_that_is_made_twice_is_found() -> None:
    history = History()
    for number in range(2):
        history.sending(b"y %d" % number, "t")
        history.copied(b"y %d" % number, b"p 0")
    assert found(history, final({T0: records(b"y 0"), T1: []})) == []
    assert found(history, final({T0: records(b"y 0"), T1: records(b"y 1")})) == ["copied twice"]


def test_offsets_of_groups_do_not_go_back() -> None:
    history = History()
    history.offset_committed("g", T0, 5)
    history.offset_found("g", T0, 5, least=5)
    assert found(history, final({}, offsets={("g", T0): 6})) == []
    assert len(found(history, final({}, offsets={("g", T0): 4}))) == 1
    history.offset_found("g", T0, None, least=5)
    assert len(history.contradictions) == 1


def test_an_old_request_may_be_carried_out_later_but_nothing_is_forgotten() -> None:
    history = History()
    history.offset_committed("g", T0, 5)
    history.topic_deleted("t")
    history.offsets_may_be_old = history.topics_may_be_old = True
    assert found(history, final({}, offsets={("g", T0): 4}, topics={"t": "1"})) == []
    assert len(found(history, final({}))) == 1
    history.offset_found("g", T0, 4, least=5)
    assert history.contradictions == []
    history.offset_found("g", T0, None, least=5)
    assert len(history.contradictions) == 1


def test_topics_are_there_as_they_were_created_and_gone_as_they_were_deleted() -> None:
    history = History()
    history.topic_created("a", "1")
    history.topic_created("b", "2")
    history.topic_deleting("b")
    assert found(history, final({}, topics={"a": "1", "b": "2"})) == []
    assert len(found(history, final({}, topics={"a": "9"}))) == 1
    history.topic_deleted("b")
    assert len(found(history, final({}, topics={"a": "1", "b": "2"}))) == 1


def test_a_setting_is_as_it_was_set_unless_its_topic_was_deleted() -> None:
    history = History()
    history.was_set("a", "1", topic="a")
    history.was_set("an ACL", "")
    assert found(history, final({}, settings={"a": "1", "an ACL": ""})) == []
    assert len(found(history, final({}, settings={"a": "2"}))) == 2
    history.topic_deleting("a")
    assert found(history, final({}, settings={"an ACL": ""})) == []
