"""The protocols (assignors) of a classic group: the common ones, the selected one, and the subscribed topics."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable

from barnabas import wire
from barnabas.config.hash_order import hash_order
from barnabas.groups.classic.member import ClassicMember
from barnabas.groups.classic.requests import Protocols
from barnabas.wire import MalformedError
from barnabas.wire.messages.consumer_protocol_subscription import ConsumerProtocolSubscription

_log = logging.getLogger(__name__)

CONSUMER_PROTOCOL = "consumer"
_VERSION_SIZE = 2


class SupportedProtocols:
    """Number of members that support each protocol."""

    __slots__ = ("counts",)

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}

    def add(self, protocols: Protocols) -> None:
        """Count the protocols of a member that joined."""
        self._count(protocols, 1)

    def remove(self, protocols: Protocols) -> None:
        """Stop counting the protocols of a member."""
        self._count(protocols, -1)

    def _count(self, protocols: Protocols, by: int) -> None:
        for name, _ in protocols:
            self.counts[name] = self.counts.get(name, 0) + by

    def has_common(self, protocols: Protocols, member_count: int) -> bool:
        """Whether all members support one of these protocols."""
        return any(self.counts.get(name, 0) == member_count for name, _ in protocols)

    def select(self, members: Collection[ClassicMember]) -> str:
        """Return the protocol that gets the most votes among those that all members support."""
        candidates = {name for name, count in self.counts.items() if count == len(members)}
        votes: dict[str, int] = {}
        for member in members:
            choice = member.vote(candidates)
            votes[choice] = votes.get(choice, 0) + 1
        return max(hash_order(votes), key=votes.__getitem__)


def subscribed_topics(
    group_id: str, protocol_name: str | None, members: Iterable[ClassicMember]
) -> frozenset[str] | None:
    """Return the topics that members of a group of consumers subscribe to, or None if a subscription cannot be read."""
    topics: set[str] = set()
    try:
        for member in members:
            metadata = member.metadata(protocol_name)
            # Two bytes hold the version; every later version starts with the fields of version 0.
            topics.update(wire.decode_from(ConsumerProtocolSubscription, 0, metadata, _VERSION_SIZE)[0].topics)
    except MalformedError as error:
        _log.warning("group %s: the subscription of a member cannot be read: %s", group_id, error)
        return None
    return frozenset(topics)
