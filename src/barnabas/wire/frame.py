"""Frames: what stands between a stream of bytes and messages. No I/O.

A frame is an int32 size and that many bytes: a request header and a request, or a response header and a response.
"""

from __future__ import annotations

import struct

from barnabas.wire.api import Api
from barnabas.wire.codec import writer
from barnabas.wire.errors import MalformedError
from barnabas.wire.message import Message

_SIZE = struct.Struct(">i")
_RESPONSE_HEADERS = (struct.Struct(">ii"), struct.Struct(">iiB"))  # size, correlation id, and no tagged fields

_COMPACT_AFTER = 1 << 16


class FrameBuffer:
    """Bytes in, whole frames out. A size that is negative or above the limit raises MalformedError."""

    __slots__ = ("_data", "_position", "max_size")

    def __init__(self, max_size: int) -> None:
        self.max_size = max_size
        self._data: bytes | bytearray = b""
        self._position = 0

    def __len__(self) -> int:
        """Bytes that are held and not yet given out."""
        return len(self._data) - self._position

    def feed(self, data: bytes) -> None:
        if self._position == len(self._data):
            self._data, self._position = data, 0  # the common case: nothing is left over, nothing is copied
            return
        if isinstance(self._data, bytes):
            self._data, self._position = bytearray(memoryview(self._data)[self._position :]), 0
        elif self._position > _COMPACT_AFTER:
            del self._data[: self._position]
            self._position = 0
        self._data += data

    def next_frame(self) -> bytes | None:
        data, start = self._data, self._position + 4
        if start > len(data):
            return None
        (size,) = _SIZE.unpack_from(data, start - 4)
        if size < 0 or size > self.max_size:
            raise MalformedError(f"a frame of {size} bytes (0 to {self.max_size} are allowed)")
        end = start + size
        if end > len(data):
            return None
        self._position = end
        if isinstance(data, bytes):
            return data[start:end]
        with memoryview(data) as view:
            return bytes(view[start:end])


def encode_response(api: Api, version: int, correlation_id: int, response: Message | bytes) -> list[bytes]:
    """The pieces of a whole frame; a response that is bytes is a body that was encoded before."""
    pieces: list[bytes] = [b""]
    if isinstance(response, bytes):
        pieces.append(response)
    else:
        writer(type(response), version)(response, pieces.append)
    header_version = api.response_header_version(version)
    size = 4 + header_version + sum(map(len, pieces))
    header = _RESPONSE_HEADERS[header_version]
    pieces[0] = header.pack(size, correlation_id, 0) if header_version else header.pack(size, correlation_id)
    return pieces
