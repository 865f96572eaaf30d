"""RemoveRaftVoterRequest and RemoveRaftVoterResponse.

Generated from schema/messages.txt by `make generate`; do not edit.
"""

from __future__ import annotations

from barnabas.wire.message import Message
from barnabas.wire.primitives import ZERO_UUID, Uuid

__all__ = ["RemoveRaftVoterRequest", "RemoveRaftVoterResponse"]


class RemoveRaftVoterRequest(Message):
    """RemoveRaftVoter request, API key 81, versions 0, flexible 0+."""

    __slots__ = ("cluster_id", "voter_id", "voter_directory_id")

    cluster_id: str | None
    voter_id: int
    voter_directory_id: Uuid

    def __init__(
        self,
        *,
        cluster_id: str | None = "",
        voter_id: int = 0,
        voter_directory_id: Uuid = ZERO_UUID,
    ) -> None:
        self.cluster_id = cluster_id
        self.voter_id = voter_id
        self.voter_directory_id = voter_directory_id
        self.unknown_tagged_fields = None

    SCHEMA = """
RemoveRaftVoterRequest request key=81 versions=0 flexible=0+ listeners=controller,broker
  cluster_id string nullable
  voter_id int32
  voter_directory_id uuid
"""


class RemoveRaftVoterResponse(Message):
    """RemoveRaftVoter response, API key 81, versions 0, flexible 0+."""

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
RemoveRaftVoterResponse response key=81 versions=0 flexible=0+
  throttle_time_ms int32
  error_code int16
  error_message string nullable ignorable
"""
