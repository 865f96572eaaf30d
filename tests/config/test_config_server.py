"""A server.properties becomes the configuration, or the error, that Kafka makes of it."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas.config import properties, server
from barnabas.config.definitions import ConfigError
from barnabas.config.endpoints import Address, Endpoint, Voter
from barnabas.config.server import EMBEDDED_DEFAULTS, load, parse_override
from barnabas.config.unsupported import STANDARD_AUTHORIZER
from tests.config.kafka_answers import read

ANSWERS = read("server.json.gz")


@pytest.mark.parametrize(("given", "error"), [(given, error) for given, error, _ in ANSWERS if error is not None])
def test_a_configuration_that_kafka_refuses_is_refused_with_its_message(given: dict[str, str], error: str) -> None:
    with pytest.raises(ConfigError) as refused:
        load(given)
    assert refused.value.message == error
    assert refused.value.key and refused.value.key in str(refused.value)


@pytest.mark.parametrize(("given", "expected"), [(given, made) for given, _, made in ANSWERS if made is not None])
def test_a_configuration_that_kafka_takes_means_the_same(given: dict[str, str], expected: dict[str, Any]) -> None:
    config = load(given)
    assert {
        "listeners": [list(each) for each in config.listeners],
        "advertised_listeners": [list(each) for each in config.advertised_listeners],
        "advertised_controller_listeners": [list(each) for each in config.advertised_controller_listeners],
        "inter_broker_listener_name": config.inter_broker_listener_name,
        "inter_broker_security_protocol": config.inter_broker_security_protocol,
        "listener_security_protocol_map": dict(config.listener_security_protocol_map),
        "log_dirs": list(config.log_dirs),
        "metadata_log_dir": config.metadata_log_dir,
        "node_id": config.node_id,
    } == expected


def test_without_a_file_the_embedded_default_fits_one_node() -> None:
    config = load()
    assert config.warnings == ()
    assert (config.node_id, config.process_roles) == (1, frozenset({"broker", "controller"}))
    assert config.listeners == (
        Endpoint("PLAINTEXT", "PLAINTEXT", "127.0.0.1", 9092),
        Endpoint("CONTROLLER", "PLAINTEXT", "127.0.0.1", 9093),
    )
    assert config.advertised_listeners == config.listeners[:1]
    assert config.advertised_controller_listeners == config.listeners[1:]
    assert config.controller_quorum_bootstrap_servers == (Address("127.0.0.1", 9093),)
    assert config.controller_quorum_voters == ()
    assert config.log_dirs == ("./data",)
    assert config.get("group.initial.rebalance.delay.ms") == 0
    assert config.given.items() >= EMBEDDED_DEFAULTS.items()


def test_the_embedded_quorum_is_found_where_the_controller_listens() -> None:
    config = load(None, {"listeners": "PLAINTEXT://:0, CONTROLLER://:7"})
    assert config.controller_quorum_bootstrap_servers == (Address("127.0.0.1", 7),)
    config = load(None, {"controller.quorum.bootstrap.servers": "other:1"})
    assert config.controller_quorum_bootstrap_servers == (Address("other", 1),)


FILE = """\
# three nodes
process.roles=broker,controller
node.id=2
listeners=PLAINTEXT://:9092,CONTROLLER://:9093
controller.listener.names=CONTROLLER
controller.quorum.voters=1@a:9093,2@b:9093,3@c:9093
"""


def test_a_file_is_read_with_kafkas_defaults() -> None:
    config = load(FILE)
    assert config.node_id == 2
    assert config.get_int("broker.id") == 2
    assert config.controller_quorum_voters == (Voter(1, "a", 9093), Voter(2, "b", 9093), Voter(3, "c", 9093))
    assert config.get("offsets.topic.replication.factor") == 3
    assert config.socket_request_max_bytes == 104_857_600
    assert config.connections_max_idle_ms == 600_000
    assert config.max_connections == config.max_connections_per_ip == 2**31 - 1
    assert (config.queued_max_requests, config.num_partitions, config.default_replication_factor) == (500, 1, 1)
    assert config.is_broker and config.is_controller


def test_an_override_wins_over_the_file() -> None:
    assert load(FILE, {"num.partitions": "7"}).num_partitions == 7


def test_a_bad_value_is_an_error_that_names_the_key() -> None:
    with pytest.raises(ConfigError) as refused:
        load(FILE, {"num.partitions": "-5"})
    assert refused.value.key == "num.partitions"
    assert str(refused.value) == "Invalid value -5 for configuration num.partitions: Value must be at least 1"


def test_a_bad_escape_in_the_file_is_an_error() -> None:
    with pytest.raises(ConfigError, match="Malformed"):
        load("a=\\u12")


def test_an_unknown_key_is_a_warning_and_stays_in_what_was_given() -> None:
    known = f"authorizer.class.name={STANDARD_AUTHORIZER}\nsuper.users=User:a\nrsm.config.a=b\n"
    config = load(f"{FILE}zookeeper.connect=z\n{known}")
    assert len(config.warnings) == 1 and "zookeeper.connect" in config.warnings[0]
    assert config.given["super.users"] == "User:a"
    with pytest.raises(KeyError):
        config.get("zookeeper.connect")


def test_a_value_that_a_provider_would_resolve_stays_as_it_is() -> None:
    assert load(FILE + "ssl.key.password=${file:/s:p}\n").get_str("ssl.key.password") == "${file:/s:p}"


def test_a_replication_factor_above_the_number_of_brokers_is_a_warning_that_names_it() -> None:
    alone = FILE.replace("1@a:9093,2@b:9093,3@c:9093", "2@b:9093")
    warnings = load(alone).warnings
    assert [warning.split("=")[0] for warning in warnings] == [
        "offsets.topic.replication.factor",
        "transaction.state.log.replication.factor",
        "share.coordinator.state.topic.replication.factor",
    ]
    assert "3" in warnings[0] and "1 broker" in warnings[0]
    assert load(FILE).warnings == ()
    assert len(load(FILE, {"default.replication.factor": "4"}, broker_count=3).warnings) == 1


def test_a_port_outside_of_its_range_is_refused_at_once() -> None:
    for port in ("65536", "-1"):
        with pytest.raises(ConfigError, match="Unable to parse PLAINTEXT://h:"):
            load(FILE, {"listeners": f"PLAINTEXT://h:{port},CONTROLLER://:9093"})
    with pytest.raises(ConfigError, match="port out of range"):
        load(FILE, {"controller.quorum.voters": "2@h:65536"})


def test_a_pair_without_a_colon_is_refused_by_its_key() -> None:
    with pytest.raises(ConfigError, match=r"listener\.security\.protocol\.map.*PLAINTEXT"):
        load(FILE, {"listener.security.protocol.map": "PLAINTEXT"})


def test_limits_for_single_addresses_are_read() -> None:
    config = load(FILE, {"max.connections.per.ip.overrides": "127.0.0.1:5, ::1:6 ,host:7"})
    assert config.max_connections_per_ip_overrides == {"127.0.0.1": 5, "::1": 6, "host": 7}
    with pytest.raises(ConfigError, match=r"Invalid value x for configuration max\.connections\.per\.ip\.overrides"):
        load(FILE, {"max.connections.per.ip.overrides": "127.0.0.1:x"})


def test_no_cleaner_threads_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"log\.cleaner\.threads must be"):
        load(FILE, {"log.cleaner.threads": "0"})


def test_a_listener_has_settings_of_its_own() -> None:
    config = load(
        FILE,
        {
            "max.connections": "9",
            "listener.name.plaintext.max.connections": "5",
            "listener.name.plaintext.plain.sasl.jaas.config": "of the mechanism",
            "sasl.jaas.config": "of all",
        },
    )
    assert config.for_listener("PLAINTEXT", "max.connections") == 5
    assert config.for_listener("CONTROLLER", "max.connections") == 9
    assert config.for_listener("PLAINTEXT", "sasl.jaas.config", "PLAIN") == "of the mechanism"
    assert config.for_listener("PLAINTEXT", "sasl.jaas.config", "SCRAM-SHA-256") == "of all"


def test_a_getter_refuses_a_setting_of_another_type() -> None:
    config = load(FILE)
    assert config.get_bool("delete.topic.enable") is True
    assert config.get_list("log.dirs") == ()
    assert config.get_float("log.cleaner.min.cleanable.ratio") == 0.5
    assert config.get_str("broker.rack") is None
    with pytest.raises(TypeError):
        config.get_int("delete.topic.enable")
    with pytest.raises(TypeError):
        config.get_float("num.partitions")
    with pytest.raises(TypeError):
        config.get_str("num.partitions")
    with pytest.raises(TypeError):
        config.get_list("num.partitions")
    with pytest.raises(TypeError):
        config.get_bool("num.partitions")


def test_a_configuration_shows_no_secret() -> None:
    config = load(FILE + "ssl.key.password=hunter2\nlistener.name.a.plain.sasl.jaas.config=hunter2\n")
    assert "hunter2" not in repr(config) + str(config)


def test_a_configuration_cannot_be_changed() -> None:
    config = load(FILE)
    with pytest.raises(TypeError):
        config.values["num.partitions"] = 2  # type: ignore[index]
    with pytest.raises(AttributeError):
        config.warnings = ()  # type: ignore[misc]


def test_an_override_is_written_as_key_and_value() -> None:
    assert parse_override("a.b = c=d") == ("a.b", " c=d")
    for text in ("a.b", "=x"):
        with pytest.raises(ConfigError):
            parse_override(text)


def test_the_embedded_default_can_be_written_as_a_file_and_read_again() -> None:
    assert load(properties.dumps(EMBEDDED_DEFAULTS)).values == server.load().values
