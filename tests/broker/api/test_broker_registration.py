"""BrokerRegistration (62)."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas.security.authorizer import AuthorizerSettings
from barnabas.wire import ZERO_UUID, Uuid
from barnabas.wire.messages.broker_registration import BrokerRegistrationRequest
from barnabas.wire.records.metadata import BrokerRegistrationChangeRecord, RegisterBrokerRecord
from tests.broker.harness import MemoryNode
from tests.broker.simulated_broker import SimulatedBroker, cluster, create_topic

Feature, Listener = BrokerRegistrationRequest.Feature, BrokerRegistrationRequest.Listener


def alone(**fields: Any) -> SimulatedBroker:
    return SimulatedBroker(MemoryNode(brokers=0, **fields), 1)


@pytest.mark.parametrize("version", [2, 3, 4])
def test_a_broker_gets_the_offset_of_its_registration_as_epoch_and_begins_fenced(version: int) -> None:
    broker = alone()
    offset = broker.node.image.offset + 1
    assert broker.register(version, rack="r1") == 0
    assert broker.epoch == offset
    assert (broker.registration.fenced, broker.registration.rack) == (True, "r1")
    assert broker.registration.log_dirs == tuple(broker.directories)
    assert broker.registration.cordoned_log_dirs is None


@pytest.mark.parametrize("version", [0, 1])
def test_versions_without_directories_are_refused_where_the_cluster_needs_them(version: int) -> None:
    assert alone().register(version) == 119


@pytest.mark.parametrize("version", [0, 1, 2, 3, 4])
def test_every_version_registers_where_there_are_no_directories_yet(version: int) -> None:
    broker = alone(features={"metadata.version": 16})
    assert broker.register(version) == 0
    assert broker.registration.log_dirs == ()


@pytest.mark.parametrize(("level", "record_version"), [(7, 1), (8, 2), (16, 2), (17, 3), (29, 3), (30, 4)])
def test_the_record_is_written_as_the_metadata_version_has_it(level: int, record_version: int) -> None:
    broker = alone(features={"metadata.version": level})
    assert broker.register() == 0
    assert [version for _, version in broker.node._log.records] == [record_version]


def test_the_same_incarnation_amends_its_registration_and_keeps_its_epoch() -> None:
    broker = alone().start()
    epoch = broker.epoch
    assert broker.register_again(rack="r2") == 0
    assert broker.epoch == epoch
    assert (broker.registration.fenced, broker.registration.rack) == (False, "r2")


def test_another_incarnation_is_refused_while_the_first_is_heard_of() -> None:
    broker = alone().start()
    broker.node.now_ms += 9000
    assert broker.register() == 101
    broker.node.now_ms += 1
    first = broker.epoch
    assert broker.register() == 0
    assert broker.epoch > first
    assert broker.registration.fenced


def test_an_incarnation_that_never_sent_a_heartbeat_is_replaced_at_once() -> None:
    broker = alone()
    assert [broker.register(), broker.register()] == [0, 0]


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"cluster_id": "another"}, 104),
        ({"is_migrating_zk_broker": True}, 102),
        ({"log_dirs": []}, 119),
        ({"log_dirs": [ZERO_UUID]}, 119),
        ({"log_dirs": [Uuid((99).to_bytes(16))]}, 119),
        ({"log_dirs": [Uuid(b"d" * 16), Uuid(b"d" * 16)]}, 119),
        ({"broker_id": -1}, 119),
        ({"listeners": [Listener(name="", host="h", port=1)]}, 119),
        ({"listeners": [Listener(name="A", host="h", port=1, security_protocol=9)]}, 119),
        ({"features": []}, 119),
        ({"features": [Feature(name="metadata.version", min_supported_version=7, max_supported_version=29)]}, 35),
        ({"features": [Feature(name="metadata.version", min_supported_version=7, max_supported_version=30)]}, 35),
    ],
)
def test_what_cannot_be_registered_is_refused_and_not_written(fields: dict[str, Any], code: int) -> None:
    broker = alone()
    assert broker.register(**fields) == code
    assert broker.node.written == []


def test_a_directory_belongs_to_one_broker() -> None:
    broker = alone().start()
    other = SimulatedBroker(broker.node, 2)
    assert other.register(log_dirs=list(broker.directories)) == 119
    assert other.register() == 0


def test_it_needs_cluster_action() -> None:
    assert alone(authorizer=AuthorizerSettings(enabled=True)).register() == 31


def test_a_broker_that_comes_back_after_a_crash_leaves_every_isr_and_elr_but_after_a_clean_stop_it_does_not() -> None:
    node, brokers = cluster(2)
    create_topic(node, "t", [1, 2], min_insync_replicas="2")
    assert brokers[2].beat(want_fence=True).is_fenced
    assert (brokers[1].partition("t", 0).isr, brokers[1].partition("t", 0).elr) == ((1,), (2,))
    node.now_ms += 10_000
    assert brokers[2].register(previous_broker_epoch=brokers[2].epoch) == 0
    assert brokers[1].partition("t", 0).elr == (2,)
    assert brokers[2].register(previous_broker_epoch=-1) == 0
    assert brokers[1].partition("t", 0).elr == ()


def test_version_2_cannot_tell_a_clean_stop() -> None:
    node, brokers = cluster(2)
    create_topic(node, "t", [1, 2], min_insync_replicas="2")
    brokers[2].beat(want_fence=True)
    node.now_ms += 10_000
    assert brokers[2].register(2, previous_broker_epoch=brokers[2].epoch) == 0
    assert brokers[1].partition("t", 0).elr == ()


def test_a_registration_is_the_last_record_of_its_decision() -> None:
    node, brokers = cluster(2)
    create_topic(node, "t", [1, 2])
    node.now_ms += 10_000
    before, offset = len(node.written), node.image.offset
    assert brokers[2].register() == 0
    kinds = [type(record) for record in node.written[before:]]
    assert len(kinds) == 2 and kinds[-1] is RegisterBrokerRecord
    assert brokers[2].epoch == offset + 1
    assert not any(isinstance(record, BrokerRegistrationChangeRecord) for record in node.written[before:])
