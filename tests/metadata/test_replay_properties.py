"""What holds for every log: how it is cut makes no difference, and an image can be written and read back."""

from __future__ import annotations

from collections.abc import Iterator

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from barnabas import wire
from barnabas.metadata.changes import changes
from barnabas.metadata.image import EMPTY_IMAGE, MetadataImage, Provenance
from barnabas.metadata.loader import MetadataBatch, MetadataLoader
from barnabas.metadata.replay import replay
from barnabas.metadata.snapshot import from_records, to_records
from barnabas.wire.message import Message
from barnabas.wire.records.metadata import AbortTransactionRecord, BeginTransactionRecord, EndTransactionRecord
from tests.metadata.stories import check_derived, story

HERE = Provenance(1, 1, 1)
slowly = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)


@st.composite
def logs(draw: st.DrawFn, *, transactions: bool) -> list[Message]:
    def choose(limit: int) -> int:
        return draw(st.integers(0, limit - 1))

    return list(story(choose, draw(st.integers(0, 40)), transactions=transactions))


@st.composite
def cuts(draw: st.DrawFn) -> list[int]:
    """Sizes of batches, then of commits, over and over."""
    return draw(st.lists(st.integers(1, 9), min_size=2, max_size=8))


def pieces(items: list[Message], sizes: list[int]) -> Iterator[list[Message]]:
    position = turn = 0
    while position < len(items):
        size = sizes[turn % len(sizes)]
        yield items[position : position + size]
        position, turn = position + size, turn + 1


def committed(records: list[Message]) -> list[Message]:
    """Without what was aborted, and without the marks of transactions."""
    kept: list[Message] = []
    begun = 0
    for record in records:
        if isinstance(record, BeginTransactionRecord):
            begun = len(kept)
        elif isinstance(record, AbortTransactionRecord):
            del kept[begun:]
        elif not isinstance(record, EndTransactionRecord):
            kept.append(record)
    return kept


@slowly
@given(records=logs(transactions=True), batch_sizes=cuts(), commit_sizes=cuts())
def test_every_way_to_cut_a_log_into_batches_and_commits_ends_in_the_same_image(
    records: list[Message], batch_sizes: list[int], commit_sizes: list[int]
) -> None:
    batches, offset = [], 0
    for part in pieces(records, batch_sizes):
        batches.append(MetadataBatch(offset, offset + len(part) - 1, 1, 1, part))
        offset += len(part)
    loader, before = MetadataLoader(), EMPTY_IMAGE
    while batches:
        size = commit_sizes[len(batches) % len(commit_sizes)]
        for published in loader.load(batches[:size]):
            assert published.before is before
            assert changes(before, published.image, published.touched) == changes(before, published.image)
            before = published.image
        batches = batches[size:]
    assert loader.image == replay(EMPTY_IMAGE, committed(records), Provenance(len(records) - 1, 1, 1))


@slowly
@given(records=logs(transactions=False), sizes=cuts())
def test_a_draft_of_many_records_is_many_drafts_of_few(records: list[Message], sizes: list[int]) -> None:
    step = EMPTY_IMAGE
    for part in pieces(records, sizes):
        step = replay(step, part, HERE)
        check_derived(step)
    assert step == replay(EMPTY_IMAGE, records, HERE)


@slowly
@given(records=logs(transactions=False))
def test_an_image_written_as_records_and_read_back_is_itself(records: list[Message]) -> None:
    image = replay(EMPTY_IMAGE, records, HERE)
    frames = [wire.encode_record(record, version) for record, version in to_records(image)]
    again = from_records((wire.decode_record(frame).record for frame in frames), HERE)
    assert again == image
    assert [wire.encode_record(record, version) for record, version in to_records(again)] == frames
    assert changes(image, again) == []


@slowly
@given(records=logs(transactions=False), sizes=cuts())
def test_an_old_image_stays_what_it_was(records: list[Message], sizes: list[int]) -> None:
    kept: list[tuple[MetadataImage, list[Message]]] = []
    image = EMPTY_IMAGE
    for part in pieces(records, sizes):
        image = replay(image, part, HERE)
        kept.append((image, [record for record, _ in to_records(image)]))
    for old, written in kept:
        assert [record for record, _ in to_records(old)] == written


@slowly
@given(before=logs(transactions=False), after=logs(transactions=False))
def test_changes_and_their_reverse_speak_of_the_same_things(before: list[Message], after: list[Message]) -> None:
    one, other = replay(EMPTY_IMAGE, before, HERE), replay(EMPTY_IMAGE, after, HERE)
    there, back = changes(one, other), changes(other, one)
    assert bool(there) == bool(back) == (one != other)
    assert all(map(str, there))
