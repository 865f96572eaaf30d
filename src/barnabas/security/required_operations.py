"""The permission that an API needs, for messages about a refusal. Pure.

Its one rule: the operations are those that Kafka's documentation lists for each API. An error code names the type of the
resource; API and type name the operation. An operation on the cluster that is enough instead is not listed.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

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

_OPERATIONS: dict[ResourceType, dict[AclOperation, tuple[str, ...]]] = {
    ResourceType.TOPIC: {
        AclOperation.READ: ("Fetch", "OffsetCommit", "TxnOffsetCommit", "OffsetDelete", "DescribeProducers"),
        AclOperation.WRITE: ("Produce", "AddPartitionsToTxn"),
        AclOperation.CREATE: ("CreateTopics",),
        AclOperation.DELETE: ("DeleteTopics", "DeleteRecords"),
        AclOperation.ALTER: ("CreatePartitions",),
        AclOperation.DESCRIBE: (
            *("Metadata", "DescribeTopicPartitions", "ListOffsets", "OffsetFetch", "OffsetForLeaderEpoch"),
            *("ConsumerGroupHeartbeat", "ConsumerGroupDescribe"),
        ),
        AclOperation.DESCRIBE_CONFIGS: ("DescribeConfigs",),
        AclOperation.ALTER_CONFIGS: ("AlterConfigs", "IncrementalAlterConfigs"),
    },
    ResourceType.GROUP: {
        AclOperation.READ: (
            *("JoinGroup", "SyncGroup", "Heartbeat", "LeaveGroup", "ConsumerGroupHeartbeat", "OffsetCommit"),
            *("TxnOffsetCommit", "AddOffsetsToTxn", "ShareGroupHeartbeat"),
        ),
        AclOperation.DELETE: ("DeleteGroups", "OffsetDelete"),
        AclOperation.DESCRIBE: (
            *("FindCoordinator", "DescribeGroups", "ConsumerGroupDescribe", "ShareGroupDescribe", "OffsetFetch"),
        ),
        AclOperation.DESCRIBE_CONFIGS: ("DescribeConfigs",),
        AclOperation.ALTER_CONFIGS: ("IncrementalAlterConfigs",),
    },
    ResourceType.TRANSACTIONAL_ID: {
        AclOperation.WRITE: (
            *("InitProducerId", "AddPartitionsToTxn", "AddOffsetsToTxn", "EndTxn", "TxnOffsetCommit", "Produce"),
        ),
        AclOperation.DESCRIBE: ("FindCoordinator", "DescribeTransactions"),
    },
    ResourceType.DELEGATION_TOKEN: {AclOperation.DESCRIBE: ("DescribeDelegationToken",)},
    ResourceType.CLUSTER: {
        AclOperation.CREATE: ("CreateTopics",),
        AclOperation.ALTER: (
            *("CreateAcls", "DeleteAcls", "AlterReplicaLogDirs", "ElectLeaders", "AlterPartitionReassignments"),
            *("AlterUserScramCredentials", "UpdateFeatures", "UnregisterBroker", "AddRaftVoter", "RemoveRaftVoter"),
            *("WriteTxnMarkers", "DescribeCluster"),
        ),
        AclOperation.DESCRIBE: (
            *("DescribeAcls", "DescribeLogDirs", "ListPartitionReassignments", "DescribeUserScramCredentials"),
            *("DescribeQuorum", "ListGroups"),
        ),
        AclOperation.DESCRIBE_CONFIGS: ("DescribeConfigs", "DescribeClientQuotas", "ListConfigResources"),
        AclOperation.ALTER_CONFIGS: ("AlterConfigs", "IncrementalAlterConfigs", "AlterClientQuotas"),
        AclOperation.CLUSTER_ACTION: ("Fetch", "FetchSnapshot", "UpdateRaftVoter"),
        AclOperation.IDEMPOTENT_WRITE: ("InitProducerId", "Produce"),
    },
}


def required_operation(api: str, resource_type: ResourceType) -> AclOperation | None:
    """Return the operation on a type of resource that an API needs, or None if it is not known.

    >>> required_operation("DeleteTopics", ResourceType.TOPIC).name
    'DELETE'
    """
    for operation, apis in _OPERATIONS.get(resource_type, {}).items():
        if api in apis:
            return operation
    return None
