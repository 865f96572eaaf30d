"""Records of the group group.

Generated from schema/records.txt by `make generate`; do not edit.
"""

from __future__ import annotations

from types import EllipsisType

from barnabas.wire.message import EMPTY, Message, Struct
from barnabas.wire.primitives import ZERO_UUID, Uuid

__all__ = ["LegacyOffsetCommitKey", "LegacyOffsetCommitValue", "OffsetCommitKey", "OffsetCommitValue", "GroupMetadataKey", "GroupMetadataValue", "ConsumerGroupMetadataKey", "ConsumerGroupMetadataValue", "ConsumerGroupPartitionMetadataKey", "ConsumerGroupPartitionMetadataValue", "ConsumerGroupMemberMetadataKey", "ConsumerGroupMemberMetadataValue", "ConsumerGroupTargetAssignmentMetadataKey", "ConsumerGroupTargetAssignmentMetadataValue", "ConsumerGroupTargetAssignmentMemberKey", "ConsumerGroupTargetAssignmentMemberValue", "ConsumerGroupCurrentMemberAssignmentKey", "ConsumerGroupCurrentMemberAssignmentValue", "ShareGroupMemberMetadataKey", "ShareGroupMemberMetadataValue", "ShareGroupMetadataKey", "ShareGroupMetadataValue", "ShareGroupTargetAssignmentMetadataKey", "ShareGroupTargetAssignmentMetadataValue", "ShareGroupTargetAssignmentMemberKey", "ShareGroupTargetAssignmentMemberValue", "ShareGroupCurrentMemberAssignmentKey", "ShareGroupCurrentMemberAssignmentValue", "ShareGroupStatePartitionMetadataKey", "ShareGroupStatePartitionMetadataValue", "ConsumerGroupRegularExpressionKey", "ConsumerGroupRegularExpressionValue", "StreamsGroupMetadataKey", "StreamsGroupMetadataValue", "StreamsGroupMemberMetadataKey", "StreamsGroupMemberMetadataValue", "StreamsGroupTargetAssignmentMetadataKey", "StreamsGroupTargetAssignmentMetadataValue", "StreamsGroupTargetAssignmentMemberKey", "StreamsGroupTargetAssignmentMemberValue", "StreamsGroupCurrentMemberAssignmentKey", "StreamsGroupCurrentMemberAssignmentValue", "StreamsGroupTopologyKey", "StreamsGroupTopologyValue"]


class LegacyOffsetCommitKey(Message):
    """Record type 0, versions 0, flexible none."""

    __slots__ = ("group", "topic", "partition")

    group: str
    topic: str
    partition: int

    def __init__(
        self,
        *,
        group: str = "",
        topic: str = "",
        partition: int = 0,
    ) -> None:
        self.group = group
        self.topic = topic
        self.partition = partition
        self.unknown_tagged_fields = None

    SCHEMA = """
LegacyOffsetCommitKey record group=group key=0 versions=0 flexible=none
  group string 0
  topic string 0
  partition int32 0
"""


class LegacyOffsetCommitValue(Message):
    """Record type 0, versions 0, flexible none."""

    __slots__ = ("offset", "metadata", "commit_timestamp")

    offset: int
    metadata: str
    commit_timestamp: int

    def __init__(
        self,
        *,
        offset: int = 0,
        metadata: str = "",
        commit_timestamp: int = 0,
    ) -> None:
        self.offset = offset
        self.metadata = metadata
        self.commit_timestamp = commit_timestamp
        self.unknown_tagged_fields = None

    SCHEMA = """
LegacyOffsetCommitValue record group=group key=0 versions=0 flexible=none
  offset int64 0
  metadata string 0
  commit_timestamp int64 0
"""


class OffsetCommitKey(Message):
    """Record type 1, versions 0, flexible none."""

    __slots__ = ("group", "topic", "partition")

    group: str
    topic: str
    partition: int

    def __init__(
        self,
        *,
        group: str = "",
        topic: str = "",
        partition: int = 0,
    ) -> None:
        self.group = group
        self.topic = topic
        self.partition = partition
        self.unknown_tagged_fields = None

    SCHEMA = """
OffsetCommitKey record group=group key=1 versions=0 flexible=none
  group string 0
  topic string 0
  partition int32 0
"""


class OffsetCommitValue(Message):
    """Record type 1, versions 0-4, flexible 4+."""

    __slots__ = ("offset", "leader_epoch", "metadata", "commit_timestamp", "expire_timestamp", "topic_id")

    offset: int
    leader_epoch: int
    metadata: str
    commit_timestamp: int
    expire_timestamp: int
    topic_id: Uuid

    def __init__(
        self,
        *,
        offset: int = 0,
        leader_epoch: int = -1,
        metadata: str = "",
        commit_timestamp: int = 0,
        expire_timestamp: int = -1,
        topic_id: Uuid = ZERO_UUID,
    ) -> None:
        self.offset = offset
        self.leader_epoch = leader_epoch
        self.metadata = metadata
        self.commit_timestamp = commit_timestamp
        self.expire_timestamp = expire_timestamp
        self.topic_id = topic_id
        self.unknown_tagged_fields = None

    SCHEMA = """
OffsetCommitValue record group=group key=1 versions=0-4 flexible=4+
  offset int64
  leader_epoch int32 3+ default=-1 ignorable
  metadata string
  commit_timestamp int64
  expire_timestamp int64 1 default=-1 ignorable
  topic_id uuid 4+ tag=0 ignorable
"""


class GroupMetadataKey(Message):
    """Record type 2, versions 0, flexible none."""

    __slots__ = ("group",)

    group: str

    def __init__(
        self,
        *,
        group: str = "",
    ) -> None:
        self.group = group
        self.unknown_tagged_fields = None

    SCHEMA = """
GroupMetadataKey record group=group key=2 versions=0 flexible=none
  group string 0
"""


