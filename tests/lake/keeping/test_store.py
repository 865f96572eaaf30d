"""A lake on disk, without Spark: commits, kills, the lock, readers, sweeping, formats."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from deltalake import DeltaTable

from barnabas import __version__
from barnabas.lake.keeping import manifest as manifests
from barnabas.lake.keeping.folders import LakeError
from barnabas.lake.keeping.locks import LakeLockedError
from barnabas.lake.keeping.manifest import BatchDone, Made, Manifest, StreamState, TableChange
from barnabas.lake.keeping.store import COMMITS, Lake, LakeFormatError, Writer, read_settings
from tests.lake.keeping.lake_writer import COLUMNS, STREAM, compact, numbers, rows, write, write_batch, write_part
from tests.lake.s3_server import s3_server

ROOT = Path(__file__).parents[3]
STATES = [{}, *({"bronze/added": [*range(n + 1)], "silver/present": [n, n + 1]} for n in range(3))]
ALL = STATES[-1]


def part_files(lake: Lake) -> set[str]:
    return {file.name.removesuffix("/numbers.parquet") for file in lake.data.files() if "/numbers." in file.name}


def delta_rows(lake: Lake, manifest: Manifest | None) -> dict[str, list[int]]:
    """The rows of all tables as another program reads them, of the versions of a manifest or of the newest ones."""
    found = {}
    for path in lake.manifest().tables:
        version = None if manifest is None else manifest.tables[path].version
        opened = DeltaTable(str(lake.data / path), version=version)
        found[path] = sorted(opened.to_pyarrow_table().column("number").to_pylist())
    return found


@pytest.fixture(params=["disk", "s3a"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """A directory, or the address of an object store."""
    if request.param == "disk":
        yield str(tmp_path)
    else:
        with s3_server() as bucket:
            yield bucket


def test_a_writer_killed_after_any_step_leaves_what_one_more_run_makes_whole(place: str) -> None:
    stride = 5 if "://" in place else 1  # a server in Python takes its time
    command = [sys.executable, "-m", "tests.lake.keeping.lake_writer", place, str(stride)]
    steps = int(subprocess.run(command, cwd=ROOT, capture_output=True, check=True).stdout)
    assert steps > 20
    for step in range(0, steps, stride):
        seen = rows(lake := Lake(f"{place}/{step}"), lake.manifest())
        assert seen in STATES, "a reader sees whole batches"
        write(f"{place}/{step}")
        lake = Lake(f"{place}/{step}")
        manifest = lake.manifest()
        assert rows(lake, manifest) == ALL
        assert manifest.streams[STREAM].rows == 3
        assert part_files(lake) == set(manifest.parts()), f"after step {step}"
        assert not [file for file in lake.data.files(COMMITS) if file.name.startswith(f"{COMMITS}/.")]
        assert delta_rows(lake, manifest) == ALL, "the versions that the manifest states"
        assert delta_rows(lake, None) == ALL, "the newest versions"


def test_a_second_writer_is_told_who_the_first_is(tmp_path: Path) -> None:
    with Writer(tmp_path), pytest.raises(LakeLockedError, match=r"written by pid \d+ on .+ since 2\d{3}-.*one writer"):
        Writer(tmp_path)
    with Writer(tmp_path) as writer:
        writer.open()


@pytest.mark.parametrize("address", ["ftp://host/lake", "file:///lake"])
def test_an_address_that_is_not_known_is_no_directory(
    address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for open_it in (Writer, Lake):
        with pytest.raises(LakeError, match=r"cannot be a lake: it is kept in a directory, or at .* s3a://"):
            open_it(address)
        with pytest.raises(LakeError, match="is no path: give an address as a text"):
            open_it(Path(address))
    assert not list(tmp_path.iterdir()), "nothing was made under a name that nobody meant"


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
        assert len(lake.data.files(COMMITS)) == 1


def test_what_is_being_written_is_not_swept(tmp_path: Path) -> None:
    with Writer(tmp_path, grace_s=0) as writer:
        writer.open()
        staged = write_part(writer, "bronze/added", [7])
        write_batch(writer, 0)
        writer.sweep()
        assert numbers(writer.data, (staged,)) == [7]
        writer.discard([staged.rpartition("/")[0]])
        assert not writer.data.files(staged)


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


def test_gold_is_current_until_a_table_that_it_was_computed_from_changes(tmp_path: Path) -> None:
    source, gold = "bronze/added", "gold/counted"

    def is_current() -> bool:
        return manifests.is_current(writer.manifest, gold, __version__)

    def compute(part: str, *, is_whole: bool = True) -> None:
        made_of = manifests.versions_of(writer.manifest, [source, "silver/none"])
        writer.commit_gold({gold: Made(COLUMNS, (part,), made_of, is_whole)})

    with Writer(tmp_path) as writer:
        writer.open()
        write_batch(writer, 0)
        write_batch(writer, 1)
        assert not is_current()
        compute(write_part(writer, gold, [1]))
        assert is_current()
        assert not manifests.is_current(writer.manifest, gold, "another version")
        assert manifests.from_text(manifests.to_text(writer.manifest)) == writer.manifest
        both = writer.manifest.tables[source].lasting
        writer.commit_compaction(source, both, (write_part(writer, source, [0, 1, 2]),))
        assert is_current(), "the rows are the same"
        write_batch(writer, 2)
        assert not is_current()
        compute(write_part(writer, gold, [2]), is_whole=False)
        assert is_current()
    lake = Lake(tmp_path)
    assert rows(lake, lake.manifest())[gold] == [1, 2]
    assert delta_rows(lake, lake.manifest())[gold] == [1, 2]


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
