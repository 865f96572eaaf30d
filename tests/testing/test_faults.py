"""Fault rules of `Broker` and `Cluster`, as clients of others and programs in other languages meet them."""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaException, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from barnabas.testing import Broker, BrokerError, Cluster, RuleError
from barnabas.wire import ErrorCode

NOTHING: Mapping[str, Any] = {}


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker(topics=["orders", "payments"], config={"barnabas.faults.listener": ":0"}) as broker:
        yield broker


def produce(
    servers: str, topic: str = "orders", value: bytes = b"one", settings: Mapping[str, Any] = NOTHING
) -> Exception | None:
    """Send a record and return the error of its delivery."""
    outcome: list[Any] = []
    producer = Producer({"bootstrap.servers": servers, "linger.ms": 0, **settings})
    producer.produce(topic, value, on_delivery=lambda error, _: outcome.append(error))
    producer.flush(30)
    return outcome[0] if outcome else TimeoutError("no delivery")


def values(broker: Broker, topic: str = "orders") -> list[bytes | None]:
    return [record.value for record in broker.records(topic)]


def wait_for(is_true: Callable[[], bool]) -> None:
    for _ in range(3000):
        if is_true():
            return
        time.sleep(0.01)
    raise TimeoutError("it did not happen")


def ask(broker: Broker, method: str, path: str, body: object = None, **headers: str) -> tuple[int, Any]:
    request = urllib.request.Request(broker.faults_url + path, method=method)
    if body is not None:
        request.data = json.dumps(body).encode()
        request.add_header("Content-Type", "application/json")
    for name, value in headers.items():
        request.add_header(name, value)
    try:
        with urllib.request.urlopen(request) as response:
            return response.status, json.load(response)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


def test_a_producer_sees_an_error_that_cannot_be_retried(broker: Broker) -> None:
    rule = broker.faults.fail("Produce", ErrorCode.TOPIC_AUTHORIZATION_FAILED, topic="orders")
    assert produce(broker.bootstrap_servers, "payments") is None
    error = produce(broker.bootstrap_servers)
    assert error is not None and error.name() == "TOPIC_AUTHORIZATION_FAILED"  # type: ignore[attr-defined]
    assert (rule.seen, rule.hits) == (1, 1)
    assert produce(broker.bootstrap_servers) is None
    assert values(broker) == [b"one"]


def test_a_producer_retries_the_second_and_third_request(broker: Broker) -> None:
    rule = broker.faults.fail("produce", "NOT_LEADER_OR_FOLLOWER", nth=2, times=2, client_id="billing")
    for value in (b"one", b"two"):
        assert produce(broker.bootstrap_servers, value=value, settings={"client.id": "billing"}) is None
    assert rule.hits == 2
    assert values(broker) == [b"one", b"two"]


@pytest.mark.parametrize("is_idempotent", [True, False])
def test_only_an_idempotent_producer_survives_a_lost_answer_without_a_duplicate(
    broker: Broker, is_idempotent: bool
) -> None:
    broker.faults.drop("Produce", after=True)
    assert produce(broker.bootstrap_servers, settings={"enable.idempotence": is_idempotent}) is None
    assert values(broker) == [b"one"] * (1 if is_idempotent else 2)


def test_a_delayed_fetch_delays_the_consumer_and_nobody_else(broker: Broker) -> None:
    assert produce(broker.bootstrap_servers) is None
    rule = broker.faults.delay("Fetch", 100, topic="orders", times=None)
    consumer = Consumer(
        {"bootstrap.servers": broker.bootstrap_servers, "group.id": "g", "auto.offset.reset": "earliest"}
    )
    consumer.subscribe(["orders"])
    message = consumer.poll(30)
    assert message is not None and message.value() == b"one"
    consumer.close()
    assert rule.hits >= 1
    rule.remove()
    assert produce(broker.bootstrap_servers, "payments") is None


def test_a_request_that_is_forwarded_fails_where_the_client_sent_it() -> None:
    with Cluster(nodes=3) as cluster:
        rule = cluster.faults.fail("CreateTopics", "POLICY_VIOLATION")
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
        with pytest.raises(KafkaException) as raised:
            admin.create_topics([NewTopic("orders", 1, 3)])["orders"].result(30)
        assert raised.value.args[0].name() == "POLICY_VIOLATION"
        assert rule.hits == 1
        admin.create_topics([NewTopic("orders", 1, 3)])["orders"].result(30)


