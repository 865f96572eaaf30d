"""`barnabas lake audit`: suspicious ACLs, and who has or had access to what."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import click

from barnabas.cli.connection.options import output_options
from barnabas.cli.lake.asked import AS_OF, CLUSTER, checked_cluster, only, places_of, show_of
from barnabas.cli.lake.session import CONF, LAKE, answering, lake_failures, show
from barnabas.cli.terminal.command_groups import CommandGroup
from barnabas.cli.terminal.output import Output, note
from barnabas.cli.terminal.parsing import parsed_by
from barnabas.metadata.as_of import AsOf
from barnabas.security.acl import WILDCARD_PRINCIPAL, ResourceType
from barnabas.security.acl_text import parse_principal_text, parse_resource

if TYPE_CHECKING:
    from barnabas.lake.asking.selection import Found
    from barnabas.lake.keeping.folders import Folder


@click.group("audit", cls=CommandGroup)
def audit() -> None:
    """Audit ACLs, and show who has access to what."""


@audit.command("acls", short_help="Find ACLs without effect, redundant, too wide or unused.")
@LAKE
@AS_OF
@CLUSTER
@CONF
@output_options
def audit_acls(directory: Folder, moment: AsOf, cluster_id: str | None, conf: tuple[str, ...], output: Output) -> None:
    """Find ACLs that allow too much, have no effect, are redundant, name a missing resource, or are never used.

    Findings are those of `barnabas acls audit`, and `no-trace-of-use`: the ACL allows writing to or reading from a topic, or
    joining a group, but the logs show no use. This needs the records of topics in the lake (lake run --traffic).
    """
    with lake_failures(directory), answering(directory, conf, ("acl_findings",), moment) as answers:
        from barnabas.lake.asking.selection import Selection

        selection = Selection("acl_findings", order=("cluster_id", "finding", "message", "entries"))
        show_of(answers, selection, moment, cluster_id, output, ("finding", "entries", "message", "because"))


@audit.command("access")
@LAKE
@click.option(
    "--principal",
    metavar="User:NAME",
    callback=parsed_by(parse_principal_text),
    help="Only access of this principal, including what User:* may do.",
)
@click.option(
    "--resource",
    metavar="TYPE:NAME",
    callback=parsed_by(parse_resource),
    help="Only access to this resource, such as topic:orders.",
)
@AS_OF
@CLUSTER
@CONF
@output_options
def audit_access(
    directory: Folder,
    principal: str | None,
    resource: tuple[ResourceType, str] | None,
    moment: AsOf,
    cluster_id: str | None,
    conf: tuple[str, ...],
    output: Output,
) -> None:
    """Show who may do what, after all ACLs that allow and deny.

    A row of User:* applies to every principal without a row of its own for the resource, host * to every host without one.
    Rows with pattern type PREFIXED or the name * apply to names that do not exist yet. Super users are not in the logs.

    \b
    Examples:
      barnabas lake audit access --resource topic:orders --as-of 2026-01-31T12:00Z
      barnabas lake audit access --principal User:alice
    """
    order = ("resource_type", "resource_name", "pattern_type", "principal", "host")
    with lake_failures(directory), answering(directory, conf, ("access",), moment) as answers:
        from barnabas.lake.asking.selection import Condition, Selection

        conditions = []
        if resource is not None:
            conditions += [
                Condition("resource_type", "=", resource[0].name),
                Condition("resource_name", "=", resource[1]),
            ]
        if principal is not None:
            conditions.append(Condition("principal", "in", (principal, WILDCARD_PRINCIPAL)))
        selection = Selection("access", tuple(conditions), ("cluster_id", *order))
        cluster = checked_cluster(answers, cluster_id)
        places = places_of(answers, moment, cluster)
        found = answers.select(selection, moment, cluster)
        if principal is not None:
            found = _of_principal(found, principal)
        if output.is_for_people:
            found = only(found, (*(("cluster_id",) if len(places) > 1 else ()), *order, "operations"))
        if not show(found, output):
            note("no access is allowed" if resource is None else "no access is allowed, or the resource did not exist")


def _of_principal(found: Found, principal: str) -> Found:
    """Return the principal's own rows, and those of User:* for resources where it has none; rows are ordered by resource."""
    from barnabas.lake.asking.selection import Found

    at = found.names.index
    resource = itemgetter(at("cluster_id"), at("resource_type"), at("resource_name"), at("pattern_type"))

    def rows() -> Iterator[tuple[Any, ...]]:
        for _, group in groupby(found.rows, key=resource):
            every = list(group)
            yield from [row for row in every if row[at("principal")] == principal] or every

    return Found(found.names, rows())
