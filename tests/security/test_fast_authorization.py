"""The fast decision is the same as the one that names its entry, for any entries."""

from __future__ import annotations

from random import Random

import pytest

from barnabas.security import acl_index
from barnabas.security.acl import AclEntry, AclOperation, AclPermissionType, PatternType, ResourceType
from barnabas.security.acl_index import FEW_LENGTHS, AclIndex
from barnabas.security.authorizer import (
    SUPPORTED_OPERATIONS,
    AuthorizerSettings,
    authorize,
    authorized_operations,
    is_authorized,
)
from barnabas.security.principal import KafkaPrincipal

HOSTS = ("10.0.0.1", "0:0:0:0:0:0:0:1", "*")
USERS = ("User:alice", "User:bob", "User:*")
OPERATIONS = (*SUPPORTED_OPERATIONS[ResourceType.TOPIC], AclOperation.ALL)


def random_name(random: Random) -> str:
    return "".join(random.choice("ab") for _ in range(random.randrange(1, 40)))


def random_entry(random: Random) -> AclEntry:
    is_prefix = random.random() < 0.6
    name = "*" if random.random() < 0.05 else random_name(random)
    return AclEntry(
        ResourceType.TOPIC,
        name,
        PatternType.PREFIXED if is_prefix else PatternType.LITERAL,
        random.choice(USERS),
        random.choice(HOSTS),
        random.choice(OPERATIONS),
        AclPermissionType.DENY if random.random() < 0.2 else AclPermissionType.ALLOW,
    )


@pytest.mark.parametrize("seed", range(20))
def test_both_decisions_are_the_same(seed: int) -> None:
    random = Random(seed)
    index = AclIndex()
    kept: list[AclEntry] = []
    for _ in range(10):
        removed = [kept.pop(random.randrange(len(kept))) for _ in range(min(len(kept), random.randrange(5)))]
        added = [random_entry(random) for _ in range(random.randrange(1, 30))]
        kept += added
        index = index.updated(removed, added)
        for _ in range(40):
            settings = AuthorizerSettings(
                enabled=random.random() < 0.95,
                super_users=frozenset({"User:root"}),
                allow_everyone_if_no_acl_found=random.random() < 0.5,
            )
            given = random.choice(kept).resource_name if kept and random.random() < 0.7 else ""
            asked = (
                KafkaPrincipal("User", random.choice(("alice", "bob", "carol", "root"))),
                random.choice(HOSTS[:2]),
                random.choice(OPERATIONS),
                random.choice((ResourceType.TOPIC, ResourceType.GROUP)),
                given + random.choice(("", random_name(random))) or "x",
            )
            expected = authorize(index, settings, *asked).allowed
            assert [is_authorized(index, settings, *asked) for _ in range(2)] == [
                expected
            ] * 2  # the second time from memory


def test_prefixes_are_found_the_same_way_whether_there_are_few_lengths_or_many() -> None:
    random = Random(1)
    names = {random_name(random) for _ in range(300)}
    entries = [
        AclEntry(ResourceType.TOPIC, n, PatternType.PREFIXED, "User:a", "*", AclOperation.READ, AclPermissionType.ALLOW)
        for n in names
    ]
    of_type = AclIndex(entries)._types[ResourceType.TOPIC]
    assert len(of_type.prefix_lengths) > FEW_LENGTHS
    for name in (*names, *(random_name(random) for _ in range(300)), "", "~"):
        expected = sorted((each for each in names if name.startswith(each)), key=len, reverse=True)
        assert list(of_type.prefixes_of(name)) == expected


def test_authorized_operations_are_those_that_are_decided_one_by_one() -> None:
    random = Random(2)
    index = AclIndex(random_entry(random) for _ in range(200))
    for _ in range(300):
        settings = AuthorizerSettings(True, frozenset({"User:root"}), random.random() < 0.5)
        who = KafkaPrincipal("User", random.choice(("alice", "bob", "carol", "root")))
        kind, name = random.choice((ResourceType.TOPIC, ResourceType.GROUP)), random_name(random)
        host = random.choice(HOSTS[:2])
        expected = sum(
            1 << each
            for each in SUPPORTED_OPERATIONS[kind]
            if authorize(index, settings, who, host, each, kind, name).allowed
        )
        assert authorized_operations(index, settings, who, host, kind, name) == expected


def test_what_is_kept_of_prefixes_is_limited_and_forgotten_when_one_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    def entry(name: str, operation: AclOperation, permission: AclPermissionType) -> AclEntry:
        return AclEntry(ResourceType.TOPIC, name, PatternType.PREFIXED, "User:*", "*", operation, permission)

    monkeypatch.setattr(acl_index, "MAX_KNOWN", 5)
    index = AclIndex([entry("orders", AclOperation.READ, AclPermissionType.ALLOW)])
    settings = AuthorizerSettings(enabled=True)
    for number in range(20):
        who = KafkaPrincipal("User", f"user{number}")
        assert is_authorized(index, settings, who, "h", AclOperation.READ, ResourceType.TOPIC, "orders-1")
        assert len(index._bits[ResourceType.TOPIC].together) <= 5
    denying = index.updated(added=[entry("ord", AclOperation.READ, AclPermissionType.DENY)])
    assert not is_authorized(denying, settings, who, "h", AclOperation.READ, ResourceType.TOPIC, "orders-1")
    assert is_authorized(index, settings, who, "h", AclOperation.READ, ResourceType.TOPIC, "orders-1")


def test_an_update_keeps_what_is_known_of_other_patterns(monkeypatch: pytest.MonkeyPatch) -> None:
    def entry(name: str, host: str) -> AclEntry:
        kind = (ResourceType.TOPIC, name, PatternType.LITERAL, "User:a", host)
        return AclEntry(*kind, AclOperation.READ, AclPermissionType.ALLOW)

    index = AclIndex([entry("one", f"h{n}") for n in range(1000)] + [entry("two", "h")])
    made: list[int] = []
    bits = acl_index._bits

    def counted(entries: object) -> object:
        made.append(1)
        return bits(entries)  # type: ignore[arg-type]

    monkeypatch.setattr(acl_index, "_bits", counted)
    settings, alice = AuthorizerSettings(enabled=True), KafkaPrincipal("User", "a")
    asked = (alice, "h7", AclOperation.READ, ResourceType.TOPIC)
    assert is_authorized(index, settings, *asked, "one")
    changed = index.updated(added=[entry("two", "h7")])
    assert is_authorized(changed, settings, *asked, "one")
    assert is_authorized(changed, settings, *asked, "two")
    assert not is_authorized(index, settings, *asked, "two")
    assert len(made) == 3
