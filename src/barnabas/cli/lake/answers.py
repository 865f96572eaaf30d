"""The answers of `barnabas lake`: changes, drift, the way back, audits, plans and the report.

Reads arguments and shows; what is said comes from the tables of gold, and from `declared` for what a file declares.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from barnabas.cli.declared_cluster import file_option, judge, load
from barnabas.cli.failures import Failure, Verdict
from barnabas.cli.lake.session import CONF, LAKE, lake_failures, moment_of, opened, show
from barnabas.cli.options import output_options
from barnabas.cli.output import Output, Progress, note

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from barnabas.lake.opened import OpenLake
    from barnabas.raft.offline_metadata import AsOf

CLUSTER = click.option("--cluster-id", help="The cluster, where the lake has several.")
_FILE = click.option(
    "--file", "-f", "file", type=click.Path(dir_okay=False, path_type=Path), help="Where to write; else shown."
)
_MOMENT: dict[str, Any] = {"metavar": "OFFSET|TIME", "callback": moment_of}


def _cluster(tables: OpenLake, given: str | None) -> str:
    """The cluster that is asked about. One that has to be chosen is a failure that names them."""
    known = [
        row[0] for row in tables["metadata_records"].select("cluster_id").distinct().orderBy("cluster_id").collect()
    ]
    if given is not None and given not in known:
        raise Failure(f"is not in the lake; it has {', '.join(known) or 'none'}", resource=given)
    if given is None and len(known) != 1:
        raise Failure(
            f"the lake has {len(known)} clusters: {', '.join(known)}", advice="say which one with --cluster-id"
        )
    return given or known[0]


def _rows(tables: OpenLake, moment: AsOf, cluster_id: str) -> dict[str, list[dict[str, Any]]]:
    """What was true at a moment, as rows."""
    from barnabas.lake.declaring import TABLES  # noqa: PLC0415

    state = tables.as_of(moment, cluster_id)
    if not state.places():
        raise Failure("the lake knows of nothing that was before this", resource=cluster_id)
    return {name: [row.asDict(recursive=True) for row in state[name].collect()] for name in TABLES}


@click.command("changes")
@LAKE
@click.option("--since", help="From this offset or time on.", **_MOMENT)
@click.option("--until", help="Up to this offset or time.", **_MOMENT)
@click.option("--kind", "kinds", multiple=True, help="Only of this table: topics, configs, acls, ...; may be repeated.")
@CLUSTER
@CONF
@output_options
def changes(
    directory: Path,
    since: AsOf,
    until: AsOf,
    kinds: tuple[str, ...],
    cluster_id: str | None,
    conf: tuple[str, ...],
    output: Output,
) -> None:
    """Tell what changed, in words.

    \b
    Examples:
      barnabas lake changes --since 2026-01-31T12:00Z
      barnabas lake changes --kind configs --kind acls
    """
    from pyspark.sql import functions as f  # noqa: PLC0415

    with lake_failures(directory), opened(directory, conf) as tables:
        rows = tables["changes"]
        if cluster_id is not None:
            rows = rows.where(rows["cluster_id"] == _cluster(tables, cluster_id))
        if kinds:
            rows = rows.where(rows["kind"].isin(*kinds))
        for moment, is_start in ((since, True), (until, False)):
            for column, value in (("offset", moment.offset), ("time", moment.timestamp_ms)):
                if value is not None:
                    bound = f.lit(value) if column == "offset" else f.timestamp_millis(f.lit(value))
                    rows = rows.where(rows[column] >= bound if is_start else rows[column] <= bound)
        rows = rows.orderBy("cluster_id", "offset", "sentence")
        show(rows.select("offset", "time", "sentence") if output.is_for_people else rows, output)


@click.command("drift", cls=Verdict)
@file_option
@LAKE
@click.option("--as-of", "moment", help="At this offset or time; the end of the log if it is not given.", **_MOMENT)
@CLUSTER
@CONF
@output_options
def drift(
    file: str, directory: Path, moment: AsOf, cluster_id: str | None, conf: tuple[str, ...], output: Output
) -> None:
    """Compare what a file declares with what the cluster was, as `barnabas plan` does with a live one.

    Ends with 0 if they agree, with 2 if the cluster had drifted, with 1 if that could not be found out.
    """
    document = load(file)
    with lake_failures(directory), opened(directory, conf) as tables:
        from barnabas.declared.difference import difference  # noqa: PLC0415
        from barnabas.lake.declaring import observed  # noqa: PLC0415

        found = difference(document, observed(_rows(tables, moment, _cluster(tables, cluster_id))))
    judge(output, found, f"no drift: the cluster was as {document.file} declares it")


@click.command("rollback-plan")
@LAKE
@click.option("--to", "moment", required=True, help="As settings were after this offset, or at this time.", **_MOMENT)
@click.option("--resource", "resources", multiple=True, metavar="TYPE:NAME", help="Only of this, such as topic:orders.")
@_FILE
@CLUSTER
@CONF
def rollback_plan(
    directory: Path,
    moment: AsOf,
    resources: tuple[str, ...],
    file: Path | None,
    cluster_id: str | None,
    conf: tuple[str, ...],
) -> None:
    """Write the file with which `barnabas apply` gives topics and brokers the settings that they had.

    \b
    Example:
      barnabas lake rollback-plan --to 2026-01-31T12:00Z -f back.yaml
      barnabas apply -f back.yaml
    """
    wanted = {_resource(text) for text in resources} or None
    with lake_failures(directory), opened(directory, conf) as tables:
        from barnabas.declared.render import document_text  # noqa: PLC0415
        from barnabas.lake.declaring import rollback  # noqa: PLC0415
        from barnabas.raft.offline_metadata import EVERYTHING  # noqa: PLC0415

        cluster = _cluster(tables, cluster_id)
        found = rollback(_rows(tables, moment, cluster), _rows(tables, EVERYTHING, cluster), wanted)
    for text in found.left_out:
        note(f"left out: {text}")
    if found.document.topics is None and found.document.brokers is None:
        note("nothing to take back")
    _give(document_text(found.document), file, advice=f"; look at it with: barnabas plan -f {file}")


def _give(text: str, file: Path | None, advice: str = "") -> None:
    """Into the file that was named, else to the standard output."""
    if file is None:
        click.echo(text, nl=False)
        return
    file.write_text(text)
    note(f"wrote {file}{advice}")


def _resource(text: str) -> tuple[str, str]:
    kind, sign, name = text.partition(":")
    if not sign or kind.upper() not in ("TOPIC", "BROKER"):
        raise click.UsageError(f"--resource {text}: it takes topic:NAME, broker:ID, or broker: for all brokers.")
    return kind.upper(), name


@click.group("audit")
def audit() -> None:
    """Look for what is odd."""


@audit.command("acls")
@LAKE
@CLUSTER
@CONF
@output_options
def audit_acls(directory: Path, cluster_id: str | None, conf: tuple[str, ...], output: Output) -> None:
    """ACLs that are wide, never match, say the same twice, or speak of what is not there."""
    with lake_failures(directory), opened(directory, conf) as tables:
        show(_of_cluster(tables, "acl_findings", cluster_id).orderBy("finding", "message"), output)


def _of_cluster(tables: OpenLake, name: str, cluster_id: str | None) -> DataFrame:
    rows = tables[name]
    return rows if cluster_id is None else rows.where(rows["cluster_id"] == _cluster(tables, cluster_id))


@click.group("plan")
def plan() -> None:
    """Propose what to change."""


@plan.command("reassignment")
@LAKE
@CLUSTER
@_FILE
@CONF
def plan_reassignment(directory: Path, cluster_id: str | None, file: Path | None, conf: tuple[str, ...]) -> None:
    """The smallest reassignment that levels brokers and mends racks, as JSON for `barnabas reassign execute`."""
    with lake_failures(directory), opened(directory, conf) as tables:
        from barnabas.client.reassignment_plan import PlanError  # noqa: PLC0415
        from barnabas.client.reassignment_plan import plan as made  # noqa: PLC0415
        from barnabas.raft.offline_metadata import EVERYTHING  # noqa: PLC0415

        state = tables.as_of(EVERYTHING, _cluster(tables, cluster_id))
        racks = {
            row.broker_id: row.rack
            for row in state["brokers"].where("not fenced").select("broker_id", "rack").collect()
        }
        rows = state["partitions"].select("topic_name", "partition", "replicas").collect()
    try:
        found = made({(row.topic_name, row.partition): row.replicas for row in rows}, racks, rebalance=True)
    except PlanError as error:
        raise Failure(str(error)) from None
    moves = [
        {"topic": topic, "partition": partition, "replicas": list(replicas)}
        for (topic, partition), replicas in found.targets.items()
    ]
    note(f"{len(moves)} of {len(rows)} partitions change" if moves else "nothing to move: the brokers are level")
    _give(json.dumps({"version": 1, "partitions": moves}, indent=1) + "\n", file)


@click.command("report")
@LAKE
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("report"),
    show_default=True,
    help="The directory to write to.",
)
@click.option("--no-files", is_flag=True, help="Only the page, not the files with all rows of each table.")
@CONF
def report(directory: Path, out: Path, no_files: bool, conf: tuple[str, ...]) -> None:
    """Write one page, with plots, about all clusters of the lake, and sum it up here.

    The page needs no network and no server: it is one file, `index.html`. Beside it, in `rows`, are all rows of its tables.
    """
    with lake_failures(directory), opened(directory, conf) as tables:
        from barnabas.lake.report.asking import ask, kept, write_rows  # noqa: PLC0415
        from barnabas.lake.report.page import render  # noqa: PLC0415
        from barnabas.lake.report.summary import summarize  # noqa: PLC0415

        out.mkdir(parents=True, exist_ok=True)
        with kept(tables) as names:
            with Progress("asking", unit="tables") as progress:
                content = ask(tables, names, "rows", progress.update)
            if not no_files:
                write_rows(tables, names, out / "rows")
        page = out / "index.html"
        page.write_text(render(content), encoding="utf-8")
    click.echo(summarize(content), nl=False)
    note(f"wrote {page.absolute().as_uri()}")


COMMANDS = (changes, drift, rollback_plan, audit, plan, report)
