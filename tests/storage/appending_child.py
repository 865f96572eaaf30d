"""Appends to a log until it is killed, and says on its output what it has: `<end offset> <flushed end offset>`.

Run as a process of its own: directory, whether it is a metadata log, after how many appends it flushes (0: never).
"""

from __future__ import annotations

import os
import random
import sys
from pathlib import Path

from barnabas.storage import Log, LogConfig
from tests.storage.made import Clock, batch


def main(directory: Path, metadata: bool, flush_every: int, seed: int) -> None:
    chance = random.Random(seed)
    config = LogConfig(segment_bytes=3000, index_interval_bytes=200, metadata=metadata)
    log = Log.open(directory, config, clock=Clock())
    epoch = (log.epochs.latest_epoch or 0) + 1
    appended = 0
    while True:
        count = chance.randint(1, 4)
        offset = log.log_end_offset
        values = [b"%d:" % (offset + number) + b"x" * chance.randint(0, 100) for number in range(count)]
        log.append_as_leader(batch(*values), epoch)
        appended += 1
        if flush_every and appended % flush_every == 0:
            log.flush()
        os.write(1, b"%d %d\n" % (log.log_end_offset, log.recovery_point))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2] == "metadata", int(sys.argv[3]), int(sys.argv[4]))
