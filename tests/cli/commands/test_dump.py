"""`barnabas dump`: every kind of file of the golden node, ranges, and damage that is said and does not hide what is good."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from barnabas.cli.files.log_files import file_kind
from tests.cli.dump_log_cases import BASE, prepare
from tests.command_line import invoke
from tests.storage.golden import extract_node


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("dump")
    prepare(found)
    return found


run = partial(invoke, "dump")


def rows(*arguments: object) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = run(*arguments, "--output", "json", code=0).json
    return found


def test_every_file_of_a_node_is_known_and_whole(directory: Path) -> None:
    files = [
        path for path in (directory / "node1").rglob("*") if path.is_file() and path.name != ".kafka_cleanshutdown"
    ]
    assert [path for path in files if file_kind(path) is None] == []
    result = run(*files, "--output", "jsonl")
    assert result.exit_code == 0, result.stderr
    assert {json.loads(line)["kind"] for line in result.stdout.splitlines()} >= {
        "records",
        "index",
        "timeindex",
        "txnindex",
        "producers",
        "offset-checkpoint",
        "leader-epoch-checkpoint",
        "meta.properties",
        "partition.metadata",
        "quorum-state",
    }


def test_the_metadata_log_is_decoded_by_name(directory: Path) -> None:
    found = rows(directory / "node1/d0/__cluster_metadata-0", "--offsets", "0:6")
    assert [row["offset"] for row in found] == [0, 1, 2, 3, 4, 5]
    assert found[0]["type"] == "LEADER_CHANGE"
    assert found[4]["type"] == "FeatureLevelRecord"
    assert found[4]["value"] == {"name": "metadata.version", "featureLevel": 21}


def test_offsets_of_groups_are_decoded_by_name(directory: Path) -> None:
    found = rows(directory / "node1/d1/__consumer_offsets-1", "-n", 3)
    assert [row["type"] for row in found] == ["GroupMetadata", "GroupMetadata", "OffsetCommit"]
    assert found[2]["key"] == {"group": "g-classic", "topic": "d-gzip", "partition": 0}
    assert found[1]["value"]["members"][0]["subscription"]["topics"] == ["d-gzip", "d-none"]


def test_keys_alone_and_batches_alone(directory: Path) -> None:
    log = directory / "node1/d0/d-none-0"
    assert [row["key"] for row in rows(log, "--keys", "--offsets", "1:3")] == ["key-2", "key-4"]
    assert "value" not in rows(log, "--keys")[0]
    assert [row["baseOffset"] for row in rows(log, "--batches", "--offsets", "10:20")] == [10]


def test_a_table_shows_times_and_markers(directory: Path) -> None:
    lines = run(directory / "node1/d0/d-txn-0").stdout.splitlines()
    assert lines[1].split() == ["OFFSET", "TIMESTAMP", "KEY", "VALUE"]
    assert lines[4].endswith('{"endTxnMarker":"COMMIT","coordinatorEpoch":0}')
    assert "2026-11-15T19:43:35.127Z" in lines[4]


def test_a_log_dir_shows_its_files_and_its_logs(directory: Path) -> None:
    found = rows(directory / "node1/d0")
    logs = {row["partition"]: row for row in found if row["kind"] == "logs"}
    assert logs["d-none-0"]["endOffset"] == 30
    assert {"name": "node.id", "value": "1"}.items() <= next(
        row for row in found if row.get("name") == "node.id"
    ).items()


@pytest.mark.parametrize(
    ("damage", "good", "where"),
    [("cut", 20, "byte 1597"), ("zeros", 30, "byte 3102"), ("flip", 30, "byte 0, offset 0")],
)
def test_what_is_good_is_shown_and_where_it_ends_is_said(directory: Path, damage: str, good: int, where: str) -> None:
    path = directory / "bad" / damage / f"{BASE}.log"
    result = run(path, "--output", "json")
    assert result.exit_code == 1
    found = json.loads(result.stdout)
    assert len([row for row in found if row["kind"] == "records"]) == good
    assert [row["where"] for row in found if row["kind"] == "problem"] == [where]
    assert f"Error: {path}: {where}: " in result.stderr


def test_verify_says_what_is_wrong_with_which_file(directory: Path) -> None:
    result = run("--verify", directory / "bad" / "offset", directory / "bad" / "odd", "--output", "json")
    assert result.exit_code == 1
    wrong = [row for row in json.loads(result.stdout) if row["status"] == "damaged"]
    assert [(Path(row["file"]).parent.name, row["where"]) for row in wrong] == [
        ("offset", "entry of offset 17, position 573"),
        ("odd", "byte 16"),
    ]


def test_verify_shows_damage_first_and_counts_the_rest(directory: Path, tmp_path: Path) -> None:
    node = extract_node(tmp_path)
    source = next(path for path in sorted(node.rglob("*.log")) if path.stat().st_size > 2000)
    source.with_suffix(".timeindex").write_bytes(bytes(range(1, 13)) * 50)
    result = run("--verify", node)
    assert result.exit_code == 1
    header, *lines = result.stdout.splitlines()
    assert header.split() == ["FILE", "STATUS", "WHERE", "PROBLEM"]
    assert len(lines) == 4
    assert all("damaged" in line for line in lines)
    assert "more problems; --verbose shows all" in lines[-1]
    assert "1 damaged, problems: " in result.stderr
    every = run("--verify", node, "--verbose").stdout.splitlines()
    assert sum(" ok" in line for line in every) > 10
    assert sum("damaged" in line for line in every) > 4
    misused = run(node, "--verbose")
    assert (misused.exit_code, "only be used with --verify" in misused.stderr) == (2, True)


def test_verify_finds_nothing_wrong_with_a_node_of_kafka(tmp_path: Path) -> None:
    result = run("--verify", extract_node(tmp_path))
    assert result.exit_code == 0, result.output
    assert result.stdout == ""
    assert "no problems" in result.stderr


def test_a_file_of_another_name_needs_to_be_told_what_it_is(directory: Path, tmp_path: Path) -> None:
    other = tmp_path / "copy.bin"
    other.write_bytes((directory / f"node1/d1/__consumer_offsets-1/{BASE}.log").read_bytes())
    refused = run(other)
    assert refused.exit_code == 1
    assert "this is not the name of a log file; use --kind" in refused.stderr
    assert rows(other, "--kind", "offsets")[0]["type"] == "GroupMetadata"


def test_a_record_that_is_not_what_its_log_holds_is_said(directory: Path) -> None:
    result = run(directory / f"node1/d0/d-none-0/{BASE}.log", "--kind", "metadata", "-n", 1)
    assert result.exit_code == 1
    assert "offset 0: a metadata record has frame version" in result.stderr


@pytest.mark.parametrize("offsets", ["x", "1:x", ":", "-1"])
def test_a_range_that_is_none_is_2(directory: Path, offsets: str) -> None:
    assert run(directory / "node1/d0/d-none-0", "--offsets", offsets).exit_code == 2
