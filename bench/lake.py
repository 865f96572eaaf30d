"""Spark over Kafka's files: `kafka_log` beside Spark's own Kafka connector, and what is below it and behind it.

Both read the same records of one node of Apache Kafka, with as many cores: the connector asks the node, `kafka_log` reads
its log dir. Sessions have started before, and the files are in the page cache; the first question to a session, in which Spark
and Python load and compile, is a row of its own. BENCH_LAKE_RECORDS, BENCH_LAKE_METADATA_RECORDS and BENCH_LAKE_HISTORIES set
the sizes.
"""

from __future__ import annotations

import base64
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from importlib.metadata import version as installed
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
from aiokafka.record.memory_records import MemoryRecords
from pyspark.sql.types import (
    BinaryType,
    BooleanType,
    DataType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)
from tools import spark_connector
from tools.apache_kafka import KAFKA_JVM, VERSION, ApacheKafka, java_command, tool_class

from barnabas.batches import Compression, Record, build_batch
from barnabas.lake.reading import batch_arrays
from barnabas.lake.sources.metadata import COLUMNS as METADATA_COLUMNS
from barnabas.lake.sources.metadata import KafkaMetadata
from barnabas.lake.spark.session import SETTINGS
from bench import metadata_history
from bench.cli import TOOL_JVM
from bench.spark_session import PeakMemory, Session
from bench.table import Row, from_rounds
from bench.timing import alternating, in_turns

SECTION = "lake"
RECORDS = int(os.environ.get("BENCH_LAKE_RECORDS", "5_000_000"))
METADATA_RECORDS = int(os.environ.get("BENCH_LAKE_METADATA_RECORDS", "200_000"))
HISTORIES = [int(each) for each in os.environ.get("BENCH_LAKE_HISTORIES", "1_000_000,2_000_000,5_000_000").split(",")]
RECORD_SIZE = 100
TOPIC, PARTITIONS = "records", 4
CORES = 2
ROUNDS = 5
COUNT_TARGET, PARQUET_TARGET, DECODE_TARGET, METADATA_TARGET = 3.0, 2.0, 3.0, 10.0
SEGMENT_RECORDS, RECORDS_PER_BATCH = 150_000, 150
NAMES = ["offset", "timestamp", "key", "value"]
TIMEOUT_S = 600

_TYPES: dict[str, type[DataType]] = {
    "string": StringType,
    "int": IntegerType,
    "bigint": LongType,
    "boolean": BooleanType,
    "binary": BinaryType,
    "timestamp": TimestampType,
}

# The columns of Spark's own source. It prunes none, and Spark none of ours, so that both make all of them.
COLUMNS = "key binary, value binary, topic string, partition int, offset long, timestamp timestamp, timestampType int"
OF_BOTH = {
    **SETTINGS,
    "spark.master": f"local[{CORES}]",
    "spark.driver.memory": "2g",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.log.level": "ERROR",
}

Ask = Callable[[str], float]
"""Where the rows are to go (`count`, or a path); rows a second."""


def run() -> list[Row]:
    return [*beside_the_connector(), *decoding(), *metadata_decoding(), *silver()]


# --- Spark


def beside_the_connector() -> list[Row]:
    python, jars = spark_connector.python_with_spark(), spark_connector.connector_jars()
    with tempfile.TemporaryDirectory(prefix="bench-lake-") as name, ApacheKafka(jvm=KAFKA_JVM) as node:
        folder = Path(name)
        _produce(node)
        with (
            Session(Path(sys.executable), OF_BOTH, folder / "ours.log") as ours,
            Session(python, {**OF_BOTH, "spark.jars": jars}, folder / "theirs.log") as theirs,
        ):
            files = {"path": node.properties["log.dirs"], "topics": TOPIC}
            network = {"kafka.bootstrap.servers": node.bootstrap, "subscribe": TOPIC, "startingOffsets": "earliest"}
            shape = {"rows": RECORDS, "value_size": RECORD_SIZE, "tasks": PARTITIONS}
            return _race(
                f"kafka_log in pyspark {ours.said['spark']}",
                f"spark-sql-kafka {theirs.said['spark']}",
                _asker(ours, format="kafka_log", options=files, schema=COLUMNS),
                _asker(theirs, format="kafka", options=network, schema=None),
                _asker(ours, format="kafka_log", options=files, schema="offset long"),
                _asker(ours, format="range", **shape),
                folder,
            )


