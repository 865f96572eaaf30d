"""The share sessions of a broker (KIP-932): which partitions a member of a share group fetches, without naming them again.

Its one rule: a request continues a session only in the session's epoch, which each request moves on by one. A session
belongs to the connection on which it began, and ends with it. Unlike fetch sessions, none is evicted: if there is no room,
a new one is refused.

Not done here: what a member has acquired. Whoever removes a session has to release that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

from barnabas.steps import Slices, stepwise
from barnabas.wire import ErrorCode, KafkaError, Uuid

INITIAL_EPOCH: Final = 0
FINAL_EPOCH: Final = -1
MAX_EPOCH: Final = 2**31 - 1


class MemberKey(NamedTuple):
    """A member of a share group."""

    group_id: str
    member_id: str


class PartitionKey(NamedTuple):
    """A partition of a topic, by the topic's id."""

    topic_id: Uuid
    partition: int


class Session:
    """The partitions of one member in the order in which they are read; the value says whether it must be answered.

    A partition that was added to the session, or had an error, is in the next response even without records.
    """

    __slots__ = ("connection", "epoch", "key", "partitions", "size")

    def __init__(self, key: MemberKey, connection: object) -> None:
        self.key = key
        self.connection = connection
        self.epoch = next_epoch(INITIAL_EPOCH)
        self.partitions: dict[PartitionKey, bool] = {}
        self.size = 0  # as it was last counted

    def is_news(self, key: PartitionKey, *, has_records: bool, has_error: bool) -> bool:
        """Note that a row is about to be sent, and return False if it says nothing new."""
        must_answer = self.partitions.get(key)
        if must_answer is None:  # forgotten meanwhile
            return has_records or has_error
        if has_records:  # others come first the next time
            del self.partitions[key]
        self.partitions[key] = has_error
        return has_records or has_error or must_answer


class Sessions:
    """At most `max_sessions` sessions, and at most `max_partitions` in all of them."""

    def __init__(self, max_sessions: Callable[[], int], max_partitions: Callable[[], int]) -> None:
        self._max_sessions = max_sessions
        self._max_partitions = max_partitions
        self.partition_count = 0
        self.ended_by_disconnect = 0
        self._sessions: dict[MemberKey, Session] = {}
        self._by_connection: dict[object, dict[MemberKey, None]] = {}
        self._members: dict[str, int] = {}  # the number of sessions of each group

    def __len__(self) -> int:
        return len(self._sessions)

    def __contains__(self, key: object) -> bool:
        return key in self._sessions

    def has_any(self, group_id: str) -> bool:
        """Whether any member of the group has a session."""
        return group_id in self._members

    def is_current(self, key: MemberKey, session: Session | None) -> bool:
        """Whether this is the session of a member now."""
        return session is not None and self._sessions.get(key) is session

    def get(self, key: MemberKey) -> Session:
        """Return the session of a member. Raises SHARE_SESSION_NOT_FOUND."""
        session = self._sessions.get(key)
        if session is None:
            raise KafkaError(ErrorCode.SHARE_SESSION_NOT_FOUND)
        return session

    def begin(self, key: MemberKey, partitions: Iterable[PartitionKey], connection: object) -> Slices[Session]:
        """Begin a session in place of the member's earlier one. Raises SHARE_SESSION_LIMIT_REACHED."""
        self.remove(key)
        if len(self._sessions) >= self._max_sessions():
            raise KafkaError(ErrorCode.SHARE_SESSION_LIMIT_REACHED)
        session = self._sessions[key] = Session(key, connection)
        self._by_connection.setdefault(connection, {})[key] = None
        self._members[key.group_id] = self._members.get(key.group_id, 0) + 1
        yield from self._add(session, partitions, must_answer=False)
        return session

    def go_on(
        self,
        key: MemberKey,
        epoch: int,
        added: Iterable[PartitionKey] = (),
        forgotten: Iterable[PartitionKey] = (),
    ) -> Slices[Session]:
        """Continue a session, and change its partitions.

        Raises SHARE_SESSION_NOT_FOUND, INVALID_SHARE_SESSION_EPOCH if it is in another epoch, and
        SHARE_SESSION_LIMIT_REACHED if there is no room for its partitions. Then the session has ended.
        """
        session = self.get(key)
        if session.epoch != epoch:
            raise KafkaError(ErrorCode.INVALID_SHARE_SESSION_EPOCH)
        session.epoch = next_epoch(epoch)
        yield from self._add(session, added, must_answer=True)
        for some in stepwise(forgotten):
            for each in some:
                session.partitions.pop(each, None)
            yield
        self._count(session)
        return session

    def remove(self, key: MemberKey) -> Session | None:
        """Remove the session of a member, and return it."""
        session = self._sessions.pop(key, None)
        if session is None:
            return None
        self.partition_count -= session.size
        session.size = 0
        of_connection = self._by_connection[session.connection]
        del of_connection[key]
        if not of_connection:
            del self._by_connection[session.connection]
        self._members[key.group_id] -= 1
        if not self._members[key.group_id]:
            del self._members[key.group_id]
        return session

    def of_connection(self, connection: object) -> list[MemberKey]:
        """Return the members whose sessions began on a connection."""
        return list(self._by_connection.get(connection, ()))

    def all(self) -> list[MemberKey]:
        return list(self._sessions)

    def _add(self, session: Session, partitions: Iterable[PartitionKey], *, must_answer: bool) -> Slices[None]:
        self._count(session)
        for some in stepwise(partitions):
            for each in some:
                session.partitions.setdefault(each, must_answer)
            self._count(session)
            if self.partition_count > self._max_partitions():
                self.remove(session.key)
                raise KafkaError(ErrorCode.SHARE_SESSION_LIMIT_REACHED)
            yield

    def _count(self, session: Session) -> None:
        if self.is_current(session.key, session):
            self.partition_count += len(session.partitions) - session.size
            session.size = len(session.partitions)


def next_epoch(epoch: int) -> int:
    """Return the epoch of the request after one in this epoch."""
    if epoch < 0:
        return FINAL_EPOCH
    return 1 if epoch == MAX_EPOCH else epoch + 1


def rotated(partitions: list[PartitionKey], epoch: int) -> list[PartitionKey]:
    """Return the partitions so that each request of a session begins with another one."""
    if len(partitions) < 2 or epoch < 1:
        return partitions
    at = epoch % len(partitions)
    return partitions[at:] + partitions[:at]
