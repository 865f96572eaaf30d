from __future__ import annotations

from random import Random

import pytest

from barnabas.replicas.fetch_sessions import (
    MAX_EPOCH,
    MIN_EVICTION_MS,
    NO_SESSION,
    PAUSE_EVERY,
    Answer,
    Fetch,
    FetchSessions,
    PartitionData,
    Rows,
    next_epoch,
)
from barnabas.wire import ErrorCode, Uuid
from barnabas.wire.messages.fetch import FetchRequest, FetchResponse
from tests.counting import Walked, counted, most_between_pauses

IDS = {"a": Uuid(b"a" * 16), "b": Uuid(b"b" * 16), "c": Uuid(b"c" * 16)}
NAMES = {topic_id: name for name, topic_id in IDS.items()}


def request(
    *partitions: tuple[str, int, int], session: int = 0, epoch: int = 0, forget: tuple[tuple[str, int], ...] = ()
) -> FetchRequest:
    """A request for (topic, partition, offset), by name and by id at once: the version says which one counts."""
    return FetchRequest(
        session_id=session,
        session_epoch=epoch,
        topics=[
            FetchRequest.FetchTopic(
                topic=topic,
                topic_id=IDS[topic],
                partitions=[FetchRequest.FetchPartition(partition=index, fetch_offset=offset)],
            )
            for topic, index, offset in partitions
        ],
        forgotten_topics_data=[
            FetchRequest.ForgottenTopic(topic=topic, topic_id=IDS[topic], partitions=[index]) for topic, index in forget
        ],
    )


class Fetcher:
    """A client of sessions in one version, which gets the same row for each partition unless told otherwise."""

    def __init__(self, sessions: FetchSessions, version: int = 17, *, is_follower: bool = False) -> None:
        self.sessions = sessions
        self.version = version
        self.is_follower = is_follower
        self.names = dict(NAMES)
        self.now_ms = 0

    def begin(self, asked: FetchRequest) -> Fetch:
        begun = self.sessions.begin(asked, self.version, self.now_ms, self.names.get, is_follower=self.is_follower)
        return counted(begun)[0]

    def fetch(self, asked: FetchRequest, **rows: PartitionData) -> Answer:
        """`a1=row` is what partition 1 of topic a gives."""
        fetch = self.begin(asked)
        return counted(fetch.answer(results(fetch, **rows), self.now_ms))[0]


def results(fetch: Fetch, **rows: PartitionData) -> Rows:
    return [(wanted, rows.get(f"{wanted.topic}{wanted.partition}", row())) for wanted in fetch.partitions]


def row(
    records: bytes = b"", *, high_watermark: int = 10, log_start_offset: int = 0, error: int = 0, preferred: int = -1
) -> PartitionData:
    return PartitionData(
        error_code=error,
        high_watermark=high_watermark,
        log_start_offset=log_start_offset,
        preferred_read_replica=preferred,
        records=records,
    )


def shown(answer: Answer) -> list[str]:
    return [f"{wanted.topic}{wanted.partition}" for wanted, _ in answer.rows]


@pytest.fixture
def sessions() -> FetchSessions:
    return FetchSessions(4, Random(1))


def test_a_fetch_with_the_final_epoch_is_not_remembered(sessions: FetchSessions) -> None:
    answer = Fetcher(sessions).fetch(request(("a", 0, 5), epoch=-1))
    assert (answer.error_code, answer.session_id, shown(answer)) == (0, NO_SESSION, ["a0"])
    assert len(sessions) == 0


def test_a_full_fetch_begins_a_session_and_tells_everything(sessions: FetchSessions) -> None:
    answer = Fetcher(sessions).fetch(request(("b", 1, 5), ("a", 0, 5)))
    assert answer.session_id > 0
    assert shown(answer) == ["b1", "a0"]
    assert sessions.partition_count == 2


def test_a_full_fetch_without_partitions_begins_a_session_too(sessions: FetchSessions) -> None:
    assert Fetcher(sessions).fetch(request()).session_id > 0


def test_a_session_begins_when_it_is_answered_and_not_before(sessions: FetchSessions) -> None:
    Fetcher(sessions).begin(request(("a", 0, 5)))
    assert len(sessions) == 0


