"""ACL entries, the filters that select them, and the validation of new entries.

Its one rule: codes have Kafka's meaning. A code that Kafka does not know keeps its number, and its `is_known` is false.
This module does not decide whether a request is allowed (see authorizer), and does not reject the code 0, which on the
wire is a malformed request.
"""

from __future__ import annotations

import ipaddress
import struct
from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

from barnabas.steps import Slices, stepwise
from barnabas.wire.errors import ErrorCode, KafkaError

WILDCARD = "*"
WILDCARD_PRINCIPAL = "User:*"
CLUSTER_NAME = "kafka-cluster"


class _Code(IntEnum):
    @classmethod
    def _missing_(cls, value: object) -> _Code | None:
        # What a newer node has written must be preserved when it is read and written here.
        if not isinstance(value, int):
            return None
        stranger = int.__new__(cls, value)
        stranger._name_, stranger._value_ = f"UNKNOWN_{value}", value
        return stranger

    @property
    def is_known(self) -> bool:
        return 0 < self < len(type(self))


class ResourceType(_Code):
    UNKNOWN = 0
    ANY = 1
    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7


class PatternType(_Code):
    """MATCH is for filters only: every pattern that covers a name."""

    UNKNOWN = 0
    ANY = 1
    MATCH = 2
    LITERAL = 3
    PREFIXED = 4


class AclOperation(_Code):
    UNKNOWN = 0
    ANY = 1
    ALL = 2
    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12
    CREATE_TOKENS = 13
    DESCRIBE_TOKENS = 14
    TWO_PHASE_COMMIT = 15


class AclPermissionType(_Code):
    UNKNOWN = 0
    ANY = 1
    DENY = 2
    ALLOW = 3


class AclEntry(NamedTuple):
    """Allows or denies a principal, from a host, an operation on the resources of a pattern."""

    resource_type: ResourceType
    resource_name: str
    pattern_type: PatternType
    principal: str
    host: str
    operation: AclOperation
    permission: AclPermissionType

    def __str__(self) -> str:
        return (
            f"{self.permission.name} {self.principal} from {self.host or 'no host'} to {self.operation.name}"
            f" on {self.resource_type.name} {self.pattern_type.name} {self.resource_name!r}"
        )

    def covers(self, name: str) -> bool:
        """Whether the pattern covers a resource of this name."""
        if self.pattern_type == PatternType.PREFIXED:
            return name.startswith(self.resource_name)
        return self.resource_name in (name, WILDCARD)


@dataclass(frozen=True, slots=True)
class AclFilter:
    """Selects entries. None and ANY match every value of a field."""

    resource_type: ResourceType = ResourceType.ANY
    resource_name: str | None = None
    pattern_type: PatternType = PatternType.ANY
    principal: str | None = None
    host: str | None = None
    operation: AclOperation = AclOperation.ANY
    permission: AclPermissionType = AclPermissionType.ANY

    @property
    def entry(self) -> AclEntry | None:
        """The only entry that this filter can select, or None if a field is open."""
        if (
            self.resource_type == ResourceType.ANY
            or self.resource_name is None
            or self.pattern_type in (PatternType.ANY, PatternType.MATCH)
            or self.principal is None
            or self.host is None
            or self.operation == AclOperation.ANY
            or self.permission == AclPermissionType.ANY
        ):
            return None
        return AclEntry(
            self.resource_type,
            self.resource_name,
            self.pattern_type,
            self.principal,
            self.host,
            self.operation,
            self.permission,
        )

    def matches(self, entry: AclEntry) -> bool:
        return (
            self.resource_type in (ResourceType.ANY, entry.resource_type)
            and self._matches_pattern(entry)
            and self.principal in (None, entry.principal)
            and self.host in (None, entry.host)
            and self.operation in (AclOperation.ANY, entry.operation)
            and self.permission in (AclPermissionType.ANY, entry.permission)
        )

    def _matches_pattern(self, entry: AclEntry) -> bool:
        if self.pattern_type == PatternType.MATCH:
            return self.resource_name is None or entry.covers(self.resource_name)
        return self.pattern_type in (PatternType.ANY, entry.pattern_type) and (
            self.resource_name in (None, entry.resource_name)
        )


def validate_creations(entries: Iterable[AclEntry]) -> Slices[list[KafkaError | None]]:
    """Return the error, or None, for each entry of one CreateAcls request.

    A value that only filters may have (ANY, MATCH) in one entry fails all of them, as in Kafka.
    """
    errors: list[KafkaError | None] = []
    for some in stepwise(entries):
        errors += [validate_new(entry) for entry in some]
        yield
    for error in errors:
        if error is not None and error.code == ErrorCode.UNKNOWN_SERVER_ERROR:
            return [error] * len(errors)
    return errors


def validate_new(entry: AclEntry) -> KafkaError | None:
    """Return why the entry cannot be created, with Kafka's text and order of checks, or None."""
    if (
        entry.resource_type == ResourceType.ANY
        or entry.pattern_type in (PatternType.ANY, PatternType.MATCH)
        or entry.operation == AclOperation.ANY
        or entry.permission == AclPermissionType.ANY
    ):
        return KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)
    message = _invalid(entry)
    return None if message is None else KafkaError(ErrorCode.INVALID_REQUEST, message)


def _invalid(entry: AclEntry) -> str | None:
    if entry.resource_type == ResourceType.CLUSTER and entry.resource_name != CLUSTER_NAME:
        return f"The only valid name for the CLUSTER resource is {CLUSTER_NAME}"
    if not entry.resource_name:
        return "Invalid empty resource name"
    if not entry.resource_type.is_known:
        return "Invalid resourceType UNKNOWN"
    if not entry.pattern_type.is_known:
        return "Invalid patternType UNKNOWN"
    if not entry.operation.is_known:
        return "Invalid operation UNKNOWN"
    if not entry.permission.is_known:
        return "Invalid permissionType UNKNOWN"
    if ":" not in entry.principal:
        return (
            f"Could not parse principal from `{entry.principal}` "
            "(no colon is present separating the principal type from the principal name)"
        )
    return None


def validate_filter(filter: AclFilter) -> KafkaError | None:
    """Return why DeleteAcls rejects a filter, or None. DescribeAcls rejects none."""
    if not (filter.resource_type.is_known and filter.pattern_type.is_known):
        return KafkaError(ErrorCode.INVALID_REQUEST, "Unknown patternFilter.")
    if not (filter.operation.is_known and filter.permission.is_known):
        return KafkaError(ErrorCode.INVALID_REQUEST, "Unknown entryFilter.")
    return None


def host_text(address: str) -> str:
    """Return an IP address in Java's format, with which the host of an entry is compared: `0:0:0:0:0:0:0:1`."""
    if ":" not in address:
        return address
    parsed = ipaddress.IPv6Address(address)
    if parsed.ipv4_mapped is not None:
        return str(parsed.ipv4_mapped)
    groups = ":".join(f"{group:x}" for group in struct.unpack(">8H", parsed.packed))
    return groups if parsed.scope_id is None else f"{groups}%{parsed.scope_id}"
