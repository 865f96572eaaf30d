"""Throttling by quotas: after a response with `throttle_time_ms`, a node is sent nothing until that time has passed. Pure.

Since Kafka 2.0, a broker responds first and then does not read from the connection for that time (KIP-219). An older
broker waits before it responds, so the client need not. A version of the API tells them apart: `FIRST_VERSIONS`.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from barnabas.wire import Api

FIRST_VERSIONS: Mapping[str, int] = MappingProxyType(
    {
        **{"Produce": 6, "Fetch": 8, "ListOffsets": 3, "Metadata": 6, "OffsetCommit": 4, "OffsetFetch": 4},
        **{"FindCoordinator": 2, "JoinGroup": 3, "Heartbeat": 2, "LeaveGroup": 2, "SyncGroup": 2},
        **{"DescribeGroups": 2, "ListGroups": 2, "DeleteGroups": 1, "ApiVersions": 2},
        **{"CreateTopics": 3, "DeleteTopics": 2, "CreatePartitions": 1, "DeleteRecords": 1},
        **{"InitProducerId": 1, "AddPartitionsToTxn": 1, "AddOffsetsToTxn": 1, "EndTxn": 1, "TxnOffsetCommit": 1},
        **{"DescribeAcls": 1, "CreateAcls": 1, "DeleteAcls": 1, "DescribeConfigs": 2, "AlterConfigs": 1},
        **{"AlterReplicaLogDirs": 1, "DescribeLogDirs": 1},
        **{"CreateDelegationToken": 1, "RenewDelegationToken": 1, "ExpireDelegationToken": 1},
        **{"DescribeDelegationToken": 1},
    }
)
"""The first version in which brokers respond before they throttle. For APIs that are not listed, this is every version."""


def throttle_time_ms(api: Api, version: int, response: Any) -> int:
    """Return the time in which the client must send nothing after this response, or 0."""
    time_ms: int = getattr(response, "throttle_time_ms", 0)
    return time_ms if time_ms > 0 and version >= FIRST_VERSIONS.get(api.name, 0) else 0


class Throttle:
    """The time until which a node is sent nothing, on a monotonic clock. Connections to the same node may share it.

    >>> throttle = Throttle()
    >>> throttle.extend(500, now_s=10.0)
    >>> throttle.extend(100, now_s=10.1)
    >>> round(throttle.left_s(10.2), 3), throttle.left_s(10.5)
    (0.3, 0.0)
    """

    __slots__ = ("__weakref__", "_until_s")

    def __init__(self) -> None:
        self._until_s = 0.0

    def extend(self, time_ms: float, now_s: float) -> None:
        self._until_s = max(self._until_s, now_s + time_ms / 1000)

    def left_s(self, now_s: float) -> float:
        """Return the seconds that are left, or 0."""
        return max(0.0, self._until_s - now_s)
