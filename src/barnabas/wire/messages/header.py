"""RequestHeader and ResponseHeader.

Generated from schema/messages.txt by `make generate`; do not edit.
"""

from __future__ import annotations

from barnabas.wire.message import Message

__all__ = ["RequestHeader", "ResponseHeader"]


class RequestHeader(Message):
    """Header, versions 0-2, flexible 2+."""

    __slots__ = ("request_api_key", "request_api_version", "correlation_id", "client_id")

    request_api_key: int
    request_api_version: int
    correlation_id: int
    client_id: str | None

    def __init__(
        self,
        *,
        request_api_key: int = 0,
        request_api_version: int = 0,
        correlation_id: int = 0,
        client_id: str | None = "",
    ) -> None:
        self.request_api_key = request_api_key
        self.request_api_version = request_api_version
        self.correlation_id = correlation_id
        self.client_id = client_id
        self.unknown_tagged_fields = None

    SCHEMA = """
RequestHeader header versions=0-2 kafka=1-2 flexible=2+
  request_api_key int16
  request_api_version int16
  correlation_id int32
  client_id string 1+ nullable flexible=none
"""


class ResponseHeader(Message):
    """Header, versions 0-1, flexible 1+."""

    __slots__ = ("correlation_id",)

    correlation_id: int

    def __init__(
        self,
        *,
        correlation_id: int = 0,
    ) -> None:
        self.correlation_id = correlation_id
        self.unknown_tagged_fields = None

    SCHEMA = """
ResponseHeader header versions=0-1 flexible=1+
  correlation_id int32
"""
