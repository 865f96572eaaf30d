"""Frames: the conversion between a stream of bytes and messages. No I/O.

A frame is an int32 size and that many bytes: a request header and a request, or a response header and a response.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Generator
from mmap import MAP_ANONYMOUS, MAP_PRIVATE, mmap

from barnabas.wire.api import Api
from barnabas.wire.codec import sliced_writer, writer
from barnabas.wire.errors import MalformedError
from barnabas.wire.message import Message

_SIZE = struct.Struct(">i")
_RESPONSE_HEADERS = (struct.Struct(">ii"), struct.Struct(">iiB"))  # size, correlation id, and empty tagged fields

_COMPACT_AFTER = 1 << 16


LARGE_FRAME = 1 << 16
FIRST_ROOM = 1 << 16
MAX_PIECES = 512  # of a response; more are joined, so many at a time
LARGE_PIECE_BYTES = 1 << 12
GROWTH = 4
MAPPED_BYTES = 1 << 23
SCRATCH_BYTES = 1 << 18

Frame = bytes | memoryview

_NO_SCRATCH = memoryview(b"")


class FrameBuffer:
    """Collects bytes and returns whole frames. A negative size, or one above the limit, raises MalformedError.

    A large frame gets its own buffer as soon as its size is known. The rest is received directly into it, so that its
    bytes are not copied again, and it is returned as a view. `scratch` receives everything else, and may be shared by
    buffers in the same thread; it is not needed if only `feed` is used. An announced size is trusted up to what
    `first_room` returns when it is read. Beyond it, memory follows the bytes that arrive: a buffer that is full grows to
    `GROWTH` times its size. It is copied then, unless it is mapped: a buffer of `MAPPED_BYTES` or more is memory of its own
    from the system, because to clear and to copy 100 MB would take a tenth of a second.
    """

    __slots__ = ("_data", "_filled", "_first_room", "_large", "_large_size", "_position", "_scratch", "max_size")

    def __init__(
        self, max_size: int, scratch: memoryview = _NO_SCRATCH, first_room: Callable[[], int] = lambda: FIRST_ROOM
    ) -> None:
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

    @property
    def allocated_bytes(self) -> int:
        """The memory that this buffer holds, with the part of it that is still empty."""
        return len(self._data) + (0 if self._large is None else len(self._large))

    @property
    def missing_bytes(self) -> int:
        """The number of bytes that the frame being received still needs, 0 between frames."""
        if self._large is not None:
            return self._large_size - self._filled
        left = len(self._data) - self._position
        if left < 4:
            return 4 - left if left else 0
        return max(0, 4 + int(_SIZE.unpack_from(self._data, self._position)[0]) - left)

    @property
    def has_frame(self) -> bool:
        """True if a whole frame is buffered."""
        return len(self) > 0 and not self.missing_bytes

    @property
    def growth_bytes(self) -> int:
        """The memory that the next call of `room` takes in addition."""
        large = self._large
        if large is None or self._filled < len(large) or self._filled == self._large_size:
            return 0
        return self._grown_bytes() - len(large)

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
            self._drop_returned()
            return None
        (size,) = _SIZE.unpack_from(data, start - 4)
        if size < 0 or size > self.max_size:
            raise MalformedError(f"a frame of {size} bytes (allowed are 0 to {self.max_size})")
        end = start + size
        if end > len(data):
            if size >= LARGE_FRAME:
                self._begin_large(size, start)
            else:
                self._drop_returned()
            return None
        self._position = end
        if isinstance(data, bytes):
            return data[start:end]
        with memoryview(data) as view:
            return bytes(view[start:end])

    def clear(self) -> None:
        """Drop everything that was received."""
        self._data, self._position, self._large, self._filled = b"", 0, None, 0

    def _drop_returned(self) -> None:
        """Keep only what is not returned yet, because the next bytes may not arrive for a long time."""
        if self._position:
            left = len(self._data) - self._position
            self._data = bytearray(memoryview(self._data)[self._position :]) if left else b""
            self._position = 0

    def _begin_large(self, size: int, start: int) -> None:
        self._large_size = size
        self._filled = len(self._data) - start
        self._large = memoryview(_allocated(min(size, max(self._first_room(), GROWTH * self._filled))))
        self._large[: self._filled] = self._data[start:]
        self._data, self._position = b"", 0

    def _large_room(self, large: memoryview) -> memoryview:
        if self._filled == len(large):
            self._large = large = _grown(large, self._grown_bytes())
        return large[self._filled :]

    def _grown_bytes(self) -> int:
        return min(self._large_size, GROWTH * self._filled)


def _allocated(size: int) -> bytearray | mmap:
    return bytearray(size) if size < MAPPED_BYTES else mmap(-1, size, flags=MAP_PRIVATE | MAP_ANONYMOUS)


def _grown(buffer: memoryview, size: int) -> memoryview:
    """Return a larger buffer with the bytes of a full one, which is given up."""
    owner = buffer.obj
    filled = len(buffer)
    buffer.release()
    if isinstance(owner, mmap):
        try:
            owner.resize(size)  # moves its pages
            return memoryview(owner)
        except (BufferError, SystemError):  # somebody has a view of it, or the system cannot resize
            pass
    larger = memoryview(_allocated(size))
    with memoryview(owner) as view:
        larger[:filled] = view[:filled]
    return larger


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
        if len(pieces) > MAX_PIECES:
            pieces = yield from _fewer(pieces)
    return _with_header(api, version, correlation_id, pieces)


def _fewer(pieces: list[bytes]) -> Generator[None, None, list[bytes]]:
    """Join small pieces, because whoever sends them walks over all of them at once. Records stay as they are."""
    fewer: list[bytes] = [b""]
    small: list[bytes] = []
    for piece in pieces:
        is_small = type(piece) is bytes and len(piece) < LARGE_PIECE_BYTES
        if is_small:
            small.append(piece)
        if small and (not is_small or len(small) == MAX_PIECES):
            fewer.append(b"".join(small))
            small = []
            yield
        if not is_small:
            fewer.append(piece)
    fewer.append(b"".join(small))
    return fewer


def frame_size(pieces: list[bytes]) -> int:
    """Return the size of a frame that `encode_response` returned, as its header has it."""
    return int.from_bytes(pieces[0][:4])


def _with_header(api: Api, version: int, correlation_id: int, pieces: list[bytes]) -> list[bytes]:
    header_version = api.response_header_version(version)
    size = 4 + header_version + sum(map(len, pieces))
    header = _RESPONSE_HEADERS[header_version]
    pieces[0] = header.pack(size, correlation_id, 0) if header_version else header.pack(size, correlation_id)
    return pieces
