"""Settings through the client: described with their sources, changed, listed; old brokers, and answers that never come."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, TypeVar

import pytest

from barnabas.client.admin.config_values import is_done, replacement
from barnabas.client.admin.configs import (
    AlterConfigOp,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    Configs,
    ConfigSource,
)
from barnabas.client.admin.part import TimedOutError, checked
from barnabas.client.cluster import Cluster
from barnabas.client.errors import UnsupportedByNodeError
from barnabas.config.resource_type import ConfigResourceType
from barnabas.config.values import ConfigType
from barnabas.testing import Broker
from barnabas.wire import ErrorCode, KafkaError
from barnabas.wire.messages.alter_configs import AlterConfigsRequest, AlterConfigsResponse
from barnabas.wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResponse
from barnabas.wire.messages.list_config_resources import ListConfigResourcesResponse
from tests.client.admin.guarded import guarded_broker
from tests.client.peers import Asked, answering, one_broker, peer, ranges

T = TypeVar("T")
SET, DELETE, APPEND, SUBTRACT = AlterConfigOpType
TOPIC = ConfigResource.topic


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(config={"log.cleaner.threads": 2}) as running:
        yield running


def ask(broker: Broker, question: Callable[[Configs], Awaitable[T]], **settings: Any) -> T:
    async def main() -> T:
        async with Cluster({"bootstrap.servers": broker.bootstrap_servers} | settings) as cluster:
            return await question(Configs(cluster))

    return asyncio.run(main())


def describe(broker: Broker, *resources: ConfigResource, **how: Any) -> list[dict[str, ConfigEntry]]:
    return list(checked(ask(broker, lambda configs: configs.describe_configs(resources, **how))).values())


def alter(broker: Broker, resource: ConfigResource, *ops: AlterConfigOp, validate_only: bool = False) -> None:
    found = ask(broker, lambda it: it.incremental_alter_configs({resource: ops}, validate_only=validate_only))
    checked(found)


def test_settings_are_described_with_source_synonyms_type_and_a_sentence(broker: Broker) -> None:
    broker.create_topic("described", config={"retention.ms": "1000"})
    (config,) = describe(broker, TOPIC("described"), include_synonyms=True, include_documentation=True)
    entry = config["retention.ms"]
    assert (entry.value, entry.source) == ("1000", ConfigSource.DYNAMIC_TOPIC_CONFIG)
    assert entry.type is ConfigType.LONG
    assert entry.documentation
    assert entry.synonyms[0] == ("retention.ms", "1000", ConfigSource.DYNAMIC_TOPIC_CONFIG)
    assert config["min.insync.replicas"].synonyms[-1].source is ConfigSource.DEFAULT_CONFIG
    assert len(config) > 25


def test_only_the_keys_that_are_asked_for_come_back(broker: Broker) -> None:
    broker.create_topic("keyed")
    (config,) = describe(broker, TOPIC("keyed"), keys=["retention.ms", "no.such.setting"])
    assert list(config) == ["retention.ms"]


def test_every_kind_of_resource_is_described(broker: Broker) -> None:
    resources = [
        ConfigResource.broker(1),
        ConfigResource.all_brokers(),
        ConfigResource(ConfigResourceType.BROKER_LOGGER, "1"),
        ConfigResource(ConfigResourceType.CLIENT_METRICS, "nobody-made-it"),
        ConfigResource.group("nobody-made-it"),
    ]
    of_broker, _, loggers, metrics, group = describe(broker, *resources)
    assert of_broker["log.cleaner.threads"].source is ConfigSource.STATIC_BROKER_CONFIG
    assert of_broker["ssl.key.password"].is_sensitive
    assert of_broker["node.id"].is_read_only
    assert all(entry.source is ConfigSource.DYNAMIC_BROKER_LOGGER_CONFIG for entry in loggers.values())
    assert loggers
    assert "interval.ms" in metrics
    assert "consumer.session.timeout.ms" in group


def test_one_resource_that_fails_is_a_value_beside_the_others(broker: Broker) -> None:
    broker.create_topic("there")
    wanted = [TOPIC("there"), TOPIC("missing"), ConfigResource.broker(99), ConfigResource.broker(1)]
    found = ask(broker, lambda configs: configs.describe_configs(wanted))
    errors = {resource: result.code for resource, result in found.items() if isinstance(result, KafkaError)}
    assert errors == {
        TOPIC("missing"): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ConfigResource.broker(99): ErrorCode.BROKER_NOT_AVAILABLE,
    }
    assert list(found) == wanted


def test_settings_are_set_appended_subtracted_and_deleted(broker: Broker) -> None:
    broker.create_topic("altered", config={"retention.ms": "1000"})
    topic = TOPIC("altered")
    alter(broker, topic, AlterConfigOp("cleanup.policy", SET, "compact"), AlterConfigOp("retention.ms", DELETE))
    alter(broker, topic, AlterConfigOp("cleanup.policy", APPEND, "delete"))
    (config,) = describe(broker, topic)
    assert config["cleanup.policy"].value == "compact,delete"
    assert config["retention.ms"].source is ConfigSource.DEFAULT_CONFIG
    alter(broker, topic, AlterConfigOp("cleanup.policy", SUBTRACT, "compact"))
    assert describe(broker, topic)[0]["cleanup.policy"].value == "delete"


def test_a_broker_its_default_and_its_loggers_are_changed(broker: Broker) -> None:
    one, every = ConfigResource.broker(1), ConfigResource.all_brokers()
    alter(broker, every, AlterConfigOp("log.cleaner.threads", SET, "3"))
    alter(broker, one, AlterConfigOp("log.cleaner.threads", SET, "4"))
    (config,) = describe(broker, one, include_synonyms=True)
    assert [(each.value, each.source.name) for each in config["log.cleaner.threads"].synonyms[:3]] == [
        ("4", "DYNAMIC_BROKER_CONFIG"),
        ("3", "DYNAMIC_DEFAULT_BROKER_CONFIG"),
        ("2", "STATIC_BROKER_CONFIG"),
    ]
    for resource in (one, every):
        alter(broker, resource, AlterConfigOp("log.cleaner.threads", DELETE))
    logger = ConfigResource(ConfigResourceType.BROKER_LOGGER, "1")
    name = "barnabas.broker.lifecycle"  # of this process, so it is given its level back
    alter(broker, logger, AlterConfigOp(name, SET, "ERROR"))
    assert describe(broker, logger)[0][name].value == "ERROR"
    alter(broker, logger, AlterConfigOp(name, DELETE))
    assert describe(broker, logger)[0][name].value != "ERROR"


def test_validate_only_changes_nothing_and_refuses_what_is_wrong(broker: Broker) -> None:
    broker.create_topic("checked")
    alter(broker, TOPIC("checked"), AlterConfigOp("retention.ms", SET, "5"), validate_only=True)
    assert describe(broker, TOPIC("checked"))[0]["retention.ms"].value == "604800000"
    with pytest.raises(KafkaError) as refused:
        alter(broker, TOPIC("checked"), AlterConfigOp("retention.ms", SET, "soon"), validate_only=True)
    assert refused.value.code is ErrorCode.INVALID_CONFIG


def test_alter_configs_replaces_everything(broker: Broker) -> None:
    broker.create_topic("replaced", config={"retention.ms": "1000", "segment.ms": "2000"})
    topic = TOPIC("replaced")
    checked(ask(broker, lambda configs: configs.alter_configs({topic: {"retention.ms": "7"}})))
    own = {name for name, entry in describe(broker, topic)[0].items() if entry.source is topic.own_source}
    assert own == {"retention.ms"}


def test_resources_that_have_settings_are_listed(broker: Broker) -> None:
    broker.create_topic("listed")
    group = ConfigResource.group("listed-group")
    alter(broker, group, AlterConfigOp("consumer.session.timeout.ms", SET, "50000"))
    everything = ask(broker, lambda configs: configs.list_config_resources())
    assert {TOPIC("listed"), group, ConfigResource.broker(1)} <= set(everything)
    assert ask(broker, lambda configs: configs.list_config_resources([ConfigResourceType.GROUP])) == [group]


def test_many_topics_are_described_in_several_requests(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("barnabas.client.admin.configs._DESCRIBED_AT_ONCE", 2)
    names = [f"many-{number}" for number in range(5)]
    for name in names:
        broker.create_topic(name)
    found = ask(broker, lambda configs: configs.describe_configs(map(TOPIC, names)))
    assert [resource.name for resource in checked(found)] == names


def test_what_the_principal_may_not_see_or_change_is_said_for_each_resource() -> None:
    with guarded_broker() as guarded:
        resources = [TOPIC("secret"), ConfigResource.broker(1), ConfigResource.group("secret")]
        found = ask(guarded, lambda configs: configs.describe_configs(resources))
        assert [result.code.name for result in found.values() if isinstance(result, KafkaError)] == [
            "TOPIC_AUTHORIZATION_FAILED",
            "CLUSTER_AUTHORIZATION_FAILED",
            "GROUP_AUTHORIZATION_FAILED",
        ]
        ops = {TOPIC("secret"): [AlterConfigOp("retention.ms", SET, "1")]}
        (refused,) = ask(guarded, lambda configs: configs.incremental_alter_configs(ops)).values()
        assert refused is not None
        assert refused.code is ErrorCode.TOPIC_AUTHORIZATION_FAILED
        with pytest.raises(KafkaError) as whole:
            ask(guarded, lambda configs: configs.list_config_resources())
        assert whole.value.code is ErrorCode.CLUSTER_AUTHORIZATION_FAILED


# --- old brokers, and answers that do not come


def old_broker(port: list[int], seen: list[Any], **versions: tuple[int, int]) -> Callable[[Asked], bytes | None]:
    """A broker of Kafka 2.0, with a topic of which two settings are set."""
    row = DescribeConfigsResponse.DescribeConfigsResourceResult
    configs = [
        row(name="retention.ms", value="1000", config_source=1),
        row(name="segment.ms", value="5", config_source=1),
        row(name="cleanup.policy", value="delete", config_source=5),
    ]
    result = DescribeConfigsResponse.DescribeConfigsResult(resource_type=2, resource_name="old", configs=configs)

    def answer(asked: Asked) -> bytes | None:
        seen.append(asked.request)
        if asked.name == "ApiVersions":
            served = {"Metadata": (0, 6), "DescribeConfigs": (0, 2), "AlterConfigs": (0, 1)} | versions
            return asked.answer(ranges(**served))
        if asked.name == "Metadata":
            return asked.answer(one_broker(port[0]))
        if asked.name == "DescribeConfigs":
            return asked.answer(DescribeConfigsResponse(results=[result]))
        if asked.name == "AlterConfigs":
            done = AlterConfigsResponse.AlterConfigsResourceResponse(resource_type=2, resource_name="old")
            return asked.answer(AlterConfigsResponse(responses=[done]))
        if asked.name == "ListConfigResources":
            metrics = ListConfigResourcesResponse.ConfigResource(resource_name="watched")
            return asked.answer(ListConfigResourcesResponse(config_resources=[metrics]))
        return b""

    return answer


def ask_old(question: Callable[[Configs], Awaitable[T]], **versions: tuple[int, int]) -> tuple[T, list[Any]]:
    async def main() -> tuple[T, list[Any]]:
        port = [0]
        seen: list[Any] = []
        async with peer(answering(old_broker(port, seen, **versions))) as port[0]:
            settings = {
                "bootstrap.servers": f"127.0.0.1:{port[0]}",
                "default.api.timeout.ms": 500,
                "request.timeout.ms": 200,
            }
            async with Cluster(settings) as cluster:
                return await question(Configs(cluster)), seen

    return asyncio.run(main())


def test_on_an_old_broker_one_setting_is_changed_by_writing_back_all() -> None:
    ops = [AlterConfigOp("retention.ms", DELETE), AlterConfigOp("cleanup.policy", APPEND, "compact")]
    results, seen = ask_old(lambda configs: configs.incremental_alter_configs({TOPIC("old"): ops}))
    assert results == {TOPIC("old"): None}
    (request,) = [each for each in seen if isinstance(each, AlterConfigsRequest)]
    assert {each.name: each.value for each in request.resources[0].configs} == {
        "segment.ms": "5",
        "cleanup.policy": "delete,compact",
    }


@pytest.mark.parametrize(("last", "synonyms"), [(0, False), (2, True)])
def test_an_old_broker_is_asked_for_what_it_can_tell(last: int, synonyms: bool) -> None:
    found, seen = ask_old(
        lambda configs: configs.describe_configs([TOPIC("old")], include_synonyms=True, include_documentation=True),
        DescribeConfigs=(0, last),
    )
    (request,) = [each for each in seen if isinstance(each, DescribeConfigsRequest)]
    assert request.include_synonyms is synonyms
    config = checked(found)[TOPIC("old")]
    assert config["retention.ms"].source is ConfigSource.DYNAMIC_TOPIC_CONFIG
    assert config["cleanup.policy"].documentation is None


def test_an_old_broker_lists_client_metrics_but_not_groups() -> None:
    found, _ = ask_old(
        lambda configs: configs.list_config_resources([ConfigResourceType.CLIENT_METRICS]), ListConfigResources=(0, 0)
    )
    assert [resource.name for resource in found] == ["watched"]
    with pytest.raises(UnsupportedByNodeError, match=r"Kafka 4\.1"):
        ask_old(lambda configs: configs.list_config_resources([ConfigResourceType.GROUP]), ListConfigResources=(0, 0))


def test_a_change_that_is_not_answered_is_looked_for() -> None:
    ops = {TOPIC("old"): [AlterConfigOp("retention.ms", SET, "1000")]}
    results, _ = ask_old(lambda configs: configs.incremental_alter_configs(ops), IncrementalAlterConfigs=(0, 1))
    (late,) = results.values()
    assert isinstance(late, TimedOutError)
    assert late.happened is True
    ops = {TOPIC("old"): [AlterConfigOp("retention.ms", SET, "2000")]}
    results, _ = ask_old(lambda configs: configs.incremental_alter_configs(ops), IncrementalAlterConfigs=(0, 1))
    (late,) = results.values()
    assert isinstance(late, TimedOutError)
    assert late.happened is False


# --- pure


def entry(name: str, value: str | None, source: ConfigSource, **more: Any) -> ConfigEntry:
    return ConfigEntry(name, value, source, **more)


def test_a_password_that_is_set_is_never_lost_by_writing_back() -> None:
    one = ConfigResource.broker(1)
    config = {
        "ssl.key.password": entry("ssl.key.password", None, ConfigSource.DYNAMIC_BROKER_CONFIG, is_sensitive=True),
        "log.cleaner.threads": entry("log.cleaner.threads", "1", ConfigSource.DEFAULT_CONFIG),
    }
    with pytest.raises(KafkaError, match=r"ssl\.key\.password.*Kafka 2\.3"):
        replacement(one, config, [AlterConfigOp("log.cleaner.threads", SET, "2")])
    ops = [AlterConfigOp("log.cleaner.threads", SET, "2"), AlterConfigOp("ssl.key.password", SET, "x")]
    assert replacement(one, config, ops) == {"ssl.key.password": "x", "log.cleaner.threads": "2"}


def test_whether_a_change_happened_is_read_from_the_settings_by_their_type() -> None:
    topic = TOPIC("t")
    own = ConfigSource.DYNAMIC_TOPIC_CONFIG
    config = {
        "preallocate": entry("preallocate", "true", own, type=ConfigType.BOOLEAN),
        "cleanup.policy": entry("cleanup.policy", "compact,delete", own, type=ConfigType.LIST),
        "retention.ms": entry("retention.ms", "5", ConfigSource.DEFAULT_CONFIG, type=ConfigType.LONG),
    }
    assert is_done(topic, config, [AlterConfigOp("preallocate", SET, " TRUE ")])
    assert is_done(topic, config, [AlterConfigOp("cleanup.policy", APPEND, "delete")])
    assert not is_done(topic, config, [AlterConfigOp("cleanup.policy", SUBTRACT, "delete")])
    assert not is_done(topic, config, [AlterConfigOp("retention.ms", SET, "5")])
    assert is_done(topic, config, [AlterConfigOp("retention.ms", DELETE)])
    assert not is_done(topic, config, [AlterConfigOp("preallocate", DELETE)])
    secret = {"password": entry("password", None, ConfigSource.DYNAMIC_BROKER_CONFIG, is_sensitive=True)}
    assert is_done(ConfigResource.broker(1), secret, [AlterConfigOp("password", SET, "x")]) is None
