"""Appending batches that were copied from another log, of the leader or of another log dir, as they are."""

from __future__ import annotations

from barnabas.batches import HEADER_SIZE, decode_header
from barnabas.batches.format import Buffer
from barnabas.storage import AppendInfo, Log


def append_copy(log: Log, data: Buffer, *, max_leader_epoch: int | None = None) -> AppendInfo | None:
    """Append batches with their offsets and epochs, and return None if there is no whole batch.

    The first batch of an empty log may begin before the log start offset, which is then inside this batch. Raises what
    `Log.append_as_follower` raises.
    """
    start_offset = log.log_start_offset
    if start_offset == log.log_end_offset and not log.size_in_bytes and len(data) >= HEADER_SIZE:
        first_offset = decode_header(data).base_offset
        if first_offset < log.log_end_offset:
            log.truncate_fully_and_start_at(first_offset)
    info = log.append_as_follower(data, max_leader_epoch=max_leader_epoch)
    if info is not None:
        log.advance_log_start_offset(start_offset)
    return info
