"""All reassignments in progress, with the progress of each."""

from __future__ import annotations

from typing import NamedTuple

from barnabas.client.admin.reassignments import Reassignments
from barnabas.client.cluster import Cluster
from barnabas.operations.partitions import Key
from barnabas.operations.reassignments.execution import measure
from barnabas.operations.reassignments.progress import Look, Progress, progress_of, sum_of


class Moving(NamedTuple):
    """A measurement, and the progress since the one before it."""

    look: Look
    progress: dict[Key, Progress]

    @property
    def total(self) -> Progress:
        return sum_of(list(self.progress.values()))


async def look_at_reassignments(cluster: Cluster) -> Moving:
    """Measure all reassignments in progress."""
    look = await measure(cluster, await Reassignments(cluster).list_partition_reassignments())
    return with_rates(None, Moving(look, {}))


def with_rates(before: Moving | None, now: Moving) -> Moving:
    """Compute progress and rates since an earlier measurement. Pure."""
    earlier = None if before is None else before.look
    return now._replace(progress={key: progress_of(key, now.look, earlier) for key in now.look.reassignments})
