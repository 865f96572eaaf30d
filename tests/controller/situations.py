"""Situations to decide in, and what becomes of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Any, TypeVar

from barnabas import wire
from barnabas.config import server
from barnabas.config.server_config import ServerConfig
from barnabas.controller.brokers import session_check_ms
from barnabas.controller.heartbeats import Heartbeats
from barnabas.controller.situation import Situation
from barnabas.metadata.image import EMPTY_IMAGE, MetadataImage, Provenance
from barnabas.metadata.replay import replay
from barnabas.metadata.topics import UNASSIGNED_DIR, Partition
from barnabas.replicated.decision import Result
from barnabas.steps import Slices, at_once, result_of
from barnabas.wire import Message, Uuid
from barnabas.wire.records.metadata import ConfigRecord, FeatureLevelRecord, PartitionRecord, TopicRecord
from tests.broker.harness import CLUSTER_ID, register_broker

R = TypeVar("R")

TOPIC = Uuid(b"t" * 16)


class Story:
    """A head image that decisions move on, with a clock that stands until it is told to go."""

    def __init__(
        self,
        records: Sequence[Message] = (),
        *,
        brokers: int = 4,
        metadata_version: int = 30,
        elr: bool = True,
        properties: Mapping[str, str] | None = None,
    ) -> None:
        levels = {"metadata.version": metadata_version, "eligible.leader.replicas.version": int(elr)}
        start: list[Message] = [FeatureLevelRecord(name=name, feature_level=level) for name, level in levels.items()]
        start += [register_broker(broker_id) for broker_id in range(1, brokers + 1)]
        self.config = server.load(None, dict(properties or {}))
        self.now_ms = 1_000_000
        self.random = Random(1)
        self.image: MetadataImage = EMPTY_IMAGE
        self.apply([*start, *records])
        self.heartbeats = Heartbeats.started(self.image, self.now_ms)
        self.last: list[tuple[Message, int]] = []

    @property
    def situation(self) -> Situation:
        image, now_ms = self.image, self.now_ms
        return Situation(image, self.config, now_ms, self.random, self.heartbeats, now_ms, CLUSTER_ID)

    def apply(self, records: Sequence[Message]) -> None:
        self.image = replay(self.image, records, Provenance(self.image.offset + len(records), 1, self.now_ms))

    def decide(self, decision: Callable[..., Result[R] | Slices[Result[R]]], *arguments: Any) -> R:
        """The response; the records, which must be ones that can be written, are applied and in `last`."""
        result = at_once(result_of(decision(self.situation, *arguments)))
        for record, version in result.records:
            assert wire.decode_record(wire.encode_record(record, version)) == (record, version)
        self.last = list(result.records)
        self.apply(self.written)
        return result.response

    @property
    def written(self) -> list[Message]:
        return [record for record, _ in self.last]

    def wait(self, duration_ms: int) -> None:
        """Let time pass in which the sessions of brokers are checked as often as they should be; nobody is fenced."""
        self.now_ms = pass_time(self.heartbeats, self.config, self.now_ms, duration_ms)

    def partition(self, index: int = 0, topic_id: Uuid = TOPIC) -> Partition:
        return self.image.topics.by_id[topic_id].partitions[index]


def pass_time(heartbeats: Heartbeats, config: ServerConfig, now_ms: int, duration_ms: int) -> int:
    """Note that sessions were checked on time until now plus a duration, and return that time."""
    interval_ms = session_check_ms(config)
    for checked_ms in range(now_ms + interval_ms, now_ms + duration_ms, interval_ms):
        heartbeats.checked(checked_ms, interval_ms)
    heartbeats.checked(now_ms + duration_ms, interval_ms)
    return now_ms + duration_ms


def topic(
    *partitions: PartitionRecord, name: str = "t", topic_id: Uuid = TOPIC, configs: Mapping[str, str] | None = None
) -> list[Message]:
    """A topic with its partitions, and its settings."""
    records: list[Message] = [TopicRecord(name=name, topic_id=topic_id)]
    for index, record in enumerate(partitions):
        record.partition_id, record.topic_id = index, topic_id
        records.append(record)
    for key, value in (configs or {}).items():
        records.append(ConfigRecord(resource_type=2, resource_name=name, name=key, value=value))
    return records


def partition(replicas: Sequence[int], isr: Sequence[int] | None = None, **fields: Any) -> PartitionRecord:
    """A partition that its first in-sync replica leads."""
    in_sync = list(replicas if isr is None else isr)
    fields = {"leader": in_sync[0] if in_sync else -1, "leader_epoch": 5, "partition_epoch": 7, **fields}
    fields.setdefault("directories", [UNASSIGNED_DIR] * len(replicas))
    return PartitionRecord(replicas=list(replicas), isr=in_sync, **fields)
