"""The checkpoint files of a log dir: recovery points, log start offsets and high watermarks of its partitions."""

from __future__ import annotations

import logging
from collections.abc import Container
from pathlib import Path

from barnabas.replicas.partition import Partition
from barnabas.steps import Slices, stepwise
from barnabas.storage import (
    HIGH_WATERMARK_CHECKPOINT,
    LOG_START_OFFSET_CHECKPOINT,
    RECOVERY_POINT_CHECKPOINT,
    Log,
    TopicPartition,
    write_offset_checkpoint,
)
from barnabas.storage.log_dirs import ScannedDir

_log = logging.getLogger(__name__)


class LogDirCheckpoints:
    """The checkpoint files of one log dir. Entries of logs that were not opened since are kept."""

    def __init__(self, log_dir: Path, found: ScannedDir) -> None:
        self.log_dir = log_dir
        self.was_clean = found.was_clean
        self.recovery_points = found.recovery_points
        self.log_start_offsets = found.log_start_offsets
        self.high_watermarks = found.high_watermarks
        self._written: dict[str, dict[TopicPartition, int]] = {}

    def write(self) -> None:
        for file_name, offsets in (
            (RECOVERY_POINT_CHECKPOINT, self.recovery_points),
            (LOG_START_OFFSET_CHECKPOINT, self.log_start_offsets),
            (HIGH_WATERMARK_CHECKPOINT, self.high_watermarks),
        ):
            now = dict(offsets)
            if self._written.get(file_name) != now:
                write_offset_checkpoint(self.log_dir / file_name, now)
                self._written[file_name] = now

    def forget(self, name: TopicPartition) -> None:
        for offsets in (self.recovery_points, self.log_start_offsets, self.high_watermarks):
            offsets.pop(name, None)

    def take(self, name: TopicPartition, partition: Partition, opened: Log) -> None:
        self.recovery_points[name] = opened.recovery_point
        if opened.log_start_offset > opened.segments[0].base_offset:
            self.log_start_offsets[name] = opened.log_start_offset
        else:
            self.log_start_offsets.pop(name, None)
        self.high_watermarks[name] = min(partition.high_watermark, opened.log_end_offset)

    def warn_of_loss(self, name: TopicPartition, log_end_offset: int) -> None:
        """Warn if a log ends before its recovery point.

        After an unclean shutdown, the recovery point may be that of a deleted topic of the same name.
        """
        recovery_point = self.recovery_points.get(name, 0)
        if self.was_clean and log_end_offset < recovery_point:
            _log.warning(
                "%s: log end offset %d is below the recovery point %d that was checkpointed at the clean shutdown: "
                "records were lost",
                *(name, log_end_offset, recovery_point),
            )

    def keep_only(self, names: Container[TopicPartition]) -> Slices[None]:
        """Drop entries of partitions that are not in the log dir, so that a new log does not inherit them."""
        for offsets in (self.recovery_points, self.log_start_offsets, self.high_watermarks):
            for some in stepwise(list(offsets)):
                for name in some:
                    if name not in names:
                        del offsets[name]
                yield
