"""`barnabas kafka-acls`: the lines and exit codes of Kafka's tool, about a node."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas.cli.kafka.kafka_acls.lines import Options, parse_principals, to_add
from barnabas.testing import Broker
from tests.command_line import Script

WITH_ACLS = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
}


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(config=WITH_ACLS) as running:
        yield running


run = Script("kafka-acls")


def test_adding_says_what_is_added_and_what_is_there(broker: Broker) -> None:
    pattern = "ResourcePattern(resourceType=TOPIC, name=added, patternType=LITERAL)"
    read = "(principal=User:bob, host=*, operation=READ, permissionType=ALLOW)"
    arguments = ("--add", "--allow-principal", "User:bob", "--operation", "Read", "--topic", "added")
    first = run(broker, *arguments)
    assert (first.exit_code, first.stdout) == (0, f"Adding ACLs for resource `{pattern}`: \n \t{read}\n\n")
    again = run(broker, *arguments)
    assert (again.exit_code, again.stdout) == (0, f"Acl (pattern={pattern}, entry={read}) already exists.\n")


def test_lists_are_by_resource_or_by_principal(broker: Broker) -> None:
    run(broker, "--add", "--allow-principal", "User:lil", "--consumer", "--topic", "l", "--group", "g")
    topic = (
        "Current ACLs for resource `ResourcePattern(resourceType=TOPIC, name=l, patternType=LITERAL)`:\n"
        "\t(principal=User:lil, host=*, operation=READ, permissionType=ALLOW)\n"
        "\t(principal=User:lil, host=*, operation=DESCRIBE, permissionType=ALLOW)\n\n"
    )
    group = (
        "Current ACLs for resource `ResourcePattern(resourceType=GROUP, name=g, patternType=LITERAL)`:\n"
        "\t(principal=User:lil, host=*, operation=READ, permissionType=ALLOW)\n\n"
    )
    assert run(broker, "--list", "--topic", "l").stdout == topic
    listed = run(broker, "--list", "--principal", "User:lil", "--principal", "User:nobody").stdout
    assert listed == f"ACLs for principal `User:lil`\n{topic}{group}ACLs for principal `User:nobody`\n"
    assert run(broker, "--list", "--topic", "none").stdout == ""


def test_removing_asks_unless_forced(broker: Broker) -> None:
    run(broker, "--add", "--allow-principal", "User:rem", "--topic", "r")
    pattern = "ResourcePattern(resourceType=TOPIC, name=r, patternType=LITERAL)"
    asked = run(broker, "--remove", "--topic", "r")
    assert asked.exit_code == 1
    assert asked.stdout.startswith(f"Are you sure you want to delete all ACLs for resource filter `{pattern}`? (y/n)\n")
    entry = "(principal=User:rem, host=*, operation=ALL, permissionType=ALLOW)"
    asked = run(broker, "--remove", "--topic", "r", "--allow-principal", "User:rem")
    assert asked.stdout.startswith(
        f"Are you sure you want to remove ACLs: \n \t{entry}\n from resource filter `{pattern}`? (y/n)\n"
    )
    assert "User:rem" in run(broker, "--list", "--topic", "r").stdout
    forced = run(broker, "--remove", "--topic", "r", "--force")
    assert (forced.exit_code, forced.stdout, run(broker, "--list", "--topic", "r").stdout) == (0, "", "")


def test_roles_have_the_entries_that_they_need() -> None:
    options = Options(
        topic=("t",), group=("g",), transactional_id=("x",), allow_principal=("User:a",), producer=True, consumer=True,
        idempotent=True,
    )  # fmt: skip
    found = {
        (pattern.resource_type.name, pattern.name): [entry.operation.name for entry in entries]
        for pattern, entries in to_add(options).items()
    }
    assert found == {
        ("TOPIC", "t"): ["READ", "WRITE", "CREATE", "DESCRIBE"],
        ("GROUP", "g"): ["READ"],
        ("CLUSTER", "kafka-cluster"): ["IDEMPOTENT_WRITE"],
        ("TRANSACTIONAL_ID", "x"): ["WRITE", "DESCRIBE"],
    }


def test_principals_stand_in_the_order_of_a_hash_table() -> None:
    assert parse_principals(["User:bob", " User:eve", "User:bob"]) == ["User:eve", "User:bob"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("--add --list", "Command must include exactly one action: --list, --add, --remove. "),
        ("--list --allow-principal User:a", 'Option "[list]" can\'t be used with option "[allow-principal]"'),
        ("--add --producer --operation Read --topic t", 'Option "[producer]" can\'t be used with option "[operation]"'),
        ("--add --principal User:x --topic t", "The --principal option is only available if --list is set"),
        ("--add --producer", "With --producer you must specify a --topic"),
        ("--add --idempotent --topic t", "The --idempotent option is only available if --producer is set"),
        (
            "--add --consumer --topic t",
            "With --consumer you must specify a --topic and a --group and no --cluster or --transactional-id option"
            " should be specified.",
        ),
        (
            "--add --topic t",
            "You must specify one of: --allow-principal, --deny-principal when trying to add ACLs.",
        ),
        (
            "--add --allow-principal User:a",
            "You must provide at least one resource: --topic <topic> or --cluster or --group <group> or"
            " --delegation-token <Delegation Token ID>",
        ),
        (
            "--add --allow-principal User:a --topic t --resource-pattern-type match",
            "A '--resource-pattern-type' value of 'MATCH' is not valid when adding acls.",
        ),
        (
            "--add --allow-principal User:a --group g --operation Write",
            "ResourceType GROUP only supports operations [ALL, READ, DELETE, DESCRIBE, DESCRIBE_CONFIGS, ALTER_CONFIGS]",
        ),
        (
            "--add --bootstrap-controller x:1",
            "Only one of --bootstrap-server or --bootstrap-controller must be specified",
        ),
    ],
)
def test_options_that_do_not_go_together_are_refused_in_the_same_words(
    broker: Broker, arguments: str, message: str
) -> None:
    result = run(broker, *arguments.split())
    assert (result.exit_code, result.stdout, result.stderr.splitlines()[0]) == (1, "", message)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            "--add --allow-principal bob --topic t",
            "expected a string in format principalType:principalName but got bob",
        ),
        (
            "--list --topic t --resource-pattern-type odd",
            "Cannot parse argument 'odd' of option resource-pattern-type",
        ),
    ],
)
def test_what_goes_wrong_is_said_on_the_standard_output(broker: Broker, arguments: str, message: str) -> None:
    result = run(broker, *arguments.split())
    assert (result.exit_code, result.stdout) == (1, f"Error while executing ACL command: {message}\n")


def test_a_node_without_an_authorizer_is_named_as_by_kafka() -> None:
    with Broker() as broker:
        result = run(broker, "--list")
    assert (result.exit_code, result.stdout) == (
        1,
        "Error while executing ACL command: org.apache.kafka.common.errors.SecurityDisabledException:"
        " No Authorizer is configured on the broker\n",
    )


def test_a_node_that_is_not_there_is_named_as_by_kafka(tmp_path: Path) -> None:
    config = tmp_path / "client.properties"
    config.write_text("default.api.timeout.ms=300\nrequest.timeout.ms=200\n")
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{unused.getsockname()[1]}"
        result = run(address, "--command-config", config, "--list")
    assert (result.exit_code, result.stdout) == (
        1,
        "Error while executing ACL command: org.apache.kafka.common.errors.TimeoutException:"
        " Timed out waiting for a node assignment. Call: describeAcls\n",
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [("--list --odd", "odd is not a recognized option"), ("--add --topic", "Option topic requires an argument")],
)
def test_options_that_there_are_not_are_refused_in_the_same_words(broker: Broker, arguments: str, message: str) -> None:
    result = run(broker, *arguments.split())
    assert (result.exit_code, result.stderr.splitlines()[0]) == (1, message)


def test_controllers_are_asked_as_well(broker: Broker) -> None:
    run(broker, "--add", "--allow-principal", "User:ctl", "--topic", "ctl")
    controller = ("--bootstrap-controller", broker.listeners["CONTROLLER"])
    assert "User:ctl" in run(None, *controller, "--list", "--topic", "ctl").stdout
    removed = run(None, *controller, "--remove", "--topic", "ctl", "--force")
    assert (removed.exit_code, run(broker, "--list", "--topic", "ctl").stdout) == (0, "")


def test_without_arguments_it_shows_its_help_and_fails() -> None:
    result = run(None)
    assert result.exit_code == 1
    assert "--resource-pattern-type" in result.stderr
