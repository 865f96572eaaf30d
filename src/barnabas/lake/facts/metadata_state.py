"""The state that metadata facts are read from: a draft of the image that is never finished, and values that no image has.

Its one rule: only replay changes the draft. This module adds lookups, and restoring from facts.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from barnabas.lake.facts.metadata_kinds import LeaderEpoch, ProducerIdBlock, Voter
from barnabas.metadata.acls import Acls, AclsDraft
from barnabas.metadata.configs import ConfigResource
from barnabas.metadata.image import EMPTY_IMAGE, Draft
from barnabas.metadata.pmap import PMap
from barnabas.metadata.topics import Partition, TopicDraft, Topics, TopicsDraft
from barnabas.security.acl import AclEntry
from barnabas.wire.primitives import Uuid

_SHARED: Final = 200_000


class _TopicsState(TopicsDraft):
    """A draft with lookups, without an image below it, so that it forgets removed topics."""

    __slots__ = ()

    def get(self, topic_id: Uuid) -> TopicDraft | None:
        return self._topics.get(topic_id)

    def named(self, name: str) -> TopicDraft | None:
        topic_id = self._ids.get(name)
        return None if topic_id is None else self._topics.get(topic_id)

    def remove(self, topic_id: Uuid) -> str:
        name = super().remove(topic_id)
        del self._topics[topic_id]
        return name

    def share(self, partition: Partition) -> Partition:
        return self.intern_partition(partition)

    def forget_shared(self) -> None:
        """Drop the shared values if there are too many: they only save memory."""
        self._changed_names.clear()
        for shared in (self._interned, self._partitions):
            if len(shared) > _SHARED:
                shared.clear()


class _AclsState(AclsDraft):
    __slots__ = ()

    def get(self, acl_id: Uuid) -> AclEntry | None:
        return self._by_id.get(acl_id)


class MetadataState:
    """The current state. `topics` and `acls` are those of the draft."""

    def __init__(self) -> None:
        self.draft = Draft(EMPTY_IMAGE)
        self.topics = self.draft.topics = _TopicsState(Topics())
        self.acls = self.draft.acls = _AclsState(Acls())
        self.names: dict[Uuid, str] = {}
        """The names of the topics whose settings are in this shard."""
        self.voters: dict[tuple[int, Uuid], Voter] = {}
        self.producer_ids: ProducerIdBlock | None = None
        self.leader: LeaderEpoch | None = None
        draft = self.draft
        self._get = {
            "partitions": self._partition,
            "topics": self._topic_name,
            "configs": self._config,
            "acls": self.acls.get,
            "brokers": draft.brokers.get,
            "controllers": draft.controllers.get,
            "features": draft.features.get,
            "quotas": self._quota,
            "users": draft.scram.get,
            "tokens": draft.tokens.get,
            "producer_ids": lambda key: self.producer_ids,
            "voters": self._voter,
            "leader_epochs": lambda key: self.leader,
        }

    def current(self, kind: str, key: Any) -> Any:
        """Return the value of a fact, or None."""
        return self._get[kind](key)  # type: ignore[operator]

    def _partition(self, key: tuple[Uuid, int]) -> Partition | None:
        topic = self.topics.get(key[0])
        return None if topic is None else topic.get(key[1])

    def _topic_name(self, key: Uuid) -> str | None:
        topic = self.topics.get(key)
        return None if topic is None else topic.name

    def _config(self, key: tuple[int, str, str]) -> str | None:
        config = self.draft.configs.get(ConfigResource(key[0], key[1]))
        return None if config is None else config.get(key[2])

    def _quota(self, key: tuple[Any, str]) -> float | None:
        values = self.draft.quotas.get(key[0])
        return None if values is None else values.get(key[1])

    def _voter(self, key: tuple[int, Uuid]) -> Voter | None:
        return self.voters.get(key)

    def keys(self, kind: str) -> Iterable[Any]:
        """Return the keys of all facts of a kind, and of some that have ended."""
        draft = self.draft
        match kind:
            case "topics":
                return [topic.topic_id for topic in self.topics.find_all()]
            case "partitions":
                return [
                    (topic.topic_id, index)
                    for topic in self.topics.find_all()
                    for index in (*range(len(topic.partitions)), *(topic.early or ()))
                ]
            case "configs":
                return [(*resource, n) for resource in draft.configs.touched for n in draft.configs.get(resource) or ()]
            case "quotas":
                return [(entity, n) for entity in draft.quotas.touched for n in draft.quotas.get(entity) or ()]
            case "voters":
                return self.voters
            case "producer_ids" | "leader_epochs":
                return [()]
            case _:
                part = {"users": "scram"}.get(kind, kind)
                return set(getattr(draft, part).touched)

    def put(self, kind: str, key: Any, value: Any, row: tuple[Any, ...]) -> Any:
        """Restore a fact, and return its value as stored here."""
        draft = self.draft
        match kind:
            case "topics":
                self._known_topic(key, value)
            case "partitions":
                topic = self._known_topic(key[0], row[1])
                value = self.topics.share(value)
                self.topics.put(topic, key[1], value)
            case "configs":
                resource = ConfigResource(key[0], key[1])
                draft.configs.set(resource, (draft.configs.get(resource) or PMap()).set(key[2], value))
            case "quotas":
                draft.quotas.set(key[0], (draft.quotas.get(key[0]) or PMap()).set(key[1], value))
            case "acls":
                self.acls.add(key, value)
            case "producer_ids":
                self.producer_ids = value
            case "voters":
                self.voters[key] = value
            case "leader_epochs":
                self.leader = value
            case _:
                getattr(draft, {"users": "scram"}.get(kind, kind)).set(key, value)
        return value

    def _known_topic(self, topic_id: Uuid, name: str) -> TopicDraft:
        """Return a topic, created if needed: a partition may come before its topic."""
        if self.topics.get(topic_id) is None:
            self.topics.create(name, topic_id)
        return self.topics.find(topic_id)

    def forget_shared(self) -> None:
        self.topics.forget_shared()
