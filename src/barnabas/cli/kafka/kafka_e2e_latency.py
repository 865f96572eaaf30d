"""`barnabas kafka-e2e-latency`: Kafka's script of this name, with its options and its lines.

It measures this Python client, so its numbers say nothing about the Java client.
"""

from __future__ import annotations

import random
import sys
import time
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import click

from barnabas.cli.kafka.client_of_tool import load_settings, run_producer
from barnabas.cli.kafka.java_text import exception_text
from barnabas.cli.kafka.java_tool import JavaTool, java_int, refuse
from barnabas.cli.kafka.perf_statistics import fixed, percentiles, ratio
from barnabas.cli.terminal.exit_codes import EXIT_FAILED
from barnabas.cli.terminal.failures import Failure
from barnabas.cli.terminal.output import note
from barnabas.wire.errors import KafkaError

if TYPE_CHECKING:
    from barnabas.client.cluster import Cluster
    from barnabas.client.consumer import Consumer
    from barnabas.client.producer import Producer

_POSITIONAL = ("bootstrap-server", "topic", "num-records", "producer-acks", "record-size", "command-config")
_REQUIRED = _POSITIONAL[:5]
_DEPRECATED = (
    "WARNING: Positional argument usage is deprecated and will be removed in Apache Kafka 5.0. "
    f"Please use named arguments instead: {', '.join(f'--{name}' for name in _POSITIONAL)}"
)
_OPTIONAL = ("--record-key-size", "--num-headers", "--record-header-key-size", "--record-header-size")
_TIMEOUT_MS = 60_000
_REPORTED = 1000
_NANOSECONDS = 1_000_000


class _Wanted(NamedTuple):
    topic: str
    num_records: int
    record_size: int
    key_size: int
    num_headers: int
    header_key_size: int
    header_size: int


class _Tool(JavaTool):
    """Also accepts the old form, without names of options."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if args and not any(each.startswith("--") for each in args):
            if len(args) not in (5, 6):
                _failed(
                    f"Invalid number of arguments. Expected 5 or 6 positional arguments, but got {len(args)}. "
                    "Usage: bootstrap-server topic num-records producer-acks record-size [optional] command-config"
                )
            click.echo(_DEPRECATED)
            args = [word for name, value in zip(_POSITIONAL, args, strict=False) for word in (f"--{name}", value)]
        return super().parse_args(ctx, args)


@click.command(
    "kafka-e2e-latency",
    cls=_Tool,
    optional=dict.fromkeys(_OPTIONAL, "0"),
    short_help="Measure the latency of records as Kafka's script does.",
)
@click.option("--bootstrap-server", metavar="HOST:PORT,...", help="REQUIRED: Brokers to connect to.")
@click.option("--topic", metavar="TOPIC", help="REQUIRED: The topic; it is created if it does not exist.")
@click.option("--num-records", metavar="N", help="REQUIRED: Number of records to send.")
@click.option("--producer-acks", metavar="ACKS", help="REQUIRED: 1 or all.")
@click.option("--record-size", metavar="BYTES", help="REQUIRED: Size of each record.")
@click.option("--record-key-size", default="0", metavar="BYTES", help="Size of keys [0].")
@click.option("--num-headers", default="0", metavar="N", help="Number of headers [0].")
@click.option("--record-header-key-size", default="0", metavar="BYTES", help="Size of the names of headers [0].")
@click.option("--record-header-size", default="0", metavar="BYTES", help="Size of the values of headers [0].")
@click.option("--command-config", metavar="FILE", help="Properties file with client settings.")
@click.pass_context
def kafka_e2e_latency(ctx: click.Context, /, **values: Any) -> None:
    """Measure the time until a record that was sent is read, as Kafka's script of this name does."""
    for name in _REQUIRED:
        if values[name.replace("-", "_")] is None:
            refuse(ctx, f'Missing required argument "[{name}]"')
    try:
        wanted = _wanted(values)
        settings = load_settings(values["command_config"])
    except ValueError as error:
        _failed(str(error))
    except OSError:
        _failed(values["command_config"])
    settings |= {"bootstrap.servers": values["bootstrap_server"], "linger.ms": "0", "acks": values["producer_acks"]}
    try:
        run_producer(settings, lambda cluster, producer: _measure(cluster, producer, settings, wanted))
    except Failure as failure:
        cause = failure.__cause__
        _failed(exception_text(cause) if isinstance(cause, KafkaError) else failure.message)


