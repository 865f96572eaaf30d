"""`barnabas records`: produce, consume and delete records.

Parses arguments and prints. `cli.records.input` parses lines into records, `cli.records.output` formats records;
`cli.records.writing` produces, `cli.records.reading` consumes, `client.admin.records` deletes. Exit code 1: some records
could not be produced, consumed or deleted.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

import click
from click.core import ParameterSource

from barnabas.cli.connection.completion import complete_group, complete_topic
from barnabas.cli.connection.connecting import run
from barnabas.cli.connection.options import common_options, dry_run_option, yes_option
from barnabas.cli.connection.partition_arguments import parse_partitions
from barnabas.cli.connection.profiles import Connection
from barnabas.cli.records import reading as record_reading
from barnabas.cli.records import writing as record_writing
from barnabas.cli.records.input import BadLineError, NewRecord, Parser, line_parser, parse_json, parse_lines, tsv_parser
from barnabas.cli.records.output import DecodedRecord
from barnabas.cli.terminal.changes import announce, confirm, show_results
from barnabas.cli.terminal.command_groups import CommandGroup
from barnabas.cli.terminal.exit_codes import EXIT_FAILED
from barnabas.cli.terminal.failures import Failure, failure_of
from barnabas.cli.terminal.output import Output, note
from barnabas.cli.terminal.parsing import parsed_by, time_ms
from barnabas.operations.partitions import Selection, find_partitions
from barnabas.operations.quantities import parse_bytes
from barnabas.operations.records.filters import (
    FORMATS,
    Filter,
    Shown,
    all_of,
    header_filter,
    regex_filter,
    where_filter,
)
from barnabas.wire.errors import KafkaError

if TYPE_CHECKING:
    from barnabas.client.cluster import Cluster
    from barnabas.client.records import ConsumerRecord, TopicPartition

    Place = tuple[str, int]


@click.group(cls=CommandGroup, short_help="Produce, consume and delete records.")
def records() -> None:
    """Produce, consume and delete records.

    \b
    Examples:
      echo 'alice:two apples' | barnabas records produce orders --key-separator :
      barnabas records consume orders --tail 10
      barnabas records consume orders --follow --where 'order.total>=100' -o jsonl
      barnabas records delete orders --before 30d
    """


# --- produce


@records.command("produce", short_help="Produce lines of files or of standard input to a topic.")
@click.argument("topic", shell_complete=complete_topic)
@click.argument("files", nargs=-1, metavar="[FILE]...", type=click.File("rb"))
@click.option(
    "--format",
    "-f",
    "form",
    type=click.Choice(["lines", "json", "tsv"]),
    default="lines",
    show_default=True,
    help="Format of a line: a value; a JSON object with key, value, headers, partition and timestamp; or tab-separated.",
)
@click.option("--key-separator", "-K", metavar="TEXT", help="Separator of key and value, with --format lines.")
@click.option("--key", "-k", metavar="TEXT", help="Key of records that have none.")
@click.option("--partition", "-p", type=click.IntRange(0), help="Partition of records that do not name one.")
@click.option(
    "--header",
    "-H",
    "headers",
    multiple=True,
    metavar="NAME[=VALUE]",
    help="Header to add to all records; may be repeated.",
)
@click.option("--null", metavar="TEXT", help="Text that stands for a null key or value (a tombstone).")
@click.option(
    "--compression",
    type=click.Choice(["none", "gzip", "snappy", "lz4", "zstd"]),
    help="Compression of batches.  [default: none]",
)
@click.option("--transactional-id", metavar="ID", help="Produce all records in one transaction with this id.")
@click.option(
    "--no-create", is_flag=True, help="Fail if the topic does not exist, instead of having the broker create it."
)
@dry_run_option
@common_options
def produce(
    connection: Connection,
    output: Output,
    topic: str,
    files: tuple[BinaryIO, ...],
    form: str,
    key_separator: str | None,
    key: str | None,
    partition: int | None,
    headers: tuple[str, ...],
    null: str | None,
    compression: str | None,
    transactional_id: str | None,
    no_create: bool,
    dry_run: bool,
) -> None:
    """Produce lines of files or of standard input to a topic, one record per line. Shows the partitions and offsets written.

    \b
    Examples:
      barnabas records produce orders < orders.txt
      barnabas records produce orders -K : --compression zstd orders.txt
      barnabas records consume orders -o jsonl | barnabas records produce copies --format json
      echo 'alice:-' | barnabas records produce users -K : --null -
    """
    if key_separator is not None and form != "lines":
        raise click.UsageError("--key-separator can only be used with --format lines.")
    if key_separator == "":
        raise click.UsageError("--key-separator must not be empty.")
    more = tuple(_header(each) for each in headers)
    parse: Parser = _parser(form, key_separator, null)

    def completed() -> Iterator[NewRecord]:
        for file in files or [sys.stdin.buffer]:
            for record in parse_lines(file, parse, file.name if files else None):
                yield record._replace(
                    key=key.encode() if key is not None and record.key is None else record.key,
                    partition=partition if record.partition is None else record.partition,
                    headers=(*record.headers, *more),
                )

    own = {"compression.type": compression, "transactional.id": transactional_id}
    written = record_writing.Written()
    try:
        if dry_run:
            count = sum(1 for _ in completed())
            note(f"would write {count:,} records to {topic}")
            return
        record_writing.produce(connection, own, topic, completed(), written, may_create=not no_create)
    except BadLineError as error:
        raise Failure(str(error), resource=topic, advice=_said(written)) from None
    finally:
        written.show(output, topic)
    if written.failure is not None:
        raise failure_of(written.failure, f"topic {topic}")


def _said(written: record_writing.Written) -> str | None:
    return (
        f"the {written.count:,} records before it were written: fix it and produce the rest" if written.count else None
    )


def _header(text: str) -> tuple[str, bytes | None]:
    name, sign, value = text.partition("=")
    if not name:
        raise click.UsageError(f"--header {text}: must be NAME=VALUE, or NAME for a null value.")
    return name, value.encode() if sign else None


def _parser(form: str, key_separator: str | None, null: str | None) -> Parser:
    if form == "json":
        return parse_json
    return tsv_parser(null) if form == "tsv" else line_parser(key_separator, null)


# --- consume


def _size(text: str) -> int:
    size = parse_bytes(text)
    if not size:
        raise ValueError("must be larger than 0")
    return size


@records.command("consume")
@click.argument(
    "partitions",
    nargs=-1,
    required=True,
    metavar="TOPIC[:PARTITION,...]...",
    callback=parse_partitions,
    shell_complete=complete_topic,
)
@click.option("--from-beginning", is_flag=True, help="Start at the first record; the default without --group.")
@click.option("--offset", metavar="OFFSET", help="Start at this offset; -5 is five before the end.")
@click.option(
    "--from", "from_ms", callback=time_ms, metavar="TIME|AGE", help="Start at the first record at or after this time."
)
@click.option("--tail", type=click.IntRange(1), metavar="N", help="Start N records before the end of each partition.")
@click.option("--max", "-n", "max_records", type=click.IntRange(1), metavar="N", help="Stop after N records.")
@click.option(
    "--max-scanned",
    type=click.IntRange(1),
    metavar="N",
    help="Stop after N records were read, whether they are shown or not.",
)
@click.option(
    "--max-bytes",
    callback=parsed_by(_size),
    metavar="SIZE",
    help="Stop after keys and values of this size were read, such as 500MB; not compressed.",
)
@click.option(
    "--until-end/--follow",
    "until_end",
    default=True,
    help="Stop at the current end of the partitions, or wait for more records until Ctrl-C, which exits with 0."
    "  [default: until-end]",
)
@click.option("--until", "until_ms", callback=time_ms, metavar="TIME|AGE", help="Only records before this time.")
@click.option("--key", metavar="REGEX", help="Only records whose key matches.")
@click.option("--value", metavar="REGEX", help="Only records whose value matches.")
@click.option(
    "--header", "headers", multiple=True, metavar="NAME[=VALUE]", help="Only records with this header; may be repeated."
)
@click.option(
    "--where",
    "conditions",
    multiple=True,
    metavar="PATH=VALUE",
    help="Only records whose value is JSON with this field, such as order.items[0].name; also with != ~ > < >= <=;"
    " may be repeated.",
)
@click.option("--format", "-f", "form", type=click.Choice(FORMATS), help="Format of values.  [default: text]")
@click.option("--key-format", type=click.Choice(FORMATS), help="Format of keys.  [default: as --format]")
@click.option("--values", "values_only", is_flag=True, help="Print only the raw values, one per line.")
@click.option(
    "--raw",
    is_flag=True,
    help="Do not decode records of internal topics such as __consumer_offsets; also implied by --format and --key-format.",
)
@click.option(
    "--group",
    "-g",
    metavar="GROUP",
    shell_complete=complete_group,
    help="Consume as a member of this group, from its committed offsets, and commit the records that were printed.",
)
@click.option(
    "--share-group",
    metavar="GROUP",
    shell_complete=complete_group,
    help="Consume as a member of this share group, and accept the records that were printed. Without --follow, stop when no"
    " record has come for five seconds.",
)
@click.option(
    "--isolation-level",
    type=click.Choice(["read_uncommitted", "read_committed"]),
    default="read_uncommitted",
    show_default=True,
    help="With read_committed, skip records of open and aborted transactions.",
)
@click.pass_context
@common_options
def consume(
    ctx: click.Context,
    connection: Connection,
    output: Output,
    partitions: tuple[Selection, ...],
    from_beginning: bool,
    offset: str | None,
    from_ms: int | None,
    tail: int | None,
    max_records: int | None,
    max_scanned: int | None,
    max_bytes: int | None,
    until_end: bool,
    until_ms: int | None,
    key: str | None,
    value: str | None,
    headers: tuple[str, ...],
    conditions: tuple[str, ...],
    form: str | None,
    key_format: str | None,
    values_only: bool,
    raw: bool,
    group: str | None,
    share_group: str | None,
    isolation_level: str,
) -> None:
    """Show the records of topics or of some of their partitions. By default, from the beginning to the current end.

    Records of __consumer_offsets, __transaction_state, __share_group_state and __remote_log_metadata are decoded. Filters
    apply to the decoded JSON, as in --where data.offset>=100.

    \b
    Examples:
      barnabas records consume orders
      barnabas records consume orders:0 --offset 1200 --max 5
      barnabas records consume orders --from 2h --key '^alice$' --follow
      barnabas records consume events --where 'user.age>30' --format json -o jsonl
      barnabas records consume orders --group billing --max 100
      barnabas records consume jobs --share-group workers --follow
    """
    begins = [
        name
        for name, given in (
            ("--from-beginning", from_beginning),
            ("--offset", offset is not None),
            ("--from", from_ms is not None),
            ("--tail", tail is not None),
        )
        if given
    ]
    if len(begins) > 1:
        raise click.UsageError(f"{begins[0]} and {begins[1]} cannot both be given.")
    if group is not None and (any(each.partitions for each in partitions) or begins not in ([], ["--from-beginning"])):
        raise click.UsageError("--group cannot be combined with partitions, --offset, --from or --tail.")
    if share_group is not None:
        _refuse_with_share_group(ctx, partitions)
    wanted = _filters(key, value, headers, conditions)
    begin = record_reading.Begin(_offset(offset), from_ms, tail)
    stop = record_reading.Stop(max_records, not until_end, until_ms, max_scanned, max_bytes)
    decodes = not (raw or form or key_format or values_only) and _has_decodable(partitions)
    text = form or "text"
    show = record_reading.Show(
        output,
        key_format or text,
        text,
        values_only=values_only,
        decode=_in_clear if decodes and share_group is None else None,
        is_shared=share_group is not None,
    )
    if share_group is not None:
        from barnabas.cli.records.sharing import consume_shared

        consume_shared(connection, partitions, share_group, stop, show)
        return
    record_reading.consume(connection, partitions, group, from_beginning, isolation_level, begin, stop, wanted, show)


def _refuse_with_share_group(ctx: click.Context, partitions: Iterable[Selection]) -> None:
    """Refuse what a share group decides itself, and filters, which would accept records that nobody has seen."""
    if any(each.partitions for each in partitions):
        raise click.UsageError("--share-group reads whole topics.")
    for param in ctx.command.params:
        name = param.name or ""
        if name in _NOT_SHARED and ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            raise click.UsageError(f"--share-group cannot be combined with {param.opts[0]}.")


_NOT_SHARED = {
    *("from_beginning", "offset", "from_ms", "tail", "max_scanned", "max_bytes", "until_ms", "key", "value", "headers"),
    *("conditions", "group", "isolation_level"),
}


def _has_decodable(partitions: Iterable[Selection]) -> bool:
    """Return whether a topic has records of Kafka's own. Raises Failure for the metadata log."""
    names = [each.topic for each in partitions if each.topic.startswith("__")]
    if not names:
        return False
    from barnabas.config.internal_topics import CLUSTER_METADATA_TOPIC
    from barnabas.operations.records.internal_records import (
        is_decodable,  # only for internal topics: it needs all record types
    )

    if CLUSTER_METADATA_TOPIC in names:
        advice = "barnabas metadata --help, with --bootstrap-controller; or barnabas dump, for files"
        raise Failure(
            "brokers do not serve the metadata log", resource=f"topic {CLUSTER_METADATA_TOPIC}", advice=advice
        )
    return any(map(is_decodable, names))


