"""The patterns and entries that the options of kafka-acls select, and the lines it prints. Pure.

Its one rule: sets of patterns and entries, and their text, are Kafka's. Kafka iterates over them in the order of hashes that
differ from run to run; here they are sorted.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from barnabas.config.hash_order import hash_order, text_hash
from barnabas.security.acl import (
    CLUSTER_NAME,
    WILDCARD,
    AclEntry,
    AclFilter,
    AclOperation,
    AclPermissionType,
    PatternType,
    ResourceType,
)
from barnabas.security.authorizer import SUPPORTED_OPERATIONS
from barnabas.security.principal import KafkaPrincipal, parse_principal


class UsageProblem(ValueError):  # noqa: N818 - what Kafka's tool answers with its help
    """Options that cannot be combined."""


class Pattern(NamedTuple):
    """A resource pattern, or a filter for patterns; both are printed alike."""

    resource_type: ResourceType
    name: str
    pattern_type: PatternType

    def __str__(self) -> str:
        return (
            f"ResourcePattern(resourceType={self.resource_type.name}, name={self.name},"
            f" patternType={self.pattern_type.name})"
        )


class Entry(NamedTuple):
    """Principal, host, operation and permission."""

    principal: str
    host: str
    operation: AclOperation
    permission: AclPermissionType

    def __str__(self) -> str:
        return (
            f"(principal={self.principal}, host={self.host}, operation={self.operation.name},"
            f" permissionType={self.permission.name})"
        )


CLUSTER = Pattern(ResourceType.CLUSTER, CLUSTER_NAME, PatternType.LITERAL)
Wanted = dict[Pattern, tuple[Entry, ...]]

_Op = AclOperation
_PRODUCER_ON_TOPIC = (_Op.WRITE, _Op.CREATE, _Op.DESCRIBE)
_PRODUCER_ON_TRANSACTIONAL_ID = (_Op.WRITE, _Op.DESCRIBE)
_CONSUMER_ON_TOPIC = (_Op.READ, _Op.DESCRIBE)
_CONSUMER_ON_GROUP = (_Op.READ,)


@dataclass(frozen=True, slots=True)
class Options:
    """The options that select entries; a tuple has the values of a repeatable option."""

    topic: tuple[str, ...] = ()
    group: tuple[str, ...] = ()
    transactional_id: tuple[str, ...] = ()
    delegation_token: tuple[str, ...] = ()
    user_principal: tuple[str, ...] = ()
    cluster: bool = False
    pattern_type: PatternType = PatternType.LITERAL
    operation: tuple[str, ...] = ("All",)
    allow_principal: tuple[str, ...] = ()
    deny_principal: tuple[str, ...] = ()
    allow_host: tuple[str, ...] = ()
    deny_host: tuple[str, ...] = ()
    producer: bool = False
    consumer: bool = False
    idempotent: bool = False


def patterns(options: Options) -> list[Pattern]:
    """Return the patterns that --topic and the other resource options name."""
    names = {
        ResourceType.TOPIC: options.topic,
        ResourceType.GROUP: options.group,
        ResourceType.TRANSACTIONAL_ID: options.transactional_id,
        ResourceType.DELEGATION_TOKEN: options.delegation_token,
        ResourceType.USER: options.user_principal,
    }
    found = [
        Pattern(resource_type, name.strip(), options.pattern_type)
        for resource_type, some in names.items()
        for name in some
    ]
    if options.pattern_type == PatternType.LITERAL and (options.cluster or options.idempotent):
        found.append(CLUSTER)
    return sorted(set(found))


def to_add(options: Options) -> Wanted:
    """Return the entries to add, by pattern. Raises UsageProblem."""
    if options.pattern_type not in (PatternType.LITERAL, PatternType.PREFIXED):
        raise UsageProblem(
            f"A '--resource-pattern-type' value of '{options.pattern_type.name}' is not valid when adding acls."
        )
    found = to_remove(options)
    if not all(found.values()):
        raise UsageProblem("You must specify one of: --allow-principal, --deny-principal when trying to add ACLs.")
    return found


def to_remove(options: Options) -> Wanted:
    """Return the entries to remove, by filter. An empty set means every entry of the filter. Raises UsageProblem."""
    some = patterns(options)
    if not some:
        raise UsageProblem(
            "You must provide at least one resource: --topic <topic> or --cluster or --group <group> or"
            " --delegation-token <Delegation Token ID>"
        )
    found: dict[Pattern, set[Entry]] = {}
    if not options.producer and not options.consumer:
        operations = [_operation(text) for text in options.operation]
        found = {pattern: _entries(options, operations) for pattern in some}
    if options.producer:
        found |= _of_type(some, ResourceType.TOPIC, _entries(options, _PRODUCER_ON_TOPIC))
        found |= _of_type(some, ResourceType.TRANSACTIONAL_ID, _entries(options, _PRODUCER_ON_TRANSACTIONAL_ID))
        if options.idempotent:
            found[CLUSTER] = _entries(options, (_Op.IDEMPOTENT_WRITE,))
    if options.consumer:
        mine = {
            **_of_type(some, ResourceType.TOPIC, _entries(options, _CONSUMER_ON_TOPIC)),
            **_of_type(some, ResourceType.GROUP, _entries(options, _CONSUMER_ON_GROUP)),
        }
        for pattern, entries in mine.items():
            found[pattern] = found.get(pattern, set()) | entries
    _check_operations(found)
    return {pattern: tuple(sorted(entries)) for pattern, entries in sorted(found.items())}


def _of_type(some: Iterable[Pattern], resource_type: ResourceType, entries: set[Entry]) -> dict[Pattern, set[Entry]]:
    return {pattern: entries for pattern in some if pattern.resource_type == resource_type}


def _entries(options: Options, operations: Sequence[AclOperation]) -> set[Entry]:
    who = (
        (AclPermissionType.ALLOW, options.allow_principal, options.allow_host),
        (AclPermissionType.DENY, options.deny_principal, options.deny_host),
    )
    return {
        Entry(principal, host.strip(), operation, permission)
        for permission, principals, hosts in who
        for principal in parse_principals(principals)
        for host in hosts or (WILDCARD,)
        for operation in operations
    }


def parse_principals(texts: Iterable[str]) -> list[str]:
    """Return principals in the order of Kafka's hash table. Raises ValueError for a malformed one."""
    principals = dict.fromkeys(parse_principal(text.strip()) for text in texts)
    return [str(each) for each in hash_order(principals, hash_of=_principal_hash)]


