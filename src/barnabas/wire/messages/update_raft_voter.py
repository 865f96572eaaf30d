"""UpdateRaftVoterRequest and UpdateRaftVoterResponse.

Generated from schema/messages.txt by `make generate`; do not edit.
"""

from __future__ import annotations

from barnabas.wire.message import EMPTY, Message, Struct
from barnabas.wire.primitives import ZERO_UUID, Uuid

__all__ = ["UpdateRaftVoterRequest", "UpdateRaftVoterResponse"]


class UpdateRaftVoterRequest(Message):
    """UpdateRaftVoter request, API key 82, versions 0, flexible 0+."""

    __slots__ = ("cluster_id", "current_leader_epoch", "voter_id", "voter_directory_id", "listeners", "k_raft_version_feature")

    cluster_id: str | None
    current_leader_epoch: int
    voter_id: int
    voter_directory_id: Uuid
    listeners: list[UpdateRaftVoterRequest.Listener]
    k_raft_version_feature: UpdateRaftVoterRequest.KRaftVersionFeature

    def __init__(
        self,
        *,
        cluster_id: str | None = "",
        current_leader_epoch: int = 0,
        voter_id: int = 0,
        voter_directory_id: Uuid = ZERO_UUID,
        listeners: list[UpdateRaftVoterRequest.Listener] = EMPTY,
        k_raft_version_feature: UpdateRaftVoterRequest.KRaftVersionFeature | None = None,
    ) -> None:
        self.cluster_id = cluster_id
        self.current_leader_epoch = current_leader_epoch
        self.voter_id = voter_id
        self.voter_directory_id = voter_directory_id
        self.listeners = [] if listeners is EMPTY else listeners
        self.k_raft_version_feature = UpdateRaftVoterRequest.KRaftVersionFeature() if k_raft_version_feature is None else k_raft_version_feature
        self.unknown_tagged_fields = None

    SCHEMA = """
UpdateRaftVoterRequest request key=82 versions=0 flexible=0+ listeners=controller
  cluster_id string nullable
  current_leader_epoch int32
  voter_id int32
  voter_directory_id uuid
  listeners []Listener
    name string key
    host string
    port uint16
  k_raft_version_feature KRaftVersionFeature
    min_supported_version int16
    max_supported_version int16
"""

    class Listener(Struct):
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


class UpdateRaftVoterResponse(Message):
    """UpdateRaftVoter response, API key 82, versions 0, flexible 0+."""

    __slots__ = ("throttle_time_ms", "error_code", "current_leader")

    throttle_time_ms: int
    error_code: int
    current_leader: UpdateRaftVoterResponse.CurrentLeader

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        current_leader: UpdateRaftVoterResponse.CurrentLeader | None = None,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.current_leader = UpdateRaftVoterResponse.CurrentLeader() if current_leader is None else current_leader
        self.unknown_tagged_fields = None

    SCHEMA = """
UpdateRaftVoterResponse response key=82 versions=0 flexible=0+
  throttle_time_ms int32
  error_code int16
  current_leader CurrentLeader tag=0
    leader_id int32 default=-1
    leader_epoch int32 default=-1
    host string
    port int32
"""

    class CurrentLeader(Struct):
        __slots__ = ("leader_id", "leader_epoch", "host", "port")

        leader_id: int
        leader_epoch: int
        host: str
        port: int

        def __init__(
            self,
            *,
            leader_id: int = -1,
            leader_epoch: int = -1,
            host: str = "",
            port: int = 0,
        ) -> None:
            self.leader_id = leader_id
            self.leader_epoch = leader_epoch
            self.host = host
            self.port = port
            self.unknown_tagged_fields = None