def _in_clear(record: ConsumerRecord) -> Shown:
    """Return a record of an internal topic with its key and value as JSON, or the same record if it cannot be decoded."""
    from barnabas.operations.records.internal_records import decode_internal

    found = decode_internal(record.topic, record.key, record.value)
    if found is None:
        return record
    key, value = (None if each is None else each.encode("utf-8", "surrogatepass") for each in (found.key, found.value))
    parts = (record.topic, record.partition, record.offset, record.timestamp)
    return DecodedRecord(*parts, key, value, record.headers, found.type, found.key_data, found.value_data)


def _filters(key: str | None, value: str | None, headers: Iterable[str], conditions: Iterable[str]) -> Filter | None:
    try:
        filters = [
            *([regex_filter("key", key)] if key is not None else []),
            *([regex_filter("value", value)] if value is not None else []),
            *map(header_filter, headers),
            *map(where_filter, conditions),
        ]
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    return all_of(filters) if filters else None


def _offset(text: str | None) -> int | None:
    if text is None:
        return None
    if not re.fullmatch(r"-?[0-9]+", text):
        raise click.UsageError(f"--offset {text}: must be a number; negative numbers count from the end.")
    return int(text)


# --- delete


@records.command("delete")
@click.argument(
    "partitions",
    nargs=-1,
    required=True,
    metavar="TOPIC[:PARTITION,...]...",
    callback=parse_partitions,
    shell_complete=complete_topic,
)
@click.option("--before-offset", type=click.IntRange(0), metavar="OFFSET", help="Delete records before this offset.")
@click.option("--before", "before_ms", callback=time_ms, metavar="TIME|AGE", help="Delete records before this time.")
@click.option("--all", "everything", is_flag=True, help="Delete all records.")
@yes_option
@dry_run_option
@common_options
def delete(
    connection: Connection,
    output: Output,
    partitions: tuple[Selection, ...],
    before_offset: int | None,
    before_ms: int | None,
    everything: bool,
    yes: bool,
    dry_run: bool,
) -> None:
    """Delete the oldest records of topics or of some of their partitions. This cannot be undone. Asks for confirmation.

    Partitions are independent: one that ends before --before-offset is deleted to its end, and one that fails does not stop the
    others. Exits with 1 if a partition failed, or if all partitions end before --before-offset.

    \b
    Examples:
      barnabas records delete orders --before 30d --dry-run
      barnabas records delete orders:0 --before-offset 1200
      barnabas records delete test-results --all --yes
    """
    given = [before_offset is not None, before_ms is not None, everything]
    if sum(given) != 1:
        raise click.UsageError("Give exactly one of --before-offset, --before and --all.")

    async def work(cluster: Cluster) -> None:
        from barnabas.client.admin.records import Records

        keys = (await find_partitions(cluster, partitions)).keys
        steps, failed = await _deletions(Records(cluster), keys, before_offset, before_ms)
        announce(map(str, steps), dry_run=dry_run)
        for place, error in failed.items():
            failure_of(error, f"partition {place}").show()
        if not steps and not failed:
            note("nothing to delete")
        if dry_run or not steps:
            if failed:
                sys.exit(EXIT_FAILED)
            return
        total = sum(step.end - step.first for step in steps)
        confirm(f"Permanently delete up to {total:,} records?", yes=yes)
        results = await Records(cluster).delete_records({step.place: step.end for step in steps})
        show_results(
            output,
            ("topic", "partition", "lowWatermark"),
            {**results, **failed},
            lambda place, low: {"topic": place.topic, "partition": place.partition, "lowWatermark": low},
        )

    run(connection, work)


