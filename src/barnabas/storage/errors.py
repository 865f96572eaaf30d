"""Exceptions for data on disk, each with the error code that a broker answers.

Its one rule: OSError does not leave this package. `disk_errors` converts it to a StorageError that names the path, and
the caller that catches one takes the log dir offline. Damage is a CorruptLogError and affects one log; a FileGoneError
affects only the reader. A wrong argument, such as an offset out of range, is not a storage error.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import ClassVar

from barnabas.wire.errors import ErrorCode, KafkaError


class StorageError(KafkaError):
    """A disk, directory or file that cannot be used. `is_of_dir` is whether its log dir is to go offline."""

    message: str
    is_of_dir: ClassVar[bool] = True

    def __init__(self, message: str, code: ErrorCode = ErrorCode.KAFKA_STORAGE_ERROR) -> None:
        super().__init__(code, message)

    def __str__(self) -> str:
        return self.message


class CorruptLogError(StorageError):
    """Invalid bytes in a file of batches. Everything before `position` is intact.

    `truncated` means that the file ends inside the batch that starts there, as after a crash.
    """

    is_of_dir = False

    def __init__(self, path: Path, position: int, reason: str, *, truncated: bool = False) -> None:
        super().__init__(f"{path} at position {position}: {reason}", ErrorCode.CORRUPT_MESSAGE)
        self.path = path
        self.position = position
        self.reason = reason
        self.truncated = truncated


class FileGoneError(StorageError):
    """A file that was deleted with its segment before it was read. The disk is not at fault."""

    is_of_dir = False


class OffsetOutOfRangeError(KafkaError):
    """An offset before the start or after the end of a log."""

    def __init__(self, message: str) -> None:
        super().__init__(ErrorCode.OFFSET_OUT_OF_RANGE, message)


class UnexpectedOffsetError(KafkaError):
    """Batches of a leader whose offsets do not continue the log."""

    def __init__(self, message: str, first_offset: int, last_offset: int) -> None:
        super().__init__(ErrorCode.OFFSET_OUT_OF_RANGE, message)
        self.first_offset = first_offset
        self.last_offset = last_offset


@contextmanager
def disk_errors(doing: str, path: Path | str) -> Iterator[None]:
    """Convert OSError to a StorageError that names the operation and the path."""
    try:
        yield
    except OSError as error:
        raise StorageError(f"{doing} {path} failed: {error.strerror or error}") from error
