"""Exceptions for invalid batches. Each has the error code that a broker would return.

Its one rule: untrusted bytes raise `BatchError` and nothing else. An error that belongs in a response is a value
(`validation.InvalidBatch`), created from these.
"""

from __future__ import annotations

from barnabas.wire.errors import ErrorCode, MalformedError


class BatchError(MalformedError):
    """An invalid batch."""

    code = ErrorCode.INVALID_RECORD


class CorruptBatchError(BatchError):
    """A wrong checksum, an unknown magic or an impossible length."""

    code = ErrorCode.CORRUPT_MESSAGE


class TooLargePayloadError(BatchError):
    """Records that decompress to more than is allowed. A producer may split the batch."""

    code = ErrorCode.MESSAGE_TOO_LARGE


class UnknownCompressionError(BatchError):
    """A codec number that format v2 does not define."""

    code = ErrorCode.UNSUPPORTED_COMPRESSION_TYPE


class TruncatedBatchError(BatchError):
    """The bytes end inside a batch. `position` is where that batch starts; everything before it is complete."""

    def __init__(self, position: int, message: str) -> None:
        super().__init__(message)
        self.position = position
