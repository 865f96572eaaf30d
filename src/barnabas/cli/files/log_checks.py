"""Checks of log files: checksums, offsets, lengths, and the agreement of indexes with their log.

Its one rule: every problem is reported with its place, and nothing is repaired. A bad index is reported as well, although a
broker would rebuild it. Files are read once, batch by batch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from barnabas.cli.files.log_files import FileKind, Problem, file_kind, open_file
from barnabas.storage.errors import StorageError
from barnabas.storage.offline import check_batches, check_indexes
from barnabas.storage.segment import INDEX_SUFFIXES, LOG_SUFFIX

Progressed = Callable[[int], None]


def check(path: Path, progressed: Progressed) -> Iterator[Problem]:
    """Yield the problems of a file. For a segment, this includes its indexes, which need no check of their own.

    `progressed` is called with the number of bytes checked.
    """
    kind = file_kind(path)
    if kind in (FileKind.SEGMENT, FileKind.SNAPSHOT):
        for position, base_offset, reason in check_batches(path, progressed):
            offset = "" if base_offset is None else f", offset {base_offset}"
            yield Problem(path, f"byte {position}{offset}", reason)
        if kind is FileKind.SEGMENT and path.suffix == LOG_SUFFIX:
            for suffix in INDEX_SUFFIXES:
                if path.with_suffix(suffix).exists():
                    yield from _problems_in(path.with_suffix(suffix))
            yield from _check_indexes(path)
        return
    yield from _problems_in(path)
    if path.suffix in INDEX_SUFFIXES:
        log = path.with_suffix(LOG_SUFFIX)
        if not log.exists():
            yield Problem(path, "", f"there is no {log.name} beside it")
        else:
            yield from (problem for problem in _check_indexes(log) if problem.path == path)
    progressed(path.stat().st_size)


def _problems_in(path: Path) -> Iterator[Problem]:
    try:
        for item in open_file(path).items:
            if isinstance(item, Problem):
                yield item
    except StorageError as error:
        yield Problem(path, "", str(error).removeprefix(f"{path} "))


def _check_indexes(path: Path) -> Iterator[Problem]:
    for mismatch in check_indexes(path.parent, int(path.name[:20])):
        entry = mismatch.entry
        shown = ", ".join(f"{name} {value}" for name, value in zip(entry._fields, entry, strict=True))
        yield Problem(mismatch.path, f"entry of {shown}", mismatch.reason)
