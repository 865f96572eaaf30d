"""`barnabas kafka-console-producer`: Kafka's script of this name, with its options."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NoReturn

import click

from barnabas.cli.kafka.client_of_tool import load_settings, run_producer
from barnabas.cli.kafka.console_tools import LineReader, ToolError, parse_properties
from barnabas.cli.kafka.java_tool import JavaTool, java_text, refuse
from barnabas.cli.records.input import NewRecord
from barnabas.cli.terminal.exit_codes import EXIT_FAILED
from barnabas.cli.terminal.failures import Failure
from barnabas.cli.terminal.output import note
from barnabas.cli.terminal.slow_input import beside, may_be_slow
from barnabas.wire.errors import KafkaError

if TYPE_CHECKING:
    from barnabas.client.producer import Delivery, Producer

_READER = "org.apache.kafka.tools.LineMessageReader"
_SETTINGS = {
    "timeout": ("linger.ms", "1000"),
    "request_required_acks": ("acks", "-1"),
    "request_timeout_ms": ("request.timeout.ms", "1500"),
    "message_send_max_retries": ("retries", "3"),
    "retry_backoff_ms": ("retry.backoff.ms", "100"),
    "max_memory_bytes": ("buffer.memory", str(32 << 20)),
    "batch_size": ("batch.size", "16384"),
    "max_partition_memory_bytes": ("batch.size", "16384"),
    "metadata_expiry_ms": ("metadata.max.age.ms", "300000"),
    "max_block_ms": ("max.block.ms", "60000"),
}
_TOGETHER = (
    ("command_config", "producer.config", "producer_config"),
    ("command_property", "producer-property", "producer_property"),
    ("reader_property", "property", "property"),
)


@click.command("kafka-console-producer", cls=JavaTool, short_help="Write lines as Kafka's script does.")
@click.option("--topic", metavar="TOPIC", help="REQUIRED: The topic to write to.")
@click.option("--bootstrap-server", metavar="HOST:PORT,...", help="REQUIRED: Brokers to connect to.")
@click.option("--sync", is_flag=True, help="Wait for each record before sending the next.")
@click.option(
    "--compression-codec", is_flag=False, flag_value="gzip", metavar="[CODEC]", help="none, gzip, snappy, lz4 or zstd."
)
@click.option("--batch-size", metavar="BYTES", help="batch.size [16384].")
@click.option("--message-send-max-retries", metavar="N", help="retries [3].")
@click.option("--retry-backoff-ms", metavar="MS", help="retry.backoff.ms [100].")
@click.option("--timeout", metavar="MS", help="linger.ms [1000].")
@click.option("--request-required-acks", metavar="ACKS", help="acks [-1].")
@click.option("--request-timeout-ms", metavar="MS", help="request.timeout.ms [1500].")
@click.option("--metadata-expiry-ms", metavar="MS", help="metadata.max.age.ms [300000].")
@click.option("--max-block-ms", metavar="MS", help="max.block.ms [60000].")
@click.option("--max-memory-bytes", metavar="BYTES", help="buffer.memory [33554432].")
@click.option("--max-partition-memory-bytes", metavar="BYTES", help="(Deprecated) batch.size.")
@click.option("--line-reader", default=_READER, metavar="CLASS", help=f"Only {_READER} is supported.")
@click.option("--socket-buffer-size", metavar="BYTES", help="Has no effect.")
@click.option("--property", multiple=True, metavar="KEY=VALUE", help="(Deprecated) Same as --reader-property.")
@click.option(
    "--reader-property",
    multiple=True,
    metavar="KEY=VALUE",
    help="A property of the reader: parse.key, key.separator, ...",
)
@click.option("--reader-config", metavar="FILE", help="Properties file for the reader.")
@click.option(
    "--producer-property", multiple=True, metavar="KEY=VALUE", help="(Deprecated) Same as --command-property."
)
@click.option("--command-property", multiple=True, metavar="KEY=VALUE", help="A setting of the producer.")
@click.option("--producer.config", "producer_config", metavar="FILE", help="(Deprecated) Same as --command-config.")
@click.option("--command-config", metavar="FILE", help="Properties file with producer settings.")
@click.pass_context
def kafka_console_producer(ctx: click.Context, /, **values: Any) -> None:
    """Write lines of the standard input as Kafka's script of this name does. See also: barnabas records produce."""
    if values["topic"] is None:
        refuse(ctx, 'Missing required argument "[topic]"')
    _check_together(ctx, values)
    servers = values["bootstrap_server"]
    if servers is None or not servers.strip():
        refuse(ctx, "Error while validating the bootstrap address\n")
    if not all(re.search(r":\d+$", address.strip()) for address in servers.split(",")):
        refuse(ctx, "Please provide valid host:port like host1:9091,host2:9092\n")
    try:
        reader = _reader(values)
        settings = _settings(values)
    except OSError as error:
        _failed(f"java.nio.file.NoSuchFileException: {error.filename}")
    except ToolError as error:
        _failed(f"org.apache.kafka.common.KafkaException: {error}")
    try:
        _produce(settings, values["topic"], reader.records(_lines()), sync=values["sync"])
    except ToolError as error:
        _failed(f"org.apache.kafka.common.KafkaException: {error}")
    except Failure as failure:
        cause = failure.__cause__
        _failed(java_text(cause) if isinstance(cause, KafkaError) else failure.message)


