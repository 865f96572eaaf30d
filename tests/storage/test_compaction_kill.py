"""A kill at any point of a compaction, and of the recovery after it: the log has the old segments or the new ones."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from barnabas.storage.offline import check_indexes
from tests.storage.compacting import (
    CONFIG,
    append,
    clean,
    end_transaction,
    last_values,
    open_compacted,
    seen,
    seen_committed,
)
from tests.storage.looking import look
from tests.storage.made import Clock

Records = dict[int, tuple[bytes | None, bytes | None]]


class KilledError(Exception):
    """The process ends here."""


class Killer:
    """Copies the directory and ends everything when a file is renamed or deleted for the nth time."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, directory: Path, copy: Path, after: int) -> None:
        self.has_killed = False
        self._left = after
        for name in ("rename", "replace", "unlink"):
            original: Callable[..., object] = getattr(os, name)

            def watched(
                path: Path | str, *arguments: object, original: Callable[..., object] = original, **more: object
            ) -> object:
                if directory in Path(path).parents and Path(path).exists():
                    self._left -= 1
                    if self._left < 0:
                        if not self.has_killed:
                            self.has_killed = True
                            shutil.copytree(directory, copy)
                        raise KilledError
                return original(path, *arguments, **more)

            monkeypatch.setattr(os, name, watched)


def make_log(directory: Path, clock: Clock) -> int:
    """A closed log of small segments with superseded keys, tombstones and transactions; up to where it is clean."""
    log = open_compacted(directory, clock)
    for number in range(12):
        key = b"k%d" % (number % 3)
        if number % 3 == 2:
            append(log, (key, b"in txn %d" % number), producer=(7, 0, number // 3), is_transactional=True)
            end_transaction(log, clock, 7, commit=number % 2 == 1)
            log.roll()
        else:
            append(log, (key, None if number == 7 else b"v" * 90), (b"only %d" % number, b"x"))
        if number == 5:
            checkpoint = clean(log, clock).end_offset
    append(log, (b"active", b"1"))
    log.close()
    clock.now_ms += 2000
    return checkpoint


def check(directory: Path, clock: Clock, written: Records, committed: dict[bytes | None, bytes]) -> None:
    """The log looks the same from outside, opens, has lost nothing, and can be compacted and written to."""
    look(directory, CONFIG)
    log = open_compacted(directory, clock)
    assert not [path for path in directory.iterdir() if path.suffix in (".cleaned", ".swap", ".deleted")]
    assert seen(log).items() <= written.items()
    assert last_values(seen_committed(log)) == committed
    for segment in log.segments:
        assert not list(check_indexes(directory, segment.base_offset))
        assert segment.index_fault() is None
    assert clean(log, clock).is_done
    assert last_values(seen_committed(log)) == committed
    append(log, (b"after", b"1"))
    log.close()


def test_a_kill_at_any_point_of_a_compaction_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    checkpoint = make_log(tmp_path / "made", clock)
    log = open_compacted(tmp_path / "made", clock, clean_shutdown=True)
    written, committed, segments = seen(log), last_values(seen_committed(log)), len(log.segments)
    log.abandon()
    for point in range(200):
        directory, killed = tmp_path / f"log{point}", tmp_path / f"killed{point}"
        shutil.copytree(tmp_path / "made", directory)
        log = open_compacted(directory, clock, clean_shutdown=True)
        with monkeypatch.context() as patch, suppress(KilledError):
            killer = Killer(patch, directory, killed, point)
            assert clean(log, clock, checkpoint).is_done
        log.abandon()
        if not killer.has_killed:
            break
        if point % 20 == 15:
            check_second_kill(killed, clock, written, committed, monkeypatch)
        check(killed, clock, written, committed)
    assert point > 30
    assert len(log.segments) < segments - 1
    assert len(seen(log)) < len(written)


def check_second_kill(
    directory: Path,
    clock: Clock,
    written: Records,
    committed: dict[bytes | None, bytes],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The same, after a kill at any point of the recovery."""
    for point in range(100):
        opened = directory.with_name(f"{directory.name}-opened{point}")
        killed = directory.with_name(f"{directory.name}-killed{point}")
        shutil.copytree(directory, opened)
        with monkeypatch.context() as patch, suppress(KilledError):
            killer = Killer(patch, opened, killed, point)
            open_compacted(opened, clock).abandon()
        if not killer.has_killed:
            return
        check(killed, clock, written, committed)
    pytest.fail("it never came to an end")
