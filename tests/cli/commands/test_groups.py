"""`barnabas groups` against a node: looking, resetting, deleting."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas.client.cluster import Cluster
from barnabas.security.acl import AclOperation, ResourceType
from barnabas.testing import Broker
from barnabas.wire.messages.create_acls import CreateAclsRequest
from tests.client.admin.group_scenes import commit, committed, fill, member
from tests.command_line import Command, Process

TOPICS = {"orders": 2, "stock": 1, "empty": 1}


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(TOPICS, config={"group.initial.rebalance.delay.ms": 0}) as running:
        fill(running.bootstrap_servers, "orders", 1, 4, age_s=600)
        yield running


@pytest.fixture(scope="module", autouse=True)
def last_ms(broker: Broker) -> int:
    """When the last of the ten records of orders-0 was written, by its timestamp."""
    return fill(broker.bootstrap_servers, "orders", 0, 10, age_s=600)


run = Command("groups")
rows = run.rows


def reset(broker: Broker, group: str, *arguments: object) -> dict[tuple[str, int], int]:
    """The new offsets, which are the group's."""
    found = rows(broker, "reset", group, *arguments, "--yes")
    assert [row["error"] for row in found] == [None] * len(found)
    new = {(row["topic"], row["partition"]): row["newOffset"] for row in found}
    assert new.items() <= committed(broker.bootstrap_servers, group).items()
    return new


# --- looking


def test_groups_are_listed_by_state_and_type(broker: Broker) -> None:
    commit(broker.bootstrap_servers, "listed", {("orders", 0): 1})
    row = {"groupId": "listed", "type": "Classic", "state": "Empty", "protocolType": None, "coordinatorId": 1}
    assert row in rows(broker, "list", "--state", "empty", "--type", "classic")
    assert row not in rows(broker, "list", "--state", "Stable")
    shown = run(broker, "list").stdout.splitlines()
    assert shown[0].split() == ["GROUP-ID", "TYPE", "STATE", "PROTOCOL-TYPE", "COORDINATOR-ID"]
    assert run(broker, "list", "--state", "nonsense").exit_code == 2


def test_watched_lag_has_a_trend_and_a_time_to_catch_up(broker: Broker) -> None:
    commit(broker.bootstrap_servers, "trend", {("orders", 0): 2})
    watching = ("groups", "describe", "trend", "--watch", 0.1, "-b", broker.bootstrap_servers)
    with Process(*watching, "-o", "jsonl") as process:
        first = json.loads(process.until("{"))
        assert (first["lag"], first["lagPerSecond"], first["catchUpMs"]) == (8, None, None)
        commit(broker.bootstrap_servers, "trend", {("orders", 0): 6})
        while (row := json.loads(process.until("{")))["lag"] == 8:
            pass
        assert (row["lag"], row["lagPerSecond"] < 0, row["catchUpMs"] > 0) == (4, True, True)
        assert row["catchUpMs"] == pytest.approx(-4000 / row["lagPerSecond"], rel=0.01)
        commit(broker.bootstrap_servers, "trend", {("orders", 0): 1})
        while (row := json.loads(process.until("{")))["lag"] == 4:
            pass
        assert (row["lag"], row["lagPerSecond"] > 0, row["catchUpMs"]) == (9, True, None)
    with Process(*watching) as process:
        assert "lag 9, coordinator" in process.until("trend: ")
        assert process.until("TOPIC").split()[6:8] == ["TREND", "CATCH-UP"]
        assert process.until("trend: ").endswith(", steady")
    assert "catchUpMs" not in rows(broker, "describe", "trend")[0]


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_members_and_what_they_have_are_shown(broker: Broker, protocol: str) -> None:
    group = f"members-{protocol}"
    with member(broker.bootstrap_servers, group, ["orders"], 2, group_protocol=protocol, client_id="me"):
        shown = rows(broker, "describe", group)
        assert [(row["partition"], row["currentOffset"], row["lag"]) for row in shown] == [
            (0, None, None),
            (1, None, None),
        ]
        assert {row["clientId"] for row in shown} == {"me"}
        (row,) = rows(broker, "members", group)
        assert (row["assignment"], row["partitions"]) == ([{"topic": "orders", "partitions": [0, 1]}], 2)
        (row,) = rows(broker, "state", group)
        assert (row["state"], row["members"], (row["groupEpoch"] is None)) == ("Stable", 1, protocol == "classic")
        assert (row["coordinatorId"], row["coordinator"]) == (1, f"1 ({broker.bootstrap_servers})")
        text = run(broker, "describe", group).stdout
        assert text.startswith(f"{group}: Stable, {protocol} by ")
        refused = run(broker, "reset", group, "--topic", "orders", "--to-latest", "--yes")
        assert refused.exit_code == 1
        assert f"Error: group {group}: is Stable, with 1 member" in refused.stderr
        assert "Try: stop the members of the group first" in refused.stderr
        (row,) = rows(broker, "remove-members", group, "--all", "--dry-run")
        assert row["error"] is None
        (row,) = rows(broker, "remove-members", group, "--member-id", row["memberId"], "--yes", "--reason", "test")
        assert row["error"] is None


