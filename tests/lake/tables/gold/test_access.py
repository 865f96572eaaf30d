"""Who may do what, and what is odd about it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from barnabas.lake.declared_column import ddl
from barnabas.lake.tables.gold.access import access, acl_findings, acl_grants, acl_grants_by_resource, traces_of_use
from barnabas.lake.tables.traffic import TRAFFIC
from tests.lake.tables.gold.histories import CLUSTER, Histories, at

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ENTRY: dict[str, Any] = {
    "resource_type": "TOPIC", "pattern_type": "LITERAL", "resource_name": "orders", "principal": "User:a", "host": "*",
    "operation": "READ", "permission": "ALLOW", "begin": 0,
}  # fmt: skip


@pytest.fixture(scope="module")
def histories(spark: SparkSession) -> Histories:
    return Histories(spark)


def _acls(histories: Histories, *entries: dict[str, Any]) -> DataFrame:
    return histories.table("acls", *({**ENTRY, "acl_id": str(number), **row} for number, row in enumerate(entries)))


def _topics(histories: Histories, *names: str) -> DataFrame:
    return histories.table("topics", *({"topic_id": name, "name": name, "begin": 0} for name in names))


def test_grants_are_of_the_entries_that_hold_by_principal_and_by_resource(histories: Histories) -> None:
    acls = _acls(
        histories,
        {"begin": 30},
        {"operation": "WRITE", "permission": "DENY", "begin": 20},
        {"resource_name": "*"},
        {"operation": "ALTER", "end": 5},
        {"principal": "User:b", "operation": "WRITE", "host": "10.0.0.1"},
    )
    grants = acl_grants(acls).cache()
    assert {(row.principal, row.resource_name): (row.allowed, row.denied, row.hosts) for row in grants.collect()} == {
        ("User:a", "orders"): (["READ"], ["WRITE"], ["*"]),
        ("User:a", "*"): (["READ"], [], ["*"]),
        ("User:b", "orders"): (["WRITE"], [], ["10.0.0.1"]),
    }
    rows = {row.resource_name: row for row in acl_grants_by_resource(grants).collect()}
    assert {name: (row.allowed, row.denied) for name, row in rows.items()} == {
        "orders": ({"User:a": ["READ"], "User:b": ["WRITE"]}, {"User:a": ["WRITE"]}),
        "*": ({"User:a": ["READ"]}, {}),
    }
    assert {row.since.timestamp() for row in rows.values()} == {at(0).timestamp()}


def test_access_is_what_all_entries_together_leave_of_what_is_there(histories: Histories) -> None:
    acls = _acls(
        histories,
        {"resource_name": "or", "pattern_type": "PREFIXED"},
        {"operation": "DESCRIBE", "permission": "DENY"},
        {"principal": "User:*", "resource_name": "stock", "operation": "WRITE"},
        {"principal": "User:b", "resource_name": "gone"},
        {"principal": "User:b", "resource_type": "GROUP", "resource_name": "*"},
        {"principal": "User:b", "resource_type": "TRANSACTIONAL_ID", "resource_name": "pay", "operation": "WRITE"},
        {"principal": "User:admin", "resource_type": "CLUSTER", "resource_name": "kafka-cluster", "operation": "ALTER"},
        {"principal": "User:late", "end": 5},
    )
    found = access(
        acls,
        _topics(histories, "orders", "ordered", "stock", "private"),
        histories.table("groups", {"group_id": "g", "begin": 0}),
        histories.table("group_offsets", {"group_id": "only-commits", "topic": "orders", "partition": 0, "begin": 0}),
        histories.table("transactions"),
        histories.table("tokens"),
    ).collect()
    assert all((row.cluster_id, row.host) == (CLUSTER, "*") for row in found)
    assert {
        (row.principal, row.resource_type, row.pattern_type, row.resource_name): row.operations for row in found
    } == {
        ("User:a", "TOPIC", "PREFIXED", "or"): ["READ", "DESCRIBE"],
        ("User:a", "TOPIC", "LITERAL", "ordered"): ["READ", "DESCRIBE"],
        ("User:a", "TOPIC", "LITERAL", "orders"): ["READ"],
        ("User:*", "TOPIC", "LITERAL", "stock"): ["WRITE", "DESCRIBE"],
        ("User:b", "GROUP", "LITERAL", "*"): ["READ", "DESCRIBE"],
        ("User:b", "GROUP", "LITERAL", "g"): ["READ", "DESCRIBE"],
        ("User:b", "GROUP", "LITERAL", "only-commits"): ["READ", "DESCRIBE"],
        ("User:b", "TRANSACTIONAL_ID", "LITERAL", "pay"): ["WRITE", "DESCRIBE"],
        ("User:admin", "CLUSTER", "LITERAL", "kafka-cluster"): ["ALTER", "DESCRIBE"],
    }


def test_findings_are_those_of_the_audit_and_use_is_only_judged_where_it_would_be_seen(histories: Histories) -> None:
    acls = _acls(
        histories,
        {},
        {"operation": "WRITE", "permission": "DENY"},
        {"resource_name": "*"},
        {"resource_name": "nowhere", "principal": "User:b"},
        {"resource_name": "idle", "principal": "User:c", "operation": "WRITE"},
        {"resource_name": "subscribed", "principal": "User:c"},
        {"resource_name": "lost", "resource_type": "GROUP", "principal": "User:b"},
    )
    topics = _topics(histories, "orders", "idle", "subscribed", "__consumer_offsets")
    offsets = histories.table(
        "group_offsets",
        {"group_id": "g", "topic": "orders", "partition": 0, "commit_time": at(3), "begin": 30, "end": 40},
        {"group_id": "g", "topic": "orders", "partition": 0, "commit_time": at(4), "begin": 40},
    )
    members = histories.table(
        "group_members",
        {"group_id": "s", "member_id": "m", "subscribed_topics": ["subscribed"], "begin": 50, "end": 60},
    )
    hour = (CLUSTER, "orders", "orders", 0, at(0), 0, 5, 50, 4, at(1), at(2))
    traffic = histories.spark.createDataFrame([hour], ddl(TRAFFIC.columns))
    traces = traces_of_use(traffic, offsets, members).cache()
    seen = {(row.resource_type, row.resource_name, row.trace): row.since.timestamp() for row in traces.collect()}
    assert seen == {
        ("TOPIC", "orders", "written"): at(1).timestamp(),
        ("TOPIC", "orders", "read"): at(3).timestamp(),
        ("TOPIC", "subscribed", "read"): at(5).timestamp(),
        ("GROUP", "g", "joined"): at(3).timestamp(),
        ("GROUP", "s", "joined"): at(5).timestamp(),
    }
    groups = histories.table("groups", {"group_id": "g", "begin": 0})
    found = acl_findings(acls, topics, groups, offsets, traces).collect()
    assert {(row.finding, row.entries[0].rpartition(" ")[2]) for row in found} == {
        ("shadowed", "topic:orders"),
        ("never-denies", "topic:orders"),
        ("wildcard", "topic:*"),
        ("no-such-resource", "topic:nowhere"),
        ("no-such-resource", "group:lost"),
        ("no-trace-of-use", "topic:idle"),
    }
    nothing = histories.table("group_offsets")
    unseen = acl_findings(acls, topics, histories.table("groups"), nothing, traces.where("false")).collect()
    assert {(row.finding, row.entries[0].rpartition(" ")[2]) for row in unseen} == {
        ("shadowed", "topic:orders"),
        ("never-denies", "topic:orders"),
        ("wildcard", "topic:*"),
        ("no-such-resource", "topic:nowhere"),
    }
