"""BrokerHeartbeat (63)."""

from __future__ import annotations

import asyncio

import pytest

from barnabas.controller import brokers as decisions
from barnabas.replicated.decision import Result
from barnabas.security.authorizer import AuthorizerSettings
from barnabas.wire.messages.create_topics import CreateTopicsRequest
from barnabas.wire.records.metadata import BrokerRegistrationChangeRecord
from tests.broker.harness import MemoryNode
from tests.broker.simulated_broker import SimulatedBroker, cluster, create_topic
from tests.controller.situations import pass_time


def wait(node: MemoryNode, duration_ms: int) -> None:
    """Let time pass in which the timer runs as often as it should."""
    asyncio.run(node.controller.write(lambda situation: Result([], None)))
    node.now_ms = pass_time(node.controller.heartbeats, node.config, node.now_ms, duration_ms)


def fence_stale(node: MemoryNode) -> None:
    """What the node's timer does."""

    async def run() -> None:
        while await node.controller.write(decisions.fence_stale_brokers):
            pass

    asyncio.run(run())


@pytest.mark.parametrize("version", [0, 1, 2])
def test_a_broker_is_let_in_when_it_has_read_its_own_registration(version: int) -> None:
    broker = SimulatedBroker(MemoryNode(brokers=0), 1)
    broker.register()
    early = broker.beat(version, current_metadata_offset=broker.node.image.offset - 1)
    assert (early.error_code, early.is_caught_up, early.is_fenced, early.should_shut_down) == (0, False, True, False)
    ready = broker.beat(version)
    assert (ready.error_code, ready.is_caught_up, ready.is_fenced, ready.should_shut_down) == (0, True, False, False)
    assert not broker.registration.fenced


def test_a_broker_that_wants_to_be_fenced_stays_so() -> None:
    broker = SimulatedBroker(MemoryNode(brokers=0), 1)
    broker.register()
    assert broker.beat(want_fence=True).is_fenced
    assert not broker.beat(want_fence=False).is_fenced
    assert broker.beat(want_fence=True).is_fenced
    assert broker.registration.fenced


def test_a_heartbeat_of_another_epoch_or_of_an_unknown_broker_is_stale() -> None:
    node, brokers = cluster(1)
    assert brokers[1].beat(broker_epoch=brokers[1].epoch + 1).error_code == 77
    response = SimulatedBroker(node, 9).beat()
    assert (response.error_code, response.is_fenced) == (77, True)


def test_a_heartbeat_that_changes_nothing_writes_nothing() -> None:
    node, brokers = cluster(1)
    count = len(node.written)
    assert not brokers[1].beat().is_fenced
    assert len(node.written) == count


def test_a_fenced_broker_that_wants_to_stop_may_go() -> None:
    broker = SimulatedBroker(MemoryNode(brokers=0), 1)
    broker.register()
    response = broker.beat(want_shut_down=True)
    assert (response.is_fenced, response.should_shut_down) == (True, True)


def test_a_broker_without_leaderships_may_stop_at_once_and_is_fenced() -> None:
    node, brokers = cluster(2)
    create_topic(node, "t", [1, 2])
    response = brokers[2].beat(want_shut_down=True)
    assert (response.is_fenced, response.should_shut_down) == (True, True)
    assert brokers[2].registration.fenced
    assert brokers[1].partition("t", 0).isr == (1,)


def test_a_leader_may_stop_when_the_others_know_of_their_new_leaders() -> None:
    node, brokers = cluster(3)
    create_topic(node, "t", [1, 2, 3])
    response = brokers[1].beat(want_shut_down=True)
    assert (response.is_fenced, response.should_shut_down) == (False, False)
    assert brokers[1].registration.in_controlled_shutdown
    assert (brokers[1].partition("t", 0).leader, brokers[1].partition("t", 0).isr) == (2, (2, 3))
    assert not brokers[1].beat(want_shut_down=True).should_shut_down
    brokers[2].beat()
    assert not brokers[1].beat(want_shut_down=True).should_shut_down
    brokers[3].beat()
    response = brokers[1].beat(want_shut_down=True)
    assert (response.is_fenced, response.should_shut_down) == (True, True)
    assert brokers[1].registration.fenced


def test_the_last_broker_may_stop_although_its_partitions_have_no_leader_then() -> None:
    node, brokers = cluster(1)
    create_topic(node, "t", [1])
    assert not brokers[1].beat(want_shut_down=True).should_shut_down
    assert brokers[1].beat(want_shut_down=True).should_shut_down
    partition = brokers[1].partition("t", 0)
    assert (partition.leader, partition.isr, partition.elr, partition.last_known_elr) == (-1, (), (1,), (1,))


