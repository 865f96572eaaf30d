"""What the given copies of a metadata log lack: records that are not read, and copies that are damaged. Pure.

Records at the end of a log are not read if the copies do not show that they are committed, or if they follow offsets that are
damaged in every copy. Its one rule: what is skipped is counted, and told with what would have to be given to read it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

from barnabas.lake.reading.copies import CommitVerdict, Copy, merge, voters_of


class Skipped(NamedTuple):
    """Offsets that are not read, of the best copy: that of the latest epoch, then the longest."""

    records: int
    log_end: int
    voters: frozenset[int]
    """Empty if neither the log nor an option names them."""
    given: frozenset[int]
    """The voters whose copies are given."""
    damaged: tuple[int, int] | None = None
    """The offsets before them that are damaged in every copy, if that is why they are skipped; the end is exclusive."""

    def sentence(self) -> str:
        """Return how many are skipped, and what to provide."""
        if self.damaged is not None:
            return (
                f"{self.records:,} of {self.log_end:,} records of the metadata log are skipped: they follow"
                f" {offsets_text(*self.damaged)}, damaged in every copy; also give the copy of another node, or run again"
                " after the cluster has made a snapshot"
            )
        verb = "is" if self.records == 1 else "are"
        return (
            f"{self.records:,} of {self.log_end:,} records of the metadata log {verb} not known to be committed,"
            f" and {verb} skipped: {self._advice()}"
        )

    def _advice(self) -> str:
        if not self.voters:
            return "the log does not name its voters; name them with --voters"
        missing = sorted(self.voters - self.given)
        needed = len(self.voters) // 2 + 1 - len(self.given)
        nodes = f"{'node' if len(missing) == 1 else 'nodes'} {', '.join(map(str, missing))}"
        if needed > 0:
            some = f"{needed} of " if needed < len(missing) else ""
            return f"a majority of the voters tells what is committed; also give the log dirs of {some}{nodes}"
        if missing:
            return f"the log dirs of {nodes} may tell"
        return "too few voters have them yet; a later run reads them"


def skipped(
    copies: Sequence[Copy],
    found: Mapping[str, CommitVerdict],
    voters: Collection[int] | None = None,
    *,
    uncommitted: bool = False,
) -> Skipped | None:
    """Return what `merge` leaves out at the end of the best copy; None if it reads all. `voters` overrides those in the log."""
    hopeful = [copy for copy in copies if found[copy.name].false_start is None]
    best = max(hopeful, key=lambda copy: (copy.lineage[-1][0] if copy.lineage else -1, copy.log_end), default=None)
    plan = merge(copies, dict(found), uncommitted=uncommitted)
    end = plan.end
    if best is None or best.log_end <= end:
        return None
    if plan.reads and plan.reads[-1].is_damaged:
        last = plan.reads[-1]
        return Skipped(best.log_end - end, best.log_end, frozenset(), frozenset(), (last.start, last.end))
    quorum = frozenset(voters) if voters else voters_of(copies)
    given = frozenset(copy.node_id for copy in copies if copy.node_id is not None and copy.node_id in quorum)
    return Skipped(best.log_end - end, best.log_end, quorum, given)


class DamagedCopy(NamedTuple):
    """Offsets that one copy has damaged, and that were read from another one. The end is exclusive."""

    name: str
    start: int
    end: int

    def sentence(self) -> str:
        verb = "is" if self.end == self.start + 1 else "are"
        return (
            f"{self.name} is damaged: {offsets_text(self.start, self.end)} cannot be read there,"
            f" and {verb} read from another copy"
        )


def damaged_copies(copies: Sequence[Copy], found: Mapping[str, CommitVerdict]) -> Iterator[DamagedCopy]:
    """Yield the damage of each copy, as far as another one has these offsets whole and committed."""
    for copy in copies:
        for start, end in copy.damaged:
            others = [each for each in copies if each is not copy and each.log_start <= start]
            if any(
                each.whole_until(start) >= end and min(each.log_end, found[each.name].true_end) >= end
                for each in others
            ):
                yield DamagedCopy(copy.name, start, end)


def offsets_text(start: int, end: int) -> str:
    """
    >>> offsets_text(4, 5), offsets_text(4, 8)
    ('offset 4', 'offsets 4 to 7')
    """
    return f"offset {start}" if end == start + 1 else f"offsets {start} to {end - 1}"
