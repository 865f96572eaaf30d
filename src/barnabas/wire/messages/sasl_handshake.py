"""SaslHandshakeRequest and SaslHandshakeResponse.

Generated from schema/messages.txt by `make generate`; do not edit.
"""

from __future__ import annotations

from barnabas.wire.message import EMPTY, Message

__all__ = ["SaslHandshakeRequest", "SaslHandshakeResponse"]


class SaslHandshakeRequest(Message):
    """SaslHandshake request, API key 17, versions 0-1, flexible none."""

    __slots__ = ("mechanism",)

    mechanism: str

    def __init__(
        self,
        *,
        mechanism: str = "",
    ) -> None:
        self.mechanism = mechanism
        self.unknown_tagged_fields = None

    SCHEMA = """
SaslHandshakeRequest request key=17 versions=0-1 flexible=none listeners=broker,controller
  mechanism string
"""


class SaslHandshakeResponse(Message):
    """SaslHandshake response, API key 17, versions 0-1, flexible none."""

    __slots__ = ("error_code", "mechanisms")

    error_code: int
    mechanisms: list[str]

    def __init__(
        self,
        *,
        error_code: int = 0,
        mechanisms: list[str] = EMPTY,
    ) -> None:
        self.error_code = error_code
        self.mechanisms = [] if mechanisms is EMPTY else mechanisms
        self.unknown_tagged_fields = None

    SCHEMA = """
SaslHandshakeResponse response key=17 versions=0-1 flexible=none
  error_code int16
  mechanisms []string
"""
