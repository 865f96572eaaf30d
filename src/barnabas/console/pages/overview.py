"""Overview: what is wrong with a cluster and what to do about it, and its size in numbers."""

from __future__ import annotations

from collections import Counter

from starlette.responses import Response

from barnabas.client.cluster import Cluster
from barnabas.console.formats import query, segment
from barnabas.console.live import Question
from barnabas.console.visit import Visit
from barnabas.operations.cluster_overview import ClusterOverview, look_at_overview

_PAGES = {
    "acls": "/access?tab=audit",
    "groups": "/groups",
    "transactions": "/transactions",
    "partitions": "/topics",
    "replication": "/topics",
    "topic-settings": "/topics",
    "leaders": "/brokers",
    "skew": "/brokers",
    "reassignments": "/reassignments",
    "quorum": "/quorum",
    "disks": "/brokers",
    "reachable": "/brokers",
    "releases": "/brokers",
    "features": "/brokers",
    "config-drift": "/brokers",
}
"""Where to see more about the findings of a check."""


def page_of_finding(check: str, subject: str) -> str | None:
    """Return the address, below that of the cluster, of the page about what was found.

    >>> page_of_finding("groups", "group a b"), page_of_finding("brokers", "broker 3"), page_of_finding("clock", "quorum")
    ('/group?id=a+b', '/brokers/3', None)
    """
    kind, _, name = subject.partition(" ")
    if kind == "group" and name:
        return f"/group{query(id=name)}"
    if kind == "topic" and name:
        return f"/topics/{segment(name)}"
    if kind == "broker" and name.isdecimal():
        return f"/brokers/{name}"
    return _PAGES.get(check)


async def overview(visit: Visit) -> Response:
    entry = visit.entry

    async def ask(cluster: Cluster) -> ClusterOverview:
        return await look_at_overview(cluster, entry.name, entry.declared)

    answer = await visit.ask(Question("overview", ask, every_s=15))
    found = answer.value
    kinds = Counter() if found is None else Counter(each.severity.value for each in found.findings)
    return visit.page(
        "overview.html", "Overview", {"found": found, "kinds": kinds, "page_of": page_of_finding}, nav="overview"
    )


PAGES = {"": overview}
