"""The properties of an API without its messages: names, versions, listeners, and header versions."""

from __future__ import annotations

from typing import NamedTuple

from barnabas.wire.schema import Versions


class Api(NamedTuple):
    """One row of the protocol's table of APIs."""

    name: str
    versions: Versions  # versions that this project can encode and decode
    kafka: Versions  # versions that Apache Kafka 4.3 serves
    flexible_from: int | None
    listeners: tuple[str, ...]
    latest_unstable: bool

    @property
    def request(self) -> str:
        return f"{self.name}Request"

    @property
    def response(self) -> str:
        return f"{self.name}Response"

    def is_flexible(self, version: int) -> bool:
        return self.flexible_from is not None and version >= self.flexible_from

    def request_header_version(self, version: int) -> int:
        return 2 if self.is_flexible(version) else 1

    def response_header_version(self, version: int) -> int:
        """Return the header version.

        For ApiVersions it is always 0, so that a client can read it before it knows the versions.
        """
        return 1 if self.is_flexible(version) and self.name != "ApiVersions" else 0
