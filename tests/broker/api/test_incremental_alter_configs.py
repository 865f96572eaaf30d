"""IncrementalAlterConfigs (44)."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import pytest

from barnabas.broker import logger_levels
from barnabas.security.acl import AclOperation, AclPermissionType, PatternType, ResourceType
from barnabas.security.authorizer import AuthorizerSettings
from barnabas.security.principal import KafkaPrincipal
from barnabas.wire import ErrorCode, Message, Uuid
from barnabas.wire.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from barnabas.wire.records.metadata import AccessControlEntryRecord, ClearElrRecord, ConfigRecord
from tests.broker import config_captures
from tests.broker.harness import MemoryNode

SET, DELETE, APPEND, SUBTRACT = range(4)
TOPIC, BROKER, LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32
Change = tuple[str, int, str | None]

# Where Kafka's answer comes from a fault of its own, or from classes that are not here.
CLASSES = "barnabas loads no Java classes: it does not look for them"
DIFFERENCES = {
    "set log.cleaner.threads=0": "Kafka divides by zero and says so",
    "default set log.cleaner.threads=0": "Kafka divides by zero and says so",
    "set max.connections.per.ip.overrides=x": "Kafka tells the index at which it stumbled",
    "default set max.connections.per.ip.overrides=x": "Kafka tells the index at which it stumbled",
    "set max.connections.per.ip.overrides=a:b": "Kafka answers with the text of a parse error",
    "default set max.connections.per.ip.overrides=a:b": "Kafka answers with the text of a parse error",
    "set metric.reporters=no.such.Class": CLASSES,
    "default set metric.reporters=no.such.Class": CLASSES,
    "set principal.builder.class=x": CLASSES,
    "default set principal.builder.class=x": CLASSES,
    "logger set": "the loggers are Python's",
    "logger delete": "the loggers are Python's",
}


@pytest.fixture(autouse=True)
def _loggers_as_they_were() -> Iterator[None]:
    loggers = [logging.getLogger(), *(logging.getLogger(name) for name in logger_levels.levels() if name != "root")]
    levels = [each.level for each in loggers]
    yield
    for each, level in zip(loggers, levels, strict=True):
        each.setLevel(level)


def resource(kind: int, name: str, *changes: Change) -> IncrementalAlterConfigsRequest.AlterConfigsResource:
    return IncrementalAlterConfigsRequest.AlterConfigsResource(
        resource_type=kind,
        resource_name=name,
        configs=[
            IncrementalAlterConfigsRequest.AlterableConfig(name=key, config_operation=operation, value=value)
            for key, operation, value in changes
        ],
    )


def alter(memory: MemoryNode, *resources: Any, validate_only: bool = False, **peer: Any) -> list[tuple[Any, ...]]:
    request = IncrementalAlterConfigsRequest(resources=list(resources), validate_only=validate_only)
    rows = memory.call(request, 1, **peer).responses
    return [(row.error_code, row.error_message, row.resource_type, row.resource_name) for row in rows]


def config(kind: int, resource_name: str, name: str, value: str | None) -> ConfigRecord:
    return ConfigRecord(resource_type=kind, resource_name=resource_name, name=name, value=value)


def allow(principal: str, operation: AclOperation, kind: ResourceType, name: str) -> Message:
    return AccessControlEntryRecord(
        id=Uuid(bytes([operation, kind]) * 8),
        resource_type=kind,
        resource_name=name,
        pattern_type=PatternType.LITERAL,
        principal=principal,
        host="*",
        operation=operation,
        permission_type=AclPermissionType.ALLOW,
    )


def test_a_cluster_is_answered_as_by_kafka() -> None:
    captures = config_captures.cluster("IncrementalAlterConfigs", "2-configs", "2b-sasl")
    for node_id in (1, 4):
        memory = config_captures.node_1(node_id)
        config_captures.check(memory, [each for each in captures if each["node"] == node_id])


def test_a_node_is_answered_as_by_kafka() -> None:
    config_captures.check(config_captures.one_node(), config_captures.node("IncrementalAlterConfigs"), DIFFERENCES)


def test_what_is_set_is_written_and_in_force_at_once() -> None:
    memory = config_captures.one_node()
    rows = alter(memory, resource(TOPIC, "t", ("retention.ms", SET, "5"), ("segment.ms", DELETE, None)))
    assert rows == [(0, None, TOPIC, "t")]
    assert memory.written == [config(TOPIC, "t", "retention.ms", "5")]
    assert dict(memory.image.config(TOPIC, "t")) == {"retention.ms": "5"}


def test_only_a_brokers_settings_are_written_again_when_they_are_the_same() -> None:
    memory = config_captures.one_node()
    for _ in range(2):
        alter(memory, resource(TOPIC, "t", ("retention.ms", SET, "5")), resource(BROKER, "1", ("a", SET, "b")))
    again = config(BROKER, "1", "a", "b")
    assert memory.written == [config(TOPIC, "t", "retention.ms", "5"), again, again]


def test_lists_grow_from_their_default_and_shrink_to_nothing() -> None:
    memory = config_captures.one_node()
    alter(memory, resource(TOPIC, "t", ("cleanup.policy", APPEND, "compact,delete,compact")))
    assert dict(memory.image.config(TOPIC, "t")) == {"cleanup.policy": "delete,compact"}
    alter(memory, resource(TOPIC, "t", ("cleanup.policy", SUBTRACT, "compact,delete,")))
    assert dict(memory.image.config(TOPIC, "t")) == {"cleanup.policy": ""}


def test_only_validating_writes_nothing() -> None:
    memory = config_captures.one_node()
    resources = [resource(TOPIC, "t", ("retention.ms", SET, "5")), resource(LOGGER, "1", ("barnabas", SET, "DEBUG"))]
    before = logger_levels.levels()
    assert [row[0] for row in alter(memory, *resources, validate_only=True)] == [0, 0]
    assert memory.written == []
    assert logger_levels.levels() == before


def test_another_number_of_in_sync_replicas_takes_away_who_was_eligible() -> None:
    memory = config_captures.one_node()
    alter(memory, resource(TOPIC, "t", ("min.insync.replicas", SET, "2")))
    alter(memory, resource(BROKER, "", ("min.insync.replicas", SET, "2")))
    assert memory.written[1] == ClearElrRecord(topic_name="t")
    assert memory.written[3] == ClearElrRecord()


def test_a_logger_changes_its_level_at_once_and_its_parents_holds_again_after_delete() -> None:
    memory = config_captures.one_node()
    name = "barnabas.broker.dispatch"
    assert alter(memory, resource(LOGGER, "1", (name, SET, "TRACE"), ("barnabas", SET, "ERROR")))[0][0] == 0
    assert logging.getLogger(name).isEnabledFor(5)
    assert not logging.getLogger("barnabas").isEnabledFor(logging.WARNING)
    alter(memory, resource(LOGGER, "1", (name, DELETE, None)))
    assert logging.getLogger(name).getEffectiveLevel() == logging.ERROR
    assert memory.written == []


def test_of_a_loggers_change_all_or_nothing_is_made() -> None:
    memory = config_captures.one_node()
    before = logger_levels.levels()
    row = alter(memory, resource(LOGGER, "1", ("barnabas", SET, "DEBUG"), ("barnabas.nope", SET, "DEBUG")))[0]
    assert row[:2] == (40, "Logger barnabas.nope does not exist!")
    assert logger_levels.levels() == before


def test_too_many_records_fail_together_and_leave_other_answers_alone() -> None:
    memory = config_captures.one_node()
    settings = [(f"setting.{at}", SET, "1") for at in range(10_001)]
    rows = alter(memory, resource(BROKER, "1", *settings), resource(TOPIC, "t"), resource(3, "x"))
    message = "Unable to perform excessively large batch operation."
    assert rows == [
        (44, message, BROKER, "1"),
        (44, message, TOPIC, "t"),
        (42, "Unknown resource type 3", 3, "x"),
    ]
    assert memory.written == []


def test_each_resource_needs_alter_configs_on_what_it_belongs_to() -> None:
    acls = [
        allow("User:alice", AclOperation.ALTER_CONFIGS, ResourceType.TOPIC, "t"),
        allow("User:alice", AclOperation.ALTER_CONFIGS, ResourceType.GROUP, "g"),
    ]
    memory = MemoryNode(records=[*config_captures.topics("t", "u"), *acls], authorizer=AuthorizerSettings(enabled=True))
    session = ("consumer.session.timeout.ms", SET, "50000")
    rows = alter(
        memory,
        resource(TOPIC, "t", ("retention.ms", SET, "5")),
        resource(TOPIC, "u", ("retention.ms", SET, "5")),
        resource(GROUP, "g", session),
        resource(GROUP, "h", session),
        resource(BROKER, "1", ("a", SET, "b")),
        resource(CLIENT_METRICS, "m", ("interval.ms", SET, "1000")),
        resource(LOGGER, "1", ("root", SET, "INFO")),
        principal=KafkaPrincipal("User", "alice"),
    )
    assert [(row[0], row[1]) for row in rows] == [
        (0, None),
        (29, "Topic authorization failed."),
        (0, None),
        (30, "Group authorization failed."),
        (31, "Cluster authorization failed."),
        (31, "Cluster authorization failed."),
        (31, None),
    ]
    assert {record.resource_name for record in memory.written if isinstance(record, ConfigRecord)} == {"t", "g"}


@pytest.mark.parametrize("listener", ["broker", "controller"])
def test_settings_that_would_protect_something_and_be_ignored_are_refused(listener: str) -> None:
    memory = MemoryNode({"listeners": "PLAINTEXT://127.0.0.1:1,CONTROLLER://127.0.0.1:2"})
    listeners = "PLAINTEXT://127.0.0.1:1,CONTROLLER://127.0.0.1:2"
    for changes, text in (
        ([("listeners", SET, f"{listeners},PLAINTEXT2://127.0.0.1:3")], "listeners cannot be changed"),
        ([("listeners", SET, f"{listeners},TLS://127.0.0.1:3")], "listeners cannot be changed"),
        ([("principal.builder.class", SET, "com.example.Builder")], "principal.builder.class=com.example.Builder"),
        ([("listener.name.plaintext.principal.builder.class", SET, "x")], "plaintext.principal.builder.class=x is not"),
    ):
        protocols = "PLAINTEXT:PLAINTEXT,PLAINTEXT2:PLAINTEXT,TLS:SSL,CONTROLLER:PLAINTEXT"
        both = [*changes, ("listener.security.protocol.map", SET, protocols)]
        ((code, message, _, _),) = alter(memory, resource(BROKER, "1", *both), listener=listener)
        assert code == ErrorCode.INVALID_CONFIG and text in message, message
    assert memory.written == []
    harmless = ("listener.name.tls.ssl.keystore.location", SET, "/a")
    assert alter(memory, resource(BROKER, "1", harmless))[0][0] == 0
