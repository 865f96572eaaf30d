"""Fetch sessions (KIP-227): a fetcher lists its partitions once, and then only sends changes.

Its one rule: an incremental response contains a partition only if it has something new for the fetcher: records, an
error, another high watermark or log start offset, or a diverging epoch. A partition that returned records moves to the
end, so that a large partition does not starve the small ones. A session has an id, and each of its requests has the
next epoch.

Whatever walks partitions is a generator, see `slices`. A request that comes for the same session meanwhile is refused by
its epoch, which changes first.

This module reads no log, clock or image: times and topic names are passed in. Kafka splits its cache into eight parts
that evict on their own; this is one cache of the same size with the same eviction rules.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable
from random import Random
from typing import TYPE_CHECKING, NamedTuple, Protocol

from barnabas.slices import Slices
from barnabas.wire import ErrorCode, Uuid
from barnabas.wire.messages.fetch import FetchRequest, FetchResponse

if TYPE_CHECKING:
    from barnabas.replicas.partition import Partition

FIRST_WITH_TOPIC_IDS = 13  # since this Fetch version, topics are identified by id
NO_SESSION = 0
INITIAL_EPOCH = 0
FINAL_EPOCH = -1
MAX_EPOCH = MAX_SESSION_ID = 2**31 - 1
MIN_EVICTION_MS = 120_000
MAX_EVICTIONS = 8  # for one new session
UNLIMITED = 2**63 - 1
PAUSE_EVERY = 16  # partitions between two pauses

Key = tuple[str | Uuid, int]
NameOf = Callable[[Uuid], str | None]
PartitionData = FetchResponse.PartitionData


class Wanted:
    """A partition to fetch, with the high watermark and log start offset last sent to its fetcher.

    `log_start_offset` is the fetcher's own, `told_log_start_offset` that of the leader. `topic` is None while the id is
    unknown. `replica` caches the partition object for the reader.
    """

    __slots__ = (
        "current_leader_epoch",
        "fetch_offset",
        "last_fetched_epoch",
        "log_start_offset",
        "max_bytes",
        "partition",
        "replica",
        "told_high_watermark",
        "told_log_start_offset",
        "topic",
        "topic_id",
    )

    def __init__(self, topic: str | None, topic_id: Uuid, asked: FetchRequest.FetchPartition) -> None:
        self.topic = topic
        self.topic_id = topic_id
        self.partition = asked.partition
        self.told_high_watermark = self.told_log_start_offset = -1
        self.replica: Partition | None = None
        self.ask(asked)

    def ask(self, asked: FetchRequest.FetchPartition) -> None:
        """Update what the fetcher wants."""
        self.fetch_offset = asked.fetch_offset
        self.max_bytes = asked.partition_max_bytes
        self.current_leader_epoch = asked.current_leader_epoch
        self.last_fetched_epoch = asked.last_fetched_epoch
        self.log_start_offset = asked.log_start_offset

    def is_news(self, row: PartitionData) -> bool:
        """Whether the row contains something that the fetcher does not know."""
        return bool(
            row.records
            or row.high_watermark != self.told_high_watermark
            or row.log_start_offset != self.told_log_start_offset
            or row.error_code
            or row.preferred_read_replica != -1
            or row.diverging_epoch.epoch >= 0
        )

    def told(self, row: PartitionData) -> None:
        # After an error, send the partition again even if its high watermark did not change.
        self.told_high_watermark = -1 if row.error_code else row.high_watermark
        self.told_log_start_offset = row.log_start_offset


Rows = list[tuple[Wanted, PartitionData]]


class Answer(NamedTuple):
    """The content of a response; its rows are in order."""

    error_code: ErrorCode
    session_id: int
    rows: Rows


class Fetch(Protocol):
    """One request: the partitions to fetch, and the conversion of results to a response.

    Either `answer` or `throttled` is called, once.
    """

    partitions: Collection[Wanted]
    is_incremental: bool

    def answer(self, rows: Rows, now_ms: int) -> Slices[Answer]: ...

    def throttled(self) -> Answer:
        """Return the empty response to a fetcher above its quota. A session stays as it is, and none is created."""
        ...


class FetchSession:
    """The partitions of one fetcher, in the order in which they are read."""

    __slots__ = (
        "created_ms",
        "epoch",
        "id",
        "is_old",
        "is_privileged",
        "last_used_ms",
        "partitions",
        "size",
        "uses_ids",
    )

    def __init__(
        self, session_id: int, partitions: dict[Key, Wanted], now_ms: int, *, is_privileged: bool, uses_ids: bool
    ) -> None:
        self.id = session_id
        self.partitions = partitions
        self.is_privileged = is_privileged
        self.uses_ids = uses_ids
        self.created_ms = now_ms
        self.epoch = next_epoch(INITIAL_EPOCH)
        self.touch(now_ms)

    def touch(self, now_ms: int) -> None:
        """Update what eviction compares: time, size and age at the last use."""
        self.last_used_ms = now_ms
        self.size = len(self.partitions)
        self.is_old = now_ms - self.created_ms > MIN_EVICTION_MS

    @property
    def value(self) -> tuple[bool, int, int]:
        """The rank of a session: eviction removes the lowest."""
        return self.is_privileged, self.size, self.id


class FetchSessions:
    """The fetch sessions of a node, at most `max_sessions`, and at most `max_partitions` in all of them.

    A fetcher whose partitions do not fit gets no session, as in Kafka if there is no room for another one. It then lists
    its partitions in every request.
    """

    def __init__(self, max_sessions: int, random: Random, max_partitions: int = UNLIMITED) -> None:
        self.max_sessions = max_sessions
        self.max_partitions = max_partitions
        self.partition_count = 0
        self.evictions = 0
        self._random = random
        self._sessions: OrderedDict[int, FetchSession] = OrderedDict()  # least recently used first

    def __len__(self) -> int:
        return len(self._sessions)

    def topics_of(self, session_id: int) -> set[str]:
        """Return the names of the topics in a session, none if there is no such session."""
        session = self._sessions.get(session_id)
        return set() if session is None else {each.topic for each in session.partitions.values() if each.topic}

    def begin(
        self, request: FetchRequest, version: int, now_ms: int, name_of: NameOf, *, is_follower: bool
    ) -> Slices[Fetch]:
        """Start to serve a request. `name_of` returns the topic name of an id, or None."""
        epoch = request.session_epoch
        if epoch not in (INITIAL_EPOCH, FINAL_EPOCH):
            return (yield from self._go_on(request, version, now_ms, name_of))
        if request.session_id != NO_SESSION:
            self._remove(request.session_id)
        asked = yield from wanted_by(request, version, name_of)
        if epoch == FINAL_EPOCH:
            return SessionlessFetch(asked.values())
        return _FullFetch(self, asked, is_privileged=is_follower, uses_ids=version >= FIRST_WITH_TOPIC_IDS)

    def create(self, partitions: dict[Key, Wanted], now_ms: int, *, is_privileged: bool, uses_ids: bool) -> int:
        """Create a session and return its id, or NO_SESSION if the cache is full and nothing can be evicted."""
        count = len(partitions)
        if count > self.max_partitions:
            return NO_SESSION
        for _ in range(MAX_EVICTIONS):
            if len(self._sessions) < self.max_sessions and self.partition_count + count <= self.max_partitions:
                break
            if not self._evict(is_privileged, count, now_ms):
                return NO_SESSION
        else:
            return NO_SESSION
        session_id = NO_SESSION
        while session_id == NO_SESSION or session_id in self._sessions:
            session_id = self._random.randrange(1, MAX_SESSION_ID)
        self._sessions[session_id] = FetchSession(
            session_id, partitions, now_ms, is_privileged=is_privileged, uses_ids=uses_ids
        )
        self.partition_count += count
        return session_id

    def _remove(self, session_id: int) -> None:
        session = self._sessions.pop(session_id, None)
        if session is not None:
            self.partition_count -= session.size

    def _go_on(self, request: FetchRequest, version: int, now_ms: int, name_of: NameOf) -> Slices[Fetch]:
        session = self._sessions.get(request.session_id)
        if session is None:
            return SessionlessFetch((), ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
        if session.epoch != request.session_epoch:
            return SessionlessFetch((), ErrorCode.INVALID_FETCH_SESSION_EPOCH)
        if session.uses_ids != (version >= FIRST_WITH_TOPIC_IDS):
            return SessionlessFetch((), ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR)
        epoch = session.epoch = next_epoch(session.epoch)
        partitions = session.partitions
        asked: dict[Key, Wanted] = {}
        if request.topics:
            asked = yield from wanted_by(request, version, name_of, partitions)
        for number, key in enumerate(_forgotten_by(request, version), 1):
            partitions.pop(key, None)
            if number % PAUSE_EVERY == 0:
                yield
        is_kept = session.id in self._sessions  # unless it was evicted meanwhile
        if not partitions:
            self._remove(session.id)
            return SessionlessFetch(asked.values())
        if is_kept:
            added = len(partitions) - session.size
            if added > 0 and self.partition_count + added > self.max_partitions:
                self._remove(session.id)
                return SessionlessFetch(list(partitions.values()))
            self.partition_count += added
            self._sessions.move_to_end(session.id)
        session.touch(now_ms)
        wanted_now = list(partitions.values())
        if session.uses_ids:
            for number, wanted in enumerate(wanted_now, 1):
                if wanted.topic is None:
                    wanted.topic = name_of(wanted.topic_id)
                if number % PAUSE_EVERY == 0:
                    yield
        return _IncrementalFetch(session, epoch, wanted_now)

    def _evict(self, is_privileged: bool, size: int, now_ms: int) -> bool:
        """Make room by evicting an idle session, or the lowest one that the new session outranks.

        Return whether it worked.
        """
        if not self._sessions:
            return False
        oldest = next(iter(self._sessions.values()))
        if now_ms - oldest.last_used_ms <= MIN_EVICTION_MS:
            evictable = [
                session
                for session in self._sessions.values()
                if session.is_old or (is_privileged and not session.is_privileged)
            ]
            oldest = min(evictable, key=lambda session: session.value, default=None)  # type: ignore[assignment]
            if oldest is None or (is_privileged, size, 0) < oldest.value:
                return False
        self._remove(oldest.id)
        self.evictions += 1
        return True


class SessionlessFetch:
    """A request outside any session. A failed one has an error and no partitions."""

    is_incremental = False

    def __init__(self, partitions: Collection[Wanted], error_code: ErrorCode = ErrorCode.NONE) -> None:
        self.partitions = partitions
        self.error_code = error_code

    def answer(self, rows: Rows, now_ms: int) -> Slices[Answer]:
        yield from ()
        return Answer(self.error_code, NO_SESSION, rows)

    def throttled(self) -> Answer:
        return Answer(ErrorCode.NONE, NO_SESSION, [])  # without the error, as in Kafka


class _FullFetch:
    """A request that creates a session when it is answered, if there is room for it."""

    is_incremental = False

    def __init__(
        self, sessions: FetchSessions, asked: dict[Key, Wanted], *, is_privileged: bool, uses_ids: bool
    ) -> None:
        self.partitions: Collection[Wanted] = asked.values()
        self._sessions = sessions
        self._is_privileged = is_privileged
        self._uses_ids = uses_ids

    def answer(self, rows: Rows, now_ms: int) -> Slices[Answer]:
        remembered: dict[Key, Wanted] = {}
        for number, (wanted, row) in enumerate(rows, 1):
            if number % PAUSE_EVERY == 0:
                yield
            wanted.told(row)
            remembered[wanted.topic_id if self._uses_ids else wanted.topic or "", wanted.partition] = wanted
        session_id = self._sessions.create(
            remembered, now_ms, is_privileged=self._is_privileged, uses_ids=self._uses_ids
        )
        return Answer(ErrorCode.NONE, session_id, rows)

    def throttled(self) -> Answer:
        return Answer(ErrorCode.NONE, NO_SESSION, [])


class _IncrementalFetch:
    """A request that continues a session. `partitions` are those of the session after the request's changes."""

    is_incremental = True

    def __init__(self, session: FetchSession, epoch: int, partitions: Collection[Wanted]) -> None:
        self.partitions = partitions
        self._session = session
        self._epoch = epoch

    def answer(self, rows: Rows, now_ms: int) -> Slices[Answer]:
        """Return the response. The caller may already have left out rows that contain nothing new."""
        session = self._session
        if session.epoch != self._epoch:
            return self.throttled()  # it has nothing but the error
        news = []
        for number, (wanted, row) in enumerate(rows, 1):
            if number % PAUSE_EVERY == 0:
                yield
            if wanted.is_news(row):
                wanted.told(row)
                news.append((wanted, row))
                if row.records:
                    key = (wanted.topic_id if session.uses_ids else wanted.topic or "", wanted.partition)
                    if session.partitions.pop(key, None) is not None:  # it may be forgotten meanwhile
                        session.partitions[key] = wanted
        return Answer(ErrorCode.NONE, session.id, news)

    def throttled(self) -> Answer:
        session = self._session
        is_duplicate = session.epoch != self._epoch  # a duplicate of this request was answered meanwhile
        return Answer(ErrorCode.INVALID_FETCH_SESSION_EPOCH if is_duplicate else ErrorCode.NONE, session.id, [])


