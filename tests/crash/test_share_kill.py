"""A node killed while members of a share group work: every record is accepted, and none comes again that was.

Rounds: 3, or BARNABAS_CRASH_ROUNDS. A producer and two members go on through all kills.
"""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest
from tools.apache_kafka import Barnabas

from tests.client.share_scenes import BROKER_CONFIGS, prepare
from tests.client.share_work import Work

ROUNDS = int(os.environ.get("BARNABAS_CRASH_ROUNDS", "3"))
PARTITIONS = 2
SOON = {"share.coordinator.snapshot.update.records.per.snapshot": "5"}  # so that kills fall between snapshots too


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Barnabas]:
    running = Barnabas({**BROKER_CONFIGS, **SOON}, directory=tmp_path)
    running.start()
    yield running
    running.kill()


def test_every_record_is_accepted_and_no_accepted_one_comes_again(node: Barnabas) -> None:
    seed = random.randrange(1 << 32)
    choice = Random(seed)

    async def main() -> None:
        topic, settings = await prepare(
            node.bootstrap,
            "killed",
            0,
            PARTITIONS,
            share_record_lock_duration_ms="1000",
            share_delivery_count_limit="10",
        )
        work = Work(settings, topic, PARTITIONS)
        work.start(Random(choice.random()))
        try:
            for _ in range(ROUNDS):
                await work.until(choice.randint(20, 120))
                await asyncio.sleep(choice.uniform(0, 0.03))
                await asyncio.to_thread(node.kill)
                await asyncio.to_thread(node.start)
            await work.finish()
        finally:
            await work.stop()
        work.check()
        maybe = len(work.perhaps_accepted - work.accepted.keys())
        print(f"{ROUNDS} rounds: {len(work.sent)} records sent, {len(work.accepted)} accepted, {maybe} perhaps")

    print(f"seed {seed}")
    asyncio.run(main())
    assert node.stop() == 0
    assert "Traceback" not in node.log.read_text()
