"""Clients of others on secured listeners: each protocol with each mechanism, the right and the wrong password."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from typing import Any

import aiokafka
import kafka
import pytest
from confluent_kafka import Consumer, KafkaException, Producer
from kafka.net.sasl.oauth import AbstractTokenProvider

from barnabas import client
from barnabas.security.oauth.unsecured import make_token
from barnabas.testing import Broker, Security

MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
USERS = {"alice": "wonder, land=1", "bob": "builder"}
SECURED = [
    pytest.param(Security("SSL", users=USERS, client_auth="required"), id="SSL"),
    *(
        pytest.param(Security(protocol, (mechanism,), USERS), id=f"{protocol}-{mechanism}")
        for protocol in ("SASL_PLAINTEXT", "SASL_SSL")
        for mechanism in MECHANISMS
    ),
]
WAIT_S = 20


@pytest.fixture(scope="module", params=SECURED)
def broker(request: pytest.FixtureRequest) -> Iterator[Broker]:
    with Broker(["t"], security=request.param, config={"connection.failed.authentication.delay.ms": 0}) as running:
        yield running


class TokenOfKafkaPython(AbstractTokenProvider):  # type: ignore[misc]  # without types
    def token(self) -> str:
        return make_token({"unsecuredLoginStringClaim_sub": "alice"}, int(time.time() * 1000))


class TokenOfAiokafka(aiokafka.abc.AbstractTokenProvider):  # type: ignore[misc]
    async def token(self) -> str:
        return make_token({"unsecuredLoginStringClaim_sub": "alice"}, int(time.time() * 1000))


def in_other_names(broker: Broker, provider: type, user: str = "alice") -> dict[str, Any]:
    """The settings of aiokafka and kafka-python. `provider` gives tokens for OAUTHBEARER."""
    config = broker.client_config(user)
    named = {"security_protocol": config["security.protocol"], "ssl_context": broker.ssl_context(user)}
    if config.get("sasl.mechanism") == "OAUTHBEARER":
        named |= {"sasl_mechanism": "OAUTHBEARER", "sasl_oauth_token_provider": provider()}
    elif "sasl.mechanism" in config:
        named |= {
            "sasl_mechanism": config["sasl.mechanism"],
            "sasl_plain_username": config["sasl.username"],
            "sasl_plain_password": config["sasl.password"],
        }
    return {"bootstrap_servers": config["bootstrap.servers"], **named}


def test_confluent_kafka(broker: Broker) -> None:
    producer = Producer(broker.librdkafka_config())
    producer.produce("t", b"confluent")
    assert producer.flush(WAIT_S) == 0
    consumer = Consumer(broker.librdkafka_config("bob") | {"group.id": "c", "auto.offset.reset": "earliest"})
    consumer.subscribe(["t"])
    record = consumer.poll(WAIT_S)
    assert record is not None and record.error() is None
    consumer.close()


def test_kafka_python(broker: Broker) -> None:
    producer = kafka.KafkaProducer(**in_other_names(broker, TokenOfKafkaPython))
    assert producer.send("t", b"kafka-python").get(WAIT_S).offset >= 0
    producer.close()


def test_aiokafka(broker: Broker) -> None:
    async def run() -> None:
        producer = aiokafka.AIOKafkaProducer(**in_other_names(broker, TokenOfAiokafka))
        await producer.start()
        try:
            assert (await producer.send_and_wait("t", b"aiokafka")).offset >= 0
        finally:
            await producer.stop()

    asyncio.run(run())


def test_our_own_client(broker: Broker) -> None:
    async def run() -> None:
        async with client.Producer(broker.client_config()) as producer:
            assert (await producer.send_and_wait("t", b"barnabas")).offset >= 0

    asyncio.run(run())


def test_a_wrong_password_is_told_to_the_client(broker: Broker) -> None:
    if broker.client_config().get("sasl.mechanism", "OAUTHBEARER") == "OAUTHBEARER":
        pytest.skip("certificates and tokens without a signature have no password")
    errors: list[Any] = []
    wrong = broker.librdkafka_config() | {"sasl.password": "wrong", "error_cb": errors.append}
    producer = Producer(wrong)
    with pytest.raises(KafkaException):
        producer.list_topics(timeout=2)
    producer.poll(1)
    assert any("Authentication failed" in str(error) for error in errors)
    with pytest.raises(client.AuthenticationError, match="Authentication failed"):
        asyncio.run(start_ours(broker.client_config() | {"sasl.password": "wrong"}))


async def start_ours(settings: dict[str, str]) -> None:
    async with client.Admin(settings):
        pass
