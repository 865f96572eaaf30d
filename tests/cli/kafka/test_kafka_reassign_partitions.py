"""Commands with the names of Kafka's scripts for reassignments, elections and log dirs: options, lines, exit codes.

The lines are compared with those of Kafka's own scripts in tests/interop.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas.client.admin.log_dirs import Replica
from barnabas.client.admin.part import checked
from barnabas.client.admin.reassignments import PartitionReassignment, Reassignments
from barnabas.client.cluster import Cluster
from barnabas.operations.reassignments.files import (
    ReassignmentFileError,
    check_executable,
    format_reassignment,
    parse_reassignment,
    parse_topics,
)
from barnabas.operations.reassignments.throttles import PartitionMove, brokers_of, proposed_moves, throttled_replicas
from barnabas.testing import Broker
from tests.client.admin.absent_brokers import create_topic, with_absent_brokers
from tests.command_line import Command, Script

REASSIGN, ELECTION, LOG_DIRS = "kafka-reassign-partitions", "kafka-leader-election", "kafka-log-dirs"


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with with_absent_brokers({1: None, 2: None}) as running:
        yield running


@pytest.fixture(scope="module")
def alone() -> Iterator[Broker]:
    with Broker({"one": 2, "two": 1}) as running:
        yield running


run = Script()


def begin(broker: Broker, targets: dict[tuple[str, int], tuple[int, ...]]) -> None:
    async def main() -> None:
        async with Cluster({"bootstrap.servers": broker.bootstrap_servers}) as cluster:
            checked(await Reassignments(cluster).alter_partition_reassignments(targets))

    asyncio.run(main())


def plan(path: Path, *rows: tuple[str, int, list[int]]) -> Path:
    partitions = [{"topic": topic, "partition": index, "replicas": ids} for topic, index, ids in rows]
    path.write_text(json.dumps({"version": 1, "partitions": partitions}))
    return path


# --- kafka-reassign-partitions


def test_a_reassignment_is_executed_verified_and_cancelled(alone: Broker, tmp_path: Path) -> None:
    assert run(alone, REASSIGN, "--list").stdout == "No partition reassignments found.\n"
    file = plan(tmp_path / "plan.json", ("one", 0, [1]), ("two", 0, [1]))
    executed = run(alone, REASSIGN, "--reassignment-json-file", file, "--execute", "--throttle", 1000)
    saved = format_reassignment(
        {("one", 0): [1], ("two", 0): [1]},
        {Replica("one", 0, 1): str(alone.data_dir), Replica("two", 0, 1): str(alone.data_dir)},
    )
    assert executed.stdout.splitlines() == [
        "Current partition replica assignment",
        "",
        saved,
        "",
        "Save this to use as the --reassignment-json-file option during rollback",
        "Warning: You must run --verify periodically, until the reassignment completes, to ensure the throttle is removed.",
        "The inter-broker throttle limit was set to 1000 B/s",
        "Successfully started partition reassignments for one-0,two-0",
    ]
    verified = run(alone, REASSIGN, "--reassignment-json-file", file, "--verify")
    assert verified.stdout.splitlines() == [
        "Status of partition reassignment:",
        "Reassignment of partition one-0 is completed.",
        "Reassignment of partition two-0 is completed.",
        "",
        "Clearing broker-level throttles on broker 1",
        "Clearing topic-level throttles on topics one,two",
    ]
    cancelled = run(alone, REASSIGN, "--reassignment-json-file", file, "--cancel", "--preserve-throttles")
    assert cancelled.stdout == (
        "None of the specified partition reassignments are active.\nNone of the specified partition moves are active."
    )


def test_a_reassignment_that_goes_on_is_listed_and_refuses_another(broker: Broker, tmp_path: Path) -> None:
    create_topic(broker, "going", [1])
    grow = plan(tmp_path / "grow.json", ("going", 0, [1, 2]))
    Command("reassign", "run")(broker, grow, "--yes", "-X", "default.api.timeout.ms=300", code=0)
    assert run(broker, REASSIGN, "--list").stdout.splitlines() == [
        "Current partition reassignments:",
        "going-0: replicas: 1,2. adding: 2.",
    ]
    verified = run(broker, REASSIGN, "--reassignment-json-file", grow, "--verify")
    assert verified.stdout == (
        "Status of partition reassignment:\nReassignment of partition going-0 is still in progress.\n\n"
    )
    refused = run(broker, REASSIGN, "--reassignment-json-file", grow, "--execute")
    assert refused.exit_code == 1
    assert refused.stdout.startswith(
        "Cannot execute because there is an existing partition assignment.  Use --additional"
    )
    cancelled = run(broker, REASSIGN, "--reassignment-json-file", grow, "--cancel", "--preserve-throttles")
    assert cancelled.stdout.splitlines()[0] == "Successfully cancelled partition reassignment for: going-0"


def test_a_candidate_is_generated(alone: Broker, tmp_path: Path) -> None:
    topics = tmp_path / "topics.json"
    topics.write_text('{"topics": [{"topic": "one"}], "version": 1}')
    made = run(alone, REASSIGN, "--topics-to-move-json-file", topics, "--broker-list", "1", "--generate")
    lines = made.stdout.splitlines()
    assert lines[0] == "Current partition replica assignment"
    assert lines[2:] == [
        "",
        "Proposed partition reassignment configuration",
        format_reassignment({("one", 0): [1], ("one", 1): [1]}),
    ]


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ((), "Command must include exactly one action: --generate, --execute, --verify, --cancel, --list"),
        (
            ("--list", "--verify"),
            "Command must include exactly one action: --generate, --execute, --verify, --cancel, --list",
        ),
        (("--execute",), 'Missing required argument "[reassignment-json-file]"'),
        (("--generate", "--broker-list", "1"), 'Missing required argument "[topics-to-move-json-file]"'),
        (("--list", "--throttle", "1"), 'Option "[throttle]" can\'t be used with action "[list]"'),
        (
            ("--list", "--bootstrap-controller", "x:1"),
            "Please don't specify both --bootstrap-server and --bootstrap-controller",
        ),
    ],
)
def test_options_that_do_not_fit_are_refused(alone: Broker, arguments: tuple[str, ...], line: str) -> None:
    result = run(alone, REASSIGN, *arguments)
    assert (result.exit_code, result.stderr.splitlines()[0]) == (1, line)


@pytest.mark.parametrize(
    ("rows", "line"),
    [
        ([("one", 0, [1, 7])], "Error: Unknown broker id 7"),
        (
            [("gone", 0, [1])],
            "Error: org.apache.kafka.common.errors.UnknownTopicOrPartitionException: Topic gone not found.",
        ),
        (
            [("one", 9, [1])],
            "Error: org.apache.kafka.common.errors.UnknownTopicOrPartitionException: Unable to find partition: one-9",
        ),
        ([("one", 0, [])], "Error: Partition replica list cannot be empty"),
        ([], "Error: Partition reassignment list cannot be empty"),
    ],
)
def test_what_cannot_be_executed_is_said(
    alone: Broker, tmp_path: Path, rows: list[tuple[str, int, list[int]]], line: str
) -> None:
    result = run(alone, REASSIGN, "--reassignment-json-file", plan(tmp_path / "p.json", *rows), "--execute")
    assert (result.exit_code, result.stdout.splitlines()[0]) == (1, line)


def test_a_file_that_is_not_there_and_a_number_that_is_none(alone: Broker, tmp_path: Path) -> None:
    missing = run(alone, REASSIGN, "--reassignment-json-file", "/no/such/file", "--verify")
    assert (missing.exit_code, missing.stdout) == (1, "Error: Unable to read file /no/such/file\n")
    file = plan(tmp_path / "p.json", ("one", 0, [1]))
    odd = run(alone, REASSIGN, "--reassignment-json-file", file, "--execute", "--throttle", "fast")
    assert (odd.exit_code, odd.stdout) == (1, "Error: Cannot parse argument 'fast' of option throttle\n")


# --- kafka-leader-election


def test_elections_that_are_not_needed_and_those_that_fail(alone: Broker, tmp_path: Path) -> None:
    preferred = ("--election-type", "preferred")
    unneeded = run(alone, ELECTION, *preferred, "--topic", "one", "--partition", 1)
    assert unneeded.stdout == "Valid replica already elected for partitions one-1\n"
    assert run(alone, ELECTION, *preferred, "--all-topic-partitions").stdout == ""
    failed = run(alone, ELECTION, *preferred, "--topic", "gone", "--partition", 0)
    assert failed.exit_code == 1
    assert failed.stdout == (
        "Error completing leader election (PREFERRED) for partition: gone-0: "
        "org.apache.kafka.common.errors.UnknownTopicOrPartitionException: No such topic as gone\n"
    )
    assert failed.stderr == "1 replica(s) could not be elected\n"
    file = tmp_path / "partitions.json"
    file.write_text('{"partitions": [{"topic": "one", "partition": 0}, {"topic": "two", "partition": 0}]}')
    several = run(alone, ELECTION, *preferred, "--path-to-json-file", file)
    assert several.stdout == "Valid replica already elected for partitions one-0, two-0\n"


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ((), "Missing required option(s): election-type"),
        (
            ("--election-type", "preferred"),
            "One and only one of the following options is required: topic, all-topic-partitions, path-to-json-file",
        ),
        (("--election-type", "preferred", "--topic", "one"), "Missing required option(s): partition"),
        (
            ("--election-type", "preferred", "--all-topic-partitions", "--partition", "1"),
            "Option partition is only allowed if topic is used",
        ),
        (
            ("--election-type", "odd", "--all-topic-partitions"),
            "Cannot parse argument 'odd' of option election-type",
        ),
        (
            ("--election-type", "preferred", "--path-to-json-file", "/no/such"),
            "java.io.IOException: Unable to read file /no/such",
        ),
    ],
)
def test_elections_without_what_they_need(alone: Broker, arguments: tuple[str, ...], line: str) -> None:
    result = run(alone, ELECTION, *arguments)
    assert (result.exit_code, result.stderr.splitlines()[0]) == (1, line)


# --- kafka-log-dirs


def test_log_dirs_are_one_line_of_json(alone: Broker) -> None:
    result = run(alone, LOG_DIRS, "--describe", "--topic-list", "one")
    lines = result.stdout.splitlines()
    assert lines[:2] == [
        "Querying brokers for log directories information",
        "Received log directory information from brokers 1",
    ]
    assert json.loads(lines[2]) == {
        "version": 1,
        "brokers": [
            {
                "broker": 1,
                "logDirs": [
                    {
                        "logDir": str(alone.data_dir),
                        "error": None,
                        "partitions": [
                            {"partition": f"one-{index}", "size": 0, "offsetLag": 0, "isFuture": False}
                            for index in (0, 1)
                        ],
                    }
                ],
            }
        ],
    }
    missing = run(alone, LOG_DIRS, "--describe", "--broker-list", "5")
    assert (missing.exit_code, missing.stderr) == (
        1,
        "ERROR: The given brokers do not exist from --broker-list: 5. Current existent brokers: 1\n",
    )
    assert run(alone, LOG_DIRS).stderr.splitlines()[0] == 'Missing required argument "[describe]"'


# --- files and throttles


def test_a_file_is_read_as_it_was_written() -> None:
    targets = {("b", 0): (3, 1), ("a", 1): (2,)}
    chosen = {Replica("b", 0, 1): "/data"}
    text = format_reassignment(targets, chosen)
    read = parse_reassignment(text)
    assert (read.targets, read.log_dirs) == (targets, chosen)
    assert [key for key, _ in read.partitions] == [("a", 1), ("b", 0)]
    check_executable(read)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"partitions": 7}', "Expected JSON array, received 7"),
        ('{"partitions": [{"topic": 1, "partition": 0, "replicas": []}]}', "Expected `String` value, received 1"),
        (
            '{"partitions": [{"topic": "t", "partition": "0", "replicas": []}]}',
            'Expected `Integer` value, received "0"',
        ),
        (
            '{"partitions": [{"topic": "t", "partition": 0, "replicas": [1, 2], "log_dirs": ["any"]}]}',
            "Size of replicas list [1, 2] is different from size of log dirs list [any] for partition t-0",
        ),
    ],
)
def test_a_file_is_refused_in_the_words_of_kafka(text: str, message: str) -> None:
    with pytest.raises(ReassignmentFileError) as error:
        parse_reassignment(text)
    assert str(error.value) == message


def test_a_topic_that_is_named_twice_is_refused() -> None:
    with pytest.raises(ReassignmentFileError, match=r"contains duplicate entries: \[t\]"):
        parse_topics('{"topics": [{"topic": "t"}, {"topic": "t"}]}')


def test_a_throttle_is_for_those_who_give_and_those_who_take() -> None:
    ongoing = {("t", 10): PartitionReassignment((1, 2, 3), (3,), (1,))}
    moves = proposed_moves(ongoing, {("t", 2): (2, 4), ("t", 10): (2, 5)}, {("t", 2): (1, 2)})
    assert moves == {
        ("t", 10): PartitionMove(frozenset({1, 2}), frozenset({5})),
        ("t", 2): PartitionMove(frozenset({1, 2}), frozenset({4})),
    }
    assert throttled_replicas(moves)["t"] == ("10:1,10:2,2:1,2:2", "10:5,2:4")
    assert brokers_of(moves.values()) == [1, 2, 4, 5]
