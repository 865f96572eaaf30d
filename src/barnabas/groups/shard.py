"""The soft state of one partition of `__consumer_offsets`: what the coordinator knows beside the log.

Classic groups as they live, with their timers, and the soft state of consumer, share and streams groups. Lost with the
leadership of the partition, by design.
"""

from __future__ import annotations

from typing import NamedTuple

from barnabas.groups.classic.group import ClassicGroup
from barnabas.groups.classic.settings import ClassicSettings
from barnabas.groups.consumer_group import ConsumerGroup
from barnabas.groups.consumer_soft_state import ConsumerSoftState
from barnabas.groups.image import GroupMetadata, GroupsImage
from barnabas.groups.share.group import ShareGroup
from barnabas.groups.share.soft_state import ShareSoftState
from barnabas.groups.streams.group import StreamsGroup
from barnabas.groups.streams.soft_state import StreamsSoftState
from barnabas.replicated.machines import Machine
from barnabas.replicated.scheduler import Handle


class Timer(NamedTuple):
    """Next wake-up of a classic group."""

    wake_ms: float
    handle: Handle


class Shard:
    """Soft state of one machine."""

    def __init__(self, machine: Machine[GroupsImage], settings: ClassicSettings) -> None:
        self.machine = machine
        self.classic: dict[str, ClassicGroup] = {}  # groups that have members, or had some since the load
        self.timers: dict[str, Timer] = {}  # of classic groups
        self.classic_bytes = 0  # about the memory of the members of `classic`, without assignments
        self._bytes_of: dict[str, int] = {}  # by classic group
        self.consumer = ConsumerSoftState()
        self.share = ShareSoftState()
        self.streams = StreamsSoftState()
        self.expiry: Handle | None = None  # next check for expired offsets
        self._settings = settings

    def group(
        self, image: GroupsImage, group_id: str
    ) -> ClassicGroup | ConsumerGroup | ShareGroup | StreamsGroup | None:
        """Return a group of an image with its soft state, or None."""
        found = image.groups.get(group_id)
        if isinstance(found, GroupMetadata):
            return self.classic.get(group_id) or ClassicGroup(group_id, self._settings, found)
        return found

    def revive(self, group_id: str, stored: GroupMetadata) -> ClassicGroup:
        """Return a classic group that is about to have members, and keep its soft state."""
        group = self.classic.get(group_id)
        if group is None:
            group = self.classic[group_id] = ClassicGroup(group_id, self._settings, stored)
        return group

    def count(self, group: ClassicGroup) -> None:
        """Count the memory of a classic group that may have changed."""
        held_bytes = group.members.held_bytes
        self.classic_bytes += held_bytes - self._bytes_of.get(group.group_id, 0)
        self._bytes_of[group.group_id] = held_bytes

    def forget(self, group_id: str) -> None:
        """Drop the soft state of a group that was deleted or gets another type."""
        self.share.forget(group_id)
        self.streams.forget(group_id)
        self.forget_classic(group_id)

    def forget_classic(self, group_id: str) -> None:
        """Drop the soft state of a classic group that was deleted or gets another type."""
        self.classic_bytes -= self._bytes_of.pop(group_id, 0)
        group = self.classic.pop(group_id, None)
        timer = self.timers.pop(group_id, None)
        if timer is not None:
            timer.handle.cancel()
        if group is not None:
            group.die()
