"""`barnabas lake`: the history of clusters as tables of Spark.

Parses arguments and prints. The lake itself is in `barnabas.lake`, which is imported when a command runs and needs the extra
`lake` and Java. Spark logs to `log/spark.log` in the lake.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from barnabas.cli.connection.options import connection_options, output_options
from barnabas.cli.connection.profiles import Connection
from barnabas.cli.lake import answers
from barnabas.cli.lake.asked import check_places, checked_cluster, places_of
from barnabas.cli.lake.session import (
    CONF,
    LAKE,
    Source,
    asking_spark,
    lake_failures,
    lake_session,
    pairs,
    show,
    stored_lake,
)
from barnabas.cli.lake.sources import Named, addresses_of, chosen_feeds, here, remembered_feeds
from barnabas.cli.lake.watching import Shown, Watch
from barnabas.cli.terminal.command_groups import CommandGroup
from barnabas.cli.terminal.exit_codes import EXIT_NO
from barnabas.cli.terminal.failures import Failure
from barnabas.cli.terminal.output import Output, columns, note
from barnabas.cli.terminal.parsing import moment_of
from barnabas.cli.terminal.stages import Stages
from barnabas.metadata.as_of import AsOf

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from barnabas.lake.asking.opened import OpenLake
    from barnabas.lake.asking.stored import StoredLake
    from barnabas.lake.keeping.feeds import Feed
    from barnabas.lake.keeping.folders import Folder
    from barnabas.lake.keeping.gold import Computed
    from barnabas.lake.keeping.runner import Batch
    from barnabas.lake.keeping.store import Writer


WAITING = "waiting for new records"


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
@click.argument("sources", nargs=-1, metavar="[SOURCE]...", type=Source())
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
@click.option(
    "--limit",
    "limits",
    multiple=True,
    metavar="NAME=NUMBER",
    help="Highest value of a finding, such as partitions_without_leader=0; may be repeated. Above it, the exit code is 2.",
)
@click.option(
    "--on-breach", "hook", metavar="COMMAND", help="Command to run if a limit is exceeded, and when that is over."
)
@click.option(
    "--serve",
    "address",
    metavar="[HOST:]PORT",
    help="With --follow: serve findings as Prometheus metrics at /metrics. The host is 127.0.0.1 unless it is given.",
)
@click.option(
    "--report",
    type=click.Path(file_okay=False, path_type=Path),
    help="With --follow: write the report to this directory after changes, and serve it with --serve.",
)
@CONF
@connection_options
def run(
    sources: tuple[Path | str, ...],
    directory: Folder,
    follow: bool,
    interval: float,
    voters: str | None,
    include_uncommitted: bool,
    allow_data_loss: bool,
    cluster_id: str | None,
    source_options: tuple[str, ...],
    traffic: bool | None,
    observe: bool | None,
    limits: tuple[str, ...],
    hook: str | None,
    address: str | None,
    report: Path | None,
    conf: tuple[str, ...],
    connection: Connection,
) -> None:
    """Read new records into the lake.

    SOURCE is the log dir of a node (with meta.properties), or the directory of a metadata log; give several for several nodes.
    It may be the address to which a log dir was copied, such as s3a://bucket/node1: its files are fetched once.
    With -b or --bootstrap-controller, the metadata log is read from the running controllers, which are found through the
    brokers. Without any of these, the sources of the last run are read.

    Only committed metadata is read. If the cluster has several voters, give the log dirs of a majority, which tell what is
    committed.

    With --limit, the exit code is 2 if a finding is above its limit at the end. Findings are those at /metrics, without the
    prefix barnabas_lake_.
    """
    if not follow and (address is not None or report is not None):
        raise click.UsageError("--serve and --report need --follow.")
    options = pairs(source_options, "--option")
    if voters:
        options["voters"] = voters
    if include_uncommitted:
        options["includeUncommitted"] = "true"
    if allow_data_loss:
        options["failOnDataLoss"] = "false"
    shown = Shown(directory, limits, hook, address, report)
    with lake_failures(directory):
        from barnabas.lake.keeping.store import Writer

        shown.check()
        with Writer(directory, tell=note) as writer:
            writer.open()
            feeds = chosen_feeds(writer, Named(sources, options, cluster_id, traffic, observe), connection)
            if not _has_news(writer, feeds) and not follow and not conf:
                with shown.watching(None) as watch:
                    _tell_nothing_new(feeds, watch)
            else:
                addresses = addresses_of(writer.settings.sources)
                with lake_session(directory, conf) as spark:
                    _check_executors(spark, directory, feeds)
                    with shown.watching(spark) as watch:
                        _run(spark, writer, feeds, interval if follow else None, watch, addresses)
    if watch is not None and watch.has_breaches:
        click.get_current_context().exit(EXIT_NO)


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


def _check_executors(spark: SparkSession, directory: Folder, feeds: list[Feed]) -> None:
    """On a Spark cluster, check first that every executor has what it needs. Raises Failure."""
    if (spark.sparkContext.master or "local").startswith("local"):
        return
    from barnabas.lake.spark.executors import ExecutorsError, check

    try:
        here = {str(directory)} if directory.is_local else set()
        check(spark, sorted({*here, *(path for feed in feeds for path in feed.paths)}))
    except ExecutorsError as error:
        raise Failure(str(error), resource=str(spark.sparkContext.master)) from None


def _run(
    spark: SparkSession,
    writer: Writer,
    feeds: list[Feed],
    interval_s: float | None,
    shown: Watch | None = None,
    addresses: Sequence[str] = (),
) -> None:
    from barnabas.lake.keeping.runner import Runner
    from barnabas.lake.report.text import counted
    from barnabas.lake.tables.all import TABLES

    total, markers = ({feed.name: 0 for feed in feeds} for _ in range(2))
    bad, first_fault = 0, ""
    with _interrupts() as is_interrupted, Stages("reading") as stages:

        def watch(batch: Batch) -> None:
            nonlocal bad, first_fault
            total[batch.feed] += batch.rows - batch.markers
            markers[batch.feed] += batch.markers
            bad += batch.quarantined
            first_fault = first_fault or batch.first_fault
            stages.update(sum(total.values()), "records")
            if interval_s is not None and batch.rows:
                stages.note(f"{batch.feed}: {counted(batch.rows - batch.markers, 'record')} in {batch.seconds:.1f} s")
                stages.rest(WAITING)

        def watch_gold(computed: Computed) -> None:
            stages.begin("computing answers", computed.total, "tables")
            stages.update(computed.done)
            if interval_s is not None and computed.done == computed.total:
                stages.rest(WAITING)

        def tell(feed: str, stage: str) -> None:
            stages.begin(f"{feed}: {stage}")
            stages.update(sum(total.values()), "records")

        runner = Runner(spark, writer, watch=watch, known=TABLES, watch_gold=watch_gold, tell=tell)
        if interval_s is None:
            runner.run(feeds, is_interrupted)
        else:
            runner.follow(feeds, interval_s, is_interrupted, _looking(shown, addresses, interval_s))
        if is_interrupted():
            note("stopped; the next run continues from here")
            if interval_s is None:
                raise click.Abort
    if shown is not None:
        shown.look()
    for name, count in total.items():
        more = f", and {counted(markers[name], 'marker')} of transactions" if markers[name] else ""
        note(f"{name}: {counted(count, 'new record')}{more}")
    if bad:
        note(f"warning: {counted(bad, 'place')} could not be read; the first is {first_fault}")
        note("see: barnabas lake sql 'select * from quarantine'; rows across a gap have exact = false")
    _tell_skipped(feeds)


def _has_news(writer: Writer, feeds: list[Feed]) -> bool:
    from barnabas.lake.keeping.news import check_options, has_news
    from barnabas.lake.tables.all import TABLES

    with Stages("looking for records"):
        check_options(feeds)
        return has_news(writer.manifest, feeds, TABLES)


def _tell_nothing_new(feeds: list[Feed], shown: Watch | None) -> None:
    if shown is not None:
        shown.look()
    for feed in feeds:
        note(f"{feed.name}: 0 new records")
    note("the lake is up to date; Spark was not needed")
    _tell_skipped(feeds)


def _tell_skipped(feeds: list[Feed]) -> None:
    """Warn of copies that are damaged, and of records that are not read, since too few copies are given."""
    from barnabas.lake.keeping.feeds import METADATA
    from barnabas.lake.reading.metadata_options import parse_options
    from barnabas.lake.reading.metadata_parts import observe

    for feed in feeds:
        if feed.stream.source == METADATA and feed.paths:
            for log in observe(parse_options(feed.options)):
                for damaged in log.damaged_copies():
                    note(f"warning: {damaged.sentence()}")
                if (skipped := log.skipped()) is not None:
                    note(f"warning: {feed.cluster_id}: {skipped.sentence()}")
                    if skipped.damaged is None:
                        note("they can be read nevertheless with --include-uncommitted, into a lake of their own")


def _looking(shown: Watch | None, addresses: Sequence[str], interval_s: float) -> Callable[[], None]:
    """Return what to do now and then while sources are followed: fetch what was added at addresses, and look at the lake."""
    from barnabas.lake.keeping.folders import LakeError

    fetched_at = time.monotonic()

    def look() -> None:
        nonlocal fetched_at
        if addresses and time.monotonic() - fetched_at >= interval_s:
            for address in addresses:
                try:
                    here(address)
                except LakeError as error:
                    note(f"warning: {error}")
            fetched_at = time.monotonic()
        if shown is not None:
            shown.look()

    return look


# --- rebuild ---------------------------------------------------------------------------------------------------------


@lake.command("rebuild", short_help="Build the lake again from its sources.")
@LAKE
@click.option("--without-missing", is_flag=True, help="Omit sources that no longer exist, and their rows.")
@CONF
@connection_options
def rebuild(directory: Folder, without_missing: bool, conf: tuple[str, ...], connection: Connection) -> None:
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
        with Writer(directory, tell=note) as writer:
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
def tables(directory: Folder, output: Output) -> None:
    """List the tables, the question each answers, and its size. Needs no Java.

    Gold tables without a size are computed from the others when they are queried.
    """
    with lake_failures(directory):
        from barnabas import __version__
        from barnabas.lake.keeping.manifest import is_current
        from barnabas.lake.keeping.runner import bytes_of, rows_of
        from barnabas.lake.keeping.store import Lake
        from barnabas.lake.tables.all import TABLES

        found = Lake(directory)
        manifest = found.manifest()
        rows = []
        for table in TABLES.values():
            state = manifest.tables.get(table.path)
            parts = state.parts if state else ()
            is_stored = table.layer != "gold" or is_current(manifest, table.path, __version__)
            rows.append(
                {
                    "table": table.name,
                    "layer": table.layer,
                    "rows": sum(rows_of(found.data, part) for part in parts) if is_stored else None,
                    "bytes": sum(bytes_of(found.data, part) for part in parts) if is_stored else None,
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
def sql(query: str, directory: Folder, conf: tuple[str, ...], output: Output) -> None:
    """Run a Spark SQL query. Every table is a view of its name.

    All tables show the same committed state of the lake, even while `lake run` writes to it. A simple query of tables that are
    stored is answered at once, without Spark; what only Spark can answer is said.
    """
    with lake_failures(directory):
        from barnabas.lake.keeping.manifest import NotStoredError

        try:
            from barnabas.lake.asking.spark_sql import check_query, run_without_spark

            check_query(query)
            with stored_lake(directory, conf) as stored:
                show(run_without_spark(stored, query), output)
        except NotStoredError as reason:
            with asking_spark(directory, conf, reason) as answers:
                from barnabas.lake.asking.frames import found

                show(found(answers.tables.sql(query)), output)


@lake.command("as-of")
@click.argument("moment", metavar="OFFSET|TIME|AGE", callback=moment_of)
@click.argument("table")
@LAKE
@click.option("--cluster-id", help="Only this cluster.")
@CONF
@output_options
def as_of(
    moment: AsOf, table: str, directory: Folder, cluster_id: str | None, conf: tuple[str, ...], output: Output
) -> None:
    """Show a table as of an offset of the metadata log, or a time.

    State exists only between batches of the log: OFFSET means the end of the last batch that ends at or before it, TIME the
    end of the last batch appended by then. TABLE is a silver table (topics, partitions, configs, acls, ...), or a gold table
    computed only from silver tables (access, topic_inventory, broker_balance, ...); see barnabas lake tables.
    """
    with lake_failures(directory):
        from barnabas.lake.keeping.manifest import NotStoredError

        try:
            with stored_lake(directory, conf) as stored:
                stored.check((table,), moment)
                _show_stored(stored, table, moment, cluster_id, output)
                return
        except NotStoredError as error:
            reason = error
        from barnabas.lake.asking.opened import check_has_moments

        try:
            check_has_moments(table)
        except KeyError as error:
            raise Failure(str(error)) from None
        with asking_spark(directory, conf, reason) as answers:
            _show_as_of(answers.tables, table, moment, cluster_id, output)


def _show_stored(stored: StoredLake, table: str, moment: AsOf, cluster_id: str | None, output: Output) -> None:
    """Show a history as of a moment, in the order of its columns: those of its key come first."""
    from barnabas.lake.asking.selection import Selection

    cluster = checked_cluster(stored, cluster_id)
    places_of(stored, moment, cluster)
    show(stored.select(Selection(table, order=tuple(stored.state(table).columns)), moment, cluster), output)


def _show_as_of(tables: OpenLake, table: str, moment: AsOf, cluster_id: str | None, output: Output) -> None:
    from barnabas.lake.asking.frames import found
    from barnabas.lake.tables.all import TABLES

    state = tables.as_of(moment, cluster_id)
    try:
        rows, places = state[table], state.places(table)
    except (KeyError, ValueError) as error:
        raise Failure(str(error)) from None
    check_places(places, table)
    for cluster, log, offset in places if state.is_of_metadata(table) else ():
        note(f"{cluster}: after offset {offset} of {log}")
    show(found(rows.orderBy(*TABLES[table].keys)), output)


for _answer in answers.COMMANDS:
    lake.add_command(_answer)
