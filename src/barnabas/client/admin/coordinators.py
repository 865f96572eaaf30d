"""Requests to the coordinators of groups and transactional ids.

Its one rule: the keys of one coordinator go into one request, and all coordinators are asked concurrently. Keys whose
coordinator has moved are retried until the timeout. An error of the coordinator is the key's result.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import TypeVar

from barnabas.client.admin.part import pieces
from barnabas.client.cluster import Cluster
from barnabas.client.errors import PERMANENT
from barnabas.client.retry import NOT_DONE
from barnabas.client.routing import CoordinatorType, node
from barnabas.client.state import Node
from barnabas.client.versions import NodeVersions
from barnabas.wire.errors import ErrorCode, KafkaError

T = TypeVar("T")

MAX_IN_REQUEST = 1_000


class Deadline:
    """The deadline of a call."""

    def __init__(self, cluster: Cluster, timeout_ms: float | None) -> None:
        if timeout_ms is None:
            timeout_ms = cluster.settings.get_int("default.api.timeout.ms")
        self._at_s = asyncio.get_running_loop().time() + timeout_ms / 1000

    @property
    def left_ms(self) -> float:
        return max((self._at_s - asyncio.get_running_loop().time()) * 1000, 1.0)


async def ask_coordinators(
    cluster: Cluster,
    keys: Iterable[str],
    ask: Callable[[list[str], float], Awaitable[Mapping[str, T | KafkaError]]],
    *,
    type: CoordinatorType = CoordinatorType.GROUP,
    timeout_ms: float | None = None,
) -> dict[str, T | KafkaError]:
    """Return the result of each key, in their order. `ask(keys, timeout_ms)` gets keys of the same coordinator."""
    deadline = Deadline(cluster, timeout_ms)
    wanted = list(dict.fromkeys(keys))
    results: dict[str, T | KafkaError] = {}
    waiting, attempts = wanted, 0
    while waiting:
        asked: dict[int, list[str]] = {}
        for key, where in (await cluster.coordinators(waiting, type, timeout_ms=deadline.left_ms)).items():
            if isinstance(where, KafkaError):
                results[key] = where
            else:
                asked.setdefault(where, []).append(key)
        rounds = [few for known in asked.values() for few in pieces(known, MAX_IN_REQUEST)]
        for answers in await asyncio.gather(*(ask(few, deadline.left_ms) for few in rounds)):
            results.update(answers)
        waiting = [key for few in rounds for key in few if _is_elsewhere(results.get(key))]
        pause_ms = cluster.settings.retry_backoff.delay_ms(attempts, 0.5)
        if not waiting or pause_ms >= deadline.left_ms:
            break
        for key in waiting:
            cluster.forget_coordinator(key, type)
        attempts += 1
        await asyncio.sleep(pause_ms / 1000)
    silent = KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "the response has no row for it")
    return {key: results.get(key, silent) for key in wanted}


async def coordinator_of(cluster: Cluster, group_id: str) -> Node | None:
    """Return the coordinator of a group, or None if it is not known."""
    where = (await cluster.coordinators([group_id]))[group_id]
    return cluster.state.nodes.get(where) if isinstance(where, int) else None


def _is_elsewhere(result: object) -> bool:
    return isinstance(result, KafkaError) and result.code in NOT_DONE


async def coordinator_versions(
    cluster: Cluster, key: str, *, type: CoordinatorType = CoordinatorType.GROUP, timeout_ms: float | None = None
) -> NodeVersions:
    """Return the API versions of a key's coordinator, for requests that depend on them. Raises `KafkaError` if there is no
    coordinator."""
    deadline, attempts = Deadline(cluster, timeout_ms), 0
    while True:
        where = (await cluster.coordinators([key], type, timeout_ms=deadline.left_ms))[key]
        if isinstance(where, KafkaError):
            raise where
        pause_ms = cluster.settings.retry_backoff.delay_ms(attempts, 0.5)
        try:
            return await cluster.versions(node(where))
        except PERMANENT:
            raise
        except (OSError, KafkaError):  # the coordinator may be moving
            if pause_ms >= deadline.left_ms:
                raise
        cluster.forget_coordinator(key, type)
        attempts += 1
        await asyncio.sleep(pause_ms / 1000)