class _Deletion(NamedTuple):
    """The records of a partition to delete: from `first` up to but excluding `end`. `log_end` is its end offset."""

    place: TopicPartition
    first: int
    end: int
    log_end: int

    def __str__(self) -> str:
        everything = ", all of them" if self.end == self.log_end else ""
        return f"delete {self.end - self.first:,} records of {self.place}: {self.first} to {self.end - 1}{everything}"


async def _deletions(
    records: Any, keys: list[Place], before_offset: int | None, before_ms: int | None
) -> tuple[list[_Deletion], dict[TopicPartition, KafkaError]]:
    """Return the records to delete in each partition, and errors of partitions that cannot be asked.

    A partition that ends before `before_offset` is deleted to its end. Raises Failure if all partitions with records do.
    """
    from barnabas.client.admin.records import OffsetSpec
    from barnabas.client.records import TopicPartition

    places = [TopicPartition(*key) for key in keys]
    asked: list[Mapping[Any, Any]] = [
        await records.list_offsets(dict.fromkeys(places, OffsetSpec.EARLIEST)),
        await records.list_offsets(dict.fromkeys(places, OffsetSpec.LATEST)),
    ]
    if before_ms is not None:
        asked.append(await records.list_offsets(dict.fromkeys(places, before_ms)))
    steps: list[_Deletion] = []
    failed: dict[TopicPartition, KafkaError] = {}
    for place in places:
        answers = [answer[place] for answer in asked]
        error = next((each for each in answers if isinstance(each, KafkaError)), None)
        if error is not None:
            failed[place] = error
            continue
        first, log_end, *found = (each.offset for each in answers)
        end = log_end if before_offset is None else min(before_offset, log_end)
        if found and found[0] >= 0:
            end = found[0]
        steps.append(_Deletion(place, first, end, log_end))
    filled = [step for step in steps if step.first < step.log_end]
    if before_offset is not None and filled and all(before_offset > step.log_end for step in filled):
        text = f"offset {before_offset} is after its end offset {filled[0].log_end}"
        raise Failure(text, resource=f"partition {filled[0].place}", advice="delete all records with --all")
    return [step for step in steps if step.first < step.end], failed
