"""`barnabas log-dirs`: show the log dirs of brokers, and move replicas between them.

Parses arguments and prints. Its one rule: a broker that does not answer or a failed log dir is a row with an error, and the
command exits with 1.
"""

from __future__ import annotations

import asyncio
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import click

from barnabas.cli.connection.connecting import run
from barnabas.cli.connection.options import common_options, dry_run_option, never_asks_option
from barnabas.cli.connection.partition_arguments import partitions_argument
from barnabas.cli.connection.profiles import Connection
from barnabas.cli.connection.rate_option import throttle_option
from barnabas.cli.terminal.changes import announce, show_results
from barnabas.cli.terminal.command_groups import CommandGroup
from barnabas.cli.terminal.exit_codes import EXIT_FAILED
from barnabas.cli.terminal.failures import Failure
from barnabas.cli.terminal.output import Column, Output, Progress, columns, note
from barnabas.cli.terminal.watch import watch_option, watched
from barnabas.operations.partitions import Key, Selection, find_partitions, require_brokers
from barnabas.operations.quantities import bytes_text
from barnabas.wire.errors import KafkaError

if TYPE_CHECKING:
    from barnabas.client.admin.log_dirs import LogDir, Replica, StoredReplica
    from barnabas.client.cluster import Cluster

_POLL_S = 0.5
_SIZE = Column("size", show=bytes_text)
_USABLE = Column("usableBytes", title="USABLE", show=bytes_text)
_TOTAL = Column("totalBytes", title="TOTAL", show=bytes_text)
_ERROR = Column("error", style=lambda error: "red" if error else None)
_COLUMNS = {
    "dir": columns("broker", "logDir", "replicas", _SIZE, _USABLE, _TOTAL, "futureReplicas", "maxOffsetLag", _ERROR),
    "broker": columns(
        "broker", "logDirs", "replicas", _SIZE, _USABLE, _TOTAL, "futureReplicas", "maxOffsetLag", _ERROR
    ),
    "topic": columns("topic", "partitions", "replicas", _SIZE, "futureReplicas", "maxOffsetLag"),
    "replica": columns("topic", "partition", "broker", "logDir", _SIZE, "offsetLag", "isFuture", _ERROR),
}
_MOVED = columns("topic", "partition", "broker", "logDir")


@click.group("log-dirs", cls=CommandGroup, short_help="Show log dirs of brokers, and move replicas between them.")
def log_dirs() -> None:
    """Show log dirs of brokers and their disk usage, and move replicas between them.

    \b
    Examples:
      barnabas log-dirs describe
      barnabas log-dirs describe orders --by replica
      barnabas log-dirs describe --by topic -o json
      barnabas log-dirs move orders:0 --broker 1 --to /data/second --wait
    """


@log_dirs.command("describe", short_help="Show sizes, free space and moving replicas.")
@partitions_argument
@click.option("--broker", "brokers", type=int, multiple=True, metavar="ID", help="Only this broker; may be repeated.")
@click.option(
    "--by",
    type=click.Choice(list(_COLUMNS)),
    help="Show one row for each of these.  [default: dir; replica if topics or partitions are given]",
)
@watch_option
@common_options
def describe(
    partitions: tuple[Selection, ...],
    brokers: tuple[int, ...],
    by: str | None,
    watch: float | None,
    connection: Connection,
    output: Output,
) -> None:
    """Show sizes, free space, lag and moving (future) replicas per log dir, broker, topic or replica.

    \b
    Examples:
      barnabas log-dirs describe
      barnabas log-dirs describe orders payments:0
      barnabas log-dirs describe --broker 1 --by topic
    """
    kind = by or ("replica" if partitions else "dir")
    failed = False

    async def work(cluster: Cluster) -> None:
        async def show() -> None:
            nonlocal failed
            failed = await _describe(cluster, partitions, brokers, kind, output)

        await watched(output, watch, show)

    run(connection, work)
    if failed:
        sys.exit(EXIT_FAILED)


