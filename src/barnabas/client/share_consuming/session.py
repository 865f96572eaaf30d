"""A share session (KIP-932), as the member sees it: the partitions that a broker remembers, and the epoch of the next request.

Pure. Its one rule: requests of a session have epochs that follow each other, so only one is in flight. A request with epoch 0
begins a session anew, and the broker releases what the member had acquired in the old one.

>>> session, place, topic_id = ShareSession(), TopicPartition("orders", 0), Uuid(bytes(16))
>>> session.fetch({place: topic_id})
SessionPart(epoch=0, added={TopicPartition(topic='orders', partition=0): Uuid('AAAAAAAAAAAAAAAAAAAAAA')}, forgotten={})
>>> session.answered(ErrorCode.NONE)
>>> session.fetch({place: topic_id})
SessionPart(epoch=1, added={}, forgotten={})
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from barnabas.client.records import TopicPartition
from barnabas.wire import ErrorCode, Uuid

INITIAL_EPOCH = 0
FINAL_EPOCH = -1
MAX_EPOCH = 2**31 - 1

LOST = frozenset(
    {
        ErrorCode.SHARE_SESSION_NOT_FOUND,
        ErrorCode.INVALID_SHARE_SESSION_EPOCH,
        ErrorCode.SHARE_SESSION_LIMIT_REACHED,
    }
)
"""Errors of a response after which the session begins anew."""


class SessionPart(NamedTuple):
    """The session's part of a ShareFetch: its epoch, and partitions with the ids of their topics."""

    epoch: int
    added: Mapping[TopicPartition, Uuid]
    forgotten: Mapping[TopicPartition, Uuid]


class ShareSession:
    """The session of one member with one broker."""

    __slots__ = ("_known", "epoch")

    def __init__(self) -> None:
        self.epoch = INITIAL_EPOCH
        self._known: Mapping[TopicPartition, Uuid] = {}

    @property
    def is_open(self) -> bool:
        """Whether the broker has a session. Only then it takes acknowledgements without a fetch."""
        return self.epoch > INITIAL_EPOCH

    def fetch(self, wanted: Mapping[TopicPartition, Uuid]) -> SessionPart:
        """Return the session's part of a fetch of these partitions."""
        known, self._known = self._known, dict(wanted)
        if not self.is_open:
            return SessionPart(INITIAL_EPOCH, dict(wanted), {})
        added = {place: each for place, each in wanted.items() if known.get(place) != each}
        forgotten = {place: each for place, each in known.items() if wanted.get(place) != each}
        return SessionPart(self.epoch, added, forgotten)

    def answered(self, code: ErrorCode) -> None:
        """Follow the response to the last request."""
        if code in LOST:
            self.lost()
        else:
            self.epoch = 1 if self.epoch == MAX_EPOCH else self.epoch + 1

    def lost(self) -> None:
        """Begin anew with the next request: after an error, or because the last request was not answered."""
        self.epoch, self._known = INITIAL_EPOCH, {}
