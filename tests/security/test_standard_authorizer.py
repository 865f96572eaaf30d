"""What Apache Kafka 4.3.1's own StandardAuthorizer decided, case by case; AuthorizerCases.java wrote the data."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from barnabas.security.acl import (
    AclEntry,
    AclFilter,
    AclOperation,
    AclPermissionType,
    PatternType,
    ResourceType,
    host_text,
    validate_new,
)
from barnabas.security.acl_index import AclIndex
from barnabas.security.authorizer import (
    SUPPORTED_OPERATIONS,
    AuthorizerSettings,
    Reason,
    authorize,
    authorize_by_resource_type,
    parse_super_users,
)
from barnabas.security.principal import parse_principal

with gzip.open(Path(__file__).parent / "data/authorizer.jsonl.gz", "rt", encoding="utf-8") as lines:
    *WORLDS, FACTS = map(json.loads, lines)


def entry_of(row: list[Any]) -> AclEntry:
    resource_type, name, pattern_type, principal, host, operation, permission = row
    return AclEntry(
        ResourceType(resource_type),
        name,
        PatternType(pattern_type),
        principal,
        host,
        AclOperation(operation),
        AclPermissionType(permission),
    )


def settings_of(world: dict[str, Any]) -> AuthorizerSettings:
    return AuthorizerSettings(True, parse_super_users(world["super_users"]), world["everyone"])


@pytest.mark.parametrize("world", WORLDS)
def test_a_request_is_decided_as_by_kafka_and_by_the_same_entry(world: dict[str, Any]) -> None:
    entries = [entry_of(row) for row in world["acls"]]
    index, settings = AclIndex(entries), settings_of(world)
    for user, host, operation, resource_type, name, allowed, deciding in world["requests"]:
        decision = authorize(
            index,
            settings,
            parse_principal(user),
            host_text(host),
            AclOperation(operation),
            ResourceType(resource_type),
            name,
        )
        case = (user, host, operation, resource_type, name, decision)
        assert decision.allowed == bool(allowed), case
        if decision.reason is not Reason.SUPER_USER:
            assert decision.entry == (None if deciding < 0 else entries[deciding]), case


@pytest.mark.parametrize("world", WORLDS)
def test_a_resource_type_is_decided_as_by_kafka(world: dict[str, Any]) -> None:
    index, settings = AclIndex(entry_of(row) for row in world["acls"]), settings_of(world)
    for user, host, operation, resource_type, allowed in world["by_type"]:
        decision = authorize_by_resource_type(
            index,
            settings,
            parse_principal(user),
            host_text(host),
            AclOperation(operation),
            ResourceType(resource_type),
        )
        assert decision.allowed == bool(allowed), (user, host, operation, resource_type, decision)


@pytest.mark.parametrize("world", WORLDS)
def test_a_filter_selects_what_it_selects_in_kafka(world: dict[str, Any]) -> None:
    entries = [entry_of(row) for row in world["acls"]]
    for resource_type, name, pattern_type, principal, host, operation, permission, matching in world["filters"]:
        selects = AclFilter(
            ResourceType(resource_type),
            name,
            PatternType(pattern_type),
            principal,
            host,
            AclOperation(operation),
            AclPermissionType(permission),
        )
        assert [k for k, entry in enumerate(entries) if selects.matches(entry)] == matching, selects


def test_the_supported_operations_are_kafkas() -> None:
    ours = {str(int(key)): sorted(map(int, operations)) for key, operations in SUPPORTED_OPERATIONS.items()}
    assert ours == FACTS["supported"]


@pytest.mark.parametrize(("address", "text"), FACTS["hosts"].items())
def test_an_address_is_written_as_java_writes_it(address: str, text: str) -> None:
    assert host_text(address) == text


@pytest.mark.parametrize(("row", "message"), FACTS["validated"])
def test_a_new_entry_is_refused_for_the_same_fault_as_in_kafka(row: list[Any], message: str | None) -> None:
    error = validate_new(entry_of(row))
    assert (None if error is None else error.message) == message


def test_a_wildcard_is_for_every_name_even_where_kafka_takes_it_for_a_literal_prefix() -> None:
    # Kafka skips the entry for "*" when the resource's name begins with a star; denying with it would deny nothing there.
    index = AclIndex([entry_of([3, "*", 3, "User:alice", "*", 3, 3])])
    for name, in_kafka in FACTS["wildcard_allows"].items():
        allowed = authorize(
            index,
            AuthorizerSettings(True),
            parse_principal("User:alice"),
            "h",
            AclOperation.READ,
            ResourceType.GROUP,
            name,
        )
        assert allowed
        assert in_kafka == (name == "*" or not name.startswith("*"))
