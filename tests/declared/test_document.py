"""A declared cluster: what a file may say, and what it is told when it says something else."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.declared import document as module
from barnabas.declared.document import (
    DeclaredTopic,
    Document,
    Password,
    entity_text,
    load_document,
    read_document,
)
from barnabas.declared.yaml_nodes import DocumentError
from barnabas.security.acl import AclEntry, AclOperation, AclPermissionType, PatternType, ResourceType


def read(text: str) -> Document:
    return read_document(textwrap.dedent(text), "c.yaml")


def problems(text: str) -> list[str]:
    with pytest.raises(DocumentError) as wrong:
        read(text)
    return [str(problem) for problem in wrong.value.problems]


def test_the_example_of_the_documentation_is_understood() -> None:
    doc = module.__doc__ or ""
    found = read(doc[doc.index("    topics:") : doc.index("Its one rule")])
    assert found.topics is not None and found.users is not None and found.quotas is not None
    orders = found.topics["orders"]
    assert (orders.partitions, orders.replication_factor) == (12, 3)
    assert orders.configs == {"retention.ms": "604800000", "cleanup.policy": "compact,delete"}
    assert found.topics["legacy"].absent
    assert [acl.entry.operation.name for acl in found.acls or ()] == ["READ", "DESCRIBE"]
    assert [quota.values for quota in found.quotas.values()] == [{"producer_byte_rate": 1048576.0}]
    assert found.users["billing", "SCRAM-SHA-512"].password == Password(env="BILLING_PASSWORD")
    assert found.brokers is not None and list(found.brokers) == ["<default>", "1"]


def test_an_empty_file_is_an_error_and_an_empty_section_declares_none() -> None:
    for empty in ("", "# nothing yet\n", "---", "{}", "null", "~"):
        assert problems(empty) == [
            "c.yaml:1:1: the file declares nothing: expected topics, acls, quotas, users, brokers, manages"
        ], empty
    assert read("topics: {}").topics == {}
    assert problems("acls:") == [
        "c.yaml:1:6: acls: this section is empty: remove it, or write [] to declare that there are none"
    ]


def test_a_topic_may_be_left_to_the_cluster() -> None:
    topics = read("topics:\n  a:\n  b: {}").topics
    assert topics is not None
    assert [(each.partitions, each.configs) for each in topics.values()] == [(None, None), (None, None)]


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("604800000", "604800000"),
        ("1_000_000", "1000000"),
        ("true", "true"),
        ("yes", "true"),
        ("'yes'", "yes"),
        ("0.5", "0.5"),
        ("1:2", "1:2"),  # which YAML takes for 62
        ("[compact, delete]", "compact,delete"),
        ("''", ""),
        ("null", None),
        ("~", None),
    ],
)
def test_values_of_settings_are_texts_as_brokers_want_them(written: str, meant: str | None) -> None:
    topics = read(f"topics: {{a: {{configs: {{k: {written}}}}}}}").topics
    assert topics is not None
    assert topics["a"].configs == {"k": meant}


def test_an_acl_may_stand_for_several_entries() -> None:
    acls = read("""
        acls:
          - principal: [User:a, User:b]
            operations: [read, describe-configs]
            resource: [topic:x, topic:y]
            pattern: prefixed
            permission: deny
            host: 10.0.0.1
            description: no
    """).acls
    assert acls is not None
    assert len({acl.entry for acl in acls}) == 8
    assert acls[0].entry == AclEntry(
        ResourceType.TOPIC, "x", PatternType.PREFIXED, "User:a", "10.0.0.1", AclOperation.READ, AclPermissionType.DENY
    )
    assert {acl.description for acl in acls} == {"no"}


def test_what_is_merged_is_read_as_if_it_stood_there() -> None:
    topics = read("""
        topics:
          a: &usual {partitions: 3, configs: {retention.ms: 1}}
          b: {<<: *usual, partitions: 6}
    """).topics
    assert topics is not None
    assert (topics["b"].partitions, topics["b"].configs) == (6, {"retention.ms": "1"})


def test_the_default_of_an_entity_has_a_name_of_its_own() -> None:
    quotas = read("quotas: [{entity: {user: <default>, client-id: app}, quotas: {x: 1}}]").quotas
    assert quotas is not None
    (entity,) = quotas
    assert entity == (("client-id", "app"), ("user", None))
    assert entity_text(entity) == "user <default>, client-id app"


def test_everything_that_is_wrong_is_said_with_its_place() -> None:
    assert problems("""\
        topics:
          a: {partition: 3}
          a: {partitions: 0}
          b!: {replicationFactor: many}
          c: {state: gone, partitions: 1}
        acls:
        - {principal: alice, operation: READ, resource: topic:x}
        - {principal: User:a, operations: [READ, WRITE], resource: group:g}
        - {principal: User:a, operation: READ, resource: topc:x}
        - {principal: User:a, operation: RAED, resource: topic:x}
        - {principal: User:a, resource: topic:x}
        - {principal: User:a, operation: READ, resource: topic:x}
        - {principal: User:a, operation: READ, resource: topic:x}
    """) == [
        "c.yaml:2:7: topic a: unknown field partition: expected partitions, replicationFactor, configs, state;"
        " did you mean partitions?",
        "c.yaml:3:3: topics: a is declared twice; the first is in line 2",
        "c.yaml:4:3: topic b!: a name has up to 249 letters, digits, dots, underscores and hyphens",
        "c.yaml:4:27: topic b!: replicationFactor: expected a whole number of at least 1, found many",
        "c.yaml:5:14: topic c: state: expected absent or present, found gone",
        "c.yaml:7:15: acl: principal: expected TYPE:NAME, as in User:alice, found 'alice'",
        "c.yaml:8:42: acl: operations: WRITE is not an operation of a group: expected one of READ, DELETE, DESCRIBE,"
        " DESCRIBE_CONFIGS, ALTER_CONFIGS, ALL",
        "c.yaml:9:50: acl: resource: 'topc:x': expected TYPE:NAME, as in topic:orders, with one of topic, group,"
        " cluster, transactional-id, delegation-token, user; did you mean topic?",
        "c.yaml:10:34: acl: operations: 'RAED' is not a valid operation: expected one of ALL, READ, WRITE, CREATE, DELETE,"
        " ALTER, DESCRIBE, CLUSTER_ACTION, DESCRIBE_CONFIGS, ALTER_CONFIGS, IDEMPOTENT_WRITE, CREATE_TOKENS,"
        " DESCRIBE_TOKENS, TWO_PHASE_COMMIT; did you mean READ?",
        "c.yaml:11:3: acl: expected either operation or operations",
        "c.yaml:13:3: acl: ALLOW User:a to READ topic:x: already declared in line 12",
    ]


def test_quotas_users_and_brokers_are_looked_at_as_closely() -> None:
    assert problems("""\
        quotas:
        - {entity: {ip: x, user: u}, quotas: {rate: -1}}
        - {entity: {user: u}, quotas: {rate: fast}}
        - {entity: {user: u}, quotas: {rate: 1}}
        users:
          a: {SCRAM-SHA-1: {}}
          b: {SCRAM-SHA-512: {iterations: 10}}
          c: {SCRAM-SHA-512: {password: hunter2}}
          d: {SCRAM-SHA-512: {password: {env: A, file: B}}}
          e: {SCRAM-SHA-512: {state: absent, iterations: 8192}}
        brokers:
          one: {}
        groups: {}
    """) == [
        "c.yaml:2:12: quota: entity: expected user, client-id, both of them, or ip",
        "c.yaml:2:45: quota: rate: expected a number of at least 0, found -1",
        "c.yaml:3:38: quota: rate: expected a number of at least 0, found fast",
        "c.yaml:4:3: quota: user u: already declared in line 3",
        "c.yaml:6:7: user a: unknown field SCRAM-SHA-1: expected SCRAM-SHA-256, SCRAM-SHA-512;"
        " did you mean SCRAM-SHA-512?",
        "c.yaml:7:35: user b: SCRAM-SHA-512: iterations: expected a whole number of at least 4096, found 10",
        "c.yaml:8:33: user c: SCRAM-SHA-512: password: passwords must not be in this file:"
        " expected {env: VARIABLE} or {file: PATH}",
        "c.yaml:9:33: user d: SCRAM-SHA-512: password: expected {env: VARIABLE} or {file: PATH}",
        "c.yaml:10:22: user e: SCRAM-SHA-512: it is declared absent, so it cannot have iterations",
        "c.yaml:12:3: brokers: expected a broker id or <default>, found 'one'",
        "c.yaml:13:1: the file: unknown field groups: expected topics, acls, quotas, users, brokers, manages",
    ]


@pytest.mark.parametrize(
    ("text", "start"),
    [
        ("topics: [", "c.yaml:2:1: this is not YAML: "),
        ("topics:\n\ta: 1", "c.yaml:2:1: this is not YAML: "),
        ("a: 1\n---\nb: 2", "c.yaml:2:1: this is not YAML: "),
        ("topics: *nobody", "c.yaml:1:9: this is not YAML: found undefined alias"),
        ("topics: 3", "c.yaml:1:9: topics: expected a mapping, found '3'"),
        ("acls: {a: b}", "c.yaml:1:7: acls: expected a list, found a mapping"),
        ("- a", "c.yaml:1:1: the file: expected a mapping, found a list"),
        ("[" * 100_000, "c.yaml:1:51: lists and mappings are nested more than 50 deep"),
        ("topics: &a\n  <<: *a", "c.yaml:1:9: topics: this mapping is merged into itself"),
        ("topics: {? [a] : b}", "c.yaml:1:12: topics: expected a name, found a list"),
    ],
)
def test_what_is_not_such_a_file_is_refused_with_its_line(text: str, start: str) -> None:
    assert problems(text)[0].startswith(start)


def test_a_file_that_is_not_text_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "c.yaml"
    path.write_bytes(b"topics: \xff")
    with pytest.raises(DocumentError, match="this is not UTF-8"):
        load_document(path)
    path.write_text("topics: {a: {partitions: 2}}")
    topics = load_document(path).topics
    assert topics is not None
    assert topics["a"] == DeclaredTopic("a", 2, place=topics["a"].place)
    assert str(topics["a"].place) == f"{path}:1:10"


TOKENS = (
    *(
        "\n",
        "\n  ",
        "\n- ",
        " ",
        "\t",
        ": ",
        ":",
        ", ",
        "{",
        "}",
        "[",
        "]",
        "- ",
        "? ",
        "|",
        ">",
        "#",
        "%",
        "---",
        "...",
    ),
    *("'", '"', "&a ", "*a", "<<: ", "!!int ", "!odd ", "\0", "\x85", "null", "~", "1", "-1", "1e3", "yes", "a", "é"),
    *("topics", "acls", "quotas", "users", "brokers", "partitions", "replicationFactor", "configs", "state", "absent"),
    *("principal", "User:a", "resource", "topic:x", "operation", "READ", "host", "entity", "user", "SCRAM-SHA-512"),
    *("password", "env", "iterations", "<default>"),
)


@given(st.lists(st.sampled_from(TOKENS), max_size=40))
def test_any_text_is_a_document_or_refused_with_a_place(tokens: list[str]) -> None:
    try:
        read_document("".join(tokens), "c.yaml")
    except DocumentError as error:
        assert error.problems
        assert all(str(problem).startswith("c.yaml:") and problem.place.line > 0 for problem in error.problems)


# --- manages


def test_manages_says_what_may_be_deleted_if_it_is_not_declared() -> None:
    text = """
