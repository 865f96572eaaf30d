"""A transaction coordinator over logs in memory, a clock that is turned by hand, and partitions that take markers.

world = World()
world.run(scenario)      # scenario(world) is a coroutine; the coordinator is loaded before it
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from itertools import count
from typing import TypeVar

from barnabas.config import server
from barnabas.metadata.image import EMPTY_IMAGE, MetadataImage, Provenance
from barnabas.metadata.replay import replay
from barnabas.replicated.decision import Producer
from barnabas.storage.checkpoints import TopicPartition
from barnabas.transactions.coordinator import TransactionCoordinator
from barnabas.transactions.markers import EndedTransaction
from barnabas.transactions.producer_ids import ProducerIds
from barnabas.transactions.state import TOPIC, Transaction, TransactionState
from barnabas.wire import ErrorCode, KafkaError, Message, Uuid
from barnabas.wire.records.metadata import FeatureLevelRecord, PartitionRecord, RemoveTopicRecord, TopicRecord
from tests.replicated.manual_clock import ManualClock
from tests.replicated.memory_log import MemoryLog

R = TypeVar("R")

ID = "tx"
T = [TopicPartition("t", index) for index in range(3)]
NODE_ID = 1
TURNS = 30  # of the event loop: enough for whatever does not wait for time


def topic_records(name: str, leaders: Iterable[int]) -> list[TopicRecord | PartitionRecord]:
    topic_id = Uuid(name.ljust(16, "-").encode()[:16])
    return [
        TopicRecord(name=name, topic_id=topic_id),
        *(
            PartitionRecord(
                topic_id=topic_id,
                partition_id=index,
                replicas=[max(leader, 1)],
                isr=[max(leader, 1)],
                leader=leader,
                leader_epoch=0,
                partition_epoch=0,
            )
            for index, leader in enumerate(leaders)
        ),
    ]


class World:
    """Everything around the coordinator outlives it: `restart` makes another one on the same logs."""

    def __init__(self, *, transaction_version: int = 2, partitions: int = 1, properties: dict[str, str] | None = None):
        self.config = server.load(None, {"node.id": str(NODE_ID), **(properties or {})})
        self.clock = ManualClock()
        self.logs = [MemoryLog() for _ in range(partitions)]
        self.leader_epoch = 0
        self.image: MetadataImage = EMPTY_IMAGE
        self.markers: list[tuple[TopicPartition, EndedTransaction]] = []
        self.refusing: dict[TopicPartition, ErrorCode] = {}
        self.refuses_ids: KafkaError | None = None
        self._ids = count(1000, 1000)
        self.change_metadata(
            FeatureLevelRecord(name="transaction.version", feature_level=transaction_version),
            *topic_records(TOPIC, [NODE_ID] * partitions),
            *topic_records("t", [NODE_ID] * len(T)),
        )
        self.coordinator: TransactionCoordinator

    def change_metadata(self, *records: Message) -> None:
        old = self.image
        self.image = replay(old, records, Provenance(old.offset + len(records), 1, self.clock.now_ms()))
        if hasattr(self, "coordinator"):
            self.coordinator.image_changed(old, self.image)

    def delete_topic(self, name: str) -> None:
        topic = self.image.topics.get(name)
        assert topic is not None
        self.change_metadata(RemoveTopicRecord(topic_id=topic.topic_id))

    # --- its life

    def run(self, scenario: Callable[[World], Awaitable[R]]) -> R:
        async def main() -> R:
            await self.start()
            try:
                return await scenario(self)
            finally:
                self.coordinator.stop()

        return asyncio.run(main())

    async def start(self) -> None:
        self.coordinator = TransactionCoordinator(
            lambda: self.config,
            lambda: self.image,
            self.clock,
            ProducerIds(self._allocate, self.clock.now_ms),
            self.write_markers,
        )
        self.coordinator.start()
        for partition_id, log in enumerate(self.logs):
            self.coordinator.elected(partition_id, self.leader_epoch, log)
        await self.settle()

    async def restart(self) -> None:
        """The node is killed and comes back: everything but the logs is gone."""
        self.coordinator.stop()
        await self.settle()
        self.leader_epoch += 1
        await self.start()

    async def settle(self) -> None:
        """Let everything happen that does not wait for time."""
        for _ in range(TURNS):
            await asyncio.sleep(0)

    async def wait_ms(self, by_ms: int) -> None:
        self.clock.advance(by_ms)
        await self.settle()

    # --- what is asked and seen

    async def begin(self, transactional_id: str = ID, timeout_ms: int = 60_000) -> Producer:
        return await self.coordinator.init_producer_id(transactional_id, timeout_ms)

    async def add(self, producer: Producer, *partitions: TopicPartition, version: int = 2) -> None:
        await self.coordinator.add_partitions(ID, producer, partitions, version)

    async def end(self, producer: Producer, *, is_commit: bool = True, version: int = 2) -> Producer:
        return await self.coordinator.end(ID, producer, is_commit=is_commit, client_transaction_version=version)

    def found(self, transactional_id: str = ID) -> Transaction:
        return self.coordinator.machine_of(transactional_id).image.transactions[transactional_id]

    def state(self) -> TransactionState:
        return self.found().state

    @property
    def written_markers(self) -> list[tuple[int, int, int, bool]]:
        """Partition, producer id, epoch, and whether it commits."""
        return [(p.partition, *e.producer[:2], e.marker.is_commit) for p, e in self.markers]

    # --- the other side

    async def _allocate(self) -> tuple[int, int]:
        if self.refuses_ids is not None:
            raise self.refuses_ids
        return next(self._ids), 1000

    async def write_markers(
        self, partitions: Sequence[TopicPartition], ended: EndedTransaction
    ) -> dict[TopicPartition, ErrorCode]:
        errors = {partition: self.refusing.get(partition, ErrorCode.NONE) for partition in partitions}
        self.markers += [(partition, ended) for partition, code in errors.items() if not code]
        return errors


async def refusal(asked: Awaitable[object]) -> ErrorCode:
    """The code with which something is refused; NONE if it is not."""
    try:
        await asked
    except KafkaError as error:
        return error.code
    return ErrorCode.NONE
