"""Entries, filters and validation; `data/acls.jsonl.gz` is what Apache Kafka 4.3.1 answered to CreateAcls, DescribeAcls
and DeleteAcls."""

from __future__ import annotations

import dataclasses
import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from barnabas.security.acl import (
    AclEntry,
    AclFilter,
    AclOperation,
    AclPermissionType,
    PatternType,
    ResourceType,
    host_text,
    validate_creations,
    validate_filter,
    validate_new,
)
from barnabas.steps import at_once
from barnabas.wire.errors import ErrorCode

ENTRY = AclEntry(
    ResourceType.TOPIC, "orders", PatternType.LITERAL, "User:a", "*", AclOperation.READ, AclPermissionType.ALLOW
)
replace = AclEntry._replace


def captures(api: str) -> list[Any]:
    with gzip.open(Path(__file__).parent / "data/acls.jsonl.gz", "rt") as lines:
        found = [capture for capture in map(json.loads, lines) if capture["api"] == api]
    return [pytest.param(capture, id=f"v{capture['version']}-{capture['case']}") for capture in found]


def entry_of(row: dict[str, Any], pattern: str = "patternType") -> AclEntry:
    return AclEntry(
        ResourceType(row["resourceType"]),
        row["resourceName"],
        PatternType(row[pattern]),
        row["principal"],
        row["host"],
        AclOperation(row["operation"]),
        AclPermissionType(row["permissionType"]),
    )


def filter_of(row: dict[str, Any]) -> AclFilter:
    return AclFilter(
        ResourceType(row["resourceTypeFilter"]),
        row["resourceNameFilter"],
        PatternType(row["patternTypeFilter"]),
        row["principalFilter"],
        row["hostFilter"],
        AclOperation(row["operation"]),
        AclPermissionType(row["permissionType"]),
    )


def described(response: dict[str, Any]) -> list[AclEntry]:
    return [entry_of({**resource, **acl}) for resource in response["resources"] for acl in resource["acls"]]


def all_entries() -> list[AclEntry]:
    (found,) = [p.values[0] for p in captures("DescribeAcls") if p.id == "v2-all"]
    return described(found["response"])


@pytest.mark.parametrize("capture", captures("CreateAcls"))
def test_a_creation_is_answered_as_by_kafka(capture: dict[str, Any]) -> None:
    entries = [entry_of(row, "resourcePatternType") for row in capture["request"]["creations"]]
    answers = [(0, "") if e is None else (int(e.code), e.message) for e in at_once(validate_creations(entries))]
    answers = [(-1, None) if code == -1 else (code, message) for code, message in answers]
    assert answers == [(row["errorCode"], row["errorMessage"]) for row in capture["response"]["results"]]


@pytest.mark.parametrize("capture", captures("DescribeAcls"))
def test_a_filter_describes_what_it_describes_in_kafka(capture: dict[str, Any]) -> None:
    selects = filter_of(capture["request"])
    found = [entry for entry in all_entries() if selects.matches(entry)]
    expected = described(capture["response"])
    assert len(found) == len(expected)
    assert set(found) == set(expected)


@pytest.mark.parametrize("capture", captures("DeleteAcls"))
def test_a_filter_deletes_what_it_deletes_in_kafka(capture: dict[str, Any]) -> None:
    for row, result in zip(capture["request"]["filters"], capture["response"]["filterResults"], strict=True):
        selects = filter_of(row)
        assert validate_filter(selects) is None
        found = {entry for entry in all_entries() if selects.matches(entry)}
        assert found == {entry_of(acl) for acl in result["matchingAcls"]}


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("resource_type", ResourceType.ANY),
        ("pattern_type", PatternType.ANY),
        ("pattern_type", PatternType.MATCH),
        ("operation", AclOperation.ANY),
        ("permission", AclPermissionType.ANY),
    ],
)
def test_a_value_of_filters_in_one_new_entry_fails_the_whole_request(field: str, value: Any) -> None:
    invalid = replace(ENTRY, principal="nobody")
    errors = at_once(validate_creations([ENTRY, invalid, replace(ENTRY, resource_name="", **{field: value})]))
    assert [e and e.code for e in errors] == [ErrorCode.UNKNOWN_SERVER_ERROR] * 3


