"""Counters of records and bytes by topic, for metrics.

Its one rule: the sums over all topics never decrease: what a deleted topic had counted stays in them.
"""

from __future__ import annotations

from collections.abc import Iterator


class TopicTraffic:
    """What producers wrote to a topic on this broker and readers read from it, in this process."""

    __slots__ = (
        "bytes_in",
        "bytes_out",
        "bytes_rejected",
        "failed_fetch_requests",
        "failed_produce_requests",
        "failed_share_acknowledge_requests",
        "failed_share_fetch_requests",
        "fetch_requests",
        "messages_in",
        "produce_requests",
        "replication_bytes_in",
        "replication_bytes_out",
        "share_acknowledge_requests",
        "share_fetch_requests",
    )

    def __init__(self) -> None:
        self.messages_in = 0
        self.bytes_in = 0
        self.bytes_out = 0
        self.bytes_rejected = 0
        self.replication_bytes_in = 0
        self.replication_bytes_out = 0
        self.produce_requests = 0  # one for each partition of a request
        self.fetch_requests = 0  # one for each partition of a response
        self.failed_produce_requests = 0
        self.failed_fetch_requests = 0
        self.share_fetch_requests = 0  # one for each topic of a request
        self.share_acknowledge_requests = 0  # the same
        self.failed_share_fetch_requests = 0
        self.failed_share_acknowledge_requests = 0

    def add(self, other: TopicTraffic) -> None:
        for name in TopicTraffic.__slots__:
            setattr(self, name, getattr(self, name) + getattr(other, name))


class Traffic:
    """The counters of all topics that have a partition on this broker."""

    def __init__(self) -> None:
        self._by_topic: dict[str, TopicTraffic] = {}
        self.others = TopicTraffic()  # of deleted topics, and of requests for topics that are not here

    def of(self, topic: str) -> TopicTraffic:
        """Return the counters of a topic that is on this broker."""
        found = self._by_topic.get(topic)
        if found is None:
            found = self._by_topic[topic] = TopicTraffic()
        return found

    def get(self, topic: str) -> TopicTraffic:
        """Return the counters of a topic that a client named, which may not be here."""
        return self._by_topic.get(topic, self.others)

    def forget(self, topic: str) -> None:
        gone = self._by_topic.pop(topic, None)
        if gone is not None:
            self.others.add(gone)

    def __len__(self) -> int:
        return len(self._by_topic)

    def __iter__(self) -> Iterator[tuple[str, TopicTraffic]]:
        return iter(list(self._by_topic.items()))
