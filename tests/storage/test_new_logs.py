"""New logs: cheap to make, and durable with their first record."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from barnabas.storage import Log, LogConfig, read_topic_id, write_topic_id
from barnabas.wire.primitives import Uuid
from tests.storage.made import SMALL, batch, open_log, whole_log

TOPIC_ID = Uuid(bytes([7]) * 16)
FIRST = "00000000000000000000"


def make(directory: Path) -> Log:
    log = open_log(directory)
    write_topic_id(directory, TOPIC_ID, durable=False)
    log.assign_epoch(3, 0)
    return log


def test_a_new_data_log_waits_for_no_disk(tmp_path: Path, flushed: list[str]) -> None:
    log = make(tmp_path / "t-0")
    names = sorted(path.name for path in log.directory.iterdir())
    kinds = ("index", "log", "timeindex")
    assert names == [*(f"{FIRST}.{kind}" for kind in kinds), "leader-epoch-checkpoint", "partition.metadata"]
    log.append_as_leader(batch(b"x"), 3)
    assert flushed == []


def test_a_new_data_log_that_stays_empty_is_closed_without_waiting(tmp_path: Path, flushed: list[str]) -> None:
    make(tmp_path / "t-0").close()
    log = open_log(tmp_path / "t-0", clean_shutdown=True)
    log.assign_epoch(4, 0)
    log.flush()
    log.close()
    assert flushed == []


@pytest.mark.parametrize("end", ["flush", "close"])
def test_the_first_flush_makes_the_files_of_a_log_durable_and_their_names(
    tmp_path: Path, flushed: list[str], end: str
) -> None:
    log = make(tmp_path / "t-0")
    log.append_as_leader(batch(b"x"), 3)
    getattr(log, end)()
    assert flushed[0] == f"{FIRST}.log"
    # The names last, those of the directory before that of the directory itself.
    rest = [name for name in flushed[1:] if not name.startswith("0")]
    assert rest == ["leader-epoch-checkpoint", "partition.metadata", "t-0", tmp_path.name]


def test_one_flush_of_a_log_dir_is_enough_for_all_logs_that_were_made_before_it(
    tmp_path: Path, flushed: list[str]
) -> None:
    logs = [make(tmp_path / f"t-{number}") for number in range(3)]
    for log in logs:
        log.append_as_leader(batch(b"x"), 3)
        log.flush()
    assert flushed.count(tmp_path.name) == 1
    log = make(tmp_path / "t-3")
    log.append_as_leader(batch(b"x"), 3)
    log.flush()
    assert flushed.count(tmp_path.name) == 2


def test_the_flush_after_a_roll_makes_the_names_durable(tmp_path: Path, flushed: list[str]) -> None:
    log = make(tmp_path / "t-0")
    rolled = None
    while rolled is None:
        rolled = log.append_as_leader(batch(b"x" * 100), 3).rolled
    assert flushed == []
    log.flush(rolled)
    assert {"t-0", tmp_path.name} <= set(flushed)


def test_epochs_of_a_log_that_has_records_are_durable_at_once(tmp_path: Path, flushed: list[str]) -> None:
    log = make(tmp_path / "t-0")
    log.append_as_leader(batch(b"x"), 3)
    log.assign_epoch(4, 1)
    assert flushed == ["leader-epoch-checkpoint.tmp", "t-0"]


def test_a_metadata_log_is_durable_from_the_start(tmp_path: Path, flushed: list[str]) -> None:
    log = open_log(tmp_path / "t-0", LogConfig(metadata=True))
    assert flushed == [tmp_path.name, "t-0"]
    log.assign_epoch(1, 0)
    assert flushed[2:] == ["leader-epoch-checkpoint.tmp", "t-0"]


@pytest.mark.parametrize("lost", ["gone", "empty", "zeros"])
@pytest.mark.parametrize(
    "name", [f"{FIRST}.index", f"{FIRST}.timeindex", "leader-epoch-checkpoint", "partition.metadata"]
)
def test_a_new_log_survives_the_loss_of_what_was_not_flushed(tmp_path: Path, name: str, lost: str) -> None:
    log = make(tmp_path / "t-0")
    for _ in range(5):
        log.append_as_leader(batch(b"x" * 100), 3)
    stored = whole_log(log)
    path = log.directory / name
    size = path.stat().st_size
    if lost == "gone":
        path.unlink()
    else:
        path.write_bytes(bytes(size) if lost == "zeros" else b"")
    again = open_log(tmp_path / "t-0")
    assert whole_log(again) == stored
    assert [tuple(entry) for entry in again.epochs.entries] == [(3, 0)]
    assert read_topic_id(tmp_path / "t-0") in (TOPIC_ID, None)


def test_a_torn_checkpoint_of_epochs_is_made_again_from_the_log(tmp_path: Path) -> None:
    log = make(tmp_path / "t-0")
    log.append_as_leader(batch(b"x"), 3)
    log.append_as_leader(batch(b"x"), 4)
    (log.directory / "leader-epoch-checkpoint").write_text("0\n2\n3 0\n")
    again = open_log(tmp_path / "t-0")
    assert [tuple(entry) for entry in again.epochs.entries] == [(3, 0), (4, 1)]


def test_a_log_whose_directory_was_lost_begins_anew(tmp_path: Path) -> None:
    make(tmp_path / "t-0")
    shutil.rmtree(tmp_path / "t-0")
    log = open_log(tmp_path / "t-0", SMALL)
    assert (log.log_start_offset, log.log_end_offset) == (0, 0)