def _principal_hash(principal: KafkaPrincipal) -> int:
    return 31 * text_hash(principal.type) + text_hash(principal.name) & 0xFFFFFFFF


def _operation(text: str) -> AclOperation:
    """Find an operation by its name without underscores, as Kafka writes it: `DescribeConfigs`."""
    names = {operation.name.replace("_", ""): operation for operation in AclOperation}
    return names.get(text.strip().upper(), AclOperation.UNKNOWN)


def _check_operations(found: Mapping[Pattern, Iterable[Entry]]) -> None:
    for pattern, entries in sorted(found.items()):
        valid = (*SUPPORTED_OPERATIONS[pattern.resource_type], AclOperation.ALL)
        if any(entry.operation not in valid for entry in entries):
            names = ", ".join(operation.name for operation in sorted(valid))
            raise UsageProblem(f"ResourceType {pattern.resource_type.name} only supports operations [{names}]")


# --- conversion to and from the client's types


def entry_of(pattern: Pattern, entry: Entry) -> AclEntry:
    return AclEntry(pattern.resource_type, pattern.name, pattern.pattern_type, *entry)


def filter_of(pattern: Pattern, entry: Entry | None = None) -> AclFilter:
    if entry is None:
        return AclFilter(*pattern)
    return AclFilter(*entry_of(pattern, entry))


def by_pattern(entries: Iterable[AclEntry]) -> Wanted:
    """Group the entries by pattern, both sorted."""
    found: dict[Pattern, set[Entry]] = {}
    for entry in entries:
        found.setdefault(Pattern(*entry[:3]), set()).add(Entry(*entry[3:]))
    return {pattern: tuple(sorted(some)) for pattern, some in sorted(found.items())}


# --- lines


def listing_lines(listed: Wanted) -> list[str]:
    lines = []
    for pattern, entries in listed.items():
        lines += [f"Current ACLs for resource `{pattern}`:", *(f"\t{entry}" for entry in entries), ""]
    return lines


def adding_lines(pattern: Pattern, entries: Sequence[Entry]) -> list[str]:
    return [f"Adding ACLs for resource `{pattern}`: ", " " + "\n".join(f"\t{entry}" for entry in entries), ""]


def exists_line(pattern: Pattern, entry: Entry) -> str:
    return f"Acl (pattern={pattern}, entry={entry}) already exists."


def question_lines(pattern: Pattern, entries: Sequence[Entry]) -> list[str]:
    if not entries:
        return [f"Are you sure you want to delete all ACLs for resource filter `{pattern}`? (y/n)"]
    return [
        "Are you sure you want to remove ACLs: ",
        " " + "\n".join(f"\t{entry}" for entry in entries),
        f" from resource filter `{pattern}`? (y/n)",
    ]
