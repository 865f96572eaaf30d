"""`barnabas kafka-console-share-consumer`: Kafka's script of this name, with its options and its lines."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from barnabas.cli.kafka.client_of_tool import run_share_consumer
from barnabas.cli.kafka.console_tools import TIMESTAMP_TYPES, Formatter, ToolError, parse_properties
from barnabas.cli.kafka.java_tool import JavaTool, java_text, refuse
from barnabas.cli.kafka.kafka_console_consumer import (
    DEPRECATED,
    EXIT_INTERRUPTED,
    FORMATTER,
    formatter_of,
    group_of,
    load,
    number_of,
)
from barnabas.cli.terminal.exit_codes import EXIT_FAILED
from barnabas.cli.terminal.failures import Failure
from barnabas.cli.terminal.output import note
from barnabas.wire.errors import KafkaError

if TYPE_CHECKING:
    from barnabas.client.share_consumer import ShareConsumer
    from barnabas.client.share_consuming.acknowledgements import AcknowledgeType
    from barnabas.client.share_consuming.acquired import ShareRecord

_GROUP = "console-share-consumer"
_POLL_MS = 1_000


class _Wanted(NamedTuple):
    topic: str
    max_messages: int
    timeout_ms: int | None
    fate: str
    reject_on_error: bool


class _Count:
    messages = 0


@click.command("kafka-console-share-consumer", cls=JavaTool, short_help="Show records as a member of a share group.")
@click.option("--topic", metavar="TOPIC", help="The topic to read.")
@click.option("--group", metavar="GROUP", help="The share group to join [console-share-consumer].")
@click.option(
    "--consumer-property", multiple=True, metavar="KEY=VALUE", help="(Deprecated) Same as --command-property."
)
@click.option("--command-property", multiple=True, metavar="KEY=VALUE", help="A setting of the consumer.")
@click.option("--consumer-config", metavar="FILE", help="(Deprecated) Same as --command-config.")
@click.option("--command-config", metavar="FILE", help="Properties file with consumer settings.")
@click.option("--formatter", "formatter_", default=FORMATTER, metavar="CLASS", help="One of Kafka's formatters.")
@click.option("--property", multiple=True, metavar="KEY=VALUE", help="(Deprecated) Same as --formatter-property.")
@click.option(
    "--formatter-property",
    multiple=True,
    metavar="KEY=VALUE",
    help="A property of the formatter: print.key, print.delivery, ...",
)
@click.option("--formatter-config", metavar="FILE", help="Properties file for the formatter.")
@click.option("--max-messages", metavar="N", help="End after this number of records.")
@click.option("--timeout-ms", metavar="MS", help="End if no record arrives for this long.")
@click.option("--reject", is_flag=True, help="Reject the records that are shown.")
@click.option("--release", is_flag=True, help="Release the records that are shown.")
@click.option("--reject-message-on-error", is_flag=True, help="Reject a record that cannot be shown.")
@click.option("--bootstrap-server", metavar="HOST:PORT,...", help="REQUIRED: Brokers to connect to.")
@click.option("--key-deserializer", metavar="CLASS", help="The deserializer of keys.")
@click.option("--value-deserializer", metavar="CLASS", help="The deserializer of values.")
@click.option("--enable-systest-events", is_flag=True, help="Print an event at the end.")
@click.pass_context
def kafka_console_share_consumer(ctx: click.Context, /, **values: Any) -> None:
    """Show records as Kafka's script of this name does. See also: barnabas records consume --share-group."""
    settings, wanted, write = _asked(ctx, values)
    count = _Count()
    try:
        run_share_consumer(settings, lambda consumer: _show(consumer, wanted, write, count))
    except Failure as failure:
        cause = failure.__cause__
        note("ERROR Unknown error when running consumer:")
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


