"""Records of the group raft.

Generated from schema/records.txt by `make generate`; do not edit.
"""

from __future__ import annotations

from barnabas.wire.message import EMPTY, Message, Struct
from barnabas.wire.primitives import ZERO_UUID, Uuid

__all__ = ["QuorumStateData"]


class QuorumStateData(Message):
    """Record, versions 0-1, flexible 0+."""

    __slots__ = ("cluster_id", "leader_id", "leader_epoch", "voted_id", "voted_directory_id", "applied_offset", "current_voters")

    cluster_id: str
    leader_id: int
    leader_epoch: int
    voted_id: int
    voted_directory_id: Uuid
    applied_offset: int
    current_voters: list[QuorumStateData.Voter] | None

    def __init__(
        self,
        *,
        cluster_id: str = "",
        leader_id: int = -1,
        leader_epoch: int = -1,
        voted_id: int = -1,
        voted_directory_id: Uuid = ZERO_UUID,
        applied_offset: int = 0,
        current_voters: list[QuorumStateData.Voter] | None = EMPTY,
    ) -> None:
        self.cluster_id = cluster_id
        self.leader_id = leader_id
        self.leader_epoch = leader_epoch
        self.voted_id = voted_id
        self.voted_directory_id = voted_directory_id
        self.applied_offset = applied_offset
        self.current_voters = [] if current_voters is EMPTY else current_voters
        self.unknown_tagged_fields = None

    SCHEMA = """
QuorumStateData record group=raft versions=0-1 flexible=0+
  cluster_id string 0
  leader_id int32 default=-1
  leader_epoch int32 default=-1
  voted_id int32 default=-1
  voted_directory_id uuid 1+
  applied_offset int64 0
  current_voters []Voter 0 nullable
    voter_id int32 0
"""

    class Voter(Struct):
        __slots__ = ("voter_id",)

        voter_id: int

        def __init__(
            self,
            *,
            voter_id: int = 0,
        ) -> None:
            self.voter_id = voter_id
            self.unknown_tagged_fields = None
