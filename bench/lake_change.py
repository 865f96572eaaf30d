"""What a batch costs a lake, by its size and by the size of the cluster that the lake is about.

Clusters of 1,000, 10,000 and 100,000 partitions; to each, batches of in-sync replicas that change are added one after the
other, and `lake run` is timed in one session that stays: the batch by itself, and with the gold tables that are kept. The
first batch of each size is not counted, since Java compiles then.
"""

from __future__ import annotations

import os
import random
import statistics
import sys
import tempfile
from pathlib import Path
from typing import Any

from bench import big_cluster, metadata_history
from bench.large_history import LargeCluster
from bench.metadata_history import BEGIN_MS, CONTROLLER, SEED
from bench.spark_session import Session
from bench.table import Row

SECTION = "lake-change"
PARTITIONS = tuple(map(int, os.environ.get("BENCH_LAKE_PARTITIONS", "1_000,10_000,100_000").split(",")))
CHANGES = tuple(map(int, os.environ.get("BENCH_LAKE_CHANGES", "1,100,10_000").split(",")))
ROUNDS = int(os.environ.get("BENCH_LAKE_ROUNDS", "4"))
CORES = 2


class History:
    """A metadata log that grows as it is told to."""

    def __init__(self, log_dir: Path, partitions: int) -> None:
        self._source = random.Random(SEED)
        self._now_ms = BEGIN_MS
        self._log = big_cluster.begin(log_dir, CONTROLLER, self._source, lambda: self._now_ms)
        self._cluster = LargeCluster(self._source)
        self._cluster.partitions = partitions + max(LargeCluster.partitions_of_a_topic)
        big_cluster.append(self._log, self._cluster.register_brokers(), self._now_ms)
        while self._cluster.following:
            self._append(self._cluster.following.pop(0)())
        self._log.flush()

    def _append(self, records: list[big_cluster.Versioned]) -> None:
        self._now_ms += 1000
        self._log.append(big_cluster.batch(records, self._log.end_offset, big_cluster.EPOCH, self._now_ms))

    def change(self, count: int) -> None:
        """Change the in-sync replicas of that many partitions, of as many topics as there are, in batches of ten."""
        topics = self._cluster._topics
        for start in range(0, count, 10):
            records = []
            for _ in range(min(10, count - start)):
                each = self._source.choice(self._source.choice(topics)[2])
                away = set(each.replicas) - set(each.isr)
                if away:
                    each.isr = list(each.replicas)
                    records.append(metadata_history.changed(each, each.isr))
                else:
                    records.append(metadata_history.without(each, each.replicas[-1]))
            self._append(records)
        self._log.flush()


def run() -> list[Row]:
    from barnabas.lake.spark.session import SETTINGS

    settings = {
        **SETTINGS,
        "spark.master": f"local[{CORES}]",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.log.level": "ERROR",
    }
    with tempfile.TemporaryDirectory(prefix="bench-lake-") as name:
        folder = Path(name)
        with Session(Path(sys.executable), settings, folder / "spark.log") as session:
            rows = []
            for partitions in PARTITIONS:
                here = folder / str(partitions)
                rows += _measured(session, here / "log", str(here / "lake"), partitions)
            return rows


def _measured(session: Session, log_dir: Path, lake: str, partitions: int) -> list[Row]:
    log_dir.parent.mkdir()
    history = History(log_dir, partitions)

    def grown() -> dict[str, Any]:
        answer = session.ask(lake=lake, log_dir=str(log_dir), keeps_gold=True)
        print(f"{partitions:,} partitions: {answer}", file=sys.stderr, flush=True)
        return answer

    first = grown()
    rows = [_stated(f"{partitions:,} partitions: the first run, {first['rows']:,} records", first["seconds"])]
    for count in CHANGES:
        taken = []
        for _ in range(ROUNDS):
            history.change(count)
            taken.append(grown())
        batches = [sum(each["batches"]) for each in taken[1:]]
        rows += [
            _stated(f"{partitions:,} partitions: a batch of {count:,} changes", statistics.median(batches)),
            _stated(
                f"{partitions:,} partitions: the run of {count:,} changes, with gold",
                statistics.median(each["seconds"] for each in taken[1:]),
            ),
        ]
    return rows


def _stated(question: str, seconds: float) -> Row:
    return Row(SECTION, question, seconds, "-", None, "s", None, None, None, None)
