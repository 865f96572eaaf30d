"""Where a follower's log is cut so that it becomes a prefix of its leader's. Pure.

A leader that finds another epoch at the end of a follower's log returns the largest epoch that both may have, and its
end offset there. If the follower does not know that epoch either, it cuts its log to the end of the last one before it,
and asks again with its next fetch.
"""

from __future__ import annotations

from barnabas.storage.epochs import UNDEFINED_EPOCH, UNDEFINED_OFFSET, EpochEndOffset


def truncation_offset(diverging: EpochEndOffset, own: EpochEndOffset, log_end_offset: int, high_watermark: int) -> int:
    """Return the offset to truncate to. `diverging` is the leader's answer, `own` the end of that epoch in this log.

    >>> truncation_offset(EpochEndOffset(3, 40), EpochEndOffset(3, 50), 60, 0)
    40
    >>> truncation_offset(EpochEndOffset(3, 40), EpochEndOffset(2, 30), 60, 0)
    30
    """
    if diverging.end_offset == UNDEFINED_OFFSET:
        return min(high_watermark, log_end_offset)
    if UNDEFINED_EPOCH in (diverging.leader_epoch, own.leader_epoch):
        return min(diverging.end_offset, log_end_offset)
    if own.leader_epoch != diverging.leader_epoch:
        return min(own.end_offset, log_end_offset)
    return min(own.end_offset, diverging.end_offset, log_end_offset)
