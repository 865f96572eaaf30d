"""Folders of a lake, on a disk and in a store that speaks S3; and what is said about addresses that cannot be used."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from barnabas.lake.asking.selection import Selection
from barnabas.lake.asking.stored import StoredLake
from barnabas.lake.keeping.folders import LakeError, folder_at, log_directory
from barnabas.lake.keeping.store import Lake, Writer
from tests.lake.commands import run
from tests.lake.keeping.folder_contract import check_folder
from tests.lake.keeping.lake_writer import write_batch
from tests.lake.s3_server import s3_server


@pytest.fixture(scope="module")
def bucket() -> Iterator[str]:
    with s3_server() as address:
        yield address


def test_a_folder_on_a_disk(tmp_path: Path) -> None:
    check_folder(folder_at(tmp_path / "lake"))


def test_a_folder_in_an_object_store(bucket: str) -> None:
    check_folder(folder_at(f"{bucket}/some/lake"))
    assert folder_at(bucket.replace("s3a:", "s3:")).folders() == ["some"], "both names are of one store"


def test_a_bucket_that_is_not_there_says_so(bucket: str) -> None:
    for open_it in (Lake, Writer):
        with pytest.raises(LakeError, match="s3a://missing/lake: there is no such bucket; create it first"):
            open_it("s3a://missing/lake")
    with pytest.raises(LakeError, match=r"s3a://bucket/nothing is not a lake: it has no lake\.json"):
        Lake(f"{bucket}/nothing")
    with pytest.raises(LakeError, match="names no bucket; an address is like s3a://bucket/lake"):
        Lake("s3a://")


def test_a_server_that_does_not_answer_says_which_settings_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "someone")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    with pytest.raises(LakeError, match=r"^s3a://bucket/lake cannot be used: .*AWS_ENDPOINT_URL$"):
        Lake("s3a://bucket/lake")


def test_a_server_that_refuses_says_why(bucket: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    with pytest.raises(LakeError, match=r"^s3a://bucket/lake[^\n]*AWS_ACCESS_KEY_ID[^\n]*$"):
        Lake("s3a://bucket/lake")


def test_what_is_stored_at_an_address_is_answered_without_spark(bucket: str) -> None:
    place = f"{bucket}/asked"
    with Writer(place) as writer:
        writer.open()
        for batch_id in range(3):
            write_batch(writer, batch_id)
    with StoredLake(Lake(place)) as stored:
        stored.view("added")
        stored.view("present")
        found = stored.run("SELECT number, count(*) FROM added JOIN present USING (number) GROUP BY number")
        assert list(found.rows) == [(2, 1)]
        assert sorted(stored.select(Selection("added")).rows) == [(0,), (1,), (2,)]


NOBODY = 65534


@contextmanager
def somebody_else() -> Iterator[None]:
    """Whom permissions hold for: root may do everything. The modules of a Python in root's home are loaded before."""
    from barnabas.lake.keeping import runner  # noqa: F401  (all that a run needs)

    user = os.geteuid()
    if user == 0:
        os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(user)


@pytest.fixture
def public() -> Iterator[Path]:
    """A directory that everybody may read, unlike those of pytest; nobody but root may write there."""
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        directory.chmod(0o755)
        yield directory
        for path in (directory, *directory.rglob("*")):
            if path.is_dir():
                path.chmod(0o755)


def test_a_lake_that_may_only_be_read_is_answered_and_spark_logs_elsewhere(
    public: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(public / "state"))
    path = public / "lake"
    with Writer(path) as writer:
        write_batch(writer.open(), 0)
    folder = folder_at(path)
    assert log_directory(folder) == path / "log"
    for each in (path, *path.rglob("*")):
        each.chmod(0o555 if each.is_dir() else 0o444)
    with somebody_else():
        assert log_directory(folder).parent == public / "state" / "barnabas"
        assert run("tables", "--lake", path).exit_code == 0
        written = run("run", public, "--lake", path)
        assert (written.exit_code, written.stdout) == (1, "")
        assert "Permission denied" in written.stderr and len(written.stderr.splitlines()) == 1, written.stderr


def test_a_directory_that_may_not_be_read_is_an_error_and_not_a_lake_with_fewer_rows(public: Path) -> None:
    path = public / "lake"
    with Writer(path) as writer:
        write_batch(writer.open(), 0)
    (path / "data-1" / "commits").chmod(0)
    with somebody_else():
        found = run("tables", "--lake", path)
    assert found.exit_code == 1 and "Permission denied" in found.stderr, found.output