class GroupMetadataValue(Message):
    """Record type 2, versions 0-4, flexible 4+."""

    __slots__ = ("protocol_type", "generation", "protocol", "leader", "current_state_timestamp", "members")

    protocol_type: str
    generation: int
    protocol: str | None
    leader: str | None
    current_state_timestamp: int
    members: list[GroupMetadataValue.MemberMetadata]

    def __init__(
        self,
        *,
        protocol_type: str = "",
        generation: int = 0,
        protocol: str | None = "",
        leader: str | None = "",
        current_state_timestamp: int = -1,
        members: list[GroupMetadataValue.MemberMetadata] = EMPTY,
    ) -> None:
        self.protocol_type = protocol_type
        self.generation = generation
        self.protocol = protocol
        self.leader = leader
        self.current_state_timestamp = current_state_timestamp
        self.members = [] if members is EMPTY else members
        self.unknown_tagged_fields = None

    SCHEMA = """
GroupMetadataValue record group=group key=2 versions=0-4 flexible=4+
  protocol_type string
  generation int32
  protocol string nullable
  leader string nullable
  current_state_timestamp int64 2+ default=-1 ignorable
  members []MemberMetadata
  struct MemberMetadata
    member_id string
    group_instance_id string 3+ nullable default=null ignorable
    client_id string
    client_host string
    rebalance_timeout int32 1+ default=-1 ignorable
    session_timeout int32
    subscription bytes
    assignment bytes
"""

    class MemberMetadata(Struct):
        __slots__ = ("member_id", "group_instance_id", "client_id", "client_host", "rebalance_timeout", "session_timeout", "subscription", "assignment")

        member_id: str
        group_instance_id: str | None
        client_id: str
        client_host: str
        rebalance_timeout: int
        session_timeout: int
        subscription: bytes
        assignment: bytes

        def __init__(
            self,
            *,
            member_id: str = "",
            group_instance_id: str | None = None,
            client_id: str = "",
            client_host: str = "",
            rebalance_timeout: int = -1,
            session_timeout: int = 0,
            subscription: bytes = b"",
            assignment: bytes = b"",
        ) -> None:
            self.member_id = member_id
            self.group_instance_id = group_instance_id
            self.client_id = client_id
            self.client_host = client_host
            self.rebalance_timeout = rebalance_timeout
            self.session_timeout = session_timeout
            self.subscription = subscription
            self.assignment = assignment
            self.unknown_tagged_fields = None


class ConsumerGroupMetadataKey(Message):
    """Record type 3, versions 0, flexible none."""

    __slots__ = ("group_id",)

    group_id: str

    def __init__(
        self,
        *,
        group_id: str = "",
    ) -> None:
        self.group_id = group_id
        self.unknown_tagged_fields = None

    SCHEMA = """
ConsumerGroupMetadataKey record group=group key=3 versions=0 flexible=none
  group_id string 0
"""


class ConsumerGroupMetadataValue(Message):
    """Record type 3, versions 0, flexible 0+."""

    __slots__ = ("epoch", "metadata_hash")

    epoch: int
    metadata_hash: int

    def __init__(
        self,
        *,
        epoch: int = 0,
        metadata_hash: int = 0,
    ) -> None:
        self.epoch = epoch
        self.metadata_hash = metadata_hash
        self.unknown_tagged_fields = None

    SCHEMA = """
ConsumerGroupMetadataValue record group=group key=3 versions=0 flexible=0+
  epoch int32
  metadata_hash int64 tag=0
"""


class ConsumerGroupPartitionMetadataKey(Message):
    """Record type 4, versions 0, flexible none."""

    __slots__ = ("group_id",)

    group_id: str

    def __init__(
        self,
        *,
        group_id: str = "",
    ) -> None:
        self.group_id = group_id
        self.unknown_tagged_fields = None

    SCHEMA = """
ConsumerGroupPartitionMetadataKey record group=group key=4 versions=0 flexible=none
  group_id string 0
"""


class ConsumerGroupPartitionMetadataValue(Message):
    """Record type 4, versions 0, flexible 0+."""

    __slots__ = ("topics",)

    topics: list[ConsumerGroupPartitionMetadataValue.TopicMetadata]

    def __init__(
        self,
        *,
        topics: list[ConsumerGroupPartitionMetadataValue.TopicMetadata] = EMPTY,
    ) -> None:
        self.topics = [] if topics is EMPTY else topics
        self.unknown_tagged_fields = None

    SCHEMA = """
ConsumerGroupPartitionMetadataValue record group=group key=4 versions=0 flexible=0+
  topics []TopicMetadata
    topic_id uuid
    topic_name string
    num_partitions int32
    partition_metadata []PartitionMetadata
      partition int32
      racks []string
"""

    class PartitionMetadata(Struct):
        __slots__ = ("partition", "racks")

        partition: int
        racks: list[str]

        def __init__(
            self,
            *,
            partition: int = 0,
            racks: list[str] = EMPTY,
        ) -> None:
            self.partition = partition
            self.racks = [] if racks is EMPTY else racks
            self.unknown_tagged_fields = None

    class TopicMetadata(Struct):
        __slots__ = ("topic_id", "topic_name", "num_partitions", "partition_metadata")

        topic_id: Uuid
        topic_name: str
        num_partitions: int
        partition_metadata: list[ConsumerGroupPartitionMetadataValue.PartitionMetadata]

        def __init__(
            self,
            *,
            topic_id: Uuid = ZERO_UUID,
            topic_name: str = "",
            num_partitions: int = 0,
            partition_metadata: list[ConsumerGroupPartitionMetadataValue.PartitionMetadata] = EMPTY,
        ) -> None:
            self.topic_id = topic_id
            self.topic_name = topic_name
            self.num_partitions = num_partitions
            self.partition_metadata = [] if partition_metadata is EMPTY else partition_metadata
            self.unknown_tagged_fields = None


class ConsumerGroupMemberMetadataKey(Message):
    """Record type 5, versions 0, flexible none."""

    __slots__ = ("group_id", "member_id")

    group_id: str
    member_id: str

    def __init__(
        self,
        *,
        group_id: str = "",
        member_id: str = "",
    ) -> None:
        self.group_id = group_id
        self.member_id = member_id
        self.unknown_tagged_fields = None

    SCHEMA = """
ConsumerGroupMemberMetadataKey record group=group key=5 versions=0 flexible=none
  group_id string 0
  member_id string 0
"""