def _failed(message: str) -> NoReturn:
    note(message)
    sys.exit(EXIT_FAILED)


def _check_together(ctx: click.Context, values: dict[str, Any]) -> None:
    for new, old, name in _TOGETHER:
        if values[new] and values[name]:
            refuse(ctx, f"Options --{new.replace('_', '-')} and --{old} cannot be specified together.")
    for new, old, name in (_TOGETHER[1], _TOGETHER[0], _TOGETHER[2]):
        if values[name]:
            instead = new.replace("_", "-")
            click.echo(
                f"Warning: --{old} is deprecated and will be removed in a future version. Use --{instead} instead."
            )
            values[new] = values[name]
    if values["max_partition_memory_bytes"] is not None:
        click.echo(
            "Warning: --max-partition-memory-bytes is deprecated and will be removed in Apache Kafka 5.0. "
            "Use --batch-size instead."
        )


def _reader(values: dict[str, Any]) -> LineReader:
    if values["line_reader"] != _READER:
        _failed(f"java.lang.ClassNotFoundException: {values['line_reader']}")
    given = load_settings(values["reader_config"]) | parse_properties(values["reader_property"])
    return LineReader(given)


def _settings(values: dict[str, Any]) -> dict[str, str]:
    """Merge settings as Kafka's tool does: given options override properties, which override defaults of options."""
    settings = load_settings(values["command_config"]) | parse_properties(values["command_property"])
    settings["bootstrap.servers"] = values["bootstrap_server"]
    settings["compression.type"] = values["compression_codec"] or "none"
    settings.setdefault("client.id", "console-producer")
    for option, (name, default) in _SETTINGS.items():
        if values[option] is not None:
            settings[name] = values[option]
        else:
            settings.setdefault(name, default)
    return settings


def _lines() -> Iterator[str]:
    """Yield the lines of the standard input, split as Java does."""
    is_terminal = sys.stdin.isatty()
    while True:
        if is_terminal:
            click.echo(">", nl=False)
        line = sys.stdin.buffer.readline()
        if not line:
            return
        text = line.removesuffix(b"\n").removesuffix(b"\r")
        yield from text.decode("utf-8", "replace").split("\r")


def _produce(settings: dict[str, str], topic: str, records: Iterator[NewRecord], *, sync: bool) -> None:
    run_producer(settings, lambda cluster, producer: _send_all(producer, topic, records, sync=sync))


async def _send_all(producer: Producer, topic: str, records: Iterator[NewRecord], *, sync: bool) -> None:
    sent: list[tuple[NewRecord, Delivery]] = []
    try:
        async for record in beside(records, is_slow=may_be_slow()):
            try:
                delivery = await producer.send(topic, record.value, record.key, headers=record.headers)
                if sync:
                    await delivery
                else:
                    sent.append((record, delivery))
            except (KafkaError, OSError) as error:
                if sync:
                    raise
                _say(topic, record, error)
            if len(sent) >= 10_000:
                await _settle(producer, topic, sent)
    finally:
        await _settle(producer, topic, sent)


async def _settle(producer: Producer, topic: str, sent: list[tuple[NewRecord, Delivery]]) -> None:
    await producer.flush()
    for record, delivery in sent:
        try:
            await delivery
        except (KafkaError, OSError) as error:
            _say(topic, record, error)
    sent.clear()


def _say(topic: str, record: NewRecord, error: Exception) -> None:
    """Report a record that was not written, and continue with the rest."""
    key, value = ("null" if data is None else f"{len(data)} bytes" for data in (record.key, record.value))
    text = (
        java_text(error)
        if isinstance(error, KafkaError)
        else f"org.apache.kafka.common.errors.TimeoutException: {error}"
    )
    note(f"ERROR Error when sending message to topic {topic} with key: {key}, value: {value} with error:\n{text}")
