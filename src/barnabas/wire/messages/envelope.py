"""EnvelopeRequest and EnvelopeResponse.

Generated from schema/messages.txt by `make generate`; do not edit.
"""

from __future__ import annotations

from barnabas.wire.message import Message

__all__ = ["EnvelopeRequest", "EnvelopeResponse"]


class EnvelopeRequest(Message):
    """Envelope request, API key 58, versions 0, flexible 0+."""

    __slots__ = ("request_data", "request_principal", "client_host_address")

    request_data: bytes
    request_principal: bytes | None
    client_host_address: bytes

    def __init__(
        self,
        *,
        request_data: bytes = b"",
        request_principal: bytes | None = b"",
        client_host_address: bytes = b"",
    ) -> None:
        self.request_data = request_data
        self.request_principal = request_principal
        self.client_host_address = client_host_address
        self.unknown_tagged_fields = None

    SCHEMA = """
EnvelopeRequest request key=58 versions=0 flexible=0+ listeners=controller
  request_data bytes
  request_principal bytes nullable
  client_host_address bytes
"""


class EnvelopeResponse(Message):
    """Envelope response, API key 58, versions 0, flexible 0+."""

    __slots__ = ("response_data", "error_code")

    response_data: bytes | None
    error_code: int

    def __init__(
        self,
        *,
        response_data: bytes | None = None,
        error_code: int = 0,
    ) -> None:
        self.response_data = response_data
        self.error_code = error_code
        self.unknown_tagged_fields = None

    SCHEMA = """
EnvelopeResponse response key=58 versions=0 flexible=0+
  response_data bytes nullable default=null
  error_code int16
"""
