"""Makes the frames of requests from the schema: valid, with fields or bytes changed, and hostile."""

from __future__ import annotations

import struct
import zlib
from random import Random
from typing import Any

from barnabas import wire
from barnabas.batches import Compression, Record, build_batch
from barnabas.batches.builder import encode_batch
from barnabas.batches.format import decode_header
from barnabas.wire import APIS, ApiKey
from barnabas.wire.messages.header import RequestHeader
from barnabas.wire.schema import FieldSchema, MessageSchema, StructSchema
from tests.broker.test_fuzz_produce import mutated as mutated_batch
from tests.fuzz.live.world import EXTREMES, World
from tests.wire.test_hostile_input import mutated

MAX_DEPTH = 4
MANY = (300, 2000, 10_000)
MAX_FRAME = 3 << 20


def valid(world: World, key: int, version: int) -> wire.Message:
    cls = wire.message_class(APIS[key].request)
    message = cls()
    _fill(world, cls, cls.schema(), cls.schema().root, message, version)
    return message


def _fill(
    world: World,
    cls: type[wire.Message],
    schema: MessageSchema,
    struct: StructSchema,
    target: wire.Struct,
    version: int,
) -> None:
    draw = world.draw
    for field in struct.fields:
        if version not in field.versions:
            continue
        if version in field.nullable and draw.random() < 0.15:
            setattr(target, field.name, None)
            continue
        if field.tag is not None and draw.random() < 0.5:
            continue
        if field.is_array:
            count = draw.choice((0, 1, 1, 1, 2, 3))
            setattr(target, field.name, [_element(world, cls, schema, struct, field, version) for _ in range(count)])
        else:
            setattr(target, field.name, _element(world, cls, schema, struct, field, version))


def _element(
    world: World, cls: type[wire.Message], schema: MessageSchema, owner: StructSchema, field: FieldSchema, version: int
) -> Any:
    if not field.is_struct:
        return world.value(owner.name, field)
    element: wire.Struct = getattr(cls, field.type)()
    _fill(world, cls, schema, schema.structs[field.type], element, version)
    return element


def reworded(world: World, message: wire.Message, version: int) -> wire.Message:
    """Some fields at the limits of their types, empty, null or doubled."""
    schema = message.schema()
    for _ in range(world.draw.choice((1, 1, 2, 4))):
        _reword(world.draw, schema, schema.root, message, version)
    return message


def _reword(draw: Random, schema: MessageSchema, struct: StructSchema, target: wire.Struct, version: int) -> None:
    fields = [field for field in struct.fields if version in field.versions]
    if not fields:
        return
    field = draw.choice(fields)
    value = getattr(target, field.name)
    if field.is_struct and draw.random() < 0.7:
        inner = draw.choice(value) if isinstance(value, list) and value else value
        if isinstance(inner, wire.Struct):
            _reword(draw, schema, schema.structs[field.type], inner, version)
            return
    if field.is_array:
        kinds: list[Any] = [[], (value or []) * 2, None]
        if not field.is_struct and field.type in EXTREMES:
            kinds.append(list(EXTREMES[field.type]))
        elif field.type == "string":
            kinds.append(["", "x" * 300, "\0", "é/..", ".."])
        setattr(target, field.name, draw.choice(kinds))
    elif field.type in EXTREMES:
        setattr(target, field.name, draw.choice(EXTREMES[field.type]))
    elif field.type == "string":
        setattr(
            target,
            field.name,
            draw.choice(("", "x" * 249, "x" * 250, "x" * 32767, "\0", "..", "*", None, "\ud83d\ude80é")),
        )
    elif field.type == "bytes":
        setattr(target, field.name, draw.choice((b"", None, b"\xff" * 7, draw.randbytes(300))))
    elif field.type == "records":
        setattr(
            target, field.name, draw.choice((b"", None, mutated_batch(draw, build_batch([Record(0, 1, b"k", b"v")]))))
        )
    elif field.type == "uuid":
        setattr(target, field.name, wire.ZERO_UUID)
    elif field.type == "bool":
        setattr(target, field.name, not value)
    else:
        setattr(target, field.name, None)


