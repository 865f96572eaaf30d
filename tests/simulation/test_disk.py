"""The simulated disk keeps what was flushed, and loses the rest as a real one may."""

from __future__ import annotations

import os
from random import Random

import pytest

from tests.simulation.disk import SECTOR, Disks

CREATE = os.O_RDWR | os.O_CREAT
SEEDS = range(200)


def new_disk() -> Disks:
    disks = Disks(lambda: 0, lambda *event: None)
    disks.add("n")
    return disks


def flush_directory(disks: Disks, path: str) -> None:
    disks.fsync(disks.open(path, os.O_RDONLY | os.O_DIRECTORY))


def content(disks: Disks, path: str) -> bytes | None:
    try:
        return disks.pread(disks.open(path, os.O_RDONLY), 1 << 20, 0)
    except FileNotFoundError:
        return None


def test_what_was_flushed_survives_every_loss_of_power() -> None:
    for seed in SEEDS:
        disks = new_disk()
        file = disks.open("/n/a", CREATE)
        disks.pwrite(file, b"x" * 2000, 0)
        disks.fsync(file)
        flush_directory(disks, "/n")
        disks.lose_power("n", Random(seed))
        assert content(disks, "/n/a") == b"x" * 2000


def test_what_was_not_flushed_is_torn_at_sectors_or_lost() -> None:
    found = set()
    for seed in SEEDS:
        disks = new_disk()
        file = disks.open("/n/a", CREATE)
        flush_directory(disks, "/n")
        disks.pwrite(file, b"x" * (3 * SECTOR + 7), 0)
        disks.lose_power("n", Random(seed))
        data = content(disks, "/n/a")
        assert data is not None
        sectors = [data[begin : begin + SECTOR] for begin in range(0, len(data), SECTOR)]
        assert all(set(sector) in ({0}, {ord("x")}) for sector in sectors)
        found.add(tuple(sector[:1] for sector in sectors))
    assert () in found  # all of it lost
    assert len(found) > 4


def test_a_name_that_was_not_flushed_may_be_gone_and_a_rename_is_whole() -> None:
    found = set()
    for seed in SEEDS:
        disks = new_disk()
        disks.close(disks.open("/n/old", CREATE))
        flush_directory(disks, "/n")
        disks.close(disks.open("/n/new", CREATE))
        disks.rename("/n/old", "/n/renamed")
        disks.lose_power("n", Random(seed))
        found.add(tuple(sorted(entry.name for entry in disks.scandir("/n"))))
    assert found == {("old",), ("new", "old"), ("new", "renamed")}


def test_a_full_disk_refuses_writes_until_there_is_room() -> None:
    disks = new_disk()
    file = disks.open("/n/a", CREATE)
    disks.conditions["n"].is_full = True
    with pytest.raises(OSError, match="No space left"):
        disks.pwrite(file, b"x", 0)
    disks.conditions["n"].is_full = False
    assert disks.pwrite(file, b"x", 0) == 1


def test_a_flush_that_fails_promises_nothing() -> None:
    for seed in SEEDS:
        disks = new_disk()
        file = disks.open("/n/a", CREATE)
        flush_directory(disks, "/n")
        disks.pwrite(file, b"x", 0)
        disks.conditions["n"].failing_flushes = 1
        with pytest.raises(OSError, match="error"):
            disks.fsync(file)
        disks.lose_power("n", Random(seed))
        if content(disks, "/n/a") == b"":
            return
    raise AssertionError("it was never lost")
