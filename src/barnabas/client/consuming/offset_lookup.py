"""Finds offsets by time, and where partitions begin and end, at the leaders of partitions. API: ListOffsets."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from typing import Any

from barnabas.client.cluster import Cluster
from barnabas.client.consuming import offsets as requests
from barnabas.client.consuming.settings import ConsumerSettings
from barnabas.client.records import OffsetAndTimestamp, TopicPartition
from barnabas.client.routing import node
from barnabas.client.state import NO_LEADER
from barnabas.wire import ErrorCode, KafkaError

Found = dict[TopicPartition, OffsetAndTimestamp]
Answers = dict[TopicPartition, OffsetAndTimestamp | KafkaError]


class OffsetLookup:
    """Looks up offsets at the isolation level of a consumer."""

    def __init__(self, cluster: Cluster, settings: ConsumerSettings, random: Callable[[], float]) -> None:
        self._cluster = cluster
        self._settings = settings
        self._random = random

    async def find(self, times: Mapping[TopicPartition, int]) -> Found:
        """Return the offset for a timestamp in ms, `EARLIEST` or `LATEST` of each partition. An offset of -1 is none.

        Retries until `default.api.timeout.ms`, also where leaders have moved. Raises `KafkaError`.
        """
        found: Found = {}
        timeout_ms = self._cluster.settings.get_int("default.api.timeout.ms")
        last: Exception | None = None
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                for attempt in range(1 << 30):
                    missing = {place: each for place, each in times.items() if place not in found}
                    results = await asyncio.gather(*await self._requests(missing))
                    for place, each in ((place, each) for result in results for place, each in result.items()):
                        if not isinstance(each, KafkaError):
                            found[place] = each
                        elif each.code.retriable:
                            last = each
                        else:
                            raise each
                    if len(found) == len(times):
                        return {place: found[place] for place in times}
                    await asyncio.sleep(self._cluster.settings.retry_backoff.delay_ms(attempt, self._random()) / 1000)
                    await self._cluster.refresh({place.topic for place in missing})
        except TimeoutError:
            if last is None:
                raise
        assert last is not None
        raise last

    async def _requests(self, times: Mapping[TopicPartition, int]) -> list[Coroutine[Any, Any, Answers]]:
        """Return one request per leader.

        Partitions without a leader are left out. Raises `KafkaError` for unknown ones.
        """
        state = self._cluster.state
        if any(state.partition(*place) is None for place in times):
            state = await self._cluster.refresh({place.topic for place in times})
        by_node: dict[int, dict[TopicPartition, int]] = {}
        for place, each in times.items():
            known = state.partition(*place)
            if known is None:
                code = state.errors.get(place.topic, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
                raise KafkaError(code, f"{place}: {code.message}")
            if known.leader_id != NO_LEADER:
                by_node.setdefault(known.leader_id, {})[place] = each
        return [self._request(node_id, rows) for node_id, rows in by_node.items()]

    async def _request(self, node_id: int, times: Mapping[TopicPartition, int]) -> Answers:
        request = requests.list_offsets(times, self._settings.isolation_level, self._settings.request_timeout_ms)
        try:
            return requests.listed(await self._cluster.send(request, node(node_id)))
        except OSError as error:
            return {place: KafkaError(ErrorCode.NETWORK_EXCEPTION, str(error)) for place in times}
