"""`barnabas kafka-producer-perf-test`: Kafka's script of this name, with its options and its lines.

It measures this Python client, so its numbers say nothing about the Java client. There are no metrics to print.
"""

from __future__ import annotations

import asyncio
import random
import re
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import click

from barnabas.cli.kafka.argparse_tool import ARGUMENTS, INTEGER, LONG, ArgparseCommand, double
from barnabas.cli.kafka.client_of_tool import load_settings, run_producer
from barnabas.cli.kafka.java_text import exception_text
from barnabas.cli.kafka.perf_statistics import ProducerStatistics
from barnabas.cli.terminal.exit_codes import EXIT_FAILED
from barnabas.cli.terminal.failures import Failure
from barnabas.cli.terminal.output import note
from barnabas.config.values import ConfigError
from barnabas.wire.errors import KafkaError
from barnabas.wire.primitives import random_uuid

if TYPE_CHECKING:
    from barnabas.client.producer import Delivery, Producer

_PROGRAM = "kafka-producer-perf-test"
_DEFAULT_TRANSACTION_MS = 3000
_MIN_SLEEP_S = 0.002
_MAX_OPEN_BATCHES = 1000
_PAYLOADS = ("--record-size", "--payload-file", "--payload-monotonic")
_LETTERS = bytes(65 + each % 26 for each in range(256))
_DEPRECATED = "Option {} has been deprecated and will be removed in a future version. Use {} instead."
_REPLACED = {"--producer-props": "--command-property", "--producer.config": "--command-config"}


class _Wanted(NamedTuple):
    topic: str
    num_records: int
    warmup_records: int
    throughput: float
    reporting_interval_ms: int
    transaction_ms: int | None
    payload: Callable[[int], bytes]


@click.command(
    "kafka-producer-perf-test",
    cls=ArgparseCommand,
    program=_PROGRAM,
    many=("--producer-props", "--command-property"),
    short_help="Measure a producer as Kafka's script does.",
)
@click.option("--bootstrap-server", metavar="HOST:PORT,...", help="Brokers to connect to.")
@click.option("--topic", required=True, metavar="TOPIC", help="The topic to write to.")
@click.option("--num-records", required=True, type=LONG, metavar="N", help="Number of records to write.")
@click.option("--payload-delimiter", default="\\n", metavar="TEXT", help="Text between two payloads of the file [\\n].")
@click.option("--throughput", required=True, type=double, metavar="N", help="Records per second; -1 does not throttle.")
@click.option(
    "--producer-props", multiple=True, metavar="KEY=VALUE ...", help="(Deprecated) Same as --command-property."
)
@click.option("--command-property", multiple=True, metavar="KEY=VALUE ...", help="Settings of the producer.")
@click.option("--producer.config", "producer_config", metavar="FILE", help="(Deprecated) Same as --command-config.")
@click.option("--command-config", metavar="FILE", help="Properties file with producer settings.")
@click.option("--print-metrics", is_flag=True, help="Print metrics of the producer; this client has none.")
@click.option("--transactional-id", metavar="ID", help="Write in transactions with this id.")
@click.option("--transaction-duration-ms", type=LONG, metavar="MS", help="Commit a transaction after this time [3000].")
@click.option(
    "--warmup-records", type=LONG, default="0", metavar="N", help="Records that the second summary leaves out."
)
@click.option("--reporting-interval", type=LONG, default="5000", metavar="MS", help="Time between two lines [5000].")
@click.option("--record-size", type=INTEGER, metavar="BYTES", help="Size of each record.")
@click.option("--payload-file", metavar="FILE", help="File with payloads; each record has a random one.")
@click.option("--payload-monotonic", is_flag=True, help="Each record is a number, one larger than the one before.")
@click.pass_context
def kafka_producer_perf_test(ctx: click.Context, /, **values: Any) -> None:
    """Measure the throughput and the latency of this client's producer as Kafka's script of this name does."""
    _check(ctx, values)
    for old, new in _REPLACED.items():
        if values[re.sub("[.-]", "_", old[2:])]:
            click.echo(_DEPRECATED.format(old, new))
    payload = _payload(values)
    settings = _settings(values)
    if (values["transaction_duration_ms"] or values["transactional_id"]) is not None:
        settings["transactional.id"] = (
            values["transactional_id"]
            or settings.get("transactional.id")
            or f"performance-producer-{random_uuid(random.SystemRandom())}"
        )
    is_transactional = "transactional.id" in settings
    wanted = _Wanted(
        topic=values["topic"],
        num_records=values["num_records"],
        warmup_records=max(values["warmup_records"], 0),
        throughput=values["throughput"],
        reporting_interval_ms=values["reporting_interval"],
        transaction_ms=(values["transaction_duration_ms"] or _DEFAULT_TRANSACTION_MS) if is_transactional else None,
        payload=payload,
    )
    statistics: list[ProducerStatistics] = []
    try:
        run_producer(settings, lambda cluster, producer: _produce(producer, wanted, statistics))
    except Failure as failure:
        _failed(failure)
    for each in statistics:
        click.echo(each.total_line(_now_ms()))
    if values["print_metrics"]:
        note("--print-metrics: this client has no metrics")