def _race(our_name: str, peer: str, ours: Ask, theirs: Ask, narrow: Ask, ceiling: Ask, folder: Path) -> list[Row]:
    what = f"{RECORDS:,} records of {RECORD_SIZE} B, {CORES} cores"
    rows = []
    for sink, target in (("count", COUNT_TARGET), ("parquet", PARQUET_TARGET)):
        contestants = [("ours", ours), ("theirs", theirs)]
        contestants.append(("narrow", narrow) if sink == "count" else ("ceiling", ceiling))
        seen: dict[str, list[float]] = {name: [] for name, _ in contestants}
        for number in range(ROUNDS + 1):
            for name, ask in alternating(contestants, number):
                seen[name].append(ask("count" if sink == "count" else str(folder / f"{name}.parquet")))
        first, later = ({name: each[part] for name, each in seen.items()} for part in (slice(1), slice(1, None)))
        title = f"{sink} of {what}, {our_name}"
        of_first = "the session's first query" if sink == "count" else "the first to Parquet"
        numbers: list[tuple[str, dict[str, list[float]], float | None]] = [(title, later, target)]
        numbers.append((f"{title}, {of_first}", first, None))
        for question, each, wanted in numbers:
            pair = (each["ours"], peer, each["theirs"])
            rows.append(from_rounds(SECTION, question, *pair, "rows/s", wanted, more_is_better=True))
        if sink == "count":
            pair = (later["narrow"], peer, later["theirs"])
            question = f"{title}, of which only the offset is asked for"
            rows.append(from_rounds(SECTION, question, *pair, "rows/s", target, more_is_better=True))
        else:
            pair = (later["ours"], "spark.range of the same shape", later["ceiling"])
            rows.append(from_rounds(SECTION, title, *pair, "rows/s", None, more_is_better=True))
    return rows


def _asker(session: Session, **question: Any) -> Ask:
    def ask(to: str) -> float:
        answer = session.ask(to=to, **question)
        if answer["rows"] != RECORDS:
            raise RuntimeError(f"{question['format']} has {answer['rows']:,} of {RECORDS:,} rows")
        return RECORDS / float(answer["seconds"])

    return ask


def _produce(node: ApacheKafka) -> None:
    """With Kafka's own tool and its defaults: no key, random letters, batches of 16 kB, not compressed."""
    steps = (
        ("kafka-topics", ("--create", "--topic", TOPIC, "--partitions", str(PARTITIONS))),
        ("kafka-producer-perf-test", ("--topic", TOPIC, "--num-records", str(RECORDS))),
    )
    sizes = ("--record-size", str(RECORD_SIZE), "--throughput", "-1")
    for tool, arguments in steps:
        more = sizes if tool == "kafka-producer-perf-test" else ()
        done = node.tool(tool, *arguments, *more, timeout_s=TIMEOUT_S)
        if done.returncode != 0:
            raise RuntimeError(f"{tool}: {done.stdout[-500:]}{done.stderr[-1000:]}")


# --- bare decoding


def decoding() -> list[Row]:
    """A segment in memory into Arrow, on one core, its checksums checked."""
    rows = []
    peer = f"aiokafka {installed('aiokafka')}"
    for compression in (Compression.NONE, Compression.LZ4, Compression.ZSTD):
        segment = _segment(compression)
        ours, theirs = _arrow_of_barnabas(segment), _arrow_of_aiokafka(segment)
        if not ours.equals(theirs) or ours.num_rows != SEGMENT_RECORDS:
            raise RuntimeError(f"{peer} reads {compression.name} otherwise")
        functions = {"ours": partial(_arrow_of_barnabas, segment), "theirs": partial(_arrow_of_aiokafka, segment)}
        seen = {name: [SEGMENT_RECORDS / each for each in times] for name, times in in_turns(functions).items()}
        kind = "not compressed" if compression is Compression.NONE else compression.name.lower()
        question = f"decode records of {RECORD_SIZE} B into Arrow, one core, {kind}"
        target = DECODE_TARGET if compression is Compression.NONE else None
        pair = (seen["ours"], peer, seen["theirs"])
        rows.append(from_rounds(SECTION, question, *pair, "records/s", target, more_is_better=True))
    return rows


