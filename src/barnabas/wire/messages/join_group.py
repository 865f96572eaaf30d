"""JoinGroupRequest and JoinGroupResponse.

Generated from schema/messages.txt by `make generate`; do not edit.
"""

from __future__ import annotations

from barnabas.wire.message import EMPTY, Message, Struct

__all__ = ["JoinGroupRequest", "JoinGroupResponse"]


class JoinGroupRequest(Message):
    """JoinGroup request, API key 11, versions 0-9, flexible 6+."""

    __slots__ = ("group_id", "session_timeout_ms", "rebalance_timeout_ms", "member_id", "group_instance_id", "protocol_type", "protocols", "reason")

    group_id: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    member_id: str
    group_instance_id: str | None
    protocol_type: str
    protocols: list[JoinGroupRequest.JoinGroupRequestProtocol]
    reason: str | None

    def __init__(
        self,
        *,
        group_id: str = "",
        session_timeout_ms: int = 0,
        rebalance_timeout_ms: int = -1,
        member_id: str = "",
        group_instance_id: str | None = None,
        protocol_type: str = "",
        protocols: list[JoinGroupRequest.JoinGroupRequestProtocol] = EMPTY,
        reason: str | None = None,
    ) -> None:
        self.group_id = group_id
        self.session_timeout_ms = session_timeout_ms
        self.rebalance_timeout_ms = rebalance_timeout_ms
        self.member_id = member_id
        self.group_instance_id = group_instance_id
        self.protocol_type = protocol_type
        self.protocols = [] if protocols is EMPTY else protocols
        self.reason = reason
        self.unknown_tagged_fields = None

    SCHEMA = """
JoinGroupRequest request key=11 versions=0-9 flexible=6+ listeners=broker
  group_id string
  session_timeout_ms int32
  rebalance_timeout_ms int32 1+ default=-1 ignorable
  member_id string
  group_instance_id string 5+ nullable default=null
  protocol_type string
  protocols []JoinGroupRequestProtocol
    name string key
    metadata bytes
  reason string 8+ nullable default=null ignorable
"""

    class JoinGroupRequestProtocol(Struct):
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


class JoinGroupResponse(Message):
    """JoinGroup response, API key 11, versions 0-9, flexible 6+."""

    __slots__ = ("throttle_time_ms", "error_code", "generation_id", "protocol_type", "protocol_name", "leader", "skip_assignment", "member_id", "members")

    throttle_time_ms: int
    error_code: int
    generation_id: int
    protocol_type: str | None
    protocol_name: str | None
    leader: str
    skip_assignment: bool
    member_id: str
    members: list[JoinGroupResponse.JoinGroupResponseMember]

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        generation_id: int = -1,
        protocol_type: str | None = None,
        protocol_name: str | None = "",
        leader: str = "",
        skip_assignment: bool = False,
        member_id: str = "",
        members: list[JoinGroupResponse.JoinGroupResponseMember] = EMPTY,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.generation_id = generation_id
        self.protocol_type = protocol_type
        self.protocol_name = protocol_name
        self.leader = leader
        self.skip_assignment = skip_assignment
        self.member_id = member_id
        self.members = [] if members is EMPTY else members
        self.unknown_tagged_fields = None

    SCHEMA = """
JoinGroupResponse response key=11 versions=0-9 flexible=6+
  throttle_time_ms int32 2+ ignorable
  error_code int16
  generation_id int32 default=-1
  protocol_type string 7+ nullable default=null ignorable
  protocol_name string nullable=7+
  leader string
  skip_assignment bool 9+
  member_id string
  members []JoinGroupResponseMember
    member_id string
    group_instance_id string 5+ nullable default=null ignorable
    metadata bytes
"""

    class JoinGroupResponseMember(Struct):
        __slots__ = ("member_id", "group_instance_id", "metadata")

        member_id: str
        group_instance_id: str | None
        metadata: bytes

        def __init__(
            self,
            *,
            member_id: str = "",
            group_instance_id: str | None = None,
            metadata: bytes = b"",
        ) -> None:
            self.member_id = member_id
            self.group_instance_id = group_instance_id
            self.metadata = metadata
            self.unknown_tagged_fields = None
