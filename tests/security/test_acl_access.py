"""What follows from all ACLs together."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from barnabas.security.acl import AclEntry, AclOperation, AclPermissionType, PatternType, ResourceType
from barnabas.security.acl_access import Access, Resource, effective_access
from barnabas.security.acl_index import AclIndex
from barnabas.security.authorizer import SUPPORTED_OPERATIONS, AuthorizerSettings, authorize
from barnabas.security.principal import parse_principal

TOPIC, LITERAL, PREFIXED = ResourceType.TOPIC, PatternType.LITERAL, PatternType.PREFIXED
READ, WRITE, ALL = AclOperation.READ, AclOperation.WRITE, AclOperation.ALL
ALLOW, DENY = AclPermissionType.ALLOW, AclPermissionType.DENY
NOTHING: tuple[str, ...] = ()


def entry(name: str, principal: str = "User:a", operation: AclOperation = READ, **others: Any) -> AclEntry:
    return AclEntry(TOPIC, name, LITERAL, principal, "*", operation, ALLOW)._replace(**others)


def access(*entries: AclEntry, names: Iterable[str]) -> dict[str, list[Access]]:
    resources = [Resource(TOPIC, LITERAL, name) for name in names]
    return {resource.name: list(found) for resource, found in effective_access(AclIndex(entries), resources)}


def test_what_is_allowed_implies_more_and_what_is_denied_wins() -> None:
    found = access(
        entry("orders"),
        entry("or", "User:b", ALL, pattern_type=PREFIXED),
        entry("*", "User:b", AclOperation.DELETE, permission=DENY),
        names=["orders", "ordered", "stock"],
    )
    b_may = ("READ", "WRITE", "CREATE", "ALTER", "DESCRIBE", "DESCRIBE_CONFIGS", "ALTER_CONFIGS")
    assert found == {
        "orders": [("User:a", "*", ("READ", "DESCRIBE")), ("User:b", "*", b_may)],
        "ordered": [("User:b", "*", b_may)],
    }


def test_who_may_less_than_everyone_is_said_to_and_others_are_everyone() -> None:
    found = access(
        entry("orders", "User:*"),
        entry("orders", "User:bad", ALL, permission=DENY),
        entry("stock", "User:bad", ALL, permission=DENY),
        names=["orders", "stock"],
    )
    assert found == {"orders": [("User:*", "*", ("READ", "DESCRIBE")), ("User:bad", "*", NOTHING)]}


def test_a_host_is_named_where_it_may_something_else() -> None:
    found = access(
        entry("orders", host="10.0.0.1"),
        entry("stock"),
        entry("stock", host="10.0.0.1", permission=DENY),
        entry("stock", host="10.0.0.2"),
        names=["orders", "stock"],
    )
    assert found == {
        "orders": [("User:a", "10.0.0.1", ("READ", "DESCRIBE"))],
        "stock": [("User:a", "*", ("READ", "DESCRIBE")), ("User:a", "10.0.0.1", ("DESCRIBE",))],
    }


def test_a_pattern_stands_for_names_to_come_and_not_for_the_name_that_it_is() -> None:
    index = AclIndex([entry("pay"), entry("pay", "User:b", pattern_type=PREFIXED), entry("*", "User:c", WRITE)])
    patterns = [Resource(TOPIC, PREFIXED, "pay"), Resource(TOPIC, LITERAL, "*"), Resource(TOPIC, LITERAL, "pay")]
    found = {
        (each.pattern_type, each.name): [who for who, _, _ in some] for each, some in effective_access(index, patterns)
    }
    assert found == {
        (PREFIXED, "pay"): ["User:b", "User:c"],
        (LITERAL, "*"): ["User:c"],
        (LITERAL, "pay"): ["User:a", "User:b", "User:c"],
    }


ENTRIES = st.builds(
    AclEntry,
    st.just(TOPIC),
    st.sampled_from(["a", "ab", "abc", "*"]),
    st.sampled_from([LITERAL, PREFIXED]),
    st.sampled_from(["User:a", "User:b", "User:*"]),
    st.sampled_from(["*", "h1", "h2"]),
    st.sampled_from([READ, WRITE, ALL, AclOperation.DESCRIBE, AclOperation.ALTER_CONFIGS]),
    st.sampled_from([ALLOW, DENY]),
)


@given(st.lists(ENTRIES, max_size=8))
def test_answers_are_those_of_the_authorizer_for_everybody_everywhere(entries: list[AclEntry]) -> None:
    index, names = AclIndex(entries), ["a", "ab", "abd", "x"]
    found = access(*entries, names=names)
    for name in names:
        rows: dict[str, dict[str, tuple[str, ...]]] = {}
        for principal, host, operations in found.get(name, ()):
            rows.setdefault(principal, {})[host] = operations
        for user in ("User:a", "User:b", "User:other"):
            of_user = rows.get(user, rows.get("User:*", {}))
            for host in ("h1", "h2", "elsewhere"):
                allowed = of_user.get(host, of_user.get("*", NOTHING))
                for operation in SUPPORTED_OPERATIONS[TOPIC]:
                    settings = AuthorizerSettings(enabled=True)
                    decision = authorize(index, settings, parse_principal(user), host, operation, TOPIC, name)
                    assert (operation.name in allowed) == decision.allowed, (name, user, host, operation)
