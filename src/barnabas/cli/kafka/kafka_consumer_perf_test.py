"""`barnabas kafka-consumer-perf-test`: Kafka's script of this name, with its options and its lines.

It measures this Python client, so its numbers say nothing about the Java client. There are no metrics to print.
"""

from __future__ import annotations

import random
import re
import sys
import time
from collections.abc import Callable, Iterable
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import click

from barnabas.cli.kafka.client_of_tool import load_settings, run_consumer
from barnabas.cli.kafka.console_tools import parse_properties
from barnabas.cli.kafka.java_dates import date_format
from barnabas.cli.kafka.java_text import exception_text
from barnabas.cli.kafka.java_tool import JavaTool, refuse
from barnabas.cli.kafka.perf_statistics import ConsumerStatistics
from barnabas.cli.terminal.exit_codes import EXIT_FAILED
from barnabas.cli.terminal.failures import Failure
from barnabas.cli.terminal.output import note
from barnabas.wire.errors import KafkaError

if TYPE_CHECKING:
    from barnabas.client.consumer import Consumer
    from barnabas.client.records import TopicPartition

_POLL_MS = 100
_TIMEOUT_MS = 10_000
_COLUMNS = (
    "data.consumed.in.MB, MB.sec, data.consumed.in.nMsg, nMsg.sec, rebalance.time.ms, fetch.time.ms, fetch.MB.sec, "
    "fetch.nMsg.sec"
)
_BITS = {"num-records": 64, "messages": 64, "timeout": 64, "reporting-interval": 64, "fetch-size": 32}


class _Wanted(NamedTuple):
    topics: Iterable[str] | re.Pattern[str]
    num_records: int
    timeout_ms: int
    reporting_interval_ms: int
    is_detailed: bool
    show_date: Callable[[datetime], str]


@click.command(
    "kafka-consumer-perf-test",
    cls=JavaTool,
    optional={"--timeout": str(_TIMEOUT_MS)},
    short_help="Measure a consumer as Kafka's script does.",
)
@click.option("--bootstrap-server", metavar="HOST:PORT,...", help="REQUIRED: Brokers to connect to.")
@click.option("--topic", metavar="TOPIC", help="The topic to read.")
@click.option("--include", metavar="REGEX", help="A regular expression for the topics to read.")
@click.option("--group", metavar="GROUP", help="The group to join.")
@click.option("--fetch-size", default="1048576", metavar="BYTES", help="Bytes per partition in one fetch [1048576].")
@click.option("--from-latest", is_flag=True, help="Begin at the end if the group has no offset.")
@click.option("--socket-buffer-size", default="2097152", metavar="BYTES", help="Size of the receive buffer [2097152].")
@click.option("--consumer.config", "consumer_config", metavar="FILE", help="(Deprecated) Same as --command-config.")
@click.option("--command-config", metavar="FILE", help="Properties file with consumer settings.")
@click.option("--command-property", multiple=True, metavar="KEY=VALUE", help="A setting of the consumer.")
@click.option("--print-metrics", is_flag=True, help="Print metrics of the consumer; this client has none.")
@click.option("--show-detailed-stats", is_flag=True, help="Print a line per interval instead of one at the end.")
@click.option(
    "--timeout", default=str(_TIMEOUT_MS), metavar="MS", help="End if no record arrives for this long [10000]."
)
@click.option("--messages", metavar="N", help="(Deprecated) Same as --num-records.")
@click.option("--num-records", metavar="N", help="REQUIRED: Number of records to read.")
@click.option("--reporting-interval", default="5000", metavar="MS", help="Time between two lines [5000].")
@click.option(
    "--date-format", default="yyyy-MM-dd HH:mm:ss:SSS", metavar="PATTERN", help="Pattern for times, as in Java."
)
@click.option("--hide-header", is_flag=True, help="Leave out the line with the names of the columns.")
@click.pass_context
def kafka_consumer_perf_test(ctx: click.Context, /, **values: Any) -> None:
    """Measure the throughput of this client's consumer as Kafka's script of this name does."""
    _check(ctx, values)
    for old, new in (("messages", "num-records"), ("consumer.config", "command-config")):
        if values[old.replace(".", "_")] is not None:
            click.echo(f"Warning: --{old} is deprecated. Use --{new} instead.")
    if not values["hide_header"]:
        click.echo(f"{'time, threadId' if values['show_detailed_stats'] else 'start.time, end.time'}, {_COLUMNS}")
    try:
        settings, wanted = _settings(values), _wanted(values)
        statistics, end_ms = run_consumer(settings, lambda consumer: _consume(consumer, wanted))
    except ValueError as error:
        _failed(str(error))
    except OSError as error:
        _failed(str(error.filename))
    except Failure as failure:
        cause = failure.__cause__
        _failed(exception_text(cause) if isinstance(cause, KafkaError) else failure.message)
    if not wanted.is_detailed:
        times = (_shown(wanted, each) for each in (statistics.start_ms, end_ms))
        click.echo(", ".join((*times, *statistics.total_cells(end_ms))))
    if values["print_metrics"]:
        note("--print-metrics: this client has no metrics")


