"""Kafka's checkpoint files: a version, a count, and one line per entry. Written atomically, read strictly.

Its one rule: a missing or empty file means no entries, as Kafka or a power failure leaves it. Any other deviation is an
error that names the line, because a guessed checkpoint is worse than a missing one.

These are the files of a log dir with one offset per partition, and the `leader-epoch-checkpoint` of each log.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from barnabas.storage.errors import StorageError
from barnabas.storage.files import read_whole, write_atomically, write_whole

RECOVERY_POINT_CHECKPOINT = "recovery-point-offset-checkpoint"
LOG_START_OFFSET_CHECKPOINT = "log-start-offset-checkpoint"
HIGH_WATERMARK_CHECKPOINT = "replication-offset-checkpoint"
CLEANER_OFFSET_CHECKPOINT = "cleaner-offset-checkpoint"
LEADER_EPOCH_CHECKPOINT = "leader-epoch-checkpoint"

_VERSION = 0


class TopicPartition(NamedTuple):
    """A topic and a partition number."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


class EpochEntry(NamedTuple):
    """A leader epoch and the first offset that was written in it."""

    epoch: int
    start_offset: int


class DamagedCheckpointError(StorageError):
    """A checkpoint file that cannot be read. `fault` is the message without the advice."""

    def __init__(self, path: Path, fault: str) -> None:
        self.fault = f"{path} {fault}"
        super().__init__(f"{self.fault}; if the file cannot be repaired, delete it")


def read_offset_checkpoint(path: Path) -> dict[TopicPartition, int]:
    """Read a file with one offset per partition."""
    offsets = {}
    for number, line in _read_lines(path):
        match line.split():
            case [topic, partition, offset]:
                offsets[TopicPartition(topic, _number(path, number, partition))] = _number(path, number, offset)
            case _:
                raise _malformed(path, number, line)
    return offsets


def write_offset_checkpoint(path: Path, offsets: Mapping[TopicPartition, int]) -> None:
    _write_lines(path, [f"{topic} {partition} {offset}" for (topic, partition), offset in offsets.items()])


def read_epoch_checkpoint(path: Path) -> list[EpochEntry]:
    """Read the leader epochs of a log, in the order of the file."""
    entries = []
    for number, line in _read_lines(path):
        match line.split():
            case [epoch, start_offset]:
                entry = EpochEntry(_number(path, number, epoch), _number(path, number, start_offset))
                if min(entry) < 0:
                    raise _malformed(path, number, line)
                entries.append(entry)
            case _:
                raise _malformed(path, number, line)
    return entries


def write_epoch_checkpoint(path: Path | str, entries: Iterable[EpochEntry], *, durable: bool = True) -> None:
    _write_lines(path, [f"{entry.epoch} {entry.start_offset}" for entry in entries], durable=durable)


def _read_lines(path: Path) -> list[tuple[int, str]]:
    """Return the lines of the entries, each with its line number."""
    content = read_whole(path)
    try:
        lines = (content or b"").strip(b"\0").decode().splitlines()
    except UnicodeDecodeError:
        raise DamagedCheckpointError(path, "is not a checkpoint file: it is not text") from None
    if len(lines) < 2:
        if lines:
            _check_version(path, lines[0])
        return []
    _check_version(path, lines[0])
    count = _number(path, 2, lines[1])
    if count != len(lines) - 2:
        raise DamagedCheckpointError(path, f"should have {count} entries, but has {len(lines) - 2}")
    return list(enumerate(lines[2:], 3))


def _check_version(path: Path, line: str) -> None:
    version = _number(path, 1, line)
    if version != _VERSION:
        raise DamagedCheckpointError(path, f"has version {version}; only version {_VERSION} is supported")


def _write_lines(path: Path | str, lines: list[str], *, durable: bool = True) -> None:
    write = write_atomically if durable else write_whole
    write(path, "".join(f"{line}\n" for line in (_VERSION, len(lines), *lines)).encode())


def _number(path: Path, number: int, text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise _malformed(path, number, text) from None


def _malformed(path: Path, number: int, line: str) -> DamagedCheckpointError:
    return DamagedCheckpointError(path, f"has a malformed line {number}: {line!r}")
