"""Records of Kafka's own topics: decoded and replayed, or refused by an error that says so.

An input is the kind of log, and records with their lengths. The image that comes out of a metadata log can be written as a
snapshot and read back.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from random import Random

from barnabas import wire
from barnabas.batches import Record
from barnabas.groups.image import EMPTY_IMAGE as NO_GROUPS
from barnabas.groups.replay import apply as apply_groups
from barnabas.metadata.errors import ReplayError, UnwritableMetadataError
from barnabas.metadata.image import Provenance
from barnabas.metadata.loader import MetadataBatch, MetadataLoader
from barnabas.metadata.snapshot import from_records, to_records
from barnabas.replicated.decision import KeyValue, Producer
from barnabas.replicated.loop import Batch, Marker
from barnabas.replicated.machines import decode_key_value
from barnabas.transactions.state import EMPTY_IMAGE as NO_TRANSACTIONS
from barnabas.transactions.state import apply as apply_transactions
from barnabas.wire.apis import RECORD_NAMES
from tests.metadata.stories import check_derived, story
from tests.wire.golden import vectors_of

LENGTH = struct.Struct(">h")
KINDS = ("metadata", "group", "transaction", "share", "storage")
REFUSED = (wire.MalformedError, wire.UnsupportedVersionError)
HERE = Provenance(1, 1, 1)
MARKERS = (None, None, Marker(True, 1), Marker(False, 1))


def seeds() -> Iterator[bytes]:
    for seed in range(20):
        draw = Random(seed)
        written = story(draw.randrange, 30, transactions=seed % 2 == 0)
        newest = ((each, each.schema().versions.last) for each in written)
        yield b"\0\0" + joined(wire.encode_record(record, version) for record, version in newest)
    for kind, group in enumerate(KINDS):
        for name in RECORD_NAMES[group].values():
            for vector in vectors_of(name):
                if vector.case not in ("full", "random"):
                    continue
                key = bytes.fromhex(vector.facts.get("frame", vector.facts["hex"]))
                if group not in ("group", "transaction", "share"):
                    yield bytes((kind, 0)) + joined([key])
                    continue
                for value in vectors_of(name.removesuffix("Key") + "Value"):
                    if value.case in ("full", "random"):
                        body = bytes.fromhex(value.facts.get("frame", value.facts["hex"]))
                        yield bytes((kind, value.version)) + joined([key, body])


def joined(records: Iterator[bytes] | list[bytes]) -> bytes:
    return b"".join(LENGTH.pack(len(each)) + each for each in records)


def split(data: bytes) -> list[bytes | None]:
    """Records; one with a negative length is null, and one that is cut off ends where the input does."""
    found: list[bytes | None] = []
    position = 0
    while position + LENGTH.size <= len(data) and len(found) < 100:
        (size,) = LENGTH.unpack_from(data, position)
        position += LENGTH.size
        found.append(None if size < 0 else data[position : position + size])
        position += max(size, 0)
    return found


def check(data: bytes) -> None:
    if len(data) < 2:
        return
    kind, how = KINDS[data[0] % len(KINDS)], data[1]
    records = split(data[2:])
    if kind in ("metadata", "storage"):
        decoded = [found for record in records if (found := decoded_record(record or b"", kind)) is not None]
        if kind == "metadata":
            check_metadata(decoded, batch_size=how % 16 + 1)
        return
    pairs = zip(records[::2], records[1::2], strict=False)
    found_pairs = [pair for key, value in pairs if (pair := decoded_pair(key, value, kind))]
    producer = Producer(how % 3, 0) if how & 4 else None
    batches = [
        Batch(number, number, 0, 1000 + number, [pair], producer, None) for number, pair in enumerate(found_pairs)
    ]
    batches.append(Batch(len(batches), len(batches), 0, 5000, (), producer, MARKERS[how % len(MARKERS)]))
    if kind == "group":
        check_replay(apply_groups, NO_GROUPS, batches)
    elif kind == "transaction":
        check_replay(apply_transactions, NO_TRANSACTIONS, batches)


def decoded_record(data: bytes, group: str) -> wire.Message | None:
    try:
        record, version = wire.decode_record(data, group)
    except REFUSED:
        return None
    again = wire.decode_record(wire.encode_record(record, version), group)
    assert again.version == version
    assert again.record == record or repr(again.record) == repr(record)
    return record  # type: ignore[no-any-return]


def decoded_pair(key: bytes | None, value: bytes | None, group: str) -> KeyValue | None:
    try:
        return decode_key_value(Record(0, 0, key, value), group)
    except REFUSED:
        return None


def check_metadata(records: list[wire.Message], batch_size: int) -> None:
    loader = MetadataLoader()
    for start in range(0, len(records), batch_size):
        some = records[start : start + batch_size]
        try:
            loader.load([MetadataBatch(start, start + len(some) - 1, 1, 1, some)])
        except ReplayError as error:
            assert expected(error), error
            break
    image = loader.image
    check_derived(image)
    if image.metadata_version is not None:
        try:
            written = [wire.decode_record(wire.encode_record(*each)).record for each in to_records(image)]
        except UnwritableMetadataError:
            return
        assert from_records(written, image.provenance) == image, "a snapshot changes the image"


def expected(error: ReplayError) -> bool:
    """Whether a record was refused on purpose: what a replay function did not foresee is the cause of the error."""
    return error.__cause__ is None or isinstance(error.__cause__, ReplayError)


def check_replay(apply, image, batches) -> None:  # type: ignore[no-untyped-def]
    for batch in batches:
        try:
            image = apply(image, batch)
        except REFUSED:
            return
