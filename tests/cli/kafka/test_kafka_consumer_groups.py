"""`barnabas kafka-consumer-groups` against a node, and what it says of options: the lines are those of Kafka 4.3.1's script."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from barnabas.cli.kafka.kafka_consumer_groups.lines import ToolProblem, members_text, parse_datetime_ms
from barnabas.client.admin.groups import GroupDescription, GroupMember
from barnabas.client.records import TopicPartition
from barnabas.testing import Broker
from tests.client.admin.group_scenes import commit, committed, fill, member
from tests.command_line import Done, Script


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker({"orders": 2, "empty": 1}, config={"group.initial.rebalance.delay.ms": 0}) as running:
        for partition in (0, 1):
            fill(running.bootstrap_servers, "orders", partition, 5, age_s=600)
        yield running


run = Script("kafka-consumer-groups")
tool = partial(run, None)


def lines(result: Done) -> list[str]:
    assert result.exit_code == 0, result.output
    return [re.sub(" +", " ", line).strip() for line in result.stdout.splitlines()]


def test_groups_are_listed_with_state_and_type(broker: Broker) -> None:
    commit(broker.bootstrap_servers, "listed", {("orders", 0): 1})
    assert "listed" in run(broker, "--list").stdout.splitlines()
    text = run(broker, "--list", "--state", "empty", "--type").stdout
    assert text.splitlines()[0] == f"{'GROUP':<25} {'TYPE':<20} {'STATE':<20}"
    assert f"{'listed':<25} {'Classic':<20} {'Empty':<20}" in text.splitlines()
    assert "listed" not in run(broker, "--list", "--type", "consumer").stdout
    assert "listed" not in run(broker, "--list", "--state", "Stable").stdout


def test_a_group_without_members_is_described_by_its_offsets(broker: Broker) -> None:
    commit(broker.bootstrap_servers, "idle", {("orders", 0): 2, ("orders", 1): 5})
    result = run(broker, "--describe", "--group", "idle")
    assert result.stderr == "\nConsumer group 'idle' has no active members.\n"
    assert result.stdout == (
        "\nGROUP           TOPIC           PARTITION  CURRENT-OFFSET  LOG-END-OFFSET  LAG             "
        "CONSUMER-ID     HOST            CLIENT-ID"
        "\nidle            orders          0          2               5               3               "
        "-               -               -"
        "\nidle            orders          1          5               5               0               "
        "-               -               -\n"
    )
    assert lines(run(broker, "--describe", "--group", "idle", "--verbose"))[2] == "idle orders 0 - 2 5 3 - - -"
    assert lines(run(broker, "--describe", "--group", "idle", "--members")) == [
        "",
        "GROUP CONSUMER-ID HOST CLIENT-ID #PARTITIONS",
    ]
    (_, header, row) = lines(run(broker, "--describe", "--group", "idle", "--state", "--verbose"))
    assert header == "GROUP COORDINATOR (ID) ASSIGNMENT-STRATEGY STATE GROUP-EPOCH TARGET-ASSIGNMENT-EPOCH #MEMBERS"
    assert row == f"idle 127.0.0.1:{broker.port} (1) - Empty - - 0"


def test_members_are_described_with_their_epochs(broker: Broker) -> None:
    settings = {"group_protocol": "consumer", "group_instance_id": "fixed", "client_id": "me"}
    with member(broker.bootstrap_servers, "busy", ["orders"], 2, **settings):
        (_, header, row) = lines(run(broker, "--describe", "--group", "busy", "--members", "--verbose"))
        assert header == (
            "GROUP CONSUMER-ID GROUP-INSTANCE-ID HOST CLIENT-ID #PARTITIONS "
            "CURRENT-EPOCH CURRENT-ASSIGNMENT TARGET-EPOCH TARGET-ASSIGNMENT"
        )
        assert re.fullmatch(r"busy \S+ fixed /127.0.0.1 me 2 (\d+) orders:0,1 \1 orders:0,1", row)
        reset = run(broker, "--reset-offsets", "--group", "busy", "--topic", "orders", "--to-latest", "--execute")
        said = "Assignments can only be reset if the group 'busy' is inactive, but the current state is Stable."
        assert reset.stdout == f"\nError: {said}\n\n{'GROUP':<15} {'TOPIC':<15} {'PARTITION':<10} NEW-OFFSET\n"
        deleted = run(broker, "--delete-offsets", "--group", "busy", "--topic", "orders:0")
        assert lines(deleted)[1] == "Error: Encountered some partition-level error, see the follow-up details."
        assert "GroupSubscribedToTopicException: Deleting offsets of a topic is forbidden" in deleted.stdout


def test_a_group_that_is_migrated_says_who_is_upgraded() -> None:
    here = (TopicPartition("orders", 0),)
    members = tuple(
        GroupMember(name, None, "c", "/h", here, here, 3, is_upgraded=upgraded)
        for name, upgraded in (("old", False), ("new", True))
    )
    group = GroupDescription("g", "Consumer", "consumer", "Stable", None, "uniform", members, 3, 3)
    rows = members_text(group, verbose=True).splitlines()
    assert rows[1].endswith("TARGET-ASSIGNMENT    UPGRADED")
    assert [row.split()[-1] for row in rows[2:]] == ["false", "true"]


def test_offsets_are_reset_after_a_dry_run(broker: Broker, tmp_path: Path) -> None:
    commit(broker.bootstrap_servers, "resets", {("orders", 0): 2, ("orders", 1): 2})
    reset = ("--reset-offsets", "--group", "resets", "--all-topics", "--to-earliest")
    without = run(broker, *reset)
    assert without.stderr.startswith("WARN: No action will be performed as the --execute option is missing.")
    assert lines(without) == ["", "GROUP TOPIC PARTITION NEW-OFFSET", "resets orders 0 0", "resets orders 1 0"]
    assert committed(broker.bootstrap_servers, "resets") == {("orders", 0): 2, ("orders", 1): 2}
    exported = run(broker, *reset, "--dry-run", "--export")
    assert (exported.stdout, exported.stderr) == ("orders,0,0\norders,1,0\n\n", "")
    (tmp_path / "plan.csv").write_text(exported.stdout)
    done = run(broker, "--reset-offsets", "--group", "resets", "--from-file", tmp_path / "plan.csv", "--execute")
    assert done.stdout == without.stdout
    assert committed(broker.bootstrap_servers, "resets") == {("orders", 0): 0, ("orders", 1): 0}


def test_offsets_that_are_not_there_are_moved_with_a_warning(broker: Broker) -> None:
    commit(broker.bootstrap_servers, "moved", {("orders", 0): 2})
    reset = ("--reset-offsets", "--group", "moved", "--topic", "orders:0", "--dry-run")
    high = run(broker, *reset, "--to-offset", "100")
    assert high.stderr == (
        "New offset (100) is higher than latest offset for topic partition orders-0. Value will be set to 5\n"
    )
    assert lines(high)[-1] == "moved orders 0 5"
    assert "New offset (-98) is lower than earliest" in run(broker, *reset, "--shift-by", "-100").stderr
    late = run(broker, "--reset-offsets", "--group", "moved", "--topic", "empty", "--dry-run", "--by-duration", "PT1H")
    assert "\nWarn: Partition 0 from topic empty is empty. Falling back to latest known offset.\n" in late.stdout


def test_groups_and_offsets_are_deleted(broker: Broker) -> None:
    for name in ("gone-1", "gone-2"):
        commit(broker.bootstrap_servers, name, {("orders", 0): 2})
    deleted = run(broker, "--delete-offsets", "--group", "gone-1", "--topic", "orders:0", "--topic", "nowhere")
    assert lines(deleted) == [
        "Request succeeded for deleting offsets from group gone-1.",
        "",
        "TOPIC PARTITION STATUS",
        "nowhere - Error: org.apache.kafka.common.errors.UnknownTopicOrPartitionException: "
        "This server does not host this topic-partition.",
        "orders 0 Successful",
    ]
    missing = run(broker, "--delete-offsets", "--group", "nobody", "--topic", "orders:0")
    assert lines(missing)[1] == "Error: The group id does not exist."
    mixed = run(broker, "--delete", "--group", "gone-2", "--group", "nobody")
    assert mixed.stdout == (
        "\nError: Deletion of some consumer groups failed:\n"
        "* Group 'nobody' could not be deleted due to: "
        "org.apache.kafka.common.errors.GroupIdNotFoundException: The group id does not exist.\n"
        "\nThese consumer groups were deleted successfully: 'gone-2'\n"
    )
    commit(broker.bootstrap_servers, "gone-3", {("orders", 0): 2})
    done = run(broker, "--delete", "--group", "gone-3")
    assert done.stdout == "Deletion of requested consumer groups ('gone-3') was successful.\n"


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (
            ["--describe", "--group", "nobody"],
            "org.apache.kafka.common.errors.GroupIdNotFoundException: Group nobody not found.",
        ),
        (["--topic", "nowhere", "--to-latest"], "This server does not host this topic-partition."),
        (["--topic", "orders:9", "--to-latest"], 'The partitions "orders-9" do not exist'),
        (["--topic", "orders", "--to-offset", "x"], "Cannot parse argument 'x' of option to-offset"),
        (["--topic", "orders", "--by-duration", "soon"], "Text cannot be parsed to a Duration"),
        (
            ["--topic", "orders", "--to-datetime", "2020-01-01T00:00"],
            'java.text.ParseException: Unparseable date: "2020-01-01T00:00Z"',
        ),
    ],
)
def test_what_fails_is_said_on_the_standard_output_and_ends_with_0(
    broker: Broker, arguments: list[str], problem: str
) -> None:
    if "--describe" not in arguments:
        arguments = ["--reset-offsets", "--group", "failing", "--dry-run", *arguments]
    result = run(broker, *arguments)
    said = f"\nError: Executing consumer group command failed due to {problem}\n"
    assert (result.exit_code, result.stdout) == (0, said)


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["--list"], 'Missing required argument "[bootstrap-server]"'),
        (["-s"], "Command must include exactly one action: --list, --describe, --delete, --reset-offsets, "),
        (["-s", "--list", "--delete", "--all-groups"], "Command must include exactly one action: "),
        (["-s", "--describe"], "Option [describe] takes one of these options: [all-groups], [group]"),
        (["-s", "--delete"], "Option [delete] takes one of these options: [all-groups], [group]"),
        (
            ["-s", "--describe", "--group", "g", "--members", "--state"],
            "Option [describe] takes at most one of these options: [members], [offsets], [state]",
        ),
        (
            ["-s", "--describe", "--group", "g", "--state", "Empty"],
            "Option [describe] does not take a value for [state]",
        ),
        (["-s", "--members"], "Option(s) [members] are unavailable given other options on the command line"),
        (["-s", "--list", "--group", "g"], 'Option "[group]" can\'t be used with option "[list]"'),
        (
            ["-s", "--describe", "--group", "g", "--topic", "t"],
            'Option "[topic]" can\'t be used with option "[describe]"',
        ),
        (
            ["-s", "--delete-offsets", "--group", "g"],
            "Option [delete-offsets] takes the following options: [group], [topic]",
        ),
        (
            ["-s", "--delete", "--group", "g", "--topic", "t"],
            "The consumer does not support topic-specific offset deletion from a consumer group.",
        ),
        (
            ["-s", "--reset-offsets", "--group", "g", "--to-latest", "--to-offset", "1", "--dry-run"],
            'Option "[to-offset]" can\'t be used with option "[to-latest]"',
        ),
        (
            ["-s", "--reset-offsets", "--group", "g", "--execute", "--dry-run"],
            "Option [reset-offsets] only accepts one of [execute] and [dry-run]",
        ),
        (["-s", "--list", "--state", "odd"], "Invalid state list 'odd'. Valid states are: "),
        (["-s", "--list", "--type", "share"], "Invalid types list 'share'. Valid types are: "),
        (
            ["-s", "--reset-offsets", "--group", "g", "--to-latest", "--dry-run"],
            "One of the reset scopes should be defined: --all-topics, --topic.",
        ),
        (
            ["-s", "--reset-offsets", "--group", "g", "--topic", "orders", "--dry-run"],
            "Option '[reset-offsets]' requires one of the following scenarios: ",
        ),
        (
            ["-s", "--reset-offsets", "--group", "g", "--topic", "orders:x", "--to-latest", "--dry-run"],
            "Invalid partition 'x' specified in topic arg 'orders:x''",
        ),
        (
            ["-s", "--reset-offsets", "--group", "g", "--topic", "orders:0", "--shift-by", "1", "--dry-run"],
            "Cannot shift offset for partition orders-0 since there is no current committed offset",
        ),
    ],
)
def test_options_that_do_not_go_together_are_refused_with_the_help(
    broker: Broker, arguments: list[str], problem: str
) -> None:
    server = ["--bootstrap-server", broker.bootstrap_servers]
    result = tool(*(server if arguments[0] == "-s" else []), *(each for each in arguments if each != "-s"))
    assert result.exit_code == 1
    assert result.stderr.startswith(problem), result.stderr
    assert "--reset-offsets" in result.stderr


def test_a_regular_expression_is_judged_without_a_cluster() -> None:
    assert tool("--validate-regex", "a.*").stdout == "The regular expression `a.*` is valid.\n"
    assert tool("--validate-regex", "a(").stdout == "The regular expression `a(` is invalid: missing closing ).\n"


def test_times_are_read_as_kafka_reads_them() -> None:
    assert parse_datetime_ms("1970-01-02T00:00:00.005") == 86_400_005
    assert parse_datetime_ms("1970-01-02T00:00:00.000+01:00") == 82_800_000
    assert parse_datetime_ms("1970-01-02T00:00:00.000-01") == 90_000_000
    for text in ("1970-01-02", "1970-01-02T00:00:00", "1970-13-02T00:00:00.000", "1970-01-02T25:00:00.000Z"):
        with pytest.raises(ToolProblem, match="ParseException"):
            parse_datetime_ms(text)
