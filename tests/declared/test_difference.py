"""What has to change for a cluster to be as declared: value by value, in a safe order, and nothing else."""

from __future__ import annotations

import textwrap

import pytest

from barnabas.declared.difference import ChangeReplicationFactor, Plan, difference, number, same_setting
from barnabas.declared.document import Document, read_document
from barnabas.declared.observed import Observed, ObservedTopic
from barnabas.declared.render import document_of, document_text
from barnabas.security.acl import AclEntry, AclOperation, AclPermissionType, PatternType, ResourceType

ALICE_READS = AclEntry(
    ResourceType.TOPIC, "orders", PatternType.LITERAL, "User:alice", "*", AclOperation.READ, AclPermissionType.ALLOW
)
EVE_IS_DENIED = ALICE_READS._replace(principal="User:eve", permission=AclPermissionType.DENY)
ALICE = (("user", "alice"),)
OBSERVED = Observed(
    topics={
        "orders": ObservedTopic("orders", {0: (1, 2), 1: (2, 3)}, configs={"retention.ms": "1000"}),
        "stock": ObservedTopic("stock", {0: (1,)}),
        "__consumer_offsets": ObservedTopic("__consumer_offsets", {0: (1,)}, is_internal=True),
    },
    acls=frozenset({ALICE_READS}),
    quotas={ALICE: {"producer_byte_rate": 1000.0, "request_percentage": 12.5}},
    users={("alice", "SCRAM-SHA-512"): 4096},
    brokers={"<default>": {"log.cleaner.threads": "2"}, "1": {"ssl.key.password": None}},
    racks={1: "a", 2: "b", 3: "c"},
)


def declared(text: str) -> Document:
    return read_document(textwrap.dedent(text), "c.yaml")


def plan(text: str, *, prune: bool = False, observed: Observed = OBSERVED) -> Plan:
    return difference(declared(text), observed, prune=prune)


def lines(text: str, *, prune: bool = False) -> list[str]:
    found = plan(text, prune=prune)
    assert not found.problems
    return [str(change) for change in found.changes]


def problems(text: str, observed: Observed = OBSERVED) -> list[str]:
    return [str(problem) for problem in plan(text, observed=observed).problems]


def test_what_is_as_declared_does_not_change() -> None:
    assert (
        plan("topics: {orders: {partitions: 2, replicationFactor: 2, configs: {retention.ms: 1000}}, stock: }")
        == Plan()
    )


def test_what_is_exported_is_no_difference_even_if_all_is_pruned() -> None:
    text = document_text(document_of(OBSERVED))
    assert difference(read_document(text), OBSERVED, prune=True) == Plan()
    assert "__consumer_offsets" not in text
    assert "ssl.key.password" not in text


def test_of_sections_and_fields_that_are_not_declared_nothing_is_meant() -> None:
    for prune in (False, True):
        assert difference(Document(), OBSERVED, prune=prune) == Plan()
    assert lines("topics: {orders: {}, stock: {}}", prune=True) == []


def test_a_topic_that_is_not_there_is_created_with_all_its_values() -> None:
    found = plan("topics: {new: {partitions: 3, configs: {retention.ms: 1, segment.ms: null}}}")
    assert list(found.rows()) == [
        {
            "action": "create",
            "kind": "topic",
            "name": "new",
            "field": "partitions",
            "before": None,
            "after": 3,
            "description": None,
        },
        {
            "action": "create",
            "kind": "topic",
            "name": "new",
            "field": "retention.ms",
            "before": None,
            "after": "1",
            "description": None,
        },
    ]


def test_values_that_differ_are_shown_before_and_after() -> None:
    assert lines("""
        topics:
          orders: {partitions: 4, configs: {retention.ms: 2000, cleanup.policy: compact}}
    """) == [
        "alter topic orders: partitions 2 -> 4",
        "alter topic orders: retention.ms 1000 -> 2000, cleanup.policy (none) -> compact",
    ]


def test_a_null_takes_a_setting_away_and_is_nothing_where_it_is_not_set() -> None:
    text = "topics: {orders: {configs: {retention.ms: null}}, stock: {configs: {retention.ms: null}}}"
    assert lines(text) == ["alter topic orders: retention.ms 1000 -> (none)"]


