"""The data directories of a node of Apache Kafka 4.3.1 after its stop, and what Kafka's own tools say about them.

data/node1.tar.gz: both log dirs of the node, of which d0 has the metadata log. Its settings: metadata segments of 98304 bytes,
`index.interval.bytes` 512 (4096 in the metadata log). data/metadata_batches.jsonl.gz: every batch of the metadata log and its
snapshots, with offset, timestamp, key size and value size of each record. data/log_records.jsonl.gz: every batch and record
of the other logs, keys and values in hex.
"""

from __future__ import annotations

import gzip
import json
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from barnabas.storage import LOG_START_OFFSET_CHECKPOINT, LogConfig, TopicPartition, read_offset_checkpoint

DATA = Path(__file__).parent / "data"
METADATA = "d0/__cluster_metadata-0"
METADATA_CONFIG = LogConfig(segment_bytes=98304, metadata=True)
DATA_CONFIG = LogConfig(index_interval_bytes=512)


def extract_node(directory: Path) -> Path:
    """A copy of its own, to open and to break."""
    with tarfile.open(DATA / "node1.tar.gz") as archive:
        archive.extractall(directory, filter="fully_trusted")
    return directory / "node1"


def metadata_batches() -> dict[str, list[dict[str, Any]]]:
    """What is expected of each file of the metadata log: its batches."""
    files: dict[str, list[dict[str, Any]]] = {}
    for line in _lines("metadata_batches.jsonl.gz"):
        files.setdefault(line.pop("file"), []).append(line)
    return files


def data_batches() -> dict[str, list[dict[str, Any]]]:
    """What is expected of each segment of the other logs: its batches, with their records."""
    files: dict[str, list[dict[str, Any]]] = {}
    for line in _lines("log_records.jsonl.gz"):
        file, kind = line.pop("file"), line.pop("type")
        if kind == "batch":
            files.setdefault(file, []).append(line | {"records": []})
        else:
            files[file][-1]["records"].append(line)
    return files


def log_directories(node: Path) -> list[Path]:
    return sorted(path for log_dir in ("d0", "d1") for path in (node / log_dir).iterdir() if path.is_dir())


def log_start_offset(directory: Path) -> int:
    """What the checkpoint of its log dir says of a log."""
    offsets = read_offset_checkpoint(directory.parent / LOG_START_OFFSET_CHECKPOINT)
    topic, _, partition = directory.name.rpartition("-")
    return offsets.get(TopicPartition(topic, int(partition)), 0)


def config_of(directory: Path) -> LogConfig:
    return METADATA_CONFIG if directory.name.startswith("__cluster_metadata") else DATA_CONFIG


def _lines(name: str) -> Iterator[dict[str, Any]]:
    with gzip.open(DATA / name, "rt") as file:
        for line in file:
            yield json.loads(line)
