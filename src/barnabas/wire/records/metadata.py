"""Records of the group metadata.

Generated from schema/records.txt by `make generate`; do not edit.
"""

from __future__ import annotations

from barnabas.wire.message import EMPTY, Message, Struct
from barnabas.wire.primitives import ZERO_UUID, Uuid

__all__ = ["RegisterBrokerRecord", "UnregisterBrokerRecord", "TopicRecord", "PartitionRecord", "ConfigRecord", "PartitionChangeRecord", "FenceBrokerRecord", "UnfenceBrokerRecord", "RemoveTopicRecord", "DelegationTokenRecord", "UserScramCredentialRecord", "FeatureLevelRecord", "ClientQuotaRecord", "ProducerIdsRecord", "BrokerRegistrationChangeRecord", "AccessControlEntryRecord", "RemoveAccessControlEntryRecord", "NoOpRecord", "ZkMigrationStateRecord", "RemoveUserScramCredentialRecord", "BeginTransactionRecord", "EndTransactionRecord", "AbortTransactionRecord", "RemoveDelegationTokenRecord", "RegisterControllerRecord", "ClearElrRecord"]


class RegisterBrokerRecord(Message):
    """Record type 0, versions 0-4, flexible 0+."""

    __slots__ = ("broker_id", "is_migrating_zk_broker", "incarnation_id", "broker_epoch", "end_points", "features", "rack", "fenced", "in_controlled_shutdown", "log_dirs", "cordoned_log_dirs")

    broker_id: int
    is_migrating_zk_broker: bool
    incarnation_id: Uuid
    broker_epoch: int
    end_points: list[RegisterBrokerRecord.BrokerEndpoint]
    features: list[RegisterBrokerRecord.BrokerFeature]
    rack: str | None
    fenced: bool
    in_controlled_shutdown: bool
    log_dirs: list[Uuid]
    cordoned_log_dirs: list[Uuid] | None

    def __init__(
        self,
        *,
        broker_id: int = 0,
        is_migrating_zk_broker: bool = False,
        incarnation_id: Uuid = ZERO_UUID,
        broker_epoch: int = 0,
        end_points: list[RegisterBrokerRecord.BrokerEndpoint] = EMPTY,
        features: list[RegisterBrokerRecord.BrokerFeature] = EMPTY,
        rack: str | None = "",
        fenced: bool = True,
        in_controlled_shutdown: bool = False,
        log_dirs: list[Uuid] = EMPTY,
        cordoned_log_dirs: list[Uuid] | None = None,
    ) -> None:
        self.broker_id = broker_id
        self.is_migrating_zk_broker = is_migrating_zk_broker
        self.incarnation_id = incarnation_id
        self.broker_epoch = broker_epoch
        self.end_points = [] if end_points is EMPTY else end_points
        self.features = [] if features is EMPTY else features
        self.rack = rack
        self.fenced = fenced
        self.in_controlled_shutdown = in_controlled_shutdown
        self.log_dirs = [] if log_dirs is EMPTY else log_dirs
        self.cordoned_log_dirs = cordoned_log_dirs
        self.unknown_tagged_fields = None

    SCHEMA = """
RegisterBrokerRecord record group=metadata key=0 versions=0-4 flexible=0+
  broker_id int32
  is_migrating_zk_broker bool 2+
  incarnation_id uuid
  broker_epoch int64
  end_points []BrokerEndpoint
    name string key
    host string
    port uint16
    security_protocol int16
  features []BrokerFeature
    name string key
    min_supported_version int16
    max_supported_version int16
  rack string nullable
  fenced bool default=true
  in_controlled_shutdown bool 1+
  log_dirs []uuid 3+ tag=0
  cordoned_log_dirs []uuid 4+ nullable tag=1 default=null
"""

    class BrokerEndpoint(Struct):
        __slots__ = ("name", "host", "port", "security_protocol")

        name: str
        host: str
        port: int
        security_protocol: int

        def __init__(
            self,
            *,
            name: str = "",
            host: str = "",
            port: int = 0,
            security_protocol: int = 0,
        ) -> None:
            self.name = name
            self.host = host
            self.port = port
            self.security_protocol = security_protocol
            self.unknown_tagged_fields = None

    class BrokerFeature(Struct):
        __slots__ = ("name", "min_supported_version", "max_supported_version")

        name: str
        min_supported_version: int
        max_supported_version: int

        def __init__(
            self,
            *,
            name: str = "",
            min_supported_version: int = 0,
            max_supported_version: int = 0,
        ) -> None:
            self.name = name
            self.min_supported_version = min_supported_version
            self.max_supported_version = max_supported_version
            self.unknown_tagged_fields = None


