"""The file of the audit log: never waits, loses nothing in silence, and stays within its limits."""

from __future__ import annotations

import logging
import os
import threading
from pathlib import Path
from typing import Any

import pytest

from barnabas.broker.audit.audit_file import AuditFile

LINE = b"x" * 99 + b"\n"


def file_at(path: Path, **limits: int) -> AuditFile:
    given: dict[str, Any] = {"max_bytes": 1 << 20, "max_files": 3, "queue_max_bytes": 1 << 20, **limits}
    return AuditFile(path, gap=lambda dropped: f"dropped {dropped}\n".encode(), monotonic_ms=lambda: 0, **given)


def test_a_stop_writes_what_is_in_the_queue(tmp_path: Path) -> None:
    path = tmp_path / "audit.log"
    file = file_at(path)
    file.start()
    for number in range(1000):
        file.put(f"{number}\n".encode())
    file.stop()
    assert path.read_text().split() == [str(number) for number in range(1000)]
    assert (file.written, file.dropped, file.queued_bytes) == (1000, 0, 0)
    assert path.stat().st_mode & 0o777 == 0o640 & ~_umask()


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def test_files_are_rotated_and_the_oldest_is_deleted(tmp_path: Path) -> None:
    path = tmp_path / "audit.log"
    file = file_at(path, max_bytes=300)
    file.start()
    for number in range(10):
        file.put(f"{number:099}\n".encode())
    file.stop()
    assert sorted(each.name for each in tmp_path.iterdir()) == ["audit.log", "audit.log.1", "audit.log.2"]
    kept = [int(line) for name in ("audit.log.2", "audit.log.1", "audit.log") for line in _lines(tmp_path / name)]
    assert kept == [3, 4, 5, 6, 7, 8, 9]
    assert file.written == 10


def _lines(path: Path) -> list[str]:
    return path.read_text().splitlines()


def test_one_file_is_begun_again(tmp_path: Path) -> None:
    path = tmp_path / "audit.log"
    file = file_at(path, max_bytes=200, max_files=1)
    file.start()
    for _ in range(5):
        file.put(LINE)
    file.stop()
    assert [each.name for each in tmp_path.iterdir()] == ["audit.log"]
    assert path.stat().st_size == 100


def test_a_file_goes_on_after_a_restart_and_after_half_a_line(tmp_path: Path) -> None:
    path = tmp_path / "audit.log"
    path.write_bytes(b"whole\nhal")
    file = file_at(path)
    file.start()
    file.put(LINE)
    file.stop()
    assert path.read_bytes() == b"whole\nhal\n" + LINE


def test_a_disk_that_hangs_delays_nobody_and_drops_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "audit.log"
    hangs, entered = threading.Event(), threading.Event()
    write = os.write

    def slow(file: int, data: Any) -> int:
        entered.set()
        hangs.wait()
        return write(file, data)

    file = file_at(path, queue_max_bytes=1000)
    file.start()
    monkeypatch.setattr(os, "write", slow)
    file.put(LINE)
    entered.wait()
    with caplog.at_level(logging.WARNING):
        for _ in range(50):
            file.put(LINE)  # would wait here for ever
    assert (file.dropped, file.queued_bytes) == (41, 1000)
    assert caplog.text.count("lines of the audit log") == 1
    hangs.set()
    file.stop()
    assert path.read_bytes() == LINE + b"dropped 41\n" + 9 * LINE
    assert file.written == 10
    assert "40 lines of the audit log" in caplog.text  # the rest of them, at the end


def test_a_full_disk_is_survived(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "audit.log"
    file = file_at(path)
    file.start()
    write, tried = os.write, threading.Event()

    def full(descriptor: int, data: Any) -> int:
        tried.set()
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    file.put(LINE)
    tried.wait()
    while not file.dropped:
        pass
    monkeypatch.setattr(os, "write", write)
    file.put(LINE)
    file.stop()
    assert path.read_bytes() == b"dropped 1\n" + LINE
    assert (file.written, file.dropped) == (1, 1)


def test_a_path_that_cannot_be_opened_is_an_error_at_once(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="No such file"):
        file_at(tmp_path / "missing" / "audit.log").start()
