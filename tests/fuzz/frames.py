"""A stream of bytes, however it is cut: the frames are those of the stream, and no size that a frame announces costs memory.

An input is the size limit, the sizes of the pieces (up to a zero), and four bytes per frame: the size it announces. An odd
first byte means that the stream ends in it.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from unittest.mock import patch

from barnabas.wire import MalformedError, frame
from barnabas.wire.frame import GROWTH, LARGE_FRAME, FrameBuffer

LIMITS = (100, 1 << 20, 1 << 17, (1 << 31) - 1)
FIRST_ROOM = 1 << 17
MAX_STREAM = 1 << 19
CONTENT = bytes(index % 251 for index in range(MAX_STREAM))


def seeds() -> Iterator[bytes]:
    for sizes in ((5, 0, 7), (99, 101), (LARGE_FRAME + 3, 2), (1, LARGE_FRAME * 2, 1), ((1 << 31) - 1,)):
        for limit in range(len(LIMITS)):
            yield bytes((limit, 3, 200, 1, 0)) + b"".join(struct.pack(">i", size) for size in sizes)


def check(data: bytes) -> None:
    if not data:
        return
    limit = LIMITS[data[0] % len(LIMITS)]
    end = data.find(0, 1)
    sizes = data[1 : len(data) if end < 0 else end]
    stream = b"" if end < 0 else stream_of(data[end + 1 :])
    expected = expected_frames(stream, limit)
    for reads_into, is_mapped in ((False, False), (True, False), (True, True)):
        with patch.object(frame, "MAPPED_BYTES", 1 if is_mapped else frame.MAPPED_BYTES):
            found = found_frames(stream, sizes or b"\xff", limit, reads_into=reads_into)
        assert found == expected, f"{sizes_of(found)}, not {sizes_of(expected)}"


def stream_of(announced: bytes) -> bytes:
    stream = bytearray()
    for (size,) in struct.iter_unpack(">i", announced[: len(announced) // 4 * 4]):
        stream += struct.pack(">i", size)
        if size >> 24 & 1 or len(stream) + size > MAX_STREAM:
            return bytes(stream + CONTENT[: size % 1000])
        stream += CONTENT[: max(size, 0)]
    return bytes(stream)


def sizes_of(frames: list[bytes | None]) -> list[int]:
    return [-1 if each is None else len(each) for each in frames]


def expected_frames(stream: bytes, limit: int) -> list[bytes | None]:
    """The frames; None at the end stands for a size that is refused."""
    frames: list[bytes | None] = []
    position = 0
    while position + 4 <= len(stream):
        (size,) = struct.unpack_from(">i", stream, position)
        if not 0 <= size <= limit:
            return [*frames, None]
        if position + 4 + size > len(stream):
            break
        frames.append(stream[position + 4 : position + 4 + size])
        position += 4 + size
    return frames


def found_frames(stream: bytes, sizes: bytes, limit: int, *, reads_into: bool) -> list[bytes | None]:
    scratch = memoryview(bytearray(1000))
    buffer = FrameBuffer(limit, scratch, first_room=lambda: FIRST_ROOM)
    frames: list[bytes | None] = []
    position = turn = 0
    smallest = len(stream) // 500  # so that an input is done soon
    while position < len(stream):
        piece = stream[position : position + max(sizes[turn % len(sizes)] ** 2, smallest)]
        turn += 1
        if reads_into:
            room = buffer.room()
            assert 0 < len(room) <= max(len(scratch), FIRST_ROOM, GROWTH * position)
            piece = piece[: len(room)]
            room[: len(piece)] = piece
            buffer.received(len(piece))
        else:
            buffer.feed(piece)
        position += len(piece)
        try:
            while (found := buffer.next_frame()) is not None:
                frames.append(bytes(found))
        except MalformedError:
            return [*frames, None]
    return frames
