"""DescribeAcls (29), CreateAcls (30) and DeleteAcls (31)."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas.broker.dispatch import Refused
from barnabas.metadata.acls import to_record
from barnabas.security.acl import AclEntry, AclOperation, AclPermissionType, PatternType, ResourceType
from barnabas.security.authorizer import AuthorizerSettings
from barnabas.wire import Message, Uuid
from barnabas.wire.messages.create_acls import CreateAclsRequest
from barnabas.wire.messages.delete_acls import DeleteAclsRequest
from barnabas.wire.messages.describe_acls import DescribeAclsRequest
from barnabas.wire.records.metadata import AccessControlEntryRecord, RemoveAccessControlEntryRecord
from tests.broker.harness import MemoryNode
from tests.broker.topic_captures import ALICE, AUTHORIZER, Capture, captures, final_node, node_before, params

FIRST_CREATION, FIRST_DELETION, LAST_CREATION = 1262, 1387, 1400  # offsets in the log of the captured cluster

TOPIC, GROUP = ResourceType.TOPIC, ResourceType.GROUP
LITERAL, PREFIXED = PatternType.LITERAL, PatternType.PREFIXED

Creation = CreateAclsRequest.AclCreation
Filter = DeleteAclsRequest.DeleteAclsFilter


def entry(
    name: str = "orders",
    pattern_type: PatternType = LITERAL,
    principal: str = "User:a",
    operation: AclOperation = AclOperation.READ,
    resource_type: ResourceType = TOPIC,
    permission: AclPermissionType = AclPermissionType.ALLOW,
) -> AclEntry:
    return AclEntry(resource_type, name, pattern_type, principal, "*", operation, permission)


def creation(made: AclEntry) -> Creation:
    return Creation(
        resource_type=made.resource_type,
        resource_name=made.resource_name,
        resource_pattern_type=made.pattern_type,
        principal=made.principal,
        host=made.host,
        operation=made.operation,
        permission_type=made.permission,
    )


def any_filter(**fields: Any) -> Filter:
    given = {"resource_type_filter": 1, "pattern_type_filter": 1, "operation": 1, "permission_type": 1, **fields}
    names = dict.fromkeys(("resource_name_filter", "principal_filter", "host_filter"))
    return Filter(**{**names, **given})


def describe(memory: MemoryNode, version: int = 3, **fields: Any) -> Any:
    selects = any_filter(**fields)
    request = DescribeAclsRequest(**{name: getattr(selects, name) for name in type(selects).__slots__})
    return memory.call(request, version)


def node(*entries: AclEntry) -> MemoryNode:
    records = [to_record(Uuid(number.to_bytes(16)), each) for number, each in enumerate(entries, 1)]
    return MemoryNode(records=records, authorizer=AUTHORIZER)


def replayed(memory: MemoryNode, capture: Capture) -> None:
    if capture.response_hex is None:
        with pytest.raises(Refused, match="UNKNOWN elements"):
            capture.ask(memory)
    elif capture.stability == "exact":
        assert capture.ask(memory) == capture.answer
    else:  # the order is that of a hash table
        mine, theirs = capture.decode(capture.ask(memory)), capture.response
        assert sorted(mine.resources, key=repr) == sorted(theirs.resources, key=repr)


@pytest.mark.parametrize("capture", params("DescribeAcls"))
def test_entries_are_described_as_by_kafka(capture: Capture) -> None:
    replayed(final_node() if capture.phase == "5-final" else node_before(FIRST_DELETION), capture)


@pytest.mark.parametrize("version", [1, 2, 3])
def test_entries_are_created_as_by_kafka_and_once(version: int) -> None:
    memory = node_before(FIRST_CREATION)
    wanted = [capture for capture in captures("CreateAcls") if capture.version == version]
    for capture in wanted:
        replayed(memory, capture)
    written = [record for record in memory.written if isinstance(record, AccessControlEntryRecord)]
    assert len(written) == len(memory.written) == len(memory.image.acls.index) == len(set(memory.image.acls.index))
    assert f"acl-t{version}" in [record.resource_name for record in written]


def test_entries_are_deleted_as_by_kafka() -> None:
    memory = node_before(FIRST_DELETION)
    for capture in captures("DeleteAcls"):
        replayed(memory, capture)
    wanted = node_before(LAST_CREATION).image.acls.by_id
    gone = {entry for acl_id, entry in node_before(FIRST_DELETION).image.acls.by_id.items() if acl_id not in wanted}
    mine = {entry for entry in node_before(FIRST_DELETION).image.acls.index if entry not in memory.image.acls.index}
    assert mine and mine <= gone


def test_version_0_knows_literal_patterns_alone() -> None:
    memory = node(entry("a"), entry("a", PREFIXED))
    assert [r.resource_name for r in describe(memory, 0, pattern_type_filter=3).resources] == ["a"]
    memory.call(CreateAclsRequest(creations=[creation(entry("b"))]), 0)
    assert entry("b") in memory.image.acls.index
    response = memory.call(DeleteAclsRequest(filters=[any_filter(pattern_type_filter=3)]), 0)
    assert [acl.resource_name for acl in response.filter_results[0].matching_acls] == ["a", "b"]
    assert list(memory.image.acls.index) == [entry("a", PREFIXED)]


def test_resources_and_their_entries_come_sorted_and_once() -> None:
    mixed = [
        entry("b"),
        entry("a", PREFIXED),
        entry("a", principal="User:b"),
        entry("a"),
        entry("a", resource_type=GROUP),
    ]
    resources = describe(node(*mixed, entry("b"))).resources
    shown = [(r.resource_type, r.resource_name, r.pattern_type, [a.principal for a in r.acls]) for r in resources]
    assert shown == [
        (2, "a", 3, ["User:a", "User:b"]),
        (2, "a", 4, ["User:a"]),
        (2, "b", 3, ["User:a"]),
        (3, "a", 3, ["User:a"]),
    ]


def test_an_entry_of_a_newer_node_is_described_and_deleted_with_its_numbers() -> None:
    memory = node(entry(operation=AclOperation(99)))
    assert describe(memory).resources[0].acls[0].operation == 99
    matching = memory.call(DeleteAclsRequest(filters=[any_filter()]), 3).filter_results[0].matching_acls
    assert [acl.operation for acl in matching] == [99]
    assert len(memory.image.acls.by_id) == 0


def test_an_entry_that_is_given_twice_or_is_there_is_written_once() -> None:
    memory = node(entry("there"))
    given = [creation(entry(name)) for name in ("new", "there", "new")]
    response = memory.call(CreateAclsRequest(creations=given), 3)
    assert [(r.error_code, r.error_message) for r in response.results] == [(0, "")] * 3
    assert [getattr(record, "resource_name", None) for record in memory.written] == ["new"]


def test_too_many_entries_at_once_are_refused_for_all() -> None:
    memory = node()
    given = [creation(entry(f"t{number}")) for number in range(10_001)]
    results = memory.call(CreateAclsRequest(creations=given), 3).results
    expected = (44, "Unable to perform excessively large batch operation.")
    assert len(results) == 10_001 and {(r.error_code, r.error_message) for r in results} == {expected}
    assert memory.written == []


def test_a_filter_with_an_unknown_code_fails_and_the_others_work() -> None:
    memory = node(entry("a"))
    filters = [any_filter(operation=99), any_filter(resource_type_filter=-1), any_filter(resource_name_filter="a")]
    rows = memory.call(DeleteAclsRequest(filters=filters), 3).filter_results
    assert [(r.error_code, r.error_message, len(r.matching_acls)) for r in rows] == [
        (42, "Unknown entryFilter.", 0),
        (42, "Unknown patternFilter.", 0),
        (0, None, 1),
    ]
    assert [type(record) for record in memory.written] == [RemoveAccessControlEntryRecord]


REQUESTS: list[tuple[Message, str]] = [
    (DescribeAclsRequest(resource_type_filter=1, pattern_type_filter=3, operation=1, permission_type=1), "DESCRIBE"),
    (CreateAclsRequest(creations=[creation(entry())] * 2), "ALTER"),
    (DeleteAclsRequest(filters=[any_filter(pattern_type_filter=3)] * 2), "ALTER"),
]


def told(response: Any) -> list[tuple[int, str | None]]:
    rows = getattr(response, "results", None) or getattr(response, "filter_results", None) or [response]
    return [(row.error_code, row.error_message) for row in rows]


@pytest.mark.parametrize(("request_", "operation"), REQUESTS)
@pytest.mark.parametrize("version", [0, 3])
def test_who_may_not_is_told_so_in_every_row(request_: Message, operation: str, version: int) -> None:
    memory = node(entry(principal="User:alice"))
    text = f"The request of User:alice from 127.0.0.1 needs {operation} permission."
    rows = told(memory.call(request_, version, principal=ALICE))
    assert rows == [(31, text)] * (1 if operation == "DESCRIBE" else 2)
    assert memory.written == []


@pytest.mark.parametrize(("request_", "operation"), REQUESTS)
def test_who_may_may(request_: Message, operation: str) -> None:
    cluster = entry("kafka-cluster", LITERAL, "User:alice", AclOperation[operation], ResourceType.CLUSTER)
    assert {code for code, _ in told(node(cluster).call(request_, 3, principal=ALICE))} == {0}


@pytest.mark.parametrize(("request_", "operation"), REQUESTS)
def test_without_an_authorizer_security_is_disabled(request_: Message, operation: str) -> None:
    text = "No Authorizer is configured" + (" on the broker" if operation == "DESCRIBE" else ".")
    assert set(told(MemoryNode(authorizer=AuthorizerSettings()).call(request_, 3))) == {(54, text)}
