"""Snapshots as bytes, for logs in memory; nodes write theirs with barnabas.storage."""

from __future__ import annotations

from collections.abc import Sequence

from barnabas import wire
from barnabas.batches import ControlType, Record, build_batch, build_control_batch
from barnabas.raft.log import LOG_START, OffsetAndEpoch
from barnabas.raft.records import ControlRecord, kraft_version, voters
from barnabas.raft.voters import VoterSet
from barnabas.wire.records.control import SnapshotFooterRecord, SnapshotHeaderRecord


class SnapshotBuilder:
    """The bytes of a snapshot, part by part: `header`, any number of `records`, `footer`. Its offsets count from zero."""

    def __init__(self, snapshot_id: OffsetAndEpoch) -> None:
        self.snapshot_id = snapshot_id
        self._next_offset = 0

    def header(
        self, timestamp: int, last_contained_log_timestamp: int, version: int, voter_set: VoterSet | None
    ) -> bytes:
        """The first batch; with kraft.version 0 there is nothing in it of versions and voters."""
        first = SnapshotHeaderRecord(last_contained_log_timestamp=last_contained_log_timestamp)
        controls: list[ControlRecord] = [(ControlType.SNAPSHOT_HEADER, wire.encode_record(first, 0))]
        if version > 0:
            controls.append(kraft_version(version))
            if voter_set is not None:
                controls.append(voters(voter_set))
        return self._control(controls, timestamp)

    def records(self, values: Sequence[bytes], timestamp: int) -> bytes:
        base_offset = self._next_offset
        self._next_offset += len(values)
        return build_batch(
            (Record(0, timestamp, None, value) for value in values),
            base_offset=base_offset,
            partition_leader_epoch=self.snapshot_id.epoch,
        )

    def footer(self, timestamp: int) -> bytes:
        return self._control([(ControlType.SNAPSHOT_FOOTER, wire.encode_record(SnapshotFooterRecord(), 0))], timestamp)

    def _control(self, controls: list[ControlRecord], timestamp: int) -> bytes:
        base_offset = self._next_offset
        self._next_offset += len(controls)
        return build_control_batch(
            controls, timestamp=timestamp, base_offset=base_offset, partition_leader_epoch=self.snapshot_id.epoch
        )


def bootstrap_snapshot(version: int, voter_set: VoterSet | None, timestamp: int) -> bytes:
    """The whole checkpoint that formatting leaves in a directory whose voters are in the log."""
    builder = SnapshotBuilder(LOG_START)
    return builder.header(timestamp, timestamp, version, voter_set) + builder.footer(timestamp)
