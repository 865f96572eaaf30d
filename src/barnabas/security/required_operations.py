"""The permissions that each API needs, and the answer without them. Pure.

Its one rule: this table is what handlers check; a test calls every handler and compares. docs/authorization.md is written
from it, and messages about a refusal read it.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Final, NamedTuple

from barnabas.security.acl import AclOperation, ResourceType
from barnabas.wire.errors import ErrorCode

REFUSALS: Mapping[ErrorCode, ResourceType] = MappingProxyType(
    {
        ErrorCode.TOPIC_AUTHORIZATION_FAILED: ResourceType.TOPIC,
        ErrorCode.GROUP_AUTHORIZATION_FAILED: ResourceType.GROUP,
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED: ResourceType.CLUSTER,
        ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: ResourceType.TRANSACTIONAL_ID,
        ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED: ResourceType.DELEGATION_TOKEN,
    }
)
"""Error codes of a refusal, with the type of the resource."""


class Listeners(StrEnum):
    """The kind of listener on which a permission is needed."""

    ANY = ""
    BROKER = "broker"
    CONTROLLER = "controller"


class Required(NamedTuple):
    """A permission. `without` is the answer without it; `is_instead` means that the one before it is not needed then."""

    operation: AclOperation
    resource_type: ResourceType
    without: str
    is_instead: bool = False
    on: Listeners = Listeners.ANY


_READ, _WRITE, _CREATE, _DELETE = AclOperation.READ, AclOperation.WRITE, AclOperation.CREATE, AclOperation.DELETE
_ALTER, _DESCRIBE, _CLUSTER_ACTION = AclOperation.ALTER, AclOperation.DESCRIBE, AclOperation.CLUSTER_ACTION
_DESCRIBE_CONFIGS, _ALTER_CONFIGS = AclOperation.DESCRIBE_CONFIGS, AclOperation.ALTER_CONFIGS
_TOPIC, _GROUP, _CLUSTER = ResourceType.TOPIC, ResourceType.GROUP, ResourceType.CLUSTER
_TRANSACTIONAL_ID, _USER, _TOKEN = ResourceType.TRANSACTIONAL_ID, ResourceType.USER, ResourceType.DELEGATION_TOKEN
_BROKER, _CONTROLLER = Listeners.BROKER, Listeners.CONTROLLER

_T, _G, _C = "TOPIC_AUTHORIZATION_FAILED", "GROUP_AUTHORIZATION_FAILED", "CLUSTER_AUTHORIZATION_FAILED"
_X, _D = "TRANSACTIONAL_ID_AUTHORIZATION_FAILED", "DELEGATION_TOKEN_AUTHORIZATION_FAILED"

_NODES: Final = (Required(_CLUSTER_ACTION, _CLUSTER, _C),)
_ALTERS: Final = (Required(_ALTER, _CLUSTER, _C),)
_DESCRIBES: Final = (Required(_DESCRIBE, _CLUSTER, _C),)
_MEMBERS: Final = (Required(_READ, _GROUP, _G),)
_TRANSACTIONAL: Final = Required(_WRITE, _TRANSACTIONAL_ID, _X)
_CLUSTER_OPERATIONS: Final = Required(
    _DESCRIBE, _CLUSTER, "the authorized operations of the cluster, if asked for, are 0"
)

REQUIRED: Final[Mapping[str, tuple[Required, ...]]] = MappingProxyType(
    {
        "Produce": (
            Required(_WRITE, _TOPIC, f"{_T} for its partitions; with acks=0 the connection is closed"),
            Required(_WRITE, _TRANSACTIONAL_ID, f"{_X} for every partition; asked if there are transactional records"),
        ),
        "Fetch": (
            Required(_READ, _TOPIC, f"{_T} for its partitions", on=_BROKER),
            Required(_CLUSTER_ACTION, _CLUSTER, f"{_T} for every partition; asked of followers only", on=_BROKER),
            Required(_CLUSTER_ACTION, _CLUSTER, _C, on=_CONTROLLER),
        ),
        "ListOffsets": (Required(_DESCRIBE, _TOPIC, f"{_T} for its partitions"),),
        "Metadata": (
            Required(_DESCRIBE, _TOPIC, f"{_T}, without the name if the request has the id; left out of all topics"),
            Required(_CREATE, _TOPIC, f"{_T}; asked if the topic would be created automatically"),
            Required(_CREATE, _CLUSTER, "", is_instead=True),
            _CLUSTER_OPERATIONS,
        ),
        "OffsetCommit": (
            Required(_READ, _GROUP, f"{_G} for every partition"),
            Required(_READ, _TOPIC, f"{_T} for its partitions"),
        ),
        "OffsetFetch": (
            Required(_DESCRIBE, _GROUP, f"{_G} for the group; in version 1 for every partition"),
            Required(_DESCRIBE, _TOPIC, f"{_T} for its partitions; left out of all topics"),
        ),
        "FindCoordinator": (
            Required(_DESCRIBE, _GROUP, f"{_G}, for the coordinator of a group"),
            Required(_DESCRIBE, _TRANSACTIONAL_ID, f"{_X}, for the coordinator of a transactional id"),
            Required(_CLUSTER_ACTION, _CLUSTER, f"{_C} for every key, for the coordinator of a share partition"),
        ),
        "JoinGroup": _MEMBERS,
        "Heartbeat": _MEMBERS,
        "LeaveGroup": _MEMBERS,
        "SyncGroup": _MEMBERS,
        "DescribeGroups": (Required(_DESCRIBE, _GROUP, _G),),
        "ListGroups": (
            Required(_DESCRIBE, _GROUP, "the group is left out"),
            Required(_DESCRIBE, _CLUSTER, "", is_instead=True),
        ),
        "SaslHandshake": (),
        "ApiVersions": (),
        "CreateTopics": (
            Required(_CREATE, _TOPIC, _T),
            Required(_CREATE, _CLUSTER, "", is_instead=True),
            Required(_DESCRIBE_CONFIGS, _TOPIC, f"the settings of a new topic are left out, with {_T} beside them"),
        ),
        "DeleteTopics": (
            Required(_DELETE, _TOPIC, _T),
            Required(_DELETE, _CLUSTER, "", is_instead=True),
            Required(_DESCRIBE, _TOPIC, f"{_T}, whether the name exists or not; the row of an id has no name"),
        ),
        "DeleteRecords": (Required(_DELETE, _TOPIC, f"{_T} for its partitions"),),
        "InitProducerId": (
            _TRANSACTIONAL,
            Required(AclOperation.TWO_PHASE_COMMIT, _TRANSACTIONAL_ID, f"{_X}; asked if two-phase commit is enabled"),
            Required(AclOperation.IDEMPOTENT_WRITE, _CLUSTER, f"{_C}; asked without a transactional id"),
            Required(_WRITE, _TOPIC, "", is_instead=True),
        ),
        "OffsetForLeaderEpoch": (
            Required(_DESCRIBE, _TOPIC, f"{_T} for its partitions"),
            Required(_CLUSTER_ACTION, _CLUSTER, "", is_instead=True),
        ),
        "AddPartitionsToTxn": (
            Required(_WRITE, _TRANSACTIONAL_ID, f"{_X} for every partition; up to version 3"),
            Required(_WRITE, _TOPIC, f"{_T} for its partitions, OPERATION_NOT_ATTEMPTED for others; up to version 3"),
            Required(_CLUSTER_ACTION, _CLUSTER, f"{_C}; from version 4 on, which brokers send"),
        ),
        "AddOffsetsToTxn": (_TRANSACTIONAL, Required(_READ, _GROUP, _G)),
        "EndTxn": (_TRANSACTIONAL,),
        "WriteTxnMarkers": (
            Required(_ALTER, _CLUSTER, _C),
            Required(_CLUSTER_ACTION, _CLUSTER, "", is_instead=True),
        ),
        "TxnOffsetCommit": (
            Required(_WRITE, _TRANSACTIONAL_ID, f"{_X} for every partition"),
            Required(_READ, _GROUP, f"{_G} for every partition"),
            Required(_READ, _TOPIC, f"{_T} for its partitions"),
        ),
        "DescribeAcls": _DESCRIBES,
        "CreateAcls": (Required(_ALTER, _CLUSTER, f"{_C} for every entry"),),
        "DeleteAcls": (Required(_ALTER, _CLUSTER, f"{_C} for every filter"),),
        "DescribeConfigs": (
            Required(_DESCRIBE_CONFIGS, _TOPIC, f"{_T} for the topic"),
            Required(_DESCRIBE_CONFIGS, _GROUP, f"{_G} for the group"),
            Required(_DESCRIBE_CONFIGS, _CLUSTER, f"{_C} for brokers, loggers and client metrics"),
        ),
        "AlterConfigs": (
            Required(_ALTER_CONFIGS, _TOPIC, f"{_T} for the topic"),
            Required(_ALTER_CONFIGS, _GROUP, f"{_G} for the group"),
            Required(_ALTER_CONFIGS, _CLUSTER, f"{_C} for brokers and client metrics"),
        ),
        "AlterReplicaLogDirs": (Required(_ALTER, _CLUSTER, f"{_C} for every partition"),),
        "DescribeLogDirs": (Required(_DESCRIBE, _CLUSTER, f"{_C}; before version 3 only an empty list"),),
        "SaslAuthenticate": (),
        "CreatePartitions": (Required(_ALTER, _TOPIC, _T),),
        "CreateDelegationToken": (
            Required(AclOperation.CREATE_TOKENS, _USER, f"{_D}; asked if the owner is not the caller"),
        ),
        "RenewDelegationToken": (),
        "ExpireDelegationToken": (),
        "DescribeDelegationToken": (
            Required(_DESCRIBE, _TOKEN, "the token is left out, unless the caller owns or may renew it"),
            Required(AclOperation.DESCRIBE_TOKENS, _USER, "", is_instead=True),
        ),
        "DeleteGroups": (Required(_DELETE, _GROUP, _G),),
        "ElectLeaders": (Required(_ALTER, _CLUSTER, f"{_C} for every partition"),),
        "IncrementalAlterConfigs": (
            Required(_ALTER_CONFIGS, _TOPIC, f"{_T} for the topic"),
            Required(_ALTER_CONFIGS, _GROUP, f"{_G} for the group"),
            Required(_ALTER_CONFIGS, _CLUSTER, f"{_C} for brokers, client metrics, and a broker's loggers"),
            Required(_CLUSTER_ACTION, _CLUSTER, f"{_C} for a controller's loggers", on=_CONTROLLER),
        ),
        "AlterPartitionReassignments": _ALTERS,
        "ListPartitionReassignments": _DESCRIBES,
        "OffsetDelete": (
            Required(_DELETE, _GROUP, _G),
            Required(_READ, _TOPIC, f"{_T} for its partitions"),
        ),
        "DescribeClientQuotas": (Required(_DESCRIBE_CONFIGS, _CLUSTER, _C),),
        "AlterClientQuotas": (Required(_ALTER_CONFIGS, _CLUSTER, f"{_C} for every entity"),),
        "DescribeUserScramCredentials": (Required(_DESCRIBE, _CLUSTER, f"{_C}, also in rows without names"),),
        "AlterUserScramCredentials": (Required(_ALTER, _CLUSTER, f"{_C} for every user"),),
        "Vote": _NODES,
        "BeginQuorumEpoch": _NODES,
        "EndQuorumEpoch": _NODES,
        "DescribeQuorum": _DESCRIBES,
        "AlterPartition": _NODES,
        "UpdateFeatures": _ALTERS,
        "FetchSnapshot": _NODES,
        "Envelope": _NODES,
        "DescribeCluster": (
            _CLUSTER_OPERATIONS,
            Required(_ALTER, _CLUSTER, _C, on=_CONTROLLER),
        ),
        "DescribeProducers": (Required(_READ, _TOPIC, f"{_T} for its partitions"),),
        "BrokerRegistration": _NODES,
        "BrokerHeartbeat": _NODES,
        "UnregisterBroker": _ALTERS,
        "DescribeTransactions": (
            Required(_DESCRIBE, _TRANSACTIONAL_ID, _X),
            Required(_DESCRIBE, _TOPIC, "the topic is left out of the transaction"),
        ),
        "ListTransactions": (Required(_DESCRIBE, _TRANSACTIONAL_ID, "the transactional id is left out"),),
        "AllocateProducerIds": _NODES,
        "ConsumerGroupHeartbeat": (
            Required(_READ, _GROUP, _G),
            Required(_DESCRIBE, _TOPIC, f"{_T} if the member names the topic; a regular expression does not match it"),
        ),
        "ConsumerGroupDescribe": (
            Required(_DESCRIBE, _GROUP, _G),
            Required(_DESCRIBE, _TOPIC, f"{_T} for the group, if a member is assigned the topic"),
        ),
        "ControllerRegistration": _NODES,
        "ShareGroupHeartbeat": (
            Required(_READ, _GROUP, _G),
            Required(_DESCRIBE, _TOPIC, f"{_T} if the member names the topic"),
        ),
        "ShareGroupDescribe": (
            Required(_DESCRIBE, _GROUP, _G),
            Required(_DESCRIBE, _TOPIC, f"{_T} for the group, if a member is assigned the topic"),
        ),
        "ShareFetch": (
            Required(_READ, _GROUP, _G),
            Required(_READ, _TOPIC, f"{_T} for its partitions"),
        ),
        "ShareAcknowledge": (
            Required(_READ, _GROUP, _G),
            Required(_READ, _TOPIC, f"{_T} for its partitions"),
        ),
        "GetTelemetrySubscriptions": (),
        "PushTelemetry": (),
        "AssignReplicasToDirs": _NODES,
        "ListConfigResources": (Required(_DESCRIBE_CONFIGS, _CLUSTER, _C),),
        "DescribeTopicPartitions": (Required(_DESCRIBE, _TOPIC, f"{_T} if it is named; left out of all topics"),),
        "AddRaftVoter": _ALTERS,
        "RemoveRaftVoter": _ALTERS,
        "UpdateRaftVoter": _NODES,
        "InitializeShareGroupState": _NODES,
        "ReadShareGroupState": _NODES,
        "WriteShareGroupState": _NODES,
        "DeleteShareGroupState": _NODES,
        "ReadShareGroupStateSummary": _NODES,
        "StreamsGroupHeartbeat": (
            Required(_READ, _GROUP, _G),
            Required(_DESCRIBE, _TOPIC, f"{_T} if the topology has the topic"),
            Required(_CREATE, _TOPIC, "internal topics that are missing are not created, and a status names them"),
            Required(_CREATE, _CLUSTER, "", is_instead=True),
        ),
        "StreamsGroupDescribe": (
            Required(_DESCRIBE, _GROUP, _G),
            Required(_DESCRIBE, _TOPIC, f"{_T} for the group, if its topology has the topic"),
        ),
        "DescribeShareGroupOffsets": (
            Required(_DESCRIBE, _GROUP, _G),
            Required(_DESCRIBE, _TOPIC, f"{_T} if it is named; left out of all topics"),
        ),
        "AlterShareGroupOffsets": (Required(_READ, _GROUP, _G), Required(_READ, _TOPIC, _T)),
        "DeleteShareGroupOffsets": (Required(_DELETE, _GROUP, _G), Required(_READ, _TOPIC, _T)),
    }
)
"""By API, of other versions of Kafka too. An API with no permissions answers everyone."""


def required_operation(api: str, resource_type: ResourceType) -> AclOperation | None:
    """Return the operation on a type of resource that an API needs, or None if it is not known.

    >>> required_operation("DeleteTopics", ResourceType.TOPIC).name
    'DELETE'
    """
    return next((each.operation for each in REQUIRED.get(api, ()) if each.resource_type is resource_type), None)
