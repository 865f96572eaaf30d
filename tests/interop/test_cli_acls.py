"""ACLs of Apache Kafka through the client and the command line, and `kafka-acls` beside Kafka's own on the same node."""

from __future__ import annotations

import asyncio
import json
import re
import shlex
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any, TypeVar

import pytest
from tools.apache_kafka import OLD_VERSION, VERSION, ApacheKafka

from barnabas.client.admin.acls import Acls, only
from barnabas.client.admin.part import checked
from barnabas.client.cluster import Cluster
from barnabas.security.acl import AclEntry, AclFilter, AclOperation, AclPermissionType, PatternType, ResourceType
from tests.command_line import Command, Script
from tests.interop.conftest import jars
from tests.interop.side_by_side import WITH_ACLS

pytestmark = pytest.mark.interop

T = TypeVar("T")


@pytest.fixture(scope="module", params=[VERSION, OLD_VERSION])
def node(request: pytest.FixtureRequest) -> Iterator[ApacheKafka]:
    jars(request.param)
    with ApacheKafka(WITH_ACLS, version=request.param) as running:
        yield running


@pytest.fixture(autouse=True)
def without_entries(node: ApacheKafka) -> Iterator[None]:
    """The node is shared: whatever a test creates is gone after it."""
    yield
    restore(node, set())


def ask(node: ApacheKafka, question: Callable[[Acls], Coroutine[Any, Any, T]], by: str = "servers") -> T:
    addresses = {"servers": node.bootstrap, "controllers": node.controller}

    async def main() -> T:
        async with Cluster({f"bootstrap.{by}": addresses[by]}) as cluster:
            return await question(Acls(cluster))

    return asyncio.run(main())


def entry(name: str, **others: Any) -> AclEntry:
    made = AclEntry(
        ResourceType.TOPIC, name, PatternType.LITERAL, "User:alice", "*", AclOperation.READ, AclPermissionType.ALLOW
    )
    return made._replace(**others)


barnabas = Command()
kafka_acls = Script("kafka-acls")


@pytest.mark.parametrize("by", ["servers", "controllers"])
def test_the_client_makes_finds_and_removes_entries(node: ApacheKafka, by: str) -> None:
    made = [
        entry(f"{by}-a"),
        entry(f"{by}-b", pattern_type=PatternType.PREFIXED, permission=AclPermissionType.DENY, host="10.0.0.1"),
        entry(
            "kafka-cluster", resource_type=ResourceType.CLUSTER, operation=AclOperation.ALTER, principal=f"User:{by}"
        ),
    ]
    assert ask(node, lambda acls: acls.create_acls([*made, made[0]]), by) == dict.fromkeys(made)
    assert set(made) <= set(ask(node, lambda acls: acls.describe_acls(), by))
    covering = AclFilter(ResourceType.TOPIC, f"{by}-bc", PatternType.MATCH)
    assert ask(node, lambda acls: acls.describe_acls(covering), by) == [made[1]]
    gone = checked(ask(node, lambda acls: acls.delete_acls([only(each) for each in made]), by))
    assert list(gone.values()) == [[each] for each in made]
    wrong = entry("wrong", principal="nobody")
    result = ask(node, lambda acls: acls.create_acls([wrong]), by)[wrong]
    assert result is not None and "Could not parse principal" in str(result.message)


def test_the_commands_work_and_the_broker_decides_as_explained(node: ApacheKafka, tmp_path: Path) -> None:
    node.tool("kafka-topics", "--create", "--topic", "orders")
    create = ["acls", "create", "--operation", "read", "--resource", "topic:orders"]
    assert barnabas(node, *create, "--allow", "ANONYMOUS", "--allow", "alice").exit_code == 0
    assert barnabas(node, *create, "--deny", "eve", "--host", "10.0.0.1").exit_code == 0
    listed = json.loads(barnabas(node, "acls", "list", "--resource", "topic:orders", "-o", "json").stdout)
    assert [each["principal"] for each in listed] == ["User:ANONYMOUS", "User:alice", "User:eve"]
    assert barnabas(node, "acls", "explain", "alice", "describe", "topic:orders").exit_code == 0
    denied = barnabas(node, "acls", "explain", "eve", "read", "topic:orders", "--host", "10.0.0.1")
    assert denied.exit_code == 2
    assert "DENY User:eve from 10.0.0.1 to READ topic:orders" in denied.stdout
    cases = tmp_path / "cases.yaml"
    cases.write_text("cases: [{principal: User:alice, resource: topic:orders, may: READ, mayNot: WRITE}]")
    assert barnabas(node, "acls", "test", "-f", cases).exit_code == 0
    audited = json.loads(barnabas(node, "acls", "audit", "-o", "json").stdout)
    assert ("never-denies", "DENY User:eve from 10.0.0.1 to READ topic:orders") in [
        (each["finding"], each["entry"]) for each in audited
    ]
    deleted = barnabas(node, "acls", "delete", "--resource", "topic:orders", "--yes", "-o", "json")
    assert len(json.loads(deleted.stdout)) == 3
    assert barnabas(node, "acls", "list", "-o", "json").stdout == "[]\n"


