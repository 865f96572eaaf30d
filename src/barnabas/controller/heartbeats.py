"""The soft state of the active controller: the last heartbeat of each broker, and its metadata offset.

The one rule: nothing here is in the log. It is lost with leadership; a new leader starts with `Heartbeats.started`, in
which every unfenced broker has just sent a heartbeat. The records for a state change are not decided here.

A session measures the silence of a broker, not the slowness of the controller. A heartbeat counts from when it arrives, as
in Kafka. While it waits for an answer, because the disk is slow or large changes are made first, the broker is not silent:
it sends the next one after the answer. If the controller was late itself, it may not have read what brokers sent.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import MutableMapping
from enum import Enum
from types import MappingProxyType
from typing import Any, Final, NamedTuple, cast

from barnabas.metadata.brokers import Broker
from barnabas.metadata.image import MetadataImage

_NEVER: Final = -1
_FURTHEST: Final = (1 << 63) - 1


class BrokerState(Enum):
    """The state of a broker as the controller sees it."""

    FENCED = "fenced"
    UNFENCED = "unfenced"
    CONTROLLED_SHUTDOWN = "controlled shutdown"
    SHUTDOWN_NOW = "shutdown now"

    @property
    def is_fenced(self) -> bool:
        return self in (BrokerState.FENCED, BrokerState.SHUTDOWN_NOW)


class Session(NamedTuple):
    """Soft state of one broker registration."""

    epoch: int
    registration_offset: int
    """The offset of its registration, or later. A broker stays fenced until it has read up to here."""
    contact_ms: int | None = None
    """None until the first heartbeat."""
    metadata_offset: int = _NEVER
    shutdown_offset: int = _NEVER
    """The offset that all other brokers must have read before the broker may stop; set during controlled shutdown."""

    @property
    def is_shutting_down(self) -> bool:
        return self.shutdown_offset >= 0


class Heartbeats:
    """Broker sessions by id. A session whose epoch differs from that of the registration is ignored."""

    def __init__(self, sessions: MutableMapping[int, Session] | None = None, checked_ms: int | None = None) -> None:
        self.sessions: MutableMapping[int, Session] = {} if sessions is None else sessions
        self._checked_ms = checked_ms
        self._unanswered: Counter[tuple[int, int]] = Counter()

    @classmethod
    def started(cls, image: MetadataImage, monotonic_ms: int) -> Heartbeats:
        """Return the initial state of a new leader: unfenced brokers get a full session timeout."""
        return cls(
            {
                broker_id: Session(broker.epoch, image.offset, None if broker.fenced else monotonic_ms)
                for broker_id, broker in image.brokers.items()
            },
            monotonic_ms,
        )

    def session(self, broker: Broker) -> Session:
        """Return the session of a registration. An unknown one starts at the registration's epoch."""
        known = self.sessions.get(broker.broker_id)
        return known if known is not None and known.epoch == broker.epoch else Session(broker.epoch, broker.epoch)

    def has_valid_session(self, broker: Broker, monotonic_ms: int, timeout_ms: int) -> bool:
        contact_ms = self.session(broker).contact_ms
        return contact_ms is not None and contact_ms + timeout_ms >= monotonic_ms

    def lowest_active_offset(self, image: MetadataImage) -> int:
        """Return the lowest metadata offset of all unfenced brokers that are not shutting down."""
        sessions = (self.session(broker) for broker in image.brokers.values() if not broker.fenced)
        return min((s.metadata_offset for s in sessions if not s.is_shutting_down), default=_FURTHEST)

    def expired(self, monotonic_ms: int, timeout_ms: int) -> tuple[int, Session] | None:
        """Return the broker whose session expired first, or None. One that waits for an answer is not silent."""
        silent = self._longest_silent()
        if silent is None or silent[0] + timeout_ms >= monotonic_ms:
            return None
        return silent[1], self.sessions[silent[1]]

    def next_expiry_ms(self, timeout_ms: int) -> int | None:
        """Return when the next session expires if its broker stays silent, or None if none can."""
        silent = self._longest_silent()
        return None if silent is None else silent[0] + timeout_ms + 1

    def _longest_silent(self) -> tuple[int, int] | None:
        """Return the time of the last contact, and the id, of the broker that has been silent for longest."""
        contacts = (
            (session.contact_ms, broker_id)
            for broker_id, session in self.sessions.items()
            if session.contact_ms is not None and not self._unanswered[broker_id, session.epoch]
        )
        return min(contacts, default=None)

    # --- updates when a heartbeat is received and answered, and when sessions are checked

    def arrived(self, broker_id: int, epoch: int, monotonic_ms: int) -> None:
        """Record that a heartbeat was received. It must be `answered`, or `dropped` if it cannot be."""
        self._unanswered[broker_id, epoch] += 1
        self._contact(broker_id, epoch, monotonic_ms)

    def answered(self, broker_id: int, epoch: int, monotonic_ms: int) -> None:
        """Record that a heartbeat is answered. The broker sends the next one after this."""
        self.dropped(broker_id, epoch)
        self._contact(broker_id, epoch, monotonic_ms)

    def dropped(self, broker_id: int, epoch: int) -> None:
        """Record that nobody waits for the answer to a heartbeat any more."""
        self._unanswered[broker_id, epoch] -= 1
        if not self._unanswered[broker_id, epoch]:
            del self._unanswered[broker_id, epoch]

    def _contact(self, broker_id: int, epoch: int, monotonic_ms: int) -> None:
        session = self.sessions.get(broker_id)
        if session is not None and session.epoch == epoch and session.contact_ms is not None:
            self.sessions[broker_id] = session._replace(contact_ms=monotonic_ms)

    def checked(self, monotonic_ms: int, interval_ms: int) -> None:
        """Record that sessions are checked now. If a whole interval was missed, no broker is blamed for that time."""
        last_ms, self._checked_ms = self._checked_ms, monotonic_ms
        late_ms = 0 if last_ms is None else monotonic_ms - last_ms - interval_ms
        if late_ms <= interval_ms:
            return
        for broker_id, session in self.sessions.items():
            if session.contact_ms is not None:
                contact_ms = min(session.contact_ms + late_ms, monotonic_ms)
                self.sessions[broker_id] = session._replace(contact_ms=contact_ms)

    # --- updates; decisions call these last, after everything that can fail

    def registered(self, broker_id: int, epoch: int, offset: int) -> None:
        """Record that a registration, new or updated, is written at this offset."""
        known = self.sessions.get(broker_id)
        contact_ms = known.contact_ms if known is not None and known.epoch == epoch else None
        self.sessions[broker_id] = Session(epoch, offset, contact_ms)

    def touched(self, broker: Broker, state: BrokerState, metadata_offset: int, end_offset: int, now_ms: int) -> None:
        """Record a heartbeat of a broker, its new state, and the end of the log after the response's records."""
        session = self.session(broker)
        shutdown_offset = _NEVER if state.is_fenced else session.shutdown_offset
        if state is BrokerState.CONTROLLED_SHUTDOWN and shutdown_offset < 0:
            shutdown_offset = end_offset
        self.sessions[broker.broker_id] = session._replace(
            contact_ms=now_ms, metadata_offset=metadata_offset, shutdown_offset=shutdown_offset
        )

    def forget(self, broker_id: int) -> None:
        """Clear the last contact of a broker, so that it cannot expire until its next heartbeat."""
        session = self.sessions.get(broker_id)
        if session is not None:
            self.sessions[broker_id] = session._replace(contact_ms=None, shutdown_offset=_NEVER)


