"""A node started on a data directory with one damaged file: it serves, or refuses in one line that names the file.

Its one rule: there is no third outcome. A refused directory keeps every byte, and no traceback is logged.
"""

from __future__ import annotations

import asyncio
import logging
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import NamedTuple

import pytest

from barnabas.batches import iterate_batches
from barnabas.client import Producer
from barnabas.testing import AsyncBroker, BrokerError
from barnabas.wire import KafkaError

START_S = 20.0
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


async def _fill(data: Path) -> None:
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


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    data = tmp_path_factory.mktemp("whole") / "data"
    asyncio.run(_fill(data))
    return data


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


class Log(logging.Handler):
    """All warnings of the node."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.records: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(record)


def content(path: Path) -> dict[str, bytes | None]:
    found = (each for each in path.rglob("*") if each.name != ".lock")
    return {str(each.relative_to(path)): _read(each) for each in found}


def _read(path: Path) -> bytes | None:
    return path.read_bytes() if path.is_file() and os.access(path, os.R_OK) else None


async def start_and_read(data: Path) -> tuple[str, int | None, str]:
    """Return the message of a refusal, else the number of records, and the message of a failure."""
    broker = AsyncBroker(data_dir=data, config=CONFIG)
    unhandled: list[str] = []
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: unhandled.append(context["message"]))
    try:
        async with asyncio.timeout(START_S):
            await broker.start()
            try:
                return "", len(await broker.records("t")), ""
            except KafkaError:
                return "", None, str(broker._node and broker._node.failed.exception())
    except BrokerError as error:
        return str(error), None, ""
    finally:
        await broker.close()
        assert unhandled == []


@pytest.mark.parametrize(("name", "damage", "outcome"), CASES)
def test_a_node_on_a_damaged_file(whole: Path, tmp_path: Path, name: str, damage: str, outcome: Outcome) -> None:
    data = tmp_path / "data"
    shutil.copytree(whole, data)
    (path,) = data.glob(name)
    path.chmod(0o755 if path.is_dir() else 0o644)
    (DAMAGES | SPECIAL)[damage](path)
    before = content(data)
    log = Log()
    logging.getLogger("barnabas").addHandler(log)
    try:
        refused, records, failed = asyncio.run(start_and_read(data))
    finally:
        logging.getLogger("barnabas").removeHandler(log)
    lines = [record.getMessage() for record in log.records]
    assert [record for record in log.records if record.exc_info] == []
    assert [line for line in (*lines, refused, failed) if "\n" in line] == []
    if outcome.refused is not None:
        assert outcome.refused.format(path=path, data=data) in refused
        assert lines == []
        assert content(data) == before
    elif outcome.failed is not None:
        assert outcome.failed.format(path=path) in failed
        assert len(lines) == 1
    else:
        assert (refused, records, failed) == ("", outcome.records, "")
        unmatched = [text.format(path=path, data=data) for text in outcome.warnings]
        assert all(any(text in line for line in lines) for text in unmatched), lines
        assert len(lines) == len(unmatched), lines


def test_every_file_is_in_the_table(whole: Path) -> None:
    files = {str(path.relative_to(whole)) for path in whole.rglob("*") if path.is_file() and path.name != ".lock"}
    known = {str(path.relative_to(whole)) for pattern in TABLE for path in whole.glob(pattern)}
    assert {name for name in files - known if not name.startswith("late-0/")} == set()


def test_a_damaged_log_dir_beside_others_goes_offline(
    whole: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    dirs: dict[str, str | int] = {"log.dirs": f"{one},{two}", **CONFIG}

    async def start() -> list[str]:
        async with AsyncBroker(["t"], config=dirs) as broker:
            online = broker._running().log_directories.is_online
            return [path.name for path in (one, two) if online(str(path))]

    assert asyncio.run(start()) == ["one", "two"]
    (two / "recovery-point-offset-checkpoint").write_text("0\n1\nt\n")
    before = content(two)
    assert asyncio.run(start()) == ["one"]
    (line,) = caplog.messages
    damaged = f"{two}/recovery-point-offset-checkpoint has a malformed line 3: 't'"
    assert line == f"the log dir {two} is now offline: {damaged}; if the file cannot be repaired, delete it"
    assert content(two) == before
    (one / "replication-offset-checkpoint").write_text("x")
    with pytest.raises(BrokerError, match=f"^{one}/replication-offset-checkpoint has a malformed line 1: 'x'"):
        asyncio.run(start())