class ConsumerGroupMemberMetadataValue(Message):
    """Record type 5, versions 0, flexible 0+."""

    __slots__ = ("instance_id", "rack_id", "client_id", "client_host", "subscribed_topic_names", "subscribed_topic_regex", "rebalance_timeout_ms", "server_assignor", "classic_member_metadata")

    instance_id: str | None
    rack_id: str | None
    client_id: str
    client_host: str
    subscribed_topic_names: list[str]
    subscribed_topic_regex: str | None
    rebalance_timeout_ms: int
    server_assignor: str | None
    classic_member_metadata: ConsumerGroupMemberMetadataValue.ClassicMemberMetadata | None

    def __init__(
        self,
        *,
        instance_id: str | None = "",
        rack_id: str | None = "",
        client_id: str = "",
        client_host: str = "",
        subscribed_topic_names: list[str] = EMPTY,
        subscribed_topic_regex: str | None = "",
        rebalance_timeout_ms: int = -1,
        server_assignor: str | None = "",
        classic_member_metadata: ConsumerGroupMemberMetadataValue.ClassicMemberMetadata | None | EllipsisType = ...,
    ) -> None:
        self.instance_id = instance_id
        self.rack_id = rack_id
        self.client_id = client_id
        self.client_host = client_host
        self.subscribed_topic_names = [] if subscribed_topic_names is EMPTY else subscribed_topic_names
        self.subscribed_topic_regex = subscribed_topic_regex
        self.rebalance_timeout_ms = rebalance_timeout_ms
        self.server_assignor = server_assignor
        self.classic_member_metadata = ConsumerGroupMemberMetadataValue.ClassicMemberMetadata() if classic_member_metadata is ... else classic_member_metadata
        self.unknown_tagged_fields = None

    SCHEMA = """
ConsumerGroupMemberMetadataValue record group=group key=5 versions=0 flexible=0+
  instance_id string nullable
  rack_id string nullable
  client_id string
  client_host string
  subscribed_topic_names []string
  subscribed_topic_regex string nullable
  rebalance_timeout_ms int32 default=-1
  server_assignor string nullable
  classic_member_metadata ClassicMemberMetadata nullable tag=0
    session_timeout_ms int32
    supported_protocols []ClassicProtocol
      name string
      metadata bytes
"""

    class ClassicProtocol(Struct):
        __slots__ = ("name", "metadata")

        name: str
        metadata: bytes

        def __init__(
            self,
            *,
            name: str = "",
            metadata: bytes = b"",
        ) -> None:
            self.name = name
            self.metadata = metadata
            self.unknown_tagged_fields = None

    class ClassicMemberMetadata(Struct):
        __slots__ = ("session_timeout_ms", "supported_protocols")

        session_timeout_ms: int
        supported_protocols: list[ConsumerGroupMemberMetadataValue.ClassicProtocol]

        def __init__(
            self,
            *,
            session_timeout_ms: int = 0,
            supported_protocols: list[ConsumerGroupMemberMetadataValue.ClassicProtocol] = EMPTY,
        ) -> None:
            self.session_timeout_ms = session_timeout_ms
            self.supported_protocols = [] if supported_protocols is EMPTY else supported_protocols
            self.unknown_tagged_fields = None


class ConsumerGroupTargetAssignmentMetadataKey(Message):
    """Record type 6, versions 0, flexible none."""

    __slots__ = ("group_id",)

    group_id: str

    def __init__(
        self,
        *,
        group_id: str = "",
    ) -> None:
        self.group_id = group_id
        self.unknown_tagged_fields = None

    SCHEMA = """
ConsumerGroupTargetAssignmentMetadataKey record group=group key=6 versions=0 flexible=none
  group_id string 0
"""


class ConsumerGroupTargetAssignmentMetadataValue(Message):
    """Record type 6, versions 0, flexible 0+."""

    __slots__ = ("assignment_epoch", "assignment_timestamp")

    assignment_epoch: int
    assignment_timestamp: int

    def __init__(
        self,
        *,
        assignment_epoch: int = 0,
        assignment_timestamp: int = 0,
    ) -> None:
        self.assignment_epoch = assignment_epoch
        self.assignment_timestamp = assignment_timestamp
        self.unknown_tagged_fields = None

    SCHEMA = """
ConsumerGroupTargetAssignmentMetadataValue record group=group key=6 versions=0 flexible=0+
  assignment_epoch int32
  assignment_timestamp int64 tag=0 ignorable
"""


class ConsumerGroupTargetAssignmentMemberKey(Message):
    """Record type 7, versions 0, flexible none."""

    __slots__ = ("group_id", "member_id")

    group_id: str
    member_id: str

    def __init__(
        self,
        *,
        group_id: str = "",
        member_id: str = "",
    ) -> None:
        self.group_id = group_id
        self.member_id = member_id
        self.unknown_tagged_fields = None

    SCHEMA = """
ConsumerGroupTargetAssignmentMemberKey record group=group key=7 versions=0 flexible=none
  group_id string 0
  member_id string 0
"""


class ConsumerGroupTargetAssignmentMemberValue(Message):
    """Record type 7, versions 0, flexible 0+."""

    __slots__ = ("topic_partitions",)

    topic_partitions: list[ConsumerGroupTargetAssignmentMemberValue.TopicPartition]

    def __init__(
        self,
        *,
        topic_partitions: list[ConsumerGroupTargetAssignmentMemberValue.TopicPartition] = EMPTY,
    ) -> None:
        self.topic_partitions = [] if topic_partitions is EMPTY else topic_partitions
        self.unknown_tagged_fields = None

    SCHEMA = """
ConsumerGroupTargetAssignmentMemberValue record group=group key=7 versions=0 flexible=0+
  topic_partitions []TopicPartition
    topic_id uuid
    partitions []int32
"""

    class TopicPartition(Struct):
        __slots__ = ("topic_id", "partitions")

        topic_id: Uuid
        partitions: list[int]

        def __init__(
            self,
            *,
            topic_id: Uuid = ZERO_UUID,
            partitions: list[int] = EMPTY,
        ) -> None:
            self.topic_id = topic_id
            self.partitions = [] if partitions is EMPTY else partitions
            self.unknown_tagged_fields = None


class ConsumerGroupCurrentMemberAssignmentKey(Message):
    """Record type 8, versions 0, flexible none."""

    __slots__ = ("group_id", "member_id")

    group_id: str
    member_id: str

    def __init__(
        self,
        *,
        group_id: str = "",
        member_id: str = "",
    ) -> None:
        self.group_id = group_id
        self.member_id = member_id
        self.unknown_tagged_fields = None

    SCHEMA = """
ConsumerGroupCurrentMemberAssignmentKey record group=group key=8 versions=0 flexible=none
  group_id string 0
  member_id string 0
"""


