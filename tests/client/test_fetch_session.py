"""Fetch sessions of the client: what is listed, what is forgotten, and what follows an error. No node."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.client.consuming.fetch_session import (
    FINAL_EPOCH,
    INITIAL_EPOCH,
    MAX_EPOCH,
    NO_SESSION,
    FetchSession,
    SessionRequest,
    Wanted,
)
from barnabas.client.records import TopicPartition
from barnabas.replicas.fetch_sessions import FetchSessions
from barnabas.wire import ZERO_UUID, ErrorCode, Uuid
from barnabas.wire.messages.fetch import FetchRequest, FetchResponse
from tests.counting import counted

A, B, C = (TopicPartition("orders", index) for index in range(3))
OLD, NEW = Uuid(b"o" * 16), Uuid(b"n" * 16)
OTHER_ERRORS = [
    ErrorCode.INVALID_FETCH_SESSION_EPOCH,
    ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
    ErrorCode.UNKNOWN_SERVER_ERROR,
]


def opened(**wanted: Wanted) -> FetchSession:
    session = FetchSession()
    session.request(places(wanted), uses_ids=True)
    session.answered(ErrorCode.NONE, 7)
    return session


def places(wanted: dict[str, Wanted]) -> dict[TopicPartition, Wanted]:
    return {{"a": A, "b": B, "c": C}[name]: each for name, each in wanted.items()}


def at(offset: int, topic_id: Uuid = OLD, epoch: int = -1) -> Wanted:
    return Wanted(offset, epoch, topic_id)


def test_the_first_request_is_full_and_the_next_ones_list_only_changes() -> None:
    session = FetchSession()
    first = session.request({A: at(0), B: at(0)}, uses_ids=True)
    assert first == SessionRequest(NO_SESSION, INITIAL_EPOCH, {A: at(0), B: at(0)}, [])
    session.answered(ErrorCode.NONE, 7)
    assert session.request({A: at(5), B: at(0)}, uses_ids=True) == SessionRequest(7, 1, {A: at(5)}, [])
    session.answered(ErrorCode.NONE, 7)
    assert session.request({A: at(5), B: at(0)}, uses_ids=True) == SessionRequest(7, 2, {}, [])


def test_partitions_that_are_not_wanted_any_more_are_forgotten() -> None:
    request = opened(a=at(0), b=at(0)).request({B: at(0), C: at(9)}, uses_ids=True)
    assert request == SessionRequest(7, 1, {C: at(9)}, [(A, OLD)])


def test_another_leader_epoch_is_listed_again() -> None:
    assert opened(a=at(0)).request({A: at(0, epoch=4)}, uses_ids=True).listed == {A: at(0, epoch=4)}


def test_a_topic_that_was_created_again_is_forgotten_by_its_old_id() -> None:
    request = opened(a=at(3), b=at(0)).request({A: at(3, NEW), B: at(0, NEW)}, uses_ids=True)
    assert request == SessionRequest(7, 1, {A: at(3, NEW), B: at(0, NEW)}, [(A, OLD), (B, OLD)])


def test_without_topic_ids_a_topic_is_known_by_its_name_alone() -> None:
    session = FetchSession()
    session.request({A: at(3)}, uses_ids=False)
    session.answered(ErrorCode.NONE, 7)
    assert session.request({A: at(3, NEW)}, uses_ids=False) == SessionRequest(7, 1, {}, [])


def test_a_change_between_names_and_ids_begins_a_new_session() -> None:
    request = opened(a=at(3)).request({A: at(3)}, uses_ids=False)
    assert request == SessionRequest(7, INITIAL_EPOCH, {A: Wanted(3, -1, ZERO_UUID)}, [])


def test_a_session_that_the_broker_does_not_know_is_begun_anew() -> None:
    session = opened(a=at(0), b=at(0))
    session.request({A: at(1), B: at(0)}, uses_ids=True)
    session.answered(ErrorCode.FETCH_SESSION_ID_NOT_FOUND, NO_SESSION)
    request = session.request({A: at(1), B: at(0)}, uses_ids=True)
    assert request == SessionRequest(NO_SESSION, INITIAL_EPOCH, {A: at(1), B: at(0)}, [])


@pytest.mark.parametrize("code", OTHER_ERRORS)
def test_any_other_error_closes_the_session_and_asks_for_a_new_one(code: ErrorCode) -> None:
    session = opened(a=at(0), b=at(0))
    session.request({A: at(1), B: at(0)}, uses_ids=True)
    session.answered(code, NO_SESSION)
    request = session.request({A: at(1), B: at(0)}, uses_ids=True)
    assert request == SessionRequest(7, INITIAL_EPOCH, {A: at(1), B: at(0)}, [])
    session.answered(ErrorCode.NONE, 8)
    assert session.request({A: at(1), B: at(0)}, uses_ids=True) == SessionRequest(8, 1, {}, [])


def test_a_request_that_was_not_answered_is_followed_by_a_full_one() -> None:
    session = opened(a=at(0), b=at(0))
    session.request({A: at(1), B: at(0)}, uses_ids=True)
    assert session.request({A: at(1), B: at(0)}, uses_ids=True) == SessionRequest(
        7, INITIAL_EPOCH, {A: at(1), B: at(0)}, []
    )


def test_a_broker_without_room_for_a_session_is_sent_full_requests() -> None:
    session = FetchSession()
    for _ in range(3):
        assert session.request({A: at(0)}, uses_ids=True) == SessionRequest(NO_SESSION, INITIAL_EPOCH, {A: at(0)}, [])
        session.answered(ErrorCode.NONE, NO_SESSION)


def test_a_response_of_another_session_begins_a_new_one() -> None:
    session = opened(a=at(0))
    session.request({A: at(0)}, uses_ids=True)
    session.answered(ErrorCode.NONE, 8)
    assert session.request({A: at(0)}, uses_ids=True).is_full


def test_epochs_go_on_with_one_after_the_largest() -> None:
    session = opened(a=at(0))
    session._epoch = MAX_EPOCH
    assert session.request({A: at(0)}, uses_ids=True).epoch == MAX_EPOCH
    session.answered(ErrorCode.NONE, 7)
    assert session.request({A: at(0)}, uses_ids=True).epoch == 1


def test_a_session_is_closed_once_and_only_if_there_is_one() -> None:
    session = opened(a=at(0))
    assert session.is_open
    assert session.close() == SessionRequest(7, FINAL_EPOCH, {}, [])
    assert not session.is_open
    assert session.close() is None
    assert session.request({A: at(0)}, uses_ids=True) == SessionRequest(NO_SESSION, INITIAL_EPOCH, {A: at(0)}, [])


# --- with the broker's side


def message(request: SessionRequest) -> FetchRequest:
    return FetchRequest(
        session_id=request.session_id,
        session_epoch=request.epoch,
        topics=[
            FetchRequest.FetchTopic(
                topic_id=each.topic_id,
                partitions=[FetchRequest.FetchPartition(partition=place.partition, fetch_offset=each.fetch_offset)],
            )
            for place, each in request.listed.items()
        ],
        forgotten_topics_data=[
            FetchRequest.ForgottenTopic(topic_id=topic_id, partitions=[place.partition])
            for place, topic_id in request.forgotten
        ],
    )


WANTED = st.dictionaries(st.sampled_from([A, B, C]), st.builds(at, st.integers(0, 3), st.sampled_from([OLD, NEW])))
STEPS = st.lists(st.tuples(WANTED, st.sampled_from(["answered", "lost", "evicted", "abandoned"])), max_size=12)


@given(STEPS)
def test_the_broker_reads_exactly_what_is_wanted_whatever_happens(
    steps: list[tuple[dict[TopicPartition, Wanted], str]],
) -> None:
    session, broker = FetchSession(), FetchSessions(2, random.Random(1))
    for wanted, fate in steps:
        request = session.request(wanted, uses_ids=True)
        if fate == "lost":
            continue  # it never arrives
        if fate == "evicted":
            broker._sessions.clear()
        fetch, _ = counted(broker.begin(message(request), 17, 0, lambda _: "orders", is_follower=False))
        rows = [(each, FetchResponse.PartitionData(partition_index=each.partition)) for each in fetch.partitions]
        answer, _ = counted(fetch.answer(rows, 0))
        if fate == "abandoned":
            continue  # its response is not waited for
        session.answered(answer.error_code, answer.session_id)
        if answer.error_code:
            assert fate == "evicted"
            continue
        read = {(each.topic_id, each.partition, each.fetch_offset) for each in fetch.partitions}
        assert read == {(each.topic_id, place.partition, each.fetch_offset) for place, each in wanted.items()}
