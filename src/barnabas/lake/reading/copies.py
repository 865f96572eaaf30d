"""Several copies of one metadata log: which records are committed, and which copy to read for which offsets. Pure.

Its one rule: `True` is never wrong. It follows from three properties of Raft. Records of one epoch at one offset are the same
in every copy that has them, and so are all records before them. A snapshot has only committed records. A record that a majority
of the voters has stays, unless a leader that lacked it was elected meanwhile. The epoch of such a leader is either in one of
the given logs, or missing between the epochs that are: then records that only the majority has are not known to be committed.

An offset whose record in a committed log has another epoch is `False`; all others are None, unknown. All ends are
exclusive.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple


class Span(NamedTuple):
    """Offsets with a known epoch."""

    start: int
    end: int
    epoch: int


@dataclass(frozen=True, slots=True)
class Copy:
    """One `__cluster_metadata-0`, as far as its files show it."""

    name: str
    """Its unique name."""
    node_id: int | None
    lineage: tuple[tuple[int, int], ...]
    """(epoch, start offset), increasing."""
    log_start: int
    log_end: int
    snapshots: tuple[tuple[int, int], ...] = ()
    """(end offset, epoch)."""
    voters: frozenset[int] | None = None
    """The voters of its last record about them."""
    voters_at: tuple[int, int] = (-1, -1)
    """The epoch and the offset of that record."""
    damaged: tuple[tuple[int, int], ...] = ()
    """(start, end) of offsets in its log that cannot be read, increasing."""
    is_committed: bool = False
    """All of it is committed: it is a mirror, which has no other records."""

    def spans(self) -> list[Span]:
        """Return its log by epochs, and the last offsets before its snapshots."""
        found = [Span(end - 1, end, epoch) for end, epoch in self.snapshots if end > 0]
        ends = [start for _, start in self.lineage[1:]]
        for (epoch, start), end in zip(self.lineage, [*ends, self.log_end], strict=False):
            span = Span(max(start, self.log_start), min(end, self.log_end), epoch)
            if span.start < span.end:
                found.append(span)
        return sorted(found)

    def whole_until(self, offset: int) -> int:
        """Return the end of what can be read from this offset on; the offset itself if that is damaged."""
        for start, end in self.damaged:
            if offset < end:
                return max(start, offset)
        return self.log_end

    def damage_end(self, offset: int) -> int:
        """Return the end of the damage at this offset; the offset itself if there is none."""
        return next((end for start, end in self.damaged if start <= offset < end), offset)

    def epoch_at(self, offset: int) -> int | None:
        return next((span.epoch for span in self.spans() if span.start <= offset < span.end), None)


class CommitVerdict(NamedTuple):
    """The verdict on the log of a copy: committed before `true_end`; lost from `false_start` on."""

    true_end: int
    false_start: int | None = None

    def of(self, offset: int) -> bool | None:
        if offset < self.true_end:
            return True
        return False if self.false_start is not None and offset >= self.false_start else None


class Read(NamedTuple):
    """A part of a plan: offsets of a copy's log, or one of its snapshots, which replaces all offsets before `end`."""

    name: str
    start: int
    end: int
    snapshot: tuple[int, int] | None = None
    is_damaged: bool = False
    """True for offsets that are damaged in every copy. A snapshot follows, or it is the last part."""


class ReadPlan(NamedTuple):
    """The committed log, merged: offsets without a gap, and a snapshot where no log starts early enough or all are damaged."""

    reads: tuple[Read, ...]
    end: int
    """All offsets before it are committed."""
    epoch: int
    """The epoch of the last offset before the end; -1 if there is none."""


Commons = dict[tuple[str, str], int]
"""`common_end` of two copies by their names; for a copy with itself, its end."""


def voters_of(copies: Iterable[Copy]) -> frozenset[int]:
    """Return the voters of the latest record about them; empty if no copy has one."""
    known = [copy for copy in copies if copy.voters]
    if not known:
        return frozenset()
    return max(known, key=lambda copy: copy.voters_at).voters or frozenset()


