"""A lake on disk, without Spark: commits, kills, the lock, readers, sweeping, formats."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from deltalake import DeltaTable

from barnabas.lake.keeping import manifest as manifests
from barnabas.lake.keeping.manifest import BatchDone, Manifest, StreamState, TableChange
from barnabas.lake.keeping.store import (
    COMMITS,
    Lake,
    LakeError,
    LakeFormatError,
    LakeLockedError,
    Writer,
    read_settings,
)
from tests.lake.keeping.lake_writer import COLUMNS, STREAM, compact, numbers, rows, write, write_batch, write_part

ROOT = Path(__file__).parents[3]
STATES = [{}, *({"bronze/added": [*range(n + 1)], "silver/present": [n, n + 1]} for n in range(3))]
ALL = STATES[-1]


def part_files(lake: Lake) -> set[str]:
    return {str(path.parent.relative_to(lake.data)) for path in lake.data.rglob("numbers.parquet")}


def delta_rows(lake: Lake, manifest: Manifest | None) -> dict[str, list[int]]:
    """The rows of all tables as another program reads them, of the versions of a manifest or of the newest ones."""
    found = {}
    for path in lake.manifest().tables:
        version = None if manifest is None else manifest.tables[path].version
        opened = DeltaTable(lake.data / path, version=version)
        found[path] = sorted(opened.to_pyarrow_table().column("number").to_pylist())
    return found


def test_a_writer_killed_after_any_step_leaves_what_one_more_run_makes_whole(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.lake.keeping.lake_writer", str(tmp_path)]
    steps = int(subprocess.run(command, cwd=ROOT, capture_output=True, check=True, timeout=60).stdout)
    assert steps > 20
    for step in range(steps):
        directory = tmp_path / str(step)
        seen = rows(lake := Lake(directory), lake.manifest())
        assert seen in STATES, "a reader sees whole batches"
        write(directory)
        lake = Lake(directory)
        manifest = lake.manifest()
        assert rows(lake, manifest) == ALL
        assert manifest.streams[STREAM].rows == 3
        assert part_files(lake) == set(manifest.parts()), f"after step {step}"
        assert not list((lake.data / COMMITS).glob(".*"))
        assert delta_rows(lake, manifest) == ALL, "the versions that the manifest states"
        assert delta_rows(lake, None) == ALL, "the newest versions"


def test_a_second_writer_is_told_who_the_first_is(tmp_path: Path) -> None:
    with Writer(tmp_path), pytest.raises(LakeLockedError, match=r"written by pid \d+ on .+ since 2\d{3}-.*one writer"):
        Writer(tmp_path)
    with Writer(tmp_path) as writer:
        writer.open()


def test_a_reader_keeps_its_parts_until_the_grace_is_over(tmp_path: Path) -> None:
    now_ms = 1_000_000
    with Writer(tmp_path, clock_ms=lambda: now_ms, grace_s=10) as writer:
        writer.open()
        for batch_id in range(3):
            write_batch(writer, batch_id)
        lake = Lake(tmp_path)
        before = lake.manifest()
        compact(writer)
        write_batch(writer, 3)
        now_ms += 9_999
        writer.sweep()
        assert rows(lake, before) == ALL
        assert rows(lake, lake.manifest()) == {"bronze/added": [0, 1, 2, 3], "silver/present": [3, 4]}
        now_ms += 1
        writer.sweep()
        assert part_files(lake) == set(lake.manifest().parts())
        assert len(list((lake.data / COMMITS).iterdir())) == 1


def test_what_is_being_written_is_not_swept(tmp_path: Path) -> None:
    with Writer(tmp_path, grace_s=0) as writer:
        writer.open()
        staged = write_part(writer, "bronze/added", [7])
        write_batch(writer, 0)
        writer.sweep()
        assert numbers(writer.data, (staged,)) == [7]
        writer.discard([staged.rpartition("/")[0]])
        assert not (writer.data / staged).exists()


def test_each_stream_replaces_only_what_is_its_own(tmp_path: Path) -> None:
    with Writer(tmp_path) as writer:
        writer.open()
        write_batch(writer, 0, "one/numbers")
        write_batch(writer, 5, "two/numbers")
        write_batch(writer, 1, "one/numbers")
    lake = Lake(tmp_path)
    assert rows(lake, lake.manifest()) == {"bronze/added": [0, 1, 5], "silver/present": [1, 2, 5, 6]}


def test_a_manifest_is_its_text(tmp_path: Path) -> None:
    with Writer(tmp_path) as writer:
        writer.open()
        write_batch(writer, 0)
        assert manifests.from_text(manifests.to_text(writer.manifest)) == writer.manifest


def test_columns_are_added_and_anything_else_is_a_rebuild(tmp_path: Path) -> None:
    def batch(batch_id: int, columns: dict[str, str]) -> BatchDone:
        return BatchDone(STREAM, StreamState(batch_id, "query", 1), {"bronze/added": TableChange(columns)})

    with Writer(tmp_path) as writer:
        writer.open()
        write_batch(writer, 0)
        writer.commit(batch(1, {"word": "string", **COLUMNS}))
        assert writer.manifest.tables["bronze/added"].columns == {"number": "bigint", "word": "string"}
        for columns in ({"word": "string"}, {"word": "string", "number": "string"}):
            with pytest.raises(LakeFormatError, match=r"number.*barnabas lake rebuild"):
                writer.commit(batch(2, columns))
        assert writer.manifest.streams[STREAM].batch_id == 1


@pytest.mark.parametrize("text", ["{", "[]", '{"format": 1}', '{"format": 99, "data": "data-1"}'])
def test_a_format_that_is_not_known_says_what_helps(tmp_path: Path, text: str) -> None:
    (tmp_path / "lake.json").write_text(text)
    with pytest.raises(LakeFormatError, match="barnabas lake rebuild"):
        Lake(tmp_path)


def test_a_directory_of_something_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "homework").write_text("mine")
    with pytest.raises(LakeError, match="not empty: it has homework"):
        Writer(tmp_path)
    with pytest.raises(LakeError, match="is not a lake"):
        Lake(tmp_path)


def test_a_rebuilt_lake_takes_the_place_of_the_old_in_one_step(tmp_path: Path) -> None:
    now_ms = 0
    with Writer(tmp_path) as writer:
        writer.open()
        write_batch(writer, 0)
        writer.remember("cluster", {"paths": ["here"]})
    old = Lake(tmp_path)
    with Writer(tmp_path) as writer:
        writer.open_anew()
        write_batch(writer, 4)
        assert rows(again := Lake(tmp_path), again.manifest())["bronze/added"] == [0]
    with Writer(tmp_path, clock_ms=lambda: now_ms, grace_s=10) as writer:
        writer.open()  # the half of a rebuild is swept
        assert sorted(path.name for path in tmp_path.glob("data-*")) == ["data-1"]
        writer.open_anew()
        write_batch(writer, 5)
        writer.swap()
        assert rows(new := Lake(tmp_path), new.manifest())["bronze/added"] == [5]
        assert rows(old, old.manifest())["bronze/added"] == [0], "whoever reads the old one can go on"
    assert read_settings(tmp_path).sources == {"cluster": {"paths": ["here"]}}
    now_ms = 10_000
    with Writer(tmp_path, clock_ms=lambda: now_ms, grace_s=10) as writer:
        writer.open()
    assert sorted(path.name for path in tmp_path.glob("data-*")) == ["data-2"]


def test_what_nothing_can_make_anew_is_taken_along(tmp_path: Path) -> None:
    seen = "cluster/seen/this"
    with Writer(tmp_path) as writer:
        writer.open()
        write_batch(writer, 0)
        part = write_part(writer, "bronze/seen", [7])
        checkpoint = writer.data / "checkpoints" / "cluster" / "seen" / "this"
        checkpoint.mkdir(parents=True)
        (checkpoint / "metadata").write_text("its place")
        writer.commit(BatchDone(seen, StreamState(3, "query", 1), {"bronze/seen": TableChange(COLUMNS, (part,))}))
    with Writer(tmp_path) as writer:
        writer.open_anew()
        writer.take_along(["bronze/seen", "bronze/never"], lambda stream: stream == seen)
        write_batch(writer, 5)
        writer.swap()
    lake = Lake(tmp_path)
    manifest = lake.manifest()
    assert rows(lake, manifest) == {"bronze/seen": [7], "bronze/added": [5], "silver/present": [5, 6]}
    assert (manifest.streams[seen].batch_id, manifest.streams[STREAM].batch_id) == (3, 5)
    assert (lake.data / "checkpoints" / "cluster" / "seen" / "this" / "metadata").read_text() == "its place"


def test_a_format_of_another_version_is_rebuilt_with_the_sources_it_names(tmp_path: Path) -> None:
    document = {"format": 99, "data": "data-1", "sources": {"cluster": {"paths": ["here"]}}}
    (tmp_path / "lake.json").write_text(json.dumps(document))
    (tmp_path / "data-1").mkdir()
    with Writer(tmp_path) as writer:
        with pytest.raises(LakeFormatError):
            writer.open()
        writer.open_anew()
        with pytest.raises(LakeFormatError):
            writer.take_along(["bronze/added"], lambda stream: True)
        write_batch(writer, 0)
        writer.swap()
    lake = Lake(tmp_path)
    assert lake.settings.sources == {"cluster": {"paths": ["here"]}}
    assert rows(lake, lake.manifest())["bronze/added"] == [0]


def test_a_first_run_that_fails_before_its_first_commit_leaves_no_lake(tmp_path: Path) -> None:
    def fail(directory: Path) -> None:
        with Writer(directory) as writer:
            writer.open()
            writer.remember("some", {"paths": ["/nowhere"]})
            write_part(writer, "bronze/added", [1])
            raise OSError("no space left on device")

    for directory in (tmp_path / "new", tmp_path / "there"):
        (tmp_path / "there").mkdir(exist_ok=True)
        with pytest.raises(OSError, match="no space"):
            fail(directory)
        with pytest.raises(LakeError, match="is not a lake"):
            Lake(directory)
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["there"], "what was there before stays"


def test_a_run_that_fails_after_a_commit_keeps_the_lake(tmp_path: Path) -> None:
    write(tmp_path)
    with pytest.raises(OSError, match="no space"), Writer(tmp_path) as writer:
        writer.open()
        raise OSError("no space left on device")
    lake = Lake(tmp_path)
    assert rows(lake, lake.manifest()) == ALL
