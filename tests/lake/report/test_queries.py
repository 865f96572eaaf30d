"""What the report asks Spark for: every query runs on the tables as they are declared, and gives the declared columns."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from barnabas.lake.declared_column import Column, ddl
from barnabas.lake.facts.metadata_kinds import KINDS
from barnabas.lake.facts.schema import VALIDITY
from barnabas.lake.report.chapters import BY_IMPORTANCE, QUERIES, SECTIONS
from barnabas.lake.report.content import Rows, assemble
from barnabas.lake.report.page import render
from barnabas.lake.report.queries import BUCKETS, RANGE_SQL, totals_sql
from barnabas.lake.report.section import ALIKE, top_sql
from barnabas.lake.sources import metadata
from barnabas.lake.tables.all import TABLES
from barnabas.lake.tables.gold.observations import QUORUM_LAG
from tests.lake.report import sample, sample_watched

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_every_table_of_gold_is_known_to_the_page_with_columns_that_it_has() -> None:
    for name, section in SECTIONS.items():
        assert set(section.columns) <= {column.name for column in _columns(name)}
    assert set(SECTIONS) == set(sample.TABLES)


def _columns(name: str) -> tuple[Column, ...]:
    return (*sample.TABLES[name].columns, *((ALIKE,) if SECTIONS[name].alike else ()))


def test_every_section_with_key_figures_has_its_place_among_them() -> None:
    assert len(set(BY_IMPORTANCE)) == len(BY_IMPORTANCE)
    assert set(BY_IMPORTANCE) == {section for section in SECTIONS.values() if section.figures}


def _silver() -> dict[str, tuple[Column, ...]]:
    cluster = Column("cluster_id", "string", "")
    return {
        kind.name: (cluster, *kind.columns, *VALIDITY)
        for kind in KINDS
        if kind.name in ("topics", "partitions", "brokers")
    }


@pytest.fixture(scope="module")
def lake(spark: SparkSession) -> SparkSession:
    """The rows of the sample as temporary views; two clusters have the same."""
    import pyarrow as pa
    from pyspark.sql.pandas.types import to_arrow_schema
    from pyspark.sql.types import StructType

    def view(name: str, schema: str, found: list[dict[str, Any]]) -> None:
        struct = StructType.fromDDL(schema)
        assert isinstance(struct, StructType)
        table = pa.Table.from_pylist(found, to_arrow_schema(struct, timezone="UTC"))
        spark.createDataFrame(table).createOrReplaceTempView(name)

    rows = {**sample.all_rows(), "quorum_lag": sample_watched.quorum_lag()}
    schemas = {name: table.columns for name, table in sample.TABLES.items()} | _silver() | {"quorum_lag": QUORUM_LAG}
    for name, columns in schemas.items():
        mine = rows.get(name, [{"valid_from_offset": 1, "fenced": True, "exact": True}] * 2)
        view(name, ddl(columns), [{"cluster_id": cluster, **row} for cluster in ("a", "b") for row in mine])
    assert {"cluster_id", "offset", "append_time"} <= {column.name for column in metadata.COLUMNS}
    records = [("a", 0, sample_watched.START), ("a", 9, sample_watched.END), ("b", 3, sample_watched.END)]
    named = [dict(zip(("cluster_id", "offset", "append_time"), record, strict=True)) for record in records]
    view("metadata_records", "cluster_id string, offset bigint, append_time timestamp", named)
    return spark


def _ask(lake: SparkSession, sql: str) -> list[dict[str, Any]]:
    answer: list[dict[str, Any]] = lake.sql(sql).toArrow().to_pylist()
    return answer


def test_the_answers_of_spark_are_those_that_the_same_rows_give_here(lake: SparkSession) -> None:
    expected = sample.content().clusters[0]
    answers = {}
    for name, query in QUERIES.items():
        answers[name] = _ask(lake, query.sql)
        assert list(answers[name][0]) == [column.name for column in query.columns], name
    # the order of each is seen by Spark, and that of some is looked at
    tables = {
        name: Rows(table.columns, _ask(lake, top_sql(SECTIONS[name])) if name in ("changes", "group_lag") else [], 0)
        for name, table in sample.TABLES.items()
        if lake.sql(top_sql(SECTIONS[name])).columns == [column.name for column in _columns(name)]
    }
    assert set(tables) == set(sample.TABLES)
    content = assemble(_ask(lake, RANGE_SQL), tables, _ask(lake, totals_sql(sample.TABLES)), answers)
    assert [(c.cluster_id, c.log.first_offset, c.log.last_offset) for c in content.clusters] == [
        ("a", 0, 9),
        ("b", 3, 3),
    ]
    assert "What changed, when" in render(content)

    found = content.clusters[1]
    assert {name: table.total for name, table in found.tables.items()} == {
        name: table.total for name, table in expected.tables.items()
    }
    for name in ("trouble_totals", "fence_totals", "traffic_totals", "plan_totals", "topic_risks"):
        (row,) = found.answers[name]
        assert {key: value for key, value in row.items() if key != "cluster_id"} == pytest.approx(
            expected.answers[name][0]
        ), name
    for name in (
        "groups_by_trend", "groups_by_verdict", "topics_by_verdict", "findings_by_kind", "violations_by_topic",
    ):  # fmt: skip
        assert {row["name"]: row["count"] for row in found.answers[name]} == {
            row["name"]: row["count"] for row in expected.answers[name]
        }
    assert found.answers["inventory"] == [
        {"cluster_id": "b", "topics": 2, "partitions": 2, "brokers": 2, "fenced_brokers": 2}
    ]
    assert found.tables["changes"].rows == expected_rows("changes")
    assert found.tables["group_lag"].rows == expected_rows("group_lag")
    over_time = found.answers["changes_over_time"]
    assert sum(row["count"] for row in over_time) == 1800
    assert len({row["start"] for row in over_time}) <= BUCKETS + 1
    lag = found.answers["quorum_lag_over_time"]
    assert {row["series"] for row in lag} == set(sample_watched.NODES)
    assert max(row["lag"] for row in lag) == max(row["lag"] for row in sample_watched.quorum_lag())
    causes = {row["series"] for row in found.answers["leader_changes_over_time"]}
    assert "broker fenced" in causes
    assert not [cause for cause in causes if any(c.isdigit() for c in cause)]


def expected_rows(table: str) -> list[dict[str, Any]]:
    """Those of the sample, of the cluster b, in the order of the columns."""
    names = [column.name for column in sample.TABLES[table].columns]
    rows = ({"cluster_id": "b", **row} for row in sample.all_rows()[table][: SECTIONS[table].limit])
    return [{name: row[name] for name in names} for row in rows]


def test_what_many_partitions_had_at_the_same_time_is_one_row(spark: SparkSession) -> None:
    began = datetime(2026, 1, 1, 12, 0, 1, tzinfo=UTC)
    until = began + timedelta(minutes=4)
    trouble = {"offline": True, "below_min_isr": True, "under_replicated": True, "min_isr": 1, "missing": [1]}
    row = {"cluster_id": "c", "topic_id": "T", "topic_name": "orders", "is_over": True, "minutes": 4.0, **trouble}
    rows = [{**row, "partition": n, "began": began + timedelta(milliseconds=n), "until": until} for n in range(47)]
    rows += [{**rows[0], "topic_name": "later", "until": until + timedelta(minutes=9), "minutes": 13.0}]
    rows += [{**rows[0], "cluster_id": "d"}]
    columns = TABLES["partition_trouble"].columns
    values = [
        tuple(({"valid_from_offset": n} | each)[column.name] for column in columns) for n, each in enumerate(rows)
    ]
    other = spark.newSession()  # its views are not those of the other tests
    other.createDataFrame(values, ddl(columns)).createOrReplaceTempView("partition_trouble")
    found = other.sql(top_sql(SECTIONS["partition_trouble"])).collect()
    assert [(each.cluster_id, each.topic_name, each.partition, each.alike) for each in found] == [
        ("c", "later", 0, 1),
        ("c", "orders", 0, 47),
        ("d", "orders", 0, 1),
    ]


@pytest.mark.parametrize(
    ("table", "same", "other"),
    [
        ("leader_changes", {"leader_before": 1, "leader": -1, "cause": "broker 1 shut down"}, {"leader": 2}),
        ("isr_flaps", {"broker_id": 1, "times": 1, "shortest_minutes": None}, {"times": 2}),
    ],
)
def test_what_one_outage_did_to_many_partitions_is_one_row(
    spark: SparkSession, table: str, same: dict[str, Any], other: dict[str, Any]
) -> None:
    at = datetime(2026, 1, 1, 12, 0, 1, tzinfo=UTC)
    times = {column.name: at for column in TABLES[table].columns if column.type == "timestamp"}
    row = {"cluster_id": "c", "topic_id": "T", "topic_name": "orders", **times, **same}
    rows = [{**row, "partition": n} for n in range(47)] + [{**row, **other, "partition": 0}]
    columns = TABLES[table].columns
    values = [
        tuple(({"offset": n, "epoch": 1, "leader_epoch": 1} | each)[c.name] for c in columns)
        for n, each in enumerate(rows)
    ]
    session = spark.newSession()
    session.createDataFrame(values, ddl(columns)).createOrReplaceTempView(table)
    found = session.sql(top_sql(SECTIONS[table])).collect()
    assert sorted(each.alike for each in found) == [1, 47]


def test_the_top_rows_are_found_without_sorting_all(lake: SparkSession) -> None:
    plan = lake.sql(f"explain {top_sql(SECTIONS['changes'])}").collect()[0][0]
    assert "WindowGroupLimit" in plan