def common_end(one: Copy, other: Copy) -> int:
    """Return the offset before which both are known to be the same: the offset before it has the same epoch in both."""
    theirs: dict[int, list[Span]] = {}
    for span in other.spans():
        theirs.setdefault(span.epoch, []).append(span)
    end = 0
    for span in one.spans():
        for their in theirs.get(span.epoch, ()):
            if max(span.start, their.start) < (last := min(span.end, their.end)):
                end = max(end, last)
    return end


def verdicts(copies: Sequence[Copy], voters: Collection[int] | None = None) -> dict[str, CommitVerdict]:
    """Return the verdict on each copy, by its name. `voters` overrides those in the copies."""
    quorum = frozenset(voters) if voters else voters_of(copies)
    commons = {
        (one.name, other.name): one.log_end if one is other else common_end(one, other)
        for one in copies
        for other in copies
    }
    ends = {copy.name: _certain_end(copy, copies, quorum, commons) for copy in copies}
    # What is certain in one copy is certain in another, as far as both are the same; and from there in a third.
    changed = True
    while changed:
        changed = False
        for one in copies:
            for other in copies:
                end = min(commons[one.name, other.name], ends[other.name])
                if one is not other and end > ends[one.name]:
                    ends[one.name], changed = end, True
    return {copy.name: CommitVerdict(ends[copy.name], _false_start(copy, copies, ends)) for copy in copies}


def _certain_end(copy: Copy, copies: Sequence[Copy], voters: frozenset[int], commons: Commons) -> int:
    """Return the end of what its own snapshots and a majority of the voters confirm, or of a mirror."""
    if copy.is_committed:
        return copy.log_end
    snapshots = [end for end, _ in copy.snapshots]
    majority = _majority_end(copy, copies, voters, commons)
    return max([0, majority, *snapshots])


def _majority_end(copy: Copy, copies: Sequence[Copy], voters: frozenset[int], commons: Commons) -> int:
    if not voters:
        return 0
    by_voter: dict[int, int] = {}
    for other in copies:
        if other.node_id is not None and other.node_id in voters:
            end = min(commons[copy.name, other.name], copy.log_end)
            by_voter[other.node_id] = max(end, by_voter.get(other.node_id, 0))
    needed = len(voters) // 2 + 1
    if len(by_voter) < needed:
        return 0
    largest = sorted(by_voter.values(), reverse=True)[needed - 1]
    # A rival that lacks the last of these records may have the first of them.
    ends = {*by_voter.values(), *(start for _, start in copy.lineage)}
    all_at_hand = len(by_voter) == len(voters)
    for end in sorted((each for each in ends if copy.log_start < each <= largest), reverse=True):
        epoch = copy.epoch_at(end - 1)
        with_it = [each for each in copies if commons[copy.name, each.name] >= end]
        if epoch is not None and _no_rival(epoch, with_it, copies, all_at_hand=all_at_hand):
            return end
    return 0


def _no_rival(epoch: int, with_it: Sequence[Copy], copies: Sequence[Copy], *, all_at_hand: bool) -> bool:
    """Return whether every leader of a later epoch must have had a record of this epoch, which the copies `with_it` have."""
    known = {each for copy in with_it for each, _ in copy.lineage if each > epoch}
    others = {each for copy in copies for each, _ in copy.lineage if each > epoch}
    if all_at_hand:
        return others <= known
    return len(known) == max([epoch, *others]) - epoch


def _false_start(copy: Copy, copies: Sequence[Copy], ends: dict[str, int]) -> int | None:
    """Return the first offset at which a committed log has another epoch than this one."""
    found = [_first_difference(copy.spans(), each.spans(), ends[each.name]) for each in copies if each is not copy]
    starts = [start for start in found if start is not None]
    return max(min(starts), ends[copy.name]) if starts else None


def _first_difference(spans: Sequence[Span], theirs: Sequence[Span], end: int) -> int | None:
    """Return the first offset before `end` that has known, different epochs in both."""
    one = other = 0
    while one < len(spans) and other < len(theirs):
        span, their = spans[one], theirs[other]
        start = max(span.start, their.start)
        if start >= end:
            return None
        if start < min(span.end, their.end) and span.epoch != their.epoch:
            return start
        if span.end <= their.end:
            one += 1
        if their.end <= span.end:
            other += 1
    return None


