"""Every API with its key and versions, and where each message and record is defined.

Generated from schema/*.txt by `make generate`; do not edit.
"""


from __future__ import annotations

from enum import IntEnum
from typing import Final

from barnabas.wire.api import Api
from barnabas.wire.schema import Versions


class ApiKey(IntEnum):
    """The number of each API."""

    PRODUCE = 0
    FETCH = 1
    LIST_OFFSETS = 2
    METADATA = 3
    OFFSET_COMMIT = 8
    OFFSET_FETCH = 9
    FIND_COORDINATOR = 10
    JOIN_GROUP = 11
    HEARTBEAT = 12
    LEAVE_GROUP = 13
    SYNC_GROUP = 14
    DESCRIBE_GROUPS = 15
    LIST_GROUPS = 16
    SASL_HANDSHAKE = 17
    API_VERSIONS = 18
    CREATE_TOPICS = 19
    DELETE_TOPICS = 20
    DELETE_RECORDS = 21
    INIT_PRODUCER_ID = 22
    OFFSET_FOR_LEADER_EPOCH = 23
    ADD_PARTITIONS_TO_TXN = 24
    ADD_OFFSETS_TO_TXN = 25
    END_TXN = 26
    WRITE_TXN_MARKERS = 27
    TXN_OFFSET_COMMIT = 28
    DESCRIBE_ACLS = 29
    CREATE_ACLS = 30
    DELETE_ACLS = 31
    DESCRIBE_CONFIGS = 32
    ALTER_CONFIGS = 33
    ALTER_REPLICA_LOG_DIRS = 34
    DESCRIBE_LOG_DIRS = 35
    SASL_AUTHENTICATE = 36
    CREATE_PARTITIONS = 37
    CREATE_DELEGATION_TOKEN = 38
    RENEW_DELEGATION_TOKEN = 39
    EXPIRE_DELEGATION_TOKEN = 40
    DESCRIBE_DELEGATION_TOKEN = 41
    DELETE_GROUPS = 42
    ELECT_LEADERS = 43
    INCREMENTAL_ALTER_CONFIGS = 44
    ALTER_PARTITION_REASSIGNMENTS = 45
    LIST_PARTITION_REASSIGNMENTS = 46
    OFFSET_DELETE = 47
    DESCRIBE_CLIENT_QUOTAS = 48
    ALTER_CLIENT_QUOTAS = 49
    DESCRIBE_USER_SCRAM_CREDENTIALS = 50
    ALTER_USER_SCRAM_CREDENTIALS = 51
    VOTE = 52
    BEGIN_QUORUM_EPOCH = 53
    END_QUORUM_EPOCH = 54
    DESCRIBE_QUORUM = 55
    ALTER_PARTITION = 56
    UPDATE_FEATURES = 57
    ENVELOPE = 58
    FETCH_SNAPSHOT = 59
    DESCRIBE_CLUSTER = 60
    DESCRIBE_PRODUCERS = 61
    BROKER_REGISTRATION = 62
    BROKER_HEARTBEAT = 63
    UNREGISTER_BROKER = 64
    DESCRIBE_TRANSACTIONS = 65
    LIST_TRANSACTIONS = 66
    ALLOCATE_PRODUCER_IDS = 67
    CONSUMER_GROUP_HEARTBEAT = 68
    CONSUMER_GROUP_DESCRIBE = 69
    CONTROLLER_REGISTRATION = 70
    GET_TELEMETRY_SUBSCRIPTIONS = 71
    PUSH_TELEMETRY = 72
    ASSIGN_REPLICAS_TO_DIRS = 73
    LIST_CONFIG_RESOURCES = 74
    DESCRIBE_TOPIC_PARTITIONS = 75
    SHARE_GROUP_HEARTBEAT = 76
    SHARE_GROUP_DESCRIBE = 77
    SHARE_FETCH = 78
    SHARE_ACKNOWLEDGE = 79
    ADD_RAFT_VOTER = 80
    REMOVE_RAFT_VOTER = 81
    UPDATE_RAFT_VOTER = 82
    INITIALIZE_SHARE_GROUP_STATE = 83
    READ_SHARE_GROUP_STATE = 84
    WRITE_SHARE_GROUP_STATE = 85
    DELETE_SHARE_GROUP_STATE = 86
    READ_SHARE_GROUP_STATE_SUMMARY = 87
    STREAMS_GROUP_HEARTBEAT = 88
    STREAMS_GROUP_DESCRIBE = 89
    DESCRIBE_SHARE_GROUP_OFFSETS = 90
    ALTER_SHARE_GROUP_OFFSETS = 91
    DELETE_SHARE_GROUP_OFFSETS = 92


