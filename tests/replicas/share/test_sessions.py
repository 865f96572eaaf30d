"""Share sessions: epochs, partitions that are added and forgotten, limits, connections."""

from __future__ import annotations

import pytest

from barnabas.replicas.share.sessions import (
    MAX_EPOCH,
    MemberKey,
    PartitionKey,
    Session,
    Sessions,
    next_epoch,
    rotated,
)
from barnabas.steps import at_once
from barnabas.wire import ErrorCode, KafkaError, Uuid

TOPIC = Uuid(b"t" * 16)
A, B = MemberKey("g", "a"), MemberKey("g", "b")


def keys(*numbers: int) -> list[PartitionKey]:
    return [PartitionKey(TOPIC, number) for number in numbers]


def sessions(max_sessions: int = 2, max_partitions: int = 10) -> Sessions:
    return Sessions(lambda: max_sessions, lambda: max_partitions)


def begin(cache: Sessions, member: MemberKey, *numbers: int, connection: object = "connection") -> Session:
    return at_once(cache.begin(member, keys(*numbers), connection))


def refused(code: ErrorCode) -> pytest.RaisesExc[KafkaError]:
    return pytest.RaisesExc(KafkaError, check=lambda error: error.code is code)


def test_each_request_moves_the_epoch_on_and_changes_the_partitions() -> None:
    cache = sessions()
    session = begin(cache, A, 0, 1)
    assert session.epoch == 1
    again = at_once(cache.go_on(A, 1, keys(1, 2, 3), keys(0, 3)))
    assert again is session
    assert (list(session.partitions), session.epoch, cache.partition_count) == (keys(1, 2), 2, 2)
    with refused(ErrorCode.INVALID_SHARE_SESSION_EPOCH):
        at_once(cache.go_on(A, 1))
    with refused(ErrorCode.SHARE_SESSION_NOT_FOUND):
        at_once(cache.go_on(B, 1))


def test_epochs_begin_again_after_the_last_one() -> None:
    assert [next_epoch(epoch) for epoch in (0, 1, MAX_EPOCH, -1)] == [1, 2, 1, -1]


def test_added_partitions_and_errors_are_answered_once_more() -> None:
    cache = sessions()
    session = begin(cache, A, 0)
    at_once(cache.go_on(A, 1, keys(1)))
    first, added = keys(0, 1)
    assert not session.is_news(first, has_records=False, has_error=False)
    assert session.is_news(added, has_records=False, has_error=False)
    assert not session.is_news(added, has_records=False, has_error=False)
    assert session.is_news(added, has_records=False, has_error=True)
    assert session.is_news(added, has_records=False, has_error=False)
    assert session.is_news(first, has_records=True, has_error=False)
    assert list(session.partitions) == [added, first]


def test_there_is_room_for_so_many_sessions_and_partitions() -> None:
    cache = sessions(max_partitions=4)
    begin(cache, A, 0, 1)
    begin(cache, A, 0, 1, 2)  # in place of the first
    with refused(ErrorCode.SHARE_SESSION_LIMIT_REACHED):
        begin(cache, B, 0, 1)
    assert (len(cache), cache.partition_count) == (1, 3)
    begin(cache, B, 0)
    with refused(ErrorCode.SHARE_SESSION_LIMIT_REACHED):
        begin(cache, MemberKey("g", "c"))
    with refused(ErrorCode.SHARE_SESSION_LIMIT_REACHED):
        at_once(cache.go_on(B, 1, keys(1)))
    assert (len(cache), cache.partition_count) == (1, 3)


def test_a_connection_has_the_sessions_that_began_on_it() -> None:
    cache = sessions(3)
    begin(cache, A, 0, connection="one")
    begin(cache, B, 0, connection="one")
    begin(cache, A, 0, connection="two")
    assert (cache.of_connection("one"), cache.of_connection("two")) == ([B], [A])
    cache.remove(B)
    assert (cache.of_connection("one"), cache.has_any("g")) == ([], True)
    cache.remove(A)
    assert (cache.has_any("g"), cache.partition_count, len(cache)) == (False, 0, 0)
    assert cache.remove(A) is None


def test_each_request_begins_with_another_partition() -> None:
    assert [rotated(keys(0, 1, 2), epoch) for epoch in (0, 1, 2, 3)] == [
        keys(0, 1, 2),
        keys(1, 2, 0),
        keys(2, 0, 1),
        keys(0, 1, 2),
    ]
