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
    assert found.left_out == ["topic later: it was created since; only --delete deletes it, with its records"]
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
    assert found.document.brokers is None and found.document.topics is not None
    assert {name: topic.configs for name, topic in found.document.topics.items()} == {
        "gone": {"x": "1"},
        "orders": {"x": "1"},
    }
    assert found.left_out == [
        "broker 1: secret is a secret that the lake does not know",
        "topic gone: it is created again, but the records that it had are lost",
        "topic orders: it was deleted and created again; the records that it had are lost",
    ]


def _acl(principal: str) -> dict[str, Any]:
    return {
        "resource_type": "TOPIC", "resource_name": "orders", "pattern_type": "LITERAL", "principal": principal,
        "host": "*", "operation": "READ", "permission": "ALLOW",
    }  # fmt: skip


def _quota(user: str, name: str, value: float) -> dict[str, Any]:
    return {"entity": [{"type": "user", "name": user}], "name": name, "value": value}


def _user(name: str, since: int) -> dict[str, Any]:
    return {"name": name, "mechanism": "SCRAM-SHA-256", "iterations": 4096, "valid_from_offset": since}


def _partitions(topic: str, count: int, *replicas: int) -> list[dict[str, Any]]:
    return [{**ORDERS[0], "topic_name": topic, "partition": n, "replicas": replicas or [1]} for n in range(count)]


def test_a_rollback_restores_acls_quotas_users_and_topics_and_the_plan_to_the_old_state_is_empty() -> None:
    then = _state(
        topics=[_topic("orders"), _topic("gone", "G")],
        partitions=[*_partitions("orders", 2, 1), *_partitions("gone", 3, 1)],
        configs=[_config("retention.ms", "5", "gone")],
        acls=[_acl("User:a"), _acl("User:deleted")],
        quotas=[_quota("a", "producer_byte_rate", 10.0), _quota("b", "request_percentage", 5.0)],
        users=[_user("a", 1)],
    )
    now = _state(
        topics=[_topic("orders"), _topic("new", "N")],
        partitions=[*_partitions("orders", 2, 1, 3), *_partitions("new", 1, 1)],
        acls=[_acl("User:a"), _acl("User:added")],
        quotas=[_quota("a", "producer_byte_rate", 20.0), _quota("a", "consumer_byte_rate", 1.0)],
        users=[_user("a", 1), _user("new", 9)],
    )
    found = rollback(then, now, delete=True)
    again = read_document(document_text(found.document))
    assert not difference(again, observed(then)).changes, "it declares nothing but the old state"
    actions = sorted(str(change) for change in difference(again, observed(now)).changes)
    assert len(actions) == 8, actions
    assert found.left_out == ["topic gone: it is created again, but the records that it had are lost"]
    assert again.topics is not None and again.topics["new"].absent
    assert again.topics["orders"].replication_factor == 1
    (gone,) = [again.topics["gone"]]
    assert (gone.partitions, gone.replication_factor, gone.configs) == (3, 1, {"retention.ms": "5"})


def test_a_rollback_lists_what_no_file_can_restore() -> None:
    then = _state(
        topics=[_topic("orders"), _topic("moved", "M")],
        partitions=[*_partitions("orders", 1, 1), *_partitions("moved", 1, 1)],
        users=[_user("a", 1), _user("gone", 1)],
        features=[{"name": "metadata.version", "level": 21}],
        brokers=[{"broker_id": 1, "rack": None, "fenced": False}],
    )
    now = _state(
        topics=[_topic("orders"), _topic("moved", "M")],
        partitions=[*_partitions("orders", 4, 1), *_partitions("moved", 1, 3)],
        users=[_user("a", 7)],
        features=[{"name": "metadata.version", "level": 27}],
        brokers=[{"broker_id": 2, "rack": None, "fenced": False}],
    )
    found = rollback(then, now)
    assert found.is_empty
    assert found.left_out == [
        "broker 1: it was registered then and is not now",
        "broker 2: it was not registered then",
        "feature metadata.version: it is at level 27 and was at 21",
        "topic moved: 1 partition has other replicas than then; move them with barnabas reassign",
        "topic orders: it has 4 partitions and had 1; partitions cannot be removed",
        "user a: SCRAM-SHA-256 was changed, and the lake does not know the password before",
        "user gone: SCRAM-SHA-256 was deleted, and the lake does not know its password",
    ]


def test_a_rollback_of_a_user_has_its_acls_and_quotas_and_no_other() -> None:
    then = _state(acls=[_acl("User:a"), _acl("User:b")], quotas=[_quota("a", "request_percentage", 5.0)])
    found = rollback(then, _state(), {("USER", "a")})
    assert found.document.acls is not None and found.document.quotas is not None
    assert [acl.entry.principal for acl in found.document.acls] == ["User:a"]
    assert found.document.topics is None and found.left_out == []


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
