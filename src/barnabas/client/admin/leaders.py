"""Requests to the leaders of partitions.

Its one rule: all leaders are asked concurrently, each with one request after another, which have many partitions. Those whose
leader has moved are retried until the timeout. An error of the leader is the partition's result.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import TypeAlias, TypeVar

from barnabas.client.admin.part import pieces
from barnabas.client.cluster import Cluster
from barnabas.client.errors import PERMANENT
from barnabas.client.records import TopicPartition
from barnabas.client.retry import NOT_DONE
from barnabas.client.state import NO_LEADER, ClusterState
from barnabas.wire.errors import ErrorCode, KafkaError

T = TypeVar("T")

PATIENCE_MS = 5_000
"""How long to wait for a partition's leader before its absence is the result."""
_MAX_IN_REQUEST = 5_000
_ASKED_AGAIN = NOT_DONE | {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.OFFSET_NOT_AVAILABLE,
    ErrorCode.REQUEST_TIMED_OUT,
    ErrorCode.BROKER_NOT_AVAILABLE,
    ErrorCode.NETWORK_EXCEPTION,
}


Answers: TypeAlias = dict[TopicPartition, T | KafkaError]
Ask: TypeAlias = Callable[[int, list[TopicPartition], float], Awaitable[Answers[T]]]
"""Sends one request: node id, partitions, timeout in milliseconds."""


def by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    """Group partition indexes by topic, as requests need them.

    >>> by_topic([TopicPartition("a", 1), TopicPartition("b", 0), TopicPartition("a", 0)])
    {'a': [1, 0], 'b': [0]}
    """
    found: dict[str, list[int]] = {}
    for topic, partition in partitions:
        found.setdefault(topic, []).append(partition)
    return found


def by_leader(
    state: ClusterState, partitions: Iterable[TopicPartition]
) -> tuple[dict[int, list[TopicPartition]], dict[TopicPartition, KafkaError]]:
    """Group partitions by the id of their leader, and return the errors of those without one. Pure."""
    leaders: dict[int, list[TopicPartition]] = {}
    missing: dict[TopicPartition, KafkaError] = {}
    for each in partitions:
        found = state.partition(each.topic, each.partition)
        if each.topic in state.errors:
            missing[each] = KafkaError(state.errors[each.topic])
        elif found is None:
            text = f"topic {each.topic} has no partition {each.partition}"
            missing[each] = KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, text)
        elif found.leader_id == NO_LEADER or found.leader_id not in state.nodes:
            missing[each] = KafkaError(ErrorCode.LEADER_NOT_AVAILABLE, f"partition {each} has no leader")
        else:
            leaders.setdefault(found.leader_id, []).append(each)
    return leaders, missing


async def ask_leaders(
    cluster: Cluster, partitions: Iterable[TopicPartition], ask: Ask[T], *, timeout_ms: float | None = None
) -> Answers[T]:
    """Return the result of each partition, in their order. Raises only errors of the whole call, such as a broker that is too
    old."""
    clock = asyncio.get_running_loop().time
    total_ms = cluster.settings.get_int("default.api.timeout.ms") if timeout_ms is None else timeout_ms
    longest_ms = cluster.settings.get_int("request.timeout.ms")
    started_s = clock()
    wanted = list(dict.fromkeys(TopicPartition(*each) for each in partitions))
    results: Answers[T] = {}
    waiting, attempts = wanted, 0
    while waiting:
        left_ms = max(total_ms - 1000 * (clock() - started_s), 1)
        state = await cluster.metadata({each.topic for each in waiting}, timeout_ms=left_ms)
        leaders, missing = by_leader(state, waiting)
        results.update(missing)
        ends_s = started_s + total_ms / 1000
        for answers in await asyncio.gather(*(_asked(ask, *each, ends_s, longest_ms) for each in leaders.items())):
            results.update(answers)
        waited_ms = 1000 * (clock() - started_s)
        waiting = [each for each in waiting if _is_asked_again(results[each], each in missing, waited_ms)]
        pause_ms = cluster.settings.retry_backoff.delay_ms(attempts, 0.5)
        if waited_ms + pause_ms >= total_ms:
            break
        if waiting:
            attempts += 1
            await asyncio.sleep(pause_ms / 1000)
    return {each: results[each] for each in wanted}


async def _asked(
    ask: Ask[T], node_id: int, partitions: list[TopicPartition], ends_s: float, longest_ms: float
) -> Answers[T]:
    """Ask one node, with one request after another: so it answers them, and each has its own time.

    If it does not answer one, that is the result of the partitions that are left.
    """
    clock = asyncio.get_running_loop().time
    found: Answers[T] = {}
    for few in pieces(partitions, _MAX_IN_REQUEST):
        left_ms = max(1000 * (ends_s - clock()), 1)
        try:
            found.update(await ask(node_id, few, min(left_ms, longest_ms)))
        except PERMANENT:
            raise
        except KafkaError as error:
            found.update(dict.fromkeys(few, error))
        except OSError as error:
            lost = KafkaError(ErrorCode.REQUEST_TIMED_OUT, str(error) or type(error).__name__)
            return {**dict.fromkeys(partitions, lost), **found}
    return found


def _is_asked_again(result: object, has_no_leader: bool, waited_ms: float) -> bool:
    if not isinstance(result, KafkaError):
        return False
    if has_no_leader:
        return result.code == ErrorCode.LEADER_NOT_AVAILABLE and waited_ms < PATIENCE_MS
    return result.code in _ASKED_AGAIN