def test_routes_ask_for_faults_only_while_there_are_some(broker: Broker) -> None:
    def asks() -> set[bool]:
        node = broker._broker._node
        assert node is not None
        return {route.faults is not None for route in node.routes.values()}

    assert produce(broker.bootstrap_servers) is None
    assert asks() == {False}
    broker.faults.fail("Fetch", "UNKNOWN_SERVER_ERROR")
    assert produce(broker.bootstrap_servers) is None
    assert asks() == {True}
    broker.faults.clear()
    assert produce(broker.bootstrap_servers) is None
    assert asks() == {False}


def test_a_rule_outlives_a_restart(broker: Broker) -> None:
    rule = broker.faults.fail("Produce", "TOPIC_AUTHORIZATION_FAILED")
    broker.restart()
    assert produce(broker.bootstrap_servers) is not None
    assert rule.hits == 1


@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        (lambda faults: faults.fail("Prodce", "UNKNOWN_SERVER_ERROR"), "no API 'Prodce'; did you mean Produce?"),
        (lambda faults: faults.fail(9999, "UNKNOWN_SERVER_ERROR"), "no API with key 9999"),
        (lambda faults: faults.fail("Produce", "NOT_LEADER"), "no error 'NOT_LEADER'"),
        (lambda faults: faults.fail("Produce", "NONE"), "no error 'NONE'"),
        (lambda faults: faults.fail("Produce", "UNKNOWN_SERVER_ERROR", nth=0), "count from 1"),
        (lambda faults: faults.delay("Produce", -1), "delay_ms must be between"),
        (lambda faults: faults.delay("Produce", 0), "needs an error, a delay_ms or drop"),
        (lambda faults: faults.isolate(7), "there is no node 7"),
        (lambda faults: faults.isolate(1, others=[2]), "cannot be isolated from"),
        (lambda faults: faults.slow_disk(-1), "a slow disk takes between"),
        (lambda faults: faults.advance_time(-1), "time moves ahead"),
    ],
)
def test_a_wrong_rule_says_what_is_wrong(broker: Broker, wrong: Callable[[Any], Any], text: str) -> None:
    with pytest.raises(RuleError, match=text.replace("?", r"\?")):
        wrong(broker.faults)


def test_records_expire_when_time_passes(broker: Broker) -> None:
    broker.create_topic("short", config={"retention.ms": 3_600_000, "segment.ms": 60_000})
    assert produce(broker.bootstrap_servers, "short") is None
    broker.faults.advance_time(2 * 3_600_000)
    wait_for(lambda: values(broker, "short") == [])


def test_a_full_disk_fails_the_broker_and_a_healed_one_starts_again() -> None:
    with Broker(topics=["orders"]) as broker:
        assert produce(broker.bootstrap_servers) is None
        broker.faults.fill_disk()
        error = produce(broker.bootstrap_servers, settings={"message.timeout.ms": 1500})
        assert error is not None
        broker.faults.heal_disk()
        broker.stop()
        broker.start()
        assert produce(broker.bootstrap_servers, value=b"two") is None
        assert values(broker)[-1] == b"two"


def test_a_slow_disk_makes_flushes_slow(broker: Broker) -> None:
    broker.create_topic("safe", config={"flush.messages": 1})
    broker.faults.slow_disk(5000)
    assert produce(broker.bootstrap_servers, "safe", settings={"message.timeout.ms": 1000}) is not None
    broker.faults.heal_disk()
    assert produce(broker.bootstrap_servers, "safe") is None


def test_an_isolated_leader_loses_its_partition_and_returns() -> None:
    with Cluster(nodes=3, topics={"orders": 1}) as cluster:
        first = cluster.leader("orders")
        assert first is not None
        cluster.faults.isolate(first)
        wait_for(lambda: cluster.leader("orders") not in (None, first) or _other_leader(cluster, first))
        assert produce(cluster.bootstrap_servers) is None
        cluster.faults.heal()
        wait_for(lambda: _isr_size(cluster) == 3)


