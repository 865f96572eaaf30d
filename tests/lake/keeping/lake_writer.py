"""Writes three batches into lakes without Spark, as a run would, and is killed after each step of the commits.

Run as a process of its own, with a directory or an address: in its folder N is a lake whose writer was killed after its step N,
until there are no more steps. With a stride, only every so many steps. Prints how many steps there were.
A part is a directory with one Parquet file of numbers. Each batch adds its number to `added` and replaces `present`.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import pyarrow as pa

from barnabas.lake.keeping.folders import Folder, read_table, write_table
from barnabas.lake.keeping.manifest import BatchDone, Manifest, StreamState, TableChange
from barnabas.lake.keeping.store import Lake, Writer

STREAM = "cluster/numbers"
COLUMNS = {"number": "bigint"}


def write_part(writer: Writer, table: str, numbers: list[int]) -> str:
    part = writer.stage(table)
    table = pa.table({"number": pa.array(numbers, pa.int64())})
    write_table(writer.data, f"{part}/ended=true/numbers.parquet", table)
    return f"{part}/ended=true"


def write_batch(writer: Writer, batch_id: int, stream: str = STREAM) -> None:
    before = writer.manifest.streams.get(stream)
    if before is not None and batch_id <= before.batch_id:
        return
    added = write_part(writer, "bronze/added", [batch_id])
    present = write_part(writer, "silver/present", [batch_id, batch_id + 1])
    facts = write_part(writer, "state/numbers", [batch_id])
    writer.on_step("staged")
    tables = {
        "bronze/added": TableChange(COLUMNS, (added,)),
        "silver/present": TableChange(COLUMNS, (), (present,)),
    }
    state = StreamState(batch_id, "query", (before.rows if before else 0) + 1, (facts,))
    writer.commit(BatchDone(stream, state, tables))


def compact(writer: Writer) -> None:
    parts = writer.manifest.tables["bronze/added"].lasting
    if len(parts) > 2:
        merged = write_part(writer, "bronze/added", numbers(writer.data, parts))
        writer.commit_compaction("bronze/added", parts, (merged,))


def numbers(data: Folder, parts: tuple[str, ...]) -> list[int]:
    files = (read_table(data, f"{part}/numbers.parquet") for part in parts)
    return sorted(number for file in files for number in file.column("number").to_pylist())


def rows(lake: Lake, manifest: Manifest) -> dict[str, list[int]]:
    return {path: numbers(lake.data, table.parts) for path, table in manifest.tables.items()}


def directory_of(folder: Folder) -> Path:
    """The directory of a folder on this disk."""
    assert folder.is_local
    return Path(str(folder))


def write(place: Path | str, kill_after: int = -1) -> int:
    """All of it; how many steps it took."""
    steps = 0

    def on_step(name: str) -> None:
        nonlocal steps
        if steps == kill_after:
            os.kill(os.getpid(), signal.SIGKILL)
        steps += 1

    with Writer(place, on_step=on_step, grace_s=0, lease_s=0.2) as writer:
        writer.open()
        for batch_id in range(3):
            write_batch(writer, batch_id)
        compact(writer)
        writer.sweep()
    return steps


def main(place: str, stride: int = 1) -> None:
    for step in range(0, 1000, stride):
        writer = os.fork()
        if writer == 0:
            write(f"{place}/{step}", step)
            os._exit(0)
        if os.WIFEXITED(os.waitpid(writer, 0)[1]):
            print(step)
            return


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