def test_partitions_cannot_be_taken_away() -> None:
    assert problems("topics: {orders: {partitions: 1}}") == [
        "c.yaml:1:10: topic orders: 1 partitions are declared, and it has 2; partitions cannot be removed:"
        " declare 2, or copy the records to another topic"
    ]


def test_another_replication_factor_moves_as_little_as_can_be() -> None:
    (change,) = plan("topics: {orders: {replicationFactor: 3}}").changes
    assert isinstance(change, ChangeReplicationFactor)
    assert str(change) == "alter topic orders: replicationFactor 2 -> 3"
    assert change.replicas == {0: (1, 2, 3), 1: (2, 3, 1)}
    (change,) = plan("topics: {orders: {replicationFactor: 1}}").changes
    assert isinstance(change, ChangeReplicationFactor)
    assert change.replicas == {0: (1,), 1: (2,)}


def test_partitions_of_different_factors_are_made_alike() -> None:
    uneven = Observed(topics={"a": ObservedTopic("a", {0: (1,), 1: (1, 2)})}, racks={1: None, 2: None})
    (change,) = plan("topics: {a: {replicationFactor: 2}}", observed=uneven).changes
    assert str(change) == "alter topic a: replicationFactor 1,2 -> 2"
    assert isinstance(change, ChangeReplicationFactor)
    assert change.replicas == {0: (1, 2)}


def test_more_replicas_than_brokers_are_a_problem() -> None:
    text = "replication factor 4 needs 4 brokers, and there are 3"
    assert problems("topics: {orders: {replicationFactor: 4}}") == [f"c.yaml:1:10: topic orders: {text}"]
    assert problems("topics: {new: {replicationFactor: 4}}") == [f"c.yaml:1:10: topic new: {text}"]


def test_nothing_is_deleted_that_is_not_declared_absent_unless_told() -> None:
    text = "topics: {orders: {}}\nacls: []\nquotas: []\nusers: {}\n"
    found = plan(text)
    assert found.changes == ()
    assert found.undeclared == (
        "topic stock",
        "quota user alice: producer_byte_rate",
        "quota user alice: request_percentage",
        "user alice: SCRAM-SHA-512",
        "acl ALLOW User:alice to READ topic:orders",
    )
    assert lines(text, prune=True) == [
        "alter quota user alice: producer_byte_rate 1000 -> (none), request_percentage 12.5 -> (none)",
        "delete acl ALLOW User:alice to READ topic:orders",
        "delete user alice: SCRAM-SHA-512 iterations 4096 -> (none)",
        "delete topic stock: partitions 1 -> (none)",
    ]


def test_what_is_set_on_a_declared_topic_is_pruned_where_its_settings_are_declared() -> None:
    assert lines("topics: {orders: {configs: {}}, stock: {}}", prune=True) == [
        "alter topic orders: retention.ms 1000 -> (none)"
    ]


def test_settings_of_brokers_are_never_pruned() -> None:
    assert lines("brokers: {<default>: {}}", prune=True) == []


def test_what_is_declared_absent_is_deleted_if_it_is_there() -> None:
    assert lines("""
        topics: {stock: {state: absent}, gone: {state: absent}}
        acls:
          - {principal: User:alice, operations: [READ, WRITE], resource: topic:orders, state: absent}
        quotas: [{entity: {user: alice}, quotas: {request_percentage: null, consumer_byte_rate: null}}]
        users: {alice: {SCRAM-SHA-512: {state: absent}, SCRAM-SHA-256: {state: absent}}}
    """) == [
        "alter quota user alice: request_percentage 12.5 -> (none)",
        "delete acl ALLOW User:alice to READ topic:orders",
        "delete user alice: SCRAM-SHA-512 iterations 4096 -> (none)",
        "delete topic stock: partitions 1 -> (none)",
    ]