class ConsumerGroupCurrentMemberAssignmentValue(Message):
    """Record type 8, versions 0, flexible 0+."""

    __slots__ = ("member_epoch", "previous_member_epoch", "state", "assigned_partitions", "partitions_pending_revocation")

    member_epoch: int
    previous_member_epoch: int
    state: int
    assigned_partitions: list[ConsumerGroupCurrentMemberAssignmentValue.TopicPartitions]
    partitions_pending_revocation: list[ConsumerGroupCurrentMemberAssignmentValue.TopicPartitions]

    def __init__(
        self,
        *,
        member_epoch: int = 0,
        previous_member_epoch: int = 0,
        state: int = 0,
        assigned_partitions: list[ConsumerGroupCurrentMemberAssignmentValue.TopicPartitions] = EMPTY,
        partitions_pending_revocation: list[ConsumerGroupCurrentMemberAssignmentValue.TopicPartitions] = EMPTY,
    ) -> None:
        self.member_epoch = member_epoch
        self.previous_member_epoch = previous_member_epoch
        self.state = state
        self.assigned_partitions = [] if assigned_partitions is EMPTY else assigned_partitions
        self.partitions_pending_revocation = [] if partitions_pending_revocation is EMPTY else partitions_pending_revocation
        self.unknown_tagged_fields = None

    SCHEMA = """
ConsumerGroupCurrentMemberAssignmentValue record group=group key=8 versions=0 flexible=0+
  member_epoch int32
  previous_member_epoch int32
  state int8
  assigned_partitions []TopicPartitions
  partitions_pending_revocation []TopicPartitions
  struct TopicPartitions
    topic_id uuid
    partitions []int32
    assignment_epochs []int32 nullable tag=0
"""

    class TopicPartitions(Struct):
        __slots__ = ("topic_id", "partitions", "assignment_epochs")

        topic_id: Uuid
        partitions: list[int]
        assignment_epochs: list[int] | None

        def __init__(
            self,
            *,
            topic_id: Uuid = ZERO_UUID,
            partitions: list[int] = EMPTY,
            assignment_epochs: list[int] | None = EMPTY,
        ) -> None:
            self.topic_id = topic_id
            self.partitions = [] if partitions is EMPTY else partitions
            self.assignment_epochs = [] if assignment_epochs is EMPTY else assignment_epochs
            self.unknown_tagged_fields = None


class ShareGroupMemberMetadataKey(Message):
    """Record type 10, versions 0, flexible none."""

    __slots__ = ("group_id", "member_id")

    group_id: str
    member_id: str

    def __init__(
        self,
        *,
        group_id: str = "",
        member_id: str = "",
    ) -> None:
        self.group_id = group_id
        self.member_id = member_id
        self.unknown_tagged_fields = None

    SCHEMA = """
ShareGroupMemberMetadataKey record group=group key=10 versions=0 flexible=none
  group_id string 0
  member_id string 0
"""


class ShareGroupMemberMetadataValue(Message):
    """Record type 10, versions 0, flexible 0+."""

    __slots__ = ("rack_id", "client_id", "client_host", "subscribed_topic_names")

    rack_id: str | None
    client_id: str
    client_host: str
    subscribed_topic_names: list[str]

    def __init__(
        self,
        *,
        rack_id: str | None = "",
        client_id: str = "",
        client_host: str = "",
        subscribed_topic_names: list[str] = EMPTY,
    ) -> None:
        self.rack_id = rack_id
        self.client_id = client_id
        self.client_host = client_host
        self.subscribed_topic_names = [] if subscribed_topic_names is EMPTY else subscribed_topic_names
        self.unknown_tagged_fields = None

    SCHEMA = """
ShareGroupMemberMetadataValue record group=group key=10 versions=0 flexible=0+
  rack_id string nullable
  client_id string
  client_host string
  subscribed_topic_names []string
"""


class ShareGroupMetadataKey(Message):
    """Record type 11, versions 0, flexible none."""

    __slots__ = ("group_id",)

    group_id: str

    def __init__(
        self,
        *,
        group_id: str = "",
    ) -> None:
        self.group_id = group_id
        self.unknown_tagged_fields = None

    SCHEMA = """
ShareGroupMetadataKey record group=group key=11 versions=0 flexible=none
  group_id string 0
"""


class ShareGroupMetadataValue(Message):
    """Record type 11, versions 0, flexible 0+."""

    __slots__ = ("epoch", "metadata_hash")

    epoch: int
    metadata_hash: int

    def __init__(
        self,
        *,
        epoch: int = 0,
        metadata_hash: int = 0,
    ) -> None:
        self.epoch = epoch
        self.metadata_hash = metadata_hash
        self.unknown_tagged_fields = None

    SCHEMA = """
ShareGroupMetadataValue record group=group key=11 versions=0 flexible=0+
  epoch int32
  metadata_hash int64
"""


class ShareGroupTargetAssignmentMetadataKey(Message):
    """Record type 12, versions 0, flexible none."""

    __slots__ = ("group_id",)

    group_id: str

    def __init__(
        self,
        *,
        group_id: str = "",
    ) -> None:
        self.group_id = group_id
        self.unknown_tagged_fields = None

    SCHEMA = """
ShareGroupTargetAssignmentMetadataKey record group=group key=12 versions=0 flexible=none
  group_id string 0
"""


class ShareGroupTargetAssignmentMetadataValue(Message):
    """Record type 12, versions 0, flexible 0+."""

    __slots__ = ("assignment_epoch", "assignment_timestamp")

    assignment_epoch: int
    assignment_timestamp: int

    def __init__(
        self,
        *,
        assignment_epoch: int = 0,
        assignment_timestamp: int = 0,
    ) -> None:
        self.assignment_epoch = assignment_epoch
        self.assignment_timestamp = assignment_timestamp
        self.unknown_tagged_fields = None

    SCHEMA = """
ShareGroupTargetAssignmentMetadataValue record group=group key=12 versions=0 flexible=0+
  assignment_epoch int32
  assignment_timestamp int64 tag=0 ignorable
"""


class ShareGroupTargetAssignmentMemberKey(Message):
    """Record type 13, versions 0, flexible none."""

    __slots__ = ("group_id", "member_id")

    group_id: str
    member_id: str

    def __init__(
        self,
        *,
        group_id: str = "",
        member_id: str = "",
    ) -> None:
        self.group_id = group_id
        self.member_id = member_id
        self.unknown_tagged_fields = None

    SCHEMA = """
ShareGroupTargetAssignmentMemberKey record group=group key=13 versions=0 flexible=none
  group_id string 0
  member_id string 0
"""


