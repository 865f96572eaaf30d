"""DescribeConfigs (32)."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas.config import broker as settings
from barnabas.security.authorizer import AuthorizerSettings
from barnabas.security.principal import KafkaPrincipal
from barnabas.wire.messages.describe_configs import DescribeConfigsRequest
from barnabas.wire.records.metadata import ConfigRecord
from tests.broker import config_captures
from tests.broker.harness import MemoryNode

TOPIC, BROKER, LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32

OTHER_LOGGERS = "the loggers are Python's, and the nodes of the cluster had none"


def config(kind: int, resource_name: str, name: str, value: str) -> ConfigRecord:
    return ConfigRecord(resource_type=kind, resource_name=resource_name, name=name, value=value)


def describe(
    memory: MemoryNode, *resources: tuple[int, str, list[str] | None], version: int = 4, **more: Any
) -> list[Any]:
    asked = [
        DescribeConfigsRequest.DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=keys)
        for kind, name, keys in resources
    ]
    peer = {"principal": more.pop("principal")} if "principal" in more else {}
    results: list[Any] = memory.call(DescribeConfigsRequest(resources=asked, **more), version, **peer).results
    return results


def test_a_cluster_is_answered_as_by_kafka_in_its_order() -> None:
    captures = config_captures.cluster("DescribeConfigs", "2b-sasl", "5-final")
    whole_broker = ("broker, all", "broker on the controller listener")
    plain = [each for each in captures if each["case"] not in whole_broker]
    config_captures.check(config_captures.final_node_1(), plain, {"logger": OTHER_LOGGERS})


def test_a_node_is_answered_as_by_kafka() -> None:
    memory = config_captures.one_node()
    for capture in config_captures.node("AlterConfigs"):
        config_captures.answer(memory, capture)
    config_captures.check(memory, config_captures.node("DescribeConfigs"), {"d logger": OTHER_LOGGERS})


def test_a_whole_broker_is_described_as_by_kafka_but_for_our_own_settings() -> None:
    memory = config_captures.final_node_1()
    captures = config_captures.cluster("DescribeConfigs", "5-final")
    captures = [each for each in captures if each["case"] in ("broker, all", "broker on the controller listener")]
    assert [each["version"] for each in captures] == [1, 2, 3, 4]
    for capture in captures:
        got = config_captures.decode(capture, config_captures.answer(memory, capture))
        (result,) = got.results
        ours = [row.name for row in result.configs if row.name.startswith("barnabas.")]
        assert set(ours) == {name for name in settings.definitions() if name.startswith("barnabas.")}
        result.configs = [row for row in result.configs if row.name not in ours]
        assert got == config_captures.decode(capture, capture["response_hex"])


def test_each_place_that_sets_a_value_is_shown_the_strongest_first() -> None:
    records = [
        *config_captures.topics("t"),
        config(TOPIC, "t", "max.message.bytes", "4"),
        config(BROKER, "1", "message.max.bytes", "3"),
        config(BROKER, "", "message.max.bytes", "2"),
    ]
    memory = MemoryNode({"message.max.bytes": "1"}, records=records)
    keys = ["max.message.bytes", "message.max.bytes"]
    topic, broker = describe(memory, (TOPIC, "t", keys), (BROKER, "1", keys), include_synonyms=True)
    of_broker = [("message.max.bytes", "3", 2), ("message.max.bytes", "2", 3), ("message.max.bytes", "1", 4)]
    of_broker.append(("message.max.bytes", "1048588", 5))
    (row,) = topic.configs
    assert (row.value, row.config_source, row.config_type) == ("4", 1, 3)
    assert [(s.name, s.value, s.source) for s in row.synonyms] == [("max.message.bytes", "4", 1), *of_broker]
    (row,) = broker.configs
    assert (row.value, row.config_source, row.read_only) == ("3", 2, False)
    assert [(s.name, s.value, s.source) for s in row.synonyms] == of_broker


def test_every_setting_has_a_sentence_of_one_line_when_it_is_asked_for() -> None:
    memory = MemoryNode(records=config_captures.topics("t"))
    resources = [(TOPIC, "t", None), (BROKER, "1", None), (CLIENT_METRICS, "m", None), (GROUP, "g", None)]
    for result in describe(memory, *resources, include_documentation=True):
        assert result.configs
        assert all(row.documentation and "\n" not in row.documentation for row in result.configs)
    for result in describe(memory, *resources):
        assert all(row.documentation is None for row in result.configs)


def test_version_0_says_whether_a_setting_has_its_default() -> None:
    records = [*config_captures.topics("t"), config(TOPIC, "t", "segment.ms", "5")]
    keys = ["segment.ms", "flush.ms", "retention.bytes"]
    memory = MemoryNode({"log.retention.bytes": "7"}, records=records)
    (result,) = describe(memory, (TOPIC, "t", keys), version=0)
    assert {row.name: row.is_default for row in result.configs} == {
        "segment.ms": False,
        "flush.ms": True,
        "retention.bytes": False,
    }


def test_loggers_are_those_of_this_program() -> None:
    (result,) = describe(MemoryNode(), (LOGGER, "1", None))
    levels = {row.name: row.value for row in result.configs}
    assert {"root", "barnabas", "barnabas.broker.dispatch"} <= set(levels)
    assert set(levels.values()) <= {"TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL"}
    assert all(name == "root" or name.split(".")[0] == "barnabas" for name in levels)


def test_what_a_running_broker_does_not_take_is_not_shown_as_its_setting() -> None:
    records = [config(BROKER, "1", "log.dirs", "/x"), config(BROKER, "", "num.io.threads", "x")]
    memory = MemoryNode(records=records)
    own, shared = describe(memory, (BROKER, "1", ["log.dirs"]), (BROKER, "", None), include_synonyms=True)
    assert [row.config_source for row in own.configs] == [4]
    assert shared.configs == []


@pytest.mark.parametrize(("kind", "code"), [(TOPIC, 29), (BROKER, 31), (LOGGER, 31), (CLIENT_METRICS, 31), (GROUP, 30)])
def test_what_the_caller_may_not_see_is_refused(kind: int, code: int) -> None:
    memory = MemoryNode(records=config_captures.topics("1"), authorizer=AuthorizerSettings(enabled=True))
    (result,) = describe(memory, (kind, "1", None), principal=KafkaPrincipal("User", "alice"))
    assert (result.error_code, result.configs) == (code, [])
