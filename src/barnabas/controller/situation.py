"""What a decision may look at. It is all a decision may look at: no clock, no randomness, no state of its own."""

from __future__ import annotations

from random import Random
from typing import NamedTuple

from barnabas.config.server_config import ServerConfig
from barnabas.metadata.image import MetadataImage
from barnabas.wire import Uuid


class Situation(NamedTuple):
    """The head image, the node's settings, the time and a source of chance."""

    image: MetadataImage
    config: ServerConfig
    now_ms: int
    random: Random

    def new_uuid(self) -> Uuid:
        """Kafka's random ids have the bits of a version 4 uuid, and never begin with a dash when shown."""
        while True:
            value = bytearray(self.random.randbytes(16))
            value[6] = value[6] & 0x0F | 0x40
            value[8] = value[8] & 0x3F | 0x80
            found = Uuid(bytes(value))
            if not str(found).startswith("-"):
                return found