# --- Kafka's own tool beside ours: each begins in the same state, and leaves the same one

COMMANDS = """
--list
--add --allow-principal User:bob --operation Read --operation DescribeConfigs --topic guarded --topic other
--add --allow-principal User:bob --operation Read --operation Write --topic guarded
--add --allow-principal User:bob --producer --idempotent --topic made --transactional-id tx
--add --allow-principal User:bob --allow-principal User:ann --consumer --topic made --group g
--add --allow-principal User:bob --consumer --producer --topic both --group g --cluster
--add --deny-principal User:eve --deny-host 10.0.0.1 --deny-host 10.0.0.2 --cluster
--add --allow-principal User:bob --resource-pattern-type prefixed --topic ma
--add --allow-principal User:bob --user-principal User:x --operation CreateTokens
--add --allow-principal User:bob --delegation-token abc --operation Describe
--list
--list --topic made --group g
--list --topic made --resource-pattern-type match
--list --topic ma --resource-pattern-type any
--list --principal User:bob --principal User:eve
--remove --allow-principal User:bob --operation Read --topic guarded --force
--remove --consumer --allow-principal User:ann --topic made --group g --force
--remove --topic made --resource-pattern-type match --force
--remove --cluster --force
--list
"""
REFUSED = """
--add --list
--add --allow-principal User:bob --topic t --resource-pattern-type any
--add --allow-principal User:bob --topic t --resource-pattern-type odd
--add --allow-principal bob --topic t
--add --operation Read --topic t
--add --allow-principal User:bob
--add --consumer --allow-principal User:bob --topic t
--list --allow-principal User:bob
--list --odd
--add --topic
--remove --topic other
"""


def entries(node: ApacheKafka) -> set[AclEntry]:
    return set(ask(node, lambda acls: acls.describe_acls()))


def restore(node: ApacheKafka, before: set[AclEntry]) -> None:
    now = entries(node)
    checked(ask(node, lambda acls: acls.create_acls(before - now)))
    checked(ask(node, lambda acls: acls.delete_acls([only(each) for each in now - before])))


def in_order(text: str) -> list[list[str]]:
    """Principals, and under each blocks, and entries in them, sorted: Kafka's order of those is another in every run.

    The first entry of those that are added has a space before it.
    """
    found: list[list[str]] = []
    for part in re.split("^(?=ACLs for principal)", text, flags=re.MULTILINE):
        first, blocks = part.split("\n", 1) if part.startswith("ACLs for principal") else ("", part)
        found.append(
            [first, *sorted("\n".join(sorted(map(str.strip, each.split("\n")))) for each in blocks.split("\n\n"))]
        )
    return found


@pytest.mark.parametrize("node", [VERSION], indirect=True)
def test_kafka_acls_prints_and_does_what_kafkas_own_does(node: ApacheKafka) -> None:
    for command in COMMANDS.strip().splitlines():
        before = entries(node)
        theirs = node.tool("kafka-acls", *shlex.split(command))
        after = entries(node)
        restore(node, before)
        ours = kafka_acls(node, *shlex.split(command))
        said = (theirs.returncode, in_order(theirs.stdout))
        assert (command, ours.exit_code, in_order(ours.stdout)) == (command, *said)
        assert (command, entries(node)) == (command, after)


@pytest.mark.parametrize("node", [VERSION], indirect=True)
def test_kafka_acls_refuses_in_the_same_words(node: ApacheKafka) -> None:
    for command in REFUSED.strip().splitlines():
        theirs = node.tool("kafka-acls", *shlex.split(command))
        ours = kafka_acls(node, *shlex.split(command))
        first = (theirs.stdout or theirs.stderr).splitlines()[0]
        assert (command, ours.exit_code, (ours.stdout or ours.stderr).splitlines()[0]) == (command, 1, first)
