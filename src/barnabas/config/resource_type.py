"""The types of resources that have configs."""

from __future__ import annotations

from enum import IntEnum


class ConfigResourceType(IntEnum):
    """The numbers of the protocol. UNKNOWN (0) is not included."""

    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32
