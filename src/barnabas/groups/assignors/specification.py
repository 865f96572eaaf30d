"""The input and the output of an assignor."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from barnabas.wire import Uuid

Assignment = Mapping[Uuid, Sequence[int]]
"""The partitions of a member by topic, without duplicates."""


class AssignorError(Exception):
    """The assignor cannot find an assignment."""


class MemberSpecification(NamedTuple):
    instance_id: str | None
    topic_ids: Sequence[Uuid]  # subscribed topics that exist
    assignment: Assignment  # its last target assignment
    subscription_size: int  # number of subscribed topics, also of those that do not exist; sizes tables


class GroupSpecification(NamedTuple):
    members: Mapping[str, MemberSpecification]
    is_homogeneous: bool  # all members subscribe to the same topics
    is_assigned: Callable[[Uuid, int], bool]  # whether the last target assigned it to a member
    partition_count: Callable[[Uuid], int | None]  # None: the topic does not exist

    def count(self, topic_id: Uuid) -> int:
        count = self.partition_count(topic_id)
        if count is None:
            raise AssignorError(
                f"Members are subscribed to topic {topic_id} which doesn't exist in the topic metadata."
            )
        return count
