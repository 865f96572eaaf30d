"""Overview: what is wrong with a cluster and what to do about it, and its size in numbers."""

from __future__ import annotations

from collections import Counter

from starlette.responses import Response

from barnabas.client.cluster import Cluster
from barnabas.console.live import Question
from barnabas.console.visit import Visit
from barnabas.operations.cluster_overview import ClusterOverview, look_at_overview


async def overview(visit: Visit) -> Response:
    entry = visit.entry

    async def ask(cluster: Cluster) -> ClusterOverview:
        return await look_at_overview(cluster, entry.name, entry.declared)

    answer = await visit.ask(Question("overview", ask, every_s=15))
    found = answer.value
    kinds = Counter() if found is None else Counter(each.severity.value for each in found.findings)
    return visit.page("overview.html", "Overview", {"found": found, "kinds": kinds}, nav="overview")


PAGES = {"": overview}