def hostile(world: World, message: wire.Message, version: int) -> wire.Message:
    """Very many rows, or records that are much larger than they look."""
    draw, schema = world.draw, message.schema()
    arrays = [
        (field, target)
        for field, target in _arrays(schema, schema.root, message, version)
        if getattr(target, field.name)
    ]
    records = list(_with_records(schema, schema.root, message, version))
    if records and draw.random() < 0.7:
        field, target = draw.choice(records)
        setattr(target, field.name, draw.choice((bomb, crowd))(draw))
    elif arrays:
        field, target = draw.choice(arrays)
        most = max(1, MAX_FRAME // max(1, len(wire.encode(message, version))))
        setattr(target, field.name, getattr(target, field.name) * min(most, draw.choice(MANY)))
    if version in schema.flexible and draw.random() < 0.3:
        message.unknown_tagged_fields = {1000 + n: b"x" for n in range(draw.choice(MANY))}
    return message


def _arrays(schema: MessageSchema, struct: StructSchema, target: wire.Struct, version: int) -> Any:
    for field in struct.fields:
        if version in field.versions:
            value = getattr(target, field.name)
            if field.is_array:
                yield field, target
            for inner in (value or ())[:1] if field.is_array else (value,):
                if isinstance(inner, wire.Struct):
                    yield from _arrays(schema, schema.structs[field.type], inner, version)


def _with_records(schema: MessageSchema, struct: StructSchema, target: wire.Struct, version: int) -> Any:
    for field in struct.fields:
        if version in field.versions:
            value = getattr(target, field.name)
            if field.type == "records":
                yield field, target
            for inner in (value or ())[:2] if field.is_array else (value,):
                if isinstance(inner, wire.Struct):
                    yield from _with_records(schema, schema.structs[field.type], inner, version)


def bomb(draw: Random) -> bytes:
    """A small batch of some megabytes, with or without a count that fits."""
    size = draw.choice((1, 4, 16)) << 20
    batch = build_batch([Record(0, 1, b"k", bytes(size))], compression=draw.choice(list(Compression)[1:]))
    return batch if draw.random() < 0.5 else bytes(mutated_batch(draw, batch))


def crowd(draw: Random) -> bytes:
    """Very many records of a few bytes each."""
    count = draw.choice((1000, 50_000, 300_000))
    payload = b"\x0e\0\0\0\1\1\0\0"[:7] + b"\0"
    header = decode_header(build_batch([Record(0, 1, None, None)]))
    crowded = header._replace(records_count=count, last_offset_delta=count - 1)
    return encode_batch(crowded, payload * count, draw.choice(list(Compression)))


KINDS = {"valid": 50, "reworded": 25, "mutated": 15, "hostile": 3, "wrong header": 3, "noise": 4}


def frame_of(world: World, key: int, version: int, client_id: str) -> tuple[str, bytes]:
    """A frame without its size, and what was done to it."""
    draw, api = world.draw, APIS[key]
    kind = draw.choices(list(KINDS), list(KINDS.values()))[0]
    correlation_id = zlib.crc32(client_id.encode()) >> 1
    header = RequestHeader(
        request_api_key=key, request_api_version=version, correlation_id=correlation_id, client_id=client_id
    )
    head = wire.encode(header, api.request_header_version(version))
    message = valid(world, key, version)
    try:
        if kind == "reworded":
            message = reworded(world, message, version)
        elif kind == "hostile":
            message = hostile(world, message, version)
        body = wire.encode(message, version)
    except wire.EncodeError:  # a value that does not fit its field
        kind, body = "valid", _encodable(world, key, version)
    if kind == "mutated":
        body = mutated(draw, body)
    elif kind == "wrong header":
        head = mutated(draw, head)
    elif kind == "noise":
        body = draw.randbytes(draw.randrange(200))
    frame = head + body
    return (kind, frame) if len(frame) <= MAX_FRAME else ("cut", frame[:MAX_FRAME])


def _encodable(world: World, key: int, version: int) -> bytes:
    for _ in range(50):
        try:
            return wire.encode(valid(world, key, version), version)
        except wire.EncodeError:
            continue
    return b""


def correlation_of(frame: bytes) -> int | None:
    return struct.unpack_from(">i", frame, 4)[0] if len(frame) >= 8 else None


def api_of(frame: bytes) -> tuple[ApiKey, int] | None:
    """The API and version that a frame names, if it is one."""
    if len(frame) < 4:
        return None
    key, version = struct.unpack_from(">hh", frame)
    return (ApiKey(key), version) if key in APIS else None
