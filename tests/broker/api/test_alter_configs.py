"""AlterConfigs (33)."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas.wire.messages.alter_configs import AlterConfigsRequest
from barnabas.wire.records.metadata import ConfigRecord
from tests.broker import config_captures
from tests.broker.harness import MemoryNode

TOPIC, BROKER, LOGGER = 2, 4, 8


def alter(
    memory: MemoryNode, version: int, *resources: tuple[int, str, dict[str, str | None]], validate_only: bool = False
) -> list[tuple[Any, ...]]:
    request = AlterConfigsRequest(
        resources=[
            AlterConfigsRequest.AlterConfigsResource(
                resource_type=kind,
                resource_name=name,
                configs=[AlterConfigsRequest.AlterableConfig(name=key, value=value) for key, value in configs.items()],
            )
            for kind, name, configs in resources
        ],
        validate_only=validate_only,
    )
    rows = memory.call(request, version).responses
    return [(row.error_code, row.error_message, row.resource_type, row.resource_name) for row in rows]


def test_a_cluster_is_answered_as_by_kafka() -> None:
    captures = config_captures.cluster("AlterConfigs", "2-configs", "2b-sasl")
    answered = [each for each in captures if each["response_hex"] is not None]
    assert {each["case"] for each in captures if each not in answered} == {"same resource twice"}
    config_captures.check(config_captures.node_1(), answered)


def test_a_node_is_answered_as_by_kafka() -> None:
    config_captures.check(config_captures.one_node(), config_captures.node("AlterConfigs"))


@pytest.mark.parametrize("version", range(3))
def test_what_is_not_named_is_unset(version: int) -> None:
    memory = config_captures.one_node()
    alter(memory, version, (TOPIC, "t", {"retention.ms": "5", "segment.ms": "6"}))
    assert alter(memory, version, (TOPIC, "t", {"retention.ms": "5"})) == [(0, None, TOPIC, "t")]
    assert dict(memory.image.config(TOPIC, "t")) == {"retention.ms": "5"}
    unset = ConfigRecord(resource_type=TOPIC, resource_name="t", name="segment.ms", value=None)
    assert memory.written[2:] == [unset]


def test_only_validating_writes_nothing() -> None:
    memory = config_captures.one_node()
    assert alter(memory, 2, (TOPIC, "t", {"retention.ms": "5"}), validate_only=True) == [(0, None, TOPIC, "t")]
    assert memory.written == []


def test_the_same_resource_twice_is_refused_where_kafka_never_answers() -> None:
    memory = config_captures.one_node()
    rows = alter(memory, 2, (TOPIC, "t", {"retention.ms": "5"}), (TOPIC, "u", {}), (TOPIC, "t", {"segment.ms": "6"}))
    refused = (42, "Each resource must appear at most once.", TOPIC, "t")
    assert rows == [refused, (0, None, TOPIC, "u"), refused]
    assert memory.written == []


def test_a_change_of_all_brokers_that_this_one_could_not_run_with_is_refused() -> None:
    memory = config_captures.one_node()
    ((code, message, *_),) = alter(memory, 2, (BROKER, "", {"min.insync.replicas": "1", "num.io.threads": "9"}))
    assert code == 42
    assert "value should not be greater than double the current value 4" in message
