"""Frames come out as they went in, however they were cut, and memory follows what came."""

from __future__ import annotations

from random import Random

import pytest

from barnabas.wire.errors import MalformedError
from barnabas.wire.frame import FIRST_ROOM, GROWTH, LARGE_FRAME, MAPPED_BYTES, FrameBuffer

SIZES = (0, 1, 4, 100, LARGE_FRAME - 1, LARGE_FRAME, LARGE_FRAME + 1, 3 * LARGE_FRAME, FIRST_ROOM + 5, 3 * FIRST_ROOM)


def framed(body: bytes) -> bytes:
    return len(body).to_bytes(4) + body


def receive(buffer: FrameBuffer, stream: bytes, sizes: list[int]) -> list[bytes]:
    """As a connection does it: into the room there is, then every frame that is whole."""
    found: list[bytes] = []
    position = turn = 0
    while position < len(stream):
        room = buffer.room()
        size = min(len(room), sizes[turn % len(sizes)], len(stream) - position)
        room[:size] = stream[position : position + size]
        buffer.received(size)
        position, turn = position + size, turn + 1
        while (frame := buffer.next_frame()) is not None:
            found.append(bytes(frame))
    return found


@pytest.mark.parametrize("seed", range(12))
def test_frames_of_all_sizes_cut_in_any_way_come_out_whole(seed: int) -> None:
    random = Random(seed)
    bodies = [random.randbytes(random.choice(SIZES)) for _ in range(6)]
    sizes = [random.choice((1_000, 7, 65_536, 262_144)) for _ in range(5)]
    buffer = FrameBuffer(1 << 26, memoryview(bytearray(1 << 18)))
    assert receive(buffer, b"".join(map(framed, bodies)), sizes) == bodies
    assert len(buffer) == 0


@pytest.mark.parametrize("keeps_views", [False, True])
def test_a_very_large_frame_comes_out_whole_although_its_buffer_grows(keeps_views: bool) -> None:
    body = Random(2).randbytes(1 << 16) * 700
    assert len(body) > GROWTH * MAPPED_BYTES
    stream = framed(body) + framed(b"next")
    buffer = FrameBuffer(1 << 26, memoryview(bytearray(1 << 18)))
    position = 0
    capacities: set[int] = set()
    views: list[memoryview] = []
    while (frame := buffer.next_frame()) is None:
        room = buffer.room()
        size = min(len(room), 3_000_017, len(stream) - position)
        room[:size] = stream[position : position + size]
        if keeps_views:
            views.append(room)
        del room
        buffer.received(size)
        position += size
        capacities.add(buffer.allocated_bytes)
    assert frame == body
    assert isinstance(frame, memoryview)
    assert frame.readonly
    assert len(capacities) > 2
    buffer.feed(stream[position:])
    assert buffer.next_frame() == b"next"


def test_what_is_fed_and_what_is_received_are_the_same() -> None:
    body = Random(1).randbytes(2 * FIRST_ROOM)
    buffer = FrameBuffer(1 << 26, memoryview(bytearray(16)))
    stream = framed(body) + framed(b"next")
    buffer.feed(stream[:100])
    assert buffer.next_frame() is None
    buffer.feed(stream[100:])
    assert bytes(buffer.next_frame() or b"") == body
    assert buffer.next_frame() == b"next"


def test_an_announced_size_takes_no_memory_before_the_bytes_come() -> None:
    buffer = FrameBuffer(1 << 30, memoryview(bytearray(1 << 18)))
    buffer.feed((1 << 29).to_bytes(4) + b"x")
    assert buffer.next_frame() is None
    assert len(buffer.room()) < FIRST_ROOM


def test_a_buffer_of_the_announced_size_does_not_grow_if_that_is_trusted() -> None:
    size = 2 * FIRST_ROOM
    buffer = FrameBuffer(1 << 30, memoryview(bytearray(16)), first_room=lambda: size)
    buffer.feed(size.to_bytes(4) + b"x")
    assert buffer.next_frame() is None
    assert len(buffer.room()) == size - 1


@pytest.mark.parametrize("size", [-1, 101])
def test_a_size_out_of_bounds_is_malformed(size: int) -> None:
    buffer = FrameBuffer(100, memoryview(bytearray(16)))
    buffer.feed(size.to_bytes(4, signed=True))
    with pytest.raises(MalformedError):
        buffer.next_frame()
