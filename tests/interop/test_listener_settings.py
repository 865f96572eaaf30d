"""The settings of a broker, as DescribeConfigs shows them, for the same server.properties: Kafka, then barnabas."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest
from tools.apache_kafka import HOST, ApacheKafka, Node, free_ports

from barnabas.wire.messages.describe_configs import DescribeConfigsRequest
from tests.broker.clients import ask
from tests.interop.conftest import jars

pytestmark = pytest.mark.interop

PROTOCOLS = "listener.security.protocol.map"
# `{broker}`, `{other}` and `{controller}` stand for ports; an empty value removes the setting.
VARIANTS = {
    "defaults": {PROTOCOLS: ""},
    "advertised": {
        "advertised.listeners": "PLAINTEXT://localhost:{broker},CONTROLLER://localhost:{controller}",
        "inter.broker.listener.name": "PLAINTEXT",
    },
    "all interfaces": {"listeners": "plaintext://:{broker},CONTROLLER://:{controller}"},
    "more listeners": {
        "listeners": "PLAINTEXT://127.0.0.1:{broker}, OUT://127.0.0.1:{other} ,CONTROLLER://127.0.0.1:{controller}",
        PROTOCOLS: " OUT:PLAINTEXT, plaintext:plaintext,CONTROLLER:PLAINTEXT ",
        "early.start.listeners": "CONTROLLER,OUT",
        "listener.name.out.max.connections": "50",
        "max.connections.per.ip.overrides": "127.0.0.1:100, localhost:5",
    },
}


def settings(node: Node) -> dict[str, Any]:
    resource = DescribeConfigsRequest.DescribeConfigsResource(
        resource_type=4, resource_name="1", configuration_keys=None
    )
    request = DescribeConfigsRequest(resources=[resource], include_synonyms=True)
    (result,) = asyncio.run(ask(node.address, request, 4)).results
    return {
        each.name: (
            *(each.value, each.config_source, each.is_sensitive, each.read_only, each.config_type),
            [(synonym.name, synonym.value, synonym.source) for synonym in each.synonyms],
        )
        for each in result.configs
        if not each.name.startswith("barnabas.")
    }


@pytest.mark.parametrize("variant", VARIANTS)
def test_settings_are_shown_as_kafka_shows_them(tmp_path: Path, variant: str) -> None:
    jars("4.3.1")
    broker, other, controller = free_ports(3)
    ports = {"broker": broker, "other": other, "controller": controller}
    given = {
        "listeners": f"PLAINTEXT://{HOST}:{broker},CONTROLLER://{HOST}:{controller}",
        "controller.quorum.bootstrap.servers": f"{HOST}:{controller}",
        **{name: value.format(**ports) for name, value in VARIANTS[variant].items()},
    }
    kafka = ApacheKafka(given, directory=tmp_path)
    kafka.properties = {name: value for name, value in kafka.properties.items() if value}
    kafka.address = (HOST, broker)
    with kafka:
        theirs = settings(kafka)
    command = [sys.executable, "-m", "barnabas", "serve", str(tmp_path / "server.properties")]
    with Node(command, (HOST, broker), tmp_path / "barnabas.log") as barnabas:
        assert settings(barnabas) == theirs
