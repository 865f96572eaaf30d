"""A fetch session (KIP-227), as the fetching side sees it: the partitions that a broker remembers, and the next request.

Consumers and followers use it. Pure.

Its one rule: after each request, the broker remembers exactly the partitions that the fetching side wants. A full request
lists all of them. An incremental request lists only partitions that are new or whose offset, leader epoch or topic id
changed, and those to forget. After an error, or if a request was not answered, the next request is full: it closes the
session and asks for a new one.

>>> session, place = FetchSession(), TopicPartition("orders", 0)
>>> first = session.request({place: Wanted(fetch_offset=5)}, uses_ids=False)
>>> first.session_id, first.epoch, list(first.listed)
(0, 0, [TopicPartition(topic='orders', partition=0)])
>>> session.answered(ErrorCode.NONE, 77)
>>> session.request({place: Wanted(fetch_offset=5)}, uses_ids=False)
SessionRequest(session_id=77, epoch=1, listed={}, forgotten=[])
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from barnabas.client.records import TopicPartition
from barnabas.wire import ZERO_UUID, ErrorCode, Uuid

FIRST_WITH_SESSIONS = 7  # version of Fetch
FIRST_WITH_TOPIC_IDS = 13  # since this version of Fetch, topics are identified by id
NO_SESSION = 0
INITIAL_EPOCH = 0
FINAL_EPOCH = -1
MAX_EPOCH = 2**31 - 1

SESSION_ERRORS = frozenset(
    {
        ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
        ErrorCode.INVALID_FETCH_SESSION_EPOCH,
        ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
    }
)
"""Errors of a whole response that a full request solves."""


class Wanted(NamedTuple):
    """The place in a partition from which to fetch."""

    fetch_offset: int
    leader_epoch: int = -1
    topic_id: Uuid = ZERO_UUID
    last_fetched_epoch: int = -1  # this and the next only for followers
    log_start_offset: int = -1


class SessionRequest(NamedTuple):
    """The session's part of a request: the partitions to list, and those to forget, each with its topic id."""

    session_id: int
    epoch: int
    listed: Mapping[TopicPartition, Wanted]
    forgotten: list[tuple[TopicPartition, Uuid]]

    @property
    def is_full(self) -> bool:
        return self.epoch in (INITIAL_EPOCH, FINAL_EPOCH)


class FetchSession:
    """The session of one consumer or follower with one broker."""

    __slots__ = ("_epoch", "_id", "_is_answered", "_known", "_uses_ids")

    def __init__(self) -> None:
        self._id = NO_SESSION
        self._epoch = INITIAL_EPOCH
        self._known: Mapping[TopicPartition, Wanted] = {}
        self._uses_ids = False
        self._is_answered = True

    @property
    def is_open(self) -> bool:
        """Whether the broker may remember a session."""
        return self._id != NO_SESSION

    def request(self, wanted: Mapping[TopicPartition, Wanted], *, uses_ids: bool) -> SessionRequest:
        """Return the next request for these partitions. `uses_ids` is True if it identifies topics by id."""
        if not uses_ids:
            wanted = {place: each._replace(topic_id=ZERO_UUID) for place, each in wanted.items()}
        if not self._is_answered or uses_ids != self._uses_ids:
            self._epoch = INITIAL_EPOCH
        known, self._known = self._known, wanted
        self._uses_ids, self._is_answered = uses_ids, False
        if self._epoch == INITIAL_EPOCH:
            return SessionRequest(self._id, INITIAL_EPOCH, wanted, [])
        listed = {place: each for place, each in wanted.items() if known.get(place) != each}
        forgotten = [
            (place, before.topic_id)
            for place, before in known.items()
            if (now := wanted.get(place)) is None or now.topic_id != before.topic_id
        ]
        return SessionRequest(self._id, self._epoch, listed, forgotten)

    def answered(self, code: ErrorCode, session_id: int) -> None:
        """Follow the response to the last request: its error, and the session id in it, 0 if there is no session."""
        was_full = self._epoch == INITIAL_EPOCH
        self._is_answered = True
        if code is ErrorCode.FETCH_SESSION_ID_NOT_FOUND:
            self._id, self._epoch = NO_SESSION, INITIAL_EPOCH
        elif code is not ErrorCode.NONE:
            self._epoch = INITIAL_EPOCH
        elif session_id == NO_SESSION:  # the broker has no room for the session, or has closed it
            self._id, self._epoch = NO_SESSION, INITIAL_EPOCH
        elif was_full:
            self._id, self._epoch = session_id, 1
        elif session_id != self._id:
            self._epoch = INITIAL_EPOCH
        else:
            self._epoch = 1 if self._epoch == MAX_EPOCH else self._epoch + 1

    def close(self) -> SessionRequest | None:
        """Return the request that closes the session, or None if there is none."""
        session_id, self._id, self._epoch = self._id, NO_SESSION, INITIAL_EPOCH
        self._known, self._is_answered = {}, True
        return None if session_id == NO_SESSION else SessionRequest(session_id, FINAL_EPOCH, {}, [])
