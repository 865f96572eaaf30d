"""The soft state of heartbeats, and the states of a broker."""

from __future__ import annotations

import pytest

from barnabas.controller.heartbeats import NO_HEARTBEATS, BrokerState, Heartbeats, next_state
from barnabas.metadata.image import MetadataImage
from barnabas.wire.records.metadata import BrokerRegistrationChangeRecord
from tests.controller.situations import Story, partition, topic

FENCED, UNFENCED = BrokerState.FENCED, BrokerState.UNFENCED
CONTROLLED_SHUTDOWN, SHUTDOWN_NOW = BrokerState.CONTROLLED_SHUTDOWN, BrokerState.SHUTDOWN_NOW


def image(*, leads: bool = False, fenced: bool = False) -> MetadataImage:
    """Brokers 1 and 2; what is asked concerns broker 1."""
    records = topic(partition([1])) if leads else []
    if fenced:
        records.append(BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=101, fenced=1))
    return Story(records, brokers=2).image


@pytest.mark.parametrize(
    ("fenced", "leads", "want_fence", "want_stop", "caught_up", "state"),
    [
        (True, False, False, False, True, UNFENCED),
        (True, False, False, False, False, FENCED),
        (True, False, True, False, True, FENCED),
        (True, False, False, True, True, SHUTDOWN_NOW),
        (True, False, True, True, False, SHUTDOWN_NOW),
        (False, True, False, False, True, UNFENCED),
        (False, True, False, False, False, UNFENCED),
        (False, True, True, False, True, FENCED),
        (False, True, True, True, True, SHUTDOWN_NOW),
        (False, True, False, True, True, CONTROLLED_SHUTDOWN),
        (False, False, False, True, True, SHUTDOWN_NOW),
    ],
)
def test_a_heartbeat_brings_a_broker_from_state_to_state(
    fenced: bool, leads: bool, want_fence: bool, want_stop: bool, caught_up: bool, state: BrokerState
) -> None:
    now = image(leads=leads, fenced=fenced)
    heartbeats = Heartbeats()
    heartbeats.registered(1, 101, 50)
    offset = 50 if caught_up else 49
    current = FENCED if fenced else UNFENCED
    assert next_state(heartbeats, now, now.brokers[1], offset, want_fence, want_stop) == (current, state)


@pytest.mark.parametrize(
    ("leads", "others_at", "state"),
    [
        (True, 99, CONTROLLED_SHUTDOWN),
        (False, 59, CONTROLLED_SHUTDOWN),
        (False, 60, SHUTDOWN_NOW),
    ],
)
def test_a_broker_that_shuts_down_waits_for_its_leaderships_and_for_the_others(
    leads: bool, others_at: int, state: BrokerState
) -> None:
    now = image(leads=leads)
    heartbeats = Heartbeats.started(now, 0)
    heartbeats.touched(now.brokers[1], CONTROLLED_SHUTDOWN, 55, 60, 0)
    heartbeats.touched(now.brokers[1], CONTROLLED_SHUTDOWN, 55, 70, 0)  # the first offset counts
    heartbeats.touched(now.brokers[2], UNFENCED, others_at, 60, 0)
    assert next_state(heartbeats, now, now.brokers[1], 55, False, True) == (CONTROLLED_SHUTDOWN, state)


def test_fencing_ends_a_controlled_shutdown() -> None:
    now = image()
    heartbeats = Heartbeats.started(now, 0)
    heartbeats.touched(now.brokers[1], CONTROLLED_SHUTDOWN, 55, 60, 0)
    heartbeats.touched(now.brokers[1], FENCED, 55, 60, 0)
    assert not heartbeats.session(now.brokers[1]).is_shutting_down


def test_a_new_leader_has_just_heard_of_every_broker_that_serves() -> None:
    now = image(fenced=True)
    heartbeats = Heartbeats.started(now, 1000)
    assert not heartbeats.has_valid_session(now.brokers[1], 1000, 9000)
    assert heartbeats.has_valid_session(now.brokers[2], 10_000, 9000)
    assert not heartbeats.has_valid_session(now.brokers[2], 10_001, 9000)
    assert heartbeats.session(now.brokers[1]).registration_offset == now.offset


