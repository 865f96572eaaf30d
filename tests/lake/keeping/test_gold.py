"""Gold tables that runs keep: only what a batch changes is computed anew, and what stays is what it would be."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from bench import metadata_history
from bench.lake_change import History

from barnabas.lake.asking.opened import OpenLake
from barnabas.lake.keeping import digests
from barnabas.lake.keeping.digests import digest_of
from barnabas.lake.keeping.gold import Computed, keep_gold, read_by, uses_of
from barnabas.lake.keeping.store import Lake, Writer
from barnabas.lake.spark.session import for_rows
from barnabas.lake.tables.all import TABLES
from barnabas.lake.tables.declaration import Uses
from tests.lake.keeping.test_small_batches import GROUPS, METADATA, TRANSACTIONS, grow, log_records, metadata_records

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

KEPT = [table for table in TABLES.values() if table.is_kept]


class Growing:
    """A lake of a log that grows. What Spark does is only gold: the batches are small."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark, self.lake, self.log = spark, folder / "lake", folder / "log"
        self.history = History(self.log, 60)
        self._read = 0

    def run(self) -> list[str]:
        """Read what is new, and return the gold tables that were computed."""
        computed: list[Computed] = []
        records = metadata_records(self.log)
        with Writer(self.lake, grace_s=0) as writer, for_rows(self.spark, 0):
            writer.open()
            grow(writer, METADATA, records.slice(self._read))
            keep_gold(self.spark, writer, TABLES, computed.append, lambda: False)
        self._read = records.num_rows
        return sorted(each.table for each in computed if each.table)


@pytest.fixture(scope="module")
def real_lake(nodes: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The metadata, groups and transactions of a real cluster."""
    lake = tmp_path_factory.mktemp("real") / "lake"
    with Writer(lake, grace_s=0) as writer:
        writer.open()
        grow(writer, METADATA, metadata_records(*nodes[:3]), "c/metadata")
        grow(writer, GROUPS, log_records(GROUPS, nodes[3]), "c/groups")
        grow(writer, TRANSACTIONS, log_records(TRANSACTIONS, nodes[3]), "c/transactions")
    return lake


def rows_of(frame: DataFrame) -> Counter[str]:
    return Counter(map(str, frame.collect()))


def lead(history: History) -> None:
    """Give a partition another leader."""
    partition = history._cluster._topics[0][2][0]
    history._append([metadata_history.changed(partition, partition.isr, partition.isr[-1])])
    history._log.flush()


def test_only_what_a_batch_changes_is_computed_anew(spark: SparkSession, tmp_path: Path) -> None:
    growing = Growing(spark, tmp_path)
    first = growing.run()
    assert {"topic_inventory", "broker_balance", "access", "acl_findings", "changes"} <= set(first)
    assert not {"group_lag", "partition_plan"} & set(first), "no record of a topic was read: they are empty"
    growing.history.change(7)
    assert growing.run() == ["changes"]
    lead(growing.history)
    assert growing.run() == ["broker_balance", "broker_inventory", "changes"]
    opened = Lake(growing.lake)
    manifest = opened.manifest()
    kept, computed = OpenLake(spark, opened), OpenLake(spark, opened, computes_all=True)
    for table in KEPT:
        if table.path in manifest.tables:
            assert rows_of(kept[table.name]) == rows_of(computed[table.name]), table.name


def test_without_duckdb_everything_is_computed_anew(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(digests, "_connection", lambda: None)
    growing = Growing(spark, tmp_path)
    growing.run()
    growing.history.change(7)
    assert growing.run() == ["broker_balance", "broker_inventory", "changes", "topic_inventory"]


def test_rows_follow_from_what_a_table_says_it_uses(spark: SparkSession, real_lake: Path) -> None:
    """Each kept table, of a real cluster: made of the distinct values that it uses, it has the same rows."""
    tables = OpenLake(spark, Lake(real_lake))
    compared = 0
    for table in KEPT:
        if uses := uses_of(TABLES, table.name):
            whole, used = rows_of(made(tables, table.name, {})), rows_of(made(tables, table.name, uses))
            assert whole == used, table.name
            compared += sum(whole.values()) > 0
    assert compared >= 5, "there is something to compare"


def made(tables: OpenLake, name: str, uses: Mapping[str, Uses]) -> DataFrame:
    """A table, made of what is used of those on disk alone."""
    from pyspark.sql import functions as f

    table = TABLES[name]
    if table.layer == "gold":
        frame: DataFrame = table.build(*(made(tables, each, uses) for each in table.inputs))
        return frame
    rows = tables[name]
    if table.path not in uses:
        return rows
    wanted, is_history = uses[table.path], "valid_to_offset" in rows.columns
    kept = ["cluster_id", *wanted.columns]
    values = rows
    if is_history:
        values = values.withColumn("valid_to_offset", f.when(f.col("valid_to_offset").isNotNull(), 0).cast("bigint"))
        kept.append("valid_to_offset")
        if not wanted.ended:
            values = values.where("valid_to_offset is null")
    values = values.select(*kept).distinct()
    lost = [f.lit(None).cast(kind.dataType).alias(kind.name) for kind in rows.schema if kind.name not in kept]
    return values.select(*kept, *lost).select(*rows.columns)


def test_a_digest_is_of_the_values_that_are_used(tmp_path: Path) -> None:
    history = History(tmp_path / "log", 60)
    with Writer(tmp_path / "lake", grace_s=0) as writer:
        writer.open()
        read = 0

        def digests_of_partitions() -> list[str | None]:
            nonlocal read
            records = metadata_records(tmp_path / "log")
            grow(writer, METADATA, records.slice(read))
            read = records.num_rows
            state = writer.manifest.tables["silver/partitions"]
            places = ("topic_id", "partition", "replicas")
            uses = (Uses(places), Uses((*places, "leader")), Uses((*places, "isr")), Uses(places, ended=True))
            return [digest_of(writer.data, state, each) for each in uses]

        first = digests_of_partitions()
        history.change(7)
        other_isr = digests_of_partitions()
        lead(history)
        other_leader = digests_of_partitions()
        assert None not in (*first, *other_isr, *other_leader)
        assert (first[0], first[1]) == (other_isr[0], other_isr[1])
        assert first[2] != other_isr[2] and first[3] != other_isr[3], "others are in sync, and a row has ended"
        assert other_isr[0] == other_leader[0]
        assert other_isr[1] != other_leader[1]
        state = writer.manifest.tables["silver/partitions"]
        assert digest_of(writer.data, state, Uses(("no_such_column",))) is None


def test_what_is_used_is_on_disk_and_of_the_inputs() -> None:
    for table in KEPT:
        for path, uses in uses_of(TABLES, table.name).items():
            assert path in read_by(TABLES, table.name)
            columns = {column.name for column in TABLES[path.partition("/")[2]].columns}
            assert {"cluster_id", *uses.columns} <= columns
    assert uses_of(TABLES, "broker_inventory") == uses_of(TABLES, "broker_balance"), "of a table it is made of"
    assert uses_of(TABLES, "changes") == {}