class ShareGroupTargetAssignmentMemberValue(Message):
    """Record type 13, versions 0, flexible 0+."""

    __slots__ = ("topic_partitions",)

    topic_partitions: list[ShareGroupTargetAssignmentMemberValue.TopicPartition]

    def __init__(
        self,
        *,
        topic_partitions: list[ShareGroupTargetAssignmentMemberValue.TopicPartition] = EMPTY,
    ) -> None:
        self.topic_partitions = [] if topic_partitions is EMPTY else topic_partitions
        self.unknown_tagged_fields = None

    SCHEMA = """
ShareGroupTargetAssignmentMemberValue record group=group key=13 versions=0 flexible=0+
  topic_partitions []TopicPartition
    topic_id uuid
    partitions []int32
"""

    class TopicPartition(Struct):
        __slots__ = ("topic_id", "partitions")

        topic_id: Uuid
        partitions: list[int]

        def __init__(
            self,
            *,
            topic_id: Uuid = ZERO_UUID,
            partitions: list[int] = EMPTY,
        ) -> None:
            self.topic_id = topic_id
            self.partitions = [] if partitions is EMPTY else partitions
            self.unknown_tagged_fields = None


class ShareGroupCurrentMemberAssignmentKey(Message):
    """Record type 14, versions 0, flexible none."""

    __slots__ = ("group_id", "member_id")

    group_id: str
    member_id: str

    def __init__(
        self,
        *,
        group_id: str = "",
        member_id: str = "",
    ) -> None:
        self.group_id = group_id
        self.member_id = member_id
        self.unknown_tagged_fields = None

    SCHEMA = """
ShareGroupCurrentMemberAssignmentKey record group=group key=14 versions=0 flexible=none
  group_id string 0
  member_id string 0
"""


class ShareGroupCurrentMemberAssignmentValue(Message):
    """Record type 14, versions 0, flexible 0+."""

    __slots__ = ("member_epoch", "previous_member_epoch", "state", "assigned_partitions")

    member_epoch: int
    previous_member_epoch: int
    state: int
    assigned_partitions: list[ShareGroupCurrentMemberAssignmentValue.TopicPartitions]

    def __init__(
        self,
        *,
        member_epoch: int = 0,
        previous_member_epoch: int = 0,
        state: int = 0,
        assigned_partitions: list[ShareGroupCurrentMemberAssignmentValue.TopicPartitions] = EMPTY,
    ) -> None:
        self.member_epoch = member_epoch
        self.previous_member_epoch = previous_member_epoch
        self.state = state
        self.assigned_partitions = [] if assigned_partitions is EMPTY else assigned_partitions
        self.unknown_tagged_fields = None

    SCHEMA = """
ShareGroupCurrentMemberAssignmentValue record group=group key=14 versions=0 flexible=0+
  member_epoch int32
  previous_member_epoch int32
  state int8
  assigned_partitions []TopicPartitions
  struct TopicPartitions
    topic_id uuid
    partitions []int32
"""

    class TopicPartitions(Struct):
        __slots__ = ("topic_id", "partitions")

        topic_id: Uuid
        partitions: list[int]

        def __init__(
            self,
            *,
            topic_id: Uuid = ZERO_UUID,
            partitions: list[int] = EMPTY,
        ) -> None:
            self.topic_id = topic_id
            self.partitions = [] if partitions is EMPTY else partitions
            self.unknown_tagged_fields = None


class ShareGroupStatePartitionMetadataKey(Message):
    """Record type 15, versions 0, flexible none."""

    __slots__ = ("group_id",)

    group_id: str

    def __init__(
        self,
        *,
        group_id: str = "",
    ) -> None:
        self.group_id = group_id
        self.unknown_tagged_fields = None

    SCHEMA = """
ShareGroupStatePartitionMetadataKey record group=group key=15 versions=0 flexible=none
  group_id string 0
"""


class ShareGroupStatePartitionMetadataValue(Message):
    """Record type 15, versions 0, flexible 0+."""

    __slots__ = ("initializing_topics", "initialized_topics", "deleting_topics")

    initializing_topics: list[ShareGroupStatePartitionMetadataValue.TopicPartitionsInfo]
    initialized_topics: list[ShareGroupStatePartitionMetadataValue.TopicPartitionsInfo]
    deleting_topics: list[ShareGroupStatePartitionMetadataValue.TopicInfo]

    def __init__(
        self,
        *,
        initializing_topics: list[ShareGroupStatePartitionMetadataValue.TopicPartitionsInfo] = EMPTY,
        initialized_topics: list[ShareGroupStatePartitionMetadataValue.TopicPartitionsInfo] = EMPTY,
        deleting_topics: list[ShareGroupStatePartitionMetadataValue.TopicInfo] = EMPTY,
    ) -> None:
        self.initializing_topics = [] if initializing_topics is EMPTY else initializing_topics
        self.initialized_topics = [] if initialized_topics is EMPTY else initialized_topics
        self.deleting_topics = [] if deleting_topics is EMPTY else deleting_topics
        self.unknown_tagged_fields = None

    SCHEMA = """
ShareGroupStatePartitionMetadataValue record group=group key=15 versions=0 flexible=0+
  initializing_topics []TopicPartitionsInfo
  initialized_topics []TopicPartitionsInfo
  deleting_topics []TopicInfo
  struct TopicPartitionsInfo
    topic_id uuid
    topic_name string
    partitions []int32
  struct TopicInfo
    topic_id uuid
    topic_name string
"""

    class TopicPartitionsInfo(Struct):
        __slots__ = ("topic_id", "topic_name", "partitions")

        topic_id: Uuid
        topic_name: str
        partitions: list[int]

        def __init__(
            self,
            *,
            topic_id: Uuid = ZERO_UUID,
            topic_name: str = "",
            partitions: list[int] = EMPTY,
        ) -> None:
            self.topic_id = topic_id
            self.topic_name = topic_name
            self.partitions = [] if partitions is EMPTY else partitions
            self.unknown_tagged_fields = None

    class TopicInfo(Struct):
        __slots__ = ("topic_id", "topic_name")

        topic_id: Uuid
        topic_name: str

        def __init__(
            self,
            *,
            topic_id: Uuid = ZERO_UUID,
            topic_name: str = "",
        ) -> None:
            self.topic_id = topic_id
            self.topic_name = topic_name
            self.unknown_tagged_fields = None