def test_the_name_of_a_new_entry_is_checked_before_anything_else() -> None:
    unknown = replace(ENTRY, operation=AclOperation.UNKNOWN, principal="nobody")
    cluster = validate_new(replace(unknown, resource_type=ResourceType.CLUSTER, resource_name=""))
    assert cluster is not None
    assert cluster.message == "The only valid name for the CLUSTER resource is kafka-cluster"
    empty = validate_new(replace(unknown, resource_name=""))
    assert empty is not None
    assert empty.message == "Invalid empty resource name"


@pytest.mark.parametrize(
    ("filter", "message"),
    [
        (AclFilter(resource_type=ResourceType(8)), "Unknown patternFilter."),
        (AclFilter(pattern_type=PatternType(5), operation=AclOperation(16)), "Unknown patternFilter."),
        (AclFilter(operation=AclOperation(-1)), "Unknown entryFilter."),
        (AclFilter(permission=AclPermissionType(4)), "Unknown entryFilter."),
    ],
)
def test_a_filter_with_an_unknown_field_is_refused_and_selects_nothing(filter: AclFilter, message: str) -> None:
    error = validate_filter(filter)
    assert error is not None
    assert (error.code, error.message) == (ErrorCode.INVALID_REQUEST, message)
    assert not any(filter.matches(entry) for entry in all_entries())


def test_a_code_out_of_range_keeps_its_number_and_is_not_known_and_a_name_is_no_code() -> None:
    assert (AclOperation(99), str(AclOperation(99).name)) == (99, "UNKNOWN_99")
    assert [code for code in range(-128, 128) if AclOperation(code).is_known] == list(range(1, 16))
    with pytest.raises(ValueError, match="READ"):
        AclOperation("READ")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("pattern_type", "name", "matched"),
    [
        (PatternType.MATCH, "orders.eu", {("orders.eu", 3), ("*", 3), ("orders", 4), ("orders.eu", 4)}),
        (PatternType.MATCH, "order", {("*", 3)}),
        (PatternType.MATCH, "*", {("*", 3)}),
        (PatternType.MATCH, None, {("orders.eu", 3), ("*", 3), ("orders", 4), ("orders.eu", 4), ("orders", 3)}),
        (PatternType.ANY, "orders.eu", {("orders.eu", 3), ("orders.eu", 4)}),
        (PatternType.ANY, "*", {("*", 3)}),
        (PatternType.LITERAL, "orders", {("orders", 3)}),
        (PatternType.PREFIXED, "orders", {("orders", 4)}),
        (PatternType.PREFIXED, None, {("orders", 4), ("orders.eu", 4)}),
        (PatternType.UNKNOWN, None, set()),
    ],
)
def test_what_a_filter_for_a_name_selects_follows_from_its_pattern_type(
    pattern_type: PatternType, name: str | None, matched: set[tuple[str, int]]
) -> None:
    patterns = [("orders", 3), ("orders.eu", 3), ("*", 3), ("orders", 4), ("orders.eu", 4)]
    entries = [replace(ENTRY, resource_name=name, pattern_type=PatternType(code)) for name, code in patterns]
    selects = AclFilter(pattern_type=pattern_type, resource_name=name)
    assert {(e.resource_name, int(e.pattern_type)) for e in entries if selects.matches(e)} == matched


def test_a_filter_that_leaves_nothing_open_names_its_one_entry() -> None:
    exact = AclFilter(*ENTRY)
    assert exact.entry == ENTRY
    assert exact.matches(ENTRY)
    for open_field in (
        {"resource_type": ResourceType.ANY},
        {"resource_name": None},
        {"pattern_type": PatternType.ANY},
        {"pattern_type": PatternType.MATCH},
        {"principal": None},
        {"host": None},
        {"operation": AclOperation.ANY},
        {"permission": AclPermissionType.ANY},
    ):
        assert dataclasses.replace(exact, **open_field).entry is None


def test_the_empty_string_in_a_filter_is_a_value_and_not_a_wildcard() -> None:
    assert not AclFilter(host="").matches(ENTRY)
    assert AclFilter(host="").matches(replace(ENTRY, host=""))


def test_the_scope_of_an_address_stays_in_its_text() -> None:
    assert host_text("fe80::1%eth0") == "fe80:0:0:0:0:0:0:1%eth0"
