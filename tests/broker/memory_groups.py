"""The group and share coordinators of a MemoryNode: machines over logs in memory, and a clock that is turned by hand."""

from __future__ import annotations

import asyncio
from random import Random
from typing import TYPE_CHECKING

from barnabas.groups.coordinator import GroupCoordinator
from barnabas.groups.shards import TOPIC
from barnabas.share_state.coordinator import ShareCoordinator
from barnabas.share_state.persister import Persister
from barnabas.share_state.state import TOPIC as SHARE_STATE_TOPIC
from tests.replicated.manual_clock import ManualClock
from tests.replicated.memory_log import MemoryLog

if TYPE_CHECKING:
    from tests.broker.harness import MemoryNode


class MemoryGroups:
    """`logs` and `share_logs` are those of `__consumer_offsets` and `__share_group_state`, if the image has them."""

    def __init__(self, node: MemoryNode) -> None:
        self._node = node
        self.clock = ManualClock(node.now_ms)
        self.logs: dict[int, MemoryLog] = {}
        self.share_logs: dict[int, MemoryLog] = {}
        self.share_state = ShareCoordinator(
            lambda: node.config, lambda: node.image, self.clock, lambda partition_id, before_offset: None
        )
        self.persister = Persister(
            node.config.node_id, lambda: node.image, self.clock, self.share_state, None, lambda: None
        )
        self.coordinator = GroupCoordinator(
            lambda: node.config, lambda: node.image, self.clock, self.clock.now_ms, Random(6), self.persister
        )
        node.controller.loop.subscribe(lambda old, new, _: self.coordinator.image_changed(old, new))

    async def load(self) -> None:
        """Lead every partition of the topic that this node is to lead."""
        topic = self._node.image.topics.get(TOPIC)
        for partition_id, partition in enumerate(() if topic is None else topic.partitions):
            if partition.leader == self._node.config.node_id:
                log = self.logs.setdefault(partition_id, MemoryLog())
                self.coordinator.elected(partition_id, partition.leader_epoch, log)
        topic = self._node.image.topics.get(SHARE_STATE_TOPIC)
        for partition_id, partition in enumerate(() if topic is None else topic.partitions):
            if partition.leader == self._node.config.node_id:
                log = self.share_logs.setdefault(partition_id, MemoryLog())
                self.share_state.elected(partition_id, partition.leader_epoch, log)
        while self.coordinator.machines.is_loading or self.share_state.machines.is_loading:
            await asyncio.sleep(0)