class ConsumerGroupRegularExpressionKey(Message):
    """Record type 16, versions 0, flexible none."""

    __slots__ = ("group_id", "regular_expression")

    group_id: str
    regular_expression: str

    def __init__(
        self,
        *,
        group_id: str = "",
        regular_expression: str = "",
    ) -> None:
        self.group_id = group_id
        self.regular_expression = regular_expression
        self.unknown_tagged_fields = None

    SCHEMA = """
ConsumerGroupRegularExpressionKey record group=group key=16 versions=0 flexible=none
  group_id string 0
  regular_expression string 0
"""


class ConsumerGroupRegularExpressionValue(Message):
    """Record type 16, versions 0, flexible 0+."""

    __slots__ = ("topics", "version", "timestamp")

    topics: list[str]
    version: int
    timestamp: int

    def __init__(
        self,
        *,
        topics: list[str] = EMPTY,
        version: int = 0,
        timestamp: int = 0,
    ) -> None:
        self.topics = [] if topics is EMPTY else topics
        self.version = version
        self.timestamp = timestamp
        self.unknown_tagged_fields = None

    SCHEMA = """
ConsumerGroupRegularExpressionValue record group=group key=16 versions=0 flexible=0+
  topics []string
  version int64
  timestamp int64
"""


class StreamsGroupMetadataKey(Message):
    """Record type 17, versions 0, flexible none."""

    __slots__ = ("group_id",)

    group_id: str

    def __init__(
        self,
        *,
        group_id: str = "",
    ) -> None:
        self.group_id = group_id
        self.unknown_tagged_fields = None

    SCHEMA = """
StreamsGroupMetadataKey record group=group key=17 versions=0 flexible=none
  group_id string 0
"""


class StreamsGroupMetadataValue(Message):
    """Record type 17, versions 0, flexible 0+."""

    __slots__ = ("epoch", "metadata_hash", "validated_topology_epoch", "last_assignment_configs")

    epoch: int
    metadata_hash: int
    validated_topology_epoch: int
    last_assignment_configs: list[StreamsGroupMetadataValue.LastAssignmentConfig] | None

    def __init__(
        self,
        *,
        epoch: int = 0,
        metadata_hash: int = 0,
        validated_topology_epoch: int = -1,
        last_assignment_configs: list[StreamsGroupMetadataValue.LastAssignmentConfig] | None = EMPTY,
    ) -> None:
        self.epoch = epoch
        self.metadata_hash = metadata_hash
        self.validated_topology_epoch = validated_topology_epoch
        self.last_assignment_configs = [] if last_assignment_configs is EMPTY else last_assignment_configs
        self.unknown_tagged_fields = None

    SCHEMA = """
StreamsGroupMetadataValue record group=group key=17 versions=0 flexible=0+
  epoch int32
  metadata_hash int64
  validated_topology_epoch int32 tag=0 default=-1
  last_assignment_configs []LastAssignmentConfig nullable tag=1
  struct LastAssignmentConfig
    key string
    value string
"""

    class LastAssignmentConfig(Struct):
        __slots__ = ("key", "value")

        key: str
        value: str

        def __init__(
            self,
            *,
            key: str = "",
            value: str = "",
        ) -> None:
            self.key = key
            self.value = value
            self.unknown_tagged_fields = None


class StreamsGroupMemberMetadataKey(Message):
    """Record type 19, versions 0, flexible none."""

    __slots__ = ("group_id", "member_id")

    group_id: str
    member_id: str

    def __init__(
        self,
        *,
        group_id: str = "",
        member_id: str = "",
    ) -> None:
        self.group_id = group_id
        self.member_id = member_id
        self.unknown_tagged_fields = None

    SCHEMA = """
StreamsGroupMemberMetadataKey record group=group key=19 versions=0 flexible=none
  group_id string 0
  member_id string 0
"""


class StreamsGroupMemberMetadataValue(Message):
    """Record type 19, versions 0, flexible 0+."""

    __slots__ = ("instance_id", "rack_id", "client_id", "client_host", "rebalance_timeout_ms", "topology_epoch", "process_id", "user_endpoint", "client_tags")

    instance_id: str | None
    rack_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    topology_epoch: int
    process_id: str
    user_endpoint: StreamsGroupMemberMetadataValue.Endpoint | None
    client_tags: list[StreamsGroupMemberMetadataValue.KeyValue]

    def __init__(
        self,
        *,
        instance_id: str | None = "",
        rack_id: str | None = "",
        client_id: str = "",
        client_host: str = "",
        rebalance_timeout_ms: int = -1,
        topology_epoch: int = 0,
        process_id: str = "",
        user_endpoint: StreamsGroupMemberMetadataValue.Endpoint | None = None,
        client_tags: list[StreamsGroupMemberMetadataValue.KeyValue] = EMPTY,
    ) -> None:
        self.instance_id = instance_id
        self.rack_id = rack_id
        self.client_id = client_id
        self.client_host = client_host
        self.rebalance_timeout_ms = rebalance_timeout_ms
        self.topology_epoch = topology_epoch
        self.process_id = process_id
        self.user_endpoint = user_endpoint
        self.client_tags = [] if client_tags is EMPTY else client_tags
        self.unknown_tagged_fields = None

    SCHEMA = """
StreamsGroupMemberMetadataValue record group=group key=19 versions=0 flexible=0+
  instance_id string nullable
  rack_id string nullable
  client_id string
  client_host string
  rebalance_timeout_ms int32 default=-1
  topology_epoch int32
  process_id string
  user_endpoint Endpoint nullable default=null
  client_tags []KeyValue
  struct Endpoint
    host string
    port uint16
  struct KeyValue
    key string
    value string
"""

    class Endpoint(Struct):
        __slots__ = ("host", "port")

        host: str
        port: int

        def __init__(
            self,
            *,
            host: str = "",
            port: int = 0,
        ) -> None:
            self.host = host
            self.port = port
            self.unknown_tagged_fields = None

    class KeyValue(Struct):
        __slots__ = ("key", "value")

        key: str
        value: str

        def __init__(
            self,
            *,
            key: str = "",
            value: str = "",
        ) -> None:
            self.key = key
            self.value = value
            self.unknown_tagged_fields = None


class StreamsGroupTargetAssignmentMetadataKey(Message):
    """Record type 20, versions 0, flexible none."""

    __slots__ = ("group_id",)

    group_id: str

    def __init__(
        self,
        *,
        group_id: str = "",
    ) -> None:
        self.group_id = group_id
        self.unknown_tagged_fields = None

    SCHEMA = """
StreamsGroupTargetAssignmentMetadataKey record group=group key=20 versions=0 flexible=none
  group_id string 0
"""