def _failed(message: str) -> NoReturn:
    note(message)
    sys.exit(EXIT_FAILED)


def _wanted(values: dict[str, Any]) -> _Wanted:
    """Check the numbers. Raises ValueError with the message of Kafka's tool."""

    def number(name: str, least: int) -> int:
        text = values[name.replace("-", "_")]
        try:
            found = java_int(name, text) or 0
        except ValueError:
            if name in _REQUIRED:
                raise
            found = 0  # the value of these options may be omitted, so a word that does not fit is not theirs
        if found < least:
            raise ValueError(f"Value for --{name} must be a {'positive' if least else 'non-negative'} integer.")
        return found

    num_records, record_size = number("num-records", 1), number("record-size", 0)
    key_size, num_headers = number("record-key-size", 0), number("num-headers", 0)
    header_key_size, header_size = number("record-header-key-size", 0), number("record-header-size", 0)
    if values["producer_acks"] not in ("1", "all"):
        raise ValueError(
            "Invalid value for --producer-acks. Latency testing requires synchronous acknowledgement. "
            "Please use '1' or 'all'."
        )
    return _Wanted(values["topic"], num_records, record_size, key_size, num_headers, header_key_size, header_size)


async def _measure(cluster: Cluster, producer: Producer, settings: dict[str, str], wanted: _Wanted) -> None:
    from barnabas.client.consumer import Consumer

    own = {"enable.auto.commit": "false", "auto.offset.reset": "latest", "fetch.max.wait.ms": "0"}
    more = {name: value for name, value in settings.items() if name not in ("linger.ms", "acks")} | own
    async with Consumer(more) as consumer:
        await _begin(cluster, consumer, wanted.topic)
        latencies: list[int] = []
        rng = random.Random(0)
        for number in range(wanted.num_records):
            value = _letters(rng, wanted.record_size)
            key = _letters(rng, wanted.key_size) if wanted.key_size else None
            headers: list[tuple[str, bytes | None]] = [
                (_letters(rng, wanted.header_key_size).decode(), _letters(rng, wanted.header_size))
                for _ in range(wanted.num_headers)
            ]
            start_ns = time.monotonic_ns()
            await producer.send_and_wait(wanted.topic, value, key, headers=headers)
            found = await consumer.poll(_TIMEOUT_MS)
            elapsed_ns = time.monotonic_ns() - start_ns
            _validate([record.value or b"" for record in found], value)
            if number % _REPORTED == 0:
                click.echo(f"{number}\t{elapsed_ns / _NANOSECONDS}")
            latencies.append(elapsed_ns)
    click.echo(f"Avg latency: {fixed(ratio(sum(latencies), len(latencies)) / _NANOSECONDS, 4)} ms")
    shown = percentiles(sorted(each // _NANOSECONDS for each in latencies), (0.5, 0.99, 0.999))
    click.echo(f"Percentiles: 50th = {shown[0]}, 99th = {shown[1]}, 99.9th = {shown[2]}")


async def _begin(cluster: Cluster, consumer: Consumer, topic: str) -> None:
    """Create the topic if it does not exist, and go to the end of all its partitions."""
    from barnabas.client.admin.part import checked
    from barnabas.client.admin.topics import NewTopic, Topics

    if topic not in (await cluster.metadata(None)).topics:
        click.echo(f'Topic "{topic}" does not exist. Will create topic with 1 partition(s) and replication factor = 1')
        try:
            checked(await Topics(cluster).create_topics([NewTopic(topic, 1, 1)]))
        except KafkaError:
            click.echo(f"Creation of topic {topic} failed")
            raise
    places = [(topic, number) for number in (await cluster.metadata([topic])).topics[topic].partitions]
    consumer.assign(places)
    consumer.seek_to_end()
    for place in places:
        await consumer.position(place)


def _letters(rng: random.Random, size: int) -> bytes:
    return bytes([rng.randrange(65, 91)]) * size


def _validate(found: list[bytes], sent: bytes) -> None:
    """Exit as Kafka's tool does if anything else than the record that was sent was read."""
    if not found:
        _failed(f"poll() timed out before finding a result (timeout:[{_TIMEOUT_MS}ms])")
    if found[0] != sent:
        read, wrote = (each.decode("utf-8", "replace") for each in (found[0], sent))
        _failed(f"The message read [{read}] did not match the message sent [{wrote}]")
    if len(found) != 1:
        _failed(f"Only one result was expected during this test. We found [{len(found)}]")
