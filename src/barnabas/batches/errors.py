"""What is wrong with a batch, as one family of exceptions: each carries the error code that a broker would answer.

Its one rule: bytes of strangers raise `BatchError` and nothing else. A refusal that belongs into an answer is a value
(`validation.InvalidBatch`), made from these there.
"""

from __future__ import annotations

from barnabas.wire.errors import ErrorCode, MalformedError


class BatchError(MalformedError):
    """A batch that is not what it claims to be."""

    code = ErrorCode.INVALID_RECORD


class CorruptBatchError(BatchError):
    """A wrong checksum, an unknown magic or a length that no batch can have."""

    code = ErrorCode.CORRUPT_MESSAGE


class UnknownCompressionError(BatchError):
    """A codec number that format v2 does not define."""

    code = ErrorCode.UNSUPPORTED_COMPRESSION_TYPE


class TruncatedBatchError(BatchError):
    """The bytes end inside a batch; `position` is where that batch begins, so everything before it is whole."""

    def __init__(self, position: int, message: str) -> None:
        super().__init__(message)
        self.position = position
