"""A node as a process of its own, for clients that others wrote.

BARNABAS_COMPAT=apache runs the same tests against Apache Kafka (Java and Maven): what they ask for is what Kafka does.
"""

from __future__ import annotations

import gc
import logging
import os
from collections.abc import Callable, Iterator, Mapping
from itertools import count

import pytest
from confluent_kafka.admin import AdminClient, NewTopic
from tools.apache_kafka import ApacheKafka, Barnabas

from tests.compat.clients import CLIENTS, WAIT_S, Client

WITH_ACLS = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
}
# What a member or a producer waits for is soon: nothing here waits longer than it must.
IN_A_HURRY = {
    "group.min.session.timeout.ms": "500",
    "group.consumer.min.heartbeat.interval.ms": "100",
    "group.consumer.heartbeat.interval.ms": "100",
    "group.consumer.min.session.timeout.ms": "500",
    "group.consumer.assignment.interval.ms": "0",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "100",
    "log.initial.task.delay.ms": "100",
    "log.cleaner.backoff.ms": "100",
}

MakeTopic = Callable[..., str]


@pytest.fixture(scope="session")
def node() -> Iterator[Barnabas | ApacheKafka]:
    """One node with an authorizer, shared: tests use names of their own."""
    with make_node({**WITH_ACLS, **IN_A_HURRY}) as running:
        yield running
        running.kill()  # a stop is tried elsewhere; here it would flush the partitions of all tests
        said = running.log.read_text()
    assert "Traceback" not in said, said


def make_node(overrides: Mapping[str, str]) -> Barnabas | ApacheKafka:
    if os.environ.get("BARNABAS_COMPAT") == "apache":
        return ApacheKafka({"group.initial.rebalance.delay.ms": "0", **overrides})
    return Barnabas(overrides)


@pytest.fixture(scope="session")
def fresh_name() -> Callable[[str], str]:
    """Names that no other test has used."""
    numbers = count(1)
    return lambda prefix: f"{prefix}-{next(numbers)}"


@pytest.fixture(scope="session")
def session_admin(node: Barnabas) -> AdminClient:
    return AdminClient({"bootstrap.servers": node.bootstrap, "log_level": 0})


@pytest.fixture(scope="session")
def make_topic(session_admin: AdminClient, fresh_name: Callable[[str], str]) -> MakeTopic:
    """`make_topic(partitions=1, config=None)` creates a topic and gives its name, which no other test has."""

    def make(partitions: int = 1, config: Mapping[str, str] | None = None, name: str | None = None) -> str:
        topic = fresh_name("topic") if name is None else name
        create_topic(session_admin, topic, partitions, config)
        return topic

    return make


def create_topic(admin: AdminClient, topic: str, partitions: int = 1, config: Mapping[str, str] | None = None) -> None:
    for future in admin.create_topics([NewTopic(topic, partitions, 1, config=dict(config or {}))]).values():
        future.result(WAIT_S)


@pytest.fixture(params=CLIENTS, ids=[each.name for each in CLIENTS])
def client(request: pytest.FixtureRequest) -> Client:
    """Each client in turn."""
    found: Client = request.param
    return found


@pytest.fixture
def kafka_python_forgets() -> Iterator[None]:
    """kafka-python leaves a socket open when a connection fails, and logs the error that holds it: both end here."""
    logger = logging.getLogger("kafka")
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    yield
    logger.setLevel(level)
    gc.collect()


WHERE_NODES_END = [
    pytest.mark.usefixtures("kafka_python_forgets"),
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
]