def test_a_partition_that_is_asked_for_twice_has_its_first_place_and_last_offset(sessions: FetchSessions) -> None:
    fetch = Fetcher(sessions).begin(request(("a", 0, 5), ("b", 0, 1), ("a", 0, 7), epoch=-1))
    assert [(wanted.topic, wanted.fetch_offset) for wanted in fetch.partitions] == [("a", 7), ("b", 1)]


def test_an_incremental_answer_leaves_out_what_was_told(sessions: FetchSessions) -> None:
    fetcher = Fetcher(sessions)
    session = fetcher.fetch(request(("a", 0, 5), ("b", 0, 5))).session_id
    answer = fetcher.fetch(request(session=session, epoch=1))
    assert (answer.error_code, answer.session_id, answer.rows) == (0, session, [])


@pytest.mark.parametrize(
    "news",
    [
        row(b"records"),
        row(high_watermark=11),
        row(log_start_offset=1),
        row(error=ErrorCode.NOT_LEADER_OR_FOLLOWER),
        row(preferred=3),
    ],
)
def test_news_is_told(sessions: FetchSessions, news: PartitionData) -> None:
    fetcher = Fetcher(sessions)
    session = fetcher.fetch(request(("a", 0, 5), ("b", 0, 5))).session_id
    assert shown(fetcher.fetch(request(session=session, epoch=1), b0=news)) == ["b0"]


def test_a_diverging_epoch_is_told(sessions: FetchSessions) -> None:
    fetcher = Fetcher(sessions)
    session = fetcher.fetch(request(("a", 0, 5))).session_id
    news = row()
    news.diverging_epoch = FetchResponse.EpochEndOffset(epoch=0, end_offset=3)
    assert shown(fetcher.fetch(request(session=session, epoch=1), a0=news)) == ["a0"]


def test_what_was_told_once_is_not_told_again(sessions: FetchSessions) -> None:
    fetcher = Fetcher(sessions)
    session = fetcher.fetch(request(("a", 0, 5))).session_id
    fetcher.fetch(request(session=session, epoch=1), a0=row(high_watermark=11, log_start_offset=2))
    again = fetcher.fetch(request(session=session, epoch=2), a0=row(high_watermark=11, log_start_offset=2))
    assert again.rows == []


def test_a_partition_is_told_again_once_its_error_is_over(sessions: FetchSessions) -> None:
    fetcher = Fetcher(sessions)
    session = fetcher.fetch(request(("a", 0, 5))).session_id
    failed = row(high_watermark=-1, log_start_offset=-1, error=ErrorCode.KAFKA_STORAGE_ERROR)
    assert shown(fetcher.fetch(request(session=session, epoch=1), a0=failed)) == ["a0"]
    assert shown(fetcher.fetch(request(session=session, epoch=2), a0=failed)) == ["a0"]
    assert shown(fetcher.fetch(request(session=session, epoch=3))) == ["a0"]
    assert shown(fetcher.fetch(request(session=session, epoch=4))) == []


def test_partitions_that_brought_records_move_behind_the_others(sessions: FetchSessions) -> None:
    fetcher = Fetcher(sessions)
    session = fetcher.fetch(request(("a", 0, 5), ("a", 1, 5), ("b", 0, 5))).session_id
    answer = fetcher.fetch(request(session=session, epoch=1), a0=row(b"x"), b0=row(high_watermark=11))
    assert shown(answer) == ["a0", "b0"]
    fetch = fetcher.begin(request(session=session, epoch=2))
    assert [f"{wanted.topic}{wanted.partition}" for wanted in fetch.partitions] == ["a1", "b0", "a0"]


def test_a_full_fetch_does_not_turn_the_order(sessions: FetchSessions) -> None:
    fetcher = Fetcher(sessions)
    session = fetcher.fetch(request(("a", 0, 5), ("b", 0, 5)), a0=row(b"x")).session_id
    fetch = fetcher.begin(request(session=session, epoch=1))
    assert [wanted.topic for wanted in fetch.partitions] == ["a", "b"]


def test_an_incremental_request_changes_adds_and_forgets(sessions: FetchSessions) -> None:
    fetcher = Fetcher(sessions)
    session = fetcher.fetch(request(("a", 0, 5), ("b", 0, 5))).session_id
    changes = request(("c", 2, 1), ("a", 0, 9), session=session, epoch=1, forget=(("b", 0), ("c", 7)))
    fetch = fetcher.begin(changes)
    assert [(w.topic, w.partition, w.fetch_offset) for w in fetch.partitions] == [("a", 0, 9), ("c", 2, 1)]
    assert shown(counted(fetch.answer(results(fetch), 0))[0]) == ["c2"]
    assert sessions.partition_count == 2


