"""Deletion of groups of any type, checked first."""

from __future__ import annotations

from collections.abc import Sequence

from barnabas.client.admin.groups import Groups
from barnabas.client.admin.share_groups import ShareGroups
from barnabas.client.cluster import Cluster
from barnabas.client.records import TopicPartition
from barnabas.operations.groups import any_type
from barnabas.operations.proposal import Proposal
from barnabas.wire.errors import ErrorCode, KafkaError


async def propose_group_deletion(cluster: Cluster, group_ids: Sequence[str]) -> Proposal[str, KafkaError | None]:
    """Propose to delete groups with all their offsets. `expected` has the errors of those that cannot be deleted."""
    groups = Groups(cluster)
    described = await any_type.describe(cluster, group_ids, await any_type.types_of(cluster, group_ids))
    expected = {
        group_id: found
        if isinstance(found, KafkaError)
        else (KafkaError(ErrorCode.NON_EMPTY_GROUP) if found.members else None)
        for group_id, found in described.items()
    }

    async def carry_out() -> dict[str, KafkaError | None]:
        return await groups.delete_groups(group_ids)

    can_delete = any(error is None for error in expected.values())
    return Proposal(
        expected,
        tuple(f"delete group {group_id} and its offsets" for group_id in group_ids) if can_delete else (),
        question=f"Delete {', '.join(group_ids)}?",
        carry_out=carry_out if can_delete else None,
    )


async def delete_offsets(
    cluster: Cluster, group_id: str, partitions: Sequence[TopicPartition], type: str | None
) -> dict[TopicPartition, KafkaError | None]:
    """Delete the offsets of a group in partitions; those of a share group in all partitions of their topics."""
    if type != any_type.SHARE_TYPE:
        return await Groups(cluster).delete_consumer_group_offsets(group_id, partitions)
    topics = await ShareGroups(cluster).delete_share_group_offsets(group_id, [each.topic for each in partitions])
    return {each: topics.get(each.topic) for each in partitions}
