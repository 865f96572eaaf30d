"""A data directory, the ways to damage one of its files, and what is expected of a node on each of them."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import NamedTuple

import pytest

from barnabas.batches import iterate_batches
from barnabas.client import Producer
from barnabas.testing import AsyncBroker

RECORDS = 20
FIRST = "00000000000000000000"
METADATA = "__cluster_metadata-0"
CONFIG = {"offsets.topic.num.partitions": 1, "log.initial.task.delay.ms": 600_000}


class Outcome(NamedTuple):
    """What is expected of a node. `{path}` and `{data}` stand for the damaged file and the log dir."""

    refused: str | None = None  # a part of the message if the node does not start
    failed: str | None = None  # a part of the message if the node stops when the topic is read
    records: int = RECORDS  # records of the topic otherwise
    warnings: tuple[str, ...] = ()  # a part of each warning


# --- the directory


async def fill(data: Path) -> None:
    async with AsyncBroker({"t": 1}, data_dir=data, config=CONFIG) as broker:
        async with Producer({"bootstrap.servers": broker.bootstrap_servers}) as producer:
            for number in range(RECORDS):
                await producer.send("t", b"value %d" % number, partition=0)
                if number % 5 == 4:
                    await producer.flush()
        node = broker._running()
        await node.quorum.snapshot()
        await broker.create_topic("late")
    for name in ("cleaner-offset-checkpoint", "log-start-offset-checkpoint"):
        (data / name).write_text("0\n1\nt 0 0\n")


# --- damages


def _empty(path: Path) -> None:
    os.truncate(path, 0)


def _truncated(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def _random(path: Path) -> None:
    path.write_bytes(Random(path.name).randbytes(path.stat().st_size))


def _flipped(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 0x80  # in text, this is never a valid character
    path.write_bytes(content)


def _cut_at_a_batch(path: Path) -> None:
    content = path.read_bytes()
    *_, (start, _header) = iterate_batches(content)
    os.truncate(path, start)


def _missing(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink()


def _directory(path: Path) -> None:
    path.unlink()
    path.mkdir()


def _unreadable(path: Path) -> None:
    path.chmod(0)


ANY = (_empty, _truncated, _random, _flipped, _missing, _directory, _unreadable)
DAMAGES: dict[str, Callable[[Path], None]] = {each.__name__[1:]: each for each in ANY}
SPECIAL = {"cut_at_a_batch": _cut_at_a_batch}


# --- what is expected of each


SERVES = Outcome()
REFUSES = Outcome(refused="{path}")
FAILS = Outcome(failed="{path}")  # the log is opened when it is first used
NOT_A_FILE = {"directory": REFUSES, "unreadable": REFUSES}
NEVER_DAMAGED = dict.fromkeys(DAMAGES, REFUSES) | {"missing": SERVES}
MAY_BE_EMPTY = NEVER_DAMAGED | {"empty": SERVES}
REBUILT = dict.fromkeys(DAMAGES, SERVES) | {"directory": FAILS, "unreadable": FAILS}
"""Files of a partition that are rebuilt, with a warning if a reader could miss something."""


def lost(end_offset: int, *more: str) -> Outcome:
    loss = f"t-0: log end offset {end_offset} is below the recovery point {RECORDS} that was checkpointed at the clean "
    return Outcome(records=end_offset, warnings=(*more, f"{loss}shutdown: records were lost"))


def rebuilt(*names: str, warning: str) -> dict[str, Outcome]:
    return {each: Outcome(warnings=(warning,)) for each in names}


NOT_CLOSED = Outcome(warnings=("is now offline: opening {path} failed",))  # an index is opened when it is first used
BEHIND = "ends at offset {}, before its snapshot"
STRAY = ("late-0 is not a replica of this broker", "-stray")
TABLE: dict[str, dict[str, Outcome]] = {
    "meta.properties": dict.fromkeys(DAMAGES, REFUSES)
    | {"missing": Outcome(refused="{data} has no meta.properties, but it has .kafka_cleanshutdown, ")},
    "bootstrap.checkpoint": NEVER_DAMAGED,
    ".kafka_cleanshutdown": rebuilt("empty", "truncated", "random", "flipped", warning="{path} has no broker epoch")
    | {"missing": SERVES, **NOT_A_FILE},
    "recovery-point-offset-checkpoint": MAY_BE_EMPTY,
    "log-start-offset-checkpoint": MAY_BE_EMPTY,
    "replication-offset-checkpoint": MAY_BE_EMPTY,
    "cleaner-offset-checkpoint": dict.fromkeys(DAMAGES, SERVES),  # read when the cleaner runs, see its tests
    f"{METADATA}/{FIRST}-0000000000.checkpoint": NEVER_DAMAGED,
    f"{METADATA}/*[1-9]-*.checkpoint": NEVER_DAMAGED,
    f"{METADATA}/{FIRST}.log": {
        "empty": Outcome(warnings=(BEHIND.format(0), *STRAY)),
        "missing": Outcome(warnings=(BEHIND.format(0), *STRAY)),
        "random": Outcome(warnings=(BEHIND.format(0), "of the metadata log in {data}/", *STRAY)),
        "truncated": Outcome(warnings=("before its snapshot", "of the metadata log in {data}/", *STRAY)),
        "flipped": REFUSES,
        **NOT_A_FILE,
    },
    f"{METADATA}/{FIRST}.index": {"missing": SERVES, **NOT_A_FILE},
    f"{METADATA}/{FIRST}.timeindex": dict.fromkeys(DAMAGES, SERVES) | NOT_A_FILE,
    f"{METADATA}/*.snapshot": dict.fromkeys(DAMAGES, SERVES) | {"directory": REFUSES},
    f"{METADATA}/leader-epoch-checkpoint": MAY_BE_EMPTY,
    f"{METADATA}/partition.metadata": MAY_BE_EMPTY,
    f"{METADATA}/quorum-state": NEVER_DAMAGED,
    f"t-0/{FIRST}.log": {
        "empty": lost(0),
        "missing": lost(0),
        "random": lost(0, "t-0: truncated "),
        "truncated": lost(10, "t-0: truncated "),
        "cut_at_a_batch": lost(15),
        "flipped": SERVES,  # found by the reader, as in Kafka
        "directory": FAILS,
        "unreadable": FAILS,
    },
    f"t-0/{FIRST}.index": {"missing": SERVES, "directory": FAILS, "unreadable": SERVES},  # it has no entries
    f"t-0/{FIRST}.timeindex": REBUILT | {"unreadable": NOT_CLOSED},
    f"t-0/{FIRST[:-2]}20.snapshot": REBUILT
    | rebuilt("empty", "truncated", "random", "flipped", warning="t-0: {path} is damaged ("),
    "t-0/leader-epoch-checkpoint": REBUILT
    | rebuilt("truncated", "random", "flipped", warning="t-0: {path} ")
    | {"unreadable": Outcome(warnings=("{path}",))},
    "t-0/partition.metadata": MAY_BE_EMPTY,
    "t-0": {"missing": lost(0)},
}
CASES = [
    pytest.param(name, damage, outcome, id=f"{name}-{damage}")
    for name, row in TABLE.items()
    for damage, outcome in row.items()
    if damage != "unreadable" or os.geteuid()  # root can read everything
]
