"""What can go wrong with data on disk, as one family of exceptions, each with the error code that a broker would answer.

Its one rule: the system's own OSError ends here. `disk_errors` turns it into a StorageError that names the path, and whoever
catches one takes the log dir offline. Damage is a CorruptLogError and concerns one log; a FileGoneError concerns only who
reads. What a caller asked wrongly (an offset out of range) is no fault of the disk.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from barnabas.wire.errors import ErrorCode, KafkaError


class StorageError(KafkaError):
    """A disk, directory or file that cannot be used."""

    message: str

    def __init__(self, message: str, code: ErrorCode = ErrorCode.KAFKA_STORAGE_ERROR) -> None:
        super().__init__(code, message)

    def __str__(self) -> str:
        return self.message


class CorruptLogError(StorageError):
    """Bytes in a file of batches that are no batch; everything before `position` is whole.

    `truncated` means that the file ends inside the batch that begins there, as it does after a kill.
    """

    def __init__(self, path: Path, position: int, reason: str, *, truncated: bool = False) -> None:
        super().__init__(f"{path} at position {position}: {reason}", ErrorCode.CORRUPT_MESSAGE)
        self.path = path
        self.position = position
        self.reason = reason
        self.truncated = truncated


class FileGoneError(StorageError):
    """A file that was deleted with its segment while somebody had still to read it; the disk is sound."""


class OffsetOutOfRangeError(KafkaError):
    """An offset before the start or after the end of a log."""

    def __init__(self, message: str) -> None:
        super().__init__(ErrorCode.OFFSET_OUT_OF_RANGE, message)


class UnexpectedOffsetError(KafkaError):
    """Batches with offsets of their own that do not follow the end of the log."""

    def __init__(self, message: str, first_offset: int, last_offset: int) -> None:
        super().__init__(ErrorCode.OFFSET_OUT_OF_RANGE, message)
        self.first_offset = first_offset
        self.last_offset = last_offset


@contextmanager
def disk_errors(doing: str, path: Path | str) -> Iterator[None]:
    """Names what was being done, and where, when the system refuses it."""
    try:
        yield
    except OSError as error:
        raise StorageError(f"{doing} {path} failed: {error.strerror or error}") from error
