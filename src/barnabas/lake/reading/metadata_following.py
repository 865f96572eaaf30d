"""A growing metadata log, as a stream follows it: the end of its committed part, and what is left of an earlier reading.

Its one rule: a place is an offset with the leader epoch of the record before it, so that a log that diverges from some offset
on is detected. A start before the earliest offset of the log is not data loss: a snapshot replaces the deleted records, and its
rows come first.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

from barnabas.lake.reading.copies import ReadPlan, epoch_of, merge
from barnabas.lake.reading.log_progress import DataLossError
from barnabas.lake.reading.metadata_files import heads
from barnabas.lake.reading.metadata_options import MetadataOptions
from barnabas.lake.reading.metadata_parts import FilePart, Observed, merged_pieces, observe, parts_of
from barnabas.lake.reading.metadata_rows import Wanted
from barnabas.lake.reading.options import OptionError

if TYPE_CHECKING:
    from barnabas.lake.reading.metadata_live import LivePiece


class StreamPosition(NamedTuple):
    """The place of a stream: the next offset, and the epoch of the record before it, -1 if there is none."""

    offset: int
    epoch: int


class Limits(NamedTuple):
    """The limits of one micro-batch; None is no limit."""

    rows: int | None
    bytes: int | None

    def allows(self, rows: int, size: int) -> bool:
        return (self.rows is None or rows <= self.rows) and (self.bytes is None or size <= self.bytes)


class Log(Protocol):
    """A log that a stream follows."""

    cluster_id: str | None

    def look(self) -> None:
        """Refresh: read what is new."""

    def end(self) -> StreamPosition:
        """Return the end of the committed part, as of the last refresh."""

    def resume(self, place: StreamPosition) -> StreamPosition | None:
        """Return the place if the log has the record before it, the end of the common part if not, None if unknown yet."""

    def cut(self, start: int, end: StreamPosition, limits: Limits) -> StreamPosition:
        """Return the end of the last batch within the limits, but at least of the first batch."""

    def parts(self, start: int, end: int, wanted: Wanted) -> Sequence[FilePart | LivePiece]:
        """Return what tasks read of the offsets from `start` to before `end`."""


class FileLog:
    """A log in the form of its copies in directories."""

    def __init__(self, options: MetadataOptions) -> None:
        found = observe(options)
        if len(found) > 1:
            clusters = ", ".join(str(each.cluster_id) for each in found)
            raise OptionError(f"kafka_metadata: a stream reads one cluster, but the paths belong to {clusters}")
        self._observed: Observed = found[0]
        self._options = options
        self.cluster_id = self._observed.cluster_id

    def look(self) -> None:
        self._observed.look()

    def _plan(self, start: int) -> ReadPlan:
        observed = self._observed
        return merge(observed.copies, observed.verdicts, start, uncommitted=self._options.include_uncommitted)

    def end(self) -> StreamPosition:
        plan = self._plan(0)
        return StreamPosition(plan.end, plan.epoch)

    def resume(self, place: StreamPosition) -> StreamPosition | None:
        observed = self._observed
        if place.offset == 0 or place.epoch < 0:
            return place
        committed = epoch_of(observed.copies, observed.verdicts, place.offset - 1)
        if committed == place.epoch:
            return place
        if committed is None:
            seen = [copy.epoch_at(place.offset - 1) for copy in observed.copies]
            begins = min((copy.log_start for copy in observed.copies), default=0)
            if place.epoch in seen or place.offset <= begins:  # its commit is not known yet, or it is before all logs
                return place
            if self.end().offset >= place.offset:
                return place
        return self._common(place)

    def _common(self, place: StreamPosition) -> StreamPosition:
        """Return the end of the latest epoch in the log that is not later than the epoch of the place."""
        spans = [
            (min(span.end, self._observed.verdicts[copy.name].true_end), span.epoch)
            for copy in self._observed.copies
            for span in copy.spans()
            if span.epoch <= place.epoch and span.start < self._observed.verdicts[copy.name].true_end
        ]
        offset, epoch = max(spans, default=(0, -1))
        return StreamPosition(min(offset, place.offset), epoch)

    def cut(self, start: int, end: StreamPosition, limits: Limits) -> StreamPosition:
        rows = size = 0
        place = StreamPosition(start, -1)
        for read in self._plan(start).reads:
            if read.is_damaged:
                continue
            if read.snapshot is not None:
                if read.end > start:
                    return StreamPosition(*read.snapshot)
                continue
            for head in heads(self._observed.logs[read.name], read.start, min(read.end, end.offset)):
                rows += head.end_offset - max(head.base_offset, start)
                size += head.size
                if place.offset > start and not limits.allows(rows, size):
                    return place
                place = StreamPosition(head.end_offset, head.epoch)
        return place if place.offset > start else end

    def parts(self, start: int, end: int, wanted: Wanted) -> Sequence[FilePart]:
        plan = self._plan(start)
        if plan.end < end:
            raise DataLossError(f"offsets {max(plan.end, start)} to {end - 1} are no longer in the directories")
        return parts_of(merged_pieces(self._observed, start, end, wanted), wanted)


def log_of(options: MetadataOptions) -> Log:
    """Return the log that the options name. Raises OptionError if the paths belong to several clusters."""
    if not options.is_live:
        return FileLog(options)
    from barnabas.lake.reading.metadata_live import LiveLog

    return LiveLog(options)
