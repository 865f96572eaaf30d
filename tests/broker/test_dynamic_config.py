"""The configuration a node runs with follows what is set for it."""

from __future__ import annotations

import pytest

from barnabas.broker.dynamic_config import DynamicConfig, check
from barnabas.config import server
from barnabas.config.server_config import ServerConfig
from barnabas.metadata.image import EMPTY_IMAGE, MetadataImage, Provenance
from barnabas.metadata.replay import replay
from barnabas.steps import at_once
from barnabas.wire import KafkaError, Message
from barnabas.wire.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from barnabas.wire.records.metadata import ConfigRecord
from tests.broker.config_captures import topics
from tests.broker.harness import MemoryNode


def broker(resource_name: str, name: str, value: str | None) -> ConfigRecord:
    return ConfigRecord(resource_type=4, resource_name=resource_name, name=name, value=value)


def image(*records: Message, before: MetadataImage = EMPTY_IMAGE) -> MetadataImage:
    return replay(before, records, Provenance(1, 1, 0))


class Node:
    """A configuration that is told of records."""

    def __init__(self, properties: dict[str, str] | None = None, *records: Message) -> None:
        self.image = image(*records)
        self.dynamic = DynamicConfig(server.load(None, properties or {}), self.image)

    def commit(self, *records: Message) -> None:
        old, self.image = self.image, image(*records, before=self.image)
        at_once(self.dynamic.image_changed(old, self.image, records))


def test_a_node_starts_with_what_was_set_before_over_its_file() -> None:
    node = Node({"message.max.bytes": "1", "num.io.threads": "3"}, broker("", "message.max.bytes", "2"))
    assert node.dynamic.get("message.max.bytes") == 2
    assert node.dynamic.get("num.io.threads") == 3
    assert node.dynamic.static.get("message.max.bytes") == 1


def test_a_change_counts_at_once_and_its_end_as_well() -> None:
    node = Node()
    node.commit(broker("", "max.connections", "7"))
    assert node.dynamic.current.max_connections == 7
    node.commit(broker("1", "max.connections", "8"))
    assert node.dynamic.current.max_connections == 8
    node.commit(broker("1", "max.connections", None), broker("", "max.connections", None))
    assert node.dynamic.current == node.dynamic.static


def test_who_watches_a_setting_is_told_when_its_value_changes() -> None:
    told: list[tuple[int, int]] = []

    def react(old: ServerConfig, new: ServerConfig) -> None:
        told.append((old.max_connections, new.max_connections))

    node = Node({"max.connections": "5"})
    node.dynamic.watch(["max.connections"], react)
    node.commit(broker("", "max.connections", "7"))
    node.commit(broker("", "num.io.threads", "9"))
    node.commit(broker("1", "max.connections", "7"))
    node.commit(broker("2", "max.connections", "8"))
    assert told == [(5, 7)]


def test_what_does_not_hang_together_does_not_count(caplog: pytest.LogCaptureFixture) -> None:
    node = Node(None, broker("1", "max.connections", "7"))
    node.commit(broker("1", "log.retention.ms", "0"))
    assert node.dynamic.get("max.connections") == 7
    assert node.dynamic.get("log.retention.ms") is None
    assert "log.retention.ms" in caplog.text


def test_an_interval_is_cut_off_by_bounds_that_the_file_has_now() -> None:
    name = "group.consumer.assignment.interval.ms"
    node = Node({"group.consumer.max.assignment.interval.ms": "2000"}, broker("1", name, "9000"))
    assert node.dynamic.get(name) == 2000


def test_a_topic_has_its_own_value_or_the_brokers() -> None:
    own = ConfigRecord(resource_type=2, resource_name="t", name="retention.ms", value="9")
    node = Node({"log.retention.hours": "1"}, *topics("t", "u"), own)
    node.commit(broker("", "log.retention.ms", "60000"))
    assert node.dynamic.topic_value("t", "retention.ms") == 9
    assert node.dynamic.topic_value("u", "retention.ms") == 60_000


def test_what_a_request_sets_has_taken_effect_when_it_is_answered() -> None:
    memory = MemoryNode()
    dynamic = DynamicConfig(memory.config, memory.image)
    memory.controller.loop.subscribe(dynamic.image_changed)
    change = IncrementalAlterConfigsRequest.AlterableConfig(name="max.connections", value="7")
    resource = IncrementalAlterConfigsRequest.AlterConfigsResource(resource_type=4, resource_name="1", configs=[change])
    memory.call(IncrementalAlterConfigsRequest(resources=[resource]), 1)
    assert dynamic.get("max.connections") == 7


def test_a_change_is_checked_over_what_is_set_for_the_other_level() -> None:
    config = server.load(None, {})
    now = image(broker("1", "log.retention.ms", "5"))
    local = {"log.local.retention.ms": "6"}
    with pytest.raises(KafkaError, match=r"must not be more than log\.retention\.ms property value: 5"):
        check(config, now, local, cluster_wide=True)
    check(config, now, local, cluster_wide=False)


def test_a_node_that_was_given_nonsense_can_be_given_sense_again() -> None:
    config = server.load(None, {})
    now = image(broker("1", "log.retention.ms", "0"))
    check(config, now, {}, cluster_wide=False)
    with pytest.raises(KafkaError, match=r"requirement failed: log\.retention\.ms must be"):
        check(config, now, {"log.retention.ms": "0"}, cluster_wide=False)