APIS: Final[dict[int, Api]] = {
    0: Api("Produce", Versions(0, 13), Versions(3, 13), 9, ("broker",), False),
    1: Api("Fetch", Versions(0, 18), Versions(4, 18), 12, ("broker", "controller"), False),
    2: Api("ListOffsets", Versions(0, 11), Versions(1, 11), 6, ("broker",), False),
    3: Api("Metadata", Versions(0, 13), Versions(0, 13), 9, ("broker",), False),
    8: Api("OffsetCommit", Versions(0, 10), Versions(2, 10), 8, ("broker",), False),
    9: Api("OffsetFetch", Versions(0, 10), Versions(1, 10), 6, ("broker",), False),
    10: Api("FindCoordinator", Versions(0, 6), Versions(0, 6), 3, ("broker",), False),
    11: Api("JoinGroup", Versions(0, 9), Versions(0, 9), 6, ("broker",), False),
    12: Api("Heartbeat", Versions(0, 4), Versions(0, 4), 4, ("broker",), False),
    13: Api("LeaveGroup", Versions(0, 5), Versions(0, 5), 4, ("broker",), False),
    14: Api("SyncGroup", Versions(0, 5), Versions(0, 5), 4, ("broker",), False),
    15: Api("DescribeGroups", Versions(0, 6), Versions(0, 6), 5, ("broker",), False),
    16: Api("ListGroups", Versions(0, 5), Versions(0, 5), 3, ("broker",), False),
    17: Api("SaslHandshake", Versions(0, 1), Versions(0, 1), None, ("broker", "controller"), False),
    18: Api("ApiVersions", Versions(0, 4), Versions(0, 4), 3, ("broker", "controller"), False),
    19: Api("CreateTopics", Versions(0, 7), Versions(2, 7), 5, ("broker", "controller"), False),
    20: Api("DeleteTopics", Versions(0, 6), Versions(1, 6), 4, ("broker", "controller"), False),
    21: Api("DeleteRecords", Versions(0, 2), Versions(0, 2), 2, ("broker",), False),
    22: Api("InitProducerId", Versions(0, 6), Versions(0, 6), 2, ("broker",), True),
    23: Api("OffsetForLeaderEpoch", Versions(0, 4), Versions(2, 4), 4, ("broker",), False),
    24: Api("AddPartitionsToTxn", Versions(0, 5), Versions(0, 5), 3, ("broker",), False),
    25: Api("AddOffsetsToTxn", Versions(0, 4), Versions(0, 4), 3, ("broker",), False),
    26: Api("EndTxn", Versions(0, 5), Versions(0, 5), 3, ("broker",), False),
    27: Api("WriteTxnMarkers", Versions(0, 2), Versions(1, 2), 1, ("broker",), False),
    28: Api("TxnOffsetCommit", Versions(0, 5), Versions(0, 5), 3, ("broker",), False),
    29: Api("DescribeAcls", Versions(0, 3), Versions(1, 3), 2, ("broker", "controller"), False),
    30: Api("CreateAcls", Versions(0, 3), Versions(1, 3), 2, ("broker", "controller"), False),
    31: Api("DeleteAcls", Versions(0, 3), Versions(1, 3), 2, ("broker", "controller"), False),
    32: Api("DescribeConfigs", Versions(0, 4), Versions(1, 4), 4, ("broker", "controller"), False),
    33: Api("AlterConfigs", Versions(0, 2), Versions(0, 2), 2, ("broker", "controller"), False),
    34: Api("AlterReplicaLogDirs", Versions(0, 2), Versions(1, 2), 2, ("broker",), False),
    35: Api("DescribeLogDirs", Versions(0, 5), Versions(1, 5), 2, ("broker",), False),
    36: Api("SaslAuthenticate", Versions(0, 2), Versions(0, 2), 2, ("broker", "controller"), False),
    37: Api("CreatePartitions", Versions(0, 3), Versions(0, 3), 2, ("broker", "controller"), False),
    38: Api("CreateDelegationToken", Versions(0, 3), Versions(1, 3), 2, ("broker", "controller"), False),
    39: Api("RenewDelegationToken", Versions(0, 2), Versions(1, 2), 2, ("broker", "controller"), False),
    40: Api("ExpireDelegationToken", Versions(0, 2), Versions(1, 2), 2, ("broker", "controller"), False),
    41: Api("DescribeDelegationToken", Versions(0, 3), Versions(1, 3), 2, ("broker", "controller"), False),
    42: Api("DeleteGroups", Versions(0, 2), Versions(0, 2), 2, ("broker",), False),
    43: Api("ElectLeaders", Versions(0, 2), Versions(0, 2), 2, ("broker", "controller"), False),
    44: Api("IncrementalAlterConfigs", Versions(0, 1), Versions(0, 1), 1, ("broker", "controller"), False),
    45: Api("AlterPartitionReassignments", Versions(0, 1), Versions(0, 1), 0, ("broker", "controller"), False),
    46: Api("ListPartitionReassignments", Versions(0, 0), Versions(0, 0), 0, ("broker", "controller"), False),
    47: Api("OffsetDelete", Versions(0, 0), Versions(0, 0), None, ("broker",), False),
    48: Api("DescribeClientQuotas", Versions(0, 1), Versions(0, 1), 1, ("broker",), False),
    49: Api("AlterClientQuotas", Versions(0, 1), Versions(0, 1), 1, ("broker", "controller"), False),
    50: Api("DescribeUserScramCredentials", Versions(0, 0), Versions(0, 0), 0, ("broker", "controller"), False),
    51: Api("AlterUserScramCredentials", Versions(0, 0), Versions(0, 0), 0, ("broker", "controller"), False),
    52: Api("Vote", Versions(0, 2), Versions(0, 2), 0, ("controller",), False),
    53: Api("BeginQuorumEpoch", Versions(0, 1), Versions(0, 1), 1, ("controller",), False),
    54: Api("EndQuorumEpoch", Versions(0, 1), Versions(0, 1), 1, ("controller",), False),
    55: Api("DescribeQuorum", Versions(0, 2), Versions(0, 2), 0, ("broker", "controller"), False),
    56: Api("AlterPartition", Versions(0, 3), Versions(2, 3), 0, ("controller",), False),
    57: Api("UpdateFeatures", Versions(0, 2), Versions(0, 2), 0, ("broker", "controller"), False),
    58: Api("Envelope", Versions(0, 0), Versions(0, 0), 0, ("controller",), False),
    59: Api("FetchSnapshot", Versions(0, 1), Versions(0, 1), 0, ("controller",), False),
    60: Api("DescribeCluster", Versions(0, 2), Versions(0, 2), 0, ("broker", "controller"), False),
    61: Api("DescribeProducers", Versions(0, 0), Versions(0, 0), 0, ("broker",), False),
    62: Api("BrokerRegistration", Versions(0, 4), Versions(0, 4), 0, ("controller",), False),
    63: Api("BrokerHeartbeat", Versions(0, 2), Versions(0, 2), 0, ("controller",), False),
    64: Api("UnregisterBroker", Versions(0, 0), Versions(0, 0), 0, ("broker", "controller"), False),
    65: Api("DescribeTransactions", Versions(0, 0), Versions(0, 0), 0, ("broker",), False),
    66: Api("ListTransactions", Versions(0, 2), Versions(0, 2), 0, ("broker",), False),
    67: Api("AllocateProducerIds", Versions(0, 0), Versions(0, 0), 0, ("controller",), False),
    68: Api("ConsumerGroupHeartbeat", Versions(0, 1), Versions(0, 1), 0, ("broker",), False),
    69: Api("ConsumerGroupDescribe", Versions(0, 1), Versions(0, 1), 0, ("broker",), False),
    70: Api("ControllerRegistration", Versions(0, 0), Versions(0, 0), 0, ("controller",), False),
    71: Api("GetTelemetrySubscriptions", Versions(0, 0), Versions(0, 0), 0, ("broker",), False),
    72: Api("PushTelemetry", Versions(0, 0), Versions(0, 0), 0, ("broker",), False),
    73: Api("AssignReplicasToDirs", Versions(0, 0), Versions(0, 0), 0, ("controller",), False),
    74: Api("ListConfigResources", Versions(0, 1), Versions(0, 1), 0, ("broker",), False),
    75: Api("DescribeTopicPartitions", Versions(0, 0), Versions(0, 0), 0, ("broker",), False),
    76: Api("ShareGroupHeartbeat", Versions(1, 1), Versions(1, 1), 0, ("broker",), False),
    77: Api("ShareGroupDescribe", Versions(1, 1), Versions(1, 1), 0, ("broker",), False),
    78: Api("ShareFetch", Versions(1, 2), Versions(1, 2), 0, ("broker",), False),
    79: Api("ShareAcknowledge", Versions(1, 2), Versions(1, 2), 0, ("broker",), False),
    80: Api("AddRaftVoter", Versions(0, 1), Versions(0, 1), 0, ("controller", "broker"), False),
    81: Api("RemoveRaftVoter", Versions(0, 0), Versions(0, 0), 0, ("controller", "broker"), False),
    82: Api("UpdateRaftVoter", Versions(0, 0), Versions(0, 0), 0, ("controller",), False),
    83: Api("InitializeShareGroupState", Versions(0, 0), Versions(0, 0), 0, ("broker",), False),
    84: Api("ReadShareGroupState", Versions(0, 0), Versions(0, 0), 0, ("broker",), False),
    85: Api("WriteShareGroupState", Versions(0, 1), Versions(0, 1), 0, ("broker",), False),
    86: Api("DeleteShareGroupState", Versions(0, 0), Versions(0, 0), 0, ("broker",), False),
    87: Api("ReadShareGroupStateSummary", Versions(0, 1), Versions(0, 1), 0, ("broker",), False),
    88: Api("StreamsGroupHeartbeat", Versions(0, 0), Versions(0, 0), 0, ("broker",), False),
    89: Api("StreamsGroupDescribe", Versions(0, 0), Versions(0, 0), 0, ("broker",), False),
    90: Api("DescribeShareGroupOffsets", Versions(0, 1), Versions(0, 1), 0, ("broker",), False),
    91: Api("AlterShareGroupOffsets", Versions(0, 0), Versions(0, 0), 0, ("broker",), False),
    92: Api("DeleteShareGroupOffsets", Versions(0, 0), Versions(0, 0), 0, ("broker",), False),
}