class UnregisterBrokerRecord(Message):
    """Record type 1, versions 0, flexible 0+."""

    __slots__ = ("broker_id", "broker_epoch")

    broker_id: int
    broker_epoch: int

    def __init__(
        self,
        *,
        broker_id: int = 0,
        broker_epoch: int = 0,
    ) -> None:
        self.broker_id = broker_id
        self.broker_epoch = broker_epoch
        self.unknown_tagged_fields = None

    SCHEMA = """
UnregisterBrokerRecord record group=metadata key=1 versions=0 flexible=0+
  broker_id int32
  broker_epoch int64
"""


class TopicRecord(Message):
    """Record type 2, versions 0, flexible 0+."""

    __slots__ = ("name", "topic_id")

    name: str
    topic_id: Uuid

    def __init__(
        self,
        *,
        name: str = "",
        topic_id: Uuid = ZERO_UUID,
    ) -> None:
        self.name = name
        self.topic_id = topic_id
        self.unknown_tagged_fields = None

    SCHEMA = """
TopicRecord record group=metadata key=2 versions=0 flexible=0+
  name string
  topic_id uuid
"""


class PartitionRecord(Message):
    """Record type 3, versions 0-2, flexible 0+."""

    __slots__ = ("partition_id", "topic_id", "replicas", "isr", "removing_replicas", "adding_replicas", "leader", "leader_recovery_state", "leader_epoch", "partition_epoch", "directories", "eligible_leader_replicas", "last_known_elr")

    partition_id: int
    topic_id: Uuid
    replicas: list[int]
    isr: list[int]
    removing_replicas: list[int]
    adding_replicas: list[int]
    leader: int
    leader_recovery_state: int
    leader_epoch: int
    partition_epoch: int
    directories: list[Uuid]
    eligible_leader_replicas: list[int] | None
    last_known_elr: list[int] | None

    def __init__(
        self,
        *,
        partition_id: int = -1,
        topic_id: Uuid = ZERO_UUID,
        replicas: list[int] = EMPTY,
        isr: list[int] = EMPTY,
        removing_replicas: list[int] = EMPTY,
        adding_replicas: list[int] = EMPTY,
        leader: int = -1,
        leader_recovery_state: int = 0,
        leader_epoch: int = -1,
        partition_epoch: int = -1,
        directories: list[Uuid] = EMPTY,
        eligible_leader_replicas: list[int] | None = None,
        last_known_elr: list[int] | None = None,
    ) -> None:
        self.partition_id = partition_id
        self.topic_id = topic_id
        self.replicas = [] if replicas is EMPTY else replicas
        self.isr = [] if isr is EMPTY else isr
        self.removing_replicas = [] if removing_replicas is EMPTY else removing_replicas
        self.adding_replicas = [] if adding_replicas is EMPTY else adding_replicas
        self.leader = leader
        self.leader_recovery_state = leader_recovery_state
        self.leader_epoch = leader_epoch
        self.partition_epoch = partition_epoch
        self.directories = [] if directories is EMPTY else directories
        self.eligible_leader_replicas = eligible_leader_replicas
        self.last_known_elr = last_known_elr
        self.unknown_tagged_fields = None

    SCHEMA = """
PartitionRecord record group=metadata key=3 versions=0-2 flexible=0+
  partition_id int32 default=-1
  topic_id uuid
  replicas []int32
  isr []int32
  removing_replicas []int32
  adding_replicas []int32
  leader int32 default=-1
  leader_recovery_state int8 tag=0
  leader_epoch int32 default=-1
  partition_epoch int32 default=-1
  directories []uuid 1+
  eligible_leader_replicas []int32 2+ nullable tag=1 default=null
  last_known_elr []int32 2+ nullable tag=2 default=null
"""


class ConfigRecord(Message):
    """Record type 4, versions 0, flexible 0+."""

    __slots__ = ("resource_type", "resource_name", "name", "value")

    resource_type: int
    resource_name: str
    name: str
    value: str | None

    def __init__(
        self,
        *,
        resource_type: int = 0,
        resource_name: str = "",
        name: str = "",
        value: str | None = "",
    ) -> None:
        self.resource_type = resource_type
        self.resource_name = resource_name
        self.name = name
        self.value = value
        self.unknown_tagged_fields = None

    SCHEMA = """
ConfigRecord record group=metadata key=4 versions=0 flexible=0+
  resource_type int8
  resource_name string
  name string
  value string nullable
"""


