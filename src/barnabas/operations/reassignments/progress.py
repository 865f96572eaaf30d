"""Progress of reassignments: the sizes of replicas that are being added, compared with those of their leaders. Pure.

Its one rule: an unknown value is None, never a guess. A rate needs two measurements, and a remaining time needs a rate.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple

from barnabas.client.admin.reassignments import PartitionReassignment
from barnabas.operations.partitions import Key

_NOT_DONE = 99.0  # the maximum in percent until all replicas are in sync


class Look(NamedTuple):
    """One measurement: reassignments, leaders, in-sync replicas, and sizes in bytes on each broker that answered."""

    at_s: float
    reassignments: Mapping[Key, PartitionReassignment]
    leaders: Mapping[Key, int]
    isr: Mapping[Key, Collection[int]]
    sizes: Mapping[int, Mapping[Key, int]]


class Progress(NamedTuple):
    """Progress in added replicas that are in sync, and in bytes copied; None for unknown bytes."""

    adding: int
    in_sync: int
    bytes_total: int | None = None
    bytes_done: int | None = None
    rate: float | None = None

    @property
    def percent(self) -> float | None:
        if self.bytes_total is None or self.bytes_done is None:
            return None
        if not self.bytes_total:  # nothing to copy: replicas only have to get in sync
            return 100.0 * self.in_sync / self.adding if self.adding else 100.0
        percent = 100.0 * self.bytes_done / self.bytes_total
        return percent if self.in_sync == self.adding else min(percent, _NOT_DONE)

    @property
    def bytes_left(self) -> int | None:
        return None if self.bytes_total is None or self.bytes_done is None else self.bytes_total - self.bytes_done

    @property
    def left_s(self) -> float | None:
        if self.bytes_left is None or not self.rate:
            return None
        return self.bytes_left / self.rate


def progress_of(key: Key, now: Look, before: Look | None = None) -> Progress:
    """Return the progress of one partition. The rate is computed from an earlier measurement, `before`."""
    adding, isr = now.reassignments[key].adding_replicas, now.isr.get(key, ())
    plain = Progress(len(adding), sum(each in isr for each in adding))
    done = _done(key, now)
    if done is None:
        return plain
    earlier = None if before is None or key not in before.reassignments else _done(key, before)
    rate = None
    if before is not None and earlier is not None and now.at_s > before.at_s:
        rate = max(0.0, (done - earlier) / (now.at_s - before.at_s))
    return plain._replace(bytes_total=len(adding) * _leader_size(key, now), bytes_done=done, rate=rate)


def _leader_size(key: Key, look: Look) -> int:
    return look.sizes[look.leaders[key]].get(key, 0)


def _done(key: Key, look: Look) -> int | None:
    """Return the bytes of the added replicas. An in-sync one counts as complete, even if its segments differ in size."""
    adding, isr = look.reassignments[key].adding_replicas, look.isr.get(key, ())
    if look.leaders.get(key) not in look.sizes or any(each not in look.sizes and each not in isr for each in adding):
        return None
    whole = _leader_size(key, look)
    return sum(whole if each in isr else min(whole, look.sizes[each].get(key, 0)) for each in adding)


def sum_of(parts: Collection[Progress]) -> Progress:
    """Return the sum. Bytes are None if they are unknown for one of the parts."""
    together = Progress(sum(each.adding for each in parts), sum(each.in_sync for each in parts))
    if any(each.bytes_left is None for each in parts):
        return together
    rates = [each.rate for each in parts if each.rate is not None]
    return together._replace(
        bytes_total=sum(each.bytes_total or 0 for each in parts),
        bytes_done=sum(each.bytes_done or 0 for each in parts),
        rate=sum(rates) if rates else None,
    )