MODULES: Final[dict[str, str]] = {
    "RequestHeader": "messages.header",
    "ResponseHeader": "messages.header",
    "ConsumerProtocolAssignment": "messages.consumer_protocol_assignment",
    "ConsumerProtocolSubscription": "messages.consumer_protocol_subscription",
    "DefaultPrincipalData": "messages.default_principal_data",
    "ProduceRequest": "messages.produce",
    "ProduceResponse": "messages.produce",
    "FetchRequest": "messages.fetch",
    "FetchResponse": "messages.fetch",
    "ListOffsetsRequest": "messages.list_offsets",
    "ListOffsetsResponse": "messages.list_offsets",
    "MetadataRequest": "messages.metadata",
    "MetadataResponse": "messages.metadata",
    "OffsetCommitRequest": "messages.offset_commit",
    "OffsetCommitResponse": "messages.offset_commit",
    "OffsetFetchRequest": "messages.offset_fetch",
    "OffsetFetchResponse": "messages.offset_fetch",
    "FindCoordinatorRequest": "messages.find_coordinator",
    "FindCoordinatorResponse": "messages.find_coordinator",
    "JoinGroupRequest": "messages.join_group",
    "JoinGroupResponse": "messages.join_group",
    "HeartbeatRequest": "messages.heartbeat",
    "HeartbeatResponse": "messages.heartbeat",
    "LeaveGroupRequest": "messages.leave_group",
    "LeaveGroupResponse": "messages.leave_group",
    "SyncGroupRequest": "messages.sync_group",
    "SyncGroupResponse": "messages.sync_group",
    "DescribeGroupsRequest": "messages.describe_groups",
    "DescribeGroupsResponse": "messages.describe_groups",
    "ListGroupsRequest": "messages.list_groups",
    "ListGroupsResponse": "messages.list_groups",
    "SaslHandshakeRequest": "messages.sasl_handshake",
    "SaslHandshakeResponse": "messages.sasl_handshake",
    "ApiVersionsRequest": "messages.api_versions",
    "ApiVersionsResponse": "messages.api_versions",
    "CreateTopicsRequest": "messages.create_topics",
    "CreateTopicsResponse": "messages.create_topics",
    "DeleteTopicsRequest": "messages.delete_topics",
    "DeleteTopicsResponse": "messages.delete_topics",
    "DeleteRecordsRequest": "messages.delete_records",
    "DeleteRecordsResponse": "messages.delete_records",
    "InitProducerIdRequest": "messages.init_producer_id",
    "InitProducerIdResponse": "messages.init_producer_id",
    "OffsetForLeaderEpochRequest": "messages.offset_for_leader_epoch",
    "OffsetForLeaderEpochResponse": "messages.offset_for_leader_epoch",
    "AddPartitionsToTxnRequest": "messages.add_partitions_to_txn",
    "AddPartitionsToTxnResponse": "messages.add_partitions_to_txn",
    "AddOffsetsToTxnRequest": "messages.add_offsets_to_txn",
    "AddOffsetsToTxnResponse": "messages.add_offsets_to_txn",
    "EndTxnRequest": "messages.end_txn",
    "EndTxnResponse": "messages.end_txn",
    "WriteTxnMarkersRequest": "messages.write_txn_markers",
    "WriteTxnMarkersResponse": "messages.write_txn_markers",
    "TxnOffsetCommitRequest": "messages.txn_offset_commit",
    "TxnOffsetCommitResponse": "messages.txn_offset_commit",
    "DescribeAclsRequest": "messages.describe_acls",
    "DescribeAclsResponse": "messages.describe_acls",
    "CreateAclsRequest": "messages.create_acls",
    "CreateAclsResponse": "messages.create_acls",
    "DeleteAclsRequest": "messages.delete_acls",
    "DeleteAclsResponse": "messages.delete_acls",
    "DescribeConfigsRequest": "messages.describe_configs",
    "DescribeConfigsResponse": "messages.describe_configs",
    "AlterConfigsRequest": "messages.alter_configs",
    "AlterConfigsResponse": "messages.alter_configs",
    "AlterReplicaLogDirsRequest": "messages.alter_replica_log_dirs",
    "AlterReplicaLogDirsResponse": "messages.alter_replica_log_dirs",
    "DescribeLogDirsRequest": "messages.describe_log_dirs",
    "DescribeLogDirsResponse": "messages.describe_log_dirs",
    "SaslAuthenticateRequest": "messages.sasl_authenticate",
    "SaslAuthenticateResponse": "messages.sasl_authenticate",
    "CreatePartitionsRequest": "messages.create_partitions",
    "CreatePartitionsResponse": "messages.create_partitions",
    "CreateDelegationTokenRequest": "messages.create_delegation_token",
    "CreateDelegationTokenResponse": "messages.create_delegation_token",
    "RenewDelegationTokenRequest": "messages.renew_delegation_token",
    "RenewDelegationTokenResponse": "messages.renew_delegation_token",
    "ExpireDelegationTokenRequest": "messages.expire_delegation_token",
    "ExpireDelegationTokenResponse": "messages.expire_delegation_token",
    "DescribeDelegationTokenRequest": "messages.describe_delegation_token",
    "DescribeDelegationTokenResponse": "messages.describe_delegation_token",
    "DeleteGroupsRequest": "messages.delete_groups",
    "DeleteGroupsResponse": "messages.delete_groups",
    "ElectLeadersRequest": "messages.elect_leaders",
    "ElectLeadersResponse": "messages.elect_leaders",
    "IncrementalAlterConfigsRequest": "messages.incremental_alter_configs",
    "IncrementalAlterConfigsResponse": "messages.incremental_alter_configs",
    "AlterPartitionReassignmentsRequest": "messages.alter_partition_reassignments",
    "AlterPartitionReassignmentsResponse": "messages.alter_partition_reassignments",
    "ListPartitionReassignmentsRequest": "messages.list_partition_reassignments",
    "ListPartitionReassignmentsResponse": "messages.list_partition_reassignments",
    "OffsetDeleteRequest": "messages.offset_delete",
    "OffsetDeleteResponse": "messages.offset_delete",
    "DescribeClientQuotasRequest": "messages.describe_client_quotas",
    "DescribeClientQuotasResponse": "messages.describe_client_quotas",
    "AlterClientQuotasRequest": "messages.alter_client_quotas",
    "AlterClientQuotasResponse": "messages.alter_client_quotas",
    "DescribeUserScramCredentialsRequest": "messages.describe_user_scram_credentials",
    "DescribeUserScramCredentialsResponse": "messages.describe_user_scram_credentials",
    "AlterUserScramCredentialsRequest": "messages.alter_user_scram_credentials",
    "AlterUserScramCredentialsResponse": "messages.alter_user_scram_credentials",
    "VoteRequest": "messages.vote",
    "VoteResponse": "messages.vote",
    "BeginQuorumEpochRequest": "messages.begin_quorum_epoch",
    "BeginQuorumEpochResponse": "messages.begin_quorum_epoch",
    "EndQuorumEpochRequest": "messages.end_quorum_epoch",
    "EndQuorumEpochResponse": "messages.end_quorum_epoch",
    "DescribeQuorumRequest": "messages.describe_quorum",
    "DescribeQuorumResponse": "messages.describe_quorum",
    "AlterPartitionRequest": "messages.alter_partition",
    "AlterPartitionResponse": "messages.alter_partition",
    "UpdateFeaturesRequest": "messages.update_features",
    "UpdateFeaturesResponse": "messages.update_features",
    "EnvelopeRequest": "messages.envelope",
    "EnvelopeResponse": "messages.envelope",
    "FetchSnapshotRequest": "messages.fetch_snapshot",
    "FetchSnapshotResponse": "messages.fetch_snapshot",
    "DescribeClusterRequest": "messages.describe_cluster",
    "DescribeClusterResponse": "messages.describe_cluster",
    "DescribeProducersRequest": "messages.describe_producers",
    "DescribeProducersResponse": "messages.describe_producers",
    "BrokerRegistrationRequest": "messages.broker_registration",
    "BrokerRegistrationResponse": "messages.broker_registration",
    "BrokerHeartbeatRequest": "messages.broker_heartbeat",
    "BrokerHeartbeatResponse": "messages.broker_heartbeat",
    "UnregisterBrokerRequest": "messages.unregister_broker",
    "UnregisterBrokerResponse": "messages.unregister_broker",
    "DescribeTransactionsRequest": "messages.describe_transactions",
    "DescribeTransactionsResponse": "messages.describe_transactions",
    "ListTransactionsRequest": "messages.list_transactions",
    "ListTransactionsResponse": "messages.list_transactions",
    "AllocateProducerIdsRequest": "messages.allocate_producer_ids",
    "AllocateProducerIdsResponse": "messages.allocate_producer_ids",
    "ConsumerGroupHeartbeatRequest": "messages.consumer_group_heartbeat",
    "ConsumerGroupHeartbeatResponse": "messages.consumer_group_heartbeat",
    "ConsumerGroupDescribeRequest": "messages.consumer_group_describe",
    "ConsumerGroupDescribeResponse": "messages.consumer_group_describe",
    "ControllerRegistrationRequest": "messages.controller_registration",
    "ControllerRegistrationResponse": "messages.controller_registration",
    "GetTelemetrySubscriptionsRequest": "messages.get_telemetry_subscriptions",
    "GetTelemetrySubscriptionsResponse": "messages.get_telemetry_subscriptions",
    "PushTelemetryRequest": "messages.push_telemetry",
    "PushTelemetryResponse": "messages.push_telemetry",
    "AssignReplicasToDirsRequest": "messages.assign_replicas_to_dirs",
    "AssignReplicasToDirsResponse": "messages.assign_replicas_to_dirs",
    "ListConfigResourcesRequest": "messages.list_config_resources",
    "ListConfigResourcesResponse": "messages.list_config_resources",
    "DescribeTopicPartitionsRequest": "messages.describe_topic_partitions",
    "DescribeTopicPartitionsResponse": "messages.describe_topic_partitions",
    "ShareGroupHeartbeatRequest": "messages.share_group_heartbeat",
    "ShareGroupHeartbeatResponse": "messages.share_group_heartbeat",
    "ShareGroupDescribeRequest": "messages.share_group_describe",
    "ShareGroupDescribeResponse": "messages.share_group_describe",
    "ShareFetchRequest": "messages.share_fetch",
    "ShareFetchResponse": "messages.share_fetch",
    "ShareAcknowledgeRequest": "messages.share_acknowledge",
    "ShareAcknowledgeResponse": "messages.share_acknowledge",
    "AddRaftVoterRequest": "messages.add_raft_voter",
    "AddRaftVoterResponse": "messages.add_raft_voter",
    "RemoveRaftVoterRequest": "messages.remove_raft_voter",
    "RemoveRaftVoterResponse": "messages.remove_raft_voter",
    "UpdateRaftVoterRequest": "messages.update_raft_voter",
    "UpdateRaftVoterResponse": "messages.update_raft_voter",
    "InitializeShareGroupStateRequest": "messages.initialize_share_group_state",
    "InitializeShareGroupStateResponse": "messages.initialize_share_group_state",
    "ReadShareGroupStateRequest": "messages.read_share_group_state",
    "ReadShareGroupStateResponse": "messages.read_share_group_state",
    "WriteShareGroupStateRequest": "messages.write_share_group_state",
    "WriteShareGroupStateResponse": "messages.write_share_group_state",
    "DeleteShareGroupStateRequest": "messages.delete_share_group_state",
    "DeleteShareGroupStateResponse": "messages.delete_share_group_state",
    "ReadShareGroupStateSummaryRequest": "messages.read_share_group_state_summary",
    "ReadShareGroupStateSummaryResponse": "messages.read_share_group_state_summary",
    "StreamsGroupHeartbeatRequest": "messages.streams_group_heartbeat",
    "StreamsGroupHeartbeatResponse": "messages.streams_group_heartbeat",
    "StreamsGroupDescribeRequest": "messages.streams_group_describe",
    "StreamsGroupDescribeResponse": "messages.streams_group_describe",
    "DescribeShareGroupOffsetsRequest": "messages.describe_share_group_offsets",
    "DescribeShareGroupOffsetsResponse": "messages.describe_share_group_offsets",
    "AlterShareGroupOffsetsRequest": "messages.alter_share_group_offsets",
    "AlterShareGroupOffsetsResponse": "messages.alter_share_group_offsets",
    "DeleteShareGroupOffsetsRequest": "messages.delete_share_group_offsets",
    "DeleteShareGroupOffsetsResponse": "messages.delete_share_group_offsets",
    "RegisterBrokerRecord": "records.metadata",
    "UnregisterBrokerRecord": "records.metadata",
    "TopicRecord": "records.metadata",
    "PartitionRecord": "records.metadata",
    "ConfigRecord": "records.metadata",
    "PartitionChangeRecord": "records.metadata",
    "FenceBrokerRecord": "records.metadata",
    "UnfenceBrokerRecord": "records.metadata",
    "RemoveTopicRecord": "records.metadata",
    "DelegationTokenRecord": "records.metadata",
    "UserScramCredentialRecord": "records.metadata",
    "FeatureLevelRecord": "records.metadata",
    "ClientQuotaRecord": "records.metadata",
    "ProducerIdsRecord": "records.metadata",
    "BrokerRegistrationChangeRecord": "records.metadata",
    "AccessControlEntryRecord": "records.metadata",
    "RemoveAccessControlEntryRecord": "records.metadata",
    "NoOpRecord": "records.metadata",
    "ZkMigrationStateRecord": "records.metadata",
    "RemoveUserScramCredentialRecord": "records.metadata",
    "BeginTransactionRecord": "records.metadata",
    "EndTransactionRecord": "records.metadata",
    "AbortTransactionRecord": "records.metadata",
    "RemoveDelegationTokenRecord": "records.metadata",
    "RegisterControllerRecord": "records.metadata",
    "ClearElrRecord": "records.metadata",
    "ControlRecordTypeSchema": "records.control",
    "EndTxnMarker": "records.control",
    "KRaftVersionRecord": "records.control",
    "LeaderChangeMessage": "records.control",
    "SnapshotFooterRecord": "records.control",
    "SnapshotHeaderRecord": "records.control",
    "VotersRecord": "records.control",
    "QuorumStateData": "records.raft",
    "LegacyOffsetCommitKey": "records.group",
    "LegacyOffsetCommitValue": "records.group",
    "OffsetCommitKey": "records.group",
    "OffsetCommitValue": "records.group",
    "GroupMetadataKey": "records.group",
    "GroupMetadataValue": "records.group",
    "ConsumerGroupMetadataKey": "records.group",
    "ConsumerGroupMetadataValue": "records.group",
    "ConsumerGroupPartitionMetadataKey": "records.group",
    "ConsumerGroupPartitionMetadataValue": "records.group",
    "ConsumerGroupMemberMetadataKey": "records.group",
    "ConsumerGroupMemberMetadataValue": "records.group",
    "ConsumerGroupTargetAssignmentMetadataKey": "records.group",
    "ConsumerGroupTargetAssignmentMetadataValue": "records.group",
    "ConsumerGroupTargetAssignmentMemberKey": "records.group",
    "ConsumerGroupTargetAssignmentMemberValue": "records.group",
    "ConsumerGroupCurrentMemberAssignmentKey": "records.group",
    "ConsumerGroupCurrentMemberAssignmentValue": "records.group",
    "ShareGroupMemberMetadataKey": "records.group",
    "ShareGroupMemberMetadataValue": "records.group",
    "ShareGroupMetadataKey": "records.group",
    "ShareGroupMetadataValue": "records.group",
    "ShareGroupTargetAssignmentMetadataKey": "records.group",
    "ShareGroupTargetAssignmentMetadataValue": "records.group",
    "ShareGroupTargetAssignmentMemberKey": "records.group",
    "ShareGroupTargetAssignmentMemberValue": "records.group",
    "ShareGroupCurrentMemberAssignmentKey": "records.group",
    "ShareGroupCurrentMemberAssignmentValue": "records.group",
    "ShareGroupStatePartitionMetadataKey": "records.group",
    "ShareGroupStatePartitionMetadataValue": "records.group",
    "ConsumerGroupRegularExpressionKey": "records.group",
    "ConsumerGroupRegularExpressionValue": "records.group",
    "StreamsGroupMetadataKey": "records.group",
    "StreamsGroupMetadataValue": "records.group",
    "StreamsGroupMemberMetadataKey": "records.group",
    "StreamsGroupMemberMetadataValue": "records.group",
    "StreamsGroupTargetAssignmentMetadataKey": "records.group",
    "StreamsGroupTargetAssignmentMetadataValue": "records.group",
    "StreamsGroupTargetAssignmentMemberKey": "records.group",
    "StreamsGroupTargetAssignmentMemberValue": "records.group",
    "StreamsGroupCurrentMemberAssignmentKey": "records.group",
    "StreamsGroupCurrentMemberAssignmentValue": "records.group",
    "StreamsGroupTopologyKey": "records.group",
    "StreamsGroupTopologyValue": "records.group",
    "TransactionLogKey": "records.transaction",
    "TransactionLogValue": "records.transaction",
    "ShareSnapshotKey": "records.share",
    "ShareSnapshotValue": "records.share",
    "ShareUpdateKey": "records.share",
    "ShareUpdateValue": "records.share",
    "ProducerSnapshot": "records.storage",
    "RemoteLogSegmentMetadataRecord": "records.storage",
    "RemoteLogSegmentMetadataUpdateRecord": "records.storage",
    "RemotePartitionDeleteMetadataRecord": "records.storage",
    "RemoteLogSegmentMetadataSnapshotRecord": "records.storage",
}