def _asked(ctx: click.Context, values: dict[str, Any]) -> tuple[dict[str, str], _Wanted, Formatter]:
    """Return settings, what is wanted, and the formatter, or refuse the options in Kafka's order."""
    if values["topic"] is None:
        refuse(ctx, "--topic is a required argument")
    if values["bootstrap_server"] is None:
        refuse(ctx, 'Missing required argument "[bootstrap-server]"')
    if values["reject"] and values["release"]:
        refuse(ctx, "At most one of --reject and --release may be specified.")
    for old, name in (("consumer_property", "command_property"), ("consumer_config", "command_config")):
        first, second = old.replace("_", "-"), name.replace("_", "-")
        if values[old] and values[name]:
            refuse(ctx, f"Options --{first} and --{second} cannot be specified together.")
        if values[old]:
            click.echo(DEPRECATED.format(first, second))
            values[name] = values[old]
    from_file, given = load(values["command_config"]), parse_properties(values["command_property"])
    settings = from_file | given | {"bootstrap.servers": values["bootstrap_server"]}
    settings["group.id"] = group_of(ctx, values, from_file, given, "consumer-config") or _GROUP
    settings["share.acknowledgement.mode"] = "explicit"
    settings.setdefault("client.id", "console-share-consumer")
    timeout_ms, most = number_of(ctx, values, "timeout_ms"), number_of(ctx, values, "max_messages")
    wanted = _Wanted(
        values["topic"],
        -1 if most is None else most,
        timeout_ms if timeout_ms is not None and timeout_ms >= 0 else None,
        "REJECT" if values["reject"] else "RELEASE" if values["release"] else "ACCEPT",
        values["reject_message_on_error"],
    )
    return settings, wanted, formatter_of(ctx, values)


async def _show(consumer: ShareConsumer, wanted: _Wanted, write: Formatter, count: _Count) -> None:
    await consumer.subscribe([wanted.topic])
    printer = _Printer(consumer)
    try:
        await _print_all(consumer, wanted, write, count, printer)
        printer.flush()
    except BrokenPipeError:
        printer.give_up()
        note("Unable to write to standard out, closing consumer.")
    except BaseException:
        with contextlib.suppress(BrokenPipeError):
            printer.flush()
        raise


async def _print_all(
    consumer: ShareConsumer, wanted: _Wanted, write: Formatter, count: _Count, printer: _Printer
) -> None:
    from barnabas.client.share_consuming.acknowledgements import AcknowledgeType

    loop = asyncio.get_running_loop()
    heard_at_s = loop.time()
    while True:
        if count.messages >= wanted.max_messages >= 0:
            return
        found = await consumer.poll(_POLL_MS if wanted.timeout_ms is None else min(wanted.timeout_ms, _POLL_MS))
        if not found and wanted.timeout_ms is not None and (loop.time() - heard_at_s) * 1000 > wanted.timeout_ms:
            note("ERROR Error processing message, terminating consumer process:")
            note("org.apache.kafka.common.errors.TimeoutException")
            return
        for record in found:
            if count.messages >= wanted.max_messages >= 0:
                break  # closing the consumer releases the rest
            count.messages += 1
            kind = TIMESTAMP_TYPES[consumer.timestamp_type((record.topic, record.partition))]
            try:
                printer.write(record, write(record, kind), AcknowledgeType[wanted.fate])
            except ToolError as error:
                if not wanted.reject_on_error:
                    raise
                note(f"ERROR Error processing message, rejecting this message:\n{error}")
                consumer.reject(record)
        if found:
            printer.flush()
            heard_at_s = loop.time()
            await asyncio.sleep(0)


class _Printer:
    """The standard output. Records that a closed pipe did not take are not acknowledged, and so released."""

    def __init__(self, consumer: ShareConsumer) -> None:
        self._consumer = consumer
        self._out = sys.stdout.buffer
        self._unflushed: list[tuple[ShareRecord, AcknowledgeType]] = []

    def write(self, record: ShareRecord, data: bytes, fate: AcknowledgeType) -> None:
        self._unflushed.append((record, fate))
        self._out.write(data)

    def flush(self) -> None:
        self._out.flush()
        for record, fate in self._unflushed:
            self._consumer.acknowledge(record, fate)
        self._unflushed.clear()

    def give_up(self) -> None:
        """The pipe is closed: nothing more can be written."""
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