class PartitionChangeRecord(Message):
    """Record type 5, versions 0-2, flexible 0+."""

    __slots__ = ("partition_id", "topic_id", "isr", "leader", "replicas", "removing_replicas", "adding_replicas", "leader_recovery_state", "directories", "eligible_leader_replicas", "last_known_elr")

    partition_id: int
    topic_id: Uuid
    isr: list[int] | None
    leader: int
    replicas: list[int] | None
    removing_replicas: list[int] | None
    adding_replicas: list[int] | None
    leader_recovery_state: int
    directories: list[Uuid] | None
    eligible_leader_replicas: list[int] | None
    last_known_elr: list[int] | None

    def __init__(
        self,
        *,
        partition_id: int = -1,
        topic_id: Uuid = ZERO_UUID,
        isr: list[int] | None = None,
        leader: int = -2,
        replicas: list[int] | None = None,
        removing_replicas: list[int] | None = None,
        adding_replicas: list[int] | None = None,
        leader_recovery_state: int = -1,
        directories: list[Uuid] | None = None,
        eligible_leader_replicas: list[int] | None = None,
        last_known_elr: list[int] | None = None,
    ) -> None:
        self.partition_id = partition_id
        self.topic_id = topic_id
        self.isr = isr
        self.leader = leader
        self.replicas = replicas
        self.removing_replicas = removing_replicas
        self.adding_replicas = adding_replicas
        self.leader_recovery_state = leader_recovery_state
        self.directories = directories
        self.eligible_leader_replicas = eligible_leader_replicas
        self.last_known_elr = last_known_elr
        self.unknown_tagged_fields = None

    SCHEMA = """
PartitionChangeRecord record group=metadata key=5 versions=0-2 flexible=0+
  partition_id int32 default=-1
  topic_id uuid
  isr []int32 nullable tag=0 default=null
  leader int32 tag=1 default=-2
  replicas []int32 nullable tag=2 default=null
  removing_replicas []int32 nullable tag=3 default=null
  adding_replicas []int32 nullable tag=4 default=null
  leader_recovery_state int8 tag=5 default=-1
  directories []uuid 1+ nullable tag=8 default=null
  eligible_leader_replicas []int32 2+ nullable tag=6 default=null
  last_known_elr []int32 2+ nullable tag=7 default=null
"""


class FenceBrokerRecord(Message):
    """Record type 7, versions 0, flexible 0+."""

    __slots__ = ("id", "epoch")

    id: int
    epoch: int

    def __init__(
        self,
        *,
        id: int = 0,
        epoch: int = 0,
    ) -> None:
        self.id = id
        self.epoch = epoch
        self.unknown_tagged_fields = None

    SCHEMA = """
FenceBrokerRecord record group=metadata key=7 versions=0 flexible=0+
  id int32
  epoch int64
"""


class UnfenceBrokerRecord(Message):
    """Record type 8, versions 0, flexible 0+."""

    __slots__ = ("id", "epoch")

    id: int
    epoch: int

    def __init__(
        self,
        *,
        id: int = 0,
        epoch: int = 0,
    ) -> None:
        self.id = id
        self.epoch = epoch
        self.unknown_tagged_fields = None

    SCHEMA = """
UnfenceBrokerRecord record group=metadata key=8 versions=0 flexible=0+
  id int32
  epoch int64
"""


class RemoveTopicRecord(Message):
    """Record type 9, versions 0, flexible 0+."""

    __slots__ = ("topic_id",)

    topic_id: Uuid

    def __init__(
        self,
        *,
        topic_id: Uuid = ZERO_UUID,
    ) -> None:
        self.topic_id = topic_id
        self.unknown_tagged_fields = None

    SCHEMA = """
RemoveTopicRecord record group=metadata key=9 versions=0 flexible=0+
  topic_id uuid
"""


