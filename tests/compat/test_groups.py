"""Groups whose members come and go, under the classic protocol and the consumer protocol (KIP-848)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Self

import pytest
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, NewPartitions
from tools.apache_kafka import Barnabas

from tests.compat.clients import (
    CLIENTS,
    POLL_S,
    WAIT_S,
    Client,
    Consumer,
    Place,
    Record,
    RefusedError,
    dotted,
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
STATIC = ("confluent-range", "confluent-consumer", "aiokafka-range", "kafka-python-range")
PATTERN = ("confluent-cooperative-sticky", "confluent-consumer", "aiokafka-range", "kafka-python-range")
INCREMENTAL = ("confluent-cooperative-sticky", "confluent-consumer", "kafka-python-cooperative-sticky")


class Group:
    """Members of one group, each made by the client and the settings that it is told."""

    def __init__(self, bootstrap: str, group_id: str, places: Iterable[Place]) -> None:
        self.members: list[Consumer] = []
        self.group_id = group_id
        self.places = set(places)
        self._bootstrap = bootstrap

    def join(self, protocol: Protocol, pattern: str | None = None, **more: Any) -> Consumer:
        client, settings = protocol
        member = client.consumer(self._bootstrap, {**settings, "group.id": self.group_id, **dotted(more)})
        self.members.append(member)
        member.subscribe([] if pattern else sorted({topic for topic, _ in self.places}), pattern)
        return member

    def leave(self, member: Consumer) -> None:
        self.members.remove(member)
        member.close()

    def is_shared(self) -> bool:
        """Each partition belongs to one member, and none has two more than another."""
        shares = [each.assignment() for each in self.members]
        counts = sorted(map(len, shares))
        return sum(counts) == len(self.places) and set().union(*shares) == self.places and counts[-1] - counts[0] <= 1

    def settle(self) -> list[list[Record]]:
        return poll_until(self.members, self.is_shared, f"the sharing of {len(self.places)} partitions")

    def take(self, count: int) -> list[list[Record]]:
        """What each member receives until there are so many records, or more."""
        received: list[list[Record]] = [[] for _ in self.members]

        def poll() -> None:
            for member, records in zip(self.members, received, strict=True):
                records.extend(member.poll(POLL_S))

        wait_until(lambda: sum(map(len, received)) >= count, poll, f"{count} records")
        return received

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        for member in self.members:
            member.close()


def places(topic: str, partitions: int = PARTITIONS) -> set[Place]:
    return {(topic, partition) for partition in range(partitions)}


def write(node: Barnabas, topic: str, some: Iterable[int]) -> None:
    """Numbers, each to its partition."""
    sent(CONFLUENT, node.bootstrap, topic, [Record(b"%d" % number, partition=number % PARTITIONS) for number in some])


def numbers(records: Iterable[Iterable[Record]]) -> list[int]:
    return sorted(int(each.value or b"-1") for one in records for each in one)


@pytest.fixture(params=list(PROTOCOLS.values()), ids=list(PROTOCOLS))
def protocol(request: pytest.FixtureRequest) -> Protocol:
    found: Protocol = request.param
    return found


def test_members_share_partitions_and_take_over_from_who_leaves(
    node: Barnabas, make_topic: MakeTopic, fresh_name: FreshName, protocol: Protocol
) -> None:
    topic = make_topic(PARTITIONS)
    with Group(node.bootstrap, fresh_name("group"), places(topic)) as group:
        first = group.join(protocol)
        group.settle()
        group.join(protocol)
        group.join(protocol)
        group.settle()
        write(node, topic, range(60))
        received = group.take(60)
        assert numbers(received) == list(range(60))
        assert [len(each) for each in received] == [20, 20, 20]
        for member in group.members:
            member.commit(dict.fromkeys(member.assignment(), 10))
        group.leave(first)
        group.settle()
        write(node, topic, range(60, 90))
        assert numbers(group.take(30)) == list(range(60, 90))
        group.leave(group.members[0])
        group.settle()


def test_members_of_different_clients_are_one_group(
    node: Barnabas, make_topic: MakeTopic, fresh_name: FreshName
) -> None:
    topic = make_topic(PARTITIONS)
    with Group(node.bootstrap, fresh_name("group"), places(topic)) as group:
        for each in (AIOKAFKA, CONFLUENT, KAFKA_PYTHON):
            group.join(classic(each, "range"))
        group.settle()
        write(node, topic, range(60))
        assert numbers(group.take(60)) == list(range(60))


@pytest.mark.parametrize("name", INCREMENTAL)
def test_who_stays_keeps_what_it_has(node: Barnabas, make_topic: MakeTopic, fresh_name: FreshName, name: str) -> None:
    topic = make_topic(PARTITIONS)
    with Group(node.bootstrap, fresh_name("group"), places(topic)) as group:
        for _ in range(2):
            group.join(PROTOCOLS[name])
        group.settle()
        before = [(member, member.assignment(), len(member.events)) for member in group.members]
        group.join(PROTOCOLS[name])
        group.settle()
        for member, owned, events in before:
            lost = frozenset(owned - member.assignment())
            assert len(lost) == 1
            changes = [(what, which) for what, which in member.events[events:] if which]
            assert changes == [("revoked", lost)]


@pytest.mark.parametrize("protocol", [PROTOCOLS[name] for name in STATIC], ids=STATIC)
def test_a_static_member_comes_back_without_a_rebalance(
    node: Barnabas, make_topic: MakeTopic, fresh_name: FreshName, protocol: Protocol
) -> None:
    topic = make_topic(PARTITIONS)
    with Group(node.bootstrap, fresh_name("group"), places(topic)) as group:
        for name in ("one", "other"):
            group.join(protocol, group_instance_id=name)
        group.settle()
        one, other = group.members
        owned, events = one.assignment(), list(other.events)
        group.leave(one)
        back = group.join(protocol, group_instance_id="one")
        group.settle()
        assert back.assignment() == owned
        assert other.events == events


@pytest.mark.parametrize("client", CLIENTS, ids=[each.name for each in CLIENTS])
def test_a_static_member_that_does_not_come_back_loses_its_partitions(
    node: Barnabas, make_topic: MakeTopic, fresh_name: FreshName, client: Client
) -> None:
    topic = make_topic(PARTITIONS)
    with Group(node.bootstrap, fresh_name("group"), places(topic)) as group:
        for name in ("one", "other"):
            group.join(classic(client, "range"), group_instance_id=name, session_timeout_ms=1500)
        group.settle()
        group.leave(group.members[0])
        assert not group.is_shared()
        group.settle()


def test_how_long_a_member_may_be_silent_is_a_setting_of_its_group(
    node: Barnabas, make_topic: MakeTopic, fresh_name: FreshName, session_admin: AdminClient
) -> None:
    topic, group_id = make_topic(PARTITIONS), fresh_name("group")
    silence = ConfigEntry("consumer.session.timeout.ms", "1500", incremental_operation=AlterConfigOpType.SET)
    wanted = ConfigResource(ConfigResource.Type.GROUP, group_id, incremental_configs=[silence])
    for future in session_admin.incremental_alter_configs([wanted]).values():
        future.result(WAIT_S)
    with Group(node.bootstrap, group_id, places(topic)) as group:
        for name in ("one", "other"):
            group.join(consumer(), group_instance_id=name)
        group.settle()
        group.leave(group.members[0])  # a static member that closes may come back
        assert not group.is_shared()
        group.settle()


def test_a_static_member_whose_name_another_takes_is_fenced(
    node: Barnabas, make_topic: MakeTopic, fresh_name: FreshName
) -> None:
    topic = make_topic(PARTITIONS)
    with Group(node.bootstrap, fresh_name("group"), places(topic)) as group:
        one = group.join(classic(CONFLUENT, "range"), group_instance_id="one")
        group.settle()
        thief = group.join(classic(CONFLUENT, "range"), group_instance_id="one")
        group.members = [thief]
        group.settle()
        with pytest.raises(RefusedError) as refused:
            wait_until(lambda: False, lambda: one.poll(POLL_S))
        assert refused.value.is_fatal
        one.close()


def test_a_name_that_a_member_has_is_not_given_to_another(
    node: Barnabas, make_topic: MakeTopic, fresh_name: FreshName
) -> None:
    topic = make_topic(PARTITIONS)
    with Group(node.bootstrap, fresh_name("group"), places(topic)) as group:
        group.join(consumer(), group_instance_id="one")
        group.settle()
        other = group.join(consumer(), group_instance_id="one")
        with pytest.raises(RefusedError) as refused:
            wait_until(lambda: False, lambda: other.poll(POLL_S))
        assert refused.value.is_fatal
        group.leave(other)
        group.settle()


def test_a_group_moves_to_the_consumer_protocol_and_back_while_it_works(
    node: Barnabas, make_topic: MakeTopic, fresh_name: FreshName
) -> None:
    topic = make_topic(PARTITIONS)
    old, new = classic(CONFLUENT, "range"), consumer()
    with Group(node.bootstrap, fresh_name("group"), places(topic)) as group:
        for protocols in ((old, old), (new, new), (old, old)):
            for protocol in protocols:
                group.join(protocol)
                group.settle()
                if len(group.members) > 2:
                    group.leave(group.members[0])
                    group.settle()
        write(node, topic, range(60))
        assert numbers(group.take(60)) == list(range(60))


@pytest.mark.parametrize("protocol", [PROTOCOLS[name] for name in PATTERN], ids=PATTERN)
def test_a_pattern_finds_topics_that_are_there_and_those_that_come(
    node: Barnabas, make_topic: MakeTopic, fresh_name: FreshName, protocol: Protocol
) -> None:
    prefix = fresh_name("pattern")
    make_topic(2, name=f"{prefix}.logs")
    make_topic(2, name=f"{prefix}.a.events")
    make_topic(2, name=f"{prefix}.a.events.old")
    with Group(node.bootstrap, fresh_name("group"), places(f"{prefix}.a.events", 2)) as group:
        for _ in range(2):
            group.join(protocol, pattern=rf"{prefix}\.[a-z]+\.events$")
        group.settle()
        make_topic(2, name=f"{prefix}.b.events")
        group.places |= places(f"{prefix}.b.events", 2)
        group.settle()


def test_a_pattern_that_is_none_is_refused(node: Barnabas, fresh_name: FreshName) -> None:
    client, settings = consumer()
    with client.consumer(node.bootstrap, {**settings, "group.id": fresh_name("group")}) as member:
        member.subscribe(pattern=r"(a)\1")
        with pytest.raises(RefusedError) as refused:
            wait_until(lambda: False, lambda: member.poll(POLL_S))
        assert refused.value.is_fatal


@pytest.mark.parametrize("protocol", [PROTOCOLS[name] for name in PATTERN], ids=PATTERN)
def test_a_group_follows_the_partitions_of_its_topic(
    node: Barnabas, make_topic: MakeTopic, fresh_name: FreshName, session_admin: AdminClient, protocol: Protocol
) -> None:
    topic = make_topic(2)
    with Group(node.bootstrap, fresh_name("group"), places(topic, 2)) as group:
        for _ in range(2):
            group.join(protocol)
        group.settle()
        for future in session_admin.create_partitions([NewPartitions(topic, 4)]).values():
            future.result(WAIT_S)
        group.places = places(topic, 4)
        group.settle()
