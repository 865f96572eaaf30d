"""The result of a rehearsal in words: one sentence, states before and after, and the records without secrets. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from barnabas.metadata.masking import masked
from barnabas.operations.quantities import bytes_text
from barnabas.operations.rehearsal.outcome import PartitionOutcome
from barnabas.operations.rehearsal.rehearse import Rehearsal
from barnabas.wire import decode_record, encode_record

ARROW: Final = " -> "


class ShownRecord(NamedTuple):
    """A record that a step would write, as JSON."""

    step: str
    type: str
    version: int
    values: Any


def summary(found: Rehearsal) -> str:
    """Return the result as one line."""
    outcome = found.outcome
    moved = sum(e.before.leader != e.after.leader is not None and bool(e.before.replicas) for e in outcome.partitions)
    worse = Counter(each.after.health.value for each in outcome.worse)
    parts = [_count(moved, "partition", "gets another leader", "get another leader")]
    parts.append(_count(worse["offline"], "partition", "goes offline", "go offline"))
    parts.append(
        _count(worse["belowMinIsr"], "partition", "falls below min.insync.replicas", "fall below min.insync.replicas")
    )
    if lossy := sum(each.may_lose_records for each in outcome.partitions):
        parts.append(_count(lossy, "partition", "may lose records", "may lose records"))
    size = bytes_text(outcome.bytes_to_copy) if outcome.are_bytes_known else "an unknown number of bytes"
    parts.append(f"{size} to copy")
    return "; ".join(parts) + ". Nothing was changed"


def _count(count: int, noun: str, one: str, many: str) -> str:
    return f"{count:,} {noun} {one}" if count == 1 else f"{count:,} {noun}s {many}"


def then(before: Any, after: Any) -> str:
    """Return a state before and after; once if it stays.

    >>> then(1, None), then((1, 2), (1, 2)), then((), (3,))
    ('1 -> -', '1,2', '- -> 3')
    """
    texts = [
        "-" if each is None else ",".join(map(str, each)) or "-" if isinstance(each, tuple) else str(each)
        for each in (before, after)
    ]
    return texts[0] if texts[0] == texts[1] else ARROW.join(texts)


def notes_of(each: PartitionOutcome) -> list[str]:
    """Return what is to be said of a partition beside its health."""
    said = (("moving", each.after.is_reassigning), ("may lose records", each.may_lose_records))
    return [text for text, is_so in said if is_so]


def worst_first(found: Rehearsal) -> list[PartitionOutcome]:
    return sorted(found.outcome.partitions, key=lambda each: not each.is_worse)


def records_of(found: Rehearsal) -> Iterator[ShownRecord]:
    """Yield the records that would be written."""
    for step in found.steps:
        for record, version in step.records:
            shown, name = record, type(record).__name__
            hidden = masked(encode_record(record, version))
            if hidden is not None:
                shown = decode_record(hidden).record
            yield ShownRecord(step.what, name, version, shown.to_json(version))
