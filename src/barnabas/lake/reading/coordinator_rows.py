"""Records of the coordinators' logs as rows of their data sources, with only the columns of the schema.

Its one rule: every record is a row. One that cannot be decoded has its bytes, and the reason in `error` if the schema has that
column; with FAILFAST it raises. Batches that cannot be read are reported as by `kafka_log`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from barnabas.batches.format import CONTROL_BIT, TRANSACTIONAL_BIT
from barnabas.config.internal_topics import GROUP_METADATA_TOPIC, SHARE_GROUP_STATE_TOPIC, TRANSACTION_STATE_TOPIC
from barnabas.lake.reading.batch_arrays import Array, Records
from barnabas.lake.reading.decoding.coordinator_records import (
    GROUPS,
    SHARE_STATES,
    TRANSACTIONS,
    Key,
    Value,
    decode_key,
    decode_marker,
    decode_value,
    state_name,
)
from barnabas.lake.reading.log_planning import PieceStart, Share
from barnabas.lake.reading.log_reading import read_share
from barnabas.lake.reading.log_rows import ERROR, MAX_BYTES, MAX_ROWS, LogReadError, describe, error_row

_log = logging.getLogger(__name__)

_TIME = pa.timestamp("us", tz="UTC")
_LAST_TIME_MS = 253_402_300_799_999

TYPES: dict[str, pa.DataType] = {
    "cluster_id": pa.string(),
    "node_id": pa.int32(),
    "partition": pa.int32(),
    "offset": pa.int64(),
    "timestamp": _TIME,
    "leader_epoch": pa.int32(),
    "producer_id": pa.int64(),
    "producer_epoch": pa.int16(),
    "is_transactional": pa.bool_(),
    "is_control": pa.bool_(),
    "control_type": pa.string(),
    "record_type": pa.string(),
    "key_version": pa.int32(),
    "record_version": pa.int32(),
    "is_tombstone": pa.bool_(),
    "group_id": pa.string(),
    "topic": pa.string(),
    "topic_id": pa.string(),
    "topic_partition": pa.int32(),
    "member_id": pa.string(),
    "transactional_id": pa.string(),
    "its_producer_id": pa.int64(),
    "its_producer_epoch": pa.int16(),
    "state": pa.string(),
    "key": pa.string(),
    "payload": pa.string(),
    "raw_key": pa.binary(),
    "raw_value": pa.binary(),
    "segment": pa.string(),
    "position": pa.int64(),
    "error": pa.string(),
}
"""The Arrow types of all columns of these sources."""


_MARKER = Key("EndTxnMarker", None, None, None, None, None, None, None, None, None)
_NO_MARKER = Key(None, None, None, None, None, None, None, None, None, None)
_OF_KEY = {
    "record_type": "record_type",
    "key_version": "version",
    "group_id": "group_id",
    "topic": "topic",
    "topic_id": "topic_id",
    "topic_partition": "partition",
    "member_id": "member_id",
    "transactional_id": "transactional_id",
    "key": "json",
}
_OF_VALUE = {"record_version": "version", "payload": "json"}
_OF_TRANSACTION: dict[str, Callable[[Any], Any]] = {
    "its_producer_id": lambda value: value.producer_id,
    "its_producer_epoch": lambda value: value.producer_epoch,
    "state": lambda value: state_name(value.transaction_status),
}


class Decoded(NamedTuple):
    """Decoded records: key, value and control type of each."""

    keys: list[Key]
    values: list[Value]
    control_types: list[str | None]

    def column(self, name: str) -> Sequence[Any]:
        if name in _OF_KEY:
            return [key[_KEY_FIELDS[name]] for key in self.keys]
        if name in _OF_VALUE:
            return [value[_VALUE_FIELDS[name]] for value in self.values]
        if name in _OF_TRANSACTION:
            take = _OF_TRANSACTION[name]
            return [None if value.message is None else take(value.message) for value in self.values]
        return self.control_types if name == "control_type" else self.errors()

    def errors(self) -> list[str | None]:
        return [key.error or value.error for key, value in zip(self.keys, self.values, strict=True)]


_KEY_FIELDS = {name: Key._fields.index(field) for name, field in _OF_KEY.items()}
_VALUE_FIELDS = {name: Value._fields.index(field) for name, field in _OF_VALUE.items()}


def decode_records(
    keys: Sequence[bytes | None],
    values: Sequence[bytes | None],
    are_control: Sequence[bool],
    log: str,
    *,
    with_json: bool = True,
) -> Decoded:
    """Decode the records of a log, one of GROUPS, TRANSACTIONS or SHARE_STATES."""
    found = Decoded([], [], [None] * len(keys))
    for number, (key, value, is_control) in enumerate(zip(keys, values, are_control, strict=True)):
        if is_control:
            marker = decode_marker(key, value)
            found.keys.append(_NO_MARKER if marker.json is None else _MARKER)
            found.values.append(Value(marker.version, None, marker.json, marker.error))
            found.control_types[number] = marker.control_type
        else:
            decoded = decode_key(key, log)
            found.keys.append(decoded)
            found.values.append(decode_value(decoded.record_type, value, with_json=with_json))
    return found


def read_rows(
    shares: Iterable[Share], schema: pa.Schema, log: str, *, fail_fast: bool = False
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of some shares."""
    has_error = ERROR in schema.names
    for share in shares:
        for read in read_share(share):
            faults: list[str] = []
            if isinstance(read.item, Records):
                for part in _parts(read.item):
                    batch, faults = rows(share.place, read.segment, part, schema.names, log)
                    _report(faults, fail_fast, has_error)
                    yield batch
            else:
                reason, is_data_bad = describe(read, share.place)
                _report([reason], fail_fast and is_data_bad, has_error)
                if has_error:
                    yield error_row(read, share.place, schema, reason)


