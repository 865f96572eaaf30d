"""DefaultPrincipalData.

Generated from schema/messages.txt by `make generate`; do not edit.
"""

from __future__ import annotations

from barnabas.wire.message import Message

__all__ = ["DefaultPrincipalData"]


class DefaultPrincipalData(Message):
    """Data, versions 0, flexible 0+."""

    __slots__ = ("type", "name", "token_authenticated")

    type: str
    name: str
    token_authenticated: bool

    def __init__(
        self,
        *,
        type: str = "",
        name: str = "",
        token_authenticated: bool = False,
    ) -> None:
        self.type = type
        self.name = name
        self.token_authenticated = token_authenticated
        self.unknown_tagged_fields = None

    SCHEMA = """
DefaultPrincipalData data versions=0 flexible=0+
  type string
  name string
  token_authenticated bool
"""
