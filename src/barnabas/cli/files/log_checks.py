"""Checks of log files: checksums, offsets, lengths, and the agreement of indexes with their log.

Its one rule: every problem is reported with its place, and nothing is repaired. A bad index is reported as well, although a
broker would rebuild it. Files are read once, batch by batch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from barnabas.batches import BatchError, check_record_lengths, decode_payload
from barnabas.batches.format import HEADER_SIZE
from barnabas.cli.files.log_files import FileKind, Problem, error_of, file_kind, open_file
from barnabas.storage.errors import StorageError
from barnabas.storage.offline import Damage, OfflineBatch, check_indexes, read_batches
from barnabas.storage.segment import INDEX_SUFFIXES, LOG_SUFFIX

Progressed = Callable[[int], None]


def check(path: Path, progressed: Progressed) -> Iterator[Problem]:
    """Yield the problems of a file. For a segment, this includes its indexes, which need no check of their own.

    `progressed` is called with the number of bytes checked.
    """
    kind = file_kind(path)
    if kind in (FileKind.SEGMENT, FileKind.SNAPSHOT):
        yield from _check_batches(path, kind, progressed)
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


def _check_batches(path: Path, kind: FileKind, progressed: Progressed) -> Iterator[Problem]:
    last_offset = int(path.name[:20]) - 1 if kind is FileKind.SEGMENT else -1
    for item in read_batches(path):
        if isinstance(item, Damage):
            yield Problem(path, f"byte {item.position}", f"{item.reason}; {item.size} bytes are left")
            progressed(item.position + item.size)
            return
        header = item.header
        where = f"byte {item.position}, offset {header.base_offset}"
        if header.base_offset <= last_offset:
            yield Problem(path, where, f"the batch should begin after offset {last_offset}")
        if header.last_offset_delta < 0:
            yield Problem(path, where, f"the batch ends at offset {header.last_offset}, before it begins")
        wrong = error_of(item) or _fault_of_records(item)
        if wrong is not None:
            yield Problem(path, where, wrong)
        last_offset = max(last_offset, header.last_offset)
        progressed(item.position + header.size_in_bytes)


def _fault_of_records(batch: OfflineBatch) -> str | None:
    header = batch.header
    if header.records_count == 0 and header.size_in_bytes == HEADER_SIZE:
        return None  # an empty batch that compaction keeps for the state of its producer
    try:
        check_record_lengths(bytes(decode_payload(batch.data, 0, header)), header.records_count)
    except BatchError as error:
        return str(error)
    return None


def _check_indexes(path: Path) -> Iterator[Problem]:
    for mismatch in check_indexes(path.parent, int(path.name[:20])):
        entry = mismatch.entry
        shown = ", ".join(f"{name} {value}" for name, value in zip(entry._fields, entry, strict=True))
        yield Problem(mismatch.path, f"entry of {shown}", mismatch.reason)