def test_a_group_that_is_not_there_fails_and_others_are_shown(broker: Broker) -> None:
    commit(broker.bootstrap_servers, "shown", {("orders", 0): 1})
    result = run(broker, "describe", "nobody", "shown", "-o", "jsonl")
    assert result.exit_code == 1
    assert json.loads(result.stdout)["groupId"] == "shown"
    assert "Error: group nobody: GROUP_ID_NOT_FOUND: Group nobody not found." in result.stderr
    assert "Try: list groups with: barnabas groups list" in result.stderr


def test_groups_must_be_named(broker: Broker) -> None:
    assert run(broker, "describe").exit_code == 2
    assert run(broker, "describe", "--all", "one").exit_code == 2
    commit(broker.bootstrap_servers, "one-of-all", {("orders", 0): 1})
    assert "one-of-all" in {row["groupId"] for row in rows(broker, "state", "--all")}


# --- resetting


def test_a_reset_goes_by_each_rule(broker: Broker, last_ms: int, tmp_path: Path) -> None:
    commit(broker.bootstrap_servers, "resets", {("orders", 0): 5, ("orders", 1): 2})
    assert reset(broker, "resets", "--all-topics", "--to-earliest") == {("orders", 0): 0, ("orders", 1): 0}
    assert reset(broker, "resets", "--topic", "orders:0", "--to-latest") == {("orders", 0): 10}
    assert reset(broker, "resets", "--topic", "orders:0", "--shift-by", "-3") == {("orders", 0): 7}
    assert reset(broker, "resets", "--topic", "orders", "--to-offset", "2") == {("orders", 0): 2, ("orders", 1): 2}
    assert reset(broker, "resets", "--topic", "orders", "--to-current") == {("orders", 0): 2, ("orders", 1): 2}
    assert reset(broker, "resets", "--topic", "orders:0", "--to-datetime", last_ms - 3500) == {("orders", 0): 6}
    assert reset(broker, "resets", "--topic", "orders:1", "--to-datetime", "2020-01-01") == {("orders", 1): 0}
    assert reset(broker, "resets", "--topic", "orders:0", "--by-duration", "P1D") == {("orders", 0): 0}
    assert reset(broker, "resets", "--topic", "orders:0", "--by-duration", "30s") == {("orders", 0): 10}
    (tmp_path / "plan.csv").write_text("orders,0,9\nother-group,orders,1,3\nresets,orders,1,1\n")
    assert reset(broker, "resets", "--from-file", tmp_path / "plan.csv") == {("orders", 0): 9, ("orders", 1): 1}


def test_a_new_group_is_given_its_first_offsets(broker: Broker) -> None:
    assert reset(broker, "made-by-reset", "--topic", "empty", "--to-latest") == {("empty", 0): 0}


def test_a_dry_run_shows_old_and_new_and_changes_nothing(broker: Broker) -> None:
    commit(broker.bootstrap_servers, "dry", {("orders", 0): 5})
    result = run(broker, "reset", "dry", "--all-topics", "--to-offset", "99", "--dry-run", "-o", "json")
    (row,) = json.loads(result.stdout)
    assert (row["oldOffset"], row["newOffset"]) == (5, 10)
    assert "orders-0: offset 99 is after the last one; the nearest is 10" in result.stderr
    assert "would set the offset of dry in orders-0 from 5 to 10" in result.stderr
    assert committed(broker.bootstrap_servers, "dry") == {("orders", 0): 5}


def test_a_reset_asks_and_nobody_answers(broker: Broker) -> None:
    commit(broker.bootstrap_servers, "asks", {("orders", 0): 5})
    result = run(broker, "reset", "asks", "--all-topics", "--to-earliest")
    assert result.exit_code == 1
    assert (
        "Set 1 offset of group asks? This cannot be confirmed, because standard input is not a terminal"
        in result.stderr
    )
    assert committed(broker.bootstrap_servers, "asks") == {("orders", 0): 5}


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["--topic", "nowhere", "--to-latest"], 1, "topic nowhere: UNKNOWN_TOPIC_OR_PARTITION"),
        (["--topic", "orders:7", "--to-latest"], 1, "topic orders: it has partitions 0 to 1, not 7"),
        (["--topic", "orders:x", "--to-latest"], 2, "'orders:x': partitions are numbers"),
        (["--topic", "stock", "--shift-by", "1"], 1, "partition stock-0 since there is no current committed offset"),
        (["--topic", "orders"], 2, "Give exactly one of --to-earliest"),
        (["--topic", "orders", "--to-latest", "--to-earliest"], 2, "Give exactly one of --to-earliest"),
        (["--to-latest"], 2, "Give either --topic or --all-topics."),
        (["--topic", "orders", "--by-duration", "soon"], 2, "'soon' is not a duration"),
        (["--topic", "orders", "--to-datetime", "soon"], 2, "'soon' is not a time"),
        (["--topic", "orders", "--to-offset", "-1"], 2, "-1"),
    ],
)
def test_a_reset_that_cannot_be_is_refused(broker: Broker, arguments: list[str], code: int, says: str) -> None:
    commit(broker.bootstrap_servers, "refused", {("orders", 0): 5})
    result = run(broker, "reset", "refused", *arguments, "--yes")
    assert (result.exit_code, says in result.stderr) == (code, True), result.stderr
    assert committed(broker.bootstrap_servers, "refused") == {("orders", 0): 5}


