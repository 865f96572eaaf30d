"""DescribeDelegationTokenRequest and DescribeDelegationTokenResponse.

Generated from schema/messages.txt by `make generate`; do not edit.
"""

from __future__ import annotations

from barnabas.wire.message import EMPTY, Message, Struct

__all__ = ["DescribeDelegationTokenRequest", "DescribeDelegationTokenResponse"]


class DescribeDelegationTokenRequest(Message):
    """DescribeDelegationToken request, API key 41, versions 0-3, flexible 2+."""

    __slots__ = ("owners",)

    owners: list[DescribeDelegationTokenRequest.DescribeDelegationTokenOwner] | None

    def __init__(
        self,
        *,
        owners: list[DescribeDelegationTokenRequest.DescribeDelegationTokenOwner] | None = EMPTY,
    ) -> None:
        self.owners = [] if owners is EMPTY else owners
        self.unknown_tagged_fields = None

    SCHEMA = """
DescribeDelegationTokenRequest request key=41 versions=0-3 kafka=1-3 flexible=2+ listeners=broker,controller
  owners []DescribeDelegationTokenOwner nullable
    principal_type string
    principal_name string
"""

    class DescribeDelegationTokenOwner(Struct):
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


class DescribeDelegationTokenResponse(Message):
    """DescribeDelegationToken response, API key 41, versions 0-3, flexible 2+."""

    __slots__ = ("error_code", "tokens", "throttle_time_ms")

    error_code: int
    tokens: list[DescribeDelegationTokenResponse.DescribedDelegationToken]
    throttle_time_ms: int

    def __init__(
        self,
        *,
        error_code: int = 0,
        tokens: list[DescribeDelegationTokenResponse.DescribedDelegationToken] = EMPTY,
        throttle_time_ms: int = 0,
    ) -> None:
        self.error_code = error_code
        self.tokens = [] if tokens is EMPTY else tokens
        self.throttle_time_ms = throttle_time_ms
        self.unknown_tagged_fields = None

    SCHEMA = """
DescribeDelegationTokenResponse response key=41 versions=0-3 kafka=1-3 flexible=2+
  error_code int16
  tokens []DescribedDelegationToken
    principal_type string
    principal_name string
    token_requester_principal_type string 3+
    token_requester_principal_name string 3+
    issue_timestamp int64
    expiry_timestamp int64
    max_timestamp int64
    token_id string
    hmac bytes
    renewers []DescribedDelegationTokenRenewer
      principal_type string
      principal_name string
  throttle_time_ms int32
"""

    class DescribedDelegationTokenRenewer(Struct):
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

    class DescribedDelegationToken(Struct):
        __slots__ = ("principal_type", "principal_name", "token_requester_principal_type", "token_requester_principal_name", "issue_timestamp", "expiry_timestamp", "max_timestamp", "token_id", "hmac", "renewers")

        principal_type: str
        principal_name: str
        token_requester_principal_type: str
        token_requester_principal_name: str
        issue_timestamp: int
        expiry_timestamp: int
        max_timestamp: int
        token_id: str
        hmac: bytes
        renewers: list[DescribeDelegationTokenResponse.DescribedDelegationTokenRenewer]

        def __init__(
            self,
            *,
            principal_type: str = "",
            principal_name: str = "",
            token_requester_principal_type: str = "",
            token_requester_principal_name: str = "",
            issue_timestamp: int = 0,
            expiry_timestamp: int = 0,
            max_timestamp: int = 0,
            token_id: str = "",
            hmac: bytes = b"",
            renewers: list[DescribeDelegationTokenResponse.DescribedDelegationTokenRenewer] = EMPTY,
        ) -> None:
            self.principal_type = principal_type
            self.principal_name = principal_name
            self.token_requester_principal_type = token_requester_principal_type
            self.token_requester_principal_name = token_requester_principal_name
            self.issue_timestamp = issue_timestamp
            self.expiry_timestamp = expiry_timestamp
            self.max_timestamp = max_timestamp
            self.token_id = token_id
            self.hmac = hmac
            self.renewers = [] if renewers is EMPTY else renewers
            self.unknown_tagged_fields = None
