"""Folders of a lake, on a disk and in a store that speaks S3; and what is said about addresses that cannot be used."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas.lake.asking.selection import Selection
from barnabas.lake.asking.stored import StoredLake
from barnabas.lake.keeping.folders import LakeError, folder_at
from barnabas.lake.keeping.store import Lake, Writer
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
