"""Choice of a partition's leader, clean or unclean. Pure.

Its one rule: a replica that has all acknowledged records (in the ISR, or in the ELR if the ISR is empty) is preferred to every
other. An unclean leader is chosen only for the last known leader, with ELR enabled, or if an unclean election is requested.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from enum import Enum

from barnabas.metadata.topics import NO_LEADER, Partition


class Election(Enum):
    PREFERRED = "the preferred replica if it is in sync, otherwise like ONLINE"
    ONLINE = "the current leader, or the first replica that is in sync or eligible"
    UNCLEAN = "like ONLINE, otherwise the first live replica, which may lose records"


def choose_leader(
    partition: Partition,
    replicas: Sequence[int],
    isr: Collection[int],
    elr: Collection[int],
    election: Election,
    is_acceptable: Callable[[int], bool],
    *,
    is_elr_enabled: bool,
) -> tuple[int, bool]:
    """Return the leader, and whether it may lack acknowledged records. NO_LEADER if no replica may lead.

    `replicas`, `isr` and `elr` are those after the change of `partition`; `is_acceptable` tells which brokers are alive.
    """
    preferred = replicas[:1] if election is Election.PREFERRED else ()
    for replica in (*preferred, partition.leader, *replicas):
        if replica in (isr or elr) and is_acceptable(replica):
            return replica, False
    known = partition.last_known_elr
    if is_elr_enabled and not elr and not isr and len(known) == 1 and is_acceptable(known[0]):
        return known[0], True
    if election is Election.UNCLEAN:
        for replica in replicas:
            if is_acceptable(replica):
                return replica, True
    return NO_LEADER, False
