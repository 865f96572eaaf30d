"""Access: findings about the ACLs, and who may do what."""

from __future__ import annotations

from barnabas.lake.report.charts import counted_bars
from barnabas.lake.report.content import ClusterContent
from barnabas.lake.report.figures import every_row
from barnabas.lake.report.queries import COUNTED, Query, counted_by, top
from barnabas.lake.report.section import Chapter, Section
from barnabas.lake.report.text import counted

# --- findings about ACLs

FINDINGS_BY_KIND = Query("findings_by_kind", ("acl_findings",), COUNTED, counted_by("acl_findings", "finding"))


def acl_findings_chart(cluster: ClusterContent, name: str) -> str:
    return counted_bars(
        cluster,
        name,
        FINDINGS_BY_KIND,
        lambda top, total: f"{counted(total, 'finding')}; most are: {top['name']}",
        "Findings about the ACLs, by kind.",
        "findings",
    )


ACL_FINDINGS = Section(
    "acl_findings",
    question="Which ACLs are too wide, have no effect, are duplicates, or concern resources that do not exist?",
    order="finding in ('wildcard', 'never-denies', 'denied') desc, finding, size(entries) desc, message",
    empty="There are no findings about the ACLs.",
    columns=("finding", "message", "entries", "because"),
    queries=(FINDINGS_BY_KIND,),
    chart=acl_findings_chart,
    figures=(
        every_row(
            "ACL findings",
            "acl_findings",
            good="There are no findings about the ACLs.",
            bad="Entries that are too wide, unused or without effect.",
            source="acl_grants",
        ),
    ),
)


# --- grants

GRANTS_BY_PRINCIPAL = Query(
    "grants_by_principal", ("acl_grants",), COUNTED, top(counted_by("acl_grants", "principal"), "count desc, name")
)


def acl_grants_chart(cluster: ClusterContent, name: str) -> str:
    return counted_bars(
        cluster,
        name,
        GRANTS_BY_PRINCIPAL,
        lambda top, _: f"{top['name']} has entries for {counted(top['count'], 'resource')}, the most",
        "For how many resources each principal has entries.",
        "resources with an entry for the principal",
    )


ACL_GRANTS = Section(
    "acl_grants",
    question="Who may do what, on which resource?",
    order="resource_name = '*' desc, size(allowed) desc, principal, resource_type, resource_name, pattern_type",
    empty="There are no ACLs.",
    columns=("principal", "resource_type", "pattern_type", "resource_name", "allowed", "denied", "hosts", "since"),
    queries=(GRANTS_BY_PRINCIPAL,),
    chart=acl_grants_chart,
)


CHAPTER = Chapter("Access", (ACL_FINDINGS, ACL_GRANTS))
