"""`barnabas reassign`, `log-dirs` and `elect-leaders` on a node that believes in more brokers than there are."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from barnabas.cli.commands.reassign import _status_row
from barnabas.client.admin.reassignments import PartitionReassignment
from barnabas.operations.reassignments.progress import Look, Progress, progress_of, sum_of
from barnabas.testing import Broker
from tests.client.admin.absent_brokers import create_topic, with_absent_brokers
from tests.client.admin.guarded import guarded_broker
from tests.command_line import Command, Done, invoke


@pytest.fixture(scope="module")
def dirs(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    root = tmp_path_factory.mktemp("disks")
    return str(root / "first"), str(root / "second")


@pytest.fixture(scope="module")
def broker(dirs: tuple[str, str]) -> Iterator[Broker]:
    with with_absent_brokers({1: "a", 2: "b", 3: "b"}, {"log.dirs": ",".join(dirs)}) as running:
        yield running


run = Command()


def rows(done: Done) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = done.json
    return found


# --- reassign


def test_a_plan_is_shown_with_what_brokers_have_before_and_after(broker: Broker) -> None:
    create_topic(broker, "planned", [1], [1], [1])
    result = run(broker, "reassign", "plan", "planned", "--rebalance")
    assert result.exit_code == 0, result.output
    assert "2 partitions change, 2 replicas to copy, 0 B" in result.stderr
    assert result.stdout.splitlines()[0].split() == [
        *("TOPIC", "PARTITION", "BEFORE", "AFTER", "ADDING", "REMOVING", "BYTES")
    ]
    assert "Brokers" in result.stdout.splitlines()
    found = rows(run(broker, "reassign", "plan", "planned", "--rebalance", "-o", "json"))
    assert [(row["before"], row["removing"], row["bytes"]) for row in found] == [([1], [1], 0)] * 2
    assert sorted(row["after"][0] for row in found) == [2, 3]


def test_a_plan_is_saved_run_watched_and_cancelled(broker: Broker, tmp_path: Path) -> None:
    create_topic(broker, "saved", [1], [1])
    file = tmp_path / "plan.json"
    result = run(broker, "reassign", "plan", "saved", "--replication-factor", 2, "--save", file, "-o", "tsv")
    assert f"barnabas reassign run {file}" in result.stderr
    saved = json.loads(file.read_text())
    assert [(row["topic"], row["partition"], row["log_dirs"]) for row in saved["partitions"]] == [
        ("saved", 0, ["any", "any"]),
        ("saved", 1, ["any", "any"]),
    ]
    dry = run(broker, "reassign", "run", file, "--dry-run")
    assert "would reassign 2 partitions of 1 topic" in dry.stderr
    assert rows(run(broker, "reassign", "status", "saved", "-o", "json")) == []
    refused = run(broker, "reassign", "run", file)
    assert (refused.exit_code, "pass --yes" in refused.stderr) == (1, True)
    begun = run(broker, "reassign", "run", file, "--yes", "-o", "json")
    assert [row["error"] for row in rows(begun)] == [None, None]
    status = rows(run(broker, "reassign", "status", "saved", "-o", "json", "--sample", 0))
    assert [(row["partition"], row["removing"], row["percent"]) for row in status] == [(0, [], 0), (1, [], 0)]
    assert all(row["adding"] in ([2], [3]) for row in status)
    assert [(row["secondsLeft"], row["timeLeftMs"]) for row in status] == [(None, None)] * 2
    again = run(broker, "reassign", "run", file, "--yes")
    assert again.exit_code == 1
    assert "2 partitions of 1 topic are being reassigned now" in again.stderr
    assert "left out" in run(broker, "reassign", "plan", "saved", "--rebalance").stderr
    dry = run(broker, "reassign", "cancel", "saved:1", "--dry-run")
    assert "would cancel the reassignment of saved-1: not adding" in dry.stderr
    assert dry.stdout == ""
    dry = run(broker, "reassign", "cancel", "saved:1", "--dry-run", "-o", "json")
    assert [(row["topic"], row["partition"], row["replicas"], row["error"]) for row in rows(dry)] == [
        ("saved", 1, [1], None)
    ]
    assert len(rows(run(broker, "reassign", "status", "saved", "-o", "json", "--sample", 0))) == 2
    assert run(broker, "reassign", "cancel", "--all").exit_code == 1
    cancelled = run(broker, "reassign", "cancel", "--all", "--yes", "-o", "json")
    assert [(row["topic"], row["replicas"]) for row in rows(cancelled)] == [("saved", [1])] * 2
    assert (
        "nothing to cancel: none of the partitions is being reassigned"
        in run(broker, "reassign", "cancel", "--all", "--yes").stderr
    )
    assert rows(run(broker, "reassign", "cancel", "--all", "--yes", "-o", "json")) == []
    assert "nothing is being reassigned" in run(broker, "reassign", "status", "--watch", 0.1).stderr


def test_what_moves_nothing_is_done_at_once_and_waited_for(broker: Broker) -> None:
    create_topic(broker, "shrunk", [1, 2], [1, 3])
    result = run(broker, "reassign", "run", "shrunk", "--replication-factor", 1, "--yes", "--wait", "-o", "json")
    assert result.exit_code == 0, result.output
    assert [row["replicas"] for row in rows(result)] == [[1], [1]]
    assert "nothing to move" in run(broker, "reassign", "run", "shrunk", "--replication-factor", 1).stderr


def test_the_throttle_needs_a_reassignment_and_is_cleared(broker: Broker) -> None:
    create_topic(broker, "throttled", [1])
    nothing = run(broker, "reassign", "throttle", "--rate", "1MB")
    assert (nothing.exit_code, "nothing is being reassigned" in nothing.stderr) == (1, True)
    cleared = run(broker, "reassign", "throttle", "--clear", "--dry-run")
    assert "would clear the throttles of topics (none) and brokers 1, 2, 3" in cleared.stderr


def test_a_throttle_is_set_for_those_that_take_part(tmp_path: Path) -> None:
    with Broker({"alone": 1}) as alone:
        file = tmp_path / "plan.json"
        file.write_text('{"partitions": [{"topic": "alone", "partition": 0, "replicas": [1]}]}')
        script = ("kafka-reassign-partitions", "--bootstrap-server", alone.bootstrap_servers)
        plan = ("--reassignment-json-file", str(file))
        done = invoke(*script, *plan, "--execute", "--throttle", "5000")
        assert "The inter-broker throttle limit was set to 5000 B/s" in done.stdout.splitlines()
        settings = ["kafka-configs", *script[1:], "--describe", "--entity-type", "brokers", "--entity-name", "1"]
        assert "leader.replication.throttled.rate=5000" in invoke(*settings).stdout
        cleared = run(alone, "reassign", "throttle", "--clear")
        assert "clear the throttles of topics (alone) and brokers 1" in cleared.stderr
        again = run(alone, "reassign", "throttle", "--clear", "--dry-run")
        assert "topics (none)" in again.stderr
        assert "throttled.rate" not in invoke(*settings).stdout


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("plan",), 2, "Give at least one of --rebalance"),
        (("plan", "missing", "--rebalance"), 1, "topic missing: UNKNOWN_TOPIC_OR_PARTITION"),
        (("plan", "bad:7", "--rebalance"), 1, "topic bad: it has partitions 0 to 0, not 7"),
        (("plan", "bad:x", "--rebalance"), 2, "partitions are numbers"),
        (("plan", "bad", "--drain", "one"), 2, "broker ids are numbers"),
        (("plan", "bad", "--drain", "9"), 1, "cannot drain broker 9: not running, and without replicas"),
        (("plan", "bad", "--add", "9"), 1, "Try: running brokers: 1, 2, 3"),
        (("plan", "bad", "--replication-factor", "4"), 1, "bad-0 needs 4 replicas, but only 3 brokers are available"),
        (("run",), 2, "Give either one plan file"),
        (("run", "/no/such/file"), 1, "/no/such/file: No such file or directory"),
        (("run", "bad", "--rebalance", "--throttle", "fast"), 2, "'fast' is not a size"),
        (("cancel",), 2, "Give either topics or partitions, or --all."),
        (("throttle",), 2, "Give either --rate or --clear."),
        (("status", "missing"), 1, "Try: list topics with: barnabas topics list"),
    ],
)
def test_what_is_wrong_is_said(broker: Broker, arguments: tuple[str, ...], code: int, message: str) -> None:
    if "bad" not in str(run(broker, "log-dirs", "describe", "--by", "topic", "--broker", 1).stdout):
        create_topic(broker, "bad", [1])
    result = run(broker, "reassign", *arguments)
    assert result.exit_code == code, result.output
    assert message in result.stderr


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("nonsense", "Expecting value"),
        ("[]", "Expected JSON object, received []"),
        ('{"version": 2, "partitions": []}', "Not supported version field value 2"),
        ('{"partitions": []}', "Partition reassignment list cannot be empty"),
        ('{"partitions": [{"topic": "t", "partition": 0, "replicas": [1, 1]}]}', "t-0 contains multiple entries for 1"),
        ('{"partitions": [{"topic": "t", "replicas": [1]}]}', "No such field exists: `partition`"),
    ],
)
def test_a_file_that_is_no_plan_is_refused(broker: Broker, tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "plan.json"
    file.write_text(text)
    result = run(broker, "reassign", "run", file, "--yes")
    assert result.exit_code == 1
    assert f"{file}: " in result.stderr
    assert message in result.stderr


def test_a_plan_for_a_broker_that_is_not_there_is_refused(broker: Broker, tmp_path: Path) -> None:
    create_topic(broker, "homeless", [1])
    file = tmp_path / "plan.json"
    file.write_text('{"partitions": [{"topic": "homeless", "partition": 0, "replicas": [1, 9]}]}')
    result = run(broker, "reassign", "run", file, "--yes")
    assert (result.exit_code, "broker 9: it does not exist, or is not running" in result.stderr) == (1, True)


def test_nobody_at_the_address_and_nobody_who_may() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{unused.getsockname()[1]}"
        for command in (("reassign", "status"), ("log-dirs", "describe"), ("elect-leaders", "--all")):
            result = invoke(*command, "-b", address, "-X", "default.api.timeout.ms=200")
            assert result.exit_code == 1
            assert f"Error: {address} (--bootstrap-server): " in result.stderr
    with guarded_broker() as guarded:
        for arguments in (("reassign", "status"), ("log-dirs", "describe")):
            result = run(guarded, *arguments)
            assert result.exit_code == 1
            assert "CLUSTER_AUTHORIZATION_FAILED" in result.stderr


def test_controllers_list_and_cancel_but_do_not_plan(broker: Broker) -> None:
    given = ("--bootstrap-controller", broker.listeners["CONTROLLER"])
    listed = invoke("reassign", "status", *given)
    assert (listed.exit_code, listed.stderr) == (0, "nothing is being reassigned\n")
    assert invoke("reassign", "cancel", "--all", "--yes", *given).exit_code == 0
    for command in (("reassign", "plan", "--rebalance"), ("log-dirs", "describe"), ("elect-leaders", "--all")):
        result = invoke(*command, *given)
        assert result.exit_code == 1
        assert result.stderr == (
            "Error: only brokers can answer that, and these are controllers\nTry: use --bootstrap-server\n"
        )


def test_the_time_left_is_in_seconds_and_in_milliseconds() -> None:
    key = ("slow", 0)
    now = Look(0.0, {key: PartitionReassignment((1, 2), (2,), ())}, {key: 1}, {key: (1,)}, {})
    row = _status_row(key, now, Progress(1, 0, bytes_total=1000, bytes_done=500, rate=200.0))
    assert (row["bytesLeft"], row["secondsLeft"], row["timeLeftMs"]) == (500, 2.5, 2500)


# --- log-dirs


def test_log_dirs_are_described_by_dir_broker_topic_and_replica(broker: Broker, dirs: tuple[str, str]) -> None:
    create_topic(broker, "stored", [1], [1])
    by_dir = rows(run(broker, "log-dirs", "describe", "--broker", 1, "-o", "json"))
    assert [row["logDir"] for row in by_dir] == list(dirs)
    assert all(row["usableBytes"] > 0 and row["error"] is None for row in by_dir)
    (by_broker,) = rows(run(broker, "log-dirs", "describe", "--by", "broker", "--broker", 1, "-o", "json"))
    assert (by_broker["logDirs"], by_broker["replicas"]) == (2, sum(row["replicas"] for row in by_dir))
    by_topic = rows(run(broker, "log-dirs", "describe", "--by", "topic", "--broker", 1, "-o", "json"))
    assert {row["topic"]: row["partitions"] for row in by_topic}["stored"] == 2
    replicas = rows(run(broker, "log-dirs", "describe", "stored:1", "--broker", 1, "-o", "json"))
    assert [(row["topic"], row["partition"], row["isFuture"]) for row in replicas] == [("stored", 1, False)]


def test_a_broker_that_does_not_answer_is_a_row_and_a_failure() -> None:
    hurry = ("-X", "default.api.timeout.ms=1500")
    with with_absent_brokers({1: None, 2: None}, refusing={2}) as partly:
        create_topic(partly, "half", [1])
        result = run(partly, "log-dirs", "describe", "-o", "json", *hurry)
        assert result.exit_code == 1
        assert [(row["broker"], row["error"]) for row in rows(result)] == [(1, None), (2, "NETWORK_EXCEPTION")]
        assert "broker 2: NETWORK_EXCEPTION" in result.stderr
        planned = run(partly, "reassign", "plan", "half", "--add", 2, *hurry)
        assert (planned.exit_code, "warning: the sizes on broker 2 are unknown" in planned.stderr) == (0, True)


def test_replicas_move_and_the_command_waits(broker: Broker, dirs: tuple[str, str]) -> None:
    create_topic(broker, "moved", [1], [1])
    for to in dirs:
        dry = run(broker, "log-dirs", "move", "moved", "--broker", 1, "--to", to, "--dry-run")
        assert (dry.exit_code, dry.stdout) == (0, ""), dry.output
        dry = run(broker, "log-dirs", "move", "moved", "--broker", 1, "--to", to, "--dry-run", "-o", "json")
        waiting = ("--wait", "--throttle", "50MB", "-o", "json")
        result = run(broker, "log-dirs", "move", "moved", "--broker", 1, "--to", to, *waiting)
        assert result.exit_code == 0, result.output
        assert rows(dry) == rows(result) != []
        replicas = rows(run(broker, "log-dirs", "describe", "moved", "--broker", 1, "-o", "json"))
        assert [(row["logDir"], row["isFuture"]) for row in replicas] == [(to, False)] * 2
        again = run(broker, "log-dirs", "move", "moved", "--broker", 1, "--to", to, "-o", "json")
        assert ("already" in again.stderr, rows(again)) == (True, [])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("still-1", "--broker", "1", "--to", "/nowhere"), "broker 1: no log dir /nowhere; its log dirs are "),
        (("still-77", "--broker", "77", "--to", "/nowhere"), "broker 77: BROKER_NOT_AVAILABLE"),
        (("missing", "--broker", "1", "--to", "/nowhere"), "topic missing: UNKNOWN_TOPIC_OR_PARTITION"),
    ],
)
def test_what_cannot_move_is_said(broker: Broker, arguments: tuple[str, ...], message: str) -> None:
    if arguments[0] != "missing":
        create_topic(broker, arguments[0], [1])
    result = run(broker, "log-dirs", "move", *arguments)
    assert (result.exit_code, message in result.stderr) == (1, True), result.stderr


# --- elect-leaders


def test_preferred_leaders_are_elected_where_they_do_not_lead(broker: Broker, tmp_path: Path) -> None:
    create_topic(broker, "led", [2, 1], [1, 2])
    file = tmp_path / "turn.json"
    file.write_text('{"partitions": [{"topic": "led", "partition": 0, "replicas": [1, 2]}]}')
    assert run(broker, "reassign", "run", file, "--yes").exit_code == 0
    dry = run(broker, "elect-leaders", "led", "--dry-run", "-o", "json")
    assert [(row["partition"], row["leader"], row["preferredLeader"]) for row in rows(dry)] == [(0, 2, 1)]
    assert "would elect the preferred leader of led-0" in dry.stderr
    done = run(broker, "elect-leaders", "led", "-o", "json")
    assert [(row["partition"], row["leader"], row["error"]) for row in rows(done)] == [(0, 1, None)]
    assert "no partition needs the preferred leader" in run(broker, "elect-leaders", "led").stderr
    assert "no partition needs an unclean leader" in run(broker, "elect-leaders", "--unclean", "led").stderr


def test_elect_leaders_wants_to_know_of_what(broker: Broker) -> None:
    for arguments in ((), ("orders", "--all")):
        result = run(broker, "elect-leaders", *arguments)
        assert (result.exit_code, "Give either topics or partitions, or --all." in result.stderr) == (2, True)


# --- progress

KEY = ("t", 0)


def look(at_s: float, *, leader: int = 1000, adding: int | None = 0, isr: tuple[int, ...] = (1,)) -> Look:
    sizes = {1: {KEY: leader}} | ({} if adding is None else {2: {KEY: adding}})
    return Look(at_s, {KEY: PartitionReassignment((1, 2), (2,), ())}, {KEY: 1}, {KEY: isr}, sizes)


def test_progress_is_bytes_of_the_new_replica_beside_those_of_the_leader() -> None:
    now = progress_of(KEY, look(10, adding=600), look(8, adding=200))
    assert (now.percent, now.bytes_left, now.rate, now.left_s) == (60.0, 400, 200.0, 2.0)


def test_without_an_earlier_look_there_is_no_rate() -> None:
    now = progress_of(KEY, look(10, adding=250))
    assert (now.percent, now.rate, now.left_s) == (25.0, None, None)


def test_what_a_broker_does_not_tell_is_not_known() -> None:
    assert progress_of(KEY, look(10, adding=None)) == Progress(1, 0)
    assert progress_of(KEY, look(10, adding=None, isr=(1, 2))).percent == 100.0


def test_an_empty_partition_is_done_when_it_is_in_sync() -> None:
    assert progress_of(KEY, look(1, leader=0)).percent == 0.0
    assert progress_of(KEY, look(1, leader=0, isr=(1, 2))).percent == 100.0


def test_what_has_all_bytes_and_is_not_in_sync_is_not_done() -> None:
    assert progress_of(KEY, look(1, adding=1000)).percent == 99.0
    assert progress_of(KEY, look(1, adding=1000, isr=(1, 2))).percent == 100.0


def test_the_sum_has_bytes_only_if_all_have() -> None:
    known = Progress(1, 0, 1000, 500, 100.0)
    assert sum_of([known, known]) == Progress(2, 0, 2000, 1000, 200.0)
    assert sum_of([known, Progress(1, 0)]) == Progress(2, 0)
