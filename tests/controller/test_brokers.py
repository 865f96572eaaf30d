"""Brokers that register, are fenced, shut down and are forgotten: the records of each decision."""

from __future__ import annotations

import pytest

from barnabas.controller import brokers
from barnabas.controller.heartbeats import BrokerState
from barnabas.metadata.topics import UNASSIGNED_DIR
from barnabas.steps import at_once
from barnabas.wire import KafkaError, Uuid
from barnabas.wire.messages.broker_heartbeat import BrokerHeartbeatRequest
from barnabas.wire.messages.broker_registration import BrokerRegistrationRequest
from barnabas.wire.records.metadata import (
    BrokerRegistrationChangeRecord,
    PartitionChangeRecord,
    UnregisterBrokerRecord,
)
from tests.broker.harness import CLUSTER_ID
from tests.controller.situations import TOPIC, Story, partition, topic

Feature = BrokerRegistrationRequest.Feature


def beat(of: Story, broker_id: int, **fields: object) -> brokers.Heartbeat:
    request = BrokerHeartbeatRequest(
        broker_id=broker_id, broker_epoch=100 + broker_id, current_metadata_offset=of.image.offset
    )
    for name, value in fields.items():
        setattr(request, name, value)
    return of.decide(brokers.heartbeat, request)


def change(**fields: object) -> PartitionChangeRecord:
    return PartitionChangeRecord(topic_id=TOPIC, partition_id=0, **fields)  # type: ignore[arg-type]


def test_a_fenced_broker_is_out_of_every_isr_before_it_is_marked() -> None:
    of = Story(topic(partition([1, 2]), partition([2, 3])))
    assert beat(of, 1, want_fence=True).state is BrokerState.FENCED
    assert of.last == [
        (change(isr=[2], leader=2), 2),
        (BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=101, fenced=1), 0),
    ]


def test_a_broker_that_is_let_in_leads_what_has_no_leader() -> None:
    of = Story(topic(partition([1])))
    beat(of, 1, want_fence=True)
    assert of.partition().leader == -1
    beat(of, 1)
    assert of.last == [
        (BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=101, fenced=-1), 0),
        (change(isr=[1], leader=1, eligible_leader_replicas=[], last_known_elr=[]), 2),
    ]


def test_a_controlled_shutdown_is_marked_first_and_only_once() -> None:
    of = Story(topic(partition([1, 2])))
    assert beat(of, 1, want_shut_down=True).state is BrokerState.CONTROLLED_SHUTDOWN
    assert of.last == [
        (BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=101, in_controlled_shutdown=1), 1),
        (change(isr=[2], leader=2), 2),
    ]
    beat(of, 1, want_shut_down=True)
    assert of.last == []


def test_after_a_failover_a_broker_that_shuts_down_is_not_marked_again() -> None:
    of = Story(topic(partition([1, 2])))
    of.apply([BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=101, in_controlled_shutdown=1)])
    assert beat(of, 1, want_shut_down=True).state is BrokerState.CONTROLLED_SHUTDOWN
    assert of.last == [(change(isr=[2], leader=2), 2)]


def test_stale_brokers_are_fenced_one_after_the_other() -> None:
    of = Story(topic(partition([1, 2, 3])))
    of.wait(5000)
    beat(of, 3)
    beat(of, 4)
    of.wait(5000)
    assert of.decide(brokers.fence_stale_brokers) == brokers.Silence(1, 101, 10_000, True)
    assert of.partition().leader == 2
    assert of.decide(brokers.fence_stale_brokers) == brokers.Silence(2, 102, 10_000, True)
    assert (of.partition().leader, of.partition().isr) == (3, (3,))
    assert of.decide(brokers.fence_stale_brokers) is None
    assert [broker_id for broker_id, broker in sorted(of.image.brokers.items()) if broker.fenced] == [1, 2]


def test_a_broker_that_registered_anew_is_not_fenced_for_the_silence_of_the_one_before() -> None:
    of = Story(topic(partition([1, 2])))
    of.wait(9001)
    of.decide(brokers.register, registration(broker_id=1), 4)
    of.apply([BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=of.image.brokers[1].epoch, fenced=-1)])
    while of.decide(brokers.fence_stale_brokers):
        pass
    assert not of.image.brokers[1].fenced


