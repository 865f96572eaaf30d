"""Records at the end of a metadata log that are not read, since the given copies do not show that they are committed. Pure.

Its one rule: what is skipped is counted, and told with what would have to be given to read it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
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

    def sentence(self) -> str:
        """Return how many are skipped, and what to provide."""
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
    end = merge(copies, dict(found), uncommitted=uncommitted).end
    if best is None or best.log_end <= end:
        return None
    quorum = frozenset(voters) if voters else voters_of(copies)
    given = frozenset(copy.node_id for copy in copies if copy.node_id is not None and copy.node_id in quorum)
    return Skipped(best.log_end - end, best.log_end, quorum, given)
