"""Folding the logs of coordinators with Spark: each partition of their topics is one log, folded by one shard.

Its one rule: it only connects two parts. The fold of a topic (groups, transactions) knows the effects of records; `spark` moves
rows to shards and facts out of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final, Protocol

from barnabas.lake.facts.log_facts import LogFacts, LogPosition
from barnabas.lake.facts.sharding import log_key, log_key_column, shard_column, shard_of

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

    from barnabas.lake.facts.schema import Fact, FactWriter
    from barnabas.lake.facts.spark import Family

COLUMNS: Final = (
    "offset",
    "timestamp",
    "leader_epoch",
    "producer_id",
    "is_transactional",
    "is_control",
    "raw_key",
    "raw_value",
    "segment",
    "position",
)


class RecordsFold(Protocol):
    """Applies the records of one log to its facts."""

    facts: LogFacts

    def apply(
        self, key: bytes | None, value: bytes | None, place: LogPosition, producer_id: int | None = None
    ) -> None: ...
    def apply_marker(self, key: bytes | None, value: bytes | None, place: LogPosition, producer_id: int) -> None: ...
    def end_batch(self) -> None: ...
    def restore(self, kind: str, facts: list[Fact]) -> None: ...
    def all_open(self) -> Iterator[tuple[str, Fact]]: ...


class _LogFold:
    """Adapts a fold of records to `spark.run_shard`. A batch ends where the next one starts."""

    def __init__(self, make: Callable[[], RecordsFold], writer: FactWriter, shard: int, shards: int) -> None:
        self._fold = make()
        self._writer = writer
        self._batch: list[str | int] | None = None

    def restore(self, kind: str, facts: list[Fact]) -> None:
        self._fold.restore(kind, facts)

    def feed(self, records: pa.RecordBatch) -> None:
        fold, batch = self._fold, self._batch
        columns = [
            (column.cast("int64") if name == "timestamp" else column).to_pylist()
            for name, column in zip(records.schema.names, records.columns, strict=True)
        ]
        for offset, time_us, epoch, producer_id, in_txn, is_control, key, value, *of in zip(*columns, strict=True):
            if of != batch:
                fold.end_batch()
                batch = of
            place = LogPosition(offset, time_us, epoch)
            if is_control:
                fold.apply_marker(key, value, place, producer_id)
            else:
                fold.apply(key, value, place, producer_id if in_txn else None)
        self._batch = batch
        self._move()

    def finish(self) -> Iterator[tuple[str, Fact]]:
        self._fold.end_batch()
        self._move()
        return self._fold.all_open()

    def _move(self) -> None:
        for kind, facts in self._fold.facts.ended.items():
            self._writer.of(kind).extend(facts)
            facts.clear()


def _destinations(kind: str, facts: pa.RecordBatch, shards: int) -> Sequence[Sequence[int]]:
    pairs = zip(facts.column("cluster_id").to_pylist(), facts.column("log").to_pylist(), strict=True)
    return [(shard_of(log_key(cluster_id, log), shards),) for cluster_id, log in pairs]


def family(topic: str, make: Callable[[], RecordsFold]) -> Family:
    """Return the family of a topic's logs."""
    from barnabas.lake.facts.spark import Family

    return Family(f"{topic}-", COLUMNS, ("offset",), partial(_LogFold, make), _destinations)


def fold_logs(
    topic: str, make: Callable[[], RecordsFold], records: DataFrame, open_facts: DataFrame, *, shards: int
) -> DataFrame:
    """Return the facts that end with these records of a topic, and all that are open after them."""
    from pyspark.sql import functions as f

    from barnabas.lake.facts.spark import fold

    # Not records["partition"]: that would be bound to the frame, which a pipeline replaces before it runs the plan.
    named = records.withColumn("log", f.concat(f.lit(f"{topic}-"), f.col("partition").cast("string")))
    routed = named.withColumn("shard", shard_column(log_key_column(f.col("cluster_id"), f.col("log")), shards))
    return fold(routed, open_facts, family(topic, make), shards=shards)
