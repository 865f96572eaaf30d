"""`barnabas acls` against a node: looking, changing, explaining, testing, auditing."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from barnabas.testing import Broker
from tests.client.admin.guarded import guarded_broker
from tests.command_line import Command

WITH_ACLS = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
}


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker({"orders": 1, "stock": 1}, config=WITH_ACLS) as running:
        yield running


run = Command("acls")
rows = run.rows
offline = partial(run, None)


def create(broker: Broker, *arguments: object) -> None:
    run(broker, "create", *arguments, code=0)


@pytest.fixture(scope="module")
def some(broker: Broker) -> Broker:
    """A node where alice reads orders, everyone describes what begins with or, and eve is kept out from one address."""
    create(broker, "--allow", "alice", "--operation", "read", "--resource", "topic:orders")
    create(broker, "--allow", "User:*", "--operation", "describe", "--resource", "topic:or", "--prefixed")
    create(broker, "--deny", "eve", "--operation", "all", "--resource", "topic:orders", "--host", "10.0.0.1")
    return broker


def test_entries_are_created_once_for_each_combination(broker: Broker) -> None:
    options = ["--allow", "c1", "--allow", "c2", "--operation", "read", "--operation", "write", "--resource", "topic:c"]
    first = run(broker, "create", *options, "-o", "json")
    assert len(json.loads(first.stdout)) == 4
    assert "create: ALLOW User:c1 to READ topic:c\n" in first.stderr
    again = run(broker, "create", *options, "-o", "json")
    assert (again.exit_code, json.loads(again.stdout)) == (0, [])
    assert "exists already: ALLOW User:c1 to READ topic:c\n" in again.stderr


def test_a_dry_run_creates_nothing(broker: Broker) -> None:
    result = run(broker, "create", "--allow", "dry", "--operation", "read", "--resource", "topic:dry", "--dry-run")
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr == "would create: ALLOW User:dry to READ topic:dry\n"
    (row,) = rows(broker, "create", "--allow", "dry", "--operation", "read", "--resource", "topic:dry", "--dry-run")
    assert (row["principal"], row["resourceName"], row["error"]) == ("User:dry", "dry", None)
    assert rows(broker, "list", "--principal", "dry") == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--operation", "read", "--resource", "topic:a"], "Give at least one principal with --allow or --deny."),
        (["--allow", "a", "--operation", "write", "--resource", "group:g"], "WRITE is not an operation of a group"),
        (["--allow", "a", "--operation", "raed", "--resource", "topic:a"], "did you mean READ?"),
        (["--allow", "a", "--operation", "read", "--resource", "orders"], "expected TYPE:NAME, as in topic:orders"),
        (["--allow", "a", "--operation", "read", "--resource", "topic:"], "the name is missing"),
        (["--allow", ":", "--operation", "read", "--resource", "topic:a"], "expected TYPE:NAME, as in User:alice"),
        (
            ["--allow", "a", "--operation", "alter", "--resource", "cluster:mine"],
            "the only name of the cluster is kafka-cluster",
        ),
    ],
)
def test_what_cannot_be_created_is_refused_with_what_could(broker: Broker, arguments: list[str], message: str) -> None:
    result = run(broker, "create", *arguments)
    assert result.exit_code == 2
    assert message in result.stderr


def test_lists_are_selected_by_every_field(some: Broker) -> None:
    alice = {
        "resourceType": "TOPIC",
        "resourceName": "orders",
        "patternType": "LITERAL",
        "principal": "User:alice",
        "host": "*",
        "operation": "READ",
        "permissionType": "ALLOW",
    }
    assert rows(some, "list", "--principal", "alice") == [alice]
    assert rows(some, "list", "--resource", "topic:orders", "--operation", "read") == [alice]
    assert len(rows(some, "list", "--resource", "topic:orders", "--pattern", "match")) == 3
    assert len(rows(some, "list", "--resource", "topic", "--host", "10.0.0.1", "--permission", "deny")) == 1
    assert [each["resourceName"] for each in rows(some, "list", "--pattern", "prefixed")] == ["or"]
    assert rows(some, "list", "--resource", "transactional-id") == []


def test_entries_are_shown_by_principal_and_by_resource(some: Broker) -> None:
    create(some, "--allow", "grouped", "--operation", "read", "--operation", "write", "--resource", "topic:stock")
    (grouped, everyone) = reversed(rows(some, "by-principal", "grouped"))
    assert (grouped["operations"], everyone["principal"]) == (["READ", "WRITE"], "User:*")
    principals = [each["principal"] for each in rows(some, "by-resource", "topic:orders")]
    assert principals == ["User:*", "User:alice", "User:eve"]
    assert {"orders", "stock", "or"} <= {each["resourceName"] for each in rows(some, "by-resource")}
    assert "PRINCIPAL" in run(some, "by-principal").stdout.splitlines()[0]


def test_what_will_be_deleted_is_shown_and_asked_about(broker: Broker) -> None:
    create(broker, "--allow", "gone", "--operation", "read", "--operation", "write", "--resource", "topic:gone")
    asked = run(broker, "delete", "--principal", "gone")
    assert asked.exit_code == 1
    assert "delete: ALLOW User:gone to READ topic:gone\n" in asked.stderr
    assert "Delete these 2 ACLs?" in asked.stderr
    dry = run(broker, "delete", "--principal", "gone", "--dry-run")
    assert (dry.exit_code, dry.stdout, dry.stderr.count("would delete: ")) == (0, "", 2)
    planned = rows(broker, "delete", "--principal", "gone", "--dry-run")
    assert [(each["operation"], each["error"]) for each in planned] == [("READ", None), ("WRITE", None)]
    assert len(rows(broker, "delete", "--principal", "gone", "--operation", "write", "--yes")) == 1
    assert [each["operation"] for each in rows(broker, "list", "--principal", "gone")] == ["READ"]


def test_deleting_needs_a_selection_and_something_selected(broker: Broker) -> None:
    assert "Select the ACLs to delete" in run(broker, "delete", "--yes").stderr
    missing = run(broker, "delete", "--principal", "somebody-else", "--yes")
    assert (missing.exit_code, missing.stderr.splitlines()[0]) == (1, "Error: no ACL matches the options")


def test_access_to_a_prefix_is_explained_for_all_names_and_for_the_topics_that_exist() -> None:
    with Broker({"pii-orders": 1, "pii-health-lab": 1, "stock": 1}, config=WITH_ACLS) as broker:
        ask = partial(run, broker, "explain", "alice", "read", "topic:pii-", "--prefixed")
        none = ask()
        assert none.exit_code == 2
        assert "is allowed to READ none of the topics whose names begin with pii-" in none.stdout
        assert "topics that exist: 0 allowed, 2 denied" in none.stdout
        create(broker, "--allow", "alice", "--operation", "read", "--resource", "topic:pii-", "--prefixed")
        every = ask("-o", "json", code=0).json
        assert (every["allowed"], len(every["regions"])) == ("all", 1)
        create(broker, "--deny", "User:*", "--operation", "read", "--resource", "topic:pii-health-", "--prefixed")
        some = ask("-o", "json", code=2).json
        assert some["allowed"] == "some"
        assert [(each["resourceName"], each["decision"]) for each in some["regions"]] == [
            ("pii-", "allowed"),
            ("pii-health-", "denied"),
        ]
        denied = "DENY User:* to READ topic:pii-health- (PREFIXED)"
        assert [(each["name"], each["decision"]) for each in some["existing"]] == [
            ("pii-health-lab", "denied"),
            ("pii-orders", "allowed"),
        ]
        assert some["existing"][0]["decidedBy"] == denied
        lines = ask(code=2).stdout.splitlines()
        assert lines[0] == "User:alice is allowed to READ some, not all of the topics whose names begin with pii-"
        assert lines[2].startswith("pii-*, other than below  allowed")
        assert lines[3].split(maxsplit=2) == ["pii-health-*", "denied", denied]


def test_what_is_allowed_is_explained(some: Broker) -> None:
    result = run(some, "explain", "alice", "read", "topic:orders")
    assert result.exit_code == 0
    assert "decision:  allowed\n" in result.stdout
    assert "decidedBy: ALLOW User:alice to READ topic:orders\n" in result.stdout
    assert "super.users" in result.stderr


def test_what_is_denied_ends_with_2_and_names_the_entry(some: Broker) -> None:
    result = run(some, "explain", "eve", "describe", "topic:orders", "--host", "10.0.0.1", "-o", "json")
    assert result.exit_code == 2
    found = json.loads(result.stdout)
    assert (found["decision"], found["reason"]) == ("denied", "an entry denies it")
    assert found["decidedBy"] == "DENY User:eve from 10.0.0.1 to ALL topic:orders"
    mismatches = {each["principal"]: each["mismatch"] for each in found["entries"]}
    assert mismatches == {"User:alice": "another principal", "User:eve": None, "User:*": None}


def test_what_no_entry_is_about_is_denied_unless_settings_say_otherwise(some: Broker) -> None:
    assert "the resource has no entries" in run(some, "explain", "eve", "read", "group:none").stdout
    assert run(some, "explain", "eve", "read", "group:none", "--allow-everyone-if-no-acl-found").exit_code == 0
    assert run(some, "explain", "root", "read", "group:none", "--super-user", "root").exit_code == 0


def test_an_operation_that_the_resource_does_not_have_is_no_verdict(some: Broker) -> None:
    for arguments in (["eve", "write", "group:g"], ["eve", "raed", "topic:a"], ["eve", "read", "orders"]):
        assert run(some, "explain", *arguments).exit_code == 1


CLUSTER = """\
topics: {orders: {}}
acls:
  - {principal: User:billing, operations: [READ, DESCRIBE], resource: topic:orders}
  - {principal: User:billing, operation: WRITE, resource: topic:orders, state: absent}
  - {principal: User:billing, operation: READ, resource: topic:lost}