class DelegationTokenRecord(Message):
    """Record type 10, versions 0, flexible 0+."""

    __slots__ = ("owner", "requester", "renewers", "issue_timestamp", "max_timestamp", "expiration_timestamp", "token_id")

    owner: str
    requester: str
    renewers: list[str]
    issue_timestamp: int
    max_timestamp: int
    expiration_timestamp: int
    token_id: str

    def __init__(
        self,
        *,
        owner: str = "",
        requester: str = "",
        renewers: list[str] = EMPTY,
        issue_timestamp: int = 0,
        max_timestamp: int = 0,
        expiration_timestamp: int = 0,
        token_id: str = "",
    ) -> None:
        self.owner = owner
        self.requester = requester
        self.renewers = [] if renewers is EMPTY else renewers
        self.issue_timestamp = issue_timestamp
        self.max_timestamp = max_timestamp
        self.expiration_timestamp = expiration_timestamp
        self.token_id = token_id
        self.unknown_tagged_fields = None

    SCHEMA = """
DelegationTokenRecord record group=metadata key=10 versions=0 flexible=0+
  owner string
  requester string
  renewers []string
  issue_timestamp int64
  max_timestamp int64
  expiration_timestamp int64
  token_id string
"""


class UserScramCredentialRecord(Message):
    """Record type 11, versions 0, flexible 0+."""

    __slots__ = ("name", "mechanism", "salt", "stored_key", "server_key", "iterations")

    name: str
    mechanism: int
    salt: bytes
    stored_key: bytes
    server_key: bytes
    iterations: int

    def __init__(
        self,
        *,
        name: str = "",
        mechanism: int = 0,
        salt: bytes = b"",
        stored_key: bytes = b"",
        server_key: bytes = b"",
        iterations: int = 0,
    ) -> None:
        self.name = name
        self.mechanism = mechanism
        self.salt = salt
        self.stored_key = stored_key
        self.server_key = server_key
        self.iterations = iterations
        self.unknown_tagged_fields = None

    SCHEMA = """
UserScramCredentialRecord record group=metadata key=11 versions=0 flexible=0+
  name string
  mechanism int8
  salt bytes
  stored_key bytes
  server_key bytes
  iterations int32
"""


class FeatureLevelRecord(Message):
    """Record type 12, versions 0, flexible 0+."""

    __slots__ = ("name", "feature_level")

    name: str
    feature_level: int

    def __init__(
        self,
        *,
        name: str = "",
        feature_level: int = 0,
    ) -> None:
        self.name = name
        self.feature_level = feature_level
        self.unknown_tagged_fields = None

    SCHEMA = """
FeatureLevelRecord record group=metadata key=12 versions=0 flexible=0+
  name string
  feature_level int16
"""


class ClientQuotaRecord(Message):
    """Record type 14, versions 0, flexible 0+."""

    __slots__ = ("entity", "key", "value", "remove")

    entity: list[ClientQuotaRecord.EntityData]
    key: str
    value: float
    remove: bool

    def __init__(
        self,
        *,
        entity: list[ClientQuotaRecord.EntityData] = EMPTY,
        key: str = "",
        value: float = 0,
        remove: bool = False,
    ) -> None:
        self.entity = [] if entity is EMPTY else entity
        self.key = key
        self.value = value
        self.remove = remove
        self.unknown_tagged_fields = None

    SCHEMA = """
ClientQuotaRecord record group=metadata key=14 versions=0 flexible=0+
  entity []EntityData
    entity_type string
    entity_name string nullable
  key string
  value float64
  remove bool
"""

    class EntityData(Struct):
        __slots__ = ("entity_type", "entity_name")

        entity_type: str
        entity_name: str | None

        def __init__(
            self,
            *,
            entity_type: str = "",
            entity_name: str | None = "",
        ) -> None:
            self.entity_type = entity_type
            self.entity_name = entity_name
            self.unknown_tagged_fields = None


class ProducerIdsRecord(Message):
    """Record type 15, versions 0, flexible 0+."""

    __slots__ = ("broker_id", "broker_epoch", "next_producer_id")

    broker_id: int
    broker_epoch: int
    next_producer_id: int

    def __init__(
        self,
        *,
        broker_id: int = 0,
        broker_epoch: int = -1,
        next_producer_id: int = 0,
    ) -> None:
        self.broker_id = broker_id
        self.broker_epoch = broker_epoch
        self.next_producer_id = next_producer_id
        self.unknown_tagged_fields = None

    SCHEMA = """
ProducerIdsRecord record group=metadata key=15 versions=0 flexible=0+
  broker_id int32
  broker_epoch int64 default=-1
  next_producer_id int64
"""


