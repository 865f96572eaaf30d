"""Names that no table has, in queries of `lake sql`: told at once, without Spark."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas.lake.asking.spark_sql import UnknownNameError, check_query, run_without_spark
from barnabas.lake.asking.stored import StoredLake
from barnabas.lake.keeping.manifest import NotStoredError
from barnabas.lake.keeping.store import Lake, Writer
from barnabas.lake.tables.all import TABLES
from tests.command_line import invoke
from tests.lake.commands import run
from tests.lake.keeping.test_small_batches import METADATA, grow, metadata_records


@pytest.fixture(scope="module")
def small_lake(nodes: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    lake = tmp_path_factory.mktemp("small") / "lake"
    with Writer(lake, grace_s=0) as writer:
        writer.open()
        grow(writer, METADATA, metadata_records(*nodes[:3]))
    return lake


@pytest.fixture(scope="module")
def stored(small_lake: Path) -> Iterator[StoredLake]:
    with StoredLake(Lake(small_lake)) as opened:
        yield opened


@pytest.mark.parametrize(
    ("query", "name"),
    [
        ("select nme from topics", "nme"),
        ("select t.nme from topics t", "nme"),
        ("select name from topics where partitions > 3", "partitions"),
        ("select name from topics group by name order by nothing", "nothing"),
        ("select t.name from topics t join partitions p on t.topic_id = p.topic", "topic"),
    ],
)
def test_a_column_that_no_table_has_is_told_with_those_that_there_are(
    stored: StoredLake, query: str, name: str
) -> None:
    with pytest.raises(UnknownNameError, match=f"there is no column {name}: .*topics ha(s|ve) .*valid_from_offset"):
        run_without_spark(stored, query)


def test_a_table_that_is_not_declared_is_told_and_one_that_is_not_stored_is_left_to_spark(stored: StoredLake) -> None:
    with pytest.raises(UnknownNameError, match="there is no table topic; see: barnabas lake tables"):
        run_without_spark(stored, "select name from topic")
    with pytest.raises(NotStoredError, match="leader_changes is not stored"):
        run_without_spark(stored, "select topic_name from leader_changes")
    with pytest.raises(NotStoredError, match="could not be run"):
        run_without_spark(stored, "select _metadata from topics")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "the query is empty"),
        (" ; -- nothing", "the query is empty"),
        ("select 1 as one; select 2 as two", "these are several queries"),
        ("selec", "this is no query"),
        ("drop table topics", "DROP is refused: the tables are only for reading"),
        ("delete from topics", "DELETE is refused"),
        ("insert overwrite directory 'here' select * from topics", "INSERT is refused"),
        ("create table mine as select * from topics", "CREATE is refused"),
        ("create view mine as select * from topics", "CREATE is refused"),
    ],
)
def test_what_is_no_query_or_would_write_is_refused_before_spark_starts(small_lake: Path, text: str, said: str) -> None:
    for more in ((), ("--conf", "spark.ui.enabled=false")):
        result = run("sql", text, "--lake", small_lake, *more)
        assert (result.exit_code, result.stdout) == (1, "")
        assert result.stderr.startswith(f"Error: {said}") and len(result.stderr.splitlines()) == 1, result.stderr


def test_the_shell_refuses_it_too(small_lake: Path) -> None:
    done = invoke("lake", "shell", "--lake", small_lake, stdin="select 1 as one;; drop table topics; select 2", code=1)
    assert (done.stdout, done.stderr) == (
        "ONE\n  1\n",
        "Error: DROP is refused: the tables are only for reading\n",
    )


@pytest.mark.parametrize(
    "text",
    ["select 1;", "(select 1)", "show tables", "describe topics", "from topics select name", "table topics", "values (1)",
     "explain select 1", "create temporary view mine as select 1 as one", "drop view mine", "set spark.sql.ansi.enabled"],
)  # fmt: skip
def test_what_spark_may_answer_is_not_refused_and_nothing_is_logged(
    text: str, caplog: pytest.LogCaptureFixture
) -> None:
    check_query(text)
    assert caplog.messages == []


def test_a_query_that_cannot_be_parsed_is_left_to_spark_with_the_place(stored: StoredLake) -> None:
    with pytest.raises(NotStoredError, match="only Spark knows what to make of 'topics' in line 2 of the query"):
        run_without_spark(stored, "select name\nform topics")


def test_a_table_that_nothing_has_filled_has_no_rows_and_needs_no_spark(small_lake: Path, stored: StoredLake) -> None:
    for name, table in TABLES.items():
        if table.layer != "gold" and table.path not in stored.manifest.tables:
            found = run_without_spark(stored, f"select * from {name}")
            assert (list(found.names), list(found.rows)) == ([column.name for column in table.columns], [])
    result = run("sql", "select count(*) as places from quarantine", "--lake", small_lake, "-o", "json")
    assert (result.json, result.stderr) == ([{"places": 0}], "")


def test_the_command_says_it_in_one_line(small_lake: Path) -> None:
    for query, message in (
        ("select nme from topics", "Error: there is no column nme: topics has cluster_id, topic_id, name,"),
        ("select name from topic", "Error: there is no table topic; see: barnabas lake tables"),
    ):
        result = run("sql", query, "--lake", small_lake)
        assert (result.exit_code, result.stdout, len(result.stderr.splitlines())) == (1, "", 1), result.stderr
        assert result.stderr.startswith(message)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--limit", "nope=1"), "--limit nope=1: must be NAME=NUMBER with one of partitions, "),
        (("--limit", "partitions=x"), "'x' is not a number"),
        (("--on-breach", "true"), "--on-breach needs --limit."),
        (("--follow", "--serve", "here"), "--serve here: must be PORT or HOST:PORT."),
    ],
)
def test_what_cannot_be_meant_is_refused_before_anything_is_written(
    nodes: list[Path], tmp_path: Path, arguments: tuple[str, ...], message: str
) -> None:
    result = run("run", *nodes, "--lake", tmp_path / "lake", *arguments)
    assert result.exit_code == 2 and message in result.stderr
    assert not (tmp_path / "lake").exists()
