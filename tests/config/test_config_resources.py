"""What topics, groups, subscriptions, running brokers and quotas may set, by the messages Kafka refuses the rest with."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from barnabas.config import broker, client_metrics, group, quotas, topic
from barnabas.config.definitions import ConfigError
from barnabas.wire.errors import ErrorCode
from tests.config.kafka_answers import read

VALIDATE: dict[str, Callable[[Mapping[str, str | None]], None]] = {
    "topic": topic.validate,
    "group": group.validate,
    "client_metrics": client_metrics.validate,
    "broker": lambda configs: broker.validate_dynamic(configs, cluster_wide=False),
    "broker_default": lambda configs: broker.validate_dynamic(configs, cluster_wide=True),
}


def refusal(kind: str, configs: Mapping[str, str | None]) -> tuple[int, str] | None:
    try:
        VALIDATE[kind](configs)
    except ConfigError as error:
        return int(error.code), error.message
    return None


@pytest.mark.parametrize(("kind", "name", "value", "code", "message"), read("wire_errors.json"))
def test_a_bad_value_is_refused_with_the_code_and_message_that_kafka_sends(
    kind: str, name: str, value: str | None, code: int, message: str
) -> None:
    assert refusal(kind, {name: value}) == (code, message)


def test_a_topic_may_set_every_setting_to_its_default() -> None:
    configs = {name: each.default for name, each in topic.definitions().items() if each.default is not None}
    assert refusal("topic", configs) is None


def test_an_unknown_name_comes_before_a_bad_value() -> None:
    assert refusal("topic", {"retention.ms": "x", "nope": "1"}) == (40, "Unknown topic config name: nope")


def test_compaction_lags_of_a_topic_must_not_cross() -> None:
    message = "conflict topic config setting min.compaction.lag.ms (5) > max.compaction.lag.ms (2)"
    assert refusal("topic", {"min.compaction.lag.ms": "5", "max.compaction.lag.ms": "2"}) == (40, message)


def test_compaction_lags_of_a_topic_must_not_cross_those_of_the_broker() -> None:
    with pytest.raises(ConfigError, match=r"min\.compaction\.lag\.ms \(5\) > max\.compaction\.lag\.ms \(3\)"):
        topic.validate({"min.compaction.lag.ms": "5"}, {"max.compaction.lag.ms": 3})


def test_a_topic_is_not_tiered_unless_the_broker_can() -> None:
    message = (
        "Tiered Storage functionality is disabled in the broker. Topic cannot be configured with remote log storage."
    )
    assert refusal("topic", {"remote.storage.enable": "true"}) == (40, message)
    topic.validate({"remote.storage.enable": "true"}, remote_storage_system_enabled=True)


@pytest.mark.parametrize(
    ("configs", "message"),
    [
        (
            {"consumer.heartbeat.interval.ms": "15001"},
            "consumer.heartbeat.interval.ms must be less than or equal to group.consumer.max.heartbeat.interval.ms",
        ),
        (
            {"streams.num.standby.replicas": "3"},
            "streams.num.standby.replicas must be less than or equal to group.streams.max.standby.replicas",
        ),
        (
            {"share.record.lock.duration.ms": "1000"},
            "share.record.lock.duration.ms must be greater than or equal to group.share.min.record.lock.duration.ms",
        ),
        (
            {"consumer.session.timeout.ms": "1", "consumer.heartbeat.interval.ms": "1"},
            "consumer.heartbeat.interval.ms must be greater than or equal to group.consumer.min.heartbeat.interval.ms",
        ),
        (
            {"consumer.session.timeout.ms": None},
            "Null value not supported for group configs: consumer.session.timeout.ms",
        ),
    ],
)
def test_a_group_stays_within_the_bounds_of_the_broker(configs: Mapping[str, str | None], message: str) -> None:
    assert refusal("group", configs) == (40, message)


def test_a_session_of_a_group_is_longer_than_its_heartbeat() -> None:
    bounds = {"group.consumer.min.session.timeout.ms": 1000}
    with pytest.raises(ConfigError) as refused:
        group.validate(
            {"consumer.session.timeout.ms": "5000"}, lambda name: bounds.get(name, group.broker_default(name))
        )
    assert refused.value.message == "consumer.session.timeout.ms must be greater than consumer.heartbeat.interval.ms"


@pytest.mark.parametrize(
    "match", ["client_id", "client_id=", "=a", "client_id=a=b", "CLIENT_ID=a", "client_id=[", "client_id=[a&&b]"]
)
def test_a_pattern_that_names_no_clients_is_refused(match: str) -> None:
    assert refusal("client_metrics", {"match": match}) == (40, f"Illegal client matching pattern: {match}")


def test_a_pattern_is_read_for_every_key() -> None:
    patterns = client_metrics.parse_match([" client_id = gold-.* ", "client_source_port=(?<port>[0-9]+)"])
    assert patterns["client_id"].fullmatch("gold-1")
    port = patterns["client_source_port"].fullmatch("9092")
    assert port is not None and port["port"] == "9092"


@pytest.mark.parametrize("expression", ["(?!a).*", "(a)\\1", "a++", "[a[b]]", "[a-z&&[b]]"])
def test_a_pattern_that_only_java_can_match_is_refused(expression: str) -> None:
    match = f"client_id={expression}"
    assert refusal("client_metrics", {"match": match}) == (40, f"Illegal client matching pattern: {match}")


def test_patterns_of_clients_are_matched_in_linear_time() -> None:
    """In Python's `re`, this would not end before the sun does."""
    patterns = client_metrics.parse_match(["client_id=(a+)+b"])
    assert type(patterns["client_id"]).__module__.startswith("re2")
    assert patterns["client_id"].fullmatch("a" * 10_000) is None
    assert patterns["client_id"].fullmatch("a" * 10_000 + "b")