class BrokerRegistrationChangeRecord(Message):
    """Record type 17, versions 0-3, flexible 0+."""

    __slots__ = ("broker_id", "broker_epoch", "fenced", "in_controlled_shutdown", "log_dirs", "cordoned_log_dirs")

    broker_id: int
    broker_epoch: int
    fenced: int
    in_controlled_shutdown: int
    log_dirs: list[Uuid]
    cordoned_log_dirs: list[Uuid] | None

    def __init__(
        self,
        *,
        broker_id: int = 0,
        broker_epoch: int = 0,
        fenced: int = 0,
        in_controlled_shutdown: int = 0,
        log_dirs: list[Uuid] = EMPTY,
        cordoned_log_dirs: list[Uuid] | None = None,
    ) -> None:
        self.broker_id = broker_id
        self.broker_epoch = broker_epoch
        self.fenced = fenced
        self.in_controlled_shutdown = in_controlled_shutdown
        self.log_dirs = [] if log_dirs is EMPTY else log_dirs
        self.cordoned_log_dirs = cordoned_log_dirs
        self.unknown_tagged_fields = None

    SCHEMA = """
BrokerRegistrationChangeRecord record group=metadata key=17 versions=0-3 flexible=0+
  broker_id int32
  broker_epoch int64
  fenced int8 tag=0
  in_controlled_shutdown int8 1+ tag=1
  log_dirs []uuid 2+ tag=2
  cordoned_log_dirs []uuid 3+ nullable tag=3 default=null
"""


class AccessControlEntryRecord(Message):
    """Record type 18, versions 0, flexible 0+."""

    __slots__ = ("id", "resource_type", "resource_name", "pattern_type", "principal", "host", "operation", "permission_type")

    id: Uuid
    resource_type: int
    resource_name: str
    pattern_type: int
    principal: str
    host: str
    operation: int
    permission_type: int

    def __init__(
        self,
        *,
        id: Uuid = ZERO_UUID,
        resource_type: int = 0,
        resource_name: str = "",
        pattern_type: int = 0,
        principal: str = "",
        host: str = "",
        operation: int = 0,
        permission_type: int = 0,
    ) -> None:
        self.id = id
        self.resource_type = resource_type
        self.resource_name = resource_name
        self.pattern_type = pattern_type
        self.principal = principal
        self.host = host
        self.operation = operation
        self.permission_type = permission_type
        self.unknown_tagged_fields = None

    SCHEMA = """
AccessControlEntryRecord record group=metadata key=18 versions=0 flexible=0+
  id uuid
  resource_type int8
  resource_name string
  pattern_type int8
  principal string
  host string
  operation int8
  permission_type int8
"""


class RemoveAccessControlEntryRecord(Message):
    """Record type 19, versions 0, flexible 0+."""

    __slots__ = ("id",)

    id: Uuid

    def __init__(
        self,
        *,
        id: Uuid = ZERO_UUID,
    ) -> None:
        self.id = id
        self.unknown_tagged_fields = None

    SCHEMA = """
RemoveAccessControlEntryRecord record group=metadata key=19 versions=0 flexible=0+
  id uuid
"""


class NoOpRecord(Message):
    """Record type 20, versions 0, flexible 0+."""

    __slots__ = ()

    def __init__(self) -> None:
        self.unknown_tagged_fields = None

    SCHEMA = """
NoOpRecord record group=metadata key=20 versions=0 flexible=0+
"""


class ZkMigrationStateRecord(Message):
    """Record type 21, versions 0, flexible 0+."""

    __slots__ = ("zk_migration_state",)

    zk_migration_state: int

    def __init__(
        self,
        *,
        zk_migration_state: int = 0,
    ) -> None:
        self.zk_migration_state = zk_migration_state
        self.unknown_tagged_fields = None

    SCHEMA = """
ZkMigrationStateRecord record group=metadata key=21 versions=0 flexible=0+
  zk_migration_state int8
"""


class RemoveUserScramCredentialRecord(Message):
    """Record type 22, versions 0, flexible 0+."""

    __slots__ = ("name", "mechanism")

    name: str
    mechanism: int

    def __init__(
        self,
        *,
        name: str = "",
        mechanism: int = 0,
    ) -> None:
        self.name = name
        self.mechanism = mechanism
        self.unknown_tagged_fields = None

    SCHEMA = """
RemoveUserScramCredentialRecord record group=metadata key=22 versions=0 flexible=0+
  name string
  mechanism int8
"""


