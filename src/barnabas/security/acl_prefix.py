"""Access to all resources whose names begin with a prefix: to all of them, to some, or to none. Pure.

Its one rule: nothing is decided here. Names that are covered by the same patterns are one region, and the authorizer is asked
once for each region. Regions cover every possible name, not only those of resources that exist.
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

from barnabas.security.acl import WILDCARD, AclOperation, PatternType, ResourceType
from barnabas.security.acl_index import AclIndex
from barnabas.security.authorizer import AuthorizerSettings, Decision, authorize
from barnabas.security.principal import KafkaPrincipal

_UNNAMED = "\0"
"""Suffix of a name that no entry has. With it, a prefix stands for the names that begin with it and with no longer pattern."""


class Allowed(Enum):
    """How many of the possible names are allowed."""

    ALL = "all"
    SOME = "some"
    NONE = "none"


class Region(NamedTuple):
    """Names with the same decision: one name (LITERAL), or those that begin with it and are in no smaller region (PREFIXED)."""

    pattern_type: PatternType
    name: str
    decision: Decision

    def covers(self, name: str) -> bool:
        return name.startswith(self.name) if self.pattern_type == PatternType.PREFIXED else name == self.name


class PrefixAccess(NamedTuple):
    """The answer. The first region is the prefix itself; each of the others differs from the region around it."""

    allowed: Allowed
    regions: tuple[Region, ...]


def prefix_access(
    acls: AclIndex,
    settings: AuthorizerSettings,
    principal: KafkaPrincipal,
    host: str,
    operation: AclOperation,
    resource_type: ResourceType,
    prefix: str,
) -> PrefixAccess:
    """Return to which resources with this prefix the principal is allowed the operation."""

    def region(pattern_type: PatternType, name: str) -> Region:
        example = name if pattern_type == PatternType.LITERAL else name + _UNNAMED
        decision = authorize(acls, settings, principal, host, operation, resource_type, example)
        return Region(pattern_type, name, decision)

    patterns = {
        (entry.resource_name, entry.pattern_type)
        for entry in acls.of_type(resource_type)
        if entry.resource_name.startswith(prefix)
        and (entry.pattern_type, entry.resource_name) not in (_EVERYTHING, (PatternType.PREFIXED, prefix))
    }
    whole = region(PatternType.PREFIXED, prefix)
    regions, prefixed = [whole], {prefix: whole}
    # A shorter name encloses longer ones, and a prefix encloses the same name as a literal.
    for name, pattern_type in sorted(
        patterns, key=lambda each: (len(each[0]), each[1] == PatternType.LITERAL, each[0])
    ):
        around = next(prefixed[name[:size]] for size in range(len(name), -1, -1) if name[:size] in prefixed)
        found = region(pattern_type, name)
        if found.decision.allowed != around.decision.allowed:
            regions.append(found)
            if pattern_type == PatternType.PREFIXED:
                prefixed[name] = found
    answers = {each.decision.allowed for each in regions}
    allowed = Allowed.SOME if len(answers) > 1 else Allowed.ALL if True in answers else Allowed.NONE
    return PrefixAccess(allowed, tuple(regions))


_EVERYTHING = (PatternType.LITERAL, WILDCARD)
