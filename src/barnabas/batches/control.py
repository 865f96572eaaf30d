"""Control records: markers that the cluster writes to logs and that consumers do not return.

Its one rule: the key is the type of a control record. Only the value of a transaction marker is decoded here; those of
the metadata log are wire records.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from enum import IntEnum
from typing import NamedTuple

from barnabas.batches.builder import build_batch
from barnabas.batches.errors import BatchError
from barnabas.batches.format import NO_LEADER_EPOCH, Record

_KEY = struct.Struct(">hh")
_END_TXN_MARKER = struct.Struct(">hi")
_VERSION = 0


class ControlType(IntEnum):
    """The type of a control record. UNKNOWN stands for all later types, which readers skip."""

    UNKNOWN = -1
    ABORT = 0
    COMMIT = 1
    LEADER_CHANGE = 2
    SNAPSHOT_HEADER = 3
    SNAPSHOT_FOOTER = 4
    KRAFT_VERSION = 5
    KRAFT_VOTERS = 6


class EndTxnMarker(NamedTuple):
    """The record that ends a transaction in one partition."""

    type: ControlType
    coordinator_epoch: int


def encode_control_key(type: ControlType) -> bytes:
    return _KEY.pack(_VERSION, type)


def decode_control_key(key: bytes | None) -> ControlType:
    """Decode the type from the key of a control record. Later versions of the key are read as far as they are known."""
    if key is None or len(key) < _KEY.size:
        raise BatchError(f"the key {key!r} of a control record is too short")
    version, number = _KEY.unpack_from(key)
    if version < 0:
        raise BatchError(f"the key of a control record has version {version}")
    return ControlType(number) if ControlType.ABORT <= number <= ControlType.KRAFT_VOTERS else ControlType.UNKNOWN


def decode_end_txn_marker(record: Record) -> EndTxnMarker:
    """Decode the marker from a record of type ABORT or COMMIT."""
    control_type = decode_control_key(record.key)
    if control_type not in (ControlType.ABORT, ControlType.COMMIT):
        raise BatchError(f"a control record of type {control_type.name} is not a transaction marker")
    value = record.value
    if value is None or len(value) < _END_TXN_MARKER.size:
        raise BatchError(f"the value {value!r} of a transaction marker is too short")
    version, coordinator_epoch = _END_TXN_MARKER.unpack_from(value)
    if version < 0:
        raise BatchError(f"the value of a transaction marker has version {version}")
    return EndTxnMarker(control_type, coordinator_epoch)


def build_end_txn_marker(
    *,
    commit: bool,
    producer_id: int,
    producer_epoch: int,
    coordinator_epoch: int,
    timestamp: int,
    base_offset: int = 0,
    partition_leader_epoch: int = NO_LEADER_EPOCH,
) -> bytes:
    """Build the batch that commits or aborts a producer's transaction in one partition."""
    key = encode_control_key(ControlType.COMMIT if commit else ControlType.ABORT)
    value = _END_TXN_MARKER.pack(_VERSION, coordinator_epoch)
    return build_batch(
        (Record(base_offset, timestamp, key, value),),
        base_offset=base_offset,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        is_transactional=True,
        is_control=True,
        partition_leader_epoch=partition_leader_epoch,
    )


def build_control_batch(
    values: Iterable[tuple[ControlType, bytes]], *, timestamp: int, base_offset: int, partition_leader_epoch: int
) -> bytes:
    """Build a batch of control records of the metadata log from their types and encoded values."""
    return build_batch(
        (Record(0, timestamp, encode_control_key(control_type), value) for control_type, value in values),
        base_offset=base_offset,
        is_control=True,
        partition_leader_epoch=partition_leader_epoch,
    )
