"""A node started on a data directory with one damaged file: it serves, or refuses in one line that names the file.

Its one rule: there is no third outcome. A refused directory keeps every byte, and no traceback is logged.
"""

from __future__ import annotations

import asyncio
import logging
import os
import shutil
from pathlib import Path

import pytest

from barnabas.testing import AsyncBroker, BrokerError
from barnabas.wire import KafkaError
from tests.broker.damages import CASES, CONFIG, DAMAGES, FIRST, SPECIAL, TABLE, Outcome, fill

START_S = 20.0


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    data = tmp_path_factory.mktemp("whole") / "data"
    asyncio.run(fill(data))
    return data


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


async def start_and_wait(data: Path, log: Log) -> str:
    """Start a node that no client uses until it has logged something. Return the message of its failure, if it fails."""
    async with AsyncBroker(data_dir=data, config=CONFIG) as broker:
        async with asyncio.timeout(START_S):
            while not log.records:
                await asyncio.sleep(0.01)
        assert broker._node is not None
        failed = broker._node.failed
        return str(failed.exception()) if failed.done() else ""


@pytest.mark.parametrize("damage", ["empty", "missing", "truncated", "cut_at_a_batch", "directory"])
def test_a_log_that_is_shorter_than_at_the_clean_stop_is_reported_before_anyone_uses_it(
    whole: Path, tmp_path: Path, damage: str
) -> None:
    data = tmp_path / "data"
    shutil.copytree(whole, data)
    path = data / f"t-0/{FIRST}.log"
    (DAMAGES | SPECIAL)[damage](path)
    log = Log()
    logging.getLogger("barnabas").addHandler(log)
    try:
        failed = asyncio.run(start_and_wait(data, log))
    finally:
        logging.getLogger("barnabas").removeHandler(log)
    if damage == "directory":
        assert str(path) in failed
    else:
        (*_, line) = [record.getMessage() for record in log.records]
        assert "that was checkpointed at the clean shutdown: records were lost" in line or "truncated" in line
        assert failed == ""


def test_whole_logs_are_not_opened_after_a_clean_stop(whole: Path, tmp_path: Path) -> None:
    data = tmp_path / "data"
    shutil.copytree(whole, data)

    async def opened() -> list[str]:
        async with AsyncBroker(data_dir=data, config=CONFIG) as broker:
            replicas = broker._running().replicas
            await replicas.open_shorter()
            return [str(each) for each in replicas if each.opened_log is not None]

    assert asyncio.run(opened()) == []
