"""Groups whose members come and go, under the classic protocol and the consumer protocol (KIP-848)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Any

import pytest
from tools.apache_kafka import Barnabas

from tests.compat.clients import (
    CLIENTS,
    Client,
    Consumer,
    Place,
    Record,
    RefusedError,
    poll_until,
    sent,
    wait_until,
)
from tests.compat.conftest import MakeTopic

FreshName = Callable[[str], str]
Protocol = tuple[Client, dict[str, Any]]

PARTITIONS = 6
CONFLUENT, AIOKAFKA, KAFKA_PYTHON = CLIENTS
SOON = {"auto.offset.reset": "earliest", "metadata.max.age.ms": 200}
CLASSIC = {"heartbeat.interval.ms": 100, "session.timeout.ms": 10_000, **SOON}


def classic(client: Client, assignor: str) -> Protocol:
    return client, {**CLASSIC, "partition.assignment.strategy": assignor}


def consumer(assignor: str | None = None) -> Protocol:
    """Only librdkafka speaks the consumer protocol."""
    settings = {**SOON, "group.protocol": "consumer"}
    return CONFLUENT, settings if assignor is None else {**settings, "group.remote.assignor": assignor}


PROTOCOLS = {
    "confluent-range": classic(CONFLUENT, "range"),
    "confluent-roundrobin": classic(CONFLUENT, "roundrobin"),
    "confluent-cooperative-sticky": classic(CONFLUENT, "cooperative-sticky"),
    "confluent-consumer": consumer(),
    "confluent-consumer-range": consumer("range"),
    "aiokafka-range": classic(AIOKAFKA, "range"),
    "aiokafka-roundrobin": classic(AIOKAFKA, "roundrobin"),
    "aiokafka-sticky": classic(AIOKAFKA, "sticky"),
    "kafka-python-range": classic(KAFKA_PYTHON, "range"),
    "kafka-python-sticky": classic(KAFKA_PYTHON, "sticky"),
    "kafka-python-cooperative-sticky": classic(KAFKA_PYTHON, "cooperative-sticky"),
}
INCREMENTAL = ("confluent-cooperative-sticky", "confluent-consumer", "kafka-python-cooperative-sticky")


class Group:
    """Members of one group, each made by the client and the settings that it is told."""

    def __init__(self, bootstrap: str, group_id: str, topic: str, partitions: int = PARTITIONS) -> None:
        self.members: list[Consumer] = []
        self.group_id = group_id
        self._bootstrap = bootstrap
        self._topic = topic
        self.places = {(topic, partition) for partition in range(partitions)}
        self._open = ExitStack()

    def join(self, protocol: Protocol, **more: Any) -> Consumer:
        client, settings = protocol
        named = {name.replace("_", "."): value for name, value in more.items()}
        member = client.consumer(self._bootstrap, {**settings, "group.id": self.group_id, **named})
        self._open.callback(member.close)
        member.subscribe([self._topic])
        self.members.append(member)
        return member

    def leave(self, member: Consumer) -> None:
        self.members.remove(member)
        member.close()

    def is_shared(self) -> bool:
        """Each partition belongs to one member, and none has two more than another."""
        shares = [each.assignment() for each in self.members]
        counts = sorted(map(len, shares))
        return (
            sum(counts) == len(self.places)
            and set().union(*shares) == self.places
            and (not counts or counts[-1] - counts[0] <= 1)
        )

    def settle(self) -> list[list[Record]]:
        return poll_until(self.members, self.is_shared, f"the sharing of {len(self.places)} partitions")

    def __enter__(self) -> Group:
        return self

    def __exit__(self, *error: object) -> None:
        for member in self.members:
            member.close()


@pytest.fixture(params=PROTOCOLS.values(), ids=PROTOCOLS)
def protocol(request: pytest.FixtureRequest) -> Protocol:
    return request.param


def numbers(records: Sequence[Sequence[Record]]) -> list[int]:
    return sorted(int(each.value or b"-1") for one in records for each in one)


def test_members_share_partitions_and_take_over_from_who_leaves(
    node: Barnabas, make_topic: MakeTopic, fresh_name: FreshName, protocol: Protocol
) -> None:
    topic = make_topic(PARTITIONS)
    with Group(node.bootstrap, fresh_name("group"), topic) as group:
        first = group.join(protocol)
        group.settle()
        assert first.assignment() == group.places
        group.join(protocol)
        group.join(protocol)
        group.settle()
        sent(CONFLUENT, node.bootstrap, topic, [Record(b"%d" % n, partition=n % PARTITIONS) for n in range(60)])
        got: list[list[Record]] = [[] for _ in group.members]
        for each, records in zip(got, poll_three(group, 60), strict=True):
            each.extend(records)
        assert numbers(got) == list(range(60))
        assert [len(each) for each in got] == [20, 20, 20]
        for member in group.members:
            member.commit({place: 10 for place in member.assignment()})
        group.leave(first)
        group.settle()
        sent(CONFLUENT, node.bootstrap, topic, [Record(b"%d" % n, partition=n % PARTITIONS) for n in range(60, 90)])
        assert numbers(poll_three(group, 30)) == list(range(60, 90))
        group.leave(group.members[0])
        group.settle()
        assert group.members[0].assignment() == group.places


def poll_three(group: Group, count: int) -> list[list[Record]]:
    received: list[list[Record]] = [[] for _ in group.members]

    def poll() -> None:
        for member, records in zip(group.members, received, strict=True):
            records.extend(member.poll(0.01))

    wait_until(lambda: sum(map(len, received)) >= count, poll, f"{count} records")
    return received
