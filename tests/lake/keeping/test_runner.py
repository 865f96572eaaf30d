"""The runner on a stream that is small enough to see through: batches, kills, checks, compaction, quarantine."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from barnabas.lake.keeping.store import Lake, Writer
from barnabas.lake.keeping.table_reading import read_table
from barnabas.lake.tables.declaration import Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from barnabas.lake.keeping.runner import Batch

ROOT = Path(__file__).parents[3]
LINES = ["a 1", "b two", "!", "a", "c 3", "b 2", "c", "a 4"]


@pytest.fixture(scope="module")
def words(spark: SparkSession) -> SparkSession:
    from tests.lake.keeping.words import Words

    spark.dataSource.register(Words)
    return spark


def put(path: Path, lines: list[str]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{line}\n" for line in lines))
    return path


def run(
    spark: SparkSession,
    directory: Path,
    source: Path,
    *,
    on_step: Callable[[str], None] = lambda step: None,
    cluster_id: str = "c",
    compact_parts: int = 16,
    **options: str,
) -> list[Batch]:
    from barnabas.lake.keeping.runner import Runner
    from tests.lake.keeping.words import feed

    seen: list[Batch] = []
    with Writer(directory, on_step=on_step, grace_s=0) as writer:
        writer.open()
        runner = Runner(spark, writer, watch=seen.append, compact_parts=compact_parts)
        runner.run([feed(source, cluster_id, **options)])
        writer.sweep()
    return seen


def rows(spark: SparkSession, directory: Path, table: Table, *columns: str) -> list[tuple[object, ...]]:
    lake = Lake(directory)
    return sorted(map(tuple, read_table(spark, lake.data, lake.manifest(), table).select(*columns).collect()), key=str)


def words_of(spark: SparkSession, directory: Path) -> list[tuple[object, ...]]:
    from tests.lake.keeping.words import WORDS

    return rows(spark, directory, WORDS, "key", "value", "valid_from_offset", "valid_to_offset")


def test_a_process_that_starts_too_late_is_started_again_also_in_a_batch(words: SparkSession, tmp_path: Path) -> None:
    late = iter((True, True, False))

    def on_step(step: str) -> None:
        if step == "records written" and next(late, False):
            raise RuntimeError("Python worker failed to connect back.")  # as Spark words it

    source = put(tmp_path / "source", LINES)
    assert [batch.batch_id for batch in run(words, tmp_path / "lake", source, on_step=on_step)] == [0]
    run(words, tmp_path / "other", source)
    assert words_of(words, tmp_path / "lake") == words_of(words, tmp_path / "other")


def test_one_run_equals_many_and_reads_only_what_is_new(words: SparkSession, tmp_path: Path) -> None:
    from barnabas.lake.tables.quarantine import QUARANTINE
    from tests.lake.keeping.words import RECORDS, expected

    chance = random.Random(7)
    source, at = tmp_path / "source" / "words", 0
    while at < len(LINES):
        at = min(len(LINES), at + chance.randint(3, 5))
        put(source, LINES[:at])
        limit = chance.randint(2, 4)
        batches = run(words, tmp_path / "lake", source, maxRowsPerTrigger=str(limit))
        assert all(batch.rows + batch.quarantined <= limit for batch in batches)
        assert words_of(words, tmp_path / "lake") == expected(LINES[:at])
    pieces = sorted(tuple(map(int, path.name.split("-"))) for path in (tmp_path / "source" / "seen").iterdir())
    assert [begin for begin, _ in pieces[1:]] == [end for _, end in pieces[:-1]], "no line was read twice"
    assert rows(words, tmp_path / "lake", RECORDS, "offset") == [(n,) for n, line in enumerate(LINES) if line != "!"]
    assert rows(words, tmp_path / "lake", QUARANTINE, "cluster_id", "source", "reason") == [
        ("c", "words", "line 2 is broken")
    ]
    assert run(words, tmp_path / "lake", source) == []


class KilledError(Exception):
    """What a kill leaves on the disk is what this leaves: nothing there tidies up."""


NAMED = "manifest named"
STEPS = ["records written", "facts written", "tables checked", NAMED]
"""Between them, and after: the steps of the store, where a process is killed in test_store."""


def test_a_batch_that_ends_after_any_step_and_is_run_again_is_there_once(words: SparkSession, tmp_path: Path) -> None:
    """One line to a batch; in each run, the batch that was ended in the one before is run again, and the next is ended."""
    from tests.lake.keeping.words import RECORDS, expected

    lines = LINES[:6]
    source = tmp_path / "source" / "words"
    for number, last in enumerate(STEPS):
        put(source, lines[: number + 1])

        def on_step(step: str, number: int = number, last: str = last) -> None:
            done = Lake(tmp_path / "lake").manifest().streams.get("c/words")
            batch_id = (-1 if done is None else done.batch_id) + (step != NAMED)
            if (batch_id, step) == (number, last):
                raise KilledError(step)

        with pytest.raises(KilledError):
            run(words, tmp_path / "lake", source, on_step=on_step, maxRowsPerTrigger="1")
    run(words, tmp_path / "lake", put(source, lines))
    assert words_of(words, tmp_path / "lake") == expected(lines)
    assert len(rows(words, tmp_path / "lake", RECORDS, "offset")) == len(lines) - 1
    lake = Lake(tmp_path / "lake")
    assert lake.manifest().streams["c/words"].rows == len(lines) - 1


def test_a_run_that_is_killed_once_its_batch_is_named_has_run_once(words: SparkSession, tmp_path: Path) -> None:
    from tests.lake.keeping.words import expected

    source = put(tmp_path / "source" / "words", LINES[:4])
    command = [sys.executable, "-m", "tests.lake.keeping.killed_run", str(tmp_path / "lake"), str(source)]
    killed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=300)
    assert (killed.returncode, killed.stdout, killed.stderr) == (-signal.SIGKILL, "", "")
    assert words_of(words, tmp_path / "lake") == expected(LINES[:4])
    put(source, LINES)
    assert [batch.batch_id for batch in run(words, tmp_path / "lake", source)] == [1]
    assert words_of(words, tmp_path / "lake") == expected(LINES)
    assert (tmp_path / "lake" / "log" / "spark.log").stat().st_size > 0


@pytest.fixture(scope="module")
def checked(words: SparkSession) -> Callable[..., None]:
    """`checked(words, letters)`: rows as (key, value, from) through the checks of the two tables."""
    from barnabas.lake.keeping.checks import Checked, check
    from tests.lake.keeping.words import LETTERS, WORDS

    def frame(rows: list[tuple[str | None, str | None, int | None]]) -> DataFrame:
        schema = "key string, value string, valid_from_offset bigint"
        return words.createDataFrame(rows, schema).selectExpr("'c' as cluster_id", "*")

    def check_rows(
        of_words: list[tuple[str | None, str | None, int | None]],
        of_letters: list[tuple[str | None, str | None, int | None]],
        before: list[tuple[str | None, str | None, int | None]],
    ) -> None:
        tables = {"words": Checked(WORDS, frame(of_words)), "letters": Checked(LETTERS, frame(of_letters))}
        check(tables, lambda name: tables[name].rows.unionByName(frame(before if name == "words" else [])))

    return check_rows


def test_checks_name_the_rows_that_cannot_be(checked: Callable[..., None]) -> None:
    from barnabas.lake.keeping.checks import CheckFailedError

    fine = [("a", "1", 0), ("a", "2", 1), ("b", "3", 0)]
    checked(fine, [("a", "1", 0), (None, "1", 0)], [])
    checked(fine, [("z", "1", 0)], [("z", "1", 0)])  # it refers to what ended in an earlier batch
    with pytest.raises(CheckFailedError, match=r"words has several rows .*: cluster_id=c, key=a, .*offset=1, rows=2$"):
        checked([*fine, ("a", "3", 1)], [], [])
    with pytest.raises(CheckFailedError, match=r"table words has rows without value: .*key=b, .*, value=None$"):
        checked([*fine, ("b", None, 7)], [], [])
    with pytest.raises(CheckFailedError, match=r"letters refers by cluster_id, key to rows .* words .* key=z,"):
        checked(fine, [("a", "1", 0), ("z", "1", 4)], [])


def test_a_failed_check_leaves_the_lake_as_it_was(words: SparkSession, tmp_path: Path) -> None:
    from barnabas.lake.keeping.checks import CheckFailedError
    from barnabas.lake.keeping.runner import Runner
    from tests.lake.keeping.words import STREAM, feed

    source = put(tmp_path / "source" / "words", LINES[:2])
    run(words, tmp_path / "lake", source)
    before = Lake(tmp_path / "lake").manifest()
    put(source, LINES)

    def twice(records: DataFrame, open_facts: DataFrame, *, shards: int) -> DataFrame:
        assert STREAM.fold is not None
        facts = STREAM.fold(records, open_facts, shards=shards)
        return facts.unionAll(facts)

    with Writer(tmp_path / "lake") as writer:
        writer.open()
        broken = replace(feed(source), stream=replace(STREAM, fold=twice))
        with pytest.raises(CheckFailedError, match="several rows with the same"):
            Runner(words, writer).run([broken])
    assert Lake(tmp_path / "lake").manifest() == before


def test_small_parts_become_one_and_several_clusters_share_a_lake(words: SparkSession, tmp_path: Path) -> None:
    from tests.lake.keeping.words import RECORDS, expected

    first, second = (put(tmp_path / name / "words", LINES) for name in ("one", "two"))
    run(words, tmp_path / "lake", first, compact_parts=2, maxRowsPerTrigger="3")
    run(words, tmp_path / "lake", second, compact_parts=2, cluster_id="other")
    lake = Lake(tmp_path / "lake")
    assert all(len(table.lasting) <= 2 for table in lake.manifest().tables.values())
    assert words_of(words, tmp_path / "lake") == sorted(expected(LINES) * 2, key=str)
    assert {row[0] for row in rows(words, tmp_path / "lake", RECORDS, "cluster_id")} == {"c", "other"}
