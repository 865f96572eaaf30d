"""The effective access of each principal to resources, after all entries, as the authorizer decides it. Pure.

Its one rule: nothing is decided here. The authorizer is asked once for all resources that are covered by the same
patterns. Super users and allow.everyone.if.no.acl.found are not part of ACLs: here, whatever no entry allows is denied.

To read the result: the rows of a principal apply, or those of `User:*` if it has none; the row of a host applies, or
that of `*`, which means any other host. So a row may say that nothing is allowed, where `User:*` or other hosts are
allowed more.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from barnabas.security.acl import WILDCARD, WILDCARD_PRINCIPAL, AclEntry, PatternType, ResourceType
from barnabas.security.acl_index import AclIndex
from barnabas.security.authorizer import SUPPORTED_OPERATIONS, AuthorizerSettings, authorized_operations
from barnabas.security.principal import parse_principal

_SETTINGS = AuthorizerSettings(enabled=True)
_UNNAMED = "\0"
"""Suffix of a name that no entry has. With it, a pattern stands for the resources that only the pattern covers."""


class Resource(NamedTuple):
    """A resource by its name, or any other one that a pattern covers: PREFIXED, or the name `*`."""

    resource_type: ResourceType
    pattern_type: PatternType
    name: str


class Access(NamedTuple):
    """The operations that a principal is allowed from a host."""

    principal: str
    host: str
    operations: tuple[str, ...]


def effective_access(acls: AclIndex, resources: Iterable[Resource]) -> Iterator[tuple[Resource, Sequence[Access]]]:
    """Yield each resource on which anything is allowed, with the access of each principal."""
    known: dict[tuple[int, ...], list[Access]] = {}
    for resource in resources:
        if resource.resource_type not in SUPPORTED_OPERATIONS:
            continue
        name = _name_of(resource)
        covering = acls.covering(resource.resource_type, name)
        # The index keeps its patterns alive, so their ids identify them.
        patterns = (resource.resource_type, *map(id, covering))
        if patterns not in known:
            known[patterns] = list(_access(acls, resource.resource_type, name, covering))
        if known[patterns]:
            yield resource, known[patterns]


def _name_of(resource: Resource) -> str:
    if resource.pattern_type == PatternType.PREFIXED:
        return resource.name + _UNNAMED
    return _UNNAMED if resource.name == WILDCARD else resource.name


def _access(
    acls: AclIndex,
    resource_type: ResourceType,
    name: str,
    covering: Iterable[Mapping[str, tuple[AclEntry, ...]]],
) -> Iterator[Access]:
    hosts: dict[str, set[str]] = defaultdict(set)
    for by_principal in covering:
        for principal, entries in by_principal.items():
            hosts[principal] |= {entry.host for entry in entries}
    hosts_of_everyone = hosts.pop(WILDCARD_PRINCIPAL, set())

    def allowed(principal: str, own_hosts: set[str]) -> dict[str, tuple[str, ...]]:
        """Return the allowed operations by host: always for `*`, and for other hosts if they differ."""
        user = parse_principal(principal)
        found: dict[str, tuple[str, ...]] = {}
        for host in (WILDCARD, *sorted({*own_hosts, *hosts_of_everyone} - {WILDCARD})):
            bits = authorized_operations(acls, _SETTINGS, user, host, resource_type, name)
            operations = tuple(each.name for each in SUPPORTED_OPERATIONS[resource_type] if bits >> each & 1)
            if host == WILDCARD or operations != found[WILDCARD]:
                found[host] = operations
        return found

    everyone = allowed(WILDCARD_PRINCIPAL, set())
    for principal in (WILDCARD_PRINCIPAL, *sorted(each for each in hosts if ":" in each)):
        by_host = everyone if principal == WILDCARD_PRINCIPAL else allowed(principal, hosts[principal])
        must_say = by_host is not everyone and any(everyone.values())
        for host, operations in by_host.items():
            if operations or host != WILDCARD or must_say:
                yield Access(principal, host, operations)
