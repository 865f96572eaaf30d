"""The partitions of `__consumer_offsets` that this node leads: find the one of a group, decide on it, wait for the
commit.

Its one rule: a group is reached only through its shard, which exists between the end of its load and the loss of its
leadership. Otherwise callers get COORDINATOR_LOAD_IN_PROGRESS or NOT_COORDINATOR.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

from barnabas.batches.format import Compression
from barnabas.config.internal_topics import GROUP_METADATA_TOPIC
from barnabas.config.server_config import ServerConfig
from barnabas.groups import replay
from barnabas.groups.classic.settings import ClassicSettings
from barnabas.groups.image import EMPTY_IMAGE, GroupsImage
from barnabas.groups.shard import Shard
from barnabas.metadata.image import MetadataImage
from barnabas.replicated.errors import response_error
from barnabas.replicated.loop import Decision
from barnabas.replicated.machines import Coordinator, Machine, Machines
from barnabas.replicated.placement import partition_for
from barnabas.wire import ErrorCode, KafkaError

R = TypeVar("R")

TOPIC = GROUP_METADATA_TOPIC


class Shards:
    """The shards of a node. `loaded` and `unloaded` are called when one comes and goes."""

    def __init__(
        self,
        config: Callable[[], ServerConfig],
        image: Callable[[], MetadataImage],
        now_ms: Callable[[], int],
        loaded: Callable[[Shard], None],
        unloaded: Callable[[Shard], None],
    ) -> None:
        self._config = config
        self._image = image
        self._on_loaded = loaded
        self._on_unloaded = unloaded
        self._by_partition: dict[int, Shard] = {}
        codec = config().get_int("offsets.topic.compression.codec")
        coordinator = Coordinator(
            TOPIC, "group", EMPTY_IMAGE, replay.apply, self._loaded, self._unloaded, Compression(codec)
        )
        self.machines = Machines(coordinator, now_ms)

    def _loaded(self, machine: Machine[GroupsImage]) -> None:
        config = self._config()
        settings = ClassicSettings(config.get_int("group.initial.rebalance.delay.ms"), config.get_int("group.max.size"))
        shard = self._by_partition[machine.partition_id] = Shard(machine, settings)
        self._on_loaded(shard)

    def _unloaded(self, machine: Machine[GroupsImage]) -> None:
        shard = self._by_partition.pop(machine.partition_id, None)
        if shard is not None:
            self._on_unloaded(shard)

    # --- finding

    def partition_for(self, group_id: str) -> int:
        """Return the partition of `__consumer_offsets` that a group belongs to, on whatever node."""
        topic = self._image().topics.get(TOPIC)
        count = self._config().get_int("offsets.topic.num.partitions") if topic is None else len(topic.partitions)
        return partition_for(group_id, count)

    def of(self, group_id: str) -> Shard:
        """Return the shard of a group. Raises NOT_COORDINATOR or COORDINATOR_LOAD_IN_PROGRESS."""
        machine = self.machines.machine(self.partition_for(group_id))
        return self._by_partition[machine.partition_id]

    def loaded(self) -> list[Shard]:
        """Return the shards that are loaded, whether or not others are still loading."""
        return list(self._by_partition.values())

    def all(self) -> list[Shard]:
        """Return all shards. Raises COORDINATOR_LOAD_IN_PROGRESS while one is loading."""
        if self.machines.is_loading:
            raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        return self.loaded()

    # --- writing

    def write_nowait(self, shard: Shard, decide: Decision[GroupsImage, R]) -> R:
        """Decide and append without waiting for the commit. Raises KafkaError with the codes that clients know."""
        try:
            return shard.machine.write_nowait(decide)
        except KafkaError as error:
            raise _to_client(error) from error

    async def write(self, shard: Shard, decide: Decision[GroupsImage, R]) -> R:
        """Decide, append, and return the response once it is committed. Raises KafkaError as `wait_committed` does."""
        response = await self.write_soon(shard, decide)
        await self.wait_committed(shard)
        return response

    async def write_soon(
        self, shard: Shard, decide: Decision[GroupsImage, R], accepted: Callable[[R], None] = lambda response: None
    ) -> R:
        """Decide and append in slices. `accepted` is called with the response before any other decision."""
        try:
            return await shard.machine.write_soon(decide, accepted)
        except KafkaError as error:
            raise _to_client(error) from error

    async def wait_committed(self, shard: Shard) -> None:
        """Wait until everything that was written to the shard so far is committed, at most `offsets.commit.timeout.ms`.

        Raises KafkaError with the codes that clients know: COORDINATOR_NOT_AVAILABLE after the timeout.
        """
        machine = shard.machine
        try:
            if machine.image is not machine.head:
                async with asyncio.timeout(self._config().get_int("offsets.commit.timeout.ms") / 1000):
                    await machine.wait_head_committed()
        except TimeoutError:
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE) from None
        except KafkaError as error:
            raise _to_client(error) from error


def _to_client(error: KafkaError) -> KafkaError:
    """An error of the log with the code that clients know."""
    code = response_error(error.code)
    return KafkaError(code, error.message if code is error.code else None)
