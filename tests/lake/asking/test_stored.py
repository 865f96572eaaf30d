"""What is answered without Spark: the same rows as with it, for every question; and what is left to Spark, with its reason."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from barnabas.client import sync
from barnabas.client.admin.config_values import AlterConfigOp, AlterConfigOpType, ConfigResource
from barnabas.client.admin.part import checked
from barnabas.client.admin.topics import NewTopic
from barnabas.lake.asking.frames import found as found_in
from barnabas.lake.asking.opened import OpenLake
from barnabas.lake.asking.rows import plain_value
from barnabas.lake.asking.selection import Found, Selection, as_dicts
from barnabas.lake.asking.spark_sql import run_without_spark
from barnabas.lake.asking.stored import StoredLake
from barnabas.lake.keeping.feeds import find_feeds
from barnabas.lake.keeping.manifest import NotStoredError, TableState
from barnabas.lake.keeping.runner import Runner
from barnabas.lake.keeping.store import Lake, Writer
from barnabas.lake.tables.all import STREAMS, TABLES
from barnabas.metadata.as_of import AsOf
from barnabas.testing import Broker
from tests.lake import metadata_golden
from tests.lake.commands import run

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

BY_SPARK = ("--conf", "spark.sql.shuffle.partitions=4")
GOLDEN = ("--cluster-id", metadata_golden.CLUSTER_ID)
QUESTIONS: tuple[tuple[str, ...], ...] = (
    ("changes",),
    ("changes", "--kind", "configs", "--kind", "acls", "--since", "1000", "--until", "1500", *GOLDEN),
    ("changes", "--since", "2026-01-01T00:00Z"),
    *(("inventory", kind) for kind in ("topics", "configs", "acls", "brokers")),
    ("inventory", "acls", "--as-of", "1384", *GOLDEN),
    ("inventory", "configs", "--as-of", "1384"),
    ("audit", "acls"),
    ("audit", "access"),
    ("audit", "access", "--principal", "User:alice"),
    ("audit", "access", "--principal", "User:*", "--resource", "topic:orders"),
    ("plan", "partitions", "--all"),
    ("plan", "reassignment", *GOLDEN),
    ("rollback-plan", "--to", "1384", *GOLDEN),
    ("as-of", "1384", "acls", *GOLDEN),
    ("as-of", "1384", "partitions"),
    ("as-of", "2100-01-01T00:00Z", "quotas"),
)
QUERIES = (
    "select name, valid_from_time from topics where valid_to_offset is null order by name",
    "select count(*) from changes",
    "select kind, count(*) as n, max(offset), min(`time`) as first from changes group by kind having n > 1 order by kind",
    "select upper(sentence) as told from changes where kind in ('configs', 'acls') and offset between 1000 and 1200 order by 1",
    "select rack, broker_id from broker_inventory order by rack desc, broker_id",
    "select rack, broker_id from brokers where not fenced and valid_to_offset is null order by rack, broker_id",
    "select * from config_history where before is null and name like '%retention%' order by cluster_id, offset, name",
    "with there as (select * from topics where valid_to_offset is null)"
    " select t.name, count(distinct p.leader) as leaders from there t left join partitions p"
    " on t.cluster_id = p.cluster_id and t.topic_id = p.topic_id group by t.name order by t.name",
    "select case when partition > 0 then 'later' else 'first' end as place, count(*) as partitions from partitions"
    " group by 1 order by 1",
    "select settings, topic from topic_inventory order by topic, topic_id",
    "select name from topics union all select name from users order by name",
    "select distinct coalesce(before, 'none') as before from config_history order by before",
    "select record_type, `offset` + 1 as next, raw from metadata_records where `offset` < 20 order by cluster_id, `offset`",
    "select offset, time from changes where time >= '2026-01-01T00:00:00Z' order by cluster_id, offset, sentence limit 10",
)
ONLY_SPARK = (
    ("select isr[0] from partitions", "bracket"),
    ("select cast(2.7 as int) as x from topics", "cast"),
    ("select 5 / 2 as x from topics", "div"),
    ("select collect_list(name) as names from topics", "only Spark"),
    ("select current_timestamp() as now from topics", "only Spark"),
    ("select name from topics where name like 'a\\\\_b'", "backslash"),
    ("select lag + 1 from group_lag", "without a name"),
    ("select topic from leader_changes", "leader_changes is not stored"),
    ("select listeners.host from brokers", "could not be run"),
    ("select name form topics", "what to make of 'topics' in line 1"),
    ("show tables", "no SELECT"),
)


@pytest.fixture(scope="module")
def stored(lake: Path) -> StoredLake:
    return StoredLake(Lake(lake))


def counted(found: Found) -> Counter[str]:
    """Return rows without their order, comparable between both."""
    return Counter(repr([(name, plain_value(value)) for name, value in row.items()]) for row in as_dicts(found))


def of_frame(frame: DataFrame) -> Counter[str]:
    return counted(found_in(frame))


def test_stored_tables_have_the_rows_that_spark_computes_anew(
    spark: SparkSession, lake: Path, stored: StoredLake
) -> None:
    computed = OpenLake(spark, Lake(lake), computes_all=True)
    kept = [table for table in TABLES.values() if table.is_kept]
    assert len(kept) > 10
    rows = 0
    for table in TABLES.values():
        if table.layer == "silver" or table.is_kept:
            try:
                found = counted(stored.select(Selection(table.name)))
            except NotStoredError:  # nothing was read that fills it
                found = Counter()
            assert found == of_frame(computed[table.name]), table.name
            rows += sum(found.values())
    assert rows > 8_000


@pytest.mark.parametrize("question", QUESTIONS, ids=" ".join)
def test_every_question_has_the_same_answer_with_and_without_spark(lake: Path, question: tuple[str, ...]) -> None:
    as_json = () if question[0] == "rollback-plan" or question[:2] == ("plan", "reassignment") else ("-o", "json")
    quick = run(*question, *as_json, "--lake", lake)
    assert quick.exit_code == 0, quick.stderr
    assert "starting Spark" not in quick.stderr
    slow = run(*question, *as_json, "--lake", lake, *BY_SPARK)
    assert "starting Spark, which takes a while: --conf has settings of Spark" in slow.stderr
    if question[0] == "as-of":  # lists in rows have another order: DuckDB has null at their end, Spark at their begin
        assert sorted(quick.json, key=repr) == sorted(slow.json, key=repr)
    else:
        assert quick.stdout == slow.stdout
    may_be_empty = "partitions" in question or "User:*" in question
    assert len(quick.stdout) > 3 or may_be_empty, "there is something to compare"


@pytest.mark.parametrize("query", QUERIES)
def test_a_query_that_is_translated_means_the_same(
    spark: SparkSession, lake: Path, stored: StoredLake, query: str
) -> None:
    by_spark = OpenLake(spark, Lake(lake)).sql(query)
    found = run_without_spark(stored, query)
    assert found.names == tuple(by_spark.columns)
    ours = [tuple(map(plain_value, row)) for row in found.rows]
    assert ours == [tuple(map(plain_value, row)) for row in found_in(by_spark).rows]
    assert ours


@pytest.mark.parametrize(("query", "reason"), ONLY_SPARK)
def test_what_only_spark_can_answer_is_left_to_it(stored: StoredLake, query: str, reason: str) -> None:
    with pytest.raises(NotStoredError, match=reason):
        run_without_spark(stored, query)


def test_a_question_without_stored_rows_says_why_spark_starts(lake: Path) -> None:
    result = run("inventory", "topics", "--as-of", "1384", *GOLDEN, "--lake", lake)
    assert result.exit_code == 0, result.stderr
    assert "starting Spark, which takes a while: topic_inventory has to be computed for this moment" in result.stderr
    result = run("sql", "select cast(count(*) as string) as n from topics", "--lake", lake)
    assert "starting Spark, which takes a while: the query has cast, which only Spark evaluates" in result.stderr
    unknown = run("as-of", "5", "nothing", "--lake", lake)
    assert (unknown.exit_code, "starting Spark" in unknown.stderr) == (1, False), unknown.stderr


def test_moments_have_the_places_that_spark_finds(spark: SparkSession, lake: Path, stored: StoredLake) -> None:
    tables = OpenLake(spark, Lake(lake))
    for moment in (AsOf(), AsOf(offset=700), AsOf(timestamp_ms=4_000_000_000_000), AsOf(offset=-1)):
        assert stored.places(moment) == sorted(tables.as_of(moment).places())


def test_nothing_large_is_imported_for_an_answer(lake: Path) -> None:
    code = (
        "import sys; from barnabas.cli.main import main\n"
        f"try: main(['lake', 'changes', '--lake', {str(lake)!r}, '-o', 'json'], standalone_mode=False)\n"
        "finally: print([name for name in ('pyspark', 'pandas', 'pyarrow', 'numpy', 'numba') if name in sys.modules],"
        " file=sys.stderr)"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stderr.strip().splitlines()[-1] == "[]", result.stderr
    assert result.stdout.startswith("[{")


def test_tables_that_grow_have_the_rows_of_the_whole(spark: SparkSession, tmp_path: Path) -> None:
    lake = tmp_path / "lake"

    def grown() -> dict[str, TableState]:
        assert run("run", node.data_dir, "--lake", lake).exit_code == 0
        opened = Lake(lake)
        tables = OpenLake(spark, opened, computes_all=True)
        with StoredLake(opened) as found:
            for name in ("changes", "config_history"):
                assert counted(found.select(Selection(name))) == of_frame(tables[name]), name
        state = opened.manifest().tables
        return {name: state[f"gold/{name}"] for name in ("changes", "config_history")}

    with Broker({"orders": 2}, data_dir=tmp_path / "data") as node:
        first = grown()
        with sync.Admin({"bootstrap.servers": node.bootstrap_servers}) as admin:
            checked(admin.create_topics([NewTopic("payments", 2)]))
            for value in ("1000", "2000"):
                setting = [AlterConfigOp("retention.ms", AlterConfigOpType.SET, value)]
                assert not any(admin.incremental_alter_configs({ConfigResource.topic("orders"): setting}).values())
            second = grown()
            assert admin.delete_topics(["orders"]) == {"orders": None}
            third = grown()
    for name in first:
        assert set(first[name].parts) < set(second[name].parts) < set(third[name].parts), "rows were only added"


def test_a_stored_answer_is_not_given_after_records_were_added(spark: SparkSession, tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    with Broker({"orders": 1}, data_dir=tmp_path / "data") as node:
        assert run("run", node.data_dir, "--lake", lake).exit_code == 0
        assert "starting Spark" not in run("changes", "--lake", lake).stderr
        with sync.Admin({"bootstrap.servers": node.bootstrap_servers}) as admin:
            checked(admin.create_topics([NewTopic("later", 1)]))
        with Writer(lake) as writer:  # as a run that is killed before gold is computed
            Runner(spark, writer.open()).run(find_feeds([node.data_dir], STREAMS, {}))
        result = run("changes", "--lake", lake)
        assert (
            "starting Spark, which takes a while: records were added since changes was last computed" in result.stderr
        )
        assert "topic later created" in result.stdout
        assert run("run", node.data_dir, "--lake", lake).exit_code == 0
        after = run("changes", "--lake", lake)
        assert (after.stdout, "starting Spark" in after.stderr) == (result.stdout, False)
