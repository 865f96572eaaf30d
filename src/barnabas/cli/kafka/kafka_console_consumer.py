"""`barnabas kafka-console-consumer`: Kafka's script of this name, with its options and its lines."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import re
import signal
import sys
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import click

from barnabas.cli.kafka.client_of_tool import load_settings, run_consumer
from barnabas.cli.kafka.console_tools import TIMESTAMP_TYPES, Formatter, ToolError, formatter, parse_properties
from barnabas.cli.kafka.java_tool import JavaTool, java_text, refuse
from barnabas.cli.terminal.exit_codes import EXIT_FAILED
from barnabas.cli.terminal.failures import Failure
from barnabas.cli.terminal.output import note
from barnabas.wire.errors import KafkaError

if TYPE_CHECKING:
    from barnabas.client.consumer import Consumer, ConsumerRecord

FORMATTER = "org.apache.kafka.tools.consumer.DefaultMessageFormatter"
EXIT_INTERRUPTED = 128 + signal.SIGINT  # of a JVM
_MAX_UNFLUSHED = 256
DEPRECATED = "Option --{} is deprecated and will be removed in a future version. Use --{} instead."


class _Wanted(NamedTuple):
    topic: str | None
    include: str | None
    partition: int | None
    offset: int | str
    max_messages: int
    timeout_ms: int | None
    skip_on_error: bool


@click.command("kafka-console-consumer", cls=JavaTool, short_help="Show records as Kafka's script does.")
@click.option("--topic", metavar="TOPIC", help="The topic to read.")
@click.option("--include", metavar="REGEX", help="A regular expression for the topics to read.")
@click.option("--partition", metavar="NUMBER", help="The partition to read, from its end unless --offset is given.")
@click.option("--offset", metavar="OFFSET", help="The offset to begin at: a number, earliest or latest [latest].")
@click.option(
    "--consumer-property", multiple=True, metavar="KEY=VALUE", help="(Deprecated) Same as --command-property."
)
@click.option("--command-property", multiple=True, metavar="KEY=VALUE", help="A setting of the consumer.")
@click.option("--consumer.config", "consumer_config", metavar="FILE", help="(Deprecated) Same as --command-config.")
@click.option("--command-config", metavar="FILE", help="Properties file with consumer settings.")
@click.option("--formatter", "formatter_", default=FORMATTER, metavar="CLASS", help="One of Kafka's formatters.")
@click.option("--property", multiple=True, metavar="KEY=VALUE", help="(Deprecated) Same as --formatter-property.")
@click.option(
    "--formatter-property",
    multiple=True,
    metavar="KEY=VALUE",
    help="A property of the formatter: print.key, key.separator, ...",
)
@click.option("--formatter-config", metavar="FILE", help="Properties file for the formatter.")
@click.option("--from-beginning", is_flag=True, help="Begin with the first record if the group has no offset.")
@click.option("--max-messages", metavar="N", help="End after this number of records.")
@click.option("--timeout-ms", metavar="MS", help="End if no record arrives for this long.")
@click.option("--skip-message-on-error", is_flag=True, help="Skip a record that cannot be shown.")
@click.option("--bootstrap-server", metavar="HOST:PORT,...", help="REQUIRED: Brokers to connect to.")
@click.option("--key-deserializer", metavar="CLASS", help="The deserializer of keys.")
@click.option("--value-deserializer", metavar="CLASS", help="The deserializer of values.")
@click.option("--enable-systest-events", is_flag=True, help="Print an event at the end.")
@click.option("--isolation-level", metavar="LEVEL", help="read_committed or read_uncommitted [read_uncommitted].")
@click.option("--group", metavar="GROUP", help="The group to join.")
@click.pass_context
def kafka_console_consumer(ctx: click.Context, /, **values: Any) -> None:
    """Show records as Kafka's script of this name does. See also: barnabas records consume."""
    _check(ctx, values)
    for old, new, name in (
        ("consumer-property", "command-property", "command_property"),
        ("consumer.config", "command-config", "command_config"),
    ):
        if given := values[re.sub("[.-]", "_", old)]:
            click.echo(DEPRECATED.format(old, new))
            values[name] = given
    settings = _settings(ctx, values)
    wanted = _wanted(ctx, values)
    write = formatter_of(ctx, values)
    count = _Count()
    try:
        _consume(settings, wanted, write, count)
    except Failure as failure:
        cause = failure.__cause__
        note(java_text(cause) if isinstance(cause, KafkaError) else failure.message)
        note(f"Processed a total of {count.messages} messages")
        sys.exit(EXIT_FAILED)
    except ToolError as error:
        note(f"ERROR Unknown error when running consumer:\n{error}")
        note(f"Processed a total of {count.messages} messages")
        sys.exit(EXIT_FAILED)
    except KeyboardInterrupt:
        note(f"Processed a total of {count.messages} messages")
        sys.exit(EXIT_INTERRUPTED)
    sys.stdout.flush()
    note(f"Processed a total of {count.messages} messages")
    if values["enable_systest_events"]:
        click.echo("shutdown_complete")