async def _describe(
    cluster: Cluster, partitions: tuple[Selection, ...], brokers: tuple[int, ...], kind: str, output: Output
) -> bool:
    """Print the rows and the errors. Return whether there were errors."""
    from barnabas.client.admin.log_dirs import LogDirs

    require_brokers(cluster)
    keys = (await find_partitions(cluster, partitions)).keys if partitions else None
    found = await LogDirs(cluster).describe_log_dirs(brokers or None, partitions=keys)
    rows = {"dir": _by_dir, "broker": _by_broker, "topic": _by_topic, "replica": _by_replica}[kind](found)
    output.rows(_COLUMNS[kind], rows)
    failed = False
    for broker_id, dirs in found.items():
        if isinstance(dirs, KafkaError):
            note(f"broker {broker_id}: {dirs.code.name}: {dirs.message}")
            failed = True
            continue
        for dir_ in dirs.values():
            if dir_.error is not None:
                note(f"broker {broker_id}: {dir_.path}: {dir_.error.code.name}: {dir_.error.message}")
                failed = True
    return failed


Found = Mapping[int, "dict[str, LogDir] | KafkaError"]


def _by_dir(found: Found) -> Iterator[dict[str, Any]]:
    for broker_id, dirs in sorted(found.items()):
        if isinstance(dirs, KafkaError):
            yield {"broker": broker_id, "logDir": None, "error": dirs.code.name}
            continue
        for path, each in dirs.items():
            yield {
                "broker": broker_id,
                "logDir": path,
                **_sum(each.replicas),
                "usableBytes": each.usable_bytes,
                "totalBytes": each.total_bytes,
                "isCordoned": each.is_cordoned,
                "error": None if each.error is None else each.error.code.name,
            }


def _by_broker(found: Found) -> Iterator[dict[str, Any]]:
    for broker_id, dirs in sorted(found.items()):
        if isinstance(dirs, KafkaError):
            yield {"broker": broker_id, "error": dirs.code.name}
            continue
        errors = [each.error.code.name for each in dirs.values() if each.error is not None]
        yield {
            "broker": broker_id,
            "logDirs": len(dirs),
            **_sum(replica for each in dirs.values() for replica in each.replicas),
            "usableBytes": _total(each.usable_bytes for each in dirs.values()),
            "totalBytes": _total(each.total_bytes for each in dirs.values()),
            "error": errors[0] if errors else None,
        }


def _by_topic(found: Found) -> Iterator[dict[str, Any]]:
    topics: dict[str, list[StoredReplica]] = defaultdict(list)
    for _, _, replica in _replicas(found):
        topics[replica.topic].append(replica)
    for topic, replicas in sorted(topics.items()):
        yield {"topic": topic, "partitions": len({each.partition for each in replicas}), **_sum(replicas)}


def _by_replica(found: Found) -> Iterator[dict[str, Any]]:
    rows = sorted(_replicas(found), key=lambda row: (row[2].topic, row[2].partition, row[0], row[2].is_future))
    for broker_id, path, replica in rows:
        yield {
            "topic": replica.topic,
            "partition": replica.partition,
            "broker": broker_id,
            "logDir": path,
            "size": replica.size,
            "offsetLag": replica.offset_lag,
            "isFuture": replica.is_future,
        }


def _replicas(found: Found) -> Iterator[tuple[int, str, StoredReplica]]:
    for broker_id, dirs in found.items():
        if not isinstance(dirs, KafkaError):
            for path, each in dirs.items():
                for replica in each.replicas:
                    yield broker_id, path, replica


def _sum(replicas: Iterable[StoredReplica]) -> dict[str, int]:
    rows = list(replicas)
    return {
        "replicas": sum(not each.is_future for each in rows),
        "size": sum(each.size for each in rows),
        "futureReplicas": sum(each.is_future for each in rows),
        "maxOffsetLag": max((each.offset_lag for each in rows), default=0),
    }


def _total(sizes: Iterable[int | None]) -> int | None:
    known = [each for each in sizes if each is not None]
    return sum(known) if known else None


# --- move


@log_dirs.command("move")
@partitions_argument
@click.option("--broker", type=int, required=True, metavar="ID", help="Broker whose replicas to move.")
@click.option("--to", required=True, metavar="PATH", help="Target log dir, as in log.dirs of the broker.")
@throttle_option
@click.option("--wait", is_flag=True, help="Wait until the replicas have moved.")
@never_asks_option
@dry_run_option
@common_options
def move(
    partitions: tuple[Selection, ...],
    broker: int,
    to: str,
    throttle: int | None,
    wait: bool,
    dry_run: bool,
    connection: Connection,
    output: Output,
) -> None:
    """Move replicas of a broker to another of its log dirs. Clients are not affected.

    \b
    Examples:
      barnabas log-dirs move orders:0 --broker 1 --to /data/second
      barnabas log-dirs move orders payments --broker 1 --to /data/second --throttle 50MB --wait
    """
    if not partitions:
        raise click.UsageError("Give at least one topic or partition.")
    run(connection, lambda cluster: _move(cluster, partitions, broker, to, throttle, wait, dry_run, output))


