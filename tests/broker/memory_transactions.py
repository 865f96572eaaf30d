"""The transaction coordinator of a MemoryNode: machines over logs in memory, and markers that are only noted down."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

from barnabas.controller import producer_ids
from barnabas.storage.checkpoints import TopicPartition
from barnabas.transactions.coordinator import TransactionCoordinator
from barnabas.transactions.markers import EndedTransaction
from barnabas.transactions.producer_ids import ProducerIds
from barnabas.transactions.state import TOPIC
from barnabas.wire import ErrorCode
from tests.replicated.manual_clock import ManualClock
from tests.replicated.memory_log import MemoryLog

if TYPE_CHECKING:
    from tests.broker.harness import MemoryNode


class MemoryTransactions:
    """`logs` are those of `__transaction_state`, if the image has it; `markers` what was written where."""

    def __init__(self, node: MemoryNode) -> None:
        self._node = node
        self.clock = ManualClock(node.now_ms)
        self.logs: dict[int, MemoryLog] = {}
        self.markers: list[tuple[TopicPartition, EndedTransaction]] = []
        self.marker_error = ErrorCode.NONE
        self.coordinator = TransactionCoordinator(
            lambda: node.config,
            lambda: node.image,
            self.clock,
            ProducerIds(self._allocate, self.clock.now_ms),
            self._write_markers,
        )

    async def load(self) -> None:
        """Lead every partition of the topic that this node is to lead."""
        topic = self._node.image.topics.get(TOPIC)
        for partition_id, partition in enumerate(() if topic is None else topic.partitions):
            if partition.leader == self._node.config.node_id:
                log = self.logs.setdefault(partition_id, MemoryLog())
                self.coordinator.elected(partition_id, partition.leader_epoch, log)
        while self.coordinator.machines.is_loading:
            await asyncio.sleep(0)

    async def settle(self) -> None:
        """Let transactions end, unless their markers are refused."""
        for _ in range(20):
            await asyncio.sleep(0)

    async def _allocate(self) -> tuple[int, int]:
        node_id = self._node.config.node_id
        epoch = self._node.image.brokers[node_id].epoch
        block = await self._node.controller.write(producer_ids.allocate, node_id, epoch)
        return block.first, block.size

    async def _write_markers(
        self, partitions: Sequence[TopicPartition], ended: EndedTransaction
    ) -> dict[TopicPartition, ErrorCode]:
        if not self.marker_error:
            self.markers += [(partition, ended) for partition in partitions]
        return dict.fromkeys(partitions, self.marker_error)