def test_a_session_that_forgot_everything_is_closed(sessions: FetchSessions) -> None:
    fetcher = Fetcher(sessions)
    session = fetcher.fetch(request(("a", 0, 5))).session_id
    answer = fetcher.fetch(request(session=session, epoch=1, forget=(("a", 0),)))
    assert (answer.error_code, answer.session_id, answer.rows) == (0, NO_SESSION, [])
    assert len(sessions) == 0


def test_a_full_request_closes_the_session_that_it_names(sessions: FetchSessions) -> None:
    fetcher = Fetcher(sessions)
    session = fetcher.fetch(request(("a", 0, 5))).session_id
    other = fetcher.fetch(request(("a", 0, 5), session=session)).session_id
    assert len(sessions) == 1
    assert fetcher.fetch(request(session=other, epoch=-1)).session_id == NO_SESSION
    assert len(sessions) == 0


def test_an_unknown_session_is_an_error_without_rows(sessions: FetchSessions) -> None:
    for session in (5, 0, -1):
        answer = Fetcher(sessions).fetch(request(("a", 0, 5), session=session, epoch=1))
        assert answer == (ErrorCode.FETCH_SESSION_ID_NOT_FOUND, NO_SESSION, [])


def test_a_wrong_epoch_is_an_error_and_changes_nothing(sessions: FetchSessions) -> None:
    fetcher = Fetcher(sessions)
    session = fetcher.fetch(request(("a", 0, 5))).session_id
    for epoch in (2, -2):
        answer = fetcher.fetch(request(("b", 0, 1), session=session, epoch=epoch))
        assert answer == (ErrorCode.INVALID_FETCH_SESSION_EPOCH, NO_SESSION, [])
    assert sessions.partition_count == 1
    assert fetcher.fetch(request(session=session, epoch=1)).error_code == 0


def test_of_two_requests_with_one_epoch_the_one_that_was_overtaken_fails(sessions: FetchSessions) -> None:
    fetcher = Fetcher(sessions)
    session = fetcher.fetch(request(("a", 0, 5))).session_id
    waiting = fetcher.begin(request(session=session, epoch=1))
    fetcher.begin(request(session=session, epoch=2))
    answer, _ = counted(waiting.answer(results(waiting, a0=row(b"x")), 0))
    assert answer == (ErrorCode.INVALID_FETCH_SESSION_EPOCH, session, [])


@pytest.mark.parametrize(("first", "then"), [(12, 13), (17, 12)])
def test_a_session_keeps_to_names_or_to_ids(sessions: FetchSessions, first: int, then: int) -> None:
    session = Fetcher(sessions, first).fetch(request(("a", 0, 5))).session_id
    answer = Fetcher(sessions, then).fetch(request(session=session, epoch=1))
    assert answer == (ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR, NO_SESSION, [])


def test_a_session_of_names_knows_its_partitions_by_name() -> None:
    sessions = FetchSessions(4, Random(1))
    fetcher = Fetcher(sessions, 12)
    session = fetcher.fetch(request(("a", 0, 5))).session_id
    answer = fetcher.fetch(request(("a", 0, 6), session=session, epoch=1), a0=row(b"x"))
    assert shown(answer) == ["a0"]
    assert sessions.partition_count == 1


def test_a_topic_that_is_not_known_yet_gets_its_name_later(sessions: FetchSessions) -> None:
    fetcher = Fetcher(sessions)
    del fetcher.names[IDS["a"]]
    session = fetcher.fetch(request(("a", 0, 5))).session_id
    assert [w.topic for w in fetcher.begin(request(session=session, epoch=1)).partitions] == [None]
    fetcher.names = dict(NAMES)
    assert [w.topic for w in fetcher.begin(request(session=session, epoch=2)).partitions] == ["a"]


def test_a_name_that_was_found_stays_when_the_topic_goes(sessions: FetchSessions) -> None:
    fetcher = Fetcher(sessions)
    session = fetcher.fetch(request(("a", 0, 5))).session_id
    fetcher.names = {}
    assert [w.topic for w in fetcher.begin(request(session=session, epoch=1)).partitions] == ["a"]


def test_epochs_begin_anew_behind_the_largest_one() -> None:
    assert [next_epoch(epoch) for epoch in (-1, 0, 7, MAX_EPOCH)] == [-1, 1, 8, 1]


