"""AlterUserScramCredentialsRequest and AlterUserScramCredentialsResponse.

Generated from schema/messages.txt by `make generate`; do not edit.
"""

from __future__ import annotations

from barnabas.wire.message import EMPTY, Message, Struct

__all__ = ["AlterUserScramCredentialsRequest", "AlterUserScramCredentialsResponse"]


class AlterUserScramCredentialsRequest(Message):
    """AlterUserScramCredentials request, API key 51, versions 0, flexible 0+."""

    __slots__ = ("deletions", "upsertions")

    deletions: list[AlterUserScramCredentialsRequest.ScramCredentialDeletion]
    upsertions: list[AlterUserScramCredentialsRequest.ScramCredentialUpsertion]

    def __init__(
        self,
        *,
        deletions: list[AlterUserScramCredentialsRequest.ScramCredentialDeletion] = EMPTY,
        upsertions: list[AlterUserScramCredentialsRequest.ScramCredentialUpsertion] = EMPTY,
    ) -> None:
        self.deletions = [] if deletions is EMPTY else deletions
        self.upsertions = [] if upsertions is EMPTY else upsertions
        self.unknown_tagged_fields = None

    SCHEMA = """
AlterUserScramCredentialsRequest request key=51 versions=0 flexible=0+ listeners=broker,controller
  deletions []ScramCredentialDeletion
    name string
    mechanism int8
  upsertions []ScramCredentialUpsertion
    name string
    mechanism int8
    iterations int32
    salt bytes
    salted_password bytes
"""

    class ScramCredentialDeletion(Struct):
        __slots__ = ("name", "mechanism")

        name: str
        mechanism: int

        def __init__(
            self,
            *,
            name: str = "",
            mechanism: int = 0,
        ) -> None:
            self.name = name
            self.mechanism = mechanism
            self.unknown_tagged_fields = None

    class ScramCredentialUpsertion(Struct):
        __slots__ = ("name", "mechanism", "iterations", "salt", "salted_password")

        name: str
        mechanism: int
        iterations: int
        salt: bytes
        salted_password: bytes

        def __init__(
            self,
            *,
            name: str = "",
            mechanism: int = 0,
            iterations: int = 0,
            salt: bytes = b"",
            salted_password: bytes = b"",
        ) -> None:
            self.name = name
            self.mechanism = mechanism
            self.iterations = iterations
            self.salt = salt
            self.salted_password = salted_password
            self.unknown_tagged_fields = None


class AlterUserScramCredentialsResponse(Message):
    """AlterUserScramCredentials response, API key 51, versions 0, flexible 0+."""

    __slots__ = ("throttle_time_ms", "results")

    throttle_time_ms: int
    results: list[AlterUserScramCredentialsResponse.AlterUserScramCredentialsResult]

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        results: list[AlterUserScramCredentialsResponse.AlterUserScramCredentialsResult] = EMPTY,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.results = [] if results is EMPTY else results
        self.unknown_tagged_fields = None

    SCHEMA = """
AlterUserScramCredentialsResponse response key=51 versions=0 flexible=0+
  throttle_time_ms int32
  results []AlterUserScramCredentialsResult
    user string
    error_code int16
    error_message string nullable
"""

    class AlterUserScramCredentialsResult(Struct):
        __slots__ = ("user", "error_code", "error_message")

        user: str
        error_code: int
        error_message: str | None

        def __init__(
            self,
            *,
            user: str = "",
            error_code: int = 0,
            error_message: str | None = "",
        ) -> None:
            self.user = user
            self.error_code = error_code
            self.error_message = error_message
            self.unknown_tagged_fields = None