class StreamsGroupTargetAssignmentMetadataValue(Message):
    """Record type 20, versions 0, flexible 0+."""

    __slots__ = ("assignment_epoch", "assignment_timestamp")

    assignment_epoch: int
    assignment_timestamp: int

    def __init__(
        self,
        *,
        assignment_epoch: int = 0,
        assignment_timestamp: int = 0,
    ) -> None:
        self.assignment_epoch = assignment_epoch
        self.assignment_timestamp = assignment_timestamp
        self.unknown_tagged_fields = None

    SCHEMA = """
StreamsGroupTargetAssignmentMetadataValue record group=group key=20 versions=0 flexible=0+
  assignment_epoch int32
  assignment_timestamp int64 tag=0 ignorable
"""


class StreamsGroupTargetAssignmentMemberKey(Message):
    """Record type 21, versions 0, flexible none."""

    __slots__ = ("group_id", "member_id")

    group_id: str
    member_id: str

    def __init__(
        self,
        *,
        group_id: str = "",
        member_id: str = "",
    ) -> None:
        self.group_id = group_id
        self.member_id = member_id
        self.unknown_tagged_fields = None

    SCHEMA = """
StreamsGroupTargetAssignmentMemberKey record group=group key=21 versions=0 flexible=none
  group_id string 0
  member_id string 0
"""


class StreamsGroupTargetAssignmentMemberValue(Message):
    """Record type 21, versions 0, flexible 0+."""

    __slots__ = ("active_tasks", "standby_tasks", "warmup_tasks")

    active_tasks: list[StreamsGroupTargetAssignmentMemberValue.TaskIds]
    standby_tasks: list[StreamsGroupTargetAssignmentMemberValue.TaskIds]
    warmup_tasks: list[StreamsGroupTargetAssignmentMemberValue.TaskIds]

    def __init__(
        self,
        *,
        active_tasks: list[StreamsGroupTargetAssignmentMemberValue.TaskIds] = EMPTY,
        standby_tasks: list[StreamsGroupTargetAssignmentMemberValue.TaskIds] = EMPTY,
        warmup_tasks: list[StreamsGroupTargetAssignmentMemberValue.TaskIds] = EMPTY,
    ) -> None:
        self.active_tasks = [] if active_tasks is EMPTY else active_tasks
        self.standby_tasks = [] if standby_tasks is EMPTY else standby_tasks
        self.warmup_tasks = [] if warmup_tasks is EMPTY else warmup_tasks
        self.unknown_tagged_fields = None

    SCHEMA = """
StreamsGroupTargetAssignmentMemberValue record group=group key=21 versions=0 flexible=0+
  active_tasks []TaskIds
  standby_tasks []TaskIds
  warmup_tasks []TaskIds
  struct TaskIds
    subtopology_id string
    partitions []int32
"""

    class TaskIds(Struct):
        __slots__ = ("subtopology_id", "partitions")

        subtopology_id: str
        partitions: list[int]

        def __init__(
            self,
            *,
            subtopology_id: str = "",
            partitions: list[int] = EMPTY,
        ) -> None:
            self.subtopology_id = subtopology_id
            self.partitions = [] if partitions is EMPTY else partitions
            self.unknown_tagged_fields = None


class StreamsGroupCurrentMemberAssignmentKey(Message):
    """Record type 22, versions 0, flexible none."""

    __slots__ = ("group_id", "member_id")

    group_id: str
    member_id: str

    def __init__(
        self,
        *,
        group_id: str = "",
        member_id: str = "",
    ) -> None:
        self.group_id = group_id
        self.member_id = member_id
        self.unknown_tagged_fields = None

    SCHEMA = """
StreamsGroupCurrentMemberAssignmentKey record group=group key=22 versions=0 flexible=none
  group_id string 0
  member_id string 0
"""


class StreamsGroupCurrentMemberAssignmentValue(Message):
    """Record type 22, versions 0, flexible 0+."""

    __slots__ = ("member_epoch", "previous_member_epoch", "state", "active_tasks", "standby_tasks", "warmup_tasks", "active_tasks_pending_revocation", "standby_tasks_pending_revocation", "warmup_tasks_pending_revocation")

    member_epoch: int
    previous_member_epoch: int
    state: int
    active_tasks: list[StreamsGroupCurrentMemberAssignmentValue.TaskIds]
    standby_tasks: list[StreamsGroupCurrentMemberAssignmentValue.TaskIds]
    warmup_tasks: list[StreamsGroupCurrentMemberAssignmentValue.TaskIds]
    active_tasks_pending_revocation: list[StreamsGroupCurrentMemberAssignmentValue.TaskIds]
    standby_tasks_pending_revocation: list[StreamsGroupCurrentMemberAssignmentValue.TaskIds]
    warmup_tasks_pending_revocation: list[StreamsGroupCurrentMemberAssignmentValue.TaskIds]

    def __init__(
        self,
        *,
        member_epoch: int = 0,
        previous_member_epoch: int = 0,
        state: int = 0,
        active_tasks: list[StreamsGroupCurrentMemberAssignmentValue.TaskIds] = EMPTY,
        standby_tasks: list[StreamsGroupCurrentMemberAssignmentValue.TaskIds] = EMPTY,
        warmup_tasks: list[StreamsGroupCurrentMemberAssignmentValue.TaskIds] = EMPTY,
        active_tasks_pending_revocation: list[StreamsGroupCurrentMemberAssignmentValue.TaskIds] = EMPTY,
        standby_tasks_pending_revocation: list[StreamsGroupCurrentMemberAssignmentValue.TaskIds] = EMPTY,
        warmup_tasks_pending_revocation: list[StreamsGroupCurrentMemberAssignmentValue.TaskIds] = EMPTY,
    ) -> None:
        self.member_epoch = member_epoch
        self.previous_member_epoch = previous_member_epoch
        self.state = state
        self.active_tasks = [] if active_tasks is EMPTY else active_tasks
        self.standby_tasks = [] if standby_tasks is EMPTY else standby_tasks
        self.warmup_tasks = [] if warmup_tasks is EMPTY else warmup_tasks
        self.active_tasks_pending_revocation = [] if active_tasks_pending_revocation is EMPTY else active_tasks_pending_revocation
        self.standby_tasks_pending_revocation = [] if standby_tasks_pending_revocation is EMPTY else standby_tasks_pending_revocation
        self.warmup_tasks_pending_revocation = [] if warmup_tasks_pending_revocation is EMPTY else warmup_tasks_pending_revocation
        self.unknown_tagged_fields = None

    SCHEMA = """
StreamsGroupCurrentMemberAssignmentValue record group=group key=22 versions=0 flexible=0+
  member_epoch int32
  previous_member_epoch int32
  state int8
  active_tasks []TaskIds
  standby_tasks []TaskIds
  warmup_tasks []TaskIds
  active_tasks_pending_revocation []TaskIds
  standby_tasks_pending_revocation []TaskIds
  warmup_tasks_pending_revocation []TaskIds
  struct TaskIds
    subtopology_id string
    partitions []int32
    assignment_epochs []int32 nullable tag=0
"""

    class TaskIds(Struct):
        __slots__ = ("subtopology_id", "partitions", "assignment_epochs")

        subtopology_id: str
        partitions: list[int]
        assignment_epochs: list[int] | None

        def __init__(
            self,
            *,
            subtopology_id: str = "",
            partitions: list[int] = EMPTY,
            assignment_epochs: list[int] | None = EMPTY,
        ) -> None:
            self.subtopology_id = subtopology_id
            self.partitions = [] if partitions is EMPTY else partitions
            self.assignment_epochs = [] if assignment_epochs is EMPTY else assignment_epochs
            self.unknown_tagged_fields = None