def test_there_is_no_session_where_none_is_allowed() -> None:
    assert Fetcher(FetchSessions(0, Random(1))).fetch(request(("a", 0, 5))).session_id == NO_SESSION


def fill(
    sessions: FetchSessions, count: int, now_ms: int = 0, *, is_follower: bool = False, size: int = 1
) -> list[int]:
    fetcher = Fetcher(sessions, is_follower=is_follower)
    fetcher.now_ms = now_ms
    asked = [("a", index, 0) for index in range(size)]
    return [fetcher.fetch(request(*asked)).session_id for _ in range(count)]


def use(sessions: FetchSessions, session: int, epoch: int, now_ms: int) -> ErrorCode:
    fetcher = Fetcher(sessions)
    fetcher.now_ms = now_ms
    return fetcher.fetch(request(session=session, epoch=epoch)).error_code


def test_new_sessions_stay_when_there_is_no_room(sessions: FetchSessions) -> None:
    fill(sessions, 4)
    assert fill(sessions, 1, now_ms=1000, size=3) == [NO_SESSION]
    assert sessions.evictions == 0


def test_a_session_that_was_not_used_for_long_makes_room(sessions: FetchSessions) -> None:
    first, *others = fill(sessions, 4)
    for other in others:
        use(sessions, other, 1, 10)
    assert fill(sessions, 1, now_ms=MIN_EVICTION_MS) == [NO_SESSION]
    assert fill(sessions, 1, now_ms=MIN_EVICTION_MS + 1) != [NO_SESSION]
    assert use(sessions, first, 1, MIN_EVICTION_MS + 1) == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert [use(sessions, other, 2, MIN_EVICTION_MS + 1) for other in others] == [0, 0, 0]
    assert sessions.evictions == 1


def test_an_old_session_makes_room_for_a_larger_one_only(sessions: FetchSessions) -> None:
    used = fill(sessions, 4)
    now_ms = MIN_EVICTION_MS + 1
    for session in used:
        assert use(sessions, session, 1, now_ms) == 0
    assert fill(sessions, 1, now_ms=now_ms, size=1) == [NO_SESSION]
    assert fill(sessions, 1, now_ms=now_ms, size=2) != [NO_SESSION]
    gone = [s for s in used if use(sessions, s, 2, now_ms) == ErrorCode.FETCH_SESSION_ID_NOT_FOUND]
    assert gone == [min(used)]


def test_the_smallest_old_session_goes_first(sessions: FetchSessions) -> None:
    large = fill(sessions, 2, size=5)
    small = fill(sessions, 2, size=3)
    now_ms = MIN_EVICTION_MS + 1
    for session in (*large, *small):
        use(sessions, session, 1, now_ms)
    fill(sessions, 1, now_ms=now_ms, size=9)
    assert [use(sessions, session, 2, now_ms) for session in large] == [0, 0]
    assert sum(use(sessions, session, 2, now_ms) == 0 for session in small) == 1


def test_a_follower_pushes_out_a_consumer_that_is_new(sessions: FetchSessions) -> None:
    fill(sessions, 4, size=9)
    assert fill(sessions, 1, is_follower=True) != [NO_SESSION]


def test_a_consumer_never_pushes_out_a_follower(sessions: FetchSessions) -> None:
    followers = fill(sessions, 4, is_follower=True)
    now_ms = MIN_EVICTION_MS + 1
    for session in followers:
        use(sessions, session, 1, now_ms)
    assert fill(sessions, 1, now_ms=now_ms, size=9) == [NO_SESSION]
    assert fill(sessions, 1, now_ms=now_ms, size=9, is_follower=True) != [NO_SESSION]


def test_new_followers_stay_when_another_one_comes(sessions: FetchSessions) -> None:
    fill(sessions, 4, is_follower=True)
    assert fill(sessions, 1, now_ms=1000, size=9, is_follower=True) == [NO_SESSION]


def test_partitions_of_all_sessions_are_limited_and_who_has_too_many_gets_no_session() -> None:
    sessions = FetchSessions(100, Random(1), max_partitions=3)
    fetcher = Fetcher(sessions)
    first = fetcher.fetch(request(("a", 0, 0), ("a", 1, 0)))
    assert first.session_id != NO_SESSION
    refused = fetcher.fetch(request(("b", 0, 0), ("b", 1, 0)))
    assert refused.session_id == NO_SESSION
    assert len(refused.rows) == 2
    assert fetcher.fetch(request(("c", 0, 0))).session_id != NO_SESSION
    assert (len(sessions), sessions.partition_count) == (2, 3)


