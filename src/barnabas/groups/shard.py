"""What one machine of the group coordinator knows beside its log: classic groups as they live, and their timers.

Lost with the leadership of its partition, by design. Consumer groups keep theirs in `consumer`, which is their own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from barnabas.groups.classic.group import ClassicGroup
from barnabas.groups.classic.settings import ClassicSettings
from barnabas.groups.image import GroupMetadata, GroupsImage
from barnabas.replicated.machines import Machine
from barnabas.replicated.scheduler import Handle

if TYPE_CHECKING:
    from barnabas.groups.consumer_group import ConsumerGroup


class Timer(NamedTuple):
    """When a group is looked at next."""

    wake_ms: float
    handle: Handle


class Shard:
    """Soft state of one machine."""

    def __init__(self, machine: Machine[GroupsImage], settings: ClassicSettings) -> None:
        self.machine = machine
        self.classic: dict[str, ClassicGroup] = {}  # those with members, and those that had some since the load
        self.timers: dict[str, Timer] = {}
        self.expiry: Handle | None = None
        self.consumer: Any = None
        self._settings = settings

    def group(self, image: GroupsImage, group_id: str) -> ClassicGroup | ConsumerGroup | None:
        """A group that an image has, as it lives."""
        found = image.groups.get(group_id)
        if isinstance(found, GroupMetadata):
            return self.classic.get(group_id) or ClassicGroup(group_id, self._settings, found)
        return found

    def revive(self, group_id: str, stored: GroupMetadata) -> ClassicGroup:
        """A classic group that is about to have members."""
        group = self.classic.get(group_id)
        if group is None:
            group = self.classic[group_id] = ClassicGroup(group_id, self._settings, stored)
        return group

    def forget(self, group_id: str) -> None:
        """The classic group is deleted, or is becoming a consumer group."""
        group = self.classic.pop(group_id, None)
        timer = self.timers.pop(group_id, None)
        if timer is not None:
            timer.handle.cancel()
        if group is not None:
            group.die()