def _segment(compression: Compression) -> bytes:
    """Keys, and values of letters, in batches of some 16 kB, as a producer makes them by default."""
    source = random.Random(1)
    batches = []
    for base in range(0, SEGMENT_RECORDS, RECORDS_PER_BATCH):
        letters = [base64.b64encode(source.randbytes(RECORD_SIZE * 3 // 4)) for _ in range(RECORDS_PER_BATCH)]
        records = [
            Record(0, 1_700_000_000_000 + base + at, b"%012d" % (base + at), value) for at, value in enumerate(letters)
        ]
        batches.append(build_batch(records, base_offset=base, partition_leader_epoch=0, compression=compression))
    return b"".join(batches)


def _arrow_of_barnabas(segment: bytes) -> pa.Table:
    parts = []
    for part in batch_arrays.read_batches(memoryview(segment)):
        assert isinstance(part, batch_arrays.Records), part
        parts.append(
            pa.record_batch([pa.array(part.offset), pa.array(part.timestamp), part.keys(), part.values()], NAMES)
        )
    return pa.Table.from_batches(parts)


def _arrow_of_aiokafka(segment: bytes) -> pa.Table:
    reader = MemoryRecords(segment)
    found: list[tuple[int, int, bytes, bytes]] = []
    while reader.has_next():
        batch = reader.next_batch()
        assert batch.validate_crc()
        found += [(each.offset, each.timestamp, each.key, each.value) for each in batch]
    types = (pa.int64(), pa.int64(), pa.binary(), pa.binary())
    arrays = [pa.array(each, its_type) for each, its_type in zip(zip(*found, strict=True), types, strict=True)]
    return pa.Table.from_batches([pa.record_batch(arrays, NAMES)])


def metadata_decoding() -> list[Row]:
    """A metadata log into the rows of `kafka_metadata`, all columns, on one core, beside the tool that prints its records."""
    with tempfile.TemporaryDirectory(prefix="bench-lake-") as name:
        long, short = Path(name) / "long", Path(name) / "short"
        metadata_history.write(long, METADATA_RECORDS)
        metadata_history.write(short, 1)
        seen: dict[str, list[float]] = {"ours": [], "theirs": [], "start": []}
        sides: list[tuple[str, Callable[[], object]]] = [
            ("ours", partial(_metadata_rows, long)),
            ("theirs", partial(_dump, long)),
            ("start", partial(_dump, short)),
        ]
        for number in range(ROUNDS + 1):
            for side, function in alternating(sides, number):
                started = time.perf_counter()
                function()
                seen[side].append(time.perf_counter() - started)
    ours, theirs, start = ([METADATA_RECORDS / each for each in seen[side][1:]] for side in ("ours", "theirs", "start"))
    without_start = [1 / (1 / whole - 1 / empty) for whole, empty in zip(theirs, start, strict=True)]
    question = f"a metadata log of {METADATA_RECORDS:,} records into Arrow, JSON and keys, one core"
    tool = f"kafka-dump-log {VERSION}"
    pairs = ((tool, theirs, METADATA_TARGET), (f"{tool} less its start", without_start, None))
    return [
        from_rounds(SECTION, question, ours, peer, its, "records/s", target, more_is_better=True)
        for peer, its, target in pairs
    ]


def _metadata_rows(log_dir: Path) -> None:
    """As a worker of Spark does it."""
    schema = StructType([StructField(column.name, _TYPES[column.type]()) for column in METADATA_COLUMNS])
    reader = KafkaMetadata({"path": str(log_dir)}).reader(schema)
    rows = 0
    for partition in reader.partitions():
        for batch in reader.read(partition):
            assert isinstance(batch, pa.RecordBatch)
            rows += batch.num_rows
    if rows < METADATA_RECORDS:
        raise RuntimeError(f"kafka_metadata has {rows:,} of {METADATA_RECORDS:,} rows")


def _dump(log_dir: Path) -> None:
    segment = log_dir / "__cluster_metadata-0" / f"{0:020}.log"
    command = [*java_command(VERSION, TOOL_JVM, "tools", tool_class("kafka-dump-log")), "--files", str(segment)]
    subprocess.run([*command, "--cluster-metadata-decoder"], stdout=subprocess.DEVNULL, check=True, timeout=TIMEOUT_S)


# --- silver


def silver() -> list[Row]:
    """Metadata logs of several lengths into a lake: a session of its own for each, started before; nothing is there before."""
    with tempfile.TemporaryDirectory(prefix="bench-lake-") as name:
        folder = Path(name)
        grown: dict[tuple[int, int], Grown] = {}
        for records in HISTORIES:
            metadata_history.write(folder / "log", records)
            for cores in (1, CORES) if records == HISTORIES[0] else (CORES,):
                grown[records, cores] = _grow(folder, cores)
            shutil.rmtree(folder / "log")
    least, most = HISTORIES[0], HISTORIES[-1]
    rows = []
    for (records, cores), each in grown.items():
        what = f"a metadata log of {records:,} records to silver, {cores} core{'s' * (cores > 1)}"
        if (records, cores) == (least, CORES):
            one = grown[least, 1].rate
            rows.append(_stated(what, each.rate, "records/s", "barnabas on 1 core", one, each.rate / one))
        else:
            rows.append(_stated(what, each.rate, "records/s"))
        rows.append(_stated(f"{what}, most memory, Spark and workers", each.peak_mb, "MB"))
    cost, at_first = (1e6 / grown[records, CORES].rate for records in (most, least))
    what = f"a metadata log to silver, cost of a record of {most:,}, {CORES} cores"
    rows.append(_stated(what, cost, "us", f"barnabas at {least:,}", at_first, at_first / cost))
    return rows


def _stated(
    question: str, ours: float, unit: str, peer: str = "-", theirs: float | None = None, ratio: float | None = None
) -> Row:
    return Row(SECTION, question, ours, peer, theirs, unit, ratio, None, None, None)


class Grown(NamedTuple):
    rate: float
    peak_mb: float


def _grow(folder: Path, cores: int) -> Grown:
    settings = {**OF_BOTH, "spark.master": f"local[{cores}]"}
    with Session(Path(sys.executable), settings, folder / "silver.log") as session, PeakMemory(session.pid) as peak:
        answer = session.ask(log_dir=str(folder / "log"), lake=str(folder / "lake"))
    shutil.rmtree(folder / "lake")
    print(f"silver on {cores}: {answer}, {peak.bytes / 1e6:.0f} MB", file=sys.stderr, flush=True)
    return Grown(answer["rows"] / answer["seconds"], peak.bytes / 1e6)
