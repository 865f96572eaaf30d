"""Histories of real nodes are judged as those of simulated ones, at once and from a file."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from tools.apache_kafka import Barnabas

from tests.simulation.history import Final, Outcome, Place, Record
from tests.simulation.recorded import Recorder, judge, main, work

PLACE = Place("t", 0)
SETTINGS = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
    "offsets.topic.num.partitions": "3",
    "transaction.state.log.num.partitions": "3",
}


def recorded(*, is_lost: bool) -> tuple[list[str], Recorder, Final]:
    """The lines of a short history, in which a record may be lost."""
    lines: list[str] = []
    history = Recorder(lines.append)
    history.sending(b"p \xff1", "t", "one")
    history.acknowledged(b"p \xff1", PLACE, 0)
    history.ended("one", Outcome.COMMITTED)
    history.copied(b"p \xff1", b"q 1")
    history.received("c", PLACE, 0, b"p \xff1", committed=True)
    history.offset_committed("g", PLACE, 1)
    history.offset_found("g", PLACE, 1, 1)
    history.topic_created("u", "id")
    history.topic_deleting("v")
    history.topic_deleted("v")
    history.was_set("u", "5", "u")
    records = {PLACE: [] if is_lost else [Record(0, b"p 1")]}
    return lines, history, Final(records, records, {"u": "id"}, {("g", PLACE): 1}, {"u": "5"})


@pytest.mark.parametrize("is_lost", [False, True])
def test_a_history_from_a_file_has_the_same_verdict(is_lost: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.simulation.history.number_of", lambda value: (value, 1))
    lines, history, final = recorded(is_lost=is_lost)
    history.found(final)
    again, wrong = judge(lines)
    assert wrong == list(history.check(final))
    assert bool(wrong)
    assert again.counts == history.counts
    assert again.transactions.keys() == {"one"}


def test_a_history_without_an_end_is_not_judged() -> None:
    lines, _, _ = recorded(is_lost=False)
    with pytest.raises(ValueError, match="no end"):
        judge(lines)


def test_a_real_node_that_is_killed_is_judged(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "history.jsonl"
    with Barnabas(SETTINGS, directory=tmp_path / "node") as node:

        async def kill() -> None:
            await asyncio.sleep(2)
            node.kill()
            await asyncio.to_thread(node.start)
            await asyncio.sleep(2)

        with path.open("w") as file:
            history = Recorder(file.write)
            wrong = asyncio.run(work(node.bootstrap, history, kill()))
    assert wrong == []
    assert min(history.counts[name] for name in ("acknowledged", "read", "committed", "offsets committed", "set")) > 0
    assert main(["--judge", str(path)]) == 0
    assert "0 violated" in capsys.readouterr().out
    assert main(["--judge", str(_without_last_record(path))]) == 1
    assert "lost" in capsys.readouterr().out


def _without_last_record(path: Path) -> Path:
    """The same history, at whose end an acknowledged record is not there."""
    *lines, last = path.read_text().splitlines()
    name, final, more = json.loads(last)
    for logs in final[:2]:
        next(rows for _, _, rows in logs if rows).pop()
    changed = path.with_name("changed.jsonl")
    changed.write_text("\n".join([*lines, json.dumps([name, final, more])]))
    return changed
