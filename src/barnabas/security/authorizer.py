"""Authorization decisions, with the entry that decided: Kafka's StandardAuthorizer as pure functions.

Its one rule: an entry that denies wins over all that allow. Entries are read through `Acls` and there is no state, so
the same functions work for a metadata image, a proposed change or a list of entries.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from itertools import chain
from typing import Protocol

from barnabas.security.acl import (
    WILDCARD,
    WILDCARD_PRINCIPAL,
    AclEntry,
    AclOperation,
    AclPermissionType,
    PatternType,
    ResourceType,
)
from barnabas.security.acl_index import Bits
from barnabas.security.principal import KafkaPrincipal, parse_principal

_Op = AclOperation

SUPPORTED_OPERATIONS: Mapping[ResourceType, tuple[AclOperation, ...]] = {
    ResourceType.TOPIC: (
        _Op.READ,
        _Op.WRITE,
        _Op.CREATE,
        _Op.DELETE,
        _Op.ALTER,
        _Op.DESCRIBE,
        _Op.DESCRIBE_CONFIGS,
        _Op.ALTER_CONFIGS,
    ),
    ResourceType.GROUP: (_Op.READ, _Op.DELETE, _Op.DESCRIBE, _Op.DESCRIBE_CONFIGS, _Op.ALTER_CONFIGS),
    ResourceType.CLUSTER: (
        _Op.CREATE,
        _Op.ALTER,
        _Op.DESCRIBE,
        _Op.CLUSTER_ACTION,
        _Op.DESCRIBE_CONFIGS,
        _Op.ALTER_CONFIGS,
        _Op.IDEMPOTENT_WRITE,
    ),
    ResourceType.TRANSACTIONAL_ID: (_Op.WRITE, _Op.DESCRIBE, _Op.TWO_PHASE_COMMIT),
    ResourceType.DELEGATION_TOKEN: (_Op.DESCRIBE,),
    ResourceType.USER: (_Op.CREATE_TOKENS, _Op.DESCRIBE_TOKENS),
}

# Only allowed operations imply others: denying READ does not deny DESCRIBE.
_IMPLIED_BY = {
    _Op.DESCRIBE: (_Op.READ, _Op.WRITE, _Op.DELETE, _Op.ALTER),
    _Op.DESCRIBE_CONFIGS: (_Op.ALTER_CONFIGS,),
}
_ALLOWED_BY = tuple((operation, _Op.ALL, *_IMPLIED_BY.get(operation, ())) for operation in _Op)


def allowed_by(operation: AclOperation) -> tuple[AclOperation, ...]:
    """Return the operations whose entries allow this one: itself, ALL, and those that imply it."""
    return _ALLOWED_BY[operation]


_ALLOWING_BITS = tuple(sum(1 << each for each in {*operations}) for operations in _ALLOWED_BY)
_DENYING_BITS = tuple((1 << operation) | (1 << _Op.ALL) for operation in _Op)


class Acls(Protocol):
    """The entries, as decisions read them."""

    def covering(self, resource_type: ResourceType, name: str) -> Iterable[Mapping[str, tuple[AclEntry, ...]]]:
        """Return the entries by principal of each pattern that covers the name: longest name first, wildcard last."""

    def bits(self, resource_type: ResourceType, name: str, user: str, host: str) -> Bits | None:
        """Return the operations that all patterns for the name together allow and deny; None if none covers it."""

    def of_type(self, resource_type: ResourceType) -> Iterable[AclEntry]:
        """Return all entries for resources of the type."""


@dataclass(frozen=True, slots=True)
class AuthorizerSettings:
    """The authorizer's configuration.

    `enabled` means that authorizer.class.name is set; the others are named like configs.
    """

    enabled: bool = False
    super_users: frozenset[str] = frozenset()
    allow_everyone_if_no_acl_found: bool = False


class Reason(StrEnum):
    NO_AUTHORIZER = "no authorizer is configured"
    SUPER_USER = "the principal is a super user"
    DENIED = "an entry denies it"
    ALLOWED = "an entry allows it"
    NOT_ALLOWED = "the resource has entries, and none of them allows it"
    NO_ACL_FOUND = "the resource has no entries"


@dataclass(frozen=True, slots=True)
class Decision:
    """The result, true if allowed. `entry` is the one that decided, if any."""

    allowed: bool
    reason: Reason
    entry: AclEntry | None = None

    def __bool__(self) -> bool:
        return self.allowed


_NO_AUTHORIZER = Decision(True, Reason.NO_AUTHORIZER)
_SUPER_USER = Decision(True, Reason.SUPER_USER)
_NOT_ALLOWED = Decision(False, Reason.NOT_ALLOWED)


def parse_super_users(text: str) -> frozenset[str]:
    """Parse super.users: principals separated by semicolons. Raises ValueError if one has no colon."""
    users = [user.strip() for user in text.split(";")]
    return frozenset(str(parse_principal(user)) for user in users if user)


def authorize(
    acls: Acls,
    settings: AuthorizerSettings,
    principal: KafkaPrincipal,
    host: str,
    operation: AclOperation,
    resource_type: ResourceType,
    resource_name: str,
) -> Decision:
    """Decide whether the principal may do this from this host (in the format of `host_text`).

    If several entries lead to the same decision, the one in Kafka's audit log is returned.
    """
    if not settings.enabled:
        return _NO_AUTHORIZER
    user = str(principal)
    if user in settings.super_users:
        return _SUPER_USER
    found = False
    allowing: AclEntry | None = None
    for entries in acls.covering(resource_type, resource_name):
        found = True
        of_user = (*entries.get(user, ()), *entries.get(WILDCARD_PRINCIPAL, ()))
        applying = [entry for entry in of_user if _mismatch(entry, host, operation) is None]
        denying = [entry for entry in applying if entry.permission != AclPermissionType.ALLOW]
        if denying:
            return Decision(False, Reason.DENIED, min(denying, key=_order))
        if applying:
            allowing = max(applying, key=_order)
    if allowing is not None:
        return Decision(True, Reason.ALLOWED, allowing)
    return _NOT_ALLOWED if found else Decision(settings.allow_everyone_if_no_acl_found, Reason.NO_ACL_FOUND)


def is_authorized(
    acls: Acls,
    settings: AuthorizerSettings,
    principal: KafkaPrincipal,
    host: str,
    operation: AclOperation,
    resource_type: ResourceType,
    resource_name: str,
) -> bool:
    """Return whether `authorize` allows it, without looking for the entry that decides: much faster."""
    if not settings.enabled:
        return True
    user = str(principal)
    if user in settings.super_users:
        return True
    bits = acls.bits(resource_type, resource_name, user, host)
    if bits is None:
        return settings.allow_everyone_if_no_acl_found
    return _is_allowed_by(bits, operation)


def _is_allowed_by(bits: Bits, operation: AclOperation) -> bool:
    return bool(bits[0] & _ALLOWING_BITS[operation]) and not bits[1] & _DENYING_BITS[operation]


def _mismatch(entry: AclEntry, host: str, operation: AclOperation) -> str | None:
    if entry.host not in (WILDCARD, host):
        return "another host"
    if entry.permission == AclPermissionType.ALLOW:
        covered = entry.operation in _ALLOWED_BY[operation]
    else:
        covered = entry.operation in (operation, AclOperation.ALL)
    return None if covered else "another operation"


def _order(entry: AclEntry) -> tuple[int, str, str, int]:
    return entry.operation, entry.principal, entry.host, entry.permission


def authorize_by_resource_type(
    acls: Acls,
    settings: AuthorizerSettings,
    principal: KafkaPrincipal,
    host: str,
    operation: AclOperation,
    resource_type: ResourceType,
) -> Decision:
    """Decide whether the principal may do this to at least one resource of the type, whatever its name.

    Kafka checks a resource called "hardcode" first, which covers super users, wildcards and the default. After that
    only entries for the operation itself (or ALL) count, not those that imply it.
    """
    decision = authorize(acls, settings, principal, host, operation, resource_type, "hardcode")
    if decision.allowed:
        return decision
    users = (str(principal), WILDCARD_PRINCIPAL)
    denied_names: set[str] = set()
    denied_prefixes: set[str] = set()
    allowing: list[AclEntry] = []
    for entry in acls.of_type(resource_type):
        if (
            entry.principal not in users
            or entry.host not in (WILDCARD, host)
            or entry.operation not in (operation, AclOperation.ALL)
        ):
            continue
        if entry.permission == AclPermissionType.ALLOW:
            allowing.append(entry)
        elif entry.pattern_type == PatternType.PREFIXED:
            denied_prefixes.add(entry.resource_name)
        elif entry.resource_name == WILDCARD:
            return Decision(False, Reason.DENIED, entry)
        else:
            denied_names.add(entry.resource_name)
    for entry in allowing:
        name, literal = entry.resource_name, entry.pattern_type == PatternType.LITERAL
        if literal and name == WILDCARD:
            return Decision(True, Reason.ALLOWED, entry)
        if literal and name in denied_names:
            continue
        if not any(name[:length] in denied_prefixes for length in range(1, len(name) + 1)):
            return Decision(True, Reason.ALLOWED, entry)
    return _NOT_ALLOWED


def authorized_operations(
    acls: Acls,
    settings: AuthorizerSettings,
    principal: KafkaPrincipal,
    host: str,
    resource_type: ResourceType,
    resource_name: str,
) -> int:
    """Return the operations that are allowed on the resource, as a bit field.

    Without an authorizer, all of its type.
    """
    operations, user = SUPPORTED_OPERATIONS[resource_type], str(principal)
    if settings.enabled and user not in settings.super_users:
        bits = acls.bits(resource_type, resource_name, user, host)
        if bits is not None:
            operations = tuple(each for each in operations if _is_allowed_by(bits, each))
        elif not settings.allow_everyone_if_no_acl_found:
            operations = ()
    return sum(1 << operation for operation in operations)


@dataclass(frozen=True, slots=True)
class Candidate:
    """An entry for the resource. `mismatch` is why it does not apply to the request, or None if it does."""

    entry: AclEntry
    mismatch: str | None


@dataclass(frozen=True, slots=True)
class Explanation:
    decision: Decision
    candidates: tuple[Candidate, ...]


def explain(
    acls: Acls,
    settings: AuthorizerSettings,
    principal: KafkaPrincipal,
    host: str,
    operation: AclOperation,
    resource_type: ResourceType,
    resource_name: str,
) -> Explanation:
    """Return the decision of `authorize`, with every entry for the resource and why it applies or does not."""
    users = (str(principal), WILDCARD_PRINCIPAL)
    candidates = [
        Candidate(entry, _mismatch(entry, host, operation) if entry.principal in users else "another principal")
        for entries in acls.covering(resource_type, resource_name)
        for entry in sorted(chain.from_iterable(entries.values()), key=_order)
    ]
    decision = authorize(acls, settings, principal, host, operation, resource_type, resource_name)
    return Explanation(decision, tuple(candidates))
