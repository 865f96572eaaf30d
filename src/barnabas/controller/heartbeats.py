"""The soft state of the active controller: when each broker was last heard of, and how far it has read.

The one rule: nothing here is in the log. It is lost with leadership, and a new leader begins with `Heartbeats.started`, in
which every broker that may serve has just been heard of. Which records a change of state needs is not decided here.
"""

from __future__ import annotations

from collections.abc import MutableMapping
from enum import Enum
from types import MappingProxyType
from typing import Any, Final, NamedTuple, cast

from barnabas.metadata.brokers import Broker
from barnabas.metadata.image import MetadataImage

_NEVER: Final = -1
_FURTHEST: Final = (1 << 63) - 1


class BrokerState(Enum):
    """What the controller lets a broker do."""

    FENCED = "fenced"
    UNFENCED = "unfenced"
    CONTROLLED_SHUTDOWN = "controlled shutdown"
    SHUTDOWN_NOW = "shutdown now"

    @property
    def is_fenced(self) -> bool:
        return self in (BrokerState.FENCED, BrokerState.SHUTDOWN_NOW)


class Session(NamedTuple):
    """One registration of a broker, as far as the log does not tell."""

    epoch: int
    registration_offset: int
    """Where its registration is in the log, or later: before it has read this far, a broker may not serve."""
    contact_ms: int | None = None
    """None until the first heartbeat."""
    metadata_offset: int = _NEVER
    shutdown_offset: int = _NEVER
    """Where the log must be read to by the others before the broker may go; set while it shuts down."""

    @property
    def is_shutting_down(self) -> bool:
        return self.shutdown_offset >= 0


class Heartbeats:
    """The sessions of brokers by id. A session whose epoch is not that of the registration counts for nothing."""

    def __init__(self, sessions: MutableMapping[int, Session] | None = None) -> None:
        self.sessions: MutableMapping[int, Session] = {} if sessions is None else sessions

    @classmethod
    def started(cls, image: MetadataImage, monotonic_ms: int) -> Heartbeats:
        """What a new leader knows: brokers that may serve get a whole session timeout to show themselves."""
        return cls(
            {
                broker_id: Session(broker.epoch, image.offset, None if broker.fenced else monotonic_ms)
                for broker_id, broker in image.brokers.items()
            }
        )

    def session(self, broker: Broker) -> Session:
        """The session of a registration; one that nothing is known of begins at the registration's epoch."""
        known = self.sessions.get(broker.broker_id)
        return known if known is not None and known.epoch == broker.epoch else Session(broker.epoch, broker.epoch)

    def has_valid_session(self, broker: Broker, monotonic_ms: int, timeout_ms: int) -> bool:
        contact_ms = self.session(broker).contact_ms
        return contact_ms is not None and contact_ms + timeout_ms >= monotonic_ms

    def lowest_active_offset(self, image: MetadataImage) -> int:
        """How far all brokers that serve have read, without those that are shutting down."""
        sessions = (self.session(broker) for broker in image.brokers.values() if not broker.fenced)
        return min((s.metadata_offset for s in sessions if not s.is_shutting_down), default=_FURTHEST)

    def expired(self, monotonic_ms: int, timeout_ms: int) -> tuple[int, Session] | None:
        """A broker that was silent for too long, the one that was so for longest first."""
        silent = [
            (session.contact_ms, broker_id)
            for broker_id, session in self.sessions.items()
            if session.contact_ms is not None and session.contact_ms + timeout_ms < monotonic_ms
        ]
        if not silent:
            return None
        _, broker_id = min(silent)
        return broker_id, self.sessions[broker_id]

    # --- what has happened; decisions call these last, when nothing can fail any more

    def registered(self, broker_id: int, epoch: int, offset: int) -> None:
        """A registration, new or amended, is written at this offset."""
        known = self.sessions.get(broker_id)
        contact_ms = known.contact_ms if known is not None and known.epoch == epoch else None
        self.sessions[broker_id] = Session(epoch, offset, contact_ms)

    def touched(self, broker: Broker, state: BrokerState, metadata_offset: int, end_offset: int, now_ms: int) -> None:
        """A heartbeat has come from a broker that is in this state now; the log ends at `end_offset` with its answer."""
        session = self.session(broker)
        shutdown_offset = _NEVER if state.is_fenced else session.shutdown_offset
        if state is BrokerState.CONTROLLED_SHUTDOWN and shutdown_offset < 0:
            shutdown_offset = end_offset
        self.sessions[broker.broker_id] = session._replace(
            contact_ms=now_ms, metadata_offset=metadata_offset, shutdown_offset=shutdown_offset
        )

    def forget(self, broker_id: int) -> None:
        """Stop waiting for a broker until it is heard of again."""
        session = self.sessions.get(broker_id)
        if session is not None:
            self.sessions[broker_id] = session._replace(contact_ms=None, shutdown_offset=_NEVER)


NO_HEARTBEATS: Final = Heartbeats(cast(Any, MappingProxyType({})))
"""For situations without brokers that come and go; whoever tries to note something fails."""


def next_state(
    heartbeats: Heartbeats,
    image: MetadataImage,
    broker: Broker,
    metadata_offset: int,
    want_fence: bool,
    want_stop: bool,
) -> tuple[BrokerState, BrokerState]:
    """The state a broker is in, and the one that its heartbeat brings it to."""
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
