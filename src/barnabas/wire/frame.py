"""Frames: the conversion between a stream of bytes and messages. No I/O.

A frame is an int32 size and that many bytes: a request header and a request, or a response header and a response.
"""

from __future__ import annotations

import struct
from collections.abc import Generator

from barnabas.wire.api import Api
from barnabas.wire.codec import sliced_writer, writer
from barnabas.wire.errors import MalformedError
from barnabas.wire.message import Message

_SIZE = struct.Struct(">i")
_RESPONSE_HEADERS = (struct.Struct(">ii"), struct.Struct(">iiB"))  # size, correlation id, and empty tagged fields

_COMPACT_AFTER = 1 << 16


LARGE_FRAME = 1 << 16
FIRST_ROOM = 1 << 22
SCRATCH_BYTES = 1 << 18

Frame = bytes | memoryview

_NO_SCRATCH = memoryview(b"")


class FrameBuffer:
    """Collects bytes and returns whole frames. A negative size, or one above the limit, raises MalformedError.

    A large frame gets its own buffer as soon as its size is known. The rest is received directly into it, so that its
    bytes are not copied again, and it is returned as a view. `scratch` receives everything else, and may be shared by
    buffers in the same thread; it is not needed if only `feed` is used. An announced size is trusted up to `first_room`,
    and beyond only as bytes arrive: then the buffer grows, and is copied.
    """

    __slots__ = ("_data", "_filled", "_first_room", "_large", "_large_size", "_position", "_scratch", "max_size")

    def __init__(self, max_size: int, scratch: memoryview = _NO_SCRATCH, first_room: int = FIRST_ROOM) -> None:
        self.max_size = max_size
        self._first_room = first_room
        self._scratch = scratch
        self._data: bytes | bytearray = b""
        self._position = 0
        self._large: memoryview | None = None
        self._large_size = 0
        self._filled = 0

    def __len__(self) -> int:
        """The number of bytes that are buffered and not yet returned."""
        return len(self._data) - self._position + (self._filled if self._large is not None else 0)

    def room(self) -> memoryview:
        """Return the buffer for the next bytes. Pass their number to `received`."""
        if self._large is not None and self._filled < self._large_size:
            return self._large_room(self._large)
        return self._scratch

    def received(self, size: int) -> None:
        if self._large is not None and self._filled < self._large_size:
            self._filled += size
        else:
            self.feed(bytes(self._scratch[:size]))

    def feed(self, data: bytes) -> None:
        while data and self._large is not None and self._filled < self._large_size:
            room = self._large_room(self._large)
            taken = min(len(room), len(data))
            room[:taken] = data if taken == len(data) else data[:taken]
            self._filled += taken
            data = data[taken:]
        if self._position == len(self._data):
            self._data, self._position = data, 0  # the common case: nothing is left over, nothing is copied
            return
        if isinstance(self._data, bytes):
            self._data, self._position = bytearray(memoryview(self._data)[self._position :]), 0
        elif self._position > _COMPACT_AFTER:
            del self._data[: self._position]
            self._position = 0
        self._data += data

    def next_frame(self) -> Frame | None:
        if self._large is not None:
            if self._filled < self._large_size:
                return None
            frame, self._large = self._large.toreadonly(), None
            return frame
        data, start = self._data, self._position + 4
        if start > len(data):
            return None
        (size,) = _SIZE.unpack_from(data, start - 4)
        if size < 0 or size > self.max_size:
            raise MalformedError(f"a frame of {size} bytes (allowed are 0 to {self.max_size})")
        end = start + size
        if end > len(data):
            if size >= LARGE_FRAME:
                self._begin_large(size, start)
            return None
        self._position = end
        if isinstance(data, bytes):
            return data[start:end]
        with memoryview(data) as view:
            return bytes(view[start:end])

    def _begin_large(self, size: int, start: int) -> None:
        self._large = memoryview(bytearray(min(size, self._first_room)))
        self._large_size = size
        self._filled = len(self._data) - start
        self._large[: self._filled] = self._data[start:]
        self._data, self._position = b"", 0

    def _large_room(self, large: memoryview) -> memoryview:
        if self._filled == len(large):
            larger = memoryview(bytearray(min(self._large_size, 2 * len(large))))
            larger[: self._filled] = large
            self._large = large = larger
        return large[self._filled :]


def encode_response(api: Api, version: int, correlation_id: int, response: Message | bytes) -> list[bytes]:
    """Return the pieces of a whole frame. A response of type bytes is an already encoded body."""
    pieces: list[bytes] = [b""]
    if isinstance(response, bytes):
        pieces.append(response)
    else:
        writer(type(response), version)(response, pieces.append)
    return _with_header(api, version, correlation_id, pieces)


def encode_response_in_slices(
    api: Api, version: int, correlation_id: int, response: Message | bytes
) -> Generator[None, None, list[bytes]]:
    """Do the same as `encode_response`, with pauses."""
    pieces: list[bytes] = [b""]
    if isinstance(response, bytes):
        pieces.append(response)
    else:
        yield from sliced_writer(type(response), version)(response, pieces.append)
    return _with_header(api, version, correlation_id, pieces)


def _with_header(api: Api, version: int, correlation_id: int, pieces: list[bytes]) -> list[bytes]:
    header_version = api.response_header_version(version)
    size = 4 + header_version + sum(map(len, pieces))
    header = _RESPONSE_HEADERS[header_version]
    pieces[0] = header.pack(size, correlation_id, 0) if header_version else header.pack(size, correlation_id)
    return pieces
