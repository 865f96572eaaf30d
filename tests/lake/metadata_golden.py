"""The metadata logs of nodes 1, 2 and 4 of one Apache Kafka 4.3.1 cluster (voters 1, 2 and 3), and node 1's as Kafka's
own tool dumps it."""

from __future__ import annotations

import json
import lzma
import tarfile
from functools import cache
from pathlib import Path
from typing import Any

from barnabas.batches import iterate_batches
from barnabas.lake.reading.decoding.metadata_records import Values

DATA = Path(__file__).parent / "data"
NODE_1 = Path(__file__).parents[1] / "storage" / "data" / "node1.tar.gz"
CLUSTER_ID = "Z29sZC1jbHVzdGVyLTAwMQ"
COMMITTED_END = 5224
LOG_END_OF_NODE_1 = 5244

CONTROL_NAMES = {
    "LeaderChange": "LeaderChangeMessage",
    "KRaftVersion": "KRaftVersionRecord",
    "KRaftVoters": "VotersRecord",
    "SnapshotHeader": "SnapshotHeaderRecord",
    "SnapshotFooter": "SnapshotFooterRecord",
}


def unpack(directory: Path) -> dict[int, Path]:
    """The log dirs that have the metadata log, by node."""
    with tarfile.open(NODE_1) as archive:
        names = [name for name in archive.getnames() if name.startswith("node1/d0/__cluster_metadata-0")]
        for name in (*names, "node1/d0/meta.properties", "node1/d0/bootstrap.checkpoint"):
            archive.extract(name, directory, filter="data")
    with tarfile.open(DATA / "metadata_copies.tar.xz") as archive:
        archive.extractall(directory, filter="data")
    return {node: directory / f"node{node}" / "d0" for node in (1, 2, 4)}


@cache
def dumped() -> list[dict[str, Any]]:
    """Every record of node 1's segments, snapshots and bootstrap.checkpoint."""
    with lzma.open(DATA / "metadata_records.jsonl.xz", "rt") as lines:
        return [json.loads(line) for line in lines]


def name_of(record: dict[str, Any]) -> str:
    if record["control"]:
        return CONTROL_NAMES[record["control_type"]]
    return "".join(word.capitalize() for word in record["payload"]["type"].split("_"))


def data_of(record: dict[str, Any]) -> Any:
    return record["data"] if record["control"] else record["payload"]["data"]


def secrets() -> set[str]:
    """Salts and keys of SCRAM users, in base64."""
    scram = [data_of(record) for record in dumped() if name_of(record) == "UserScramCredentialRecord"]
    return {data[name] for data in scram for name in ("salt", "storedKey", "serverKey")}


def damage(path: Path, offset: int) -> tuple[int, range]:
    """Change a byte in the batch that has this offset; where that batch begins, and which offsets it has."""
    data = bytearray(path.read_bytes())
    batches = iterate_batches(bytes(data))
    position, header = next(each for each in batches if each[1].last_offset >= offset)
    data[position + 70] ^= 0xFF
    path.write_bytes(data)
    return position, range(header.base_offset, header.last_offset + 1)


def values_of(values: list[bytes]) -> Values:
    """Records without keys, one behind the other."""
    import numpy as np

    sizes = np.array([len(value) for value in values], dtype=np.int64)
    ends = np.cumsum(sizes)
    nothing = np.zeros(len(values), dtype=np.int64)
    return Values(b"".join(values), nothing, nothing - 1, ends - sizes, sizes, np.zeros(len(values), dtype=bool))
