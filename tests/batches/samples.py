"""What the tests of batches read and build: batches of Apache Kafka 4.3.1 (data/), and strategies for our own.

data/log_batches, data/metadata_batches: batches out of logs and snapshots of a cluster, with what Kafka's own tools say
of them. data/produce: records of Produce requests and what a broker answered. data/kafka_codecs: the same hundred records
(`HUNDRED_RECORDS`) written by Kafka's builder in each codec. data/kafka_validation: what Kafka's validator of the log
says of a batch, and which bytes it stores (at NOW_MS, partition t-0, from offset STORED_OFFSET in epoch STORED_EPOCH).
"""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st

from barnabas.batches import Compression, Record

NOW_MS = 1_700_000_000_000
STORED_OFFSET = 5000
STORED_EPOCH = 6

# No deadline: a busy machine is not a wrong answer.
property_settings = settings(max_examples=40, deadline=None)
many_examples = settings(max_examples=150, deadline=None)

HUNDRED_RECORDS = [
    Record(
        i,
        NOW_MS + 7 * i - i % 5 * 100,
        b"key-%d" % (i % 9) if i % 4 else None,
        b"%04d" % i * 700 if i % 11 else None,
        (("n", b"%d" % i), ("null", None)) if i % 3 == 0 else (),
    )
    for i in range(100)
]


def load(name: str) -> list[dict[str, Any]]:
    with gzip.open(Path(__file__).parent / "data" / f"{name}.jsonl.gz", "rt") as lines:
        return [json.loads(line) for line in lines]


def hex_of(data: bytes | None) -> str | None:
    return None if data is None else data.hex()


compressions = st.sampled_from(list(Compression))
fields = st.one_of(st.none(), st.binary(max_size=80), st.integers(0, 9000).map(lambda size: b"x" * size))
header_keys = st.text(st.characters(codec="utf-8"), max_size=5)
headers = st.lists(st.tuples(header_keys, st.none() | st.binary(max_size=9)), max_size=3).map(tuple)


@st.composite
def record_lists(draw: st.DrawFn, min_size: int = 1) -> list[Record]:
    """Records that count up from 0."""
    timestamps = st.integers(-1, 2**62) | st.integers(NOW_MS - 100, NOW_MS + 100)
    rows = draw(st.lists(st.tuples(timestamps, fields, fields, headers), min_size=min_size, max_size=6))
    return [Record(offset, *row) for offset, row in enumerate(rows)]
