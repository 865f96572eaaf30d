"""Who made a change: the audit logs of a cluster's controllers, read beside the metadata log.

Its one rule: only somebody who may read the metadata log itself sees this, because it is shown beside its changes.
"""

from __future__ import annotations

import asyncio
from typing import NamedTuple

from barnabas.client.cluster import Cluster
from barnabas.console.live import Question
from barnabas.console.settings import ClusterEntry
from barnabas.console.visit import Visit
from barnabas.operations.audit_trail import AuditTrail, Who, read_trail
from barnabas.operations.errors import OperationError


class Trails(NamedTuple):
    """What the audit logs have, and why one of them cannot be used."""

    trails: list[AuditTrail]
    problems: list[str]

    def who(self, offset: int, epoch: int) -> Who | None:
        """Return the request that appended this record, or None: the controller itself, or nobody knows."""
        return next((found for each in self.trails if (found := each.who(offset, epoch)) is not None), None)


async def who_of(visit: Visit) -> Trails | None:
    """Return what the audit logs of the visited cluster have, None if it has none here. The cluster only says its id."""
    if not visit.entry.audit_logs:
        return None

    async def ask(cluster: Cluster) -> Trails:
        return await asyncio.to_thread(_read, visit.entry, cluster.state.cluster_id)

    return (await visit.ask(Question("audit logs", ask, 10))).value or Trails([], [])


def _read(entry: ClusterEntry, cluster_id: str | None) -> Trails:
    found, problems = [], []
    for path in entry.audit_logs:
        try:
            trail = read_trail(path, cluster_id)
        except OperationError as error:
            problems.append(f"{path}: {error}")
            continue
        found.append(trail)
        if trail.unreadable:
            problems.append(f"{path}: {trail.unreadable:,} lines cannot be read")
    return Trails(found, problems)
