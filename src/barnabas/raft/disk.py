"""Executes the core's disk work on a RaftLog, for the driver and for simulations.

Its one rule: it executes one piece of work at a time, in the order given, and decides nothing.
"""

from __future__ import annotations

from barnabas.raft import records
from barnabas.raft.log import RaftLog, SnapshotWriter
from barnabas.raft.ready import Answer, DiskWork, LogRead, SnapshotChunk, SnapshotRead
from barnabas.raft.voters import VoterHistory, VoterSet
from barnabas.wire import ErrorCode, Message
from barnabas.wire.messages.fetch import FetchResponse
from barnabas.wire.messages.fetch_snapshot import FetchSnapshotResponse


class Disk:
    """A log, and the snapshot being downloaded into it."""

    def __init__(self, log: RaftLog, static_voters: VoterSet) -> None:
        self.log = log
        self._static_voters = static_voters
        self._download: SnapshotWriter | None = None

    def write(self, work: DiskWork) -> VoterHistory | None:
        """Do everything except the flush. After the last chunk of a snapshot, return the voters in it."""
        if work.truncate_to is not None:
            self.log.truncate(work.truncate_to)
        if work.batches:
            self.log.append(work.batches)
        return None if work.chunk is None else self._write_chunk(work.chunk)

    def _write_chunk(self, chunk: SnapshotChunk) -> VoterHistory | None:
        if chunk.position == 0:
            self.close()
            self._download = self.log.create_snapshot(chunk.snapshot_id)
        download = self._download
        if download is None or (download.snapshot_id, download.size_in_bytes) != (chunk.snapshot_id, chunk.position):
            raise ValueError(
                f"the chunk of snapshot {chunk.snapshot_id} at position {chunk.position} does not follow the last one"
            )
        download.append(chunk.data)
        if not chunk.is_last:
            return None
        download.freeze()
        self._download = None
        self.log.replace_by_snapshot(chunk.snapshot_id)
        snapshot = self.log.open_snapshot(chunk.snapshot_id)
        assert snapshot is not None
        history = VoterHistory(self._static_voters)
        records.apply_snapshot(history, snapshot)
        return history

    def close(self) -> None:
        """Delete an incomplete download."""
        if self._download is not None:
            self._download.close()
            self._download = None

    def fill(self, answer: Answer) -> Message:
        """Add the requested records or snapshot bytes to a response, and return it."""
        if isinstance(answer.read, LogRead):
            assert isinstance(answer.message, FetchResponse)
            partition = answer.message.responses[0].partitions[0]
            partition.records = self.log.read(answer.read.offset, answer.read.max_bytes)
        elif isinstance(answer.read, SnapshotRead):
            assert isinstance(answer.message, FetchSnapshotResponse)
            self._fill_snapshot(answer.message.topics[0].partitions[0], answer.read)
        return answer.message

    def _fill_snapshot(self, partition: FetchSnapshotResponse.PartitionSnapshot, read: SnapshotRead) -> None:
        snapshot = self.log.open_snapshot(read.snapshot_id)
        if snapshot is None:
            partition.error_code = ErrorCode.SNAPSHOT_NOT_FOUND
        elif not 0 <= read.position < snapshot.size_in_bytes:
            partition.error_code = ErrorCode.POSITION_OUT_OF_RANGE
        else:
            partition.snapshot_id.end_offset, partition.snapshot_id.epoch = read.snapshot_id
            partition.size = snapshot.size_in_bytes
            partition.position = read.position
            partition.unaligned_records = snapshot.read(read.position, max(read.max_bytes, 1))
