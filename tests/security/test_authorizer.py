from __future__ import annotations

from dataclasses import replace

import pytest

from barnabas.security.acl import CLUSTER_NAME, AclEntry, AclOperation, AclPermissionType, PatternType, ResourceType
from barnabas.security.acl_index import AclIndex
from barnabas.security.authorizer import (
    SUPPORTED_OPERATIONS,
    AuthorizerSettings,
    Decision,
    Reason,
    authorize,
    authorize_by_resource_type,
    authorized_operations,
    explain,
    parse_super_users,
)
from barnabas.security.principal import KafkaPrincipal, parse_principal

ALICE, BOB = KafkaPrincipal("User", "alice"), KafkaPrincipal("User", "bob")
HOST = "10.0.0.1"
ENABLED = AuthorizerSettings(enabled=True)
TOPIC, CLUSTER, GROUP = ResourceType.TOPIC, ResourceType.CLUSTER, ResourceType.GROUP
READ, WRITE, DESCRIBE, ALL = AclOperation.READ, AclOperation.WRITE, AclOperation.DESCRIBE, AclOperation.ALL


def entry(text: str, resource_type: ResourceType = TOPIC) -> AclEntry:
    """`allow User:alice 10.0.0.1 READ orders`; a name that ends in `...` is a prefix."""
    permission, principal, host, operation, name = text.split()
    prefix = name.removesuffix("...")
    pattern_type = PatternType.LITERAL if prefix == name else PatternType.PREFIXED
    return AclEntry(
        resource_type,
        prefix,
        pattern_type,
        principal,
        host,
        AclOperation[operation],
        AclPermissionType[permission.upper()],
    )


def decide(
    *texts: str,
    settings: AuthorizerSettings = ENABLED,
    principal: KafkaPrincipal = ALICE,
    operation: AclOperation = READ,
    name: str = "orders",
) -> Decision:
    return authorize(AclIndex(map(entry, texts)), settings, principal, HOST, operation, TOPIC, name)


@pytest.mark.parametrize(
    ("text", "allowed"),
    [
        ("allow User:alice * READ orders", True),
        ("allow User:alice 10.0.0.1 READ orders", True),
        ("allow User:alice 10.0.0.2 READ orders", False),
        ("allow User:alice * ALL orders", True),
        ("allow User:alice * WRITE orders", False),
        ("allow User:* * READ orders", True),
        ("allow Group:alice * READ orders", False),
        ("allow User:bob * READ orders", False),
        ("allow User:alice * READ *", True),
        ("allow User:alice * READ or...", True),
        ("allow User:alice * READ orders...", True),
        ("allow User:alice * READ orders.eu...", False),
        ("allow User:alice * READ or", False),
        ("allow User:alice * READ *...", False),
        ("deny User:alice * READ orders", False),
    ],
)
def test_one_entry_allows_only_what_it_says(text: str, allowed: bool) -> None:
    decision = decide(text)
    assert bool(decision) is allowed
    assert decision.entry == (entry(text) if allowed or text.startswith("deny") else None)


@pytest.mark.parametrize(
    "deny", ["deny User:* * ALL *", "deny User:alice * READ o...", "deny User:alice 10.0.0.1 READ orders"]
)
def test_an_entry_that_denies_wins_over_all_that_allow(deny: str) -> None:
    allows = ["allow User:alice * READ orders", "allow User:alice * READ orders...", "allow User:alice * ALL *"]
    assert decide(*allows, deny) == Decision(False, Reason.DENIED, entry(deny))


@pytest.mark.parametrize("operation", AclOperation)
def test_what_an_allowed_operation_implies_and_a_denied_one_does_not(operation: AclOperation) -> None:
    implied = {
        DESCRIBE: {AclOperation.READ, AclOperation.WRITE, AclOperation.DELETE, AclOperation.ALTER},
        AclOperation.DESCRIBE_CONFIGS: {AclOperation.ALTER_CONFIGS},
    }
    for granted in AclOperation:
        allowed = decide(f"allow User:alice * {granted.name} orders", operation=operation)
        assert bool(allowed) == (granted in {operation, ALL} | implied.get(operation, set()))
        denied = decide("allow User:alice * ALL *", f"deny User:alice * {granted.name} orders", operation=operation)
        assert bool(denied) == (granted not in {operation, ALL})


def test_a_super_user_may_do_what_is_denied() -> None:
    settings = replace(ENABLED, super_users=parse_super_users("User:bob; User:alice ;"))
    assert decide("deny User:* * ALL *", settings=settings) == Decision(True, Reason.SUPER_USER)


@pytest.mark.parametrize(
    ("text", "users"),
    [
        ("", set()),
        (" ; ;", set()),
        ("User:a;Group:b:c", {"User:a", "Group:b:c"}),
        ("User:CN=a, O=b ; User:c", {"User:CN=a, O=b", "User:c"}),
    ],
)
def test_super_users_are_separated_by_semicolons(text: str, users: set[str]) -> None:
    assert parse_super_users(text) == users


