"""PartitionRecord, version 1, declared in the terms of kio and of kafka-python, which have no metadata records.

kio reads the annotations themselves, so that they must not become strings here.
"""

import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar


def kio_partition_record() -> type[Any]:
    from kio.schema.request_header.v2.header import RequestHeader  # a peer is loaded only when timed
    from kio.static.constants import EntityType
    from kio.static.primitive import i8, i16, i32

    int32 = {"kafka_type": "int32"}

    @dataclass(frozen=True, slots=True, kw_only=True)
    class PartitionRecord:
        __type__: ClassVar = EntityType.data
        __version__: ClassVar[Any] = i16(1)
        __flexible__: ClassVar[bool] = True
        __api_key__: ClassVar[Any] = i16(3)
        __header_schema__: ClassVar[Any] = RequestHeader
        partition_id: i32 = field(metadata=int32)
        topic_id: uuid.UUID | None = field(metadata={"kafka_type": "uuid"})
        replicas: tuple[i32, ...] = field(metadata=int32)
        isr: tuple[i32, ...] = field(metadata=int32)
        removing_replicas: tuple[i32, ...] = field(metadata=int32)
        adding_replicas: tuple[i32, ...] = field(metadata=int32)
        leader: i32 = field(metadata=int32)
        leader_recovery_state: i8 = field(metadata={"kafka_type": "int8", "tag": 0}, default=i8(0))
        leader_epoch: i32 = field(metadata=int32)
        partition_epoch: i32 = field(metadata=int32)
        directories: tuple[uuid.UUID | None, ...] = field(metadata={"kafka_type": "uuid"})

    return PartitionRecord


KAFKA_PYTHON_FIELDS = [
    ("PartitionId", "int32"),
    ("TopicId", "uuid"),
    ("Replicas", "[]int32"),
    ("Isr", "[]int32"),
    ("RemovingReplicas", "[]int32"),
    ("AddingReplicas", "[]int32"),
    ("Leader", "int32"),
    ("LeaderEpoch", "int32"),
    ("PartitionEpoch", "int32"),
    ("Directories", "[]uuid"),
]


def kafka_python_partition_record(version: int) -> tuple[Callable[[Any], bytes], Callable[[bytes], Any]]:
    """Its compiled writer and reader, called as its own messages call them."""
    from kafka.protocol.data_container import DataContainer
    from kafka.protocol.schemas import StructField
    from kafka.protocol.schemas.fields.codecs import EncodeBufferPool

    fields: list[dict[str, Any]] = [{"name": n, "type": kind, "versions": "0+"} for n, kind in KAFKA_PYTHON_FIELDS]
    state = {"name": "LeaderRecoveryState", "type": "int8", "versions": "0+", "taggedVersions": "0+", "tag": 0}
    fields.insert(7, {**state, "default": "0"})
    struct = StructField({"name": "PartitionRecord", "type": "data", "versions": "0+", "fields": fields})
    record_class = type("PartitionRecord", (DataContainer,), {"_struct": struct})
    struct.set_data_class(record_class)
    write = struct.compiled_encode_into(version, compact=True, tagged=True)
    read = struct.compiled_decode_from(version, compact=True, tagged=True, data_class=record_class)

    def encode(record: Any) -> bytes:
        with EncodeBufferPool.acquire() as out:
            write(record, out)
            return bytes(out.result())

    return encode, lambda data: read(memoryview(data), 0)[0]
