"""One authorization with 10,000 ACLs, in the shapes that are hard to search: the slowest of them counts.

Its limit is a number, not a peer: a request may need very many authorizations, and all clients wait for one event loop. The
index remembers what it has found for a principal at a host; so the time of one that has not asked before is measured too.
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
SETTINGS = AuthorizerSettings(enabled=True)
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


class Strangers:
    """Asks from another address each time, so that nothing is known of it."""

    def __init__(self, index: AclIndex, topic: str) -> None:
        self._index = index
        self._topic = topic
        self._number = 0
        self._hosts = [f"192.168.{number // 256}.{number % 256}" for number in range(65_536)]

    def __call__(self) -> bool:
        self._number = (self._number + 1) % len(self._hosts)
        return is_authorized(self._index, SETTINGS, ALICE, self._hosts[self._number], *ASKED, self._topic)


def run() -> list[Row]:
    found = shapes()
    indexes = {shape.name: AclIndex(shape.entries) for shape in found}
    again: dict[str, Callable[[], bool]] = {
        shape.name: partial(is_authorized, indexes[shape.name], SETTINGS, ALICE, HOST, *ASKED, shape.topic)
        for shape in found
    }
    first: dict[str, Callable[[], bool]] = {shape.name: Strangers(indexes[shape.name], shape.topic) for shape in found}
    question = f"one authorization with {ACLS:,} ACLs, the slowest of {len(found)} shapes"
    return [_row(question, again), _row(f"{question}, of somebody new", first)]


def _row(question: str, timed: dict[str, Callable[[], bool]]) -> Row:
    slowest = [max(seconds) * 1e6 for seconds in zip(*in_turns(timed).values(), strict=True)]
    return from_rounds(SECTION, question, slowest, "the limit", [LIMIT_US] * len(slowest), "us", 1.0)
