"""Findings of a lake that Spark did not write: metrics, limits, the hook, and what is served."""

from __future__ import annotations

import sys
import urllib.request
from collections.abc import Iterator, Mapping
from pathlib import Path
from urllib.error import HTTPError

import pyarrow as pa
import pytest
from prometheus_client.parser import text_string_to_metric_families

from barnabas.cli.lake.watching import Watch, serving
from barnabas.lake.asking.findings import FINDINGS, Limit, exposition, parse_limit, samples
from barnabas.lake.asking.stored import StoredLake
from barnabas.lake.facts.schema import arrow_type
from barnabas.lake.keeping.folders import write_table
from barnabas.lake.keeping.manifest import BatchDone, Made, StreamState, TableChange, versions_of
from barnabas.lake.keeping.store import Lake, Writer
from barnabas.lake.keeping.table_reading import column_types
from barnabas.lake.tables.all import TABLES

CLUSTER = {"cluster_id": "one"}
NOW = {**CLUSTER, "valid_from_offset": 0}


def partition(number: int, leader: int, isr: list[int]) -> dict[str, object]:
    return {**NOW, "topic_name": "orders", "partition": number, "leader": leader, "replicas": [1, 2], "isr": isr}


def write(writer: Writer, batch_id: int, tables: Mapping[str, list[dict[str, object]]]) -> None:
    """Write a batch with these rows, which replace those before; then gold as a run does."""
    changes, made = dict[str, TableChange](), dict[str, Made]()
    for name, rows in tables.items():
        table = TABLES[name]
        columns = column_types(table)
        part = writer.stage(table.path)
        schema = pa.schema([(column, arrow_type(kind)) for column, kind in columns.items()])
        write_table(writer.data, f"{part}/rows.parquet", pa.Table.from_pylist(rows, schema))
        if table.layer == "gold":
            made[table.path] = Made(columns, (part,), {})
        else:
            changes[table.path] = TableChange(columns, (), (part,))
    writer.commit(BatchDone("one/kafka_metadata", StreamState(batch_id, "query", 1), changes))
    made_of = versions_of(writer.manifest, ["silver/partitions"])
    writer.commit_gold({path: each._replace(made_of=made_of) for path, each in made.items()})


@pytest.fixture
def writer(tmp_path: Path) -> Iterator[Writer]:
    with Writer(tmp_path / "lake") as writer:
        writer.open()
        write(
            writer,
            0,
            {
                "metadata_records": [{**CLUSTER, "offset": 7, "last_offset": 7, "is_snapshot": False}],
                "partitions": [partition(0, 1, [1, 2]), partition(1, -1, []), partition(2, 2, [2])],
                "group_lag": [
                    {
                        **CLUSTER,
                        "group_id": 'a "b"',
                        "topic": "orders",
                        "lag": 5,
                        "lag_minutes": 0.5,
                        "trend": "stopped",
                    },
                    {
                        **CLUSTER,
                        "group_id": 'a "b"',
                        "topic": "orders",
                        "lag": 7,
                        "lag_minutes": 9.25,
                        "trend": "stopped",
                    },
                ],
            },
        )
        yield writer


def values(text: str) -> dict[str, float]:
    found = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            labels = {name: value for name, value in sample.labels.items() if name != "cluster_id"}
            found[f"{sample.name}{labels or ''}"] = sample.value
    return found


def test_metrics_are_what_the_tables_say(writer: Writer) -> None:
    with StoredLake(Lake(writer.folder)) as stored:
        found = values(exposition(samples(stored)))
    assert found.pop("barnabas_lake_commit_timestamp_seconds") > 1_700_000_000
    assert found == {
        "barnabas_lake_partitions": 3,
        "barnabas_lake_partitions_without_leader": 1,
        "barnabas_lake_partitions_under_replicated": 2,
        "barnabas_lake_group_lag{'group_id': 'a \"b\"', 'topic': 'orders'}": 12,
        "barnabas_lake_group_lag_minutes{'group_id': 'a \"b\"'}": 9.25,
        "barnabas_lake_groups_stopped": 1,
        "barnabas_lake_end_offset": 7,
    }


