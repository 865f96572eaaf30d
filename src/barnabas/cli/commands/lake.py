"""`barnabas lake`: what ever happened to clusters, as tables, kept by Spark.

Reads arguments and shows; the lake itself is in `barnabas.lake`, which is imported when a command runs, and needs the extra
`lake` and Java. What Spark says goes to `log/spark.log` of the lake.
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
from barnabas.cli.terminal.failures import Failure
from barnabas.cli.terminal.output import Output, Progress, columns, note
from barnabas.cli.terminal.parsing import moment_of
from barnabas.metadata.as_of import AsOf

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from barnabas.lake.keeping.feeds import Feed
    from barnabas.lake.keeping.runner import Batch
    from barnabas.lake.keeping.store import Writer


@click.group(short_help="What ever happened to clusters, as tables of Spark.")
def lake() -> None:
    """What ever happened to clusters, as tables of Spark.

    A lake is a directory. `run` fills it from the logs of Kafka or barnabas (metadata, groups, transactions) with each record
    and, in the silver tables, what was true when. Running again reads only what is new.

    \b
    Examples:
      barnabas lake run /var/lib/kafka/data --lake lake
      barnabas lake run node1/data node2/data node3/data --lake lake --follow
      barnabas lake run --bootstrap-controller localhost:9093 --lake lake
      barnabas lake sql "select name, valid_from_time from topics where valid_to_offset is null" --lake lake
      barnabas lake as-of 2026-01-31T12:00 configs --lake lake
      barnabas lake as-of 5000 partitions --lake lake -o json
    """


# --- run -------------------------------------------------------------------------------------------------------------


@lake.command("run")
@click.argument("sources", nargs=-1, metavar="[SOURCE]...", type=click.Path(exists=True, path_type=Path))
@LAKE
@click.option("--follow", is_flag=True, help="Go on until Ctrl-C, looking for more every so often.")
@click.option("--interval", type=click.FloatRange(min=0.1), default=10.0, show_default=True, help="How often: seconds.")
@click.option("--voters", metavar="ID,...", help="The voters of the quorum, where its log does not name them.")
@click.option("--include-uncommitted", is_flag=True, help="Also take what no majority is known to have.")
@click.option("--allow-data-loss", is_flag=True, help="Go on where a source has lost what was not read yet.")
@click.option("--cluster-id", help="Whose logs they are, where no meta.properties says so.")
@click.option("--option", "source_options", multiple=True, metavar="KEY=VALUE", help="Any option of the data sources.")
@click.option(
    "--traffic/--no-traffic",
    default=None,
    help="Also read the records of topics, and sum up how much, when and by which keys.",
)
@click.option(
    "--observe/--no-observe",
    default=None,
    help="Also ask the live cluster (--bootstrap-server) for sizes on disk, the lag of its quorum and of its groups.",
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
    """Fill the lake with what is new.

    SOURCE is a log dir (with meta.properties), of one node or of several of a cluster, or the directory of a metadata log. With
    --bootstrap-controller the metadata log is read from the quorum that runs there. Without either, the sources of the last
    run are read. Whether --traffic and --observe were said is remembered too.

    Only what the quorum has committed is taken: of a cluster with several voters, give the dirs of a majority.
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
    """Whether Ctrl-C or SIGTERM came: a batch under way is left to the next run, and Spark is not torn out of its calls."""
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
    """On a cluster: what every executor needs, before something fails in the middle."""
    if (spark.sparkContext.master or "local").startswith("local"):
        return
    from barnabas.lake.spark.executors import ExecutorsError, check

    try:
        check(spark, sorted({str(directory.absolute()), *(path for feed in feeds for path in feed.paths)}))
    except ExecutorsError as error:
        raise Failure(str(error), resource=str(spark.sparkContext.master)) from None


