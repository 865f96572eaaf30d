"""ACLs in the form in which people write them: `topic:orders`, READ, PREFIXED, `User:alice`.

Its one rule: invalid input raises a ValueError that lists the valid values. Words may be in any case, with `-`, `_` or
nothing between their parts. This module neither reads files nor knows command line options.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from barnabas.security.acl import (
    CLUSTER_NAME,
    WILDCARD,
    AclEntry,
    AclOperation,
    AclPermissionType,
    PatternType,
    ResourceType,
    host_text,
    validate_new,
)
from barnabas.security.authorizer import SUPPORTED_OPERATIONS
from barnabas.security.principal import parse_principal
from barnabas.similar_names import did_you_mean

Code = TypeVar("Code", ResourceType, PatternType, AclOperation, AclPermissionType)

RESOURCE_TYPES = tuple(each for each in ResourceType if each not in (ResourceType.UNKNOWN, ResourceType.ANY))
OPERATIONS = tuple(each for each in AclOperation if each not in (AclOperation.UNKNOWN, AclOperation.ANY))
PATTERNS = (PatternType.LITERAL, PatternType.PREFIXED)
FILTER_PATTERNS = (PatternType.ANY, PatternType.MATCH, *PATTERNS)
PERMISSIONS = (AclPermissionType.ALLOW, AclPermissionType.DENY)


def parse_word(text: str, known: Iterable[Code], what: str) -> Code:
    """Parse the name of one of these codes. Raises ValueError."""
    words = {each.name: each for each in known}
    wanted = _bare(text)
    for name, code in words.items():
        if _bare(name) == wanted:
            return code
    raise ValueError(f"{text!r} is not a valid {what}: expected one of {', '.join(words)}{did_you_mean(text, words)}")


def _bare(text: str) -> str:
    return text.strip().replace("-", "").replace("_", "").upper()


def type_text(resource_type: ResourceType) -> str:
    return resource_type.name.lower().replace("_", "-")


def parse_resource(text: str) -> tuple[ResourceType, str]:
    """Parse `topic:orders`, `group:*` or `cluster`: a type and a name, which may contain more colons.

    >>> parse_resource("transactional-id:billing")
    (<ResourceType.TRANSACTIONAL_ID: 5>, 'billing')
    """
    word, colon, name = text.partition(":")
    try:
        resource_type = parse_word(word, RESOURCE_TYPES, "type of resource")
    except ValueError:
        types = [type_text(each) for each in RESOURCE_TYPES]
        hint = did_you_mean(word, types)
        raise ValueError(
            f"{text!r}: expected TYPE:NAME, as in topic:orders, with one of {', '.join(types)}{hint}"
        ) from None
    if resource_type == ResourceType.CLUSTER:
        if colon and name != CLUSTER_NAME:
            raise ValueError(f"{text!r}: the only name of the cluster is {CLUSTER_NAME}; write: cluster")
        return resource_type, CLUSTER_NAME
    if not name:
        raise ValueError(
            f"{text!r}: the name is missing; expected TYPE:NAME, as in {type_text(resource_type)}:{WILDCARD}"
        )
    return resource_type, name


def resource_text(resource_type: ResourceType, name: str) -> str:
    """Format a resource for `parse_resource`."""
    return "cluster" if resource_type == ResourceType.CLUSTER else f"{type_text(resource_type)}:{name}"


def parse_operation(text: str, resource_type: ResourceType) -> AclOperation:
    """Parse an operation that resources of this type support. Raises ValueError."""
    operation = parse_word(text, OPERATIONS, "operation")
    supported = (*SUPPORTED_OPERATIONS[resource_type], AclOperation.ALL)
    if operation not in supported:
        known = ", ".join(each.name for each in supported)
        raise ValueError(
            f"{operation.name} is not an operation of a {type_text(resource_type)}: expected one of {known}"
        )
    return operation


def parse_principal_text(text: str) -> str:
    """Parse `User:alice`. Without a colon, the text is a user name."""
    principal = parse_principal(text if ":" in text else f"User:{text}")
    if not principal.type or not principal.name:
        raise ValueError(f"{text!r}: expected TYPE:NAME, as in User:alice")
    return str(principal)


def parse_host(text: str) -> str:
    """Return an address in the format of brokers (`0:0:0:0:0:0:0:1`), with which the host of an entry is compared."""
    try:
        return host_text(text)
    except ValueError:
        return text


def checked_entry(entry: AclEntry) -> AclEntry:
    """Return the entry if a broker would accept it. Raises ValueError."""
    if (error := validate_new(entry)) is not None:
        raise ValueError(error.message)
    return entry


def entry_text(entry: AclEntry) -> str:
    """Format an entry as a sentence: `ALLOW User:alice from 10.0.0.1 to READ topic:orders- (PREFIXED)`."""
    host = "" if entry.host == WILDCARD else f" from {entry.host}"
    pattern = " (PREFIXED)" if entry.pattern_type == PatternType.PREFIXED else ""
    resource = resource_text(entry.resource_type, entry.resource_name)
    return f"{entry.permission.name} {entry.principal}{host} to {entry.operation.name} {resource}{pattern}"


def entry_order(entry: AclEntry) -> tuple[object, ...]:
    """Return the sort key for lists of entries: by resource, then by principal."""
    return (
        *(entry.resource_type, entry.resource_name, entry.pattern_type),
        *(entry.principal, entry.permission, entry.host, entry.operation),
    )