def _others(cluster: Cluster, but: int) -> list[Any]:
    return [node for key, node in cluster._cluster.nodes.items() if key != but]


def _other_leader(cluster: Cluster, but: int) -> bool:
    states = [node.image.topics.get("orders").partitions[0] for node in _others(cluster, but)]
    return all(state.leader not in (-1, but) for state in states)


def _isr_size(cluster: Cluster) -> int:
    return min(len(node.image.topics.get("orders").partitions[0].isr) for node in _others(cluster, -1))


def test_a_leader_moves() -> None:
    with Cluster(nodes=3, topics={"orders": 1}) as cluster:
        first = cluster.leader("orders")
        second = cluster.move_leader("orders")
        assert second != first and cluster.leader("orders") == second
        assert produce(cluster.bootstrap_servers) is None
        assert cluster.move_leader("orders", to=first) == first
        with pytest.raises(RuleError, match="cannot be led by 9"):
            cluster.move_leader("orders", to=9)


# --- over HTTP


def test_other_languages_set_rules_over_http(broker: Broker) -> None:
    status, rule = ask(broker, "POST", "/rules", {"api": "Produce", "error": "TOPIC_AUTHORIZATION_FAILED"})
    assert (status, rule["id"], rule["hits"]) == (200, 1, 0)
    assert produce(broker.bootstrap_servers) is not None
    status, found = ask(broker, "GET", "/faults")
    assert status == 200 and [each["hits"] for each in found["rules"]] == [1]
    assert ask(broker, "POST", "/time", {"advance_ms": 5})[1]["time"] == {"ahead_ms": 5}
    assert ask(broker, "POST", "/disk", {"slow_ms": 1})[1]["disk"] == {"full": False, "slow_ms": 1}
    assert ask(broker, "POST", "/isolation", {"clients": True})[1]["isolation"] == {"from": [], "clients": True}
    assert produce(broker.bootstrap_servers, settings={"message.timeout.ms": 1000}) is not None
    status, cleared = ask(broker, "DELETE", "/faults")
    assert (status, cleared["rules"], cleared["isolation"]) == (200, [], None)
    assert produce(broker.bootstrap_servers) is None


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "text"),
    [
        ("POST", "/rules", {"api": "Produce"}, 400, "needs an error"),
        ("POST", "/rules", {"topics": "orders"}, 400, "did you mean topic?"),
        ("POST", "/rules", {"api": ["Produce"], "drop": True}, 400, "api must be a text"),
        ("POST", "/rules", {"api": "Produce", "drop": 1}, 400, "drop must be true or false"),
        ("POST", "/isolation", {"from": "all"}, 400, "a list of node ids"),
        ("POST", "/disk", {"full": "yes"}, 400, "full must be true or false"),
        ("POST", "/time", {"advance_ms": "1h"}, 400, "whole milliseconds"),
        ("POST", "/leader", {"topic": "orders", "partition": 0}, 400, "no other in-sync replica"),
        ("POST", "/nothing", {}, 404, "there is no POST /nothing"),
        ("DELETE", "/rules/x", None, 404, "there is no DELETE"),
    ],
)
def test_a_wrong_request_says_what_is_wrong(
    broker: Broker, method: str, path: str, body: object, status: int, text: str
) -> None:
    found, answer = ask(broker, method, path, body)
    assert found == status and text in answer["error"], answer


def test_web_pages_cannot_set_faults(broker: Broker) -> None:
    assert ask(broker, "POST", "/rules", {"drop": True}, Host="evil.example")[0] == 403
    request = urllib.request.Request(broker.faults_url + "/rules", data=b'{"drop": true}', method="POST")
    request.add_header("Content-Type", "text/plain")
    with pytest.raises(urllib.error.HTTPError) as raised:
        urllib.request.urlopen(request)
    assert raised.value.code == 400
    raised.value.close()


def test_the_control_port_is_on_this_machine_only() -> None:
    with pytest.raises(BrokerError, match="It must be an address of this machine"):
        Broker(config={"barnabas.faults.listener": "0.0.0.0:0"})
    with Broker() as broker, pytest.raises(BrokerError, match="has no control port"):
        _ = broker.faults_url
