"""`barnabas offsets`: first and end offsets of partitions, and offsets by time.

Parses arguments and prints; the requests are in `client.admin.records`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import click

from barnabas.cli.connection.completion import complete_topic
from barnabas.cli.connection.connecting import run
from barnabas.cli.connection.options import common_options
from barnabas.cli.connection.profiles import Connection
from barnabas.cli.terminal.command_groups import CommandGroup
from barnabas.cli.terminal.exit_codes import EXIT_FAILED
from barnabas.cli.terminal.failures import Failure, failure_of
from barnabas.cli.terminal.output import Column, Output, columns, utc_time
from barnabas.cli.terminal.parsing import time_ms
from barnabas.cli.terminal.watch import watch_option, watched
from barnabas.wire.errors import KafkaError

if TYPE_CHECKING:
    from barnabas.client.admin.records import IsolationLevel, ListedOffset
    from barnabas.client.cluster import Cluster
    from barnabas.client.records import TopicPartition

    Listed = Mapping[TopicPartition, ListedOffset | KafkaError]


_PARTITION = click.option(
    "--partition", "-p", "numbers", type=click.IntRange(0), multiple=True, help="Only this partition; may be repeated."
)
_ISOLATION = click.option(
    "--isolation-level",
    type=click.Choice(["read_uncommitted", "read_committed"]),
    default="read_uncommitted",
    show_default=True,
    help="With read_committed, the latest offset is the last stable offset.",
)


@click.group(cls=CommandGroup, short_help="Show offsets of partitions, and find offsets by time.")
def offsets() -> None:
    """Show the first and end offsets of partitions, and find offsets by time.

    \b
    Examples:
      barnabas offsets list orders
      barnabas offsets list --watch 2
      barnabas offsets list orders --at 2026-01-31T12:00
      barnabas offsets find orders 2h
    """


@offsets.command("list")
@click.argument("topics", nargs=-1, metavar="[TOPIC]...", shell_complete=complete_topic)
@_PARTITION
@click.option("--at", callback=time_ms, metavar="TIME|AGE", help="Also show the first offset at or after this time.")
@click.option("--internal", is_flag=True, help="Include internal topics if no topic is given.")
@_ISOLATION
@watch_option
@common_options
def list_(
    connection: Connection,
    output: Output,
    topics: tuple[str, ...],
    numbers: tuple[int, ...],
    at: int | None,
    internal: bool,
    isolation_level: str,
    watch: float | None,
) -> None:
    """List the earliest and latest offsets of partitions. Also shows their newest timestamp.

    RECORDS is the difference between the offsets. The true number may be lower, because transactions and compaction leave gaps.

    \b
    Examples:
      barnabas offsets list orders payments
      barnabas offsets list orders -p 0 -p 1 -o json
      barnabas offsets list orders --at 1d
    """
    failed: list[str] = []

    async def show(cluster: Cluster) -> None:
        from barnabas.client.admin.records import IsolationLevel

        partitions = await _partitions(cluster, topics, numbers, internal)
        found = await _ends(cluster, partitions, at, IsolationLevel[isolation_level.upper()])
        shown = columns(
            *("topic", "partition", "earliestOffset", "latestOffset", "records"),
            Column("maxTimestamp", "LAST-RECORD", show=utc_time),
        )
        offset_at = (Column("offsetAt"),) if at is not None else ()
        output.rows((*shown, *offset_at), (row for row in found.values() if "error" not in row))
        errors = {str(each): row["error"] for each, row in found.items() if "error" in row}
        _show_errors(errors)
        failed.extend(errors)

    run(connection, lambda cluster: watched(output, watch, lambda: show(cluster)))
    if failed:
        sys.exit(EXIT_FAILED)


async def _ends(
    cluster: Cluster, partitions: Iterable[TopicPartition], at: int | None, isolation_level: IsolationLevel
) -> dict[TopicPartition, dict[str, Any]]:
    """Return one row per partition; a row with `error` if the partition failed."""
    from barnabas.client.admin.records import OffsetSpec, Records
    from barnabas.client.errors import UnsupportedByNodeError

    records = Records(cluster)
    wanted = list(partitions)

    async def asked(spec: int) -> Listed:
        return await records.list_offsets(dict.fromkeys(wanted, spec), isolation_level=isolation_level)

    questions: dict[str, Listed] = {
        "earliestOffset": await asked(OffsetSpec.EARLIEST),
        "latestOffset": await asked(OffsetSpec.LATEST),
    }
    with suppress(UnsupportedByNodeError):  # before Kafka 3.0
        questions["maxTimestamp"] = await asked(OffsetSpec.MAX_TIMESTAMP)
    if at is not None:
        questions["offsetAt"] = await asked(at)
    rows: dict[TopicPartition, dict[str, Any]] = {}
    for each in wanted:
        row: dict[str, Any] = {"topic": each.topic, "partition": each.partition}
        for name, answers in questions.items():
            answer = answers[each]
            if isinstance(answer, KafkaError):
                row["error"] = answer
                continue
            value = answer.timestamp if name == "maxTimestamp" else answer.offset
            row[name] = value if value >= 0 else None
        row.setdefault("maxTimestamp", None)
        if "error" not in row:
            row["records"] = row["latestOffset"] - row["earliestOffset"]
        rows[each] = row
    return rows


@offsets.command("find")
@click.argument("topic", shell_complete=complete_topic)
@click.argument("moment", metavar="TIME|AGE", callback=time_ms)
@_PARTITION
@common_options
def find(connection: Connection, output: Output, topic: str, moment: int, numbers: tuple[int, ...]) -> None:
    """Find the first record at or after a time in each partition of a topic.

    A partition without such a record has no offset. TIME is ISO 8601 or milliseconds since 1970; AGE, such as 2h, counts back
    from now.

    \b
    Examples:
      barnabas offsets find orders 2026-01-31T12:00:00Z
      barnabas offsets find orders 90m -o json
    """

    async def look(cluster: Cluster) -> Listed:
        from barnabas.client.admin.records import Records

        partitions = await _partitions(cluster, (topic,), numbers, True)
        return await Records(cluster).list_offsets(dict.fromkeys(partitions, moment))

    found = run(connection, look)
    output.rows(
        columns("topic", "partition", "offset", Column("timestamp", show=utc_time), "leaderEpoch"),
        (
            {
                "topic": each.topic,
                "partition": each.partition,
                "offset": result.offset if result.offset >= 0 else None,
                "timestamp": result.timestamp if result.offset >= 0 else None,
                "leaderEpoch": result.leader_epoch if result.offset >= 0 else None,
            }
            for each, result in found.items()
            if not isinstance(result, KafkaError)
        ),
    )
    errors = {str(each): result for each, result in found.items() if isinstance(result, KafkaError)}
    _show_errors(errors)
    if errors:
        sys.exit(EXIT_FAILED)


async def _partitions(
    cluster: Cluster, topics: tuple[str, ...], numbers: tuple[int, ...], internal: bool
) -> list[TopicPartition]:
    """Return the selected partitions. Raises Failure if a topic or partition does not exist."""
    from barnabas.client.records import TopicPartition

    state = await cluster.metadata(topics or None)
    for name, code in state.errors.items():
        raise failure_of(KafkaError(code), f"topic {name}")
    found = []
    for name, topic in sorted(state.topics.items()):
        if topic.is_internal and not internal and name not in topics:
            continue
        for number in numbers or topic.partitions:
            if number in topic.partitions:
                found.append(TopicPartition(name, number))
            elif topics:
                count = len(topic.partitions)
                raise Failure(f"no partition {number}; number of partitions: {count}", resource=f"topic {name}")
    return found


def _show_errors(errors: Mapping[str, KafkaError]) -> None:
    for name, error in errors.items():
        failure_of(error, f"partition {name}").show()
