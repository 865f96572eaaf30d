"""SaslAuthenticateRequest and SaslAuthenticateResponse.

Generated from schema/messages.txt by `make generate`; do not edit.
"""

from __future__ import annotations

from barnabas.wire.message import Message

__all__ = ["SaslAuthenticateRequest", "SaslAuthenticateResponse"]


class SaslAuthenticateRequest(Message):
    """SaslAuthenticate request, API key 36, versions 0-2, flexible 2+."""

    __slots__ = ("auth_bytes",)

    auth_bytes: bytes

    def __init__(
        self,
        *,
        auth_bytes: bytes = b"",
    ) -> None:
        self.auth_bytes = auth_bytes
        self.unknown_tagged_fields = None

    SCHEMA = """
SaslAuthenticateRequest request key=36 versions=0-2 flexible=2+ listeners=broker,controller
  auth_bytes bytes
"""


class SaslAuthenticateResponse(Message):
    """SaslAuthenticate response, API key 36, versions 0-2, flexible 2+."""

    __slots__ = ("error_code", "error_message", "auth_bytes", "session_lifetime_ms")

    error_code: int
    error_message: str | None
    auth_bytes: bytes
    session_lifetime_ms: int

    def __init__(
        self,
        *,
        error_code: int = 0,
        error_message: str | None = "",
        auth_bytes: bytes = b"",
        session_lifetime_ms: int = 0,
    ) -> None:
        self.error_code = error_code
        self.error_message = error_message
        self.auth_bytes = auth_bytes
        self.session_lifetime_ms = session_lifetime_ms
        self.unknown_tagged_fields = None

    SCHEMA = """
SaslAuthenticateResponse response key=36 versions=0-2 flexible=2+
  error_code int16
  error_message string nullable
  auth_bytes bytes
  session_lifetime_ms int64 1+ ignorable
"""