"""
CASES = """\
superUsers: [User:root]
cases:
  - {principal: User:billing, resource: topic:orders, may: [READ, DESCRIBE], mayNot: WRITE, description: invoices}
  - {principal: User:root, resource: [topic:orders, cluster], may: ALTER}
"""


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    (tmp_path / "cluster.yaml").write_text(CLUSTER)
    (tmp_path / "cases.yaml").write_text(CASES)
    return tmp_path / "cluster.yaml", tmp_path / "cases.yaml"


def test_cases_are_tested_against_a_declared_cluster_without_any_other(files: tuple[Path, Path]) -> None:
    cluster, cases = files
    result = offline("test", "-f", cases, "--declared", cluster, "-o", "json")
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert [each["result"] for each in found] == ["ok"] * 5
    assert found[0]["decidedBy"] == "ALLOW User:billing to READ topic:orders"
    assert (found[3]["decidedBy"], found[3]["line"]) == ("the principal is a super user", 4)
    assert "5 cases, all passed" in result.stderr


def test_a_case_that_fails_ends_with_2(some: Broker, files: tuple[Path, Path]) -> None:
    result = run(some, "test", "-f", files[1], "-o", "json")
    assert result.exit_code == 2
    failed = [each for each in json.loads(result.stdout) if each["result"] == "FAILED"]
    assert [(each["operation"], each["expected"], each["actual"]) for each in failed] == [("READ", "allowed", "denied")]
    assert "5 cases, 1 failed" in result.stderr


def test_a_declared_cluster_is_explained(files: tuple[Path, Path]) -> None:
    assert offline("explain", "billing", "read", "topic:orders", "-f", files[0]).exit_code == 0
    assert offline("explain", "billing", "write", "topic:orders", "-f", files[0]).exit_code == 2


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("cases: [", ":2:1: this is not YAML"),
        ("", ":1:1: the file is empty: expected cases"),
        ("cases:\n- {principal: a, resource: topic:x, may: READ}", ":2:15: case: principal: expected TYPE:NAME"),
        ("cases:\n- {principal: User:a, resource: topic:x}", ":2:3: case: expected may, mayNot or both"),
        (
            "cases:\n- {principal: User:a, resource: topic:x, may: FLY}",
            ":2:47: case: may: 'FLY' is not a valid operation",
        ),
        ("cases: []\nallowEveryoneIfNoAclFound: perhaps", ":2:28: allowEveryoneIfNoAclFound: expected true or false"),
    ],
)
def test_cases_that_are_not_understood_are_named_by_line(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "cases.yaml"
    path.write_text(text)
    result = offline("test", "-f", path)
    assert result.exit_code == 1
    assert f"Error: {path}{message}" in result.stderr


def test_an_audit_knows_which_topics_and_groups_there_are(some: Broker) -> None:
    create(some, "--allow", "audited", "--operation", "read", "--resource", "topic:lost", "--resource", "group:lost")
    found = {
        (each["finding"], each["entry"]): each["message"] for each in rows(some, "audit") if "audited" in each["entry"]
    }
    assert found == {
        ("no-such-resource", "ALLOW User:audited to READ topic:lost"): "there is no topic of this name",
        ("no-such-resource", "ALLOW User:audited to READ group:lost"): "there is no group of this name",
    }
    assert run(some, "audit", "--exit-code").exit_code == 2


def test_a_file_is_audited_by_its_own_topics(files: tuple[Path, Path]) -> None:
    result = offline("audit", "-f", files[0], "-o", "json", "--exit-code")
    assert result.exit_code == 2
    assert [(each["finding"], each["entry"]) for each in json.loads(result.stdout)] == [
        ("shadowed", "ALLOW User:billing to DESCRIBE topic:orders"),
        ("no-such-resource", "ALLOW User:billing to READ topic:lost"),
    ]


def test_a_cluster_without_an_authorizer_says_what_that_means() -> None:
    with Broker() as broker:
        result = run(broker, "list")
    assert result.exit_code == 1
    assert result.stderr.startswith("Error: SECURITY_DISABLED: ")
    assert "Try: set authorizer.class.name" in result.stderr


def test_whoever_may_not_see_acls_is_told_so() -> None:
    with guarded_broker() as broker:
        for command in (["list"], ["explain", "a", "read", "topic:a"], ["audit"], ["delete", "--principal", "a", "-y"]):
            result = run(broker, *command)
            assert result.exit_code == 1
            assert "CLUSTER_AUTHORIZATION_FAILED" in result.stderr


def test_a_refused_connection_is_a_failure() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{unused.getsockname()[1]}"
    result = offline("list", "-b", address, "-X", "default.api.timeout.ms=300")
    assert result.exit_code == 1
    assert result.stderr.startswith(f"Error: {address} ")