RECORD_NAMES: Final[dict[str, dict[int, str]]] = {
    "metadata": {0: "RegisterBrokerRecord", 1: "UnregisterBrokerRecord", 2: "TopicRecord", 3: "PartitionRecord", 4: "ConfigRecord", 5: "PartitionChangeRecord", 7: "FenceBrokerRecord", 8: "UnfenceBrokerRecord", 9: "RemoveTopicRecord", 10: "DelegationTokenRecord", 11: "UserScramCredentialRecord", 12: "FeatureLevelRecord", 14: "ClientQuotaRecord", 15: "ProducerIdsRecord", 17: "BrokerRegistrationChangeRecord", 18: "AccessControlEntryRecord", 19: "RemoveAccessControlEntryRecord", 20: "NoOpRecord", 21: "ZkMigrationStateRecord", 22: "RemoveUserScramCredentialRecord", 23: "BeginTransactionRecord", 24: "EndTransactionRecord", 25: "AbortTransactionRecord", 26: "RemoveDelegationTokenRecord", 27: "RegisterControllerRecord", 28: "ClearElrRecord"},
    "group": {0: "LegacyOffsetCommitKey", 1: "OffsetCommitKey", 2: "GroupMetadataKey", 3: "ConsumerGroupMetadataKey", 4: "ConsumerGroupPartitionMetadataKey", 5: "ConsumerGroupMemberMetadataKey", 6: "ConsumerGroupTargetAssignmentMetadataKey", 7: "ConsumerGroupTargetAssignmentMemberKey", 8: "ConsumerGroupCurrentMemberAssignmentKey", 10: "ShareGroupMemberMetadataKey", 11: "ShareGroupMetadataKey", 12: "ShareGroupTargetAssignmentMetadataKey", 13: "ShareGroupTargetAssignmentMemberKey", 14: "ShareGroupCurrentMemberAssignmentKey", 15: "ShareGroupStatePartitionMetadataKey", 16: "ConsumerGroupRegularExpressionKey", 17: "StreamsGroupMetadataKey", 19: "StreamsGroupMemberMetadataKey", 20: "StreamsGroupTargetAssignmentMetadataKey", 21: "StreamsGroupTargetAssignmentMemberKey", 22: "StreamsGroupCurrentMemberAssignmentKey", 23: "StreamsGroupTopologyKey"},
    "transaction": {0: "TransactionLogKey"},
    "share": {0: "ShareSnapshotKey", 1: "ShareUpdateKey"},
    "storage": {0: "RemoteLogSegmentMetadataRecord", 1: "RemoteLogSegmentMetadataUpdateRecord", 2: "RemotePartitionDeleteMetadataRecord", 3: "RemoteLogSegmentMetadataSnapshotRecord"},
}
