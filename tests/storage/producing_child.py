"""Appends to a log as producers do, in transactions and without, until it is killed; says what it has as `appending_child`.

Run as a process of its own: directory, after how many appends it flushes (0: never), seed. What a record is says its value:
producer id and sequence. Producers go on where the log says that they were.
"""

from __future__ import annotations

import os
import random
import sys
from pathlib import Path

from barnabas.storage import Log, LogConfig
from tests.storage.made import NOW_MS, Clock, produced

CONFIG = LogConfig(segment_bytes=3000, index_interval_bytes=200, transaction_partition_verification_enable=False)
PRODUCERS = range(1, 6)


def main(directory: Path, flush_every: int, seed: int) -> None:
    chance = random.Random(seed)
    log = Log.open(directory, CONFIG, clock=Clock())
    appended = 0
    while True:
        producer_id = chance.choice(PRODUCERS)
        state = log.producers.get(producer_id)
        in_transaction = state is not None and state.current_txn_first_offset >= 0
        if in_transaction and chance.random() < 0.3:
            log.append_marker(
                producer_id=producer_id,
                producer_epoch=0,
                commit=chance.random() < 0.5,
                coordinator_epoch=0,
                leader_epoch=0,
                now_ms=NOW_MS,
                transaction_version=1,
            )
        else:
            sequence = 0 if state is None else state.last_sequence + 1
            values = [b"%d:%d" % (producer_id, sequence + number) for number in range(chance.randint(1, 4))]
            # Odd ones write in transactions only, even ones never.
            data = produced(producer_id, sequence, *values, transactional=producer_id % 2 == 1)
            info = log.append_as_leader(data, 0)
            again = log.append_as_leader(data, 0)
            assert again.is_duplicate
            assert again.base_offset == info.base_offset
        appended += 1
        if flush_every and appended % flush_every == 0:
            log.flush()
        os.write(1, b"%d %d\n" % (log.log_end_offset, log.recovery_point))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
