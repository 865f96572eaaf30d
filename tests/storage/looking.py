"""A directory from outside, and a log through its readers: what may not change, and what has to be the same."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path
from typing import Any

from barnabas.storage import Log, LogConfig
from tests.storage.made import Clock, whole_log


def state(directory: Path) -> dict[str, tuple[int, int, str]]:
    """Every file and directory: its time of change, its mode and its content."""
    return {
        str(path.relative_to(directory)): (
            path.stat().st_mtime_ns,
            path.stat().st_mode,
            hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "",
        )
        for path in [directory, *directory.rglob("*")]
    }


def seen(log: Log) -> dict[str, Any]:
    """All that readers can ask a log."""
    start, end = log.log_start_offset, log.log_end_offset
    times = sorted({header.max_timestamp for header, _ in log.batches()})
    middle = (start + end) // 2
    return {
        "offsets": (start, end),
        "batches": whole_log(log),
        "from the middle": log.read(middle, 300) if start <= middle < end else b"",
        "epochs": log.epochs.entries,
        "ends of epochs": [log.end_offset_for_epoch(entry.epoch) for entry in log.epochs.entries],
        "last stable offset": log.last_stable_offset(end),
        # Of a batch, a snapshot does not know the timestamp.
        "producers": {
            (each._replace(batches=()), each.last_sequence, each.last_data_offset) for each in log.active_producers()
        },
        "aborted": log.aborted_transactions(start, end),
        "by time": [log.offset_for_timestamp(time) for time in (0, *times, 2**62)],
        "latest": log.offset_for_max_timestamp(),
        "size": log.size_in_bytes,
    }


def look(directory: Path, config: LogConfig, **options: Any) -> dict[str, Any]:
    """What is seen of a log that is not ours, of which not a byte changes; the same as if it were ours."""
    before = state(directory)
    log = Log.open(directory, config, clock=Clock(), read_only=True, **options)
    found = seen(log)
    log.close()
    assert state(directory) == before
    own = directory.with_name(directory.name + "-own")
    shutil.copytree(directory, own)
    log = Log.open(own, config, clock=Clock(), **options)
    assert found == seen(log)
    log.abandon()
    shutil.rmtree(own)
    return found
