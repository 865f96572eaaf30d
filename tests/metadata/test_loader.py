"""Transactions, snapshots, and what the loader says when a record does not fit."""

from __future__ import annotations

import pytest

from barnabas.metadata.changes import changes
from barnabas.metadata.errors import ReplayError
from barnabas.metadata.image import EMPTY_IMAGE, Provenance
from barnabas.metadata.loader import MetadataBatch, MetadataLoader
from barnabas.steps import ROWS_PER_STEP
from barnabas.wire import Uuid
from barnabas.wire.message import Message
from barnabas.wire.records.metadata import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    ConfigRecord,
    EndTransactionRecord,
    FenceBrokerRecord,
    NoOpRecord,
    RemoveTopicRecord,
    TopicRecord,
    UserScramCredentialRecord,
)
from tests.counting import counted

BEGIN, END, ABORT = BeginTransactionRecord(), EndTransactionRecord(), AbortTransactionRecord()


def set_to(value: str) -> Message:
    return ConfigRecord(resource_type=4, resource_name="", name="a", value=value)


class Log:
    """A loader, and the offsets of what comes next."""

    def __init__(self) -> None:
        self.loader = MetadataLoader()
        self.offset = 0

    def commit(self, *batches: list[Message]) -> list[tuple[int, bool, str | None]]:
        """For each published image its offset, whether that ends a batch, and the one setting."""
        made = []
        for records in batches:
            made.append(MetadataBatch(self.offset, self.offset + len(records) - 1, 3, 1000 + self.offset, records))
            self.offset += len(records)
        return [
            (p.image.offset, p.image.provenance.batch_aligned, p.image.config(4, "").get("a"))
            for p in self.loader.load(made)
        ]


def test_one_image_is_published_for_all_batches_of_a_commit() -> None:
    log = Log()
    assert log.commit([set_to("1")], [set_to("2"), NoOpRecord()]) == [(2, True, "2")]
    assert log.loader.image.provenance == Provenance(2, 3, 1001)
    assert log.commit() == []


def test_a_large_batch_is_applied_in_slices_and_seen_as_a_whole() -> None:
    loader = MetadataLoader()
    records = [TopicRecord(name=f"t{number}", topic_id=Uuid(number.to_bytes(16))) for number in range(1000)]
    work = loader.load_in_slices([MetadataBatch(0, 999, 1, 1, records)])
    next(work)
    assert loader.image is EMPTY_IMAGE
    (published,), pauses = counted(work)
    assert pauses >= 1000 // ROWS_PER_STEP - 1
    assert len(published.image.topics.by_id) == 1000
    assert published.before is EMPTY_IMAGE


def test_a_control_batch_moves_the_image_on() -> None:
    loader = MetadataLoader()
    assert loader.load([MetadataBatch(0, 2, 5, 77, [])])[0].image.provenance == Provenance(2, 5, 77)


def test_a_transaction_is_seen_only_at_its_end() -> None:
    log = Log()
    assert log.commit([set_to("1")], [BEGIN, set_to("2")]) == [(0, True, "1")]
    assert log.loader.transaction_start_offset == 1
    assert log.commit([set_to("3")]) == []
    assert dict(log.loader.image.config(4, "")) == {"a": "1"}
    assert log.commit([END]) == [(4, True, "3")]
    assert log.loader.transaction_start_offset is None


def test_what_stands_before_a_transaction_in_its_batch_is_published_first() -> None:
    log = Log()
    assert log.commit([set_to("1"), BEGIN, set_to("2"), END, set_to("3")]) == [(0, False, "1"), (4, True, "3")]


def test_a_transaction_that_begins_a_log_publishes_nothing_before_it() -> None:
    log = Log()
    assert log.commit([BEGIN, set_to("1"), END]) == [(2, True, "1")]


def test_an_aborted_transaction_leaves_only_its_offsets() -> None:
    log = Log()
    log.commit([set_to("1")])
    assert log.commit([BEGIN, set_to("2")]) == []
    assert log.commit([ABORT]) == [(3, True, "1")]
    assert log.commit([set_to("3")]) == [(4, True, "3")]