def test_the_order_gives_before_it_takes_and_denies_before_it_allows() -> None:
    found = plan(
        """
        topics:
          stock: {state: absent}
          orders: {partitions: 3, replicationFactor: 3, configs: {retention.ms: 5}}
          new: {}
        acls:
          - {principal: User:bob, operation: READ, resource: topic:orders}
          - {principal: User:eve, operation: READ, resource: topic:orders, permission: DENY}
        quotas: [{entity: {user: bob}, quotas: {producer_byte_rate: 1}}]
        users: {bob: {SCRAM-SHA-256: {password: {env: BOB}}}}
        brokers: {<default>: {log.cleaner.threads: 3}}
        """,
        prune=True,
    )
    assert [(change.action, change.kind, change.name) for change in found.changes] == [
        ("create", "topic", "new"),
        ("alter", "topic", "orders"),
        ("alter", "topic", "orders"),
        ("alter", "topic", "orders"),
        ("alter", "broker", "<default>"),
        ("alter", "quota", "user bob"),
        ("alter", "quota", "user alice"),
        ("create", "user", "bob"),
        ("create", "acl", "DENY User:eve to READ topic:orders"),
        ("create", "acl", "ALLOW User:bob to READ topic:orders"),
        ("delete", "acl", "ALLOW User:alice to READ topic:orders"),
        ("delete", "user", "alice"),
        ("delete", "topic", "stock"),
    ]


def test_entries_that_allow_are_taken_away_before_those_that_deny() -> None:
    both = Observed(acls=frozenset({EVE_IS_DENIED, ALICE_READS}))
    names = [change.name for change in plan("acls: []", prune=True, observed=both).changes]
    assert [name.split()[0] for name in names] == ["ALLOW", "DENY"]


def test_a_credential_with_the_same_iterations_is_left_alone_whatever_its_password() -> None:
    assert lines("users: {alice: {SCRAM-SHA-512: {iterations: 4096, password: {env: A}}}}") == []
    assert lines("users: {alice: {SCRAM-SHA-512: }}") == []
    assert lines("users: {alice: {SCRAM-SHA-512: {iterations: 8192, password: {env: A}}}}") == [
        "alter user alice: SCRAM-SHA-512 iterations 4096 -> 8192"
    ]


def test_a_credential_cannot_be_made_without_a_password() -> None:
    (text,) = problems("users: {bob: {SCRAM-SHA-256: {iterations: 8192}}}")
    assert text.startswith("c.yaml:1:30: user bob: SCRAM-SHA-256: creating this credential needs a password")


def test_acls_need_an_authorizer() -> None:
    (text,) = problems("acls: [{principal: User:a, operation: READ, resource: topic:x}]", Observed())
    assert text.startswith("c.yaml:1:8: ACLs are declared, and the cluster has no authorizer")
    assert problems("acls: []", Observed()) == []


def test_a_broker_that_is_not_there_cannot_have_settings() -> None:
    assert problems("brokers: {7: {log.cleaner.threads: 1}}") == [
        "c.yaml:1:11: broker 7 is not running; running brokers: 1, 2, 3"
    ]


def test_a_value_that_brokers_hide_is_taken_to_be_right() -> None:
    assert lines("brokers: {1: {ssl.key.password: secret}}") == []
    assert lines("brokers: {1: {ssl.key.password: null}}") == ["alter broker 1: ssl.key.password [hidden] -> (none)"]


@pytest.mark.parametrize(
    ("kind", "key", "one", "other", "same"),
    [
        ("topic", "cleanup.policy", "compact,delete", "compact, delete", True),
        ("topic", "retention.ms", "1000", " 1000", True),
        ("topic", "preallocate", "true", "TRUE", True),
        ("topic", "retention.ms", "1000", "1001", False),
        ("topic", "retention.ms", "1000", "soon", False),
        ("topic", "no.such.setting", "a", "A", False),
        ("broker", "log.cleaner.threads", "2", "02", True),
        ("broker", "listener.name.x.ssl.key.location", "a", "b", False),
    ],
)
def test_texts_of_the_same_value_are_the_same(kind: str, key: str, one: str, other: str, same: bool) -> None:
    assert same_setting(kind, key, one, other) is same


def test_numbers_have_no_needless_fraction() -> None:
    assert [number(value) for value in (1.0, 1.5, None)] == [1, 1.5, None]