def test_a_silent_broker_is_fenced_and_its_partitions_get_other_leaders() -> None:
    node, brokers = cluster(2)
    create_topic(node, "t", [1, 2])
    wait(node, 9000)
    brokers[2].beat()
    fence_stale(node)
    assert not brokers[1].registration.fenced
    node.now_ms += 1
    fence_stale(node)
    assert (brokers[1].registration.fenced, brokers[2].registration.fenced) == (True, False)
    assert brokers[1].partition("t", 0).leader == 2
    assert not brokers[1].beat().is_fenced


def test_silence_is_measured_by_the_configured_timeout() -> None:
    node, brokers = cluster(1, {"broker.session.timeout.ms": "20000"})
    wait(node, 20_000)
    fence_stale(node)
    assert not brokers[1].registration.fenced
    node.now_ms += 1
    fence_stale(node)
    assert brokers[1].registration.fenced


def test_a_broker_that_has_stopped_is_not_fenced_once_more_when_its_session_ends() -> None:
    node, brokers = cluster(1)
    assert brokers[1].beat(want_shut_down=True).should_shut_down
    count = len(node.written)
    wait(node, 60_000)
    fence_stale(node)
    assert len(node.written) == count


def test_a_new_controller_gives_every_broker_the_whole_timeout() -> None:
    node, brokers = cluster(1)
    wait(node, 8000)
    node.controller.loop.lost()
    node.controller.loop.gained(2, node._log.end_offset)
    fence_stale(node)
    wait(node, 9000)
    fence_stale(node)
    assert not brokers[1].registration.fenced
    node.now_ms += 1
    fence_stale(node)
    assert brokers[1].registration.fenced


def test_replicas_in_a_failed_directory_are_out_of_sync() -> None:
    node, (first, _, second) = cluster(2)
    broken = SimulatedBroker(node, 3, directories=2).start()
    create_topic(node, "t", [1, 2], [3, 1])
    assert broken.beat(offline_log_dirs=broken.directories[:1]).error_code == 0
    assert broken.registration.log_dirs == tuple(broken.directories[1:])
    assert first.partition("t", 1).isr == (3, 1)  # where it lies was not told yet
    assert second.beat(offline_log_dirs=second.directories).error_code == 0
    assert first.partition("t", 0).isr == (1,)


def test_version_0_says_nothing_of_directories() -> None:
    node, brokers = cluster(1)
    count = len(node.written)
    brokers[1].beat(0)
    brokers[1].beat(1)
    assert len(node.written) == count


def test_cordoned_directories_are_noted_once_and_when_they_change() -> None:
    node, brokers = cluster(1)
    (directory,) = brokers[1].directories
    count = len(node.written)
    for cordoned in ([], [], [directory], [directory], [], None):
        brokers[1].beat(cordoned_log_dirs=cordoned)
    noted = [r.cordoned_log_dirs for r in node.written[count:] if isinstance(r, BrokerRegistrationChangeRecord)]
    assert noted == [[], [directory], []]


def test_cordoned_directories_are_not_noted_before_the_cluster_knows_of_them() -> None:
    _, brokers = cluster(1, features={"metadata.version": 29})
    brokers[1].beat(cordoned_log_dirs=[])
    assert brokers[1].registration.cordoned_log_dirs is None


def test_it_needs_cluster_action() -> None:
    node = MemoryNode(authorizer=AuthorizerSettings(enabled=True))
    assert SimulatedBroker(node, 1).beat().error_code == 31


def test_brokers_with_only_cordoned_directories_get_no_new_replicas() -> None:
    node, brokers = cluster(3)
    brokers[2].beat(cordoned_log_dirs=brokers[2].directories)

    def create(name: str, replication_factor: int) -> int:
        wanted = CreateTopicsRequest.CreatableTopic(name=name, num_partitions=6, replication_factor=replication_factor)
        code: int = node.call(CreateTopicsRequest(topics=[wanted], timeout_ms=1000), 7).topics[0].error_code
        return code

    assert create("a", 2) == 0
    assert {frozenset(brokers[1].partition("a", index).replicas) for index in range(6)} == {frozenset({1, 3})}
    assert create("b", 3) == 38
    brokers[2].beat(cordoned_log_dirs=[])
    assert create("b", 3) == 0
