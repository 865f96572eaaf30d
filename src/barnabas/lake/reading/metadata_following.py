"""A metadata log that grows, as a stream follows it: where its committed part ends, and what two readings have in common.

Its one rule: a place is an offset with the leader epoch of what was before it, so that a log that is another one from some
place on is found out. A start before the earliest offset of the log is none: a snapshot stands for what is gone, and its rows
come first.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

from barnabas.lake.reading.copies import Plan, epoch_of, merge
from barnabas.lake.reading.log_progress import DataLossError
from barnabas.lake.reading.metadata_files import heads
from barnabas.lake.reading.metadata_options import MetadataOptions
from barnabas.lake.reading.metadata_parts import FilePart, Observed, merged_pieces, observe, parts_of
from barnabas.lake.reading.metadata_rows import Wanted
from barnabas.lake.reading.options import OptionError

if TYPE_CHECKING:
    from barnabas.lake.reading.metadata_live import LivePiece


class Place(NamedTuple):
    """Where a stream is: what comes next, and the epoch of what was before it, -1 if nothing was."""

    offset: int
    epoch: int


class Limits(NamedTuple):
    """Of one micro-batch; None is no limit."""

    rows: int | None
    bytes: int | None

    def allows(self, rows: int, size: int) -> bool:
        return (self.rows is None or rows <= self.rows) and (self.bytes is None or size <= self.bytes)


class Log(Protocol):
    """A log that a stream follows."""

    cluster_id: str | None

    def look(self) -> None:
        """See what is new."""

    def end(self) -> Place:
        """Where the committed part ends, as of the last look."""

    def resume(self, place: Place) -> Place | None:
        """The same place if the log has what was before it; another, if that is all in common; None: ask later."""

    def cut(self, start: int, end: Place, limits: Limits) -> Place:
        """The end of the last batch that is within the limits, or of the first batch of all."""

    def parts(self, start: int, end: int, wanted: Wanted) -> Sequence[FilePart | LivePiece]:
        """What tasks read of the offsets from `start` to before `end`."""


class FileLog:
    """A log by its copies in directories."""

    def __init__(self, options: MetadataOptions) -> None:
        found = observe(options)
        if len(found) > 1:
            clusters = ", ".join(str(each.cluster_id) for each in found)
            raise OptionError(f"kafka_metadata: a stream is of one cluster, and the paths are of {clusters}")
        self._observed: Observed = found[0]
        self._options = options
        self.cluster_id = self._observed.cluster_id

    def look(self) -> None:
        self._observed.look()

    def _plan(self, start: int) -> Plan:
        observed = self._observed
        return merge(observed.copies, observed.verdicts, start, uncommitted=self._options.include_uncommitted)

    def end(self) -> Place:
        plan = self._plan(0)
        return Place(plan.end, plan.epoch)

    def resume(self, place: Place) -> Place | None:
        observed = self._observed
        if place.offset == 0 or place.epoch < 0:
            return place
        committed = epoch_of(observed.copies, observed.verdicts, place.offset - 1)
        if committed == place.epoch:
            return place
        if committed is None:
            seen = [copy.epoch_at(place.offset - 1) for copy in observed.copies]
            begins = min((copy.log_start for copy in observed.copies), default=0)
            if place.epoch in seen or place.offset <= begins:  # not known as committed just now, or before all logs
                return place
            if self.end().offset >= place.offset:
                return place
        return self._common(place)

    def _common(self, place: Place) -> Place:
        """The end of the latest epoch that the log has and that is not later than the one that was read."""
        spans = [
            (min(span.end, self._observed.verdicts[copy.name].true_end), span.epoch)
            for copy in self._observed.copies
            for span in copy.spans()
            if span.epoch <= place.epoch and span.start < self._observed.verdicts[copy.name].true_end
        ]
        offset, epoch = max(spans, default=(0, -1))
        return Place(min(offset, place.offset), epoch)

    def cut(self, start: int, end: Place, limits: Limits) -> Place:
        rows = size = 0
        place = Place(start, -1)
        for read in self._plan(start).reads:
            if read.snapshot is not None:
                return Place(*read.snapshot)
            for head in heads(self._observed.logs[read.name], read.start, min(read.end, end.offset)):
                rows += head.end_offset - max(head.base_offset, start)
                size += head.size
                if place.offset > start and not limits.allows(rows, size):
                    return place
                place = Place(head.end_offset, head.epoch)
        return place if place.offset > start else end

    def parts(self, start: int, end: int, wanted: Wanted) -> Sequence[FilePart]:
        plan = self._plan(start)
        if plan.end < end:
            raise DataLossError(f"offsets {max(plan.end, start)} to {end - 1} are not in the directories any more")
        return parts_of(merged_pieces(self._observed, start, end, wanted), wanted)


def log_of(options: MetadataOptions) -> Log:
    """The log that the options name. Raises OptionError if the paths are of several clusters."""
    if not options.is_live:
        return FileLog(options)
    from barnabas.lake.reading.metadata_live import LiveLog

    return LiveLog(options)
