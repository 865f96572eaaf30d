"""Random requests about ACLs to a node in memory: entries are a set, and filters select from it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from barnabas.security.acl import AclOperation, AclPermissionType, PatternType, ResourceType
from barnabas.security.authorizer import AuthorizerSettings
from barnabas.security.principal import ANONYMOUS
from barnabas.wire import ErrorCode
from barnabas.wire.message import Struct
from barnabas.wire.messages.create_acls import CreateAclsRequest
from barnabas.wire.messages.delete_acls import DeleteAclsRequest
from barnabas.wire.messages.describe_acls import DescribeAclsRequest
from tests.broker.harness import MemoryNode

# Resource type, name, pattern type, principal, host, operation, permission; in a filter names may be None.
Entry = tuple[int, str, int, str, str, int, int]
Filter = tuple[int, str | None, int, str | None, str | None, int, int]
Step = tuple[str, list[Any]]
ANY, MATCH = 1, 2

entries = st.tuples(
    st.sampled_from([ResourceType.TOPIC, ResourceType.GROUP]),
    st.sampled_from(["a", "ab", "abc", "*", ""]),
    st.sampled_from([PatternType.LITERAL, PatternType.PREFIXED]),
    st.sampled_from(["User:ann", "User:*", "nobody"]),
    st.sampled_from(["*", "10.0.0.1"]),
    st.sampled_from([AclOperation.READ, AclOperation.ALL, AclOperation.DESCRIBE]),
    st.sampled_from([AclPermissionType.ALLOW, AclPermissionType.DENY]),
)
filters = st.tuples(
    st.sampled_from([ANY, ResourceType.TOPIC, ResourceType.GROUP]),
    st.sampled_from([None, "a", "ab", "abcd", "*"]),
    st.sampled_from([ANY, MATCH, PatternType.LITERAL, PatternType.PREFIXED]),
    st.sampled_from([None, "User:ann", "User:*"]),
    st.sampled_from([None, "*", "10.0.0.1"]),
    st.sampled_from([ANY, AclOperation.READ, AclOperation.ALL]),
    st.sampled_from([ANY, AclPermissionType.ALLOW, AclPermissionType.DENY]),
)


def selects(wanted: Filter, entry: Entry) -> bool:
    kind, name, pattern, principal, host, operation, permission = wanted
    return (
        kind in (ANY, entry[0])
        and names_match(name, pattern, entry[1], entry[2])
        and principal in (None, entry[3])
        and host in (None, entry[4])
        and operation in (ANY, entry[5])
        and permission in (ANY, entry[6])
    )


def names_match(name: str | None, pattern: int, entry_name: str, entry_pattern: int) -> bool:
    if pattern not in (ANY, MATCH, entry_pattern):
        return False
    if name is None or name == entry_name:
        return True
    if pattern != MATCH:
        return False
    return name.startswith(entry_name) if entry_pattern == PatternType.PREFIXED else entry_name == "*"


def is_legal_entry(entry: Entry) -> bool:
    return entry[1] != "" and ":" in entry[3]


steps = st.one_of(
    st.tuples(st.just("create"), st.lists(entries, min_size=1, max_size=4)),
    st.tuples(st.just("delete"), st.lists(filters, min_size=1, max_size=2)),
    st.tuples(st.just("describe"), st.lists(filters, min_size=1, max_size=1)),
)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(steps, max_size=12))
def test_acls_are_a_set_that_filters_select_from(sequence: list[Step]) -> None:
    node = MemoryNode(authorizer=AuthorizerSettings(enabled=True, super_users=frozenset({str(ANONYMOUS)})))
    held: set[Entry] = set()
    for step, wanted in sequence:
        CARRIED_OUT[step](node, held, wanted)


def build(kind: type[Struct], values: Sequence[object]) -> Any:
    return kind(**dict(zip(kind.__slots__, values, strict=True)))


def entry_of(resource: Any, acl: Any) -> Entry:
    pattern = (resource.resource_type, resource.resource_name, resource.pattern_type)
    return (*pattern, acl.principal, acl.host, acl.operation, acl.permission_type)


def create(node: MemoryNode, held: set[Entry], wanted: list[Entry]) -> None:
    creations = [build(CreateAclsRequest.AclCreation, entry) for entry in wanted]
    response = node.call(CreateAclsRequest(creations=creations), 3)
    for entry, row in zip(wanted, response.results, strict=True):
        assert row.error_code == (0 if is_legal_entry(entry) else ErrorCode.INVALID_REQUEST), (entry, row)
        if row.error_code == 0:
            held.add(entry)


def delete(node: MemoryNode, held: set[Entry], wanted: list[Filter]) -> None:
    filters = [build(DeleteAclsRequest.DeleteAclsFilter, each) for each in wanted]
    response = node.call(DeleteAclsRequest(filters=filters), 3)
    for each, result in zip(wanted, response.filter_results, strict=True):
        assert result.error_code == 0
        matched = {entry_of(row, row) for row in result.matching_acls}
        assert matched == {entry for entry in held if selects(each, entry)}
    held -= {entry for entry in held if any(selects(each, entry) for each in wanted)}


def describe(node: MemoryNode, held: set[Entry], wanted: list[Filter]) -> None:
    response = node.call(build(DescribeAclsRequest, wanted[0]), 3)
    assert response.error_code == 0
    found = [entry_of(resource, acl) for resource in response.resources for acl in resource.acls]
    assert len(found) == len(set(found))
    assert set(found) == {entry for entry in held if selects(wanted[0], entry)}


CARRIED_OUT: dict[str, Callable[..., None]] = {"create": create, "delete": delete, "describe": describe}
