"""`barnabas lake changes`, `drift`, `rollback-plan` and `report`; and `COMMANDS`, the list of all commands in this package.

Parses arguments and prints; rows come from the gold tables, and from `declared` for what a file declares.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from barnabas.cli.connection.options import output_options
from barnabas.cli.lake.asked import AS_OF, CLUSTER, FILE, MOMENT, checked_cluster, cluster_of, give, places_of, states
from barnabas.cli.lake.audits import audit
from barnabas.cli.lake.catalog import register
from barnabas.cli.lake.inventory import inventory
from barnabas.cli.lake.plans import plan
from barnabas.cli.lake.session import CONF, LAKE, answering, asking_spark, lake_failures, opened, show
from barnabas.cli.lake.shell import shell
from barnabas.cli.terminal.declared_plan import file_option, judge, load
from barnabas.cli.terminal.failures import Failure, JudgingCommand
from barnabas.cli.terminal.output import Output, note
from barnabas.cli.terminal.stages import Stages
from barnabas.metadata.as_of import EVERYTHING, AsOf

if TYPE_CHECKING:
    from barnabas.lake.asking.selection import Condition
    from barnabas.lake.keeping.folders import Folder


@click.command("changes")
@LAKE
@click.option("--since", help="Only changes at or after this offset or time.", **MOMENT)
@click.option("--until", help="Only changes at or before this offset or time.", **MOMENT)
@click.option(
    "--kind", "kinds", multiple=True, help="Only changes of this table: topics, configs, acls, ...; may be repeated."
)
@click.option("--who", is_flag=True, help="Add who made the change, from the audit logs of the nodes.")
@click.option(
    "--audit-log",
    "audit_logs",
    multiple=True,
    type=click.Path(dir_okay=False, path_type=Path),
    help="Audit log of a node, for --who; may be repeated.  [default: that of the server.properties beside each source]",
)
@CLUSTER
@CONF
@output_options
def changes(
    directory: Folder,
    since: AsOf,
    until: AsOf,
    kinds: tuple[str, ...],
    who: bool,
    audit_logs: tuple[Path, ...],
    cluster_id: str | None,
    conf: tuple[str, ...],
    output: Output,
) -> None:
    """List changes of the cluster as sentences.

    \b
    Examples:
      barnabas lake changes --since 2026-01-31T12:00Z
      barnabas lake changes --kind configs --kind acls
      barnabas lake changes --who --audit-log audit.log
    """
    who = who or bool(audit_logs)
    logs = _audit_logs(directory, audit_logs) if who else []
    with lake_failures(directory):
        from barnabas.lake.asking.selection import Condition, Selection
        from barnabas.lake.keeping.manifest import NotStoredError

        if unknown := sorted(set(kinds).difference(_KINDS)):
            raise click.UsageError(f"--kind {unknown[0]}: must be one of {', '.join(_KINDS)}.")
        conditions = [Condition("kind", "in", kinds)] if kinds else []
        conditions += [*_bounds(since, ">="), *_bounds(until, "<=")]
        selection = Selection("changes", tuple(conditions), ("cluster_id", "offset", "sentence"))
        shown = ("offset", "time", "sentence")
        if who:
            with asking_spark(directory, conf, NotStoredError("audit logs are joined with the changes")) as answers:
                from barnabas.lake.asking.attribution import read_requests, with_who
                from barnabas.lake.asking.frames import found

                rows = answers.frame(selection._replace(order=()), None, checked_cluster(answers, cluster_id))
                rows = with_who(rows, read_requests(answers.tables.spark, logs)).orderBy(*selection.order)
                told = (*shown, "who.principal", "who.address", "who.api")
                show(found(rows.select(*told) if output.is_for_people else rows), output)
            return
        with answering(directory, conf, ("changes",)) as answers:
            columns = shown if output.is_for_people else ()
            cluster = checked_cluster(answers, cluster_id)
            show(answers.select(selection._replace(columns=columns), None, cluster), output)


_KINDS = ("topics", "partitions", "configs", "acls", "brokers", "features", "quotas", "users", "leader_epochs")
"""The tables whose changes are told: the inputs of the gold table."""


def _bounds(moment: AsOf, operator: Literal[">=", "<="]) -> Iterator[Condition]:
    from barnabas.lake.asking.selection import Condition

    if moment.offset is not None:
        yield Condition("offset", operator, moment.offset)
    if moment.timestamp_ms is not None:
        yield Condition("time", operator, datetime.fromtimestamp(moment.timestamp_ms / 1000, UTC))


def _audit_logs(directory: Folder, given: tuple[Path, ...]) -> list[Path]:
    """Return the audit logs that are given, or those of the nodes whose directories are sources of the lake."""
    from barnabas.lake.keeping.mirrors import place_of
    from barnabas.lake.keeping.store import read_settings
    from barnabas.operations.audit_trail import audit_files, find_audit_log

    for each in given:
        if not audit_files(each):
            raise Failure("there is no audit log", resource=str(each))
    if given:
        return list(given)
    with lake_failures(directory):
        sources = read_settings(directory).sources.values()
    paths = [place_of(path) for source in sources for path in source.get("paths", ())]
    found = dict.fromkeys(log for path in paths if (log := find_audit_log(path)) is not None)
    if not found:
        raise Failure("no audit log is known", advice="name it with --audit-log; barnabas.audit.log.path has its place")
    return list(found)


@click.command("drift", cls=JudgingCommand, short_help="Compare a file with a past state of the cluster.")
@file_option
@LAKE
@AS_OF
@click.option(
    "--delete",
    "--prune",
    "delete",
    is_flag=True,
    help="Also count as drift what exists but is not declared: within `manages` if the file has it, else within its sections.",
)
@CLUSTER
@CONF
@output_options
def drift(
    files: tuple[str, ...],
    directory: Folder,
    moment: AsOf,
    delete: bool,
    cluster_id: str | None,
    conf: tuple[str, ...],
    output: Output,
) -> None:
    """Compare a file with a past state of the cluster, as `barnabas plan` does with the live cluster.

    Exits with 0 if they match, with 2 if they differ, with 1 if the comparison failed.
    """
    document = load(files)
    with lake_failures(directory):
        from barnabas.declared.difference import difference
        from barnabas.lake.asking.declaring import TABLES, observed

        with answering(directory, conf, TABLES, moment) as answers:
            cluster = cluster_of(answers, cluster_id)
            places_of(answers, moment, cluster)
            found = difference(document, observed(states(answers, TABLES, moment, cluster)), prune=delete)
    judge(output, found, f"no drift: the cluster matched {document.file}")


@click.command("rollback-plan", short_help="Write a file that restores an earlier state.")
@LAKE
@click.option("--to", "moment", required=True, help="Offset or time to return to.", **MOMENT)
@click.option(
    "--resource",
    "resources",
    multiple=True,
    metavar="TYPE:NAME",
    help="Only this resource, such as topic:orders or user:billing; may be repeated.",
)
@click.option("--delete", is_flag=True, help="Also delete topics that were created since, with their records.")
@FILE
@CLUSTER
@CONF
def rollback_plan(
    directory: Folder,
    moment: AsOf,
    resources: tuple[str, ...],
    delete: bool,
    file: Path | None,
    cluster_id: str | None,
    conf: tuple[str, ...],
) -> None:
    """Write a file with which `barnabas apply` restores an earlier state of the cluster.

    It has topics that were deleted since, replication factors, settings of topics and brokers, ACLs, quotas, and users that
    were created since. What it cannot restore is printed: records, passwords, added partitions, places of replicas, features.
    Of a user, it has the credentials, the quotas and the ACLs.

    \b
    Example:
      barnabas lake rollback-plan --to 2026-01-31T12:00Z -f back.yaml
      barnabas apply -f back.yaml
    """
    wanted = {_resource(text) for text in resources} or None
    with lake_failures(directory):
        from barnabas.declared.render import document_text
        from barnabas.lake.asking.declaring import TABLES, rollback

        with answering(directory, conf, TABLES, moment) as answers:
            cluster = cluster_of(answers, cluster_id)
            places_of(answers, moment, cluster)
            then, now = (states(answers, TABLES, each, cluster) for each in (moment, EVERYTHING))
            found = rollback(then, now, wanted, delete=delete)
    for text in found.left_out:
        note(f"not restored: {text}")
    if found.is_empty:
        note("nothing to roll back")
    give(document_text(found.document), file, advice=f"; check it with: barnabas plan -f {file}")


def _resource(text: str) -> tuple[str, str]:
    kind, sign, name = text.partition(":")
    if not sign or kind.upper() not in ("TOPIC", "BROKER", "USER"):
        raise click.UsageError(
            f"--resource {text}: must be topic:NAME, user:NAME, broker:ID, or broker: for all brokers."
        )
    return kind.upper(), name


@click.command("report", short_help="Write an HTML report about all clusters.")
@LAKE
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("report"),
    show_default=True,
    help="Directory to write to.",
)
@click.option(
    "--file",
    "-f",
    "file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="cluster.yaml to compare the cluster with; the page then shows the differences.",
)
@CLUSTER
@click.option("--no-files", is_flag=True, help="Write only the page, not the CSV files with all rows of its tables.")
@CONF
def report(
    directory: Folder, out: Path, file: Path | None, cluster_id: str | None, no_files: bool, conf: tuple[str, ...]
) -> None:
    """Write an HTML page with plots about all clusters of the lake, and print a summary.

    The page is one file, `index.html`, that needs no network and no server. All rows of its tables are in the directory `rows`
    beside it. If the lake has several clusters, --file needs --cluster-id.
    """
    if file is not None:
        load((str(file),))  # report errors in the file before the slow part starts
    with lake_failures(directory), opened(directory, conf) as tables:
        from barnabas.lake.asking.frames import FrameAnswers
        from barnabas.lake.report.asking import ask, drift_of, make, write_rows
        from barnabas.lake.report.page import render
        from barnabas.lake.report.summary import summarize

        drifted = None
        if file is not None:
            try:
                drifted = drift_of(tables, file, cluster_of(FrameAnswers(tables), cluster_id))
            except ValueError as error:
                raise Failure(str(error), resource=str(file)) from None
        out.mkdir(parents=True, exist_ok=True)
        page = out / "index.html"
        with Stages("computing tables") as stages:

            def watch(stage: str, done: int, total: int, unit: str) -> None:
                stages.begin(stage, total, unit)
                stages.update(done)

            made = make(tables, drifted, watch)
            content = ask(tables, made, "rows", watch)
            page.write_text(render(content), encoding="utf-8")
            if not no_files:
                write_rows(made, out / "rows", watch)
    click.echo(summarize(content), nl=False)
    note(f"wrote {page.absolute().as_uri()}")


COMMANDS = (inventory, changes, drift, rollback_plan, audit, plan, report, shell, register)