def _run(spark: SparkSession, writer: Writer, feeds: list[Feed], interval_s: float | None) -> None:
    from barnabas.lake.keeping.runner import Runner

    total = {feed.name: 0 for feed in feeds}
    bad = 0
    with _interrupts() as is_interrupted, Progress("reading", unit="records") as progress:

        def watch(batch: Batch) -> None:
            nonlocal bad
            total[batch.feed] += batch.rows
            bad += batch.quarantined
            progress.update(sum(total.values()))
            if interval_s is not None:
                note(f"{batch.feed}: {batch.rows:,} records in {batch.seconds:.1f} s")

        runner = Runner(spark, writer, watch=watch)
        if interval_s is None:
            runner.run(feeds, is_interrupted)
        else:
            runner.follow(feeds, interval_s, is_interrupted)
        if is_interrupted():
            note("stopped; the next run goes on from here")
            if interval_s is None:
                raise click.Abort
    for name, count in total.items():
        note(f"{name}: {count:,} new records")
    if bad:
        note(f"warning: {bad:,} places could not be read: barnabas lake sql 'select * from quarantine'")


# --- rebuild ---------------------------------------------------------------------------------------------------------


@lake.command("rebuild")
@LAKE
@click.option("--without-missing", is_flag=True, help="Leave out sources that are not there any more, and their rows.")
@CONF
@connection_options
def rebuild(directory: Path, without_missing: bool, conf: tuple[str, ...], connection: Connection) -> None:
    """Make the lake anew from the sources that it remembers, beside the old one, and swap them at the end.

    For a lake of another version, or one whose source was re-created or truncated. The new lake has what the sources have now:
    what retention or a snapshot has removed from them since is no longer in it, and begins at a snapshot, marked as not exact.
    What was observed of live clusters is taken along as it is. Until the swap, and if the rebuild fails, the lake is as it was;
    a run a while after it removes the old data.
    """
    with lake_failures(directory):
        from barnabas.lake.keeping.store import LakeFormatError, Writer, read_settings
        from barnabas.lake.tables.all import OBSERVING

        known = read_settings(directory).sources
        if not known:
            raise Failure(
                "remembers no source", resource=str(directory), advice="make a new one with: barnabas lake run"
            )
        with Writer(directory) as writer:
            writer.open_anew()
            feeds = remembered_feeds(known, connection, without_missing=without_missing)
            for cluster in sorted(known.keys() - {feed.cluster_id for feed in feeds}):
                note(f"warning: cluster {cluster} has no source any more, and is left out")
            try:
                writer.take_along([stream.records.path for stream in OBSERVING], _is_observing)
            except LakeFormatError as error:
                note(f"warning: what was observed of live clusters is left behind: {error}")
            with lake_session(directory, conf) as spark:
                _run(spark, writer, feeds, None)
            writer.swap()


def _is_observing(stream: str) -> bool:
    return "/kafka_cluster/" in stream


# --- questions -------------------------------------------------------------------------------------------------------


@lake.command("tables")
@LAKE
@output_options
def tables(directory: Path, output: Output) -> None:
    """List the tables, what each answers, and how large it is. Needs no Java.

    Tables of gold are made of the others when they are asked for, and have no size.
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
                }
            )
        output.rows(columns("table", "layer", "rows", "bytes", "parts", "question"), rows)


@lake.command("sql")
@click.argument("query")
@LAKE
@CONF
@output_options
def sql(query: str, directory: Path, conf: tuple[str, ...], output: Output) -> None:
    """Ask the tables, which are views by their names, a QUERY in Spark's SQL.

    All tables are of the same moment, even while a run goes on.
    """
    with lake_failures(directory), opened(directory, conf) as tables:
        show(tables.sql(query), output)


@lake.command("as-of")
@click.argument("moment", metavar="OFFSET|TIME", callback=moment_of)
@click.argument("table")
@LAKE
@click.option("--cluster-id", help="Of this cluster alone.")
@CONF
@output_options
def as_of(
    moment: AsOf, table: str, directory: Path, cluster_id: str | None, conf: tuple[str, ...], output: Output
) -> None:
    """Show what was true after an offset of the metadata log, or at a time.

    States are those between batches of the log: OFFSET counts as the last end of a batch at or before it, TIME as that of the
    last batch appended by then. TABLE is a silver table (topics, partitions, configs, acls, ...), or one of gold that is made
    of such tables alone (access, topic_inventory, broker_balance, ...), as it would have been; see barnabas lake tables.
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
                "the lake knows of nothing that was before this",
                resource=table,
                advice="see its first offsets with lake sql",
            )
        for cluster, log, offset in places if state.is_of_metadata(table) else ():
            note(f"{cluster}: after offset {offset} of {log}")
        show(rows.orderBy(*TABLES[table].keys), output)


for _answer in answers.COMMANDS:
    lake.add_command(_answer)
