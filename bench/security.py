"""One authorization with 10,000 ACLs, in the shapes that are hard to search: the slowest of them counts.

Its limit is a number, not a peer: a request may need very many authorizations, and all clients wait for one event loop.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from barnabas.security.acl import AclEntry, AclOperation, AclPermissionType, PatternType, ResourceType
from barnabas.security.acl_index import AclIndex
from barnabas.security.authorizer import AuthorizerSettings, is_authorized
from barnabas.security.principal import KafkaPrincipal
from bench.table import Row, from_rounds
from bench.timing import in_turns

SECTION = "security"
ACLS = 10_000
LIMIT_US = 20.0
ALICE = KafkaPrincipal("User", "alice")
HOST = "10.0.3.4"
ASKED = (AclOperation.DESCRIBE, ResourceType.TOPIC)


class Shape(NamedTuple):
    """Entries, and the name of a topic that they cover."""

    name: str
    entries: list[AclEntry]
    topic: str


def entry(
    name: str,
    *,
    pattern: PatternType = PatternType.LITERAL,
    who: str = str(ALICE),
    host: str = "*",
    permission: AclPermissionType = AclPermissionType.ALLOW,
) -> AclEntry:
    return AclEntry(ResourceType.TOPIC, name, pattern, who, host, AclOperation.READ, permission)


def shapes() -> list[Shape]:
    numbers = range(ACLS)
    addresses = [f"10.0.{number // 256}.{number % 256}" for number in numbers]
    nested = [
        entry("t" * (number % 10 + 1), pattern=PatternType.PREFIXED, host=addresses[number]) for number in numbers
    ]
    return [
        Shape(
            "1,000 topics of 10 users", [entry(f"topic-{n % 1000}", who=f"User:{n % 10}") for n in numbers], "topic-7"
        ),
        Shape("10,000 users of a topic", [entry("topic", who=f"User:{n}") for n in numbers], "topic"),
        Shape("10,000 prefixes", [entry(f"topic-{n}", pattern=PatternType.PREFIXED) for n in numbers], "topic-7777-x"),
        Shape("10,000 hosts of a user", [entry("topic", host=each) for each in addresses], "topic"),
        Shape("10 prefixes of one name", nested, "t" * 249),
        Shape(
            "10,000 denied hosts",
            [entry("*", who="User:*", host=each, permission=AclPermissionType.DENY) for each in addresses],
            "topic",
        ),
    ]


def run() -> list[Row]:
    settings = AuthorizerSettings(enabled=True)
    timed: dict[str, Callable[[], bool]] = {
        shape.name: partial(is_authorized, AclIndex(shape.entries), settings, ALICE, HOST, *ASKED, shape.topic)
        for shape in shapes()
    }
    found = in_turns(timed)
    slowest = [max(seconds) * 1e6 for seconds in zip(*found.values(), strict=True)]
    question = "one authorization with 10,000 ACLs, the slowest of six shapes"
    return [from_rounds(SECTION, question, slowest, "the limit", [LIMIT_US] * len(slowest), "us", 1.0)]
