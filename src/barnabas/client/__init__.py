"""An asynchronous Kafka client, for barnabas and for Apache Kafka.

    async with Cluster({"bootstrap.servers": "localhost:9092"}) as cluster:
        response = await cluster.call(DescribeClusterRequest(), to=any_broker())

`Admin`, `Producer`, `Consumer` and `ShareConsumer` are built on `Cluster`; `barnabas.client.sync` has them for code without
an event loop. `Cluster` in short:

    Cluster(config: ClientSettings | Mapping[str, object])      settings by the names of Kafka's clients
        state -> ClusterState                                   the cluster as known now: a value
        await start(timeout_ms=None), await close()             or `async with`
        await call(request, to=None, *, version=None, least_version=0, feature="", timeout_ms=None,
                   request_timeout_ms=None, repeat=None, give_up_on=(), lane="") -> Any
                                                                the response; retried where that is safe
        await send(request, to=None, *, version=None, least_version=0, feature="", timeout_ms=None, lane="",
                   on_sent=None, views=False) -> Any
                                                                one attempt; error codes are left to the caller
        await post(request, to, *, version=None, lane="")       for requests without a response
        await refresh(topics=(), *, timeout_ms=None) -> ClusterState
        await metadata(topics | None, *, authorized_operations=False, allow_auto_topic_creation=False,
                       timeout_ms=None) -> ClusterState         topics by name or id, None: all; not kept in `state`
        await coordinators(keys, type=GROUP, *, timeout_ms=None) -> dict[str, int | KafkaError]
        forget_coordinator(key, type=GROUP)                     for callers of `send` that got NOT_COORDINATOR
        await versions(to=None) -> NodeVersions                 .serves("DescribeTopicPartitions"), .best("Fetch")
        follow(topics), follow_all()                            topics to keep in `state`
        subscribe(callback(old, new)) -> unsubscribe
        learn_leaders([(topic, partition, leader_id, leader_epoch)], nodes=())

    to:  any_broker(), controller(), leader(topic, partition), coordinator(key, CoordinatorType.GROUP), node(id)
    lane:  requests of one lane share a connection to each node and are answered in order; use a separate lane for
           Fetch and other requests that wait at the broker

    load_settings(mapping, definitions), load_settings_file(path, overrides, definitions) -> ClientSettings

Errors: `KafkaError` with the broker's code; `UnsupportedByNodeError`, a `wire.UnsupportedVersionError`, if a node is too old;
`CallTimeoutError` after the timeout, with `last_error`; `ConnectionLostError` and `NoAnswerError` only for requests that are
not retried, where `maybe_done(error)` tells whether they may have been carried out; `AuthenticationError`, `TlsError` and
`NotKafkaError` at once; `ClosedError` after `close`; `ConfigError` with the name of a wrong setting.

Everything that users pass to `Admin`, `Producer`, `Consumer` and `ShareConsumer`, or receive from them, can be imported from
here. Names are imported on first use, because the broker needs only `client.connection`, and commands only parts of `Admin`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from barnabas.batches import Compression, Headers, Record, TimestampType
    from barnabas.client.admin.acls import EVERY_ACL
    from barnabas.client.admin.admin import Admin
    from barnabas.client.admin.brokers import ClusterDescription
    from barnabas.client.admin.config_values import (
        AlterConfigOp,
        AlterConfigOpType,
        Config,
        ConfigEntry,
        ConfigResource,
        ConfigSource,
        ConfigSynonym,
    )
    from barnabas.client.admin.elections import ElectionType
    from barnabas.client.admin.features import FeatureMetadata, FeatureUpdate, UpgradeType
    from barnabas.client.admin.groups import (
        CommittedOffset,
        GroupDescription,
        GroupListing,
        GroupMember,
        GroupOffsets,
        MemberToRemove,
    )
    from barnabas.client.admin.log_dirs import LogDir, Replica, ReplicaLogDir, StoredReplica
    from barnabas.client.admin.part import TimedOutError, checked
    from barnabas.client.admin.producers import ProducerState
    from barnabas.client.admin.quorum import QuorumInfo, RaftEndpoint, ReplicaState
    from barnabas.client.admin.quotas import DEFAULT, Match, QuotaEntity, QuotaFilter, quota_entity
    from barnabas.client.admin.reassignments import PartitionReassignment
    from barnabas.client.admin.records import (
        TO_HIGH_WATERMARK,
        EpochEndOffset,
        IsolationLevel,
        ListedOffset,
        OffsetSpec,
    )
    from barnabas.client.admin.share_groups import ShareOffset, ShareOffsets
    from barnabas.client.admin.streams_groups import (
        InternalTopic,
        StreamsGroupDescription,
        StreamsMember,
        Subtopology,
        TaskAssignment,
        TaskId,
    )
    from barnabas.client.admin.telemetry import TelemetrySubscription
    from barnabas.client.admin.topics import (
        CreatedTopic,
        NewPartitions,
        NewTopic,
        PartitionDescription,
        TopicConfig,
        TopicDescription,
        TopicListing,
    )
    from barnabas.client.admin.transactions import (
        OpenTransaction,
        ProducerIdAndEpoch,
        TransactionDescription,
        TransactionListing,
    )
    from barnabas.client.admin.users import (
        ScramAlteration,
        ScramCredentialInfo,
        ScramCredentialKey,
        ScramDeletion,
        ScramMechanism,
        ScramUpsertion,
    )
    from barnabas.client.cluster import Cluster
    from barnabas.client.consumer import Consumer
    from barnabas.client.consuming.settings import ConsumerSettings
    from barnabas.client.errors import (
        AuthenticationError,
        CallTimeoutError,
        ClosedError,
        ConnectionLostError,
        DeserializationError,
        NoAnswerError,
        NoNodesError,
        NotConnectedError,
        NotKafkaError,
        TlsError,
        UnknownHostError,
        UnsupportedByNodeError,
    )
    from barnabas.client.producer import Producer
    from barnabas.client.producing.batch import Delivery
    from barnabas.client.producing.settings import ProducerSettings
    from barnabas.client.records import (
        BytesLike,
        ConsumerRecord,
        GroupMetadata,
        HeadersLike,
        OffsetAndMetadata,
        OffsetAndTimestamp,
        OffsetsLike,
        RecordMetadata,
        TopicPartition,
    )
    from barnabas.client.retry import maybe_done
    from barnabas.client.routing import CoordinatorType, Destination, any_broker, controller, coordinator, leader, node
    from barnabas.client.settings import ClientSettings
    from barnabas.client.settings import load as load_settings
    from barnabas.client.settings import load_file as load_settings_file
    from barnabas.client.share_consumer import AcknowledgementCommitCallback, ShareConsumer
    from barnabas.client.share_consuming.acknowledgements import AcknowledgeType
    from barnabas.client.share_consuming.acquired import ShareRecord
    from barnabas.client.share_consuming.settings import ShareConsumerSettings
    from barnabas.client.state import ClusterState, Node, Partition, Topic
    from barnabas.client.versions import NodeVersions
    from barnabas.config.resource_type import ConfigResourceType
    from barnabas.config.values import ConfigError
    from barnabas.security.acl import AclEntry, AclFilter, AclOperation, AclPermissionType, PatternType, ResourceType
    from barnabas.wire import ErrorCode, KafkaError, UnsupportedVersionError, Uuid
    from barnabas.wire.schema import Versions

__all__ = [
    "DEFAULT",
    "EVERY_ACL",
    "TO_HIGH_WATERMARK",
    "AcknowledgeType",
    "AcknowledgementCommitCallback",
    "AclEntry",
    "AclFilter",
    "AclOperation",
    "AclPermissionType",
    "Admin",
    "AlterConfigOp",
    "AlterConfigOpType",
    "AuthenticationError",
    "BytesLike",
    "CallTimeoutError",
    "ClientSettings",
    "ClosedError",
    "Cluster",
    "ClusterDescription",
    "ClusterState",
    "CommittedOffset",
    "Compression",
    "Config",
    "ConfigEntry",
    "ConfigError",
    "ConfigResource",
    "ConfigResourceType",
    "ConfigSource",
    "ConfigSynonym",
    "ConnectionLostError",
    "Consumer",
    "ConsumerRecord",
    "ConsumerSettings",
    "CoordinatorType",
    "CreatedTopic",
    "Delivery",
    "DeserializationError",
    "Destination",
    "ElectionType",
    "EpochEndOffset",
    "ErrorCode",
    "FeatureMetadata",
    "FeatureUpdate",
    "GroupDescription",
    "GroupListing",
    "GroupMember",
    "GroupMetadata",
    "GroupOffsets",
    "Headers",
    "HeadersLike",
    "InternalTopic",
    "IsolationLevel",
    "KafkaError",
    "ListedOffset",
    "LogDir",
    "Match",
    "MemberToRemove",
    "NewPartitions",
    "NewTopic",
    "NoAnswerError",
    "NoNodesError",
    "Node",
    "NodeVersions",
    "NotConnectedError",
    "NotKafkaError",
    "OffsetAndMetadata",
    "OffsetAndTimestamp",
    "OffsetSpec",
    "OffsetsLike",
    "OpenTransaction",
    "Partition",
    "PartitionDescription",
    "PartitionReassignment",
    "PatternType",
    "Producer",
    "ProducerIdAndEpoch",
    "ProducerSettings",
    "ProducerState",
    "QuorumInfo",
    "QuotaEntity",
    "QuotaFilter",
    "RaftEndpoint",
    "Record",
    "RecordMetadata",
    "Replica",
    "ReplicaLogDir",
    "ReplicaState",
    "ResourceType",
    "ScramAlteration",
    "ScramCredentialInfo",
    "ScramCredentialKey",
    "ScramDeletion",
    "ScramMechanism",
    "ScramUpsertion",
    "ShareConsumer",
    "ShareConsumerSettings",
    "ShareOffset",
    "ShareOffsets",
    "ShareRecord",
    "StoredReplica",
    "StreamsGroupDescription",
    "StreamsMember",
    "Subtopology",
    "TaskAssignment",
    "TaskId",
    "TelemetrySubscription",
    "TimedOutError",
    "TimestampType",
    "TlsError",
    "Topic",
    "TopicConfig",
    "TopicDescription",
    "TopicListing",
    "TopicPartition",
    "TransactionDescription",
    "TransactionListing",
    "UnknownHostError",
    "UnsupportedByNodeError",
    "UnsupportedVersionError",
    "UpgradeType",
    "Uuid",
    "Versions",
    "any_broker",
    "checked",
    "controller",
    "coordinator",
    "leader",
    "load_settings",
    "load_settings_file",
    "maybe_done",
    "node",
    "quota_entity",
]

_HOMES = {
    "barnabas.batches": "Compression Headers Record TimestampType",
    "barnabas.client.admin.acls": "EVERY_ACL",
    "barnabas.client.admin.admin": "Admin",
    "barnabas.client.admin.brokers": "ClusterDescription",
    "barnabas.client.admin.config_values": (
        "AlterConfigOp AlterConfigOpType Config ConfigEntry ConfigResource ConfigSource ConfigSynonym"
    ),
    "barnabas.client.admin.elections": "ElectionType",
    "barnabas.client.admin.features": "FeatureMetadata FeatureUpdate UpgradeType",
    "barnabas.client.admin.groups": (
        "CommittedOffset GroupDescription GroupListing GroupMember GroupOffsets MemberToRemove"
    ),
    "barnabas.client.admin.log_dirs": "LogDir Replica ReplicaLogDir StoredReplica",
    "barnabas.client.admin.part": "TimedOutError checked",
    "barnabas.client.admin.producers": "ProducerState",
    "barnabas.client.admin.quorum": "QuorumInfo RaftEndpoint ReplicaState",
    "barnabas.client.admin.quotas": "DEFAULT Match QuotaEntity QuotaFilter quota_entity",
    "barnabas.client.admin.reassignments": "PartitionReassignment",
    "barnabas.client.admin.records": "TO_HIGH_WATERMARK EpochEndOffset IsolationLevel ListedOffset OffsetSpec",
    "barnabas.client.admin.share_groups": "ShareOffset ShareOffsets",
    "barnabas.client.admin.streams_groups": (
        "InternalTopic StreamsGroupDescription StreamsMember Subtopology TaskAssignment TaskId"
    ),
    "barnabas.client.admin.telemetry": "TelemetrySubscription",
    "barnabas.client.admin.topics": (
        "CreatedTopic NewPartitions NewTopic PartitionDescription TopicConfig TopicDescription TopicListing"
    ),
    "barnabas.client.admin.transactions": (
        "OpenTransaction ProducerIdAndEpoch TransactionDescription TransactionListing"
    ),
    "barnabas.client.admin.users": (
        "ScramAlteration ScramCredentialInfo ScramCredentialKey ScramDeletion ScramMechanism ScramUpsertion"
    ),
    "barnabas.client.cluster": "Cluster",
    "barnabas.client.consumer": "Consumer",
    "barnabas.client.consuming.settings": "ConsumerSettings",
    "barnabas.client.errors": (
        "AuthenticationError CallTimeoutError ClosedError ConnectionLostError DeserializationError NoAnswerError "
        "NoNodesError NotConnectedError NotKafkaError TlsError UnknownHostError UnsupportedByNodeError"
    ),
    "barnabas.client.producer": "Producer",
    "barnabas.client.producing.batch": "Delivery",
    "barnabas.client.producing.settings": "ProducerSettings",
    "barnabas.client.records": (
        "BytesLike ConsumerRecord GroupMetadata HeadersLike OffsetAndMetadata OffsetAndTimestamp OffsetsLike "
        "RecordMetadata TopicPartition"
    ),
    "barnabas.client.retry": "maybe_done",
    "barnabas.client.routing": "CoordinatorType Destination any_broker controller coordinator leader node",
    "barnabas.client.settings": "ClientSettings load_settings load_settings_file",
    "barnabas.client.share_consumer": "AcknowledgementCommitCallback ShareConsumer",
    "barnabas.client.share_consuming.acknowledgements": "AcknowledgeType",
    "barnabas.client.share_consuming.acquired": "ShareRecord",
    "barnabas.client.share_consuming.settings": "ShareConsumerSettings",
    "barnabas.client.state": "ClusterState Node Partition Topic",
    "barnabas.client.versions": "NodeVersions",
    "barnabas.config.resource_type": "ConfigResourceType",
    "barnabas.config.values": "ConfigError",
    "barnabas.security.acl": "AclEntry AclFilter AclOperation AclPermissionType PatternType ResourceType",
    "barnabas.wire": "ErrorCode KafkaError UnsupportedVersionError Uuid",
    "barnabas.wire.schema": "Versions",
}
_MODULES = {name: module for module, names in _HOMES.items() for name in names.split()}
_RENAMED = {"load_settings": "load", "load_settings_file": "load_file"}

if not TYPE_CHECKING:  # type checkers would accept any name

    def __getattr__(name: str) -> Any:
        if name not in _MODULES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        found = getattr(import_module(_MODULES[name]), _RENAMED.get(name, name))
        globals()[name] = found  # the next access does not come here
        return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
