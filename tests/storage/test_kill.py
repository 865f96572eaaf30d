"""A process that is killed while it appends: what it said it has, is there."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from barnabas.batches import decode_records
from barnabas.storage import Log, LogConfig
from barnabas.storage.offline import OfflineBatch, check_indexes, read_batches
from tests.storage.made import open_log
from tests.storage.producing_child import CONFIG as PRODUCING_CONFIG

ROOT = Path(__file__).parents[2]
CHILD = "tests.storage.appending_child"
PRODUCING_CHILD = "tests.storage.producing_child"


def run_and_kill(directory: Path, kind: str, flush_every: int, seed: int, after_s: float) -> tuple[int, int]:
    """The last end and flushed end that the child told before it was killed."""
    return kill(after_s, CHILD, str(directory), kind, str(flush_every), str(seed))


def kill(after_s: float, *arguments: str) -> tuple[int, int]:
    with subprocess.Popen(
        [sys.executable, "-m", *arguments],
        stdout=subprocess.PIPE,
        cwd=ROOT,
    ) as child:
        assert child.stdout is not None
        said = child.stdout.readline()  # it is up
        time.sleep(after_s)
        child.kill()
        said += child.stdout.read()
    lines = said.decode().splitlines(keepends=True)
    told = [line.split() for line in lines if line.endswith("\n")]
    return int(told[-1][0]), int(told[-1][1])


def check(log: Log, end: int) -> None:
    """Every record that was acknowledged is there and is what was sent, and the log has no hole."""
    offset = 0
    for header, data in log.batches():
        assert header.base_offset == offset
        for record in decode_records(data, 0, header):
            assert record.value is not None
            assert record.value.split(b":")[0] == b"%d" % record.offset
        offset = header.next_offset
    assert offset == log.log_end_offset >= end
    assert not [found for segment in log.segments for found in check_indexes(log.directory, segment.base_offset)]
    epochs = [header.partition_leader_epoch for header, _ in log.batches()]
    assert [entry.epoch for entry in log.epochs.entries] == sorted(set(epochs))


@pytest.mark.parametrize(("kind", "flush_every"), [("data", 0), ("data", 7), ("metadata", 1)])
def test_what_was_acknowledged_survives_kills(tmp_path: Path, kind: str, flush_every: int) -> None:
    chance = random.Random(flush_every)
    config = LogConfig(segment_bytes=3000, index_interval_bytes=200, metadata=kind == "metadata")
    for seed in range(4):
        end, flushed = run_and_kill(tmp_path / "log", kind, flush_every, seed, chance.uniform(0.005, 0.15))
        log = open_log(tmp_path / "log", config, recovery_point=flushed if flush_every else 0)
        check(log, end)
        log.abandon()


def test_what_was_flushed_survives_the_loss_of_everything_else(tmp_path: Path) -> None:
    config = LogConfig(segment_bytes=3000, index_interval_bytes=200)
    end, flushed = run_and_kill(tmp_path / "log", "data", 5, 1, 0.1)
    assert 0 < flushed <= end
    # The worst that a power cut may do: nothing that was not flushed is whole.
    for path in sorted((tmp_path / "log").glob("*.log")):
        offsets = [int(other.stem) for other in (tmp_path / "log").glob("*.log")]
        following = min((offset for offset in offsets if offset > int(path.stem)), default=None)
        if following is None or following > flushed:
            with path.open("r+b") as file:
                file.truncate(_flushed_bytes(path, flushed))
                file.seek(0, 2)
                file.write(b"\0" * 500)
            for suffix in (".index", ".timeindex"):
                path.with_suffix(suffix).write_bytes(b"\xee" * 36)
    log = open_log(tmp_path / "log", config, recovery_point=flushed)
    check(log, flushed)
    assert log.log_end_offset == flushed


def _flushed_bytes(path: Path, flushed: int) -> int:
    size = 0
    for item in read_batches(path):
        if isinstance(item, OfflineBatch) and item.header.last_offset < flushed:
            size = item.position + item.header.size_in_bytes
    return size


@pytest.mark.parametrize("flush_every", [0, 7])
def test_what_is_known_of_producers_survives_kills(tmp_path: Path, flush_every: int) -> None:
    chance = random.Random(flush_every)
    directory = tmp_path / "log"
    for seed in range(4):
        arguments = (PRODUCING_CHILD, str(directory), str(flush_every), str(seed))
        end, flushed = kill(chance.uniform(0.005, 0.15), *arguments)
        log = open_log(directory, PRODUCING_CONFIG, recovery_point=flushed if flush_every else 0)
        assert log.log_end_offset >= end
        check_sequences(log)
        check_producers(log, tmp_path / f"again-{seed}")
        log.abandon()


def check_sequences(log: Log) -> None:
    """Of each producer, every record is there once."""
    sequences: dict[bytes, int] = {}
    for header, data in log.batches():
        if not header.is_control:
            for record in decode_records(data, 0, header):
                assert record.value is not None
                producer_id, sequence = record.value.split(b":")
                assert sequences.get(producer_id, -1) + 1 == int(sequence)
                sequences[producer_id] = int(sequence)


def check_producers(log: Log, directory: Path) -> None:
    """Producers and aborted transactions are those of a log that has the same batches and was never stopped."""
    other = open_log(directory, PRODUCING_CONFIG)
    for _, data in log.batches():
        other.append_as_follower(data)
    expected = {state.producer_id: state for state in other.active_producers()}
    assert {state.producer_id for state in log.active_producers()} == set(expected)
    for state in log.active_producers():
        whole = expected[state.producer_id]
        assert state == whole._replace(batches=whole.batches[len(whole.batches) - len(state.batches) :])
        assert bool(state.batches) == bool(whole.batches)
    end = log.log_end_offset
    assert log.aborted_transactions(0, end) == other.aborted_transactions(0, end)
    assert log.last_stable_offset(end) == other.last_stable_offset(end)
    other.abandon()
