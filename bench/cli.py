"""The command line beside Kafka's own tools: the same question about the same node, or about the same file.

What is measured is the command as people run it, from its start to its end; what it prints is thrown away, after it was looked
at once. Kafka's tools have the flags that its own scripts give to the JVM.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tools.apache_kafka import KAFKA_JVM, VERSION, Barnabas, java_command, tool_class

from barnabas.batches import Record, build_batch
from bench import admin, big_cluster
from bench.connection import Client
from bench.table import Row, from_rounds
from bench.timing import alternating

SECTION = "cli"
PEER = f"Apache Kafka {VERSION}"
TOOL_JVM = ("-Xmx256M", *(flag for flag in KAFKA_JVM if not flag.startswith(("-Xmx", "-Xms"))))

ROUNDS, DUMP_ROUNDS = 5, 3
TOPICS = 1000
SEGMENT_RECORDS, RECORDS_PER_BATCH, RECORD = 1_000_000, 500, b"x" * 100
METADATA_PARTITIONS = 182_000  # with their topics, some 200,000 records
AT_LEAST_5 = 5.0
NOT_SLOWER = 1.0
TIMEOUT_S = 600

Command = list[str]


def run() -> list[Row]:
    return [*short_ones(), *dumps()]


def short_ones() -> list[Row]:
    with Barnabas() as node, Client(node) as client:
        for number in range(TOPICS // 200):
            admin._create(client, f"described-{number}", 200)
        admin._wait_logs(client, TOPICS * admin.PARTITIONS)  # a node that is still beginning them answers late
        questions: dict[str, tuple[Command, Command, int]] = {
            f"describe {TOPICS:,} topics of {admin.PARTITIONS} partitions": (
                _ours("topics", "describe", "-b", node.bootstrap),
                _theirs("kafka-topics", "--bootstrap-server", node.bootstrap, "--describe"),
                TOPICS * admin.PARTITIONS,
            ),
            "quorum status": (
                _ours("quorum", "status", "-b", node.bootstrap),
                _theirs("kafka-metadata-quorum", "--bootstrap-server", node.bootstrap, "describe", "--status"),
                1,
            ),
        }
        return [
            _compare(question, ours, theirs, lines, ROUNDS, AT_LEAST_5)
            for question, (ours, theirs, lines) in questions.items()
        ]


def dumps() -> list[Row]:
    with tempfile.TemporaryDirectory(prefix="bench-cli-") as folder:
        segment = Path(folder) / "00000000000000000000.log"
        _write_segment(segment)
        big_cluster.write(Path(folder) / "data", "127.0.0.1:9093", METADATA_PARTITIONS)
        metadata = Path(folder) / "data" / "__cluster_metadata-0" / "00000000000000000000.log"
        files, cluster = ("--files", str(segment)), ("--files", str(metadata))
        print_log = "--print-data-log"
        decoder = "--cluster-metadata-decoder"
        records, described = SEGMENT_RECORDS, METADATA_PARTITIONS
        return [
            _compare(question, ours, theirs, lines, DUMP_ROUNDS, NOT_SLOWER)
            for question, ours, theirs, lines in (
                (
                    f"dump a segment of {records:,} records",
                    _ours("dump", str(segment)),
                    _theirs("kafka-dump-log", *files, print_log),
                    records,
                ),
                (
                    f"kafka-dump-log of a segment of {records:,} records",
                    _ours("kafka-dump-log", *files, print_log),
                    _theirs("kafka-dump-log", *files, print_log),
                    records,
                ),
                (
                    "dump a metadata log of 200,000 records",
                    _ours("dump", str(metadata)),
                    _theirs("kafka-dump-log", *cluster, decoder),
                    described,
                ),
                (
                    "kafka-dump-log of a metadata log of 200,000 records",
                    _ours("kafka-dump-log", *cluster, decoder),
                    _theirs("kafka-dump-log", *cluster, decoder),
                    described,
                ),
            )
        ]


def _compare(question: str, ours: Command, theirs: Command, least_lines: int, rounds: int, target: float) -> Row:
    for command in (ours, theirs):
        _check(command, least_lines)
    times: tuple[list[float], list[float]] = ([], [])
    for number in range(rounds):
        for command, seen in alternating([(ours, times[0]), (theirs, times[1])], number):
            started = time.perf_counter()
            subprocess.run(command, stdout=subprocess.DEVNULL, check=True, timeout=TIMEOUT_S)
            seen.append(time.perf_counter() - started)
    return from_rounds(SECTION, question, times[0], PEER, times[1], "s", target)


def _check(command: Command, least_lines: int) -> None:
    """Whoever prints less than was asked for is not measured."""
    with tempfile.TemporaryFile() as printed:
        subprocess.run(command, stdout=printed, check=True, timeout=TIMEOUT_S)
        printed.seek(0)
        lines = sum(1 for _ in printed)
    if lines < least_lines:
        raise RuntimeError(f"{command[-6:]} printed {lines} lines of {least_lines}")


def _ours(*arguments: str) -> Command:
    return [str(Path(sys.executable).with_name("barnabas")), *arguments]


def _theirs(tool: str, *arguments: str) -> Command:
    return [*java_command(VERSION, TOOL_JVM, "tools", tool_class(tool)), *arguments]


def _write_segment(path: Path) -> None:
    with path.open("wb") as file:
        for start in range(0, SEGMENT_RECORDS, RECORDS_PER_BATCH):
            records = [Record(0, 1_700_000_000_000 + start, b"%d" % each, RECORD) for each in range(RECORDS_PER_BATCH)]
            file.write(build_batch(records, base_offset=start, partition_leader_epoch=0))