def test_a_file_of_offsets_that_is_wrong_is_refused_with_its_line(broker: Broker, tmp_path: Path) -> None:
    (tmp_path / "plan.csv").write_text("orders,0,1\norders,one,1\n")
    result = run(broker, "reset", "filed", "--from-file", tmp_path / "plan.csv", "--yes")
    assert result.exit_code == 1
    assert "plan.csv: line 2: 'orders,one,1' is not [group,]topic,partition,offset" in result.stderr
    (tmp_path / "other.csv").write_text("others,orders,0,1\n")
    result = run(broker, "reset", "filed", "--from-file", tmp_path / "other.csv", "--yes")
    assert "other.csv: contains no offsets for group filed" in result.stderr


# --- deleting


def test_groups_are_deleted_after_a_dry_run(broker: Broker) -> None:
    commit(broker.bootstrap_servers, "deleted", {("orders", 0): 5})
    assert rows(broker, "delete", "deleted", "--dry-run") == [{"groupId": "deleted", "error": None, "message": None}]
    assert committed(broker.bootstrap_servers, "deleted") == {("orders", 0): 5}
    result = run(broker, "delete", "deleted", "nobody", "--yes", "-o", "tsv")
    assert result.exit_code == 1
    assert result.stdout == "deleted\t\t\nnobody\tGROUP_ID_NOT_FOUND\tThe group id does not exist.\n"
    assert committed(broker.bootstrap_servers, "deleted") == {}


def test_offsets_of_topics_are_deleted(broker: Broker) -> None:
    commit(broker.bootstrap_servers, "forgets", {("orders", 0): 5, ("orders", 1): 1, ("stock", 0): 0})
    (row,) = rows(broker, "delete-offsets", "forgets", "--topic", "orders:1", "--yes")
    assert (row["partition"], row["oldOffset"], row["error"]) == (1, 1, None)
    assert committed(broker.bootstrap_servers, "forgets") == {("orders", 0): 5, ("stock", 0): 0}
    assert len(rows(broker, "delete-offsets", "forgets", "--topic", "orders", "--topic", "stock", "--yes")) == 2
    result = run(broker, "delete-offsets", "forgets", "--topic", "orders", "--yes")
    assert (result.exit_code, "no committed offsets in orders" in result.stderr) == (1, True)


# --- what can go wrong


def test_a_refused_connection_is_said_without_a_traceback() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{unused.getsockname()[1]}"
    result = run(address, "list", "-X", "default.api.timeout.ms=300", code=1)
    assert result.stderr.startswith(f"Error: {address} (--bootstrap-server): ")


@pytest.fixture(scope="module")
def guarded() -> Iterator[Broker]:
    """A node whose client may do nothing with the group `secret`, and not read the topic `hidden`."""
    settings: dict[str, str | bool] = {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "allow.everyone.if.no.acl.found": True,
    }
    with Broker({"orders": 1, "hidden": 1}, config=settings) as running:
        fill(running.bootstrap_servers, "hidden", 0, 3)
        commit(running.bootstrap_servers, "secret", {("orders", 0): 0})
        commit(running.bootstrap_servers, "reader", {("hidden", 0): 1})
        asyncio.run(_allow_less(running.bootstrap_servers))
        yield running


def test_without_permission_the_group_and_the_error_are_named(guarded: Broker) -> None:
    for arguments in (["describe", "secret"], ["reset", "secret", "--topic", "orders", "--to-latest", "--yes"]):
        result = run(guarded, *arguments)
        assert result.exit_code == 1
        assert "Error: group secret: GROUP_AUTHORIZATION_FAILED" in result.stderr
        assert "Try: User:ANONYMOUS lacks the permission DESCRIBE on group secret" in result.stderr


def test_without_the_right_to_read_the_lag_in_time_is_not_known(guarded: Broker) -> None:
    (row,) = rows(guarded, "describe", "reader")
    assert (row["currentOffset"], row["logEndOffset"], row["lag"], row["lagMs"]) == (1, 3, 2, None)


async def _allow_less(address: str) -> None:
    allow, deny = 3, 2
    acls = [
        CreateAclsRequest.AclCreation(
            resource_type=resource,
            resource_name=name,
            resource_pattern_type=3,
            principal="User:ANONYMOUS",
            host="*",
            operation=operation,
            permission_type=permission,
        )
        for resource, name, operation, permission in (
            (ResourceType.GROUP, "secret", AclOperation.ALL, deny),
            (ResourceType.TOPIC, "hidden", AclOperation.DESCRIBE, allow),
        )
    ]
    async with Cluster({"bootstrap.servers": address}) as cluster:
        response = await cluster.call(CreateAclsRequest(creations=acls))
    assert not any(result.error_code for result in response.results)
