"""The group, transaction and share coordinators of a node, its share partitions, and the scheduler that they use."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Any

from barnabas.broker.surroundings import Surroundings
from barnabas.config.server_config import ServerConfig
from barnabas.groups.coordinator import GroupCoordinator
from barnabas.groups.shards import TOPIC as OFFSETS_TOPIC
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.topics import touched_topics
from barnabas.replicas.partition import Partition
from barnabas.replicas.replicas import Replicas
from barnabas.replicas.share.share_partitions import SharePartitions
from barnabas.replicated.scheduler import Scheduler
from barnabas.share_state.coordinator import DeleteRecords, ShareCoordinator
from barnabas.share_state.persister import Persister
from barnabas.share_state.state import TOPIC as SHARE_STATE_TOPIC
from barnabas.steps import Slices
from barnabas.transactions.coordinator import TransactionCoordinator
from barnabas.transactions.markers import AskBroker, WriteMarkers
from barnabas.transactions.producer_ids import Allocate, ProducerIds
from barnabas.transactions.state import TOPIC as TRANSACTIONS_TOPIC
from barnabas.wire.records.metadata import RemoveTopicRecord


class LoopScheduler:
    """The node's wall clock and its timers. Implements `replicated.scheduler.Scheduler`."""

    def __init__(self, surroundings: Surroundings) -> None:
        self.now_ms = surroundings.now_ms
        self.call_later = surroundings.call_later


class Coordinators:
    """The three coordinators and the share partitions. `led` and `image_changed` pass on what changes in the cluster."""

    def __init__(
        self,
        config: Callable[[], ServerConfig],
        image: Callable[[], MetadataImage],
        scheduler: Scheduler,
        monotonic_ms: Callable[[], int],
        random: Random,
        allocate_producer_ids: Allocate,
        write_markers: WriteMarkers,
        delete_share_records: DeleteRecords,
        replicas: Callable[[], Replicas],
        create_topic: Callable[[str], None],
        ask_broker: AskBroker | None = None,
    ) -> None:
        self.share_state = ShareCoordinator(config, image, scheduler, delete_share_records)
        self.persister = Persister(
            config().node_id, image, scheduler, self.share_state, ask_broker, lambda: create_topic(SHARE_STATE_TOPIC)
        )
        self.share_partitions = SharePartitions(config, image, replicas, scheduler, monotonic_ms, self.persister)
        self.groups = GroupCoordinator(config, image, scheduler, monotonic_ms, random, self.persister)
        self.producer_ids = ProducerIds(allocate_producer_ids, monotonic_ms)
        self.transactions = TransactionCoordinator(
            config, image, scheduler, self.producer_ids, write_markers, ask_broker
        )
        self._by_topic: dict[str, GroupCoordinator | TransactionCoordinator | ShareCoordinator] = {
            OFFSETS_TOPIC: self.groups,
            TRANSACTIONS_TOPIC: self.transactions,
            SHARE_STATE_TOPIC: self.share_state,
        }

    def start(self) -> None:
        self.transactions.start()
        self.share_state.start()

    def stop(self) -> None:
        self.transactions.stop()
        self.producer_ids.stop()
        self.groups.stop()
        self.share_partitions.stop()
        self.share_state.stop()

    async def wait_loaded(self) -> None:
        """Wait until all partitions led now are loaded or have failed to load."""
        await self.groups.machines.wait_loaded()
        await self.transactions.machines.wait_loaded()
        await self.share_state.machines.wait_loaded()

    def led(self, partition: Partition, leads: bool) -> None:
        """Handle a change of leadership: this broker now leads the partition, or no longer does."""
        coordinator = self._by_topic.get(partition.topic)
        if coordinator is not None:
            if leads:
                coordinator.elected(partition.partition_id, partition.leader_epoch, partition)
            else:
                coordinator.resigned(partition.partition_id)
        self.share_partitions.led(partition, leads)

    def image_changed(self, old: MetadataImage, new: MetadataImage, records: Sequence[Any]) -> Slices[None]:
        """Handle a new image. A subscriber of the metadata loop."""
        yield from self.groups.image_changed(old, new, touched_topics(records))
        self.transactions.image_changed(old, new)
        self.share_partitions.image_changed(old, new)
        deleted = {record.topic_id for record in records if isinstance(record, RemoveTopicRecord)}
        if deleted:
            self.share_state.topics_deleted(deleted)
