"""The metadata log and snapshots of a cluster of Apache Kafka 4.3.1, as it left them on disk, and what it showed."""

from __future__ import annotations

import gzip
import json
import tarfile
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from barnabas import wire
from barnabas.batches.control import ControlType, decode_control_key
from barnabas.batches.reader import decode_records, iterate_batches
from barnabas.metadata.image import Provenance
from barnabas.metadata.loader import MetadataBatch
from barnabas.wire.message import Message
from barnabas.wire.records.control import SnapshotHeaderRecord

DATA = Path(__file__).parent / "data"


class Snapshot(NamedTuple):
    provenance: Provenance
    records: list[tuple[Message, int]]


@cache
def files() -> dict[str, bytes]:
    with tarfile.open(DATA / "cluster_metadata.tar.gz") as tar:
        return {member.name: tar.extractfile(member).read() for member in tar}  # type: ignore[union-attr]


@cache
def log() -> list[MetadataBatch]:
    """Every batch from offset 0 on; control batches have no records."""
    batches = []
    for name in sorted(name for name in files() if name.endswith(".log")):
        data = files()[name]
        for position, header in iterate_batches(data):
            records = []
            if not header.is_control:
                records = [wire.decode_record(record.value or b"").record for record in decode_records(data, position)]
            batches.append(
                MetadataBatch(
                    header.base_offset,
                    header.last_offset,
                    header.partition_leader_epoch,
                    header.max_timestamp,
                    records,
                )
            )
    return batches


@cache
def snapshots() -> list[Snapshot]:
    """The snapshots that hold metadata, oldest first."""
    found = []
    for name in sorted(name for name in files() if name.endswith(".checkpoint")):
        end_offset, epoch = map(int, name.removesuffix(".checkpoint").split("-"))
        data, records, timestamp_ms = files()[name], [], -1
        for position, header in iterate_batches(data):
            for record in decode_records(data, position):
                if not header.is_control:
                    records.append(tuple(wire.decode_record(record.value or b"")))
                elif decode_control_key(record.key) == ControlType.SNAPSHOT_HEADER:
                    snapshot_header = wire.decode_record(record.value or b"", SnapshotHeaderRecord).record
                    timestamp_ms = snapshot_header.last_contained_log_timestamp
        if records:
            found.append(Snapshot(Provenance(end_offset - 1, epoch, timestamp_ms), records))
    return found


@cache
def expected() -> Any:
    return json.loads(gzip.decompress((DATA / "expected.json.gz").read_bytes()))
