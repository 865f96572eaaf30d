"""The input of the controller's decisions. A decision has no clock, randomness or state of its own.

Its one rule: a decision changes nothing; its changes are in its Result, and the caller applies them. There are two
exceptions: a decision draws from `random`, and as its last step it updates `heartbeats`, which are lost with
leadership.
"""

from __future__ import annotations

from random import Random
from typing import NamedTuple

from barnabas.config.server_config import ServerConfig
from barnabas.controller.heartbeats import NO_HEARTBEATS, Heartbeats
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.versions import MetadataVersion
from barnabas.wire import ErrorCode, KafkaError, Uuid, random_uuid


class Situation(NamedTuple):
    """The head image, the node's configuration, the time, a source of randomness, and soft state outside the log."""

    image: MetadataImage
    config: ServerConfig
    now_ms: int
    random: Random
    heartbeats: Heartbeats = NO_HEARTBEATS
    monotonic_ms: int = 0
    """Monotonic time in milliseconds, used for session timeouts."""
    cluster_id: str = ""
    kraft_version: int = 0
    end_offset: int | None = None
    """The end offset of the log, if known. Raft's control records are in the log but not in the image."""

    @property
    def next_offset(self) -> int:
        """The offset of the first record of this decision."""
        return self.image.offset + 1 if self.end_offset is None else self.end_offset

    @property
    def metadata_version(self) -> MetadataVersion:
        """The finalized level. Raises KafkaError before the first records have set it."""
        version = self.image.metadata_version
        if version is None:
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "metadata.version is not set yet")
        return version

    def new_uuid(self) -> Uuid:
        return random_uuid(self.random)
