"""ListConfigResources (74)."""

from __future__ import annotations

from barnabas.security.authorizer import AuthorizerSettings
from barnabas.security.principal import KafkaPrincipal
from barnabas.wire.messages.list_config_resources import ListConfigResourcesRequest
from barnabas.wire.records.metadata import ConfigRecord
from tests.broker import config_captures
from tests.broker.harness import MemoryNode, register_broker


def test_a_cluster_is_answered_as_by_kafka_in_its_order() -> None:
    captures = config_captures.cluster("ListConfigResources", "5-final")
    assert len(captures) == 8
    config_captures.check(config_captures.final_node_1(), captures)


def test_brokers_are_listed_while_they_are_alive_and_have_this_listener() -> None:
    elsewhere = register_broker(3)
    elsewhere.end_points[0].name = "OTHER"
    memory = MemoryNode(brokers=1, records=[register_broker(2, fenced=True), elsewhere])
    response = memory.call(ListConfigResourcesRequest(resource_types=[4, 8]), 1)
    assert [(row.resource_type, row.resource_name) for row in response.config_resources] == [(8, "1"), (4, "1")]


def test_a_group_is_listed_when_it_has_settings() -> None:
    records = [ConfigRecord(resource_type=32, resource_name="g", name="share.isolation.level", value="read_committed")]
    response = MemoryNode(records=records).call(ListConfigResourcesRequest(resource_types=[32]), 1)
    assert [row.resource_name for row in response.config_resources] == ["g"]


def test_one_type_that_does_not_exist_refuses_all() -> None:
    response = MemoryNode().call(ListConfigResourcesRequest(resource_types=[2, 7]), 1)
    assert (response.error_code, response.config_resources) == (35, [])


def test_who_may_not_describe_the_clusters_settings_is_refused() -> None:
    memory = MemoryNode(authorizer=AuthorizerSettings(enabled=True))
    response = memory.call(ListConfigResourcesRequest(), 1, principal=KafkaPrincipal("User", "alice"))
    assert (response.error_code, response.config_resources) == (31, [])
