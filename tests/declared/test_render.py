"""A declared cluster as text: what is written is read again as the same."""

from __future__ import annotations

import json
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from barnabas.declared.difference import Plan, difference
from barnabas.declared.document import DEFAULT, MECHANISMS, Document, read_document
from barnabas.declared.observed import Observed, ObservedTopic
from barnabas.declared.render import document_json, document_of, document_text
from barnabas.declared.yaml_nodes import NOWHERE
from barnabas.security.acl import (
    CLUSTER_NAME,
    AclEntry,
    AclOperation,
    AclPermissionType,
    PatternType,
    ResourceType,
)
from barnabas.security.authorizer import SUPPORTED_OPERATIONS

TEXT = """\
topics:
  orders:
    partitions: 12
    replicationFactor: 3
    configs:
      retention.ms: 604800000
      cleanup.policy: compact,delete
      preallocate: true
      leader.replication.throttled.replicas: '1:1'
      segment.ms: null
  legacy:
    state: absent

acls:
- principal: User:CN=a, O="b"
  operations: [READ, DESCRIBE]
  resource: topic:orders-
  pattern: PREFIXED
  description: 'why: because'
- principal: User:*
  operations: [CLUSTER_ACTION]
  resource: cluster
  permission: DENY
  host: 10.0.0.1
  state: absent

quotas:
- entity:
    user: <default>
    client-id: '1'
  quotas:
    producer_byte_rate: 1048576
    request_percentage: 12.5

users:
  billing:
    SCRAM-SHA-256:
      state: absent
    SCRAM-SHA-512:
      iterations: 8192
      password:
        env: BILLING

brokers:
  <default>:
    log.cleaner.threads: 2
  1:
    log.cleaner.threads: 4
"""


def test_what_was_read_is_written_as_it_was() -> None:
    assert document_text(read_document(TEXT)) == TEXT


def test_what_has_no_section_is_not_written() -> None:
    assert document_text(Document()) == ""
    assert document_text(Document(acls=(), users={})) == "acls: []\n\nusers: {}\n"


def test_an_observed_cluster_keeps_the_descriptions_that_are_known() -> None:
    entry = AclEntry(
        ResourceType.GROUP, "g:1", PatternType.LITERAL, "User:a", "*", AclOperation.READ, AclPermissionType.ALLOW
    )
    document = document_of(Observed(acls=frozenset({entry})), {entry: "it consumes"})
    assert "resource: group:g:1" in document_text(document)
    (read,) = read_document(document_text(document)).acls or ()
    assert (read.entry, read.description) == (entry, "it consumes")


def test_names_and_values_that_look_like_something_else_survive() -> None:
    names = ["1", "1e3", "null", "true", "2026-01-01", "0x10", "_", "a.b"]
    values = {"a": "007", "b": "1.50", "c": "", "d": " x ", "e": "null", "f": "~", "g": "a: b", "h": "é\n", "i": "yes"}
    observed = Observed(topics={name: ObservedTopic(name, {0: (1,)}, configs=values) for name in names})
    read = read_document(document_text(document_of(observed))).topics or {}
    assert sorted(read) == sorted(names)
    assert all(topic.configs == values for topic in read.values())


def test_partitions_that_differ_in_their_replicas_declare_no_factor() -> None:
    observed = Observed(topics={"a": ObservedTopic("a", {0: (1,), 1: (1, 2)})})
    topics = read_document(document_text(document_of(observed))).topics or {}
    assert replace(topics["a"], place=NOWHERE).replication_factor is None


# --- whatever a cluster is, the file of its export is no difference

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
NAMES = TEXTS.filter(lambda text: text not in ("", DEFAULT))
TOPICS = st.from_regex(r"[a-zA-Z0-9._-]{1,8}", fullmatch=True).filter(lambda name: name not in (".", ".."))
SETTINGS = st.dictionaries(NAMES, TEXTS, max_size=3)


def topic(name: str, partitions: int, factor: int, configs: dict[str, str]) -> ObservedTopic:
    return ObservedTopic(name, {index: tuple(range(factor)) for index in range(partitions)}, configs=configs)


@st.composite
def entries(draw: st.DrawFn) -> AclEntry:
    resource_type = draw(st.sampled_from([each for each in ResourceType if each.is_known and each != ResourceType.ANY]))
    is_cluster = resource_type == ResourceType.CLUSTER
    return AclEntry(
        resource_type,
        CLUSTER_NAME if is_cluster else draw(NAMES),
        PatternType.LITERAL if is_cluster else draw(st.sampled_from([PatternType.LITERAL, PatternType.PREFIXED])),
        f"User:{draw(NAMES)}",
        draw(TEXTS),
        draw(st.sampled_from([AclOperation.ALL, *SUPPORTED_OPERATIONS[resource_type]])),
        draw(st.sampled_from([AclPermissionType.ALLOW, AclPermissionType.DENY])),
    )


CLUSTERS = st.builds(
    Observed,
    topics=st.builds(
        lambda topics: {each.name: each for each in topics},
        st.lists(st.builds(topic, TOPICS, st.integers(1, 3), st.integers(1, 3), SETTINGS), max_size=3),
    ),
    acls=st.frozensets(entries(), max_size=3),
    quotas=st.dictionaries(
        st.builds(
            lambda names: tuple(sorted(names.items())),
            st.dictionaries(st.sampled_from(["user", "client-id"]), st.none() | NAMES, min_size=1),
        ),
        st.dictionaries(NAMES, st.floats(0, 1e300), min_size=1, max_size=2),
        max_size=2,
    ),
    users=st.dictionaries(st.tuples(NAMES, st.sampled_from(MECHANISMS)), st.integers(4096, 16384), max_size=2),
    brokers=st.dictionaries(st.sampled_from([DEFAULT, "1"]), SETTINGS, max_size=2),
    racks=st.just({1: None}),
)


@given(CLUSTERS)
def test_an_export_of_any_cluster_is_no_difference(observed: Observed) -> None:
    for text in (document_text(document_of(observed)), document_json(document_of(observed))):
        assert difference(read_document(text), observed, prune=True) == Plan()


def test_an_export_as_json_is_json() -> None:
    document = read_document(TEXT)
    found = json.loads(document_json(document))
    assert found["topics"]["orders"]["configs"]["retention.ms"] == 604800000
    assert found["brokers"]["1"] == {"log.cleaner.threads": 4}
    assert document_text(read_document(document_json(document))) == TEXT