class _Count:
    messages = 0


def _check(ctx: click.Context, values: dict[str, Any]) -> None:
    if (values["topic"] is None) == (values["include"] is None):
        refuse(ctx, "Exactly one of the following arguments is required: [topic], [include]")
    if values["partition"] is not None:
        if values["topic"] is None:
            refuse(ctx, "The topic is required when partition is specified.")
        if values["from_beginning"] and values["offset"] is not None:
            refuse(ctx, "Options from-beginning and offset cannot be specified together.")
    elif values["offset"] is not None:
        refuse(ctx, "The partition is required when offset is specified.")
    if values["bootstrap_server"] is None:
        refuse(ctx, 'Missing required argument "[bootstrap-server]"')
    if values["consumer_property"] and values["command_property"]:
        refuse(ctx, "Options --consumer-property and --command-property cannot be specified together.")
    if values["consumer_config"] and values["command_config"]:
        refuse(ctx, "Options --consumer.config and --command-config cannot be specified together.")


def load(path: str | None) -> dict[str, str]:
    try:
        return load_settings(path)
    except OSError:
        _failed(f'Exception in thread "main" java.nio.file.NoSuchFileException: {path}')


def _failed(message: str) -> NoReturn:
    note(message)
    sys.exit(EXIT_FAILED)


def _settings(ctx: click.Context, values: dict[str, Any]) -> dict[str, str]:
    from_file, given = load(values["command_config"]), parse_properties(values["command_property"])
    group = group_of(ctx, values, from_file, given)
    if group is not None and values["partition"] is not None:
        refuse(ctx, "Options group and partition cannot be specified together.")
    settings = from_file | given
    reset = settings.get("auto.offset.reset")
    if reset is None:
        settings["auto.offset.reset"] = "earliest" if values["from_beginning"] else "latest"
    elif values["from_beginning"] and reset != "earliest":
        text = (
            f"Can't simultaneously specify --from-beginning and 'auto.offset.reset={reset}', please remove one option"
        )
        _failed(text)
    settings["bootstrap.servers"] = values["bootstrap_server"]
    settings.setdefault("client.id", "console-consumer")
    settings["isolation.level"] = values["isolation_level"] or settings.get("isolation.level", "read_uncommitted")
    if group is not None:
        settings["group.id"] = group
    else:
        settings["group.id"] = f"console-consumer-{random.randrange(100_000)}"
        settings.setdefault("enable.auto.commit", "false")
    return settings


def _wanted(ctx: click.Context, values: dict[str, Any]) -> _Wanted:
    offset: int | str = "earliest" if values["from_beginning"] else "latest"
    given = values["offset"]
    if given is not None:
        if given.lower() in ("earliest", "latest"):
            offset = given.lower()
        elif re.fullmatch(r"\+?\d+", given, re.ASCII):
            offset = int(given)
        else:
            valid = "'earliest', 'latest', or a non-negative long"
            refuse(ctx, f"The provided offset value '{given}' is incorrect. Valid values are {valid}.")
    numbers = {}
    for name in ("partition", "max_messages", "timeout_ms"):
        numbers[name] = number_of(ctx, values, name)
    timeout_ms = numbers["timeout_ms"]
    return _Wanted(
        values["topic"],
        values["include"],
        numbers["partition"],
        offset,
        -1 if numbers["max_messages"] is None else numbers["max_messages"],
        timeout_ms if timeout_ms is not None and timeout_ms >= 0 else None,
        values["skip_message_on_error"],
    )


def number_of(ctx: click.Context, values: dict[str, Any], name: str) -> int | None:
    """Return the number that an option has."""
    text = values[name]
    if text is not None and not re.fullmatch(r"[+-]?\d+", text, re.ASCII):
        refuse(ctx, f"Cannot parse argument '{text}' of option {name.replace('_', '-')}")
    return None if text is None else int(text)


def group_of(
    ctx: click.Context,
    values: dict[str, Any],
    from_file: dict[str, str],
    given: dict[str, str],
    config_option: str = "consumer.config",
) -> str | None:
    """Return the group that is named in one place or more."""
    places = (values["group"], from_file.get("group.id"), given.get("group.id"))
    groups = list(dict.fromkeys(group for group in places if group is not None))
    if len(groups) > 1:
        found = ", ".join(f"'{group}'" for group in groups)
        refuse(
            ctx,
            "The group ids provided in different places (directly using '--group', via '--consumer-property', or via "
            f"'--{config_option}') do not match. Detected group ids: {found}",
        )
    return groups[0] if groups else None


