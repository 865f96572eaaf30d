"""The fetchers of a broker: `num.replica.fetchers` for each leader, started when they have a partition to follow."""

from __future__ import annotations

import asyncio

from barnabas.replicas.following.fetcher import Fetcher, Surroundings
from barnabas.replicas.following.followed import fetcher_number
from barnabas.replicas.partition import Partition

NO_LEADER = -1

Key = tuple[int, int]


class Fetchers:
    """All fetchers. Nothing is fetched before `start`, because the leader would not know this broker's epoch yet."""

    def __init__(self, surroundings: Surroundings) -> None:
        self._surroundings = surroundings
        self._is_running = False
        self._count = 0
        self._fetchers: dict[Key, Fetcher] = {}
        self._tasks: dict[Key, asyncio.Task[None]] = {}
        self._by_partition: dict[Partition, Key] = {}
        self._early: dict[Partition, None] = {}

    @property
    def counts(self) -> dict[Key, int]:
        """The number of partitions of each fetcher, by leader and number."""
        return {key: len(fetcher) for key, fetcher in self._fetchers.items()}

    def start(self) -> None:
        self._is_running = True
        self._count = self._configured
        early, self._early = self._early, {}
        for partition in early:
            self.changed(partition)

    async def stop(self) -> None:
        self._is_running = False
        tasks, self._tasks = list(self._tasks.values()), {}
        self._fetchers.clear()
        self._by_partition.clear()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    @property
    def _configured(self) -> int:
        return self._surroundings.config().get_int("num.replica.fetchers")

    def resize(self) -> None:
        """Distribute the partitions again if `num.replica.fetchers` has changed."""
        if self._is_running and self._count != self._configured:
            self._count = self._configured
            for partition in list(self._by_partition):
                self.changed(partition)

    def changed(self, partition: Partition) -> None:
        """Follow the new leader of a partition, or none, because it is led here, removed or offline."""
        if not self._is_running:
            self._early[partition] = None
            return
        before = self._by_partition.pop(partition, None)
        if before is not None:
            self._fetchers[before].leave(partition)
        leader_id = partition.state.leader
        if not (partition.is_leader or partition.is_offline) and leader_id != NO_LEADER:
            key = leader_id, fetcher_number(partition.topic, partition.partition_id, self._count)
            self._by_partition[partition] = key
            self._fetcher(key).follow(partition)
        if before is not None and not self._fetchers[before]:
            self._end(before)

    def _fetcher(self, key: Key) -> Fetcher:
        fetcher = self._fetchers.get(key)
        if fetcher is None:
            fetcher = self._fetchers[key] = Fetcher(*key, self._surroundings)
            self._tasks[key] = asyncio.get_running_loop().create_task(fetcher.run())
        return fetcher

    def _end(self, key: Key) -> None:
        del self._fetchers[key]
        self._tasks.pop(key).cancel()