def test_a_controller_that_was_late_itself_blames_no_broker_for_that_time() -> None:
    of = Story(topic(partition([1, 2])), brokers=2)
    of.wait(5000)
    of.now_ms += 60_000  # nothing ran, nothing was read
    assert of.decide(brokers.fence_stale_brokers) is None
    beat(of, 2)
    of.wait(9000)
    assert of.decide(brokers.fence_stale_brokers) == brokers.Silence(1, 101, 5000 + 1125 + 9000, True)
    assert of.decide(brokers.fence_stale_brokers) is None


def test_a_forgotten_broker_leaves_the_isr_but_not_the_elr() -> None:
    of = Story(topic(partition([1, 2]), partition([2, 1], [2], eligible_leader_replicas=[1])))
    of.image = (
        of.image
    )  # both partitions are below min.insync.replicas 1 only when empty, so the ELR of the second goes
    of.decide(brokers.unregister, 1)
    assert of.written[0] == change(isr=[2], leader=2)
    assert of.written[-1] == UnregisterBrokerRecord(broker_id=1, broker_epoch=101)


def test_offline_directories_take_their_replicas_out_of_sync() -> None:
    (first,) = Story().image.brokers[1].log_dirs
    of = Story(topic(partition([1, 2], directories=[first, UNASSIGNED_DIR]), partition([1, 2])))
    beat(of, 1, offline_log_dirs=[first, Uuid(b"unknown-" * 2)])
    assert of.last == [
        (change(isr=[2], leader=2), 2),
        (BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=101), 2),
    ]


def registration(**fields: object) -> BrokerRegistrationRequest:
    levels = {"metadata.version": (7, 30), "eligible.leader.replicas.version": (0, 1)}
    request = BrokerRegistrationRequest(
        broker_id=9,
        cluster_id=CLUSTER_ID,
        incarnation_id=Uuid(b"new!" * 4),
        features=[Feature(name=n, min_supported_version=a, max_supported_version=b) for n, (a, b) in levels.items()],
        log_dirs=[Uuid(b"directory-of-one")],
    )
    for name, value in fields.items():
        setattr(request, name, value)
    return request


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"cluster_id": "x"}, f"Expected cluster ID {CLUSTER_ID}, but got cluster ID x"),
        ({"log_dirs": []}, "No directories specified in request"),
        ({"log_dirs": [Uuid(bytes(16))]}, "Reserved directory ID in request"),
        ({"log_dirs": [Uuid(b"d" * 16)] * 2}, "Duplicate directory ID in request"),
        (
            {"log_dirs": list(Story().image.brokers[2].log_dirs)},
            f"Broker 2 is already registered with directory {Story().image.brokers[2].log_dirs[0]}",
        ),
        ({"features": []}, "Request features do not contain 'metadata.version'"),
        (
            {"features": [Feature(name="metadata.version", min_supported_version=7, max_supported_version=30)]},
            "Unable to register because the broker does not support finalized version 1 of "
            "eligible.leader.replicas.version. The broker wants a version between 0 and 0, inclusive.",
        ),
        (
            {"features": [Feature(name="metadata.version", min_supported_version=7, max_supported_version=21)]},
            "Unable to register because the broker does not support finalized version 30 of metadata.version. "
            "The broker wants a version between 7 and 21, inclusive.",
        ),
    ],
)
def test_a_refused_registration_says_why(fields: dict[str, object], message: str) -> None:
    with pytest.raises(KafkaError) as refused:
        Story().decide(brokers.register, registration(**fields), 4)
    assert refused.value.message == message


def test_an_unfinalized_feature_must_allow_for_level_0() -> None:
    levels = [*registration().features, Feature(name="new.feature", min_supported_version=1, max_supported_version=2)]
    with pytest.raises(KafkaError) as refused:
        Story().decide(brokers.register, registration(features=levels), 4)
    assert refused.value.message == (
        "Unable to register because the broker does not support finalized version 0 of new.feature. "
        "The broker wants a version between 1 and 2, inclusive."
    )


def test_the_kraft_version_counts_as_finalized() -> None:
    situation = Story().situation._replace(kraft_version=1)
    with pytest.raises(KafkaError) as refused:
        at_once(brokers.register(situation, registration(), 4))
    assert "finalized version 1 of kraft.version" in (refused.value.message or "")


def test_the_text_about_another_broker_with_the_id_is_kafkas() -> None:
    of = Story(topic(partition([2])))
    with pytest.raises(KafkaError) as refused:
        of.decide(brokers.register, registration(broker_id=1), 4)
    assert refused.value.message == (
        "Another broker is registered with that broker id. If the broker was recently restarted this should "
        "self-resolve once the heartbeat manager expires the broker's session."
    )
