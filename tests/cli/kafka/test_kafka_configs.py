"""`barnabas kafka-configs` against a node; it is held against Kafka's own tool in tests/interop."""

from __future__ import annotations

import shlex
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas.cli.kafka.kafka_configs.rules import failed_line, quota_lines, to_add
from barnabas.client.admin.quotas import DEFAULT, quota_entity
from barnabas.testing import Broker
from tests.client.admin.guarded import guarded_broker
from tests.command_line import Done, invoke


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(["one", "two"]) as running:
        yield running


def kafka_configs(broker: Broker, line: str, code: int = 0) -> Done:
    server, controller = f"--bootstrap-server {broker.bootstrap_servers}", broker.listeners["CONTROLLER"]
    line = line.replace("{s}", server).replace("{c}", f"--bootstrap-controller {controller}")
    return invoke("kafka-configs", *shlex.split(line), code=code)


def out(broker: Broker, line: str) -> str:
    return kafka_configs(broker, line).stdout


def test_topics_are_changed_and_described(broker: Broker, tmp_path: Path) -> None:
    assert (
        out(broker, "{s} --alter --topic one --add-config retention.ms=5,cleanup.policy=[compact,delete]")
        == "Completed updating config for topic one.\n"
    )
    file = tmp_path / "more.properties"
    file.write_text("segment.ms = 7\n")
    out(broker, f"{{s}} --alter --topic one --add-config-file {file} --delete-config cleanup.policy")
    assert out(broker, "{s} --describe --topic one").splitlines() == [
        "Dynamic configs for topic one are:",
        "  retention.ms=5 sensitive=false synonyms={DYNAMIC_TOPIC_CONFIG:retention.ms=5}",
        "  segment.ms=7 sensitive=false synonyms={DYNAMIC_TOPIC_CONFIG:segment.ms=7}",
    ]
    assert out(broker, "{s} --describe --topic missing") == (
        "The topic 'missing' doesn't exist and doesn't have dynamic config.\n"
    )
    assert out(broker, "{c} --describe --entity-type topics --entity-name one --all").startswith(
        "All configs for topic one"
    )


def test_brokers_and_their_default_are_changed_and_described(broker: Broker) -> None:
    assert out(broker, "{s} --alter --broker-defaults --add-config log.cleaner.threads=2") == (
        "Completed updating default config for brokers in the cluster.\n"
    )
    lines = out(broker, "{s} --describe --entity-type brokers").splitlines()
    assert lines[0] == "Dynamic configs for broker 1 are:"
    assert "Default configs for brokers in the cluster are:" in lines
    all_lines = out(broker, "{s} --describe --broker 1 --all").splitlines()
    assert any(line.startswith("  ssl.key.password=null sensitive=true") for line in all_lines)
    out(broker, "{c} --alter --entity-type brokers --entity-default --delete-config log.cleaner.threads")


def test_the_order_of_names_and_defaults_says_whose_they_are(broker: Broker) -> None:
    clients = "--entity-type users --entity-default --entity-type clients --entity-name app"
    out(broker, f"{{s}} --alter {clients} --add-config request_percentage=50")
    assert out(broker, f"{{s}} --describe {clients}") == (
        "Quota configs for the default user-principal, client-id 'app' are request_percentage=50.0\n"
    )


def test_users_have_quotas_and_credentials(broker: Broker) -> None:
    out(broker, "{s} --alter --user ann --add-config producer_byte_rate=1e8")
    out(broker, "{s} --alter --user ann --add-config SCRAM-SHA-256=[iterations=8192,password=hunter2]")
    assert out(broker, "{s} --describe --user ann").splitlines() == [
        "Quota configs for user-principal 'ann' are producer_byte_rate=1.0E8",
        "SCRAM credential configs for user-principal 'ann' are SCRAM-SHA-256=iterations=8192",
    ]
    out(broker, "{s} --alter --user ann --delete-config SCRAM-SHA-256")
    refused = kafka_configs(broker, "{s} --alter --user ann --delete-config SCRAM-SHA-256", code=1)
    assert refused.stderr.startswith("Error while executing config command with args '--bootstrap-server ")


def test_a_password_is_in_no_message(broker: Broker) -> None:
    for line in ("SCRAM-SHA-256=[iterations=99999,password=hunter2]", "SCRAM-SHA-256=[hunter2]"):
        assert "hunter2" not in kafka_configs(broker, f"{{s}} --alter --user ann --add-config {line}", code=1).output
    assert failed_line(["--add-config", 'x.sasl.jaas.config=M required password="a b";']).count("[hidden]") == 1


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("{s} --topic one", "Command must include exactly one action: --describe, --alter"),
        ("--describe --topic one", "Either --bootstrap-server or --bootstrap-controller must be specified."),
        ("{s} --describe --broker x", "The entity name for brokers must be a valid integer broker id, but it is: x"),
        ("{s} --describe --nonsense", "nonsense is not a recognized option"),
        ("{s} --describe --topic", "Option topic requires an argument"),
        ("{s} --describe --topic a --topic b", "Found multiple arguments for option topic, but you asked for only one"),
        ("{s} --alter --user ann --delete-config consumer_byte_rate", "Invalid config(s): consumer_byte_rate"),
        ("{s} --alter --broker-logger 1 --add-config nope=INFO", "Invalid broker logger(s): nope"),
    ],
)
def test_what_kafka_refuses_is_refused_in_its_words(broker: Broker, line: str, said: str) -> None:
    assert kafka_configs(broker, line, code=1).stderr.splitlines()[0] == said


def test_what_a_broker_refuses_and_a_port_without_a_broker_end_with_1(broker: Broker, tmp_path: Path) -> None:
    said = kafka_configs(broker, "{s} --alter --topic one --add-config no.such=1", code=1).stderr.splitlines()
    assert said[0].endswith("--alter --topic one --add-config no.such=1'")
    assert "INVALID_CONFIG: Unknown topic config name: no.such" in said[1]
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
    hurry = tmp_path / "client.properties"
    hurry.write_text("default.api.timeout.ms=300\nrequest.timeout.ms=200\n")
    line = f"--bootstrap-server 127.0.0.1:{port} --command-config {hurry} --describe --topic one"
    assert kafka_configs(broker, line, code=1).stderr.startswith("Error while executing config command")


def test_without_permission_it_ends_with_1() -> None:
    with guarded_broker() as guarded:
        said = kafka_configs(guarded, "{s} --describe --topic secret --all", code=1)
        assert "TOPIC_AUTHORIZATION_FAILED" in said.stderr


def test_brackets_keep_commas_together() -> None:
    assert to_add("a=[1,2],b = 3 ,c=") == {"a": "1,2", "b": "3", "c": ""}


def test_entities_are_shown_in_the_order_of_javas_tables() -> None:
    found = {quota_entity(user=name): {"producer_byte_rate": 1.0} for name in ("ann", "bob", "carl")}
    found[quota_entity(user=DEFAULT)] = {"request_percentage": 0.0001, "producer_byte_rate": 1e7}
    lines = quota_lines(found)
    assert len(lines) == 4
    assert (
        "Quota configs for the default user-principal are request_percentage=1.0E-4, producer_byte_rate=1.0E7" in lines
    )