def test_a_session_that_grows_beyond_the_limit_ends_and_answers_everything() -> None:
    sessions = FetchSessions(100, Random(1), max_partitions=2)
    fetcher = Fetcher(sessions)
    first = fetcher.fetch(request(("a", 0, 0), ("a", 1, 0)))
    grown = fetcher.fetch(request(("b", 0, 0), session=first.session_id, epoch=1))
    assert grown.session_id == NO_SESSION
    assert [(wanted.topic, wanted.partition) for wanted, _ in grown.rows] == [("a", 0), ("a", 1), ("b", 0)]
    assert (len(sessions), sessions.partition_count) == (0, 0)


def test_partitions_that_are_forgotten_make_room_and_so_do_sessions_that_were_not_used_for_long() -> None:
    sessions = FetchSessions(100, Random(1), max_partitions=2)
    fetcher = Fetcher(sessions)
    first = fetcher.fetch(request(("a", 0, 0), ("a", 1, 0)))
    fetcher.fetch(request(session=first.session_id, epoch=1, forget=(("a", 1),)))
    assert sessions.partition_count == 1
    assert fetcher.fetch(request(("b", 0, 0))).session_id != NO_SESSION
    fetcher.now_ms = MIN_EVICTION_MS + 1
    assert fetcher.fetch(request(("c", 0, 0), ("c", 1, 0))).session_id != NO_SESSION
    assert (len(sessions), sessions.partition_count, sessions.evictions) == (1, 2, 2)


MANY = 40 * PAUSE_EVERY


def many(session: int = 0, epoch: int = 0) -> tuple[FetchRequest, Walked[FetchRequest.FetchPartition]]:
    asked = request(("a", 0, 5), session=session, epoch=epoch)
    rows = asked.topics[0].partitions = Walked(FetchRequest.FetchPartition(partition=index) for index in range(MANY))
    return asked, rows


def test_a_request_of_many_partitions_is_looked_at_in_slices(sessions: FetchSessions) -> None:
    fetcher = Fetcher(sessions)
    asked, rows = many()
    fetch, most = most_between_pauses(sessions.begin(asked, 17, 0, NAMES.get, is_follower=False), rows)
    assert most <= PAUSE_EVERY and rows.walked == MANY
    answer, pauses = counted(fetch.answer(results(fetch), 0))
    assert pauses == MANY // PAUSE_EVERY
    asked, rows = many(answer.session_id, 1)
    fetch, most = most_between_pauses(sessions.begin(asked, 17, 0, NAMES.get, is_follower=False), rows)
    assert most <= PAUSE_EVERY and rows.walked == MANY
    answer, pauses = counted(fetch.answer(results(fetch), 0))
    assert pauses == MANY // PAUSE_EVERY and not answer.rows
    assert fetcher.fetch(request(session=answer.session_id, epoch=2)).error_code == 0


def test_partitions_are_forgotten_in_slices(sessions: FetchSessions) -> None:
    asked, _ = many()
    fetch, _ = counted(sessions.begin(asked, 17, 0, NAMES.get, is_follower=False))
    session = counted(fetch.answer(results(fetch), 0))[0].session_id
    changes = request(session=session, epoch=1, forget=(("a", 0),))
    rows = changes.forgotten_topics_data[0].partitions = Walked(range(MANY - 1))
    fetch, most = most_between_pauses(sessions.begin(changes, 17, 0, NAMES.get, is_follower=False), rows)
    assert most <= PAUSE_EVERY
    assert [wanted.partition for wanted in fetch.partitions] == [MANY - 1]


def test_a_session_that_is_evicted_while_its_request_is_looked_at_is_still_answered(sessions: FetchSessions) -> None:
    asked, _ = many()
    fetch, _ = counted(sessions.begin(asked, 17, 0, NAMES.get, is_follower=False))
    session = counted(fetch.answer(results(fetch), 0))[0].session_id
    asked, _ = many(session, 1)
    work = sessions.begin(asked, 17, 0, NAMES.get, is_follower=False)
    next(work)
    sessions._sessions.clear()
    fetch, _ = counted(work)
    assert len(fetch.partitions) == MANY
    assert counted(fetch.answer(results(fetch), 0))[0].error_code == 0
