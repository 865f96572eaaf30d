"""Records of the group share.

Generated from schema/records.txt by `make generate`; do not edit.
"""

from __future__ import annotations

from barnabas.wire.message import EMPTY, Message, Struct
from barnabas.wire.primitives import ZERO_UUID, Uuid

__all__ = ["ShareSnapshotKey", "ShareSnapshotValue", "ShareUpdateKey", "ShareUpdateValue"]


class ShareSnapshotKey(Message):
    """Record type 0, versions 0, flexible none."""

    __slots__ = ("group_id", "topic_id", "partition")

    group_id: str
    topic_id: Uuid
    partition: int

    def __init__(
        self,
        *,
        group_id: str = "",
        topic_id: Uuid = ZERO_UUID,
        partition: int = 0,
    ) -> None:
        self.group_id = group_id
        self.topic_id = topic_id
        self.partition = partition
        self.unknown_tagged_fields = None

    SCHEMA = """
ShareSnapshotKey record group=share key=0 versions=0 flexible=none
  group_id string 0
  topic_id uuid 0
  partition int32 0
"""


class ShareSnapshotValue(Message):
    """Record type 0, versions 0, flexible 0+."""

    __slots__ = ("snapshot_epoch", "state_epoch", "leader_epoch", "start_offset", "delivery_complete_count", "create_timestamp", "write_timestamp", "state_batches")

    snapshot_epoch: int
    state_epoch: int
    leader_epoch: int
    start_offset: int
    delivery_complete_count: int
    create_timestamp: int
    write_timestamp: int
    state_batches: list[ShareSnapshotValue.StateBatch]

    def __init__(
        self,
        *,
        snapshot_epoch: int = 0,
        state_epoch: int = 0,
        leader_epoch: int = 0,
        start_offset: int = 0,
        delivery_complete_count: int = -1,
        create_timestamp: int = 0,
        write_timestamp: int = 0,
        state_batches: list[ShareSnapshotValue.StateBatch] = EMPTY,
    ) -> None:
        self.snapshot_epoch = snapshot_epoch
        self.state_epoch = state_epoch
        self.leader_epoch = leader_epoch
        self.start_offset = start_offset
        self.delivery_complete_count = delivery_complete_count
        self.create_timestamp = create_timestamp
        self.write_timestamp = write_timestamp
        self.state_batches = [] if state_batches is EMPTY else state_batches
        self.unknown_tagged_fields = None

    SCHEMA = """
ShareSnapshotValue record group=share key=0 versions=0 flexible=0+
  snapshot_epoch int32
  state_epoch int32
  leader_epoch int32
  start_offset int64
  delivery_complete_count int32 tag=0 default=-1
  create_timestamp int64
  write_timestamp int64
  state_batches []StateBatch
    first_offset int64
    last_offset int64
    delivery_state int8
    delivery_count int16
"""

    class StateBatch(Struct):
        __slots__ = ("first_offset", "last_offset", "delivery_state", "delivery_count")

        first_offset: int
        last_offset: int
        delivery_state: int
        delivery_count: int

        def __init__(
            self,
            *,
            first_offset: int = 0,
            last_offset: int = 0,
            delivery_state: int = 0,
            delivery_count: int = 0,
        ) -> None:
            self.first_offset = first_offset
            self.last_offset = last_offset
            self.delivery_state = delivery_state
            self.delivery_count = delivery_count
            self.unknown_tagged_fields = None


class ShareUpdateKey(Message):
    """Record type 1, versions 0, flexible none."""

    __slots__ = ("group_id", "topic_id", "partition")

    group_id: str
    topic_id: Uuid
    partition: int

    def __init__(
        self,
        *,
        group_id: str = "",
        topic_id: Uuid = ZERO_UUID,
        partition: int = 0,
    ) -> None:
        self.group_id = group_id
        self.topic_id = topic_id
        self.partition = partition
        self.unknown_tagged_fields = None

    SCHEMA = """
ShareUpdateKey record group=share key=1 versions=0 flexible=none
  group_id string 0
  topic_id uuid 0
  partition int32 0
"""


class ShareUpdateValue(Message):
    """Record type 1, versions 0, flexible 0+."""

    __slots__ = ("snapshot_epoch", "leader_epoch", "start_offset", "delivery_complete_count", "state_batches")

    snapshot_epoch: int
    leader_epoch: int
    start_offset: int
    delivery_complete_count: int
    state_batches: list[ShareUpdateValue.StateBatch]

    def __init__(
        self,
        *,
        snapshot_epoch: int = 0,
        leader_epoch: int = 0,
        start_offset: int = 0,
        delivery_complete_count: int = -1,
        state_batches: list[ShareUpdateValue.StateBatch] = EMPTY,
    ) -> None:
        self.snapshot_epoch = snapshot_epoch
        self.leader_epoch = leader_epoch
        self.start_offset = start_offset
        self.delivery_complete_count = delivery_complete_count
        self.state_batches = [] if state_batches is EMPTY else state_batches
        self.unknown_tagged_fields = None

    SCHEMA = """
ShareUpdateValue record group=share key=1 versions=0 flexible=0+
  snapshot_epoch int32
  leader_epoch int32
  start_offset int64
  delivery_complete_count int32 tag=0 default=-1
  state_batches []StateBatch
    first_offset int64
    last_offset int64
    delivery_state int8
    delivery_count int16
"""

    class StateBatch(Struct):
        __slots__ = ("first_offset", "last_offset", "delivery_state", "delivery_count")

        first_offset: int
        last_offset: int
        delivery_state: int
        delivery_count: int

        def __init__(
            self,
            *,
            first_offset: int = 0,
            last_offset: int = 0,
            delivery_state: int = 0,
            delivery_count: int = 0,
        ) -> None:
            self.first_offset = first_offset
            self.last_offset = last_offset
            self.delivery_state = delivery_state
            self.delivery_count = delivery_count
            self.unknown_tagged_fields = None
