"""`barnabas lake inventory`: topics, settings, ACLs and brokers, as of any moment."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import click

from barnabas.cli.connection.options import output_options
from barnabas.cli.lake.asked import AS_OF, CLUSTER, show_of
from barnabas.cli.lake.session import CONF, LAKE, answering, lake_failures
from barnabas.cli.terminal.output import Output
from barnabas.metadata.as_of import AsOf

if TYPE_CHECKING:
    from barnabas.lake.keeping.folders import Folder


class _Kind(NamedTuple):
    table: str
    shown: tuple[str, ...]
    """The columns of the table; the other formats have all columns."""
    order: tuple[str, ...]


_CONFIG = ("resource_type", "resource_name", "name")
_ACL = ("resource_type", "resource_name", "pattern_type", "principal", "host", "operation", "permission")
_KINDS = {
    "topics": _Kind(
        "topic_inventory",
        (
            *("topic", "partitions", "replication_factor", "min_insync_replicas", "acl_entries", "created", "groups"),
            "settings",
        ),
        ("topic",),
    ),
    "configs": _Kind("configs", (*_CONFIG, "value", "valid_from_time as since"), _CONFIG),
    "acls": _Kind("acls", (*_ACL, "valid_from_time as since"), _ACL),
    "brokers": _Kind(
        "broker_inventory",
        ("broker_id", "rack", "fenced", "replicas", "leaders", "endpoints", "since", "settings"),
        ("broker_id",),
    ),
}


@click.command("inventory", short_help="List topics, settings, ACLs or brokers.")
@click.argument("kind", type=click.Choice(list(_KINDS)))
@LAKE
@AS_OF
@CLUSTER
@CONF
@output_options
def inventory(
    kind: str, directory: Folder, moment: AsOf, cluster_id: str | None, conf: tuple[str, ...], output: Output
) -> None:
    """List topics, settings, ACLs or brokers, as of the end of the log or any earlier moment.

    \b
    Examples:
      barnabas lake inventory topics
      barnabas lake inventory acls --as-of 2026-01-31T12:00Z
    """
    wanted = _KINDS[kind]
    with lake_failures(directory), answering(directory, conf, (wanted.table,), moment) as answers:
        from barnabas.lake.asking.selection import Selection

        selection = Selection(wanted.table, order=("cluster_id", *wanted.order))
        show_of(answers, selection, moment, cluster_id, output, wanted.shown)
