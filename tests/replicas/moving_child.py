"""Appends to a log that is moved from one log dir to the other and back, until it is killed; says which offset is next.

Run as a process of its own: directory, seed. One idempotent producer writes each offset as a value. What a controller would
have accepted is in the file `assigned`.
"""

from __future__ import annotations

import asyncio
import os
import random
import sys
from collections.abc import Callable
from pathlib import Path

from barnabas.replicas import moving
from barnabas.replicas.partition import Partition
from barnabas.wire import Uuid
from tests.replicas.test_replicas import DIRECTORY_IDS, Broker, topic
from tests.storage.made import produced, validated

DIRS = ("one", "two")
SETTINGS = {"segment.bytes": 4000, "index.interval.bytes": 200}


def assigned(path: Path) -> str:
    file = path / "assigned"
    return file.read_text() if file.exists() else "one"


def start(path: Path, assign: Callable[[Partition, Uuid, Callable[[], None]], None] | None = None) -> Broker:
    return Broker(path, *topic(directory=assigned(path)), dirs=DIRS, assign=assign, settings=SETTINGS)


async def run(path: Path, chance: random.Random) -> None:
    def assign(partition: Partition, directory_id: Uuid, accepted: Callable[[], None]) -> None:
        name = next(name for name in DIRS if DIRECTORY_IDS[name] == directory_id)
        (path / "assigned.new").write_text(name)
        (path / "assigned.new").replace(path / "assigned")
        asyncio.get_running_loop().call_later(chance.random() / 100, accepted)

    broker = start(path, assign)
    partition = broker.replicas.partition("t", 0)
    moves = asyncio.create_task(broker.replicas.moves.run())
    while not moves.done():
        if not list(broker.replicas.moves):
            other = next(name for name in DIRS if str(broker.paths[name]) != partition.log_dir)
            broker.replicas.move(partition, str(broker.paths[other]))
        for _ in range(chance.randint(0, 5)):
            offset = partition.log_end_offset
            batch = validated(produced(1, offset, b"%d" % offset))
            partition.append(batch)
            assert partition.append(batch).is_duplicate
            os.write(1, b"%d\n" % partition.log_end_offset)
        await asyncio.sleep(chance.random() / 1000)
        if chance.random() < 0.05:
            await broker.replicas.write_checkpoints()
    moves.result()


if __name__ == "__main__":
    moving.SLICE_BYTES = 2000
    moving.WAIT_S = 0.001
    asyncio.run(run(Path(sys.argv[1]), random.Random(int(sys.argv[2]))))
