"""AddRaftVoterRequest and AddRaftVoterResponse.

Generated from schema/messages.txt by `make generate`; do not edit.
"""

from __future__ import annotations

from barnabas.wire.message import EMPTY, Message, Struct
from barnabas.wire.primitives import ZERO_UUID, Uuid

__all__ = ["AddRaftVoterRequest", "AddRaftVoterResponse"]


class AddRaftVoterRequest(Message):
    """AddRaftVoter request, API key 80, versions 0-1, flexible 0+."""

    __slots__ = ("cluster_id", "timeout_ms", "voter_id", "voter_directory_id", "listeners", "ack_when_committed")

    cluster_id: str | None
    timeout_ms: int
    voter_id: int
    voter_directory_id: Uuid
    listeners: list[AddRaftVoterRequest.Listener]
    ack_when_committed: bool

    def __init__(
        self,
        *,
        cluster_id: str | None = "",
        timeout_ms: int = 0,
        voter_id: int = 0,
        voter_directory_id: Uuid = ZERO_UUID,
        listeners: list[AddRaftVoterRequest.Listener] = EMPTY,
        ack_when_committed: bool = True,
    ) -> None:
        self.cluster_id = cluster_id
        self.timeout_ms = timeout_ms
        self.voter_id = voter_id
        self.voter_directory_id = voter_directory_id
        self.listeners = [] if listeners is EMPTY else listeners
        self.ack_when_committed = ack_when_committed
        self.unknown_tagged_fields = None

    SCHEMA = """
AddRaftVoterRequest request key=80 versions=0-1 flexible=0+ listeners=controller,broker
  cluster_id string nullable
  timeout_ms int32
  voter_id int32
  voter_directory_id uuid
  listeners []Listener
    name string key
    host string
    port uint16
  ack_when_committed bool 1+ default=true
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


class AddRaftVoterResponse(Message):
    """AddRaftVoter response, API key 80, versions 0-1, flexible 0+."""

    __slots__ = ("throttle_time_ms", "error_code", "error_message")

    throttle_time_ms: int
    error_code: int
    error_message: str | None

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = "",
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message
        self.unknown_tagged_fields = None

    SCHEMA = """
AddRaftVoterResponse response key=80 versions=0-1 flexible=0+
  throttle_time_ms int32
  error_code int16
  error_message string nullable ignorable
"""
