"""What holds for every history: facts as of any batch end are the broker's image, and runs and shards make no difference."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

from hypothesis import HealthCheck, Phase, assume, given, settings
from hypothesis import strategies as st

from barnabas.metadata.loader import MetadataBatch, MetadataLoader
from barnabas.metadata.snapshot import to_records
from barnabas.wire.message import Message
from tests.lake.controller_histories import history
from tests.lake.facts.metadata_facts import (
    Item,
    as_of,
    comparable,
    fold_in_runs,
    image_rows,
    log_items,
    public,
    snapshot_items,
)
from tests.metadata.stories import story

slowly = settings(
    max_examples=25,
    deadline=None,
    phases=[Phase.explicit, Phase.reuse, Phase.generate],  # to make a failing history smaller takes minutes
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
sizes = st.lists(st.integers(1, 9), min_size=2, max_size=8)


@st.composite
def histories(draw: st.DrawFn) -> list[Message]:
    def choose(limit: int) -> int:
        return draw(st.integers(0, limit - 1))

    return list(story(choose, draw(st.integers(1, 60)), transactions=True))


def batches_of(records: Sequence[Message], sizes: Sequence[int]) -> list[MetadataBatch]:
    batches: list[MetadataBatch] = []
    offset = 0
    while offset < len(records):
        part = records[offset : offset + sizes[len(batches) % len(sizes)]]
        batches.append(MetadataBatch(offset, offset + len(part) - 1, 1, 1_000, part))
        offset += len(part)
    return batches


def cut(items: Sequence[Item], sizes: Sequence[int], shards: Sequence[int]) -> list[tuple[Sequence[Item], int]]:
    runs: list[tuple[Sequence[Item], int]] = []
    start = 0
    while start < len(items):
        size = sizes[len(runs) % len(sizes)] * 3
        runs.append((items[start : start + size], shards[len(runs) % len(shards)]))
        start += size
    return runs


def unique(rows: list[dict[str, Any]]) -> bool:
    keys = [(row["kind"], row["key"], row["valid_from_offset"]) for row in rows]
    return len(keys) == len(set(keys))


@slowly
@given(records=histories(), batch_sizes=sizes)
def test_as_of_every_batch_end_the_facts_are_the_image_of_the_broker(
    records: list[Message], batch_sizes: list[int]
) -> None:
    rows = fold_in_runs([(log_items(records), 1)])
    assert unique(rows)
    assert all(row["exact"] and row["valid_from_offset"] != row["valid_to_offset"] for row in rows)
    loader = MetadataLoader()
    for batch in batches_of(records, batch_sizes):
        loader.load([batch])
        assert comparable(as_of(rows, batch.last_offset)) == image_rows(loader.image)


@slowly
@given(records=histories(), run_sizes=sizes, shards=st.lists(st.integers(1, 4), min_size=1, max_size=4))
def test_many_runs_with_any_number_of_shards_give_the_facts_of_one_run(
    records: list[Message], run_sizes: list[int], shards: list[int]
) -> None:
    items = log_items(records)
    assert public(fold_in_runs(cut(items, run_sizes, shards))) == public(fold_in_runs([(items, 1)]))


@slowly
@given(records=histories(), batch_sizes=sizes, data=st.data())
def test_a_snapshot_of_what_is_known_changes_nothing(
    records: list[Message], batch_sizes: list[int], data: st.DataObject
) -> None:
    batches = batches_of(records, batch_sizes)
    at = data.draw(st.integers(0, len(batches) - 1))
    loader = MetadataLoader()
    loader.load(batches[: at + 1])
    items, end = log_items(records), loader.image.offset + 1
    snapshot = snapshot_items(end, [record for record, _ in to_records(loader.image)])
    with_snapshot = fold_in_runs([([*items[:end], *snapshot, *items[end:]], data.draw(st.integers(1, 3)))])
    assert public(with_snapshot) == public(fold_in_runs([(items, 1)]))


@slowly
@given(records=histories(), batch_sizes=sizes, data=st.data())
def test_a_history_that_begins_or_goes_on_at_a_snapshot_is_the_image_from_there_on(
    records: list[Message], batch_sizes: list[int], data: st.DataObject
) -> None:
    batches, loader = batches_of(records, batch_sizes), MetadataLoader()
    at = data.draw(st.integers(0, len(batches) - 1))
    loader.load(batches[: at + 1])
    end = batches[at].last_offset + 1
    assume(loader.image.offset == end - 1)  # no snapshot is made while a transaction is open
    snapshot = [record for record, _ in to_records(loader.image)]
    loader.load_snapshot(snapshot, loader.image.provenance)
    items, shards = log_items(records), data.draw(st.integers(1, 3))
    known = items[: batches[data.draw(st.integers(0, at))].base_offset]
    rows = fold_in_runs([(known, shards), ([*snapshot_items(end, snapshot), *items[end:]], shards)])
    assert unique(rows)
    assert all(row["exact"] for row in rows if end not in (row["valid_from_offset"], row["valid_to_offset"]))
    for batch in batches[at + 1 :]:
        loader.load([batch])
        assert comparable(as_of(rows, batch.last_offset)) == image_rows(loader.image)


@slowly
@given(
    seed=st.integers(0, 1 << 30), steps=st.integers(20, 80), shards=st.lists(st.integers(1, 3), min_size=2, max_size=4)
)
def test_what_a_controller_decided_is_its_image_as_of_every_batch_end(seed: int, steps: int, shards: list[int]) -> None:
    batches = history(Random(seed).randrange, steps)
    items = log_items([record for batch in batches for record in batch.records])
    rows = fold_in_runs(cut(items, [7, 11, 20], shards))
    assert unique(rows)
    loader = MetadataLoader()
    for batch in batches:
        loader.load([batch])
        assert comparable(as_of(rows, batch.last_offset)) == image_rows(loader.image)