def _report(faults: Iterable[str], fail_fast: bool, has_error: bool) -> None:
    for fault in faults:
        if fail_fast:
            raise LogReadError(fault)
        if not has_error:
            _log.warning("%s", fault)


def _parts(records: Records) -> Iterator[Records]:
    """Split records, so that neither rows nor bytes are too many; as JSON, bytes become several times as many."""
    count = min(MAX_ROWS, max(1, len(records) * (MAX_BYTES // 4) // max(records.size_in_bytes, 1)))
    for start in range(0, len(records), count):
        yield records.choose(slice(start, start + count)) if len(records) > count else records


def rows(
    place: PieceStart, segment: str, records: Records, names: Sequence[str], log: str
) -> tuple[pa.RecordBatch, list[str]]:
    """Return records as rows with these columns, and descriptions of faults."""
    attributes = records.of_batch("attributes")
    are_control = attributes & CONTROL_BIT != 0
    keys, values = records.keys(), records.values()
    constants = {
        "cluster_id": place.cluster_id,
        "node_id": place.node_id,
        "partition": place.partition,
        "segment": segment,
    }
    made: dict[str, pa.Array] = {
        "raw_key": keys,
        "raw_value": values,
        "timestamp": times(records.timestamp),
        "is_tombstone": pa.array(values.is_null().to_numpy(zero_copy_only=False) & ~are_control),
    }
    decoded = decode_records(
        keys.to_pylist(), values.to_pylist(), are_control.tolist(), log, with_json="payload" in names
    )
    for name in names:
        if name in constants:
            made[name] = pa.repeat(pa.scalar(constants[name], TYPES[name]), len(records))
        elif name in _PLAIN:
            made[name] = pa.array(_PLAIN[name](records, attributes), TYPES[name])
        elif name not in made:
            made[name] = pa.array(decoded.column(name), TYPES[name])
    positions = records.of_batch(records.batches.positions)
    faults = [
        f"{segment} at position {positions[number]}, offset {records.offset[number]}: {reason}"
        for number, reason in enumerate(decoded.errors())
        if reason is not None
    ]
    return pa.RecordBatch.from_arrays([made[name] for name in names], names=list(names)), faults


_PLAIN: dict[str, Callable[[Records, Array], Array]] = {
    "offset": lambda records, _: records.offset,
    "leader_epoch": lambda records, _: records.of_batch("partition_leader_epoch"),
    "producer_id": lambda records, _: records.of_batch("producer_id"),
    "producer_epoch": lambda records, _: records.of_batch("producer_epoch"),
    "is_transactional": lambda _, attributes: attributes & TRANSACTIONAL_BIT != 0,
    "is_control": lambda _, attributes: attributes & CONTROL_BIT != 0,
    "position": lambda records, _: records.of_batch(records.batches.positions),
}


def times(times_ms: Array) -> pa.Array:
    """Convert milliseconds to Spark's timestamps; those out of range are null."""
    unknown = (times_ms < 0) | (times_ms > _LAST_TIME_MS)
    return pa.array(np.where(unknown, 0, times_ms) * 1000, pa.int64(), mask=unknown).cast(_TIME)


LOGS = {
    GROUP_METADATA_TOPIC: GROUPS,
    TRANSACTION_STATE_TOPIC: TRANSACTIONS,
    SHARE_GROUP_STATE_TOPIC: SHARE_STATES,
}
