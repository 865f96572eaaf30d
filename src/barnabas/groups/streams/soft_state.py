"""The soft state of the streams groups of one partition. Lost with the leadership of the partition."""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.groups.consumer_soft_state import MemberTimers

if TYPE_CHECKING:
    from barnabas.groups.streams.heartbeat import SoftGroup
    from barnabas.metadata.topics import Topics


class StreamsSoftState(MemberTimers):
    """Timers of members and groups, and what the records of groups do not have."""

    def __init__(self) -> None:
        super().__init__()
        self.groups: dict[str, SoftGroup] = {}
        self.checked: dict[str, tuple[Topics, int]] = {}  # by group: topics its hash was compared with, group epoch

    def forget(self, group_id: str) -> None:
        """Forget a group that is no streams group any more."""
        super().forget(group_id)
        self.groups.pop(group_id, None)
        self.checked.pop(group_id, None)