def _failed(failure: Failure) -> NoReturn:
    cause = failure.__cause__
    if isinstance(cause, ConfigError):
        _ended(f"org.apache.kafka.common.config.ConfigException: {cause}")
    note(exception_text(cause) if isinstance(cause, KafkaError) else failure.message)
    sys.exit(EXIT_FAILED)


def _ended(exception: str) -> NoReturn:
    """Exit as a Java program does after an exception that it does not catch."""
    note(f'Exception in thread "main" {exception}')
    sys.exit(EXIT_FAILED)


def _check(ctx: click.Context, values: dict[str, Any]) -> None:
    """Raise UsageError with Kafka's message if the options do not fit together."""
    given = [each for each in _PAYLOADS if values[each[2:].replace("-", "_")] is not None]
    if not values["payload_monotonic"]:
        given.remove("--payload-monotonic")
    # The order of the command line decides which of two is one too many.
    words = [word.partition("=")[0] for word in ctx.meta[ARGUMENTS]]
    given.sort(key=words.index)

    def wrong(message: str) -> NoReturn:
        raise click.UsageError(message, ctx)

    if len(given) > 1:
        wrong(f"argument {given[1]}: not allowed with argument {given[0]}")
    if not given:
        wrong(f"one of the arguments {' '.join(_PAYLOADS)} is required")
    if values["num_records"] <= 0:
        wrong("--num-records should be greater than zero.")
    if values["warmup_records"] >= values["num_records"]:
        wrong(
            "The value for --warmup-records must be strictly fewer than the number of records in the test, --num-records."
        )
    if values["record_size"] is not None and values["record_size"] <= 0:
        wrong("--record-size should be greater than zero.")
    for old, new in _REPLACED.items():
        if values[re.sub("[.-]", "_", old[2:])] and values[new[2:].replace("-", "_")]:
            wrong(f"{new} and {old} cannot be specified together.")
    sources = ("bootstrap_server", "command_property", "producer_props", "producer_config", "command_config")
    if not any(values[each] for each in sources):
        wrong(
            "At least one of --bootstrap-server, --command-property, --producer-props, --producer.config or "
            "--command-config must be specified."
        )
    if values["transaction_duration_ms"] is not None and values["transaction_duration_ms"] <= 0:
        wrong("--transaction-duration-ms should be greater than zero.")
    if values["reporting_interval"] <= 0:
        wrong("--reporting-interval should be greater than zero.")


def _payload(values: dict[str, Any]) -> Callable[[int], bytes]:
    """Return the function that makes the payload of a record from its number. The sequence is the same in each run."""
    rng = random.Random(0)
    size, path = values["record_size"], values["payload_file"]
    if path is not None:
        payloads = _read_payloads(Path(path), values["payload_delimiter"])
        return lambda number: rng.choice(payloads)
    if size is not None:
        return lambda number: rng.randbytes(size).translate(_LETTERS)
    return lambda number: b"%d" % number


def _read_payloads(path: Path, delimiter: str) -> list[bytes]:
    click.echo(f"Reading payloads from: {path.absolute()}")
    if not path.exists() or path.stat().st_size == 0:
        _ended("java.lang.IllegalArgumentException: File does not exist or empty file provided.")
    pieces = re.split("\n" if delimiter == "\\n" else delimiter, path.read_text(encoding="utf-8", errors="replace"))
    if pieces[-1] == "":
        pieces.pop()
    click.echo(f"Number of records read: {len(pieces)}")
    return [piece.encode() for piece in pieces]