def formatter_of(ctx: click.Context, values: dict[str, Any]) -> Formatter:
    """Return the formatter that the options name."""
    if values["formatter_property"] and values["property"]:
        refuse(ctx, "Options --property and --formatter-property cannot be specified together.")
    if values["property"]:
        click.echo(DEPRECATED.format("property", "formatter-property"))
    given = load(values["formatter_config"])
    for side in ("key", "value"):
        if values[f"{side}_deserializer"]:
            given[f"{side}.deserializer"] = values[f"{side}_deserializer"]
    given |= parse_properties(values["formatter_property"] or values["property"])
    try:
        return formatter(values["formatter_"], given)
    except ToolError as error:
        refuse(ctx, str(error))


def _consume(settings: dict[str, str], wanted: _Wanted, write: Formatter, count: _Count) -> None:
    async def work(consumer: Consumer) -> None:
        await _begin(consumer, wanted)
        await _show(consumer, wanted, write, count)

    run_consumer(settings, work)


async def _begin(consumer: Consumer, wanted: _Wanted) -> None:
    if wanted.partition is None:
        await consumer.subscribe([wanted.topic] if wanted.topic is not None else re.compile(wanted.include or ""))
        return
    place = (wanted.topic or "", wanted.partition)
    consumer.assign([place])
    if isinstance(wanted.offset, int):
        consumer.seek(place, wanted.offset)
    elif wanted.offset == "earliest":
        consumer.seek_to_beginning()
    else:
        consumer.seek_to_end()


async def _show(consumer: Consumer, wanted: _Wanted, write: Formatter, count: _Count) -> None:
    printer = _Printer(consumer)
    try:
        await _print_all(consumer, wanted, write, count, printer)
        printer.flush()
    except BrokenPipeError:
        printer.give_up()
        note("Unable to write to standard out, closing consumer.")
    except BaseException:
        with contextlib.suppress(BrokenPipeError):
            printer.flush()  # before the consumer commits
        raise


async def _print_all(consumer: Consumer, wanted: _Wanted, write: Formatter, count: _Count, printer: _Printer) -> None:
    while count.messages < wanted.max_messages or wanted.max_messages == -1:
        try:
            if wanted.timeout_ms is None:
                record = await _next(consumer, printer)
            else:
                async with asyncio.timeout(wanted.timeout_ms / 1000):
                    record = await _next(consumer, printer)
        except TimeoutError:
            note("ERROR Error processing message, terminating consumer process:")
            note("org.apache.kafka.common.errors.TimeoutException")
            return
        count.messages += 1
        kind = TIMESTAMP_TYPES[consumer.timestamp_type((record.topic, record.partition))]
        try:
            printer.write(record, write(record, kind))
        except ToolError as error:
            if not wanted.skip_on_error:
                raise
            note(f"ERROR Error processing message, skipping this message:\n{error}")


async def _next(consumer: Consumer, printer: _Printer) -> ConsumerRecord:
    """Return the next record. Flushes the output before it waits for one."""
    from barnabas.client.consumer import ConsumerRecord

    if consumer.has_buffered():  # perhaps only markers
        await asyncio.sleep(0)  # Ctrl-C and heartbeats need a wait
        for (topic, partition), (record,) in (await consumer.getmany(max_records=1)).items():
            return ConsumerRecord(topic, partition, *record)
    printer.flush()
    return await consumer.getone()


class _Printer:
    """The standard output. Records that a closed pipe did not take are not committed."""

    def __init__(self, consumer: Consumer) -> None:
        self._consumer = consumer
        self._out = sys.stdout.buffer
        self._unflushed: dict[tuple[str, int], int] = {}  # the first offset of each partition
        self._count = 0

    def write(self, record: ConsumerRecord, data: bytes) -> None:
        self._unflushed.setdefault((record.topic, record.partition), record.offset)
        self._out.write(data)
        self._count += 1
        if self._count >= _MAX_UNFLUSHED:
            self.flush()

    def flush(self) -> None:
        self._out.flush()
        self._unflushed.clear()
        self._count = 0

    def give_up(self) -> None:
        """Go back to the first record that was not flushed, so that the consumer commits its offset. The pipe is closed."""
        for place, offset in self._unflushed.items():
            if place in self._consumer.assignment():
                self._consumer.seek(place, offset)
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
