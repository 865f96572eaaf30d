"""All groups of a cluster with their members, and the lag of those that commit offsets.

Its one rule: groups of every type are listed. What cannot be described, because the broker refuses it or this client does not
know the type, is shown with what the list has.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from barnabas.operations.groups.lag import PartitionPosition
from barnabas.operations.groups.trend import LagHistory, LagTrend, sum_of_trends
from barnabas.wire.errors import KafkaError, UnsupportedVersionError

if TYPE_CHECKING:
    from barnabas.client.admin.groups import GroupDescription, GroupListing
    from barnabas.client.cluster import Cluster

MAX_DESCRIBED = 500
_MAX_WITH_TIME = 100


class GroupSummary(NamedTuple):
    """A group. Lag is None if it is not known or the group commits no offsets."""

    listing: GroupListing
    description: GroupDescription | None
    positions: list[PartitionPosition]
    problem: str | None = None

    @property
    def members(self) -> int | None:
        return None if self.description is None else len(self.description.members)

    @property
    def lag(self) -> int | None:
        known = [each.lag for each in self.positions if each.lag is not None]
        return sum(known) if known else None

    @property
    def lag_ms(self) -> int | None:
        """The age of the oldest unread record. It is not known if it can only be in partitions where it is not known."""
        found = max((each.lag_ms for each in self.positions if each.lag_ms is not None), default=None)
        is_hidden = not found and any(each.lag and each.lag_ms is None for each in self.positions)
        return None if is_hidden else found

    @property
    def topics(self) -> list[str]:
        return sorted({each.topic for each in self.positions})


class GroupSummaries(NamedTuple):
    """The groups by id, and the history of their lag."""

    groups: dict[str, GroupSummary]
    at_ms: int
    history: LagHistory[tuple[str, str, int]]

    def trend(self, group_id: str) -> LagTrend | None:
        rows = self.groups[group_id].positions
        trends = [self.history.trend((group_id, each.topic, each.partition)) for each in rows]
        return sum_of_trends([each.lag for each in rows], trends)


async def look_at_groups(cluster: Cluster, wanted: Iterable[str] | None = None) -> GroupSummaries:
    """Look at these groups, or at all; lag in time is left out if there are many. Raises OperationError for one unknown."""
    from barnabas.client.admin.groups import Groups
    from barnabas.operations.groups import any_type

    listed = {each.group_id: each for each in await Groups(cluster).list_groups()}
    if wanted is not None:
        listed = {group_id: listed[group_id] for group_id in wanted if group_id in listed}
    ids = sorted(each.group_id for each in listed.values() if any_type.commits_offsets(each))[:MAX_DESCRIBED]
    types = {group_id: listed[group_id].type for group_id in ids}
    described: dict[str, GroupDescription] = {}
    problems: dict[str, str] = {}
    try:
        for group_id, found in (await any_type.describe(cluster, ids, types)).items():
            if isinstance(found, KafkaError):
                problems[group_id] = f"{found.code.name}: {found.message}"
            else:
                described[group_id] = found
    except UnsupportedVersionError as error:
        problems |= dict.fromkeys(ids, str(error))
    offsets = {
        group_id: found
        for group_id, found in (await any_type.offsets_of(cluster, list(described), types)).items()
        if not isinstance(found, KafkaError)
    }
    at_ms = time.time_ns() // 1_000_000
    now_ms = at_ms if len(offsets) <= _MAX_WITH_TIME else None
    rows = await any_type.positions_of(cluster, described, offsets, now_ms=now_ms)
    groups = {
        group_id: GroupSummary(listing, described.get(group_id), rows.get(group_id, []), problems.get(group_id))
        for group_id, listing in sorted(listed.items())
    }
    history: LagHistory[tuple[str, str, int]] = LagHistory()
    return with_history(None, GroupSummaries(groups, at_ms, history))


def with_history(before: GroupSummaries | None, now: GroupSummaries) -> GroupSummaries:
    """Continue the history of an earlier look."""
    history = now.history if before is None else before.history
    lags = {
        (group_id, each.topic, each.partition): each.lag
        for group_id, group in now.groups.items()
        for each in group.positions
    }
    if before is None or before.at_ms < now.at_ms:
        history.add(now.at_ms, lags)
    return now._replace(history=history)
