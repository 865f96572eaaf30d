"""A node whose metadata log can never have a leader says why, and ends."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from barnabas.raft.sole_voter import why_never_led, why_two_leaders
from barnabas.raft.voters import ReplicaKey, Voter, VoterHistory, VoterSet
from barnabas.wire import Uuid
from tests.command_line import invoke, spawn

HERE, ELSEWHERE = Uuid(b"directory-of-one"), Uuid(b"directory-of-two")
OWN = ReplicaKey(1, HERE)
LISTENERS = "listeners=PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:0"


def recorded(*keys: ReplicaKey) -> VoterHistory:
    history = VoterHistory()
    history.append_kraft_version(-1, 1)
    if keys:
        history.append_voters(-1, VoterSet(map(Voter, keys)))
    return history


def static(*ids: int) -> VoterHistory:
    return VoterHistory(VoterSet(Voter(ReplicaKey(each)) for each in ids))


def test_whoever_can_have_a_leader_may_start() -> None:
    for voters in (
        recorded(OWN),
        static(1),
        static(1, 2, 3),
        recorded(OWN, ReplicaKey(2, ELSEWHERE)),
        recorded(ReplicaKey(1, ELSEWHERE), ReplicaKey(2, ELSEWHERE)),  # an observer, until its voter is replaced
        recorded(ReplicaKey(2, ELSEWHERE)),
    ):
        assert why_never_led(OWN, voters, knows_others=False) is None
    assert why_never_led(ReplicaKey(1), static(1), knows_others=False) is None
    assert why_never_led(OWN, recorded(), knows_others=True) is None
    assert why_never_led(OWN, static(), knows_others=True) is None


@pytest.mark.parametrize(
    ("voters", "parts"),
    [
        (recorded(ReplicaKey(1, ELSEWHERE)), ["directory id does not match", f"1 (directory {ELSEWHERE})", str(HERE)]),
        (recorded(ReplicaKey(2, HERE)), ["node id does not match", "the voter 2 ", "this node is 1 "]),
        (recorded(), ["--no-initial-controllers", "--standalone"]),
        (static(), ["kraft.version 0", "controller.quorum.voters=1@host:port"]),
    ],
)
def test_what_does_not_match_is_named(voters: VoterHistory, parts: list[str]) -> None:
    why = why_never_led(OWN, voters, knows_others=False)
    assert why is not None and "\n" not in why
    for part in parts:
        assert part in why


@pytest.mark.parametrize(
    ("before", "now", "may"),
    [
        ([1, 2, 3], [3, 2, 1], True),
        ([1, 2, 3], [1, 2], True),
        ([1, 2], [1, 2, 3], True),
        ([], [1], True),
        ([1, 2, 3], [1], False),
        ([1], [1, 2, 3], False),
        ([1, 2, 3], [1, 2, 4], False),
    ],
)
def test_voters_that_could_elect_a_second_leader_are_refused(before: list[int], now: list[int], may: bool) -> None:
    assert (why_two_leaders(before, now) is None) is may


# --- the command


def settings(directory: Path, *more: str) -> Path:
    path = directory.parent / f"{directory.name}.properties"
    lines = ("process.roles=broker,controller", "node.id=1", "controller.listener.names=CONTROLLER", LISTENERS)
    quorum = () if any("voters" in each for each in more) else ("controller.quorum.bootstrap.servers=127.0.0.1:9093",)
    path.write_text("\n".join([*lines, f"log.dirs={directory}", *quorum, *more]))
    return path


def refused(path: Path) -> str:
    done = spawn("serve", path)
    assert (done.exit_code, "Traceback" in done.stderr) == (1, False), done.stderr
    (line,) = (line for line in done.stderr.splitlines() if line.startswith("Error: "))
    return line


def contents(directory: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in directory.rglob("*") if path.is_file() and path.name != ".lock"}


def test_a_copied_directory_with_another_directory_id_is_refused_and_its_files_stay(tmp_path: Path) -> None:
    path = settings(tmp_path / "data")
    invoke("kafka-storage", "format", "--config", path, "--standalone", "-t", "AAAAAAAAAAAAAAAAAAAAAQ", code=0)
    meta = tmp_path / "data" / "meta.properties"
    meta.write_text(re.sub("directory.id=.*", "directory.id=AAAAAAAAAAAAAAAAAAAAdw", meta.read_text()))
    before = contents(tmp_path / "data")
    text = refused(path)
    assert "directory id does not match" in text and "(directory AAAAAAAAAAAAAAAAAAAAdw)" in text
    after = contents(tmp_path / "data")
    assert before.items() <= after.items() and not any(each.name == "quorum-state" for each in after)


def test_empty_directories_of_a_node_with_other_voters_are_not_formatted(tmp_path: Path) -> None:
    several = settings(tmp_path / "new", "controller.quorum.voters=1@127.0.0.1:9093,2@127.0.0.1:9094")
    text = refused(several)
    assert "controller.quorum.voters names the voters 1, 2" in text and "format -t CLUSTER_ID" in text
    assert not (tmp_path / "new").exists()


def test_a_voter_that_suddenly_is_the_only_one_is_refused(tmp_path: Path) -> None:
    path = settings(tmp_path / "data", "controller.quorum.voters=1@127.0.0.1:9093")
    invoke("kafka-storage", "format", "--config", path, "-t", "AAAAAAAAAAAAAAAAAAAAAQ", code=0)
    log = tmp_path / "data" / "__cluster_metadata-0"
    log.mkdir(exist_ok=True)
    voters = [{"voterId": each} for each in (1, 2, 3)]
    state = {
        "leaderId": 2,
        "leaderEpoch": 7,
        "votedId": -1,
        "appliedOffset": 0,
        "currentVoters": voters,
        "data_version": 0,
    }
    (log / "quorum-state").write_text(json.dumps(state))
    text = refused(path)
    assert "names the voters 1, but its last election was among 1, 2, 3" in text
    assert json.loads((log / "quorum-state").read_text()) == state
