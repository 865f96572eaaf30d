"""`barnabas lake audit`: suspicious ACLs, and who has or had access to what."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from barnabas.cli.connection.options import output_options
from barnabas.cli.lake.asked import AS_OF, CLUSTER, as_it_was, show_of
from barnabas.cli.lake.session import CONF, LAKE, lake_failures, opened
from barnabas.cli.terminal.command_groups import CommandGroup
from barnabas.cli.terminal.output import Output, note
from barnabas.cli.terminal.parsing import parsed_by
from barnabas.metadata.as_of import AsOf
from barnabas.security.acl import WILDCARD_PRINCIPAL, ResourceType
from barnabas.security.acl_text import parse_principal_text, parse_resource

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@click.group("audit", cls=CommandGroup)
def audit() -> None:
    """Audit ACLs, and show who has access to what."""


@audit.command("acls", short_help="Find ACLs without effect, redundant, too wide or unused.")
@LAKE
@AS_OF
@CLUSTER
@CONF
@output_options
def audit_acls(directory: Path, moment: AsOf, cluster_id: str | None, conf: tuple[str, ...], output: Output) -> None:
    """Find ACLs that allow too much, have no effect, are redundant, name a missing resource, or are never used.

    Findings are those of `barnabas acls audit`, and `no-trace-of-use`: the ACL allows writing to or reading from a topic, or
    joining a group, but the logs show no use. This needs the records of topics in the lake (lake run --traffic).
    """
    with lake_failures(directory), opened(directory, conf) as tables:
        state = as_it_was(tables, moment, cluster_id)
        rows = state["acl_findings"].orderBy("cluster_id", "finding", "message", "entries")
        show_of(state, rows, ("finding", "entries", "message", "because"), output)


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
    directory: Path,
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
    with lake_failures(directory), opened(directory, conf) as tables:
        state = as_it_was(tables, moment, cluster_id)
        rows = state["access"]
        if resource is not None:
            rows = rows.where((rows["resource_type"] == resource[0].name) & (rows["resource_name"] == resource[1]))
        if principal is not None:
            rows = _of_principal(rows, principal)
        order = ("resource_type", "resource_name", "pattern_type", "principal", "host")
        if not show_of(state, rows.orderBy("cluster_id", *order), (*order, "operations"), output):
            note("no access is allowed" if resource is None else "no access is allowed, or the resource did not exist")


def _of_principal(rows: DataFrame, principal: str) -> DataFrame:
    """Return the principal's own rows, and those of User:* for resources where it has none."""
    resource = ["cluster_id", "resource_type", "pattern_type", "resource_name"]
    own = rows.where(rows["principal"] == principal)
    everyone = rows.where(rows["principal"] == WILDCARD_PRINCIPAL)
    return own if principal == WILDCARD_PRINCIPAL else own.unionByName(everyone.join(own, resource, "left_anti"))
