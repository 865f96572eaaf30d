"""Choose the version of a request for a node. Pure.

Its one rule: use the newest version that both sides support and that can encode everything in the request. Fields come and go
with versions, so this may be older than the newest common version. If there is none, the error names the version needed.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from barnabas import wire
from barnabas.client.errors import UnsupportedByNodeError
from barnabas.wire import APIS, EncodeError, Message
from barnabas.wire.api import Api
from barnabas.wire.messages.api_versions import ApiVersionsResponse
from barnabas.wire.schema import Versions

_NO_RANGES: Mapping[str, Versions] = MappingProxyType({})


class NodeVersions(NamedTuple):
    """Versions and features of a node, from its ApiVersions response."""

    ranges: Mapping[int, Versions]
    supported_features: Mapping[str, Versions] = _NO_RANGES
    finalized_features: Mapping[str, Versions] = _NO_RANGES
    finalized_features_epoch: int = -1

    def serves(self, name: str, version: int = 0) -> bool:
        """Return whether the node serves an API, such as "DescribeTopicPartitions", in `version` or a newer one that this
        client supports."""
        api = _api_of(name)
        key = _KEYS[name]
        common = common_range(api, self.ranges.get(key))
        return common.last >= max(version, common.first)

    def best(self, name: str) -> int | None:
        """Return the newest common version of an API, or None."""
        common = common_range(_api_of(name), self.ranges.get(_KEYS[name]))
        return common.last if common.first <= common.last else None


def versions_of(response: ApiVersionsResponse) -> NodeVersions:
    return NodeVersions(
        MappingProxyType({row.api_key: Versions(row.min_version, row.max_version) for row in response.api_keys}),
        MappingProxyType({row.name: Versions(row.min_version, row.max_version) for row in response.supported_features}),
        MappingProxyType(
            {row.name: Versions(row.min_version_level, row.max_version_level) for row in response.finalized_features}
        ),
        response.finalized_features_epoch,
    )


def common_range(api: Api, offered: Versions | None) -> Versions:
    """Return the versions that both sides support.

    >>> common_range(APIS[3], Versions(4, 99))
    Versions(first=4, last=13)
    """
    if offered is None:
        return Versions(0, -1)
    return Versions(max(api.versions.first, offered.first), min(api.versions.last, offered.last))


def encode_best(
    request: Message, versions: NodeVersions, node: str = "the node", *, least: int = 0, feature: str = ""
) -> tuple[int, bytes]:
    """Return the version of a request and its encoded body. `feature` names what needs version `least`, for the error.

    Raises `UnsupportedByNodeError`.
    """
    key = request.schema().key
    assert key is not None, f"{type(request).__name__} is not a request"
    api, offered = APIS[key], versions.ranges.get(key)
    if offered is None:
        since = RELEASES.get(api.name)
        needs = f" It came with Kafka {since}." if since else ""
        wanted = f"{feature} needs {api.name}, which" if feature else api.name
        raise UnsupportedByNodeError(f"{wanted} is not served by {node}.{needs}")
    first, last = common_range(api, offered)
    first = max(first, least)
    if first > last:
        wanted = (
            f"{feature or 'this'} needs version {least}"
            if least > offered.last
            else f"this client supports {api.versions}"
        )
        raise UnsupportedByNodeError(f"{node} serves {api.name} in versions {offered}; {wanted}")
    refused: EncodeError | None = None
    for version in range(last, first - 1, -1):
        try:
            return version, wire.encode(request, version)
        except EncodeError as error:
            refused = refused or error
    assert refused is not None
    enough = version_that_can(request, last + 1)
    if enough is None:
        raise refused
    raise UnsupportedByNodeError(
        f"{node} serves {api.name} in versions {offered}; {feature or 'this'} needs version {enough} ({refused})"
    ) from refused


def version_that_can(request: Message, first: int) -> int | None:
    """Return the oldest version, from `first` on, that can encode everything in the request, or None."""
    key = request.schema().key
    assert key is not None
    for version in range(first, APIS[key].versions.last + 1):
        try:
            wire.encode(request, version)
        except EncodeError:
            continue
        return version
    return None


def _api_of(name: str) -> Api:
    if name not in _KEYS:
        raise KeyError(f"unknown API {name}")
    return APIS[_KEYS[name]]


_KEYS = {api.name: int(key) for key, api in APIS.items()}

RELEASES: Mapping[str, str] = MappingProxyType(
    {
        "DescribeLogDirs": "1.0",
        "AlterReplicaLogDirs": "1.0",
        "CreatePartitions": "1.0",
        "DeleteGroups": "1.1",
        "CreateDelegationToken": "1.1",
        "RenewDelegationToken": "1.1",
        "ExpireDelegationToken": "1.1",
        "DescribeDelegationToken": "1.1",
        "ElectLeaders": "2.2",
        "IncrementalAlterConfigs": "2.3",
        "AlterPartitionReassignments": "2.4",
        "ListPartitionReassignments": "2.4",
        "OffsetDelete": "2.4",
        "DescribeClientQuotas": "2.6",
        "AlterClientQuotas": "2.6",
        "DescribeUserScramCredentials": "2.7",
        "AlterUserScramCredentials": "2.7",
        "UpdateFeatures": "2.7",
        "DescribeQuorum": "2.8, with KRaft",
        "FetchSnapshot": "2.8, with KRaft",
        "UnregisterBroker": "2.8, with KRaft",
        "DescribeCluster": "2.8",
        "DescribeProducers": "2.8",
        "DescribeTransactions": "3.0",
        "ListTransactions": "3.0",
        "ConsumerGroupHeartbeat": "4.0, and with 3.8 as a preview",
        "ConsumerGroupDescribe": "4.0, and with 3.8 as a preview",
        "GetTelemetrySubscriptions": "3.7",
        "PushTelemetry": "3.7",
        "ListConfigResources": "3.7",
        "DescribeTopicPartitions": "3.8",
        "AddRaftVoter": "3.9",
        "RemoveRaftVoter": "3.9",
        "UpdateRaftVoter": "3.9",
        "ShareGroupHeartbeat": "4.0, in early access",
        "ShareGroupDescribe": "4.0, in early access",
        "ShareFetch": "4.0, in early access",
        "ShareAcknowledge": "4.0, in early access",
        "StreamsGroupHeartbeat": "4.1, in early access",
        "StreamsGroupDescribe": "4.1, in early access",
        "DescribeShareGroupOffsets": "4.1, as a preview",
        "AlterShareGroupOffsets": "4.1, as a preview",
        "DeleteShareGroupOffsets": "4.1, as a preview",
    }
)
"""The Kafka version that introduced an API, for APIs that old brokers still in use lack."""
