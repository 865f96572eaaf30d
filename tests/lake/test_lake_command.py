"""`barnabas lake` on a cluster of Apache Kafka 4.3.1 (copies of three nodes) and on a node of barnabas, in one lake."""

from __future__ import annotations

import base64
import json
import os
import re
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import barnabas.lake
from barnabas.cli.lake.session import lake_failures
from barnabas.cli.terminal.failures import Failure
from barnabas.client import sync
from barnabas.lake.keeping.folders import folder_at
from barnabas.lake.keeping.store import Lake, Writer
from barnabas.testing import Broker
from tests.command_line import spawn
from tests.lake import metadata_golden
from tests.lake.commands import SECRET, rows, run
from tests.metadata import golden

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BEFORE = golden.expected()["metadata_offset_before"] - 1


def test_silver_as_of_an_offset_is_what_the_cluster_showed(lake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tests.lake.facts import test_metadata_golden as facts

    names = [
        "topics", "partitions", "configs", "acls", "brokers", "controllers", "features", "quotas", "users", "voters",
        "leader_epochs",
    ]  # fmt: skip
    shown = {name: rows(lake, "as-of", BEFORE, name, "--cluster-id", metadata_golden.CLUSTER_ID) for name in names}
    monkeypatch.setattr(facts, "shown", lambda: shown)
    facts.test_topics_and_partitions_are_what_the_cluster_showed()
    facts.test_settings_are_what_the_cluster_showed()
    facts.test_acls_quotas_users_and_features_are_what_the_cluster_showed()
    facts.test_brokers_controllers_and_the_quorum_are_what_the_cluster_showed()


def test_what_was_never_committed_is_not_there(lake: Path) -> None:
    query = f"""
        select count(*) as count, count(distinct offset) as offsets, max(offset) as last, bool_and(committed) as committed
        from metadata_records where cluster_id = '{metadata_golden.CLUSTER_ID}' and not is_snapshot"""
    end = metadata_golden.COMMITTED_END
    assert rows(lake, "sql", query) == [{"count": end, "offsets": end, "last": end - 1, "committed": True}]


def test_a_time_is_the_last_batch_by_then_and_an_offset_the_batch_that_has_it(lake: Path) -> None:
    batch = rows(
        lake,
        "sql",
        f"""select base_offset, last_offset, append_time from metadata_records
            where cluster_id = '{metadata_golden.CLUSTER_ID}' and last_offset > base_offset + 2 and base_offset > 3000
            order by base_offset limit 1""",
    )[0]
    asked = {
        "its time": batch["append_time"],
        "its end": batch["last_offset"],
        "within": batch["last_offset"] - 1,
    }
    notes = {}
    for name, moment in asked.items():
        result = run("as-of", moment, "topics", "--lake", lake, "--cluster-id", metadata_golden.CLUSTER_ID)
        assert result.exit_code == 0, result.stderr
        notes[name] = int(re.findall(r"after offset (\d+) of __cluster_metadata-0", result.stderr)[0])
    end = batch["last_offset"]
    assert notes == {"its time": notes["its time"], "its end": end, "within": end}
    assert notes["its time"] >= batch["last_offset"]


def test_groups_and_transactions_are_there_as_of_a_time(lake: Path) -> None:
    groups = {row["group_id"] for row in rows(lake, "as-of", "2030-01-01", "groups")}
    assert groups == {
        row["group_id"] for row in rows(lake, "sql", "select * from groups where valid_to_offset is null")
    }
    assert len(groups) > 3
    assert rows(lake, "as-of", "2030-01-01", "transactions")
    result = run("as-of", 10, "groups", "--lake", lake)
    assert (result.exit_code, "several logs" in result.stderr) == (1, True)


def test_the_lake_has_no_secret(lake: Path) -> None:
    import pyarrow.parquet as pq

    known = metadata_golden.secrets() | {SECRET}
    assert len(known) > 5
    needles = {text.encode() for text in known} | {base64.b64decode(text) for text in metadata_golden.secrets()}
    needles.add(base64.b64encode(SECRET.encode()))
    searched = 0
    for path in (path for path in lake.rglob("*") if path.is_file()):
        contents = [path.read_bytes()]
        if path.suffix == ".parquet":
            table = pq.read_table(path, partitioning=None)
            contents += [_bytes_of(value) for column in table.columns for value in column.to_pylist()]
            searched += table.num_rows
        assert not any(needle in content for needle in needles for content in contents), path
    assert searched > 9000, "bronze, silver and what is kept for the next run"
    masked = rows(lake, "sql", "select value from configs where name = 'listener.name.plaintext.ssl.key.password'")
    assert masked == [{"value": "********"}]


def _bytes_of(value: Any) -> bytes:
    return value if isinstance(value, bytes) else str(value).encode()


def test_the_next_run_reads_only_what_is_new_and_a_rebuild_makes_the_same(lake: Path, broker: Broker) -> None:
    cluster = broker.cluster_id
    before = rows(lake, "sql", f"select count(*) as n from metadata_records where cluster_id = '{cluster}'")[0]["n"]
    with sync.Admin({"bootstrap.servers": broker.bootstrap_servers}) as admin:
        admin.delete_topics(["orders"])
    result = run("run", broker.data_dir, "--lake", lake)
    assert result.exit_code == 0, result.stderr
    new = int(re.findall(rf"^{cluster}/kafka_metadata: ([\d,]+) new records?$", result.stderr, re.MULTILINE)[0])
    query = f"select offset, payload from metadata_records where cluster_id = '{cluster}' order by offset"
    records = rows(lake, "sql", query)
    assert 0 < new < before and len(records) == before + new
    history = f"select * from partitions where cluster_id = '{cluster}' order by partition"
    partitions = rows(lake, "sql", history)
    assert [row["partition"] for row in partitions if row["topic_name"] == "orders" and row["valid_to_offset"]] == [
        0,
        1,
        2,
    ]
    shutil.copytree(lake, copy := lake.parent / "copy")
    settings = json.loads((copy / "lake.json").read_text())
    settings["sources"] = {cluster: settings["sources"][cluster]}
    (copy / "lake.json").write_text(json.dumps({**settings, "format": 99}))
    assert "barnabas lake rebuild" in run("run", "--lake", copy).stderr
    result = run("rebuild", "--lake", copy)
    assert result.exit_code == 0, result.stderr
    assert Lake(copy).settings.data == "data-2"
    assert rows(copy, "sql", history) == partitions
    assert rows(copy, "sql", query)[: len(records)] == records


def test_a_run_that_finds_nothing_new_says_so_and_needs_no_java(lake: Path, tmp_path: Path) -> None:
    shutil.copytree(lake, copy := tmp_path / "lake")
    settings = json.loads((copy / "lake.json").read_text())
    golden = metadata_golden.CLUSTER_ID
    settings["sources"] = {golden: settings["sources"][golden]}
    (copy / "lake.json").write_text(json.dumps(settings))
    before = Lake(copy).manifest()
    done = spawn("lake", "run", "--lake", copy, env={"JAVA_HOME": str(tmp_path)}, timeout_s=120)
    assert done.exit_code == 0, done.stderr
    lines = done.stderr.splitlines()
    assert f"{golden}/kafka_metadata: 0 new records" in lines
    assert "the lake is up to date; Spark was not needed" in lines
    assert Lake(copy).manifest() == before
    done = spawn("lake", "run", "--lake", copy, "--conf", "a=b", env={"JAVA_HOME": str(tmp_path)}, timeout_s=120)
    assert (done.exit_code, "there is no Java" in done.stderr) == (1, True), "--conf always starts Spark"


def test_tables_are_listed_with_what_they_answer(lake: Path) -> None:
    found = {row["table"]: row for row in rows(lake, "tables")}
    assert found["metadata_records"]["rows"] > metadata_golden.COMMITTED_END
    assert found["quarantine"]["rows"] == 0
    assert found["topics"]["layer"] == "silver" and found["topics"]["columns"]["valid_from_time"] == "timestamp"


def test_what_cannot_be_read_is_in_quarantine(spark: SparkSession, broker: Broker, tmp_path: Path) -> None:
    log_dir = tmp_path / "node"
    shutil.copytree(broker.data_dir, log_dir)
    segment = next((log_dir / "__cluster_metadata-0").glob("*.log"))
    content = bytearray(segment.read_bytes())
    size = int.from_bytes(content[8:12], "big") + 12
    content[size + 61 + 20] ^= 1  # in the records of the second batch
    segment.write_bytes(content)
    for name in (log_dir / "__cluster_metadata-0").glob("*.checkpoint"):
        name.unlink()
    result = run("run", log_dir, "--lake", tmp_path / "lake")
    assert result.exit_code == 0, result.stderr
    assert f"1 place could not be read; the first is {segment}: wrong checksum" in result.stderr
    assert "damaged in every copy; also give the copy of another node" in result.stderr
    assert "damaged in every copy; also give the copy of another node" in run("run", "--lake", tmp_path / "lake").stderr
    found = rows(tmp_path / "lake", "sql", "select * from quarantine")
    assert [(row["cluster_id"], row["file"], row["position"]) for row in found] == [
        (broker.cluster_id, str(segment), size)
    ]


DAMAGED = "00000000000000001295.log"
"""A segment of all three copies."""


def damaged_copies(nodes: list[Path], directory: Path, count: int) -> tuple[list[Path], range]:
    """Copies of the metadata logs of three nodes, of which so many have a flipped byte in the same batch; its offsets."""
    copies = [Path(shutil.copytree(node, directory / f"node{number}")) for number, node in enumerate(nodes[:3], 1)]
    found = [metadata_golden.damage(copy / "__cluster_metadata-0" / DAMAGED, 1430)[1] for copy in copies[:count]]
    return copies, found[0]


def test_a_batch_that_is_damaged_in_one_copy_of_three_is_read_from_another(
    spark: SparkSession, lake: Path, nodes: list[Path], tmp_path: Path
) -> None:
    copies, offsets = damaged_copies(nodes, tmp_path, 1)
    result = run("run", *copies, "--lake", tmp_path / "lake")
    assert result.exit_code == 0, result.stderr
    told = result.stderr.splitlines()
    assert f"{metadata_golden.CLUSTER_ID}/kafka_metadata: 5,224 new records" in told
    log = copies[0] / "__cluster_metadata-0"
    warning = f"warning: {log} is damaged: offset {offsets[0]} cannot be read there, and is read from another copy"
    assert len(offsets) == 1 and warning in told
    for query in (
        "select * from partitions where cluster_id = '{}' order by topic_id, partition, valid_from_offset",
        "select count(*) as quarantined from quarantine where cluster_id = '{}'",
        "select count(*) as inexact from topics where cluster_id = '{}' and not exact",
    ):
        whole, found = (
            rows(each, "sql", query.format(metadata_golden.CLUSTER_ID)) for each in (lake, tmp_path / "lake")
        )
        assert found == whole and found, query


def test_damage_in_every_copy_is_told_first_and_history_goes_on_at_the_next_snapshot(
    spark: SparkSession, lake: Path, nodes: list[Path], tmp_path: Path
) -> None:
    copies, offsets = damaged_copies(nodes, tmp_path, 3)
    result = run("run", *copies, "--lake", tmp_path / "lake")
    assert result.exit_code == 0, result.stderr
    assert re.search(rf"warning: 1 place could not be read; the first is .*{DAMAGED}: wrong checksum", result.stderr)
    assert "there is no topic with id" not in result.stderr
    (gone,) = rows(tmp_path / "lake", "sql", "select file, position from quarantine")
    assert gone["file"].endswith(DAMAGED)
    after = f"select min(snapshot_end_offset) as end from metadata_records where snapshot_end_offset > {offsets[-1]}"
    end = rows(tmp_path / "lake", "sql", after)[0]["end"]
    state = f"""
        select topic_id, partition, leader, leader_epoch, isr from partitions
        where valid_to_offset is null and cluster_id = '{metadata_golden.CLUSTER_ID}' order by topic_id, partition"""
    whole, found = (rows(each, "sql", state) for each in (lake, tmp_path / "lake"))
    assert found == whole, "what the cluster has at the end"
    across = "select exact, count(*) as n from partitions where valid_from_offset {} group by exact"
    assert [row["exact"] for row in rows(tmp_path / "lake", "sql", across.format(f"= {end}"))] == [False]
    assert [row["exact"] for row in rows(tmp_path / "lake", "sql", across.format(f"> {end}"))] == [True]
    again = run("run", "--lake", tmp_path / "lake")
    assert "kafka_metadata: 0 new records" in again.stderr
    assert rows(tmp_path / "lake", "sql", "select file, position from quarantine") == [gone]


def test_the_controllers_of_a_running_cluster_are_found_through_its_brokers(
    spark: SparkSession, tmp_path: Path
) -> None:
    lake = tmp_path / "lake"
    with Broker(
        {"orders": 3}, data_dir=tmp_path / "node"
    ) as node:  # its own: other tests delete topics of the shared one
        result = run("run", "-b", node.bootstrap_servers, "--lake", lake)
        assert result.exit_code == 0, result.stderr
        found = rows(lake, "sql", "select name from topics where valid_to_offset is null")
        assert {row["name"] for row in found} >= {"orders"}
        with sync.Admin({"bootstrap.servers": node.bootstrap_servers}) as admin:
            admin.delete_topics(["orders"])
        again = run("run", "--lake", lake)  # the lake remembers the controllers
        assert again.exit_code == 0, again.stderr
        assert re.search(rf"^{node.cluster_id}/kafka_metadata: [1-9]\d* new records?$", again.stderr, re.MULTILINE)
    assert rows(lake, "sql", "select name from topics where valid_to_offset is null and name = 'orders'") == []


def test_what_is_wrong_is_said(lake: Path, nodes: list[Path], tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    cases = [
        (("sql", "select 1", "--lake", tmp_path), "is not a lake"),
        (
            ("run", tmp_path / "empty", "--lake", tmp_path / "new"),
            "neither a log dir, nor the directory of a partition of __cluster_metadata",
        ),
        (("run", "--lake", tmp_path / "new"), "Missing argument 'SOURCE...'"),
        (
            ("run", nodes[0], "-b", "localhost:1", "--lake", tmp_path / "new"),
            "cannot both be given, except with --observe",
        ),
        (
            ("run", nodes[0], "--option", "voter=1", "--lake", tmp_path / "new"),
            "has no option voter; known options are",
        ),
        (("as-of", "10", "metadata_records", "--lake", lake), "tables that have states are topics, partitions"),
        (("as-of", "1999-01-01", "topics", "--lake", lake), "no data from before"),
        (("as-of", "soon", "topics", "--lake", lake), "is not an offset, milliseconds, or a time"),
        (
            ("sql", "select nothing from topics", "--lake", lake),
            "there is no column nothing: topics has cluster_id, topic_id",
        ),
        (
            ("sql", "select 1 as one from nowhere", "--lake", lake),
            "there is no table nowhere; see: barnabas lake tables",
        ),
        (("rebuild", "--lake", tmp_path / "none"), "is not a lake"),
    ]
    for arguments, message in cases:
        result = run(*arguments)
        assert result.exit_code in (1, 2) and message in result.stderr, (arguments, result.stderr)
    with Writer(lake):
        assert f"written by pid {os.getpid()}" in run("run", "--lake", lake).stderr


def test_without_java_or_pyspark_it_is_said_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "__cluster_metadata-0").mkdir()
    (tmp_path / "meta.properties").write_text("version=1\ncluster.id=some\nnode.id=1\n")
    done = spawn("lake", "run", tmp_path, "--lake", tmp_path / "lake", env={"JAVA_HOME": str(tmp_path)}, timeout_s=120)
    assert (done.exit_code, done.stdout) == (1, "")
    assert "there is no Java in JAVA_HOME" in done.stderr and "openjdk-17-jre-headless" in done.stderr
    monkeypatch.setitem(sys.modules, "pyspark.sql", None)
    result = run("run", tmp_path, "--lake", tmp_path / "lake")
    assert (result.exit_code, "pip install 'barnabas[lake]'" in result.stderr) == (1, True)


def test_a_query_that_cannot_be_answered_prints_its_error_and_no_stack_trace(lake: Path) -> None:
    done = spawn("lake", "sql", "select cast(nothing as int) as n from topics", "--lake", lake, timeout_s=240)
    without_progress = (line for line in done.stderr.splitlines() if not line.endswith((" s", " min")))
    lines = [line for line in without_progress if line]
    assert done.exit_code == 1 and "UNRESOLVED_COLUMN" in lines[1] and lines[1].startswith("Error: "), done.stderr
    assert lines[0].startswith("starting Spark, which takes a while")
    assert lines[2:] == [f"Try: see {lake / 'log' / 'spark.log'}"]


def test_a_machine_with_too_much_to_do_is_told_as_that(tmp_path: Path) -> None:
    from pyspark.errors import StreamingQueryException

    said = "[STREAM_FAILED] Query terminated with exception: Python worker failed to connect back. SQLSTATE: XXKST"
    with pytest.raises(Failure, match="took more than 10 s to start") as caught, lake_failures(folder_at(tmp_path)):
        raise StreamingQueryException(said)
    assert caught.value.advice == "run it again: it goes on after the last commit"


PAGE = Path(__file__).parents[2] / "docs" / "lake.md"
QUERIES = re.findall(r"```sql\n(.*?)```", PAGE.read_text(), re.DOTALL)
EMPTY = ("-- transactions that took longer", "-- topics that were created again")
"""What a real cluster of an hour has none of."""


def test_the_questions_of_the_page_have_answers(lake: Path) -> None:
    assert len(QUERIES) >= 8
    tables = barnabas.lake.open(lake)
    for query in QUERIES:
        rows = tables.sql(query).limit(5).collect()
        assert rows or query.startswith(EMPTY), query


def test_gold_is_made_of_what_the_lake_has(lake: Path) -> None:
    tables = barnabas.lake.open(lake)
    golden_rows = {
        name: tables[name].where(f"cluster_id = '{metadata_golden.CLUSTER_ID}'")
        for name in ("changes", "leader_changes", "reassignments", "quorum_leaders")
    }
    changes = golden_rows["changes"].groupBy("kind").count().collect()
    assert {"topics", "configs", "acls", "quotas", "brokers"} <= {row["kind"] for row in changes}
    outcomes = {row.outcome for row in golden_rows["reassignments"].collect()}
    assert {"done", "cancelled"} <= outcomes
    assert golden_rows["quorum_leaders"].count() == 6
    causes = {row.cause for row in golden_rows["leader_changes"].select("cause").distinct().collect()}
    assert "unclean election" in causes and any(cause.endswith("fenced") for cause in causes)
