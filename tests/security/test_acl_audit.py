"""What is odd about ACLs."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas.security.acl import AclEntry, AclOperation, AclPermissionType, PatternType, ResourceType
from barnabas.security.acl_audit import Kind, Traces, audit, common_prefixes, covers_pattern, finding_text
from barnabas.security.acl_text import entry_text

READ, WRITE, DESCRIBE, ALL = AclOperation.READ, AclOperation.WRITE, AclOperation.DESCRIBE, AclOperation.ALL
DENY = AclPermissionType.DENY


def topic(name: str, operation: AclOperation = READ, prefixed: bool = False, **others: Any) -> AclEntry:
    pattern = PatternType.PREFIXED if prefixed else PatternType.LITERAL
    made = AclEntry(ResourceType.TOPIC, name, pattern, "User:a", "*", operation, AclPermissionType.ALLOW)
    return made._replace(**others)


def kinds(*entries: AclEntry, **known: Any) -> list[tuple[str, str, str | None]]:
    return [
        (each.kind.value, finding_text(each), None if each.because is None else entry_text(each.because))
        for each in audit(entries, **known)
    ]


def test_entries_that_each_do_something_are_no_finding() -> None:
    assert audit([topic("orders"), topic("orders", principal="User:b"), topic("orders", WRITE)]) == []
    assert audit([topic("a-", prefixed=True), topic("b")], topics=["a-1", "b"], groups=[]) == []


def test_the_same_entry_twice_is_duplicated() -> None:
    (finding,) = audit([topic("a"), topic("a"), topic("b")])
    assert (finding.kind, finding.message) == (Kind.DUPLICATED, "it exists 2 times")


@pytest.mark.parametrize(
    ("wide", "narrow"),
    [
        (topic("or", prefixed=True), topic("orders")),
        (topic("or", prefixed=True), topic("ord", prefixed=True)),
        (topic("*"), topic("or", prefixed=True)),
        (topic("*"), topic("orders")),
        (topic("a", WRITE), topic("a", DESCRIBE)),
        (topic("a", AclOperation.ALTER_CONFIGS), topic("a", AclOperation.DESCRIBE_CONFIGS)),
        (topic("a", ALL), topic("a", WRITE, host="10.0.0.1")),
        (topic("a", principal="User:*"), topic("a")),
        (topic("a", ALL, permission=DENY), topic("a", READ, permission=DENY)),
    ],
)
def test_what_a_wider_entry_says_already_is_shadowed(wide: AclEntry, narrow: AclEntry) -> None:
    found = [(each.entries, each.because) for each in audit([wide, narrow]) if each.kind is Kind.SHADOWED]
    assert found == [((narrow,), wide)]


@pytest.mark.parametrize(
    "entries",
    [
        (topic("orders"), topic("orders-1")),
        (topic("or", prefixed=True), topic("*")._replace(operation=WRITE)),
        (topic("or", prefixed=True), topic("*")),
        (topic("a", DESCRIBE), topic("a", READ)),
        (topic("a", READ, permission=DENY), topic("a", DESCRIBE, permission=DENY)),
        (topic("a", host="10.0.0.1"), topic("a", host="10.0.0.2")),
        (topic("a"), topic("a")._replace(resource_type=ResourceType.GROUP)),
    ],
)
def test_what_is_narrower_or_of_another_kind_shadows_nothing(entries: tuple[AclEntry, AclEntry]) -> None:
    shadowed = [each.entries[0] for each in audit(entries) if each.kind is Kind.SHADOWED]
    assert entries[1] not in shadowed


def test_of_two_that_say_the_same_only_one_is_shadowed() -> None:
    token = AclEntry(
        ResourceType.DELEGATION_TOKEN, "t", PatternType.LITERAL, "User:a", "*", ALL, AclPermissionType.ALLOW
    )
    assert [kind for kind, *_ in kinds(token, token._replace(operation=DESCRIBE))].count("shadowed") == 1


def test_what_is_allowed_and_denied_is_named_with_what_is_left_of_it() -> None:
    deny = topic("a", READ, principal="User:*", permission=DENY)
    (finding,) = [each for each in audit([topic("a"), deny]) if each.kind is Kind.DENIED]
    assert finding.message == "what it allows is denied, except DESCRIBE"
    whole = [each for each in audit([topic("a"), topic("a", ALL, permission=DENY)]) if each.kind is Kind.DENIED]
    assert [each.message for each in whole] == ["everything it allows is denied"]
    assert audit([topic("a"), topic("a", host="10.0.0.1", permission=DENY)]) == []


def test_a_denial_of_what_nothing_allows_never_denies() -> None:
    deny = topic("a", permission=DENY, principal="User:eve")
    assert ("never-denies", "DENY User:eve to READ topic:a", None) in kinds(
        deny, topic("a", WRITE, principal="User:eve")
    )
    of_eve = topic("a", principal="User:eve")
    for allowing in (topic("*", principal="User:*"), of_eve, of_eve._replace(pattern_type=PatternType.PREFIXED)):
        assert [each for each in audit([deny, allowing]) if each.kind is Kind.NEVER_DENIES] == []


def test_a_denial_of_describe_meets_what_implies_it() -> None:
    deny = topic("a", DESCRIBE, permission=DENY)
    assert [each for each in audit([deny, topic("a", READ)]) if each.kind is Kind.NEVER_DENIES] == []


def test_wildcards_that_allow_are_named() -> None:
    messages = {
        each.entries[0]: each.message
        for each in audit([topic("*", ALL, principal="User:*"), topic("x", ALL), topic("*", permission=DENY)])
        if each.kind is Kind.WILDCARD
    }
    assert messages == {
        topic("*", ALL, principal="User:*"): "it allows every operation, on every topic, to everyone",
        topic("x", ALL): "it allows every operation",
    }


def test_entries_that_begin_alike_could_be_one() -> None:
    entries = [topic(f"orders-{name}") for name in "abc"]
    found = audit(entries, topics=["orders-a", "orders-b", "orders-c", "stock"])
    assert [(each.kind, each.because) for each in found] == [(Kind.REPLACEABLE, topic("orders-", prefixed=True))]
    assert found[0].entries == tuple(entries)
    assert finding_text(found[0]) == "ALLOW User:a to READ topic:orders-a, topic:orders-b, topic:orders-c"


def test_a_prefix_that_would_cover_another_topic_replaces_nothing() -> None:
    entries = [topic(f"orders-{name}") for name in "abc"]
    assert audit(entries, topics=["orders-a", "orders-b", "orders-c", "orders-secret"]) == []
    assert audit(entries[:2], topics=["orders-a", "orders-b"]) == []
    different = [*entries[:2], topic("orders-c", WRITE)]
    assert audit(different, topics=["orders-a", "orders-b", "orders-c"]) == []


def test_the_shortest_prefix_that_covers_no_other_is_taken() -> None:
    names = ["a.b.1", "a.b.2", "a.b.3", "a.c"]
    assert common_prefixes(names, []) == [("a.", names)]
    assert common_prefixes(names, ["a.d"]) == [("a.b.", names[:3])]


def test_entries_for_what_does_not_exist_are_named() -> None:
    group = topic("g")._replace(resource_type=ResourceType.GROUP)
    entries = [topic("gone"), topic("go", prefixed=True), topic("there"), topic("th", prefixed=True), topic("*"), group]
    found = audit(entries, topics=["there"], groups=["other"])
    missing = {each.entries[0]: each.message for each in found if each.kind is Kind.NO_SUCH_RESOURCE}
    assert missing == {
        topic("gone"): "there is no topic of this name",
        topic("go", prefixed=True): "there is no topic with this prefix",
        group: "there is no group of this name",
    }
    assert not [each for each in audit(entries) if each.kind is Kind.NO_SUCH_RESOURCE]


def test_what_exists_and_left_no_trace_of_use_is_named() -> None:
    group: dict[str, Any] = {"resource_type": ResourceType.GROUP}
    unused = [topic("idle", WRITE), topic("idle", READ), topic("idle", ALL), topic("id", WRITE, prefixed=True)]
    unused += [topic("quiet", READ, **group)]
    used = [
        topic("orders", WRITE),
        topic("*", READ),
        topic("o", ALL, prefixed=True),  # written is enough
        topic("busy", READ, **group),
        topic("idle", DESCRIBE),  # leaves no trace
        topic("idle", WRITE, permission=DENY),
        topic("lost", WRITE),  # is not there, which is another finding
    ]
    known: dict[str, Any] = {"topics": ["idle", "orders"], "groups": ["busy", "quiet"]}

    def found(traces: Traces | None) -> list[AclEntry]:
        findings = audit([*unused, *used], **known, traces=traces)
        return [each.entries[0] for each in findings if each.kind is Kind.NO_TRACE_OF_USE]

    traces = Traces(written=["orders", "lost"], read=["orders"], groups=["busy"])
    assert set(found(traces)) == set(unused)
    assert set(found(Traces(written=["orders"]))) == {each for each in unused if each.operation == WRITE}
    assert found(None) == []
    (finding,) = audit([topic("idle", ALL)], **known, traces=traces)[-1:]
    assert finding.message == (
        "according to the logs, no record was written to it and no group has committed an offset of it, or subscribed to it"
    )


def test_a_prefix_covers_no_wildcard() -> None:
    assert not covers_pattern(topic("*", prefixed=True), topic("*"))
    assert covers_pattern(topic("*"), topic("*", prefixed=True))
