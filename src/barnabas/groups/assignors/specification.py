"""What an assignor is given, and what it gives."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from barnabas.wire import Uuid

Assignment = Mapping[Uuid, Sequence[int]]
"""The partitions of a member by topic; each once."""


class AssignorError(Exception):
    """There is no assignment."""


class MemberSpecification(NamedTuple):
    instance_id: str | None
    topic_ids: Sequence[Uuid]  # of what it is subscribed to and is there
    assignment: Assignment  # what it was to have before
    subscription_size: int  # of all that it is subscribed to, also of what is not there; tables are made for so many


class GroupSpecification(NamedTuple):
    members: Mapping[str, MemberSpecification]
    is_homogeneous: bool  # all members are subscribed to the same
    is_assigned: Callable[[Uuid, int], bool]  # whether it was any member's before
    partition_count: Callable[[Uuid], int | None]  # None: no such topic

    def count(self, topic_id: Uuid) -> int:
        count = self.partition_count(topic_id)
        if count is None:
            raise AssignorError(
                f"Members are subscribed to topic {topic_id} which doesn't exist in the topic metadata."
            )
        return count