NO_HEARTBEATS: Final = Heartbeats(cast(Any, MappingProxyType({})))
"""For decisions that involve no brokers. Read-only: updates raise an error."""


def next_state(
    heartbeats: Heartbeats,
    image: MetadataImage,
    broker: Broker,
    metadata_offset: int,
    want_fence: bool,
    want_stop: bool,
) -> tuple[BrokerState, BrokerState]:
    """Return the current state of a broker, and the state that its heartbeat leads to."""
    session = heartbeats.session(broker)
    leads = image.topics.counts.get(broker.broker_id, 0) > 0
    if session.is_shutting_down:
        current = BrokerState.CONTROLLED_SHUTDOWN
        others_know = session.shutdown_offset <= heartbeats.lowest_active_offset(image)
        return current, BrokerState.SHUTDOWN_NOW if others_know and not leads else current
    if broker.fenced:
        current = BrokerState.FENCED
        if want_stop:
            return current, BrokerState.SHUTDOWN_NOW
        is_ready = not want_fence and metadata_offset >= session.registration_offset
        return current, BrokerState.UNFENCED if is_ready else current
    current = BrokerState.UNFENCED
    if want_stop:
        return current, BrokerState.CONTROLLED_SHUTDOWN if leads and not want_fence else BrokerState.SHUTDOWN_NOW
    return current, BrokerState.FENCED if want_fence else current