def test_client_metrics_may_name_a_metric_twice() -> None:
    assert refusal("client_metrics", {"metrics": "a,a", "interval.ms": "100"}) is None


@pytest.mark.parametrize(
    ("configs", "kind", "message"),
    [
        (
            {"ssl.keystore.location": "/x"},
            "broker",
            "These security configs can be dynamically updated only per-listener using the listener prefix: "
            "[ssl.keystore.location]",
        ),
        (
            {"listener.name.a.ssl.keystore.location": "/x"},
            "broker_default",
            "Cannot update these configs at default cluster level, broker id must be specified: "
            "[listener.name.a.ssl.keystore.location]",
        ),
        (
            {"listener.name.a.max.connections": "x"},
            "broker",
            "Invalid value x for configuration max.connections: Not a number of type INT",
        ),
        (
            {"leader.replication.throttled.rate": "-5"},
            "broker",
            "Invalid value -5 for configuration leader.replication.throttled.rate: Value must be at least 0",
        ),
        (
            {"listeners": "PLAINTEXT://:1", "log.cleaner.threads": "x"},
            "broker_default",
            "Invalid value x for configuration log.cleaner.threads: Not a number of type INT",
        ),
    ],
)
def test_a_running_broker_refuses_what_cannot_change(configs: Mapping[str, str], kind: str, message: str) -> None:
    assert refusal(kind, configs) == (42, message)


@pytest.mark.parametrize(
    ("configs", "kind"),
    [
        ({"no.such.setting": "1"}, "broker"),
        ({"listener.name.a.max.connections": "5"}, "broker_default"),
        ({"listener.name.a.ssl.keystore.location": "/x"}, "broker"),
        ({"listener.name.a.plain.sasl.jaas.config": "x"}, "broker"),
        ({"leader.replication.throttled.rate": "5"}, "broker_default"),
        ({"listeners": None}, "broker"),
    ],
)
def test_a_running_broker_takes_what_can_change(configs: Mapping[str, str | None], kind: str) -> None:
    assert refusal(kind, configs) is None


@pytest.mark.parametrize(
    ("name", "base"),
    [
        ("num.partitions", "num.partitions"),
        ("listener.name.a.max.connections", "max.connections"),
        ("listener.name.a.scram-sha-256.sasl.jaas.config", "sasl.jaas.config"),
        ("listener.name.a.foo", "foo"),
    ],
)
def test_a_name_may_carry_the_prefix_of_a_listener(name: str, base: str) -> None:
    assert broker.base_name(name) == base
    found = broker.find(name)
    assert (found.name if found else None) == (base if base in broker.definitions() else None)


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("nope", 1.0, "Invalid configuration key nope"),
        ("connection_creation_rate", 1.0, "Invalid configuration key connection_creation_rate"),
        ("producer_byte_rate", -1.0, "Quota producer_byte_rate must be greater than 0"),
        ("producer_byte_rate", float("nan"), "Quota producer_byte_rate must be greater than 0"),
        ("producer_byte_rate", 1.5, "producer_byte_rate cannot be a fractional value."),
        ("producer_byte_rate", 1e19, "Proposed value for producer_byte_rate is too large for a LONG."),
    ],
)
def test_a_quota_of_a_user_is_refused_with_kafkas_message(key: str, value: float, message: str) -> None:
    with pytest.raises(ConfigError) as refused:
        quotas.validate(quotas.user_or_client_definitions(), key, value)
    assert (refused.value.code, refused.value.message) == (ErrorCode.INVALID_REQUEST, message)


def test_quotas_of_users_and_addresses_take_their_values() -> None:
    quotas.validate(quotas.user_or_client_definitions(), "request_percentage", 0.5)
    quotas.validate(quotas.user_or_client_definitions(), "producer_byte_rate", 1024.0)
    quotas.validate(quotas.ip_definitions(), "connection_creation_rate", 5.0)
    with pytest.raises(ConfigError, match="too large for an INT"):
        quotas.validate(quotas.ip_definitions(), "connection_creation_rate", 2.0**31)
