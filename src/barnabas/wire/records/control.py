"""Records of the group control.

Generated from schema/records.txt by `make generate`; do not edit.
"""

from __future__ import annotations

from barnabas.wire.message import EMPTY, Message, Struct
from barnabas.wire.primitives import ZERO_UUID, Uuid

__all__ = ["ControlRecordTypeSchema", "EndTxnMarker", "KRaftVersionRecord", "LeaderChangeMessage", "SnapshotFooterRecord", "SnapshotHeaderRecord", "VotersRecord"]


class ControlRecordTypeSchema(Message):
    """Record, versions 0, flexible none."""

    __slots__ = ("type",)

    type: int

    def __init__(
        self,
        *,
        type: int = 0,
    ) -> None:
        self.type = type
        self.unknown_tagged_fields = None

    SCHEMA = """
ControlRecordTypeSchema record group=control versions=0 flexible=none
  type int16
"""


class EndTxnMarker(Message):
    """Record, versions 0, flexible none."""

    __slots__ = ("coordinator_epoch",)

    coordinator_epoch: int

    def __init__(
        self,
        *,
        coordinator_epoch: int = 0,
    ) -> None:
        self.coordinator_epoch = coordinator_epoch
        self.unknown_tagged_fields = None

    SCHEMA = """
EndTxnMarker record group=control versions=0 flexible=none
  coordinator_epoch int32
"""


class KRaftVersionRecord(Message):
    """Record, versions 0, flexible 0+."""

    __slots__ = ("version", "k_raft_version")

    version: int
    k_raft_version: int

    def __init__(
        self,
        *,
        version: int = 0,
        k_raft_version: int = 0,
    ) -> None:
        self.version = version
        self.k_raft_version = k_raft_version
        self.unknown_tagged_fields = None

    SCHEMA = """
KRaftVersionRecord record group=control versions=0 flexible=0+
  version int16
  k_raft_version int16
"""


class LeaderChangeMessage(Message):
    """Record, versions 0-1, flexible 0+."""

    __slots__ = ("version", "leader_id", "voters", "granting_voters")

    version: int
    leader_id: int
    voters: list[LeaderChangeMessage.Voter]
    granting_voters: list[LeaderChangeMessage.Voter]

    def __init__(
        self,
        *,
        version: int = 0,
        leader_id: int = 0,
        voters: list[LeaderChangeMessage.Voter] = EMPTY,
        granting_voters: list[LeaderChangeMessage.Voter] = EMPTY,
    ) -> None:
        self.version = version
        self.leader_id = leader_id
        self.voters = [] if voters is EMPTY else voters
        self.granting_voters = [] if granting_voters is EMPTY else granting_voters
        self.unknown_tagged_fields = None

    SCHEMA = """
LeaderChangeMessage record group=control versions=0-1 flexible=0+
  version int16
  leader_id int32
  voters []Voter
  granting_voters []Voter
  struct Voter
    voter_id int32
    voter_directory_id uuid 1+
"""

    class Voter(Struct):
        __slots__ = ("voter_id", "voter_directory_id")

        voter_id: int
        voter_directory_id: Uuid

        def __init__(
            self,
            *,
            voter_id: int = 0,
            voter_directory_id: Uuid = ZERO_UUID,
        ) -> None:
            self.voter_id = voter_id
            self.voter_directory_id = voter_directory_id
            self.unknown_tagged_fields = None


class SnapshotFooterRecord(Message):
    """Record, versions 0, flexible 0+."""

    __slots__ = ("version",)

    version: int

    def __init__(
        self,
        *,
        version: int = 0,
    ) -> None:
        self.version = version
        self.unknown_tagged_fields = None

    SCHEMA = """
SnapshotFooterRecord record group=control versions=0 flexible=0+
  version int16
"""


class SnapshotHeaderRecord(Message):
    """Record, versions 0, flexible 0+."""

    __slots__ = ("version", "last_contained_log_timestamp")

    version: int
    last_contained_log_timestamp: int

    def __init__(
        self,
        *,
        version: int = 0,
        last_contained_log_timestamp: int = 0,
    ) -> None:
        self.version = version
        self.last_contained_log_timestamp = last_contained_log_timestamp
        self.unknown_tagged_fields = None

    SCHEMA = """
SnapshotHeaderRecord record group=control versions=0 flexible=0+
  version int16
  last_contained_log_timestamp int64
"""


class VotersRecord(Message):
    """Record, versions 0, flexible 0+."""

    __slots__ = ("version", "voters")

    version: int
    voters: list[VotersRecord.Voter]

    def __init__(
        self,
        *,
        version: int = 0,
        voters: list[VotersRecord.Voter] = EMPTY,
    ) -> None:
        self.version = version
        self.voters = [] if voters is EMPTY else voters
        self.unknown_tagged_fields = None

    SCHEMA = """
VotersRecord record group=control versions=0 flexible=0+
  version int16
  voters []Voter
    voter_id int32
    voter_directory_id uuid
    endpoints []Endpoint
      name string key
      host string
      port uint16
    k_raft_version_feature KRaftVersionFeature
      min_supported_version int16
      max_supported_version int16
"""

    class Endpoint(Struct):
        __slots__ = ("name", "host", "port")

        name: str
        host: str
        port: int

        def __init__(
            self,
            *,
            name: str = "",
            host: str = "",
            port: int = 0,
        ) -> None:
            self.name = name
            self.host = host
            self.port = port
            self.unknown_tagged_fields = None

    class KRaftVersionFeature(Struct):
        __slots__ = ("min_supported_version", "max_supported_version")

        min_supported_version: int
        max_supported_version: int

        def __init__(
            self,
            *,
            min_supported_version: int = 0,
            max_supported_version: int = 0,
        ) -> None:
            self.min_supported_version = min_supported_version
            self.max_supported_version = max_supported_version
            self.unknown_tagged_fields = None

    class Voter(Struct):
        __slots__ = ("voter_id", "voter_directory_id", "endpoints", "k_raft_version_feature")

        voter_id: int
        voter_directory_id: Uuid
        endpoints: list[VotersRecord.Endpoint]
        k_raft_version_feature: VotersRecord.KRaftVersionFeature

        def __init__(
            self,
            *,
            voter_id: int = 0,
            voter_directory_id: Uuid = ZERO_UUID,
            endpoints: list[VotersRecord.Endpoint] = EMPTY,
            k_raft_version_feature: VotersRecord.KRaftVersionFeature | None = None,
        ) -> None:
            self.voter_id = voter_id
            self.voter_directory_id = voter_directory_id
            self.endpoints = [] if endpoints is EMPTY else endpoints
            self.k_raft_version_feature = VotersRecord.KRaftVersionFeature() if k_raft_version_feature is None else k_raft_version_feature
            self.unknown_tagged_fields = None