def merge(
    copies: Sequence[Copy], found: dict[str, CommitVerdict], start: int = 0, *, uncommitted: bool = False
) -> ReadPlan:
    """Plan how to read each committed offset from `start` on once, from copies that are not damaged there.

    With `uncommitted`, the best log (of the latest epoch, then the longest) is read to its end.
    """
    ends = {copy.name: min(copy.log_end, found[copy.name].true_end) for copy in copies}
    end = max([0, *ends.values(), *(last for copy in copies for last, _ in copy.snapshots)])
    best = max(copies, key=lambda copy: (copy.lineage[-1][0] if copy.lineage else -1, copy.log_end), default=None)
    if uncommitted and best is not None and found[best.name].false_start is None:
        ends[best.name] = best.log_end
        end = max(end, best.log_end)
    reads: list[Read] = []
    at = start
    is_known = at == 0 or _damage_end(copies, ends, at - 1) < at  # the state before `at`, from what was read so far
    while at < end:
        having = _having(copies, ends, at)
        if not is_known or not having:
            # After damage, and where no log has the next offset, only a snapshot tells the state.
            found_snapshot = _first_snapshot(copies, ends, at + is_known)
            if found_snapshot is None:
                break
            reads.append(found_snapshot._replace(start=at))
            at, is_known = found_snapshot.end, True
        elif (damage_end := _damage_end(copies, ends, at)) > at:
            name = next(copy.name for copy in having if min(copy.damage_end(at), ends[copy.name]) == damage_end)
            reads.append(Read(name, at, damage_end, is_damaged=True))
            at, is_known = damage_end, False
        else:
            until = {copy.name: min(ends[copy.name], copy.whole_until(at)) for copy in having}
            name = max(until, key=lambda name: (until[name], name))
            reads.append(Read(name, at, until[name]))
            at = until[name]
    return ReadPlan(tuple(reads), at, _epoch_before(copies, ends, at))


def _having(copies: Sequence[Copy], ends: dict[str, int], offset: int) -> list[Copy]:
    """Return the copies whose log has this offset, damaged or not."""
    return [copy for copy in copies if copy.log_start <= offset < ends[copy.name]]


def _damage_end(copies: Sequence[Copy], ends: dict[str, int], offset: int) -> int:
    """Return the first offset after the damage here that some copy has whole; this offset if one has this whole."""
    return min(
        (min(copy.damage_end(offset), ends[copy.name]) for copy in _having(copies, ends, offset)), default=offset
    )


def _first_snapshot(copies: Sequence[Copy], ends: dict[str, int], offset: int) -> Read | None:
    """Return the earliest snapshot of this end or later after which a log continues, so that most history is read.

    If there is none, return the latest.
    """
    known = [
        (end, epoch, copy.name) for copy in sorted(copies, key=lambda each: each.name) for end, epoch in copy.snapshots
    ]
    later = sorted(each for each in known if each[0] >= offset)
    for end, epoch, name in later:
        if _having(copies, ends, end) or end == later[-1][0]:
            return Read(name, 0, end, (end, epoch))
    return None


def _epoch_before(copies: Sequence[Copy], ends: dict[str, int], offset: int) -> int:
    for copy in copies:
        if any(end == offset for end, _ in copy.snapshots):
            return next(epoch for end, epoch in copy.snapshots if end == offset)
    for copy in copies:
        if copy.log_start < offset <= ends[copy.name] and (epoch := copy.epoch_at(offset - 1)) is not None:
            return epoch
    return -1


def epoch_of(copies: Sequence[Copy], found: dict[str, CommitVerdict], offset: int) -> int | None:
    """Return the epoch of the committed record at an offset; None if no copy is known to have it committed."""
    for copy in copies:
        if offset < found[copy.name].true_end and (epoch := copy.epoch_at(offset)) is not None:
            return epoch
    return None