manages:
  topics: [billing-*, invoices]
  acls: [{resource: "topic:billing-*"}, {principal: "User:b*", resource: cluster}]
  quotas: [{user: billing-*}, {client-id: <default>}, {ip: "*"}]
  users: [billing]
"""
    document = read_document(text)
    manages = document.manages
    assert manages is not None
    assert document.sections() == ["topics", "acls", "quotas", "users"]
    assert [manages.has_topic(name) for name in ("billing-", "billing-eu", "invoices", "invoices2", "billing")] == [
        *(True, True, True, False, False)
    ]
    entry = AclEntry(
        ResourceType.TOPIC, "billing-", PatternType.PREFIXED, "User:x", "*", AclOperation.READ, AclPermissionType.ALLOW
    )
    assert manages.has_acl(entry)
    assert not manages.has_acl(entry._replace(resource_type=ResourceType.GROUP))
    assert not manages.has_acl(entry._replace(resource_name="x", principal="User:b"))
    cluster = entry._replace(resource_type=ResourceType.CLUSTER, resource_name="kafka-cluster")
    assert manages.has_acl(cluster._replace(principal="User:bob"))
    assert not manages.has_acl(cluster)
    assert manages.has_quota((("client-id", "any"), ("user", "billing-1")))
    assert manages.has_quota((("client-id", None),))
    assert manages.has_quota((("ip", "10.0.0.1"),)) and manages.has_quota((("ip", None),))
    assert not manages.has_quota((("user", "x"),)) and not manages.has_quota((("client-id", "c"),))
    assert manages.has_user("billing") and not manages.has_user("billing2")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("manages: {}", "1:10: manages: expected at least one of topics, acls, quotas, users"),
        ("manages: {brokers: [1]}", "1:11: manages: unknown field brokers: expected topics, acls, quotas, users"),
        ("manages: {topics: []}", "1:19: manages: topics: the list is empty: remove it"),
        ("manages: {topics: a-*}", "1:19: manages: topics: expected a list, found 'a-*'"),
        ("manages: {topics: ['*-a']}", "1:20: manages: topics: a * is only possible at the end of a name, found *-a"),
        ("manages: {acls: [{}]}", "1:18: manages: acls: expected resource, principal or both"),
        ("manages: {acls: [{principal: bob}]}", "manages: acls: principal: expected TYPE:NAME, as in User:bob"),
        ("manages: {quotas: [{user: '*x'}]}", "1:20: manages: quotas: a * is only possible at the end of a name"),
    ],
)
def test_a_wrong_scope_is_named_by_line(text: str, problem: str) -> None:
    with pytest.raises(DocumentError) as error:
        read_document(text, "f")
    assert problem in str(error.value)