def test_a_table_that_is_not_current_has_no_samples_instead_of_old_ones(writer: Writer) -> None:
    write(writer, 1, {"partitions": [partition(0, 1, [1, 2])]})
    with StoredLake(Lake(writer.folder)) as stored:
        found = {sample.finding for sample in samples(stored)}
    assert "partitions" in found
    assert "group_lag" not in found


def test_every_finding_is_a_query_of_columns_that_exist(tmp_path: Path) -> None:
    with Writer(tmp_path) as writer:
        writer.open()
        names = {"metadata_records", "partitions", *(finding.table for finding in FINDINGS)}
        write(writer, 0, {name: [dict.fromkeys(column_types(TABLES[name]))] for name in names})
        with StoredLake(Lake(tmp_path)) as stored:
            assert {sample.finding for sample in samples(stored)} >= {"partitions", "brokers_fenced", "acl_findings"}


@pytest.mark.parametrize("text", ["lag=1", "group_lag", "group_lag=x", "group_lag=nan", "=1"])
def test_a_limit_that_is_none_says_what_it_must_be(text: str) -> None:
    with pytest.raises(ValueError, match=r"must be NAME=NUMBER|is not a number"):
        parse_limit(text)


def test_a_limit_is_told_and_calls_the_hook_once_until_it_is_kept_again(writer: Writer, tmp_path: Path) -> None:
    told, calls = list[str](), tmp_path / "calls"
    script = tmp_path / "hook.py"
    script.write_text(
        "import os, sys\n"
        "names = ('STATE', 'FINDING', 'VALUE', 'LIMIT', 'LABELS')\n"
        f"open({str(calls)!r}, 'a').write(' '.join(os.environ['BARNABAS_' + name] for name in names) + '\\n')\n"
    )
    watch = Watch(writer.folder, [Limit("partitions_without_leader", 0)], f"{sys.executable} {script}", told.append)
    for _ in range(2):
        watch.look()
    assert told == ["warning: partitions_without_leader is 1, above 0: cluster_id one"]
    assert watch.has_breaches
    write(writer, 1, {"partitions": [partition(0, 1, [1, 2])]})
    watch.look()
    assert not watch.has_breaches
    assert told[1:] == ["within its limit again: partitions_without_leader"]
    assert calls.read_text().splitlines() == [
        'breach partitions_without_leader 1 0 {"cluster_id": "one"}',
        'over partitions_without_leader 1 0 {"cluster_id": "one"}',
    ]


def test_a_hook_that_fails_is_a_warning(writer: Writer) -> None:
    for hook, message in (("/nothing/here", "No such file"), (f"{sys.executable} -c 'raise SystemExit(3)'", "with 3")):
        told = list[str]()
        Watch(writer.folder, [Limit("partitions_without_leader", 0)], hook, told.append).look()
        assert message in told[-1]


def test_a_report_is_written_for_a_new_commit_and_not_all_the_time(writer: Writer) -> None:
    now, written = [0.0], list[float]()

    def write_report() -> None:
        now[0] += 10  # which it takes
        written.append(now[0])

    watch = Watch(writer.folder, tell=lambda text: None, write_report=write_report, clock=lambda: now[0])
    watch.look()
    watch.look()
    assert written == [10]
    write(writer, 1, {"partitions": [partition(0, 1, [1, 2])]})
    watch.look()
    assert written == [10], "the last one took ten seconds"
    now[0] = 60
    watch.look()
    assert written == [10, 70]


def test_metrics_and_the_report_are_served_and_nothing_else(writer: Writer, tmp_path: Path) -> None:
    report = tmp_path / "report"
    report.mkdir()
    (report / "index.html").write_text("the page")
    (tmp_path / "secret").write_text("not served")
    watch = Watch(writer.folder)
    watch.look()

    def get(path: str) -> str:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=30) as answer:
            return str(answer.read().decode())

    with serving("127.0.0.1", 0, watch, report) as port:
        assert values(get("/metrics"))["barnabas_lake_partitions"] == 3
        assert get("/") == "the page"
        for path in ("/../secret", "/%2e%2e/secret", "/rows/"):
            with pytest.raises(HTTPError, match="404"):
                get(path)
    with serving("127.0.0.1", 0, watch, None) as port, pytest.raises(HTTPError, match="404"):
        get("/index.html")
