"""`barnabas lake`: the history of clusters as tables of Spark.

Parses arguments and prints. The lake itself is in `barnabas.lake`, which is imported when a command runs and needs the extra
`lake` and Java. Spark logs to `log/spark.log` in the lake.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from barnabas.cli.connection.options import connection_options, output_options
from barnabas.cli.connection.profiles import Connection
from barnabas.cli.lake import answers
from barnabas.cli.lake.session import CONF, LAKE, lake_failures, lake_session, opened, pairs, show
from barnabas.cli.lake.sources import Named, chosen_feeds, remembered_feeds
from barnabas.cli.terminal.command_groups import CommandGroup
from barnabas.cli.terminal.failures import Failure
from barnabas.cli.terminal.output import Output, Progress, columns, note
from barnabas.cli.terminal.parsing import moment_of
from barnabas.metadata.as_of import AsOf

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from barnabas.lake.keeping.feeds import Feed
    from barnabas.lake.keeping.runner import Batch
    from barnabas.lake.keeping.store import Writer


@click.group(cls=CommandGroup, short_help="Query the history of clusters with Spark.")
def lake() -> None:
    """Query the history of clusters with Spark.

    A lake is a directory of tables. `run` fills it from the logs of Kafka or barnabas (metadata, groups, transactions): the
    bronze tables have every record, the silver tables the state over time, the gold tables answers. Running it again reads
    only new records.

    \b
    Examples:
      barnabas lake run /var/lib/kafka/data --lake lake
      barnabas lake run node1/data node2/data node3/data --lake lake --follow
      barnabas lake run -b localhost:9092 --lake lake
      barnabas lake sql "select name, valid_from_time from topics where valid_to_offset is null" --lake lake
      barnabas lake as-of 2026-01-31T12:00 configs --lake lake
      barnabas lake as-of 5000 partitions --lake lake -o json
    """


# --- run -------------------------------------------------------------------------------------------------------------


@lake.command("run")
@click.argument("sources", nargs=-1, metavar="[SOURCE]...", type=click.Path(exists=True, path_type=Path))
@LAKE
@click.option("--follow", is_flag=True, help="Keep reading new records until Ctrl-C.")
@click.option(
    "--interval",
    type=click.FloatRange(min=0.1),
    default=10.0,
    show_default=True,
    metavar="SECONDS",
    help="Time between reads with --follow.",
)
@click.option("--voters", metavar="ID,...", help="Voters of the quorum, if its log does not name them.")
@click.option("--include-uncommitted", is_flag=True, help="Also read records that may not be committed.")
@click.option(
    "--allow-data-loss", is_flag=True, help="Continue if a source no longer has records that were not read yet."
)
@click.option("--cluster-id", help="Cluster id of the logs, if they have no meta.properties.")
@click.option(
    "--option",
    "source_options",
    multiple=True,
    metavar="KEY=VALUE",
    help="Option of the data sources; may be repeated.",
)
@click.option(
    "--traffic/--no-traffic",
    default=None,
    help="Also read the records of topics, and summarize them by time and key.  [default: as in the last run]",
)
@click.option(
    "--observe/--no-observe",
    default=None,
    help="Also request sizes on disk, quorum lag and group lag from the live cluster (--bootstrap-server)."
    "  [default: as in the last run]",
)
@CONF
@connection_options
def run(
    sources: tuple[Path, ...],
    directory: Path,
    follow: bool,
    interval: float,
    voters: str | None,
    include_uncommitted: bool,
    allow_data_loss: bool,
    cluster_id: str | None,
    source_options: tuple[str, ...],
    traffic: bool | None,
    observe: bool | None,
    conf: tuple[str, ...],
    connection: Connection,
) -> None:
    """Read new records into the lake.

    SOURCE is the log dir of a node (with meta.properties), or the directory of a metadata log; give several for several nodes.
    With -b or --bootstrap-controller, the metadata log is read from the running controllers, which are found through the
    brokers. Without any of these, the sources of the last run are read.

    Only committed metadata is read. If the cluster has several voters, give the log dirs of a majority, which tell what is
    committed.
    """
    options = pairs(source_options, "--option")
    if voters:
        options["voters"] = voters
    if include_uncommitted:
        options["includeUncommitted"] = "true"
    if allow_data_loss:
        options["failOnDataLoss"] = "false"
    with lake_failures(directory):
        from barnabas.lake.keeping.store import Writer

        with Writer(directory) as writer:
            writer.open()
            feeds = chosen_feeds(writer, Named(sources, options, cluster_id, traffic, observe), connection)
            with lake_session(directory, conf) as spark:
                _check_executors(spark, directory, feeds)
                _run(spark, writer, feeds, interval if follow else None)


@contextmanager
def _interrupts() -> Iterator[Callable[[], bool]]:
    """Yield a function that returns whether SIGINT or SIGTERM arrived. The signals do not interrupt calls of Spark."""
    came: list[int] = []
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    for number in before:
        signal.signal(number, lambda number, frame: came.append(number))
    try:
        yield lambda: bool(came)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _check_executors(spark: SparkSession, directory: Path, feeds: list[Feed]) -> None:
    """On a Spark cluster, check first that every executor has what it needs. Raises Failure."""
    if (spark.sparkContext.master or "local").startswith("local"):
        return
    from barnabas.lake.spark.executors import ExecutorsError, check

    try:
        check(spark, sorted({str(directory.absolute()), *(path for feed in feeds for path in feed.paths)}))
    except ExecutorsError as error:
        raise Failure(str(error), resource=str(spark.sparkContext.master)) from None


def _run(spark: SparkSession, writer: Writer, feeds: list[Feed], interval_s: float | None) -> None:
    from barnabas.lake.keeping.feeds import METADATA
    from barnabas.lake.keeping.runner import Runner
    from barnabas.lake.reading.metadata_options import parse_options
    from barnabas.lake.reading.metadata_parts import observe
    from barnabas.lake.report.text import counted

    total, markers = ({feed.name: 0 for feed in feeds} for _ in range(2))
    bad, first_fault = 0, ""
    with _interrupts() as is_interrupted, Progress("reading", unit="records") as progress:

        def watch(batch: Batch) -> None:
            nonlocal bad, first_fault
            total[batch.feed] += batch.rows - batch.markers
            markers[batch.feed] += batch.markers
            bad += batch.quarantined
            first_fault = first_fault or batch.first_fault
            progress.update(sum(total.values()))
            if interval_s is not None:
                note(f"{batch.feed}: {counted(batch.rows - batch.markers, 'record')} in {batch.seconds:.1f} s")

        runner = Runner(spark, writer, watch=watch)
        if interval_s is None:
            runner.run(feeds, is_interrupted)
        else:
            runner.follow(feeds, interval_s, is_interrupted)
        if is_interrupted():
            note("stopped; the next run continues from here")
            if interval_s is None:
                raise click.Abort
    for name, count in total.items():
        more = f", and {counted(markers[name], 'marker')} of transactions" if markers[name] else ""
        note(f"{name}: {counted(count, 'new record')}{more}")
    if bad:
        note(f"warning: {counted(bad, 'place')} could not be read; the first is {first_fault}")
        note("see: barnabas lake sql 'select * from quarantine'; rows across a gap have exact = false")
    for feed in feeds:
        if feed.stream.source == METADATA and feed.paths:
            for log in observe(parse_options(feed.options)):
                if (skipped := log.skipped()) is not None:
                    note(f"warning: {feed.cluster_id}: {skipped.sentence()}")
                    note("they can be read nevertheless with --include-uncommitted, into a lake of their own")


# --- rebuild ---------------------------------------------------------------------------------------------------------


@lake.command("rebuild", short_help="Build the lake again from its sources.")
@LAKE
@click.option("--without-missing", is_flag=True, help="Omit sources that no longer exist, and their rows.")
@CONF
@connection_options
def rebuild(directory: Path, without_missing: bool, conf: tuple[str, ...], connection: Connection) -> None:
    """Build the lake again from its sources, beside the old one, and swap them at the end.

    Use it for a lake of another version, or if a source was recreated or truncated. The new lake has only what the sources
    have now: records that retention or snapshots removed are gone, and history then starts at a snapshot, marked as not exact.
    Observations of live clusters are kept. Until the swap, and if the rebuild fails, the lake is unchanged. A later run
    deletes the old data.
    """
    with lake_failures(directory):
        from barnabas.lake.keeping.store import LakeFormatError, Writer, read_settings
        from barnabas.lake.tables.all import OBSERVING

        known = read_settings(directory).sources
        if not known:
            raise Failure(
                "has no recorded sources", resource=str(directory), advice="fill it with: barnabas lake run SOURCE"
            )
        with Writer(directory) as writer:
            writer.open_anew()
            feeds = remembered_feeds(known, connection, without_missing=without_missing)
            for cluster in sorted(known.keys() - {feed.cluster_id for feed in feeds}):
                note(f"warning: cluster {cluster} has no source any more and is omitted")
            try:
                writer.take_along([stream.records.path for stream in OBSERVING], _is_observing)
            except LakeFormatError as error:
                note(f"warning: observations of live clusters are lost: {error}")
            with lake_session(directory, conf) as spark:
                _run(spark, writer, feeds, None)
            writer.swap()


def _is_observing(stream: str) -> bool:
    return "/kafka_cluster/" in stream


# --- queries ---------------------------------------------------------------------------------------------------------


@lake.command("tables")
@LAKE
@output_options
def tables(directory: Path, output: Output) -> None:
    """List the tables, the question each answers, and its size. Needs no Java.

    Gold tables are computed from the others when they are queried, and have no size.
    """
    with lake_failures(directory):
        from barnabas.lake.keeping.runner import bytes_of, rows_of
        from barnabas.lake.keeping.store import Lake
        from barnabas.lake.tables.all import TABLES

        found = Lake(directory)
        manifest = found.manifest()
        rows = []
        for table in TABLES.values():
            state = manifest.tables.get(table.path)
            parts = [found.data / part for part in state.parts] if state else []
            is_stored = table.layer != "gold"
            rows.append(
                {
                    "table": table.name,
                    "layer": table.layer,
                    "rows": sum(map(rows_of, parts)) if is_stored else None,
                    "bytes": sum(map(bytes_of, parts)) if is_stored else None,
                    "parts": len(parts) if is_stored else None,
                    "question": table.question,
                    "columns": {column.name: column.type for column in table.columns},
                    "path": str(found.data / table.path) if state else None,
                    "version": state.version if state else None,
                }
            )
        output.rows(columns("table", "layer", "rows", "bytes", "parts", "question"), rows)


@lake.command("sql")
@click.argument("query")
@LAKE
@CONF
@output_options
def sql(query: str, directory: Path, conf: tuple[str, ...], output: Output) -> None:
    """Run a Spark SQL query. Every table is a view of its name.

    All tables show the same committed state of the lake, even while `lake run` writes to it.
    """
    with lake_failures(directory), opened(directory, conf) as tables:
        show(tables.sql(query), output)


@lake.command("as-of")
@click.argument("moment", metavar="OFFSET|TIME|AGE", callback=moment_of)
@click.argument("table")
@LAKE
@click.option("--cluster-id", help="Only this cluster.")
@CONF
@output_options
def as_of(
    moment: AsOf, table: str, directory: Path, cluster_id: str | None, conf: tuple[str, ...], output: Output
) -> None:
    """Show a table as of an offset of the metadata log, or a time.

    State exists only between batches of the log: OFFSET means the end of the last batch that ends at or before it, TIME the
    end of the last batch appended by then. TABLE is a silver table (topics, partitions, configs, acls, ...), or a gold table
    computed only from silver tables (access, topic_inventory, broker_balance, ...); see barnabas lake tables.
    """
    with lake_failures(directory), opened(directory, conf) as tables:
        from barnabas.lake.tables.all import TABLES

        state = tables.as_of(moment, cluster_id)
        try:
            rows, places = state[table], state.places(table)
        except (KeyError, ValueError) as error:
            raise Failure(str(error)) from None
        if not places:
            raise Failure(
                "the lake has no data from before this offset or time",
                resource=table,
                advice="see the first offsets with: barnabas lake sql",
            )
        for cluster, log, offset in places if state.is_of_metadata(table) else ():
            note(f"{cluster}: after offset {offset} of {log}")
        show(rows.orderBy(*TABLES[table].keys), output)


for _answer in answers.COMMANDS:
    lake.add_command(_answer)
