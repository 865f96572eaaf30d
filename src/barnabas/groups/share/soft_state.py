"""The soft state of the share groups of one partition. Lost with the leadership of the partition."""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.groups.consumer_soft_state import MemberTimers

if TYPE_CHECKING:
    from barnabas.groups.share.group import ShareGroup
    from barnabas.metadata.topics import Topics


class ShareSoftState(MemberTimers):
    """Timers of members, and what was found out about groups that need not be found out again."""

    def __init__(self) -> None:
        super().__init__()
        self.checked: dict[str, tuple[Topics, int]] = {}  # by group: topics its hash was compared with, group epoch
        self.settled: dict[str, tuple[Topics, ShareGroup]] = {}
        self.initialized_ms: dict[str, int] = {}  # when the share partitions of a group were last written
        self.loaded_ms = 0

    def is_settled(self, group: ShareGroup, topics: Topics) -> bool:
        """Return whether a heartbeat has found nothing to initialize or to assign, and nothing has changed since."""
        known_topics, known = self.settled.get(group.group_id, (None, None))
        return (
            known is not None
            and known_topics is topics
            and known.target_assignment is group.target_assignment
            and known.state_partitions is group.state_partitions
            and known.subscriptions is group.subscriptions
            and known.group_epoch == group.group_epoch
        )

    def forget(self, group_id: str) -> None:
        """Forget a group that is no share group any more."""
        super().forget(group_id)
        for known in (self.checked, self.settled, self.initialized_ms):
            known.pop(group_id, None)