def _failed(message: str) -> NoReturn:
    note(message)
    sys.exit(EXIT_FAILED)


def _check(ctx: click.Context, values: dict[str, Any]) -> None:
    if (values["messages"] is None) == (values["num_records"] is None):
        refuse(ctx, "Exactly one of the following arguments is required: [messages], [num-records]")
    if values["bootstrap_server"] is None:
        refuse(ctx, 'Missing required argument "[bootstrap-server]"')
    if (values["topic"] is None) == (values["include"] is None):
        refuse(ctx, "Exactly one of the following arguments is required: [topic], [include]")
    if values["consumer_config"] is not None and values["command_config"] is not None:
        refuse(ctx, 'Option "[consumer.config]" can\'t be used with option "[command-config]"')


def _number(values: dict[str, Any], option: str) -> int:
    text, limit = values[option.replace("-", "_")], 1 << (_BITS.get(option, 32) - 1)
    if not re.fullmatch(r"[+-]?\d+", text, re.ASCII) or not -limit <= int(text) < limit:
        raise ValueError(f"Cannot parse argument '{text}' of option {option}")
    return int(text)


def _settings(values: dict[str, Any]) -> dict[str, str]:
    settings = load_settings(values["command_config"] or values["consumer_config"])
    settings |= parse_properties(values["command_property"])
    settings["bootstrap.servers"] = values["bootstrap_server"]
    settings["group.id"] = values["group"] or f"perf-consumer-{random.randrange(100_000)}"
    settings["receive.buffer.bytes"] = str(_number(values, "socket-buffer-size"))
    settings["max.partition.fetch.bytes"] = str(_number(values, "fetch-size"))
    settings["auto.offset.reset"] = "latest" if values["from_latest"] else "earliest"
    settings["check.crcs"] = "false"
    if not settings.get("client.id"):
        settings["client.id"] = "perf-consumer-client"
    return settings


def _wanted(values: dict[str, Any]) -> _Wanted:
    interval_ms = _number(values, "reporting-interval")
    if interval_ms <= 0:
        raise ValueError("Reporting interval must be greater than 0.")
    topic, include = values["topic"], values["include"]
    return _Wanted(
        topics=re.compile(include) if topic is None else [topic],
        num_records=_number(values, "num-records" if values["messages"] is None else "messages"),
        timeout_ms=_timeout_ms(values),
        reporting_interval_ms=interval_ms,
        is_detailed=values["show_detailed_stats"],
        show_date=date_format(values["date_format"]),
    )


def _timeout_ms(values: dict[str, Any]) -> int:
    try:
        return _number(values, "timeout")
    except ValueError:
        return _TIMEOUT_MS  # the value may be omitted, so a word that does not fit is not its value


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def _shown(wanted: _Wanted, moment_ms: int) -> str:
    return wanted.show_date(datetime.fromtimestamp(moment_ms / 1000).astimezone())


class _Rebalances:
    """Listener of a consumer: measures the time without partitions."""

    def __init__(self, statistics: ConsumerStatistics) -> None:
        self._statistics = statistics
        self._assigned: set[TopicPartition] = set()

    def on_partitions_revoked(self, partitions: Iterable[TopicPartition]) -> None:
        self._assigned.difference_update(partitions)
        if not self._assigned:
            self._statistics.revoked(_now_ms())

    on_partitions_lost = on_partitions_revoked

    def on_partitions_assigned(self, partitions: Iterable[TopicPartition]) -> None:
        if not self._assigned:
            self._statistics.assigned(_now_ms())
        self._assigned.update(partitions)


async def _consume(consumer: Consumer, wanted: _Wanted) -> tuple[ConsumerStatistics, int]:
    """Read until there are enough records, or none came for the timeout. Returns the counts and the time of the end."""
    statistics = ConsumerStatistics(_now_ms())
    if wanted.num_records > 0:
        await consumer.subscribe(wanted.topics, _Rebalances(statistics))
    now_ms = last_ms = _now_ms()
    while statistics.messages < wanted.num_records and now_ms - last_ms <= wanted.timeout_ms:
        found = await consumer.getmany(timeout_ms=_POLL_MS)
        now_ms = _now_ms()
        if found:
            last_ms = now_ms
        for records in found.values():
            for record in records:
                statistics.messages += 1
                statistics.bytes += len(record.key or b"") + len(record.value or b"")
                if statistics.is_due(now_ms, wanted.reporting_interval_ms):
                    cells = statistics.interval_cells(now_ms)
                    if wanted.is_detailed:
                        click.echo(", ".join((_shown(wanted, now_ms), "0", *cells)))
    if statistics.messages < wanted.num_records:
        click.echo(
            "WARNING: Exiting before consuming the expected number of records: "
            f"timeout ({wanted.timeout_ms} ms) exceeded. You can use the --timeout option to increase the timeout."
        )
    return statistics, _now_ms()