def _settings(values: dict[str, Any]) -> dict[str, str]:
    path = values["command_config"] or values["producer_config"]
    try:
        settings = load_settings(path)
    except OSError:
        _ended(f"java.nio.file.NoSuchFileException: {path}")
    for pair in values["command_property"] or values["producer_props"]:
        pieces = pair.split("=")
        if len(pieces) != 2:
            _ended(f"java.lang.IllegalArgumentException: Invalid property: {pair}")
        settings[pieces[0]] = pieces[1]
    if values["bootstrap_server"] is not None:
        settings["bootstrap.servers"] = values["bootstrap_server"]
    settings.setdefault("client.id", "perf-producer-client")
    return settings


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


class _Group:
    """Records of one batch: they are written together, so one task waits for all of them."""

    def __init__(self, first: Delivery) -> None:
        self.first = first
        self.sent: list[tuple[Delivery, int, int, int]] = []
        """Each record with the time at which it was sent, its size, and the number of statistics that count it."""


class _Run:
    """One run of the test: sends records, and counts them as they are written."""

    def __init__(self, producer: Producer, wanted: _Wanted, statistics: list[ProducerStatistics]) -> None:
        self._producer = producer
        self._wanted = wanted
        self._statistics = statistics
        self._group: _Group | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    async def send(self, number: int) -> None:
        value = self._wanted.payload(number)
        sent_ms = _now_ms()
        try:
            delivery = await self._producer.send(self._wanted.topic, value)
        except KafkaError as error:
            note(exception_text(error))
            return
        group = self._group
        if group is None or not group.first.shares_batch(delivery):
            while len(self._tasks) >= _MAX_OPEN_BATCHES:
                await asyncio.wait(self._tasks, return_when=asyncio.FIRST_COMPLETED)
            group = self._group = _Group(delivery)
            task = asyncio.create_task(self._count(group))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        group.sent.append((delivery, sent_ms, len(value), len(self._statistics)))

    async def _count(self, group: _Group) -> None:
        """Wait for the records of a batch, and count those that were written."""
        with suppress(KafkaError, OSError):  # each record raises it again
            await group.first
        for delivery, sent_ms, size, counted in group.sent:
            try:
                await delivery
            except KafkaError as error:
                note(exception_text(error))
                continue
            except OSError as error:
                note(f"org.apache.kafka.common.errors.TimeoutException: {error}")
                continue
            now_ms = _now_ms()
            for each in self._statistics[:counted]:
                for line in each.record(now_ms - sent_ms, size, now_ms):
                    click.echo(line)
        group.sent.clear()

    async def settled(self) -> None:
        """Wait until all records are counted."""
        await self._producer.flush()
        while self._tasks:
            await asyncio.wait(self._tasks)

    async def cancel(self) -> None:
        """Stop waiting for records, after an error or an interrupt."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


async def _produce(producer: Producer, wanted: _Wanted, statistics: list[ProducerStatistics]) -> None:
    if wanted.transaction_ms is not None:
        await producer.init_transactions()
    if wanted.warmup_records:
        click.echo(
            f"Warmup first {wanted.warmup_records} records. Steady state results will print after the complete test summary."
        )
    statistics.append(ProducerStatistics(wanted.num_records, _now_ms(), wanted.reporting_interval_ms))
    run = _Run(producer, wanted, statistics)
    try:
        await _send_all(producer, wanted, statistics, run)
        await run.settled()
    finally:
        await run.cancel()


async def _send_all(producer: Producer, wanted: _Wanted, statistics: list[ProducerStatistics], run: _Run) -> None:
    start_s = time.monotonic()
    transaction_start_ms: int | None = None
    for number in range(wanted.num_records):
        if wanted.transaction_ms is not None and transaction_start_ms is None:
            producer.begin_transaction()
            transaction_start_ms = _now_ms()
        if wanted.warmup_records and number == wanted.warmup_records:
            steady = wanted.num_records - wanted.warmup_records
            statistics[0].is_quiet = True
            statistics.append(ProducerStatistics(steady, _now_ms(), wanted.reporting_interval_ms, is_steady_state=True))
        await run.send(number)
        if transaction_start_ms is not None and _now_ms() - transaction_start_ms >= (wanted.transaction_ms or 0):
            await producer.commit_transaction()
            transaction_start_ms = None
        if wanted.throughput >= 0:
            await _throttle(start_s, number + 1, wanted.throughput)
    if transaction_start_ms is not None:
        await producer.commit_transaction()


async def _throttle(start_s: float, count: int, throughput: float) -> None:
    """Sleep until `count` records are due. A throughput of 0 waits forever, as in Kafka's tool."""
    if throughput == 0:
        await asyncio.Event().wait()
    early_s = start_s + count / throughput - time.monotonic()
    if early_s > _MIN_SLEEP_S:
        await asyncio.sleep(early_s)