def next_epoch(epoch: int) -> int:
    if epoch < 0:
        return FINAL_EPOCH
    return 1 if epoch == MAX_EPOCH else epoch + 1


def wanted_by(
    request: FetchRequest, version: int, name_of: NameOf, known: dict[Key, Wanted] | None = None
) -> Slices[dict[Key, Wanted]]:
    """Return the partitions of a request, in its order. New ones are also added at the end of `known`.

    A partition listed twice keeps its first position and takes its last values.
    """
    uses_ids = version >= FIRST_WITH_TOPIC_IDS
    asked: dict[Key, Wanted] = {}
    remembered = asked if known is None else known
    count = 0
    for topic in request.topics:
        count += 1
        if count % PAUSE_EVERY == 0:
            yield
        name: str | Uuid = topic.topic_id if uses_ids else topic.topic
        shown = name_of(topic.topic_id) if uses_ids else topic.topic
        for partition in topic.partitions:
            key = (name, partition.partition)
            wanted = remembered.get(key)
            if wanted is None:
                wanted = remembered[key] = Wanted(shown, topic.topic_id, partition)
            else:
                wanted.ask(partition)
            asked[key] = wanted
            count += 1
            if count % PAUSE_EVERY == 0:
                yield
    return asked


def _forgotten_by(request: FetchRequest, version: int) -> Iterable[Key]:
    for topic in request.forgotten_topics_data:
        name: str | Uuid = topic.topic_id if version >= FIRST_WITH_TOPIC_IDS else topic.topic
        for partition in topic.partitions:
            yield name, partition
