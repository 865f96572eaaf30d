"""Files: how many are open at a time, and files that are not ours."""

from __future__ import annotations

import os
import resource
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas.storage import Log, LogConfig, StorageError
from barnabas.storage.errors import FileGoneError
from barnabas.storage.files import File, ReadOnlyFile, open_files, rename_directory
from tests.storage.made import batch, open_log, whole_log


def opened(directory: Path) -> int:
    """How many descriptors this process has of files in a directory."""
    count = 0
    for link in Path("/proc/self/fd").iterdir():
        try:
            count += str(link.readlink()).startswith(f"{directory}/")
        except FileNotFoundError:  # the one with which we look
            continue
    return count


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """Only so many files may be open."""
    if not Path("/proc/self/fd").exists():
        pytest.skip("needs /proc to see descriptors")
    with open_files.lock:
        open_files.close_unused(len(open_files.files))
    monkeypatch.setattr(open_files, "limit", 8)
    yield 8


def written(path: Path, content: bytes) -> File:
    file = File.create(path)
    file.write([content], 0)
    return file


def test_files_that_were_not_used_for_longest_are_closed_first(tmp_path: Path, few: int) -> None:
    files = [written(tmp_path / f"{number}", b"%d" % number) for number in range(few)]
    files[0].read(1, 0)
    written(tmp_path / "more", b"")
    open_names = {Path(file.name).name for file in open_files.files}
    assert "0" in open_names and "1" not in open_names
    assert opened(tmp_path) == few
    assert [file.read(2, 0) for file in files] == [b"%d" % number for number in range(few)]
    assert opened(tmp_path) == few


def test_a_file_that_is_in_use_stays_open(tmp_path: Path, few: int) -> None:
    used = written(tmp_path / "used", b"x")
    descriptor = used._borrow()
    for number in range(3 * few):
        written(tmp_path / f"{number}", b"y")
    assert os.pread(descriptor, 1, 0) == b"x"
    used.let_go()
    assert os.pread(descriptor, 1, 0) == b"x"
    used._give_back()
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(descriptor)


def test_many_logs_need_no_more_descriptors_than_there_may_be(tmp_path: Path, few: int) -> None:
    config = LogConfig(segment_bytes=500, index_interval_bytes=100)
    logs = [open_log(tmp_path / f"t-{number}", config) for number in range(30)]
    for round_ in range(6):
        for log in logs:
            log.append_as_leader(batch(b"x" * 100, b"%d" % round_), 0)
        assert opened(tmp_path) <= few
    for log in logs:
        assert len(whole_log(log)) == 6
        log.flush()
    assert opened(tmp_path) <= few
    for log in logs:
        log.close()
    assert opened(tmp_path) == 0


def test_readers_in_threads_get_the_file_they_asked_for(tmp_path: Path, few: int) -> None:
    files = [written(tmp_path / f"{number}", b"%03d" % number * 1000) for number in range(4 * few)]
    failures: list[BaseException] = []

    def read(seed: int) -> None:
        try:
            for step in range(2000):
                number = (seed + step * 7) % len(files)
                assert files[number].read(9, 3 * (step % 900)) == b"%03d" % number * 3
                if step % 50 == 0:
                    files[number].let_go()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=read, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert opened(tmp_path) <= few


def test_a_log_goes_on_when_others_have_taken_all_descriptors(tmp_path: Path) -> None:
    logs = [open_log(tmp_path / f"t-{number}") for number in range(10)]
    for log in logs:
        log.append_as_leader(batch(b"x"), 0)
    new = open_log(tmp_path / "new")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (200, hard))
    others = []
    try:
        with pytest.raises(OSError, match="Too many open files"):
            while True:
                others.append(os.open(tmp_path, os.O_RDONLY))
        new.append_as_leader(batch(b"x"), 0)
        assert len(whole_log(new)) == 1
    finally:
        for descriptor in others:
            os.close(descriptor)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_a_file_that_was_deleted_is_gone_and_the_disk_is_sound(tmp_path: Path) -> None:
    file = written(tmp_path / "old", b"x")
    file.unlink()
    with pytest.raises(FileGoneError):
        file.read(1, 0)
    other = written(tmp_path / "lost", b"x")
    other.let_go()
    other.path.unlink()
    with pytest.raises(StorageError) as lost:
        other.read(1, 0)
    assert not isinstance(lost.value, FileGoneError)


def test_a_renamed_directory_is_known_to_its_files(tmp_path: Path) -> None:
    (tmp_path / "old").mkdir()
    files = [written(tmp_path / "old" / f"{number}", b"%d" % number) for number in range(3)]
    files[0].let_go()
    rename_directory(tmp_path / "old", tmp_path / "new", files)
    assert [file.read(1, 0) for file in files] == [b"0", b"1", b"2"]
    assert files[0].path == tmp_path / "new" / "0"


def test_changes_of_a_file_that_is_not_ours_stay_in_memory(tmp_path: Path) -> None:
    path = tmp_path / "theirs"
    path.write_bytes(b"0123456789")
    path.chmod(0o444)
    file = ReadOnlyFile(path)
    assert file.read(100, 8) == b"89"
    file.truncate(4)
    assert (file.size(), file.read(100, 2)) == (4, b"23")
    file.write([b"ab", b"cd"], 4)
    assert (file.size(), file.read(100, 0), file.read_cached(2, 5)) == (8, b"0123abcd", b"bc")
    file.truncate(1)
    file.fsync()
    file.set_modified_ms(1)
    file.rename(tmp_path / "other")
    file.unlink()
    assert [each.name for each in tmp_path.iterdir()] == ["theirs"]
    assert path.read_bytes() == b"0123456789"
    assert path.stat().st_mtime_ns > 1_000_000


def test_a_file_that_is_not_there_is_made_in_memory(tmp_path: Path) -> None:
    file = ReadOnlyFile(tmp_path / "none")
    assert not file.exists()
    with pytest.raises(StorageError, match="the file does not exist"):
        file.size()
    file.make()
    file.write([b"x"], 0)
    assert (file.exists(), file.read(5, 0)) == (True, b"x")
    assert ReadOnlyFile.create(tmp_path / "new").size() == 0
    assert list(tmp_path.iterdir()) == []


def test_a_log_that_is_renamed_knows_its_indexes_when_they_are_first_needed(tmp_path: Path) -> None:
    log = open_log(tmp_path / "t-0")
    for _ in range(4):
        log.append_as_leader(batch(b"x" * 100), 0)
    log.close()
    log = Log.open(tmp_path / "t-0", log.config, clock=lambda: 0, clean_shutdown=True)
    log.rename(tmp_path / "t-1")
    found = log.offset_for_max_timestamp()
    assert found is not None and found.offset == 0
    assert {path.name for path in tmp_path.iterdir()} == {"t-1"}
