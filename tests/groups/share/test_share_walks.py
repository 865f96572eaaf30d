"""Random lives of share groups on Apache Kafka 4.3.1: the same answers and records from a node in memory."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.groups.walks import SHARE_SETTINGS, Walk, repeat

WALKS = sorted((Path(__file__).parent / "data").glob("walk-*.jsonl.gz"))


@pytest.mark.parametrize("path", WALKS, ids=lambda path: path.name.partition(".")[0])
def test_kafka_s_answers_and_records(path: Path) -> None:
    asyncio.run(repeat(Walk.load(path), SHARE_SETTINGS))