class StreamsGroupTopologyKey(Message):
    """Record type 23, versions 0, flexible none."""

    __slots__ = ("group_id",)

    group_id: str

    def __init__(
        self,
        *,
        group_id: str = "",
    ) -> None:
        self.group_id = group_id
        self.unknown_tagged_fields = None

    SCHEMA = """
StreamsGroupTopologyKey record group=group key=23 versions=0 flexible=none
  group_id string 0
"""


class StreamsGroupTopologyValue(Message):
    """Record type 23, versions 0, flexible 0+."""

    __slots__ = ("epoch", "subtopologies")

    epoch: int
    subtopologies: list[StreamsGroupTopologyValue.Subtopology]

    def __init__(
        self,
        *,
        epoch: int = 0,
        subtopologies: list[StreamsGroupTopologyValue.Subtopology] = EMPTY,
    ) -> None:
        self.epoch = epoch
        self.subtopologies = [] if subtopologies is EMPTY else subtopologies
        self.unknown_tagged_fields = None

    SCHEMA = """
StreamsGroupTopologyValue record group=group key=23 versions=0 flexible=0+
  epoch int32
  subtopologies []Subtopology
    subtopology_id string
    source_topics []string
    source_topic_regex []string
    state_changelog_topics []TopicInfo
    repartition_sink_topics []string
    repartition_source_topics []TopicInfo
    copartition_groups []CopartitionGroup
      source_topics []int16
      source_topic_regex []int16
      repartition_source_topics []int16
  struct TopicConfig
    key string
    value string
  struct TopicInfo
    name string
    partitions int32
    replication_factor int16
    topic_configs []TopicConfig
"""

    class CopartitionGroup(Struct):
        __slots__ = ("source_topics", "source_topic_regex", "repartition_source_topics")

        source_topics: list[int]
        source_topic_regex: list[int]
        repartition_source_topics: list[int]

        def __init__(
            self,
            *,
            source_topics: list[int] = EMPTY,
            source_topic_regex: list[int] = EMPTY,
            repartition_source_topics: list[int] = EMPTY,
        ) -> None:
            self.source_topics = [] if source_topics is EMPTY else source_topics
            self.source_topic_regex = [] if source_topic_regex is EMPTY else source_topic_regex
            self.repartition_source_topics = [] if repartition_source_topics is EMPTY else repartition_source_topics
            self.unknown_tagged_fields = None

    class Subtopology(Struct):
        __slots__ = ("subtopology_id", "source_topics", "source_topic_regex", "state_changelog_topics", "repartition_sink_topics", "repartition_source_topics", "copartition_groups")

        subtopology_id: str
        source_topics: list[str]
        source_topic_regex: list[str]
        state_changelog_topics: list[StreamsGroupTopologyValue.TopicInfo]
        repartition_sink_topics: list[str]
        repartition_source_topics: list[StreamsGroupTopologyValue.TopicInfo]
        copartition_groups: list[StreamsGroupTopologyValue.CopartitionGroup]

        def __init__(
            self,
            *,
            subtopology_id: str = "",
            source_topics: list[str] = EMPTY,
            source_topic_regex: list[str] = EMPTY,
            state_changelog_topics: list[StreamsGroupTopologyValue.TopicInfo] = EMPTY,
            repartition_sink_topics: list[str] = EMPTY,
            repartition_source_topics: list[StreamsGroupTopologyValue.TopicInfo] = EMPTY,
            copartition_groups: list[StreamsGroupTopologyValue.CopartitionGroup] = EMPTY,
        ) -> None:
            self.subtopology_id = subtopology_id
            self.source_topics = [] if source_topics is EMPTY else source_topics
            self.source_topic_regex = [] if source_topic_regex is EMPTY else source_topic_regex
            self.state_changelog_topics = [] if state_changelog_topics is EMPTY else state_changelog_topics
            self.repartition_sink_topics = [] if repartition_sink_topics is EMPTY else repartition_sink_topics
            self.repartition_source_topics = [] if repartition_source_topics is EMPTY else repartition_source_topics
            self.copartition_groups = [] if copartition_groups is EMPTY else copartition_groups
            self.unknown_tagged_fields = None

    class TopicConfig(Struct):
        __slots__ = ("key", "value")

        key: str
        value: str

        def __init__(
            self,
            *,
            key: str = "",
            value: str = "",
        ) -> None:
            self.key = key
            self.value = value
            self.unknown_tagged_fields = None

    class TopicInfo(Struct):
        __slots__ = ("name", "partitions", "replication_factor", "topic_configs")

        name: str
        partitions: int
        replication_factor: int
        topic_configs: list[StreamsGroupTopologyValue.TopicConfig]

        def __init__(
            self,
            *,
            name: str = "",
            partitions: int = 0,
            replication_factor: int = 0,
            topic_configs: list[StreamsGroupTopologyValue.TopicConfig] = EMPTY,
        ) -> None:
            self.name = name
            self.partitions = partitions
            self.replication_factor = replication_factor
            self.topic_configs = [] if topic_configs is EMPTY else topic_configs
            self.unknown_tagged_fields = None
