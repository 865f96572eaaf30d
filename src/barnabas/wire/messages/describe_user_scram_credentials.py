"""DescribeUserScramCredentialsRequest and DescribeUserScramCredentialsResponse.

Generated from schema/messages.txt by `make generate`; do not edit.
"""

from __future__ import annotations

from barnabas.wire.message import EMPTY, Message, Struct

__all__ = ["DescribeUserScramCredentialsRequest", "DescribeUserScramCredentialsResponse"]


class DescribeUserScramCredentialsRequest(Message):
    """DescribeUserScramCredentials request, API key 50, versions 0, flexible 0+."""

    __slots__ = ("users",)

    users: list[DescribeUserScramCredentialsRequest.UserName] | None

    def __init__(
        self,
        *,
        users: list[DescribeUserScramCredentialsRequest.UserName] | None = EMPTY,
    ) -> None:
        self.users = [] if users is EMPTY else users
        self.unknown_tagged_fields = None

    SCHEMA = """
DescribeUserScramCredentialsRequest request key=50 versions=0 flexible=0+ listeners=broker,controller
  users []UserName nullable
    name string
"""

    class UserName(Struct):
        __slots__ = ("name",)

        name: str

        def __init__(
            self,
            *,
            name: str = "",
        ) -> None:
            self.name = name
            self.unknown_tagged_fields = None


class DescribeUserScramCredentialsResponse(Message):
    """DescribeUserScramCredentials response, API key 50, versions 0, flexible 0+."""

    __slots__ = ("throttle_time_ms", "error_code", "error_message", "results")

    throttle_time_ms: int
    error_code: int
    error_message: str | None
    results: list[DescribeUserScramCredentialsResponse.DescribeUserScramCredentialsResult]

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = "",
        results: list[DescribeUserScramCredentialsResponse.DescribeUserScramCredentialsResult] = EMPTY,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message
        self.results = [] if results is EMPTY else results
        self.unknown_tagged_fields = None

    SCHEMA = """
DescribeUserScramCredentialsResponse response key=50 versions=0 flexible=0+
  throttle_time_ms int32
  error_code int16
  error_message string nullable
  results []DescribeUserScramCredentialsResult
    user string
    error_code int16
    error_message string nullable
    credential_infos []CredentialInfo
      mechanism int8
      iterations int32
"""

    class CredentialInfo(Struct):
        __slots__ = ("mechanism", "iterations")

        mechanism: int
        iterations: int

        def __init__(
            self,
            *,
            mechanism: int = 0,
            iterations: int = 0,
        ) -> None:
            self.mechanism = mechanism
            self.iterations = iterations
            self.unknown_tagged_fields = None

    class DescribeUserScramCredentialsResult(Struct):
        __slots__ = ("user", "error_code", "error_message", "credential_infos")

        user: str
        error_code: int
        error_message: str | None
        credential_infos: list[DescribeUserScramCredentialsResponse.CredentialInfo]

        def __init__(
            self,
            *,
            user: str = "",
            error_code: int = 0,
            error_message: str | None = "",
            credential_infos: list[DescribeUserScramCredentialsResponse.CredentialInfo] = EMPTY,
        ) -> None:
            self.user = user
            self.error_code = error_code
            self.error_message = error_message
            self.credential_infos = [] if credential_infos is EMPTY else credential_infos
            self.unknown_tagged_fields = None
