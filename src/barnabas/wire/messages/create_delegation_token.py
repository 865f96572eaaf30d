"""CreateDelegationTokenRequest and CreateDelegationTokenResponse.

Generated from schema/messages.txt by `make generate`; do not edit.
"""

from __future__ import annotations

from barnabas.wire.message import EMPTY, Message, Struct

__all__ = ["CreateDelegationTokenRequest", "CreateDelegationTokenResponse"]


class CreateDelegationTokenRequest(Message):
    """CreateDelegationToken request, API key 38, versions 0-3, flexible 2+."""

    __slots__ = ("owner_principal_type", "owner_principal_name", "renewers", "max_lifetime_ms")

    owner_principal_type: str | None
    owner_principal_name: str | None
    renewers: list[CreateDelegationTokenRequest.CreatableRenewers]
    max_lifetime_ms: int

    def __init__(
        self,
        *,
        owner_principal_type: str | None = "",
        owner_principal_name: str | None = "",
        renewers: list[CreateDelegationTokenRequest.CreatableRenewers] = EMPTY,
        max_lifetime_ms: int = 0,
    ) -> None:
        self.owner_principal_type = owner_principal_type
        self.owner_principal_name = owner_principal_name
        self.renewers = [] if renewers is EMPTY else renewers
        self.max_lifetime_ms = max_lifetime_ms
        self.unknown_tagged_fields = None

    SCHEMA = """
CreateDelegationTokenRequest request key=38 versions=0-3 kafka=1-3 flexible=2+ listeners=broker,controller
  owner_principal_type string 3+ nullable
  owner_principal_name string 3+ nullable
  renewers []CreatableRenewers
    principal_type string
    principal_name string
  max_lifetime_ms int64
"""

    class CreatableRenewers(Struct):
        __slots__ = ("principal_type", "principal_name")

        principal_type: str
        principal_name: str

        def __init__(
            self,
            *,
            principal_type: str = "",
            principal_name: str = "",
        ) -> None:
            self.principal_type = principal_type
            self.principal_name = principal_name
            self.unknown_tagged_fields = None


class CreateDelegationTokenResponse(Message):
    """CreateDelegationToken response, API key 38, versions 0-3, flexible 2+."""

    __slots__ = ("error_code", "principal_type", "principal_name", "token_requester_principal_type", "token_requester_principal_name", "issue_timestamp_ms", "expiry_timestamp_ms", "max_timestamp_ms", "token_id", "hmac", "throttle_time_ms")

    error_code: int
    principal_type: str
    principal_name: str
    token_requester_principal_type: str
    token_requester_principal_name: str
    issue_timestamp_ms: int
    expiry_timestamp_ms: int
    max_timestamp_ms: int
    token_id: str
    hmac: bytes
    throttle_time_ms: int

    def __init__(
        self,
        *,
        error_code: int = 0,
        principal_type: str = "",
        principal_name: str = "",
        token_requester_principal_type: str = "",
        token_requester_principal_name: str = "",
        issue_timestamp_ms: int = 0,
        expiry_timestamp_ms: int = 0,
        max_timestamp_ms: int = 0,
        token_id: str = "",
        hmac: bytes = b"",
        throttle_time_ms: int = 0,
    ) -> None:
        self.error_code = error_code
        self.principal_type = principal_type
        self.principal_name = principal_name
        self.token_requester_principal_type = token_requester_principal_type
        self.token_requester_principal_name = token_requester_principal_name
        self.issue_timestamp_ms = issue_timestamp_ms
        self.expiry_timestamp_ms = expiry_timestamp_ms
        self.max_timestamp_ms = max_timestamp_ms
        self.token_id = token_id
        self.hmac = hmac
        self.throttle_time_ms = throttle_time_ms
        self.unknown_tagged_fields = None

    SCHEMA = """
CreateDelegationTokenResponse response key=38 versions=0-3 kafka=1-3 flexible=2+
  error_code int16
  principal_type string
  principal_name string
  token_requester_principal_type string 3+
  token_requester_principal_name string 3+
  issue_timestamp_ms int64
  expiry_timestamp_ms int64
  max_timestamp_ms int64
  token_id string
  hmac bytes
  throttle_time_ms int32
"""