def test_what_was_aborted_does_not_come_back_with_what_follows_in_the_same_commit() -> None:
    log = Log()
    other = ConfigRecord(resource_type=4, resource_name="1", name="b", value="1")
    assert log.commit([BEGIN, set_to("1"), ABORT, other]) == [(3, True, None)]
    assert dict(log.loader.image.config(4, "1")) == {"b": "1"}


def test_an_empty_transaction_is_one() -> None:
    log = Log()
    assert log.commit([BEGIN, END]) == [(1, True, None)]
    assert log.commit([BEGIN], [ABORT]) == [(3, True, None)]


@pytest.mark.parametrize(
    ("records", "message"),
    [
        ([BEGIN, BEGIN], r"^offset 1: BeginTransactionRecord.*began at offset 0 is still open"),
        ([END], r"^offset 0: EndTransactionRecord.*no transaction is open"),
        ([ABORT], r"^offset 0: AbortTransactionRecord.*no transaction is open"),
        ([set_to("1"), FenceBrokerRecord(id=7)], r"^offset 1: FenceBrokerRecord\(id=7, epoch=0\): broker 7 is not"),
    ],
)
def test_a_record_that_does_not_fit_is_named_with_its_offset(records: list[Message], message: str) -> None:
    with pytest.raises(ReplayError, match=message):
        Log().commit(records)


def test_an_error_shows_no_secret() -> None:
    bad = UserScramCredentialRecord(name="u", mechanism=1, salt="secret")  # type: ignore[arg-type]
    with pytest.raises(ReplayError) as raised:
        Log().commit([bad])
    assert "'u'" in str(raised.value) and "secret" not in str(raised.value)


def test_a_batch_from_the_past_is_refused() -> None:
    loader = MetadataLoader()
    loader.load([MetadataBatch(0, 4, 1, 1, [])])
    with pytest.raises(ReplayError, match="offset 4 comes after offset 4"):
        loader.load([MetadataBatch(4, 5, 1, 1, [])])


def test_a_snapshot_replaces_everything_even_an_open_transaction() -> None:
    log, topic_id = Log(), Uuid(bytes([1]) * 16)
    log.commit([set_to("1"), TopicRecord(name="t", topic_id=topic_id)], [BEGIN, set_to("2")])
    before = log.loader.image
    published = log.loader.load_snapshot([set_to("3")], Provenance(9, 2, 5))
    assert published.before is before and published.touched is None
    assert log.loader.image is published.image and published.image.offset == 9
    assert dict(published.image.config(4, "")) == {"a": "3"} and not published.image.topics.names
    assert log.loader.transaction_start_offset is None
    assert [str(change) for change in changes(before, published.image)] == [
        "topic t deleted",
        "broker (default): a 1 -> 3",
    ]
    assert dict(log.loader.load([MetadataBatch(10, 10, 2, 6, [set_to("4")])])[0].image.config(4, "")) == {"a": "4"}


def test_a_snapshot_that_cannot_be_read_names_the_record_and_changes_nothing() -> None:
    loader = MetadataLoader()
    with pytest.raises(ReplayError, match=r"^record 1 of the snapshot at offset 9: RemoveTopicRecord"):
        loader.load_snapshot([set_to("1"), RemoveTopicRecord(topic_id=Uuid(16))], Provenance(9, 1, 1))
    assert loader.image is EMPTY_IMAGE


def test_a_large_batch_and_a_large_snapshot_are_loaded_with_pauses() -> None:
    """Also at the end, when an image is made of all topics that have changed."""
    count = 40 * ROWS_PER_STEP
    topics = [TopicRecord(name=f"t{number}", topic_id=Uuid(number.to_bytes(16))) for number in range(5, 5 + count)]
    at_the_end = count // ROWS_PER_STEP
    loader = MetadataLoader()
    (published,), pauses = counted(loader.load_in_slices([MetadataBatch(0, count - 1, 1, 1, topics)]))
    assert len(published.image.topics.names) == count
    assert pauses >= count // ROWS_PER_STEP + at_the_end
    replaced, pauses = counted(loader.load_snapshot_in_slices(topics, Provenance(count, 1, 1)))
    assert len(replaced.image.topics.names) == count
    assert pauses >= count + at_the_end
