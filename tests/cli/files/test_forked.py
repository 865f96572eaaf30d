"""A long log is shown by several processes as by one."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from barnabas.batches import Record, build_batch

SCRIPT = """
import sys
from barnabas.cli.files import log_files
from barnabas.cli.commands import dump
log_files.CHUNK_BYTES = 2000
dump.processes = lambda: int(sys.argv[1])
from barnabas.cli.main import main
main(["dump", *sys.argv[2:]])
"""


def segment(folder: Path, batches: int = 60) -> Path:
    path = folder / f"{0:020d}.log"
    data = b""
    for number in range(batches):
        records = [Record(0, 1_700_000_000_000 + each, b"%d" % each, b"v" * (each + number % 60)) for each in range(20)]
        data += build_batch(records, base_offset=number * 20, partition_leader_epoch=0)
    path.write_bytes(data)
    return path


def dumped(processes: int, *arguments: str | Path) -> tuple[int, str, str]:
    command = [sys.executable, "-c", SCRIPT, str(processes), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("format", ["table", "json", "jsonl", "yaml", "tsv"])
def test_the_text_is_the_same(tmp_path: Path, format: str) -> None:
    path = segment(tmp_path)
    alone = dumped(1, path, "--output", format)
    assert alone[0] == 0
    assert alone[1].count("v" * 40) >= 400
    for processes in (2, 3):
        assert dumped(processes, path, "--output", format) == alone


def test_damage_is_told_in_its_place(tmp_path: Path) -> None:
    path = segment(tmp_path)
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data[:-10])
    alone = dumped(1, path, "-o", "jsonl")
    assert alone[0] == 1
    assert alone[1].count('"problem"') == 2
    assert dumped(3, path, "-o", "jsonl") == alone


def test_a_reader_that_has_seen_enough_leaves_no_process_behind(tmp_path: Path) -> None:
    path = segment(tmp_path, batches=2000)
    command = [sys.executable, "-c", SCRIPT, "3", str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr is not None
        assert process.stderr.read() == b""  # comes to its end when the last process that has it is gone
        process.wait(60)