def test_a_super_user_without_a_type_is_refused() -> None:
    with pytest.raises(ValueError, match="principalType:principalName but got bob"):
        parse_super_users("User:alice;bob")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("allow User:bob * WRITE orders", Reason.NOT_ALLOWED),
        ("allow User:bob * WRITE o...", Reason.NOT_ALLOWED),
        ("allow User:bob * WRITE *", Reason.NOT_ALLOWED),
        ("allow User:bob * WRITE order", Reason.NO_ACL_FOUND),
        ("allow User:bob * WRITE orders....", Reason.NO_ACL_FOUND),
    ],
)
def test_everyone_is_allowed_only_while_no_entry_at_all_is_for_the_resource(text: str, reason: Reason) -> None:
    everyone = replace(ENABLED, allow_everyone_if_no_acl_found=True)
    assert decide(text, settings=everyone) == Decision(reason is Reason.NO_ACL_FOUND, reason)
    assert decide(text) == Decision(False, reason)


def test_entries_of_another_resource_type_are_not_for_the_resource() -> None:
    index = AclIndex([entry("allow User:alice * READ orders", GROUP)])
    assert authorize(index, ENABLED, ALICE, HOST, READ, TOPIC, "orders").reason is Reason.NO_ACL_FOUND


def test_without_an_authorizer_all_is_allowed_and_all_supported_operations_are_shown() -> None:
    off = AuthorizerSettings()
    index = AclIndex([entry("deny User:* * ALL *")])
    assert authorize(index, off, ALICE, HOST, READ, TOPIC, "x") == Decision(True, Reason.NO_AUTHORIZER)
    assert authorize_by_resource_type(index, off, ALICE, HOST, WRITE, TOPIC)
    assert authorized_operations(index, off, ALICE, HOST, TOPIC, "x") == 3576
    assert authorized_operations(index, off, ALICE, HOST, CLUSTER, CLUSTER_NAME) == 8096


def test_authorized_operations_are_the_bits_of_those_that_would_be_allowed() -> None:
    index = AclIndex([entry("allow User:alice * WRITE o..."), entry("allow User:* * ALTER_CONFIGS *")])
    expected = {WRITE, DESCRIBE, AclOperation.ALTER_CONFIGS, AclOperation.DESCRIBE_CONFIGS}
    assert authorized_operations(index, ENABLED, ALICE, HOST, TOPIC, "orders") == sum(1 << op for op in expected)
    assert authorized_operations(index, ENABLED, BOB, HOST, GROUP, "orders") == 0


def test_every_concrete_resource_type_has_supported_operations() -> None:
    assert set(SUPPORTED_OPERATIONS) == set(ResourceType) - {ResourceType.UNKNOWN, ResourceType.ANY}


@pytest.mark.parametrize(
    ("texts", "allowed"),
    [
        ([], False),
        (["allow User:alice * WRITE x"], True),
        (["allow User:alice * WRITE x..."], True),
        (["allow User:alice * WRITE *"], True),
        (["allow User:alice * WRITE x", "deny User:* * WRITE *"], False),
        (["allow User:alice * WRITE *", "deny User:* * WRITE *"], False),
        (["allow User:alice * WRITE x", "deny User:* * WRITE x"], False),
        (["allow User:alice * WRITE x...", "deny User:* * WRITE x"], True),
        (["allow User:alice * WRITE xy...", "deny User:* * ALL x..."], False),
        (["allow User:alice * WRITE xy", "deny User:* * WRITE xy..."], False),
        (["allow User:alice * WRITE x", "deny User:* * WRITE xy..."], True),
        (["allow User:alice * WRITE x", "deny User:bob * WRITE *"], True),
        (["allow User:alice * WRITE x", "deny User:alice 10.0.0.2 WRITE *"], True),
        (["allow User:alice * READ x"], False),
        (["allow User:alice * WRITE h...", "deny User:alice * WRITE hardcode"], True),
    ],
)
def test_a_resource_type_is_allowed_when_one_allowed_pattern_is_not_wholly_denied(
    texts: list[str], allowed: bool
) -> None:
    assert bool(authorize_by_resource_type(AclIndex(map(entry, texts)), ENABLED, ALICE, HOST, WRITE, TOPIC)) is allowed


@pytest.mark.parametrize(("name", "allowed"), [("hardcode", False), ("hard...", False), ("x", True)])
def test_whether_everyone_is_allowed_a_resource_type_is_asked_of_a_resource_called_hardcode(
    name: str, allowed: bool
) -> None:
    everyone = replace(ENABLED, allow_everyone_if_no_acl_found=True)
    index = AclIndex([entry(f"allow User:bob * WRITE {name}")])
    assert bool(authorize_by_resource_type(index, everyone, ALICE, HOST, WRITE, TOPIC)) is allowed


def test_an_explanation_lists_every_entry_for_the_resource_and_why_it_does_not_apply() -> None:
    texts = {
        "allow User:bob * READ orders": "another principal",
        "allow User:alice 10.0.0.2 READ orders": "another host",
        "deny User:alice * WRITE ord...": "another operation",
        "allow User:alice * ALL o...": None,
        "allow User:* * DESCRIBE *": "another operation",
    }
    others = [entry("deny User:alice * READ order"), entry("deny User:alice * READ orders", GROUP)]
    explanation = explain(AclIndex([*map(entry, texts), *others]), ENABLED, ALICE, HOST, READ, TOPIC, "orders")
    assert explanation.decision == Decision(True, Reason.ALLOWED, entry("allow User:alice * ALL o..."))
    assert {c.entry: c.mismatch for c in explanation.candidates} == {entry(text): why for text, why in texts.items()}


def test_a_user_called_star_is_everyone_but_a_group_called_star_is_not() -> None:
    assert decide("allow User:* * READ orders", principal=parse_principal("Group:x"))
    assert not decide("allow Group:* * READ orders", principal=parse_principal("Group:x"))