class BeginTransactionRecord(Message):
    """Record type 23, versions 0, flexible 0+."""

    __slots__ = ("name",)

    name: str | None

    def __init__(
        self,
        *,
        name: str | None = None,
    ) -> None:
        self.name = name
        self.unknown_tagged_fields = None

    SCHEMA = """
BeginTransactionRecord record group=metadata key=23 versions=0 flexible=0+
  name string nullable tag=0 default=null
"""


class EndTransactionRecord(Message):
    """Record type 24, versions 0, flexible 0+."""

    __slots__ = ()

    def __init__(self) -> None:
        self.unknown_tagged_fields = None

    SCHEMA = """
EndTransactionRecord record group=metadata key=24 versions=0 flexible=0+
"""


class AbortTransactionRecord(Message):
    """Record type 25, versions 0, flexible 0+."""

    __slots__ = ("reason",)

    reason: str | None

    def __init__(
        self,
        *,
        reason: str | None = None,
    ) -> None:
        self.reason = reason
        self.unknown_tagged_fields = None

    SCHEMA = """
AbortTransactionRecord record group=metadata key=25 versions=0 flexible=0+
  reason string nullable tag=0 default=null
"""


class RemoveDelegationTokenRecord(Message):
    """Record type 26, versions 0, flexible 0+."""

    __slots__ = ("token_id",)

    token_id: str

    def __init__(
        self,
        *,
        token_id: str = "",
    ) -> None:
        self.token_id = token_id
        self.unknown_tagged_fields = None

    SCHEMA = """
RemoveDelegationTokenRecord record group=metadata key=26 versions=0 flexible=0+
  token_id string
"""


class RegisterControllerRecord(Message):
    """Record type 27, versions 0, flexible 0+."""

    __slots__ = ("controller_id", "incarnation_id", "zk_migration_ready", "end_points", "features")

    controller_id: int
    incarnation_id: Uuid
    zk_migration_ready: bool
    end_points: list[RegisterControllerRecord.ControllerEndpoint]
    features: list[RegisterControllerRecord.ControllerFeature]

    def __init__(
        self,
        *,
        controller_id: int = 0,
        incarnation_id: Uuid = ZERO_UUID,
        zk_migration_ready: bool = False,
        end_points: list[RegisterControllerRecord.ControllerEndpoint] = EMPTY,
        features: list[RegisterControllerRecord.ControllerFeature] = EMPTY,
    ) -> None:
        self.controller_id = controller_id
        self.incarnation_id = incarnation_id
        self.zk_migration_ready = zk_migration_ready
        self.end_points = [] if end_points is EMPTY else end_points
        self.features = [] if features is EMPTY else features
        self.unknown_tagged_fields = None

    SCHEMA = """
RegisterControllerRecord record group=metadata key=27 versions=0 flexible=0+
  controller_id int32
  incarnation_id uuid
  zk_migration_ready bool
  end_points []ControllerEndpoint
    name string key
    host string
    port uint16
    security_protocol int16
  features []ControllerFeature
    name string key
    min_supported_version int16
    max_supported_version int16
"""

    class ControllerEndpoint(Struct):
        __slots__ = ("name", "host", "port", "security_protocol")

        name: str
        host: str
        port: int
        security_protocol: int

        def __init__(
            self,
            *,
            name: str = "",
            host: str = "",
            port: int = 0,
            security_protocol: int = 0,
        ) -> None:
            self.name = name
            self.host = host
            self.port = port
            self.security_protocol = security_protocol
            self.unknown_tagged_fields = None

    class ControllerFeature(Struct):
        __slots__ = ("name", "min_supported_version", "max_supported_version")

        name: str
        min_supported_version: int
        max_supported_version: int

        def __init__(
            self,
            *,
            name: str = "",
            min_supported_version: int = 0,
            max_supported_version: int = 0,
        ) -> None:
            self.name = name
            self.min_supported_version = min_supported_version
            self.max_supported_version = max_supported_version
            self.unknown_tagged_fields = None


class ClearElrRecord(Message):
    """Record type 28, versions 0, flexible 0+."""

    __slots__ = ("topic_name",)

    topic_name: str

    def __init__(
        self,
        *,
        topic_name: str = "",
    ) -> None:
        self.topic_name = topic_name
        self.unknown_tagged_fields = None

    SCHEMA = """
ClearElrRecord record group=metadata key=28 versions=0 flexible=0+
  topic_name string
"""