def test_the_longest_silence_expires_first() -> None:
    now = image()
    heartbeats = Heartbeats.started(now, 0)
    heartbeats.touched(now.brokers[1], UNFENCED, 1, 1, 500)
    assert heartbeats.expired(9000, 9000) is None
    assert heartbeats.expired(9501, 9000) == (2, heartbeats.session(now.brokers[2]))
    heartbeats.forget(2)
    assert heartbeats.expired(9501, 9000) == (1, heartbeats.session(now.brokers[1]))


def test_a_session_of_another_registration_counts_for_nothing() -> None:
    now = image()
    heartbeats = Heartbeats.started(now, 0)
    heartbeats.touched(now.brokers[1], UNFENCED, 77, 1, 0)
    renewed = now.brokers[1]._replace(epoch=500)
    assert heartbeats.session(renewed).metadata_offset == -1
    assert not heartbeats.has_valid_session(renewed, 0, 9000)


def test_amending_a_registration_keeps_the_session_alive() -> None:
    now = image()
    heartbeats = Heartbeats.started(now, 5)
    heartbeats.registered(1, 101, 80)
    session = heartbeats.session(now.brokers[1])
    assert (session.contact_ms, session.registration_offset, session.metadata_offset) == (5, 80, -1)


def test_a_situation_without_heartbeats_takes_none() -> None:
    with pytest.raises(TypeError):
        NO_HEARTBEATS.registered(1, 1, 1)


def test_a_broker_that_waits_for_an_answer_is_not_silent() -> None:
    heartbeats = Heartbeats.started(image(), 0)
    heartbeats.arrived(1, 101, 1000)
    assert heartbeats.expired(20_000, 9000) == (2, heartbeats.sessions[2])
    heartbeats.forget(2)
    assert heartbeats.expired(20_000, 9000) is None
    heartbeats.answered(1, 101, 20_000)
    assert heartbeats.expired(29_000, 9000) is None
    assert heartbeats.expired(29_001, 9000) == (1, heartbeats.sessions[1])


def test_a_heartbeat_counts_from_when_it_arrives_even_if_it_is_never_answered() -> None:
    heartbeats = Heartbeats.started(image(), 0)
    heartbeats.forget(2)
    heartbeats.arrived(1, 101, 1000)
    heartbeats.arrived(1, 101, 2000)
    heartbeats.dropped(1, 101)
    assert heartbeats.expired(20_000, 9000) is None
    heartbeats.dropped(1, 101)
    assert heartbeats.expired(11_000, 9000) is None
    assert heartbeats.expired(11_001, 9000) == (1, heartbeats.sessions[1])


def test_a_heartbeat_of_an_earlier_registration_keeps_no_session_alive() -> None:
    heartbeats = Heartbeats.started(image(), 0)
    heartbeats.forget(2)
    heartbeats.arrived(1, 100, 5000)
    assert heartbeats.expired(9001, 9000) == (1, heartbeats.sessions[1])


@pytest.mark.parametrize(("late_ms", "excused_ms"), [(0, 0), (1000, 0), (1001, 1001), (50_000, 50_000)])
def test_lateness_of_the_controller_is_excused_if_it_missed_a_whole_check(late_ms: int, excused_ms: int) -> None:
    heartbeats = Heartbeats.started(image(), 0)
    heartbeats.forget(2)
    heartbeats.checked(1000 + late_ms, 1000)
    assert heartbeats.sessions[1].contact_ms == excused_ms
    assert heartbeats.sessions[2].contact_ms is None


def test_the_next_session_to_expire_is_that_of_the_broker_that_has_been_silent_for_longest() -> None:
    heartbeats = Heartbeats()
    assert heartbeats.next_expiry_ms(1000) is None
    brokers = image().brokers
    for broker_id, contact_ms in ((1, 300), (2, 200)):
        heartbeats.touched(brokers[broker_id], UNFENCED, 0, 0, contact_ms)
    assert heartbeats.next_expiry_ms(1000) == 1201
    assert heartbeats.expired(1200, 1000) is None
    assert heartbeats.expired(1201, 1000) == (2, heartbeats.sessions[2])
    heartbeats.arrived(2, brokers[2].epoch, 900)  # it waits for its answer
    assert heartbeats.next_expiry_ms(1000) == 1301
    heartbeats.forget(1)
    assert heartbeats.next_expiry_ms(1000) is None
