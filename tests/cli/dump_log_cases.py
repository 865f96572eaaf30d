"""Calls of kafka-dump-log on the golden node and on damaged copies of one of its segments, relative to one directory.

data/dump_log.json.gz has what Apache Kafka 4.3.1 printed for each of them, with {directory} for that directory. Kafka's tool
cuts odd bytes off indexes: every run needs a directory of its own.
"""

from __future__ import annotations

import gzip
import json
import shutil
import struct
from pathlib import Path
from typing import Any

from tests.storage.golden import extract_node

BASE = "0" * 20
METADATA = "node1/d0/__cluster_metadata-0"
TXN = "node1/d0/d-txn-0"
NONE = "node1/d0/d-none-0"
INDEXES = "bad/{0}/{1}.index,bad/{0}/{1}.timeindex"
DAMAGES = (
    "cut",
    "flip",
    "zeros",
    "index",
    "offset",
    "time",
    "order",
    "not-found",
    "odd",
    "preallocated",
    "empty",
    "no-log",
)

CASES: dict[str, list[str]] = {
    "metadata": ["--cluster-metadata-decoder", "--files", f"{METADATA}/00000000000000004706.log"],
    "metadata without sizes": [
        *("--cluster-metadata-decoder", "--skip-record-metadata"),
        *("--files", f"{METADATA}/00000000000000004706.log"),
    ],
    "snapshots": [
        *("--cluster-metadata-decoder", "--files"),
        f"{METADATA}/00000000000000003603-0000000004.checkpoint,node1/d0/bootstrap.checkpoint",
    ],
    "offsets": ["--offsets-decoder", "--files", f"node1/d1/__consumer_offsets-1/{BASE}.log"],
    "transactions": ["--transaction-log-decoder", "--files", f"node1/d0/__transaction_state-0/{BASE}.log"],
    "share groups": ["--share-group-state-decoder", "--files", f"node1/d0/__share_group_state-1/{BASE}.log"],
    "everything of a log": [
        *("--print-data-log", "--files"),
        ",".join(f"{TXN}/{name}" for name in (f"{BASE}.log", f"{BASE}.index", f"{BASE}.timeindex", f"{BASE}.txnindex"))
        + f",{TXN}/00000000000000000018.snapshot",
    ],
    "values alone": ["--print-data-log", "--skip-record-metadata", "--files", f"{NONE}/{BASE}.log"],
    "batches": ["--files", f"node1/d0/d-gzip-0/{BASE}.log,node1/d0/d-lz4-0/{BASE}.log"],
    "a compacted log": ["--deep-iteration", "--files", f"node1/d0/d-compact-0/{BASE}.log"],
    "not all bytes": ["--max-bytes", "700", "--print-data-log", "--files", f"{NONE}/{BASE}.log"],
    "batches that are too large": ["--max-message-size", "100", "--files", f"{NONE}/{BASE}.index"],
    "other files": ["--files", f"node1/d0/meta.properties,{TXN}/leader-epoch-checkpoint,{NONE}"],
    "no such file": ["--files", f"node1/nowhere/{BASE}.log"],
    "sanity of indexes": ["--index-sanity-check", "--files", f"{TXN}/{BASE}.index,{TXN}/{BASE}.timeindex"],
    "indexes verified": ["--verify-index-only", "--files", f"{TXN}/{BASE}.index,{TXN}/{BASE}.timeindex"],
    **{f"{name}: log": ["--files", f"bad/{name}/{BASE}.log"] for name in ("cut", "flip", "zeros")},
    **{f"{name}: indexes": ["--files", INDEXES.format(name, BASE)] for name in DAMAGES},
    **{f"{name}: sane?": ["--index-sanity-check", "--files", INDEXES.format(name, BASE)] for name in DAMAGES},
}


def prepare(directory: Path) -> None:
    """The golden node and its damaged segments, below a directory."""
    node = extract_node(directory)
    for name in DAMAGES:
        bad = directory / "bad" / name
        bad.mkdir(parents=True)
        for suffix in (".log", ".index", ".timeindex"):
            shutil.copy(node / "d0" / "d-none-0" / f"{BASE}{suffix}", bad)
        _damage(name, *(bad / f"{BASE}{suffix}" for suffix in (".log", ".index", ".timeindex")))


def _damage(name: str, log: Path, index: Path, times: Path) -> None:
    data = bytearray(log.read_bytes())
    if name == "cut":
        log.write_bytes(data[:-17])
    elif name == "flip":
        data[300] ^= 1
        log.write_bytes(data)
    elif name == "zeros":
        log.write_bytes(data + bytes(100))
    elif name == "index":
        index.write_bytes(struct.pack(">iiii", 19, 572, 29, 1597))
    elif name == "offset":
        index.write_bytes(struct.pack(">iiii", 17, 573, 29, 1597))
    elif name == "time":
        times.write_bytes(struct.pack(">qiqi", 1700000038001, 19, 1700000058000, 29))
    elif name == "order":
        times.write_bytes(struct.pack(">qiqi", 1700000038000, 19, 1700000018000, 29))
    elif name == "not-found":
        times.write_bytes(struct.pack(">qiqiqi", 1700000038000, 15, 1700000058000, 29, 1700000068000, 49))
    elif name == "odd":
        index.write_bytes(index.read_bytes() + b"abc")
    elif name == "preallocated":
        index.write_bytes(index.read_bytes() + bytes(80))
        times.write_bytes(times.read_bytes() + bytes(120))
    elif name == "empty":
        index.write_bytes(b"")
        times.write_bytes(b"")
    else:
        log.unlink()


def expected() -> dict[str, dict[str, Any]]:
    """What Kafka printed: `out`, `err` and `code` by case."""
    path = Path(__file__).parent / "data" / "dump_log.json.gz"
    found: dict[str, dict[str, Any]] = json.loads(gzip.decompress(path.read_bytes()))
    return found


def essence(text: str) -> list[str]:
    """What Kafka's tool says on the standard error, in any order, without the frames of its tracebacks."""
    return sorted(
        line for line in text.splitlines() if not line.startswith(("\tat ", "Exception in thread", "Error: "))
    )
