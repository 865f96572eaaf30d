"""What has settings, by the number of the protocol."""

from __future__ import annotations

from enum import IntEnum


class ConfigResourceType(IntEnum):
    """UNKNOWN, which is 0, has none."""

    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32