async def _move(
    cluster: Cluster,
    partitions: tuple[Selection, ...],
    broker: int,
    to: str,
    throttle: int | None,
    wait: bool,
    dry_run: bool,
    output: Output,
) -> None:
    from barnabas.client.admin.log_dirs import LogDirs
    from barnabas.operations.reassignments import throttles

    moving = await _to_move(cluster, partitions, broker, to)
    if not moving:
        note(f"nothing to move: all replicas are in {to} already")
        if not output.is_for_people:
            output.rows(_MOVED, ())
        return
    size = bytes_text(sum(moving.values()))
    lines = [f"move {len(moving)} replica{'s' if len(moving) != 1 else ''} ({size}) of broker {broker} to {to}"]
    if throttle is not None:
        lines.append(f"throttle moves between log dirs of broker {broker} to {bytes_text(throttle)}/s")
    announce(lines, dry_run=dry_run)

    def row(replica: Replica, _: object) -> dict[str, Any]:
        return {"topic": replica.topic, "partition": replica.partition, "broker": broker, "logDir": to}

    if dry_run:
        if not output.is_for_people:
            show_results(output, _MOVED, dict.fromkeys(moving), row)
        return
    if throttle is not None:
        await throttles.throttle_log_dirs(cluster, [broker], throttle)
    results = await LogDirs(cluster).alter_replica_log_dirs(dict.fromkeys(moving, to))
    started = [each for each, result in results.items() if result is None]
    if wait and started:
        await _wait(cluster, started, to)
        if throttle is not None:
            await throttles.clear_brokers(cluster, [broker])
    show_results(output, _MOVED, results, row)


async def _to_move(cluster: Cluster, partitions: tuple[Selection, ...], broker: int, to: str) -> dict[Replica, int]:
    """Return the broker's replicas that are in another log dir, with their sizes. Raises Failure if it has none of them."""
    from barnabas.client.admin.log_dirs import LogDirs, Replica

    state, keys = await find_partitions(cluster, partitions)
    found = (await LogDirs(cluster).describe_log_dirs([broker], partitions=keys))[broker]
    if isinstance(found, KafkaError):
        raise Failure(f"{found.code.name}: {found.message}", resource=f"broker {broker}")
    if to not in found:
        raise Failure(f"no log dir {to}; its log dirs are {', '.join(found)}", resource=f"broker {broker}")
    wanted = [key for key in keys if broker in _replica_ids(state.partition(*key))]
    if not wanted:
        raise Failure("has no replica of these partitions", resource=f"broker {broker}")
    there: dict[Key, tuple[str, int]] = {}
    for path, dir_ in found.items():
        there |= {(each.topic, each.partition): (path, each.size) for each in dir_.replicas if not each.is_future}
    nowhere = ("", 0)
    return {Replica(*key, broker): there.get(key, nowhere)[1] for key in wanted if there.get(key, nowhere)[0] != to}


def _replica_ids(partition: Any) -> tuple[int, ...]:
    return () if partition is None else partition.replicas


async def _wait(cluster: Cluster, replicas: list[Replica], to: str) -> None:
    from barnabas.client.admin.log_dirs import LogDirs
    from barnabas.client.admin.part import checked

    total: int | None = None
    with Progress("moving", 100, "%") as progress:
        while True:
            found = checked(await LogDirs(cluster).describe_replica_log_dirs(replicas))
            left = [each for each in found.values() if each.log_dir != to]
            gone = [replica for replica, each in found.items() if to not in (each.log_dir, each.future_log_dir)]
            if gone:
                raise Failure("the move was cancelled or failed", resource=f"replica {gone[0]}")
            if not left:
                return
            behind = sum(max(each.size - each.future_size, 0) for each in left)
            total = max(behind, 1) if total is None else max(total, behind)
            progress.update(100 * (total - behind) // total)
            await asyncio.sleep(_POLL_S)
