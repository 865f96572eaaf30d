"""Access to a prefix, against the authorizer's answers for every short name."""

from __future__ import annotations

from itertools import product
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.security.acl import AclEntry, AclOperation, AclPermissionType, PatternType, ResourceType
from barnabas.security.acl_index import AclIndex
from barnabas.security.acl_prefix import Allowed, PrefixAccess, prefix_access
from barnabas.security.authorizer import AuthorizerSettings, Reason, authorize
from barnabas.security.principal import parse_principal

TOPIC, LITERAL, PREFIXED = ResourceType.TOPIC, PatternType.LITERAL, PatternType.PREFIXED
READ, ALLOW, DENY = AclOperation.READ, AclPermissionType.ALLOW, AclPermissionType.DENY
ALICE = parse_principal("User:alice")
SETTINGS = AuthorizerSettings(enabled=True)


def entry(name: str, pattern_type: PatternType = PREFIXED, **others: Any) -> AclEntry:
    return AclEntry(TOPIC, name, pattern_type, "User:alice", "*", READ, ALLOW)._replace(**others)


def ask(*entries: AclEntry, prefix: str = "pii-", settings: AuthorizerSettings = SETTINGS) -> PrefixAccess:
    return prefix_access(AclIndex(entries), settings, ALICE, "10.0.0.1", READ, TOPIC, prefix)


def regions(found: PrefixAccess) -> list[tuple[str, str, bool]]:
    return [(each.pattern_type.name, each.name, each.decision.allowed) for each in found.regions]


def test_without_entries_nothing_is_allowed_unless_everything_is() -> None:
    assert ask() == (Allowed.NONE, ask().regions)
    assert ask().regions[0].decision.reason is Reason.NO_ACL_FOUND
    assert ask(settings=AuthorizerSettings(True, frozenset(), True)).allowed is Allowed.ALL
    assert ask(settings=AuthorizerSettings(True, frozenset({"User:alice"}))).allowed is Allowed.ALL


def test_wider_entries_decide_for_all_names() -> None:
    for wide in (entry("*", LITERAL), entry("pii"), entry("pii-"), entry("*", LITERAL, principal="User:*")):
        found = ask(wide)
        assert (found.allowed, found.regions[0].decision.entry) == (Allowed.ALL, wide)
        assert ask(wide, entry("p", permission=DENY)).allowed is Allowed.NONE


def test_narrower_entries_make_it_some() -> None:
    found = ask(entry("pii-"), entry("pii-x", permission=DENY), entry("pii-xy", LITERAL), entry("other"))
    assert found.allowed is Allowed.SOME
    assert regions(found) == [("PREFIXED", "pii-", True), ("PREFIXED", "pii-x", False)]  # denying wins over pii-xy
    assert regions(ask(entry("pii-a", LITERAL))) == [("PREFIXED", "pii-", False), ("LITERAL", "pii-a", True)]
    assert ask(entry("pii-a", LITERAL), entry("pii-a", permission=DENY)).allowed is Allowed.NONE
    assert ask(entry("pii-", LITERAL)).allowed is Allowed.SOME
    assert ask(entry("pii-a", principal="User:bob")).allowed is Allowed.NONE
    assert ask(entry("pii-a", host="10.0.0.2")).allowed is Allowed.NONE


NAMES = [""] + ["".join(letters) for size in (1, 2, 3) for letters in product("ab", repeat=size)]
SAMPLED = ["".join(letters) for size in (1, 2, 3, 4) for letters in product("abc", repeat=size)]
"""Every pattern is shorter than these names, and none has a c: each region has a name among them."""

entries = st.builds(
    AclEntry,
    st.just(TOPIC),
    st.sampled_from([*NAMES[1:], "*"]),
    st.sampled_from([LITERAL, PREFIXED]),
    st.sampled_from(["User:alice", "User:*", "User:bob"]),
    st.sampled_from(["*", "10.0.0.1", "10.0.0.2"]),
    st.sampled_from([READ, AclOperation.WRITE, AclOperation.ALL, AclOperation.DESCRIBE]),
    st.sampled_from([ALLOW, DENY]),
).filter(lambda each: not (each.resource_name == "*" and each.pattern_type == PREFIXED))


@settings(max_examples=300, deadline=None)
@given(
    st.lists(entries, max_size=8), st.sampled_from(NAMES), st.booleans(), st.sampled_from([READ, AclOperation.DESCRIBE])
)
def test_the_answer_is_that_of_the_authorizer_for_every_name(
    some: list[AclEntry], prefix: str, allows_everyone: bool, operation: AclOperation
) -> None:
    index, having = AclIndex(some), AuthorizerSettings(True, frozenset(), allows_everyone)
    found = prefix_access(index, having, ALICE, "10.0.0.1", operation, TOPIC, prefix)
    answers = {
        name: authorize(index, having, ALICE, "10.0.0.1", operation, TOPIC, name).allowed
        for name in SAMPLED
        if name.startswith(prefix)
    }
    expected = Allowed.ALL if all(answers.values()) else Allowed.SOME if any(answers.values()) else Allowed.NONE
    assert found.allowed is expected
    for name, allowed in answers.items():
        around = max(
            (each for each in found.regions if each.covers(name)),
            key=lambda each: (len(each.name), each.pattern_type == LITERAL),
        )
        assert around.decision.allowed == allowed, name
