"""`barnabas export`: write the current state of a cluster as a file for `plan` and `apply`.

`declared.render` makes the text. It has no passwords, because brokers do not return them.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from barnabas.cli.connection.connecting import run
from barnabas.cli.connection.options import connection_options
from barnabas.cli.connection.profiles import Connection
from barnabas.cli.terminal.declared_plan import load
from barnabas.cli.terminal.failures import Failure
from barnabas.cli.terminal.output import Output, note

if TYPE_CHECKING:
    from barnabas.client.cluster import Cluster
    from barnabas.declared.observed import Observed

_SECTIONS = ("topics", "acls", "quotas", "users", "brokers")  # as in `declared.document`, which is slow to import


@click.command("export", short_help="Write the state of a cluster as a file for plan and apply.")
@click.option(
    "--section",
    "sections",
    multiple=True,
    type=click.Choice(_SECTIONS),
    help="Only this section; may be repeated.  [default: all]",
)
@click.option(
    "--file", "-f", type=click.Path(dir_okay=False, path_type=Path), help="File to write.  [default: standard output]"
)
@click.option(
    "--descriptions",
    type=click.Path(exists=True, dir_okay=False),
    metavar="FILE",
    help="Copy descriptions of ACLs from this cluster.yaml, because clusters do not store them.",
)
@click.option(
    "--output",
    "-o",
    "output_format",
    type=click.Choice(("yaml", "json")),
    help="Format of the file.  [default: json if --file ends with .json, else yaml]",
)
@connection_options
def export(
    connection: Connection,
    sections: tuple[str, ...],
    file: Path | None,
    descriptions: str | None,
    output_format: str | None,
) -> None:
    """Write the current state of a cluster as a file for `plan` and `apply`.

    Internal topics are omitted, and so are passwords, because brokers do not return them.

    \b
    Examples:
      barnabas export > cluster.yaml
      barnabas export -o json | jq .topics
      barnabas export --section acls --descriptions cluster.yaml
      barnabas export -f cluster.yaml && barnabas plan -f cluster.yaml     reports no drift
    """
    from barnabas.declared.render import document_json, document_of, document_text

    known = {}
    if descriptions is not None:
        known = {acl.entry: acl.description for acl in load((descriptions,)).acls or () if acl.description is not None}
    observed = run(connection, lambda cluster: _observe(cluster, sections or _SECTIONS))
    if observed.acls is None and "acls" in (sections or _SECTIONS):
        note("note: the cluster has no authorizer, so there are no ACLs")
    for name, configs in (observed.brokers or {}).items():
        hidden = [key for key, value in configs.items() if value is None]
        if hidden:
            note(f"note: broker {name}: omitted, because the broker does not return their values: {', '.join(hidden)}")
    is_json = output_format == "json" or (output_format is None and file is not None and file.suffix == ".json")
    text = (document_json if is_json else document_text)(document_of(observed, known))
    if file is None:
        output = Output()
        output.write(text, end="")
        output.flush()
        return
    try:
        file.write_text(text, "utf-8")
    except OSError as error:
        raise Failure(error.strerror or str(error), resource=str(file)) from None


async def _observe(cluster: Cluster, sections: tuple[str, ...]) -> Observed:
    from barnabas.declared.observe import observe

    if cluster.settings.bootstrap_controllers:
        raise Failure("controllers do not list topics and users", advice="use --bootstrap-server")
    return await observe(cluster, sections)
