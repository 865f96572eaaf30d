"""The index and the decisions over it, against the plainest way to do the same: looking at every entry."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.security.acl import AclEntry, AclOperation, AclPermissionType, PatternType, ResourceType
from barnabas.security.acl_index import AclIndex
from barnabas.security.authorizer import AuthorizerSettings, authorize
from barnabas.security.principal import parse_principal

names = st.one_of(st.just("*"), st.text("ab*é", min_size=1, max_size=5))
users = st.sampled_from(["User:a", "User:b", "User:*", "Group:a"])
types = st.sampled_from([ResourceType.TOPIC, ResourceType.GROUP])
operations = st.sampled_from([AclOperation.READ, AclOperation.DESCRIBE, AclOperation.ALL])
permissions = st.sampled_from([AclPermissionType.ALLOW, AclPermissionType.ALLOW, AclPermissionType.DENY])
patterns = st.sampled_from([PatternType.LITERAL, PatternType.PREFIXED])
entries = st.builds(AclEntry, types, names, patterns, users, st.sampled_from(["*", "h1"]), operations, permissions)
entry_sets = st.sets(entries, max_size=30)
few = st.builds(AclEntry, types, st.just("a"), patterns, users, st.just("*"), operations, permissions)
entry_lists = st.lists(st.one_of(entries, few), max_size=30)


def naive(all_entries: set[AclEntry], everyone: bool, user: str, host: str, operation: AclOperation, name: str) -> bool:
    on_topic = {e for e in all_entries if e.resource_type == ResourceType.TOPIC}
    prefixed = {e for e in on_topic if e.pattern_type == PatternType.PREFIXED and name.startswith(e.resource_name)}
    literal = {e for e in on_topic if e.pattern_type == PatternType.LITERAL and e.resource_name in (name, "*")}
    if not prefixed | literal:
        return everyone
    mine = {e for e in prefixed | literal if e.principal in (user, "User:*") and e.host in (host, "*")}
    exact = {e for e in mine if e.operation in (operation, AclOperation.ALL)}
    implying = {e for e in mine if operation == AclOperation.DESCRIBE and e.operation == AclOperation.READ}
    allowed = any(e.permission == AclPermissionType.ALLOW for e in exact | implying)
    return allowed and not any(e.permission == AclPermissionType.DENY for e in exact)


@given(entry_sets, st.booleans(), users, st.sampled_from(["h1", "h2"]), operations, names)
def test_a_decision_is_that_of_looking_at_every_entry(
    all_entries: set[AclEntry], everyone: bool, user: str, host: str, operation: AclOperation, name: str
) -> None:
    settings = AuthorizerSettings(enabled=True, allow_everyone_if_no_acl_found=everyone)
    decision = authorize(
        AclIndex(all_entries), settings, parse_principal(user), host, operation, ResourceType.TOPIC, name
    )
    assert decision.allowed == naive(all_entries, everyone, user, host, operation, name)


@given(entry_lists, entry_lists, entry_lists, types, names)
def test_an_updated_index_is_the_index_of_what_is_left_and_what_came(
    before: list[AclEntry], removed: list[AclEntry], added: list[AclEntry], resource_type: ResourceType, name: str
) -> None:
    index = AclIndex(before)
    updated = index.updated(removed=removed, added=added)
    rest = Counter(before) - Counter(removed) + Counter(added)
    for found, expected in ((updated, rest), (index, Counter(before))):
        assert len(found) == expected.total()
        assert Counter(found) == expected
        assert all(entry in found for entry in expected)
        assert not any(entry in found for entry in set(removed) - set(expected))
        covering = found.covering(resource_type, name)
        assert all(covering)
        listed = [entry for by_principal in covering for of_user in by_principal.values() for entry in of_user]
        assert Counter(listed) == Counter(
            e for e in expected.elements() if e.resource_type == resource_type and e.covers(name)
        )


def test_patterns_come_longest_first_and_the_wildcard_last() -> None:
    order = [("abc", 3), ("abc", 4), ("ab", 4), ("a", 4), ("*", 3)]
    index = AclIndex(
        AclEntry(ResourceType.GROUP, name, PatternType(code), "User:a", "*", AclOperation.READ, AclPermissionType.ALLOW)
        for name, code in reversed([*order, ("b", 4), ("abcd", 4), ("ab", 3), ("*", 4)])
    )
    found = [next(iter(by_principal.values()))[0] for by_principal in index.covering(ResourceType.GROUP, "abc")]
    assert [(e.resource_name, int(e.pattern_type)) for e in found] == order


def test_an_entry_with_a_pattern_type_of_filters_is_not_indexed() -> None:
    entry = AclEntry(
        ResourceType.TOPIC, "x", PatternType.MATCH, "User:a", "*", AclOperation.READ, AclPermissionType.ALLOW
    )
    with pytest.raises(ValueError, match="MATCH"):
        AclIndex([entry])
