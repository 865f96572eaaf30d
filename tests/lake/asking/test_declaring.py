"""A moment of the lake beside a declared cluster, and the way back to it. No Spark: rows are values."""

from __future__ import annotations

from typing import Any

from barnabas.declared.difference import difference
from barnabas.declared.document import read_document
from barnabas.declared.render import document_text
from barnabas.lake.asking.declaring import TABLES, observed, rollback
from barnabas.metadata.masking import MASK


def _state(**rows: list[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    return {name: rows.get(name, []) for name in TABLES}


def _config(name: str, value: str, resource: str = "orders", kind: str = "TOPIC") -> dict[str, Any]:
    return {"resource_type": kind, "resource_name": resource, "name": name, "value": value}


def _topic(name: str, topic_id: str = "T") -> dict[str, Any]:
    return {"name": name, "topic_id": topic_id}


ORDERS = [
    {"topic_name": "orders", "partition": p, "replicas": [1, 2], "isr": [1], "removing_replicas": [2], "leader": 1}
    for p in (0, 1)
]


def test_drift_is_what_plan_would_say_of_that_moment() -> None:
    acl = {
        "resource_type": "TOPIC", "resource_name": "orders", "pattern_type": "LITERAL", "principal": "User:a",
        "host": "*", "operation": "READ", "permission": "ALLOW",
    }  # fmt: skip
    state = observed(
        _state(
            topics=[_topic("orders")],
            partitions=ORDERS,
            configs=[_config("retention.ms", "5"), _config("log.cleaner.threads", "2", "", "BROKER")],
            acls=[acl],
            quotas=[{"entity": [{"type": "user", "name": "a"}], "name": "producer_byte_rate", "value": 10.0}],
        )
    )
    same = """
topics: {orders: {partitions: 2, replicationFactor: 1, configs: {retention.ms: 5}}}
acls: [{principal: "User:a", operations: [READ], resource: "topic:orders"}]
quotas: [{entity: {user: a}, quotas: {producer_byte_rate: 10}}]
brokers: {<default>: {log.cleaner.threads: 2}}
"""
    assert not difference(read_document(same), state).changes
    other = same.replace("retention.ms: 5", "retention.ms: 6").replace("READ", "WRITE")
    said = [str(change) for change in difference(read_document(other), state).changes]
    assert len(said) == 2
    assert any("retention.ms" in text for text in said)


def test_a_rollback_sets_back_what_was_changed_and_unsets_what_was_not_there() -> None:
    then = _state(topics=[_topic("orders")], configs=[_config("retention.ms", "5"), _config("a", "1", "", "BROKER")])
    now = _state(
        topics=[_topic("orders"), _topic("later", "L")],
        configs=[_config("retention.ms", "6"), _config("segment.bytes", "9"), _config("segment.bytes", "9", "later")],
    )
    found = rollback(then, now)
    assert found.left_out == []
    again = read_document(document_text(found.document))
    assert again.topics is not None and again.brokers is not None
    assert again.topics["orders"].configs == {"retention.ms": "5", "segment.bytes": None}
    assert "later" not in again.topics
    assert again.brokers["<default>"].configs == {"a": "1"}


def test_a_rollback_says_what_it_cannot_take_back() -> None:
    then = _state(
        topics=[_topic("orders"), _topic("gone", "G")],
        configs=[_config("x", "1"), _config("x", "1", "gone"), _config("secret", MASK, "1", "BROKER")],
    )
    now = _state(topics=[_topic("orders", "T2")], configs=[_config("secret", "?", "1", "BROKER")])
    found = rollback(then, now)
    assert found.document.topics is None and found.document.brokers is None
    assert found.left_out == [
        "broker 1: secret is a secret that the lake does not know",
        "topic gone: it has been deleted since",
        "topic orders: it has been deleted since, and created again",
    ]


def test_a_secret_that_was_not_changed_needs_no_way_back() -> None:
    def state(**since: int) -> dict[str, list[dict[str, Any]]]:
        rows = [{**_config(name, MASK, "1", "BROKER"), "valid_from_offset": at} for name, at in since.items()]
        return _state(configs=rows)

    assert rollback(state(kept=5, changed=5), state(kept=5, changed=9)).left_out == [
        "broker 1: changed is a secret that the lake does not know"
    ]


def test_a_rollback_of_one_resource_leaves_the_others() -> None:
    then = _state(topics=[_topic("orders"), _topic("b", "B")], configs=[_config("x", "1"), _config("x", "1", "b")])
    now = _state(topics=[_topic("orders"), _topic("b", "B")])
    found = rollback(then, now, {("TOPIC", "b")})
    assert found.document.topics is not None and list(found.document.topics) == ["b"]
    assert rollback(then, now, {("TOPIC", "none")}).left_out == ["topic none: it does not exist"]
