"""`barnabas transactions`: list, describe and abort transactions, and find hanging ones.

Parses arguments and prints; the requests are in `client.admin.transactions`.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from barnabas.cli.commands.producers import producer_row, topic_partitions
from barnabas.cli.connection.completion import complete_topic
from barnabas.cli.connection.connecting import run
from barnabas.cli.connection.options import common_options, dry_run_option, yes_option
from barnabas.cli.connection.partition_arguments import partitions_by_topic
from barnabas.cli.connection.profiles import Connection
from barnabas.cli.terminal.changes import carry_out
from barnabas.cli.terminal.command_groups import CommandGroup
from barnabas.cli.terminal.exit_codes import EXIT_NO
from barnabas.cli.terminal.failures import ItemsFailed, JudgingCommand
from barnabas.cli.terminal.output import Column, Output, columns, note, utc_time
from barnabas.cli.terminal.parsing import duration_ms
from barnabas.cli.terminal.watch import watch_option, watched
from barnabas.operations.partitions import require_brokers
from barnabas.operations.quantities import duration_text
from barnabas.wire.errors import KafkaError

if TYPE_CHECKING:
    from barnabas.client.admin.transactions import OpenTransaction, TransactionDescription
    from barnabas.client.cluster import Cluster

_STATES = (
    *("Empty", "Ongoing", "PrepareCommit", "PrepareAbort", "CompleteCommit", "CompleteAbort"),
    *("PrepareEpochFence", "Dead"),
)


_OPEN = ("Ongoing", "PrepareCommit", "PrepareAbort")


def _state_color(state: Any) -> str | None:
    return {"Ongoing": "green", "Dead": "red"}.get(state, "yellow" if str(state).startswith("Prepare") else None)


_STATE = Column("transactionState", "STATE", style=_state_color)
_LISTED = columns("transactionalId", "coordinatorId", "producerId", _STATE)
_TIMES = columns(
    Column("transactionStartTimeMs", "STARTED", show=utc_time), Column("durationMs", "DURATION", show=duration_text)
)
_DESCRIBED = columns(
    *("transactionalId", "coordinatorId", "producerId", "producerEpoch", _STATE, "transactionTimeoutMs"),
    *_TIMES,
    "topicPartitions",
)
_HANGING = columns(
    *("topic", "partition", "producerId", "producerEpoch", "coordinatorEpoch"),
    *(Column("currentTxnStartOffset", "START-OFFSET"), Column("lastTimestamp", show=utc_time)),
    Column("durationMs", "DURATION", show=duration_text),
)


@click.group(cls=CommandGroup, short_help="List, describe and abort transactions; find hanging ones.")
def transactions() -> None:
    """List, describe and abort transactions; find hanging ones.

    A hanging transaction is open in a partition, but its coordinator does not know it and will not end it.

    \b
    Examples:
      barnabas transactions list --state Ongoing
      barnabas transactions list --longer-than 10m
      barnabas transactions describe payments-1
      barnabas transactions find-hanging
      barnabas transactions abort --topic orders --partition 0 --start-offset 4711
      barnabas transactions abort --transactional-id payments-1
    """


@transactions.command("list", short_help="List transactional ids and their state.")
@click.option(
    "--state",
    "states",
    multiple=True,
    type=click.Choice(_STATES, case_sensitive=False),
    help="Only this state; may be repeated.",
)
@click.option("--producer-id", "producer_ids", multiple=True, type=int, help="Only this producer id; may be repeated.")
@click.option(
    "--longer-than",
    callback=duration_ms,
    metavar="DURATION",
    help="Only transactions open for longer than this: 30s, 10m, PT1H.",
)
@click.option(
    "--transactional-id-pattern", metavar="REGEX", help="Only ids that match this regular expression entirely."
)
@watch_option
@common_options
def list_(
    states: tuple[str, ...],
    producer_ids: tuple[int, ...],
    longer_than: int | None,
    transactional_id_pattern: str | None,
    watch: float | None,
    connection: Connection,
    output: Output,
) -> None:
    """List the transactional ids of all coordinators, with the state of their last transaction.

    With --longer-than, also show when it started, and for how long it has been open.
    """
    if longer_than is not None and not states:
        states = _OPEN  # brokers treat an id without a transaction as open since 1970

    async def show(cluster: Cluster) -> None:
        from barnabas.client.admin.transactions import Transactions

        require_brokers(cluster)
        found = await Transactions(cluster).list_transactions(
            states=states,
            producer_ids=producer_ids,
            running_longer_than_ms=-1 if longer_than is None else longer_than,
            transactional_id_pattern=transactional_id_pattern,
        )
        found.sort(key=lambda each: each.transactional_id)
        rows = [
            {
                "transactionalId": each.transactional_id,
                "coordinatorId": each.coordinator_id,
                "producerId": each.producer_id,
                "transactionState": each.state,
            }
            for each in found
        ]
        if longer_than is None:
            output.rows(_LISTED, rows)
            return
        # The list has no times.
        described = await Transactions(cluster).describe_transactions([each.transactional_id for each in found])
        times = [_times(described[each.transactional_id]) for each in found]
        output.rows((*_LISTED, *_TIMES), [{**row, **more} for row, more in zip(rows, times, strict=True)])

    run(connection, lambda cluster: watched(output, watch, lambda: show(cluster)))


@transactions.command("describe", short_help="Show producer, state and partitions of transactional ids.")
@click.argument("transactional_ids", metavar="TRANSACTIONAL-ID...", nargs=-1, required=True)
@watch_option
@common_options
def describe(transactional_ids: tuple[str, ...], watch: float | None, connection: Connection, output: Output) -> None:
    """Show the producer, the state and the partitions of transactional ids."""

    async def show(cluster: Cluster) -> None:
        from barnabas.client.admin.transactions import Transactions

        found = await Transactions(cluster).describe_transactions(transactional_ids)
        described = [each for each in found.values() if not isinstance(each, KafkaError)]
        output.rows(_DESCRIBED, map(_description_row, described))
        for transactional_id, error in found.items():
            if isinstance(error, KafkaError):
                note(f"Error: transactional id {transactional_id}: {error.code.name}: {error.message}")
        if len(described) < len(found) and watch is None:
            raise ItemsFailed(error.code for error in found.values() if isinstance(error, KafkaError))

    run(connection, lambda cluster: watched(output, watch, lambda: show(cluster)))


def _times(each: TransactionDescription | KafkaError) -> dict[str, Any]:
    """Return the start of a transaction, and its duration if it is open."""
    started = None if isinstance(each, KafkaError) else each.transaction_start_time_ms
    is_open = started is not None and not isinstance(each, KafkaError) and each.state in _OPEN
    open_for_ms = int(time.time() * 1000) - (started or 0) if is_open else None
    return {"transactionStartTimeMs": started, "durationMs": open_for_ms}


def _description_row(each: TransactionDescription) -> dict[str, Any]:
    return {
        "transactionalId": each.transactional_id,
        "coordinatorId": each.coordinator_id,
        "producerId": each.producer_id,
        "producerEpoch": each.producer_epoch,
        "transactionState": each.state,
        "transactionTimeoutMs": each.transaction_timeout_ms,
        **_times(each),
        "topicPartitions": [str(partition) for partition in each.topic_partitions],
        "topics": partitions_by_topic(each.topic_partitions),
    }


@transactions.command(
    "find-hanging", cls=JudgingCommand, short_help="Find open transactions that no coordinator will end."
)
@click.option("--topic", shell_complete=complete_topic, help="Topic to search.  [default: all]")
@click.option(
    "--partition", "partitions", multiple=True, type=click.IntRange(0), help="Partition of the topic; may be repeated."
)
@click.option("--broker-id", type=int, help="Search the replicas on this broker instead of the leaders.")
@click.option(
    "--max-transaction-timeout",
    default="15m",
    show_default=True,
    callback=duration_ms,
    metavar="DURATION",
    help="Ignore younger transactions; use transaction.max.timeout.ms of the brokers.",
)
@common_options
def find_hanging(
    topic: str | None,
    partitions: tuple[int, ...],
    broker_id: int | None,
    max_transaction_timeout: int,
    connection: Connection,
    output: Output,
) -> None:
    """Find transactions that are open in a partition, but that no coordinator will end. Exits with 2 if there are any.

    They block every consumer with isolation.level=read_committed. End them with: barnabas transactions abort.
    """
    if partitions and topic is None:
        raise click.UsageError("--partition can only be used with --topic.")

    async def look(cluster: Cluster) -> list[OpenTransaction]:
        from barnabas.client.admin.transactions import Transactions

        require_brokers(cluster)
        wanted = None if topic is None else await topic_partitions(cluster, topic, partitions, broker_id)
        return await Transactions(cluster).find_hanging_transactions(
            partitions=wanted, broker_id=broker_id, max_transaction_timeout_ms=max_transaction_timeout
        )

    found = run(connection, look)
    if found or not output.is_for_people:
        output.rows(_HANGING, map(_hanging_row, found))
    if not found:
        note("no transaction hangs")
        return
    first = found[0]
    note(
        f"end them one by one, such as the first: barnabas transactions abort --topic {first.topic} "
        f"--partition {first.partition} --start-offset {first.producer.current_txn_start_offset}"
    )
    raise SystemExit(EXIT_NO)


def _hanging_row(found: OpenTransaction) -> dict[str, Any]:
    from barnabas.client.records import TopicPartition

    row = producer_row(TopicPartition(found.topic, found.partition), found.producer)
    return {**row, "durationMs": int(time.time() * 1000) - found.producer.last_timestamp}


# --- aborting


@transactions.command("abort", short_help="Abort a transaction, by partition and offset or by transactional id.")
@click.option("--transactional-id", help="Abort the open transaction of this id by fencing its producer.")
@click.option("--topic", shell_complete=complete_topic, help="Topic of a hanging transaction.")
@click.option("--partition", type=click.IntRange(0), help="Partition of a hanging transaction.")
@click.option("--start-offset", type=click.IntRange(0), help="First offset of the hanging transaction.")
@click.option(
    "--producer-id", type=int, help="Producer id of the hanging transaction, for brokers older than Kafka 3.0."
)
@click.option("--producer-epoch", type=int, help="Producer epoch of the hanging transaction.")
@click.option("--coordinator-epoch", type=int, help="Coordinator epoch of the hanging transaction.  [default: 0]")
@dry_run_option
@yes_option
@common_options
def abort(
    transactional_id: str | None,
    topic: str | None,
    partition: int | None,
    start_offset: int | None,
    producer_id: int | None,
    producer_epoch: int | None,
    coordinator_epoch: int | None,
    dry_run: bool,
    yes: bool,
    connection: Connection,
    output: Output,
) -> None:
    """Abort a hanging transaction in a partition, or the open transaction of a transactional id.

    Give a hanging transaction by --topic, --partition and --start-offset, as find-hanging shows them. This writes only an
    abort marker to that partition. If the coordinator still knows the transaction, abort it by --transactional-id.
    """
    if (transactional_id is None) == (topic is None or partition is None):
        raise click.UsageError("Give either --transactional-id, or --topic, --partition and --start-offset.")
    if transactional_id is not None:
        _abort_by_id(connection, output, transactional_id, dry_run=dry_run, yes=yes)
        return
    by_producer = producer_id is not None and producer_epoch is not None
    if (start_offset is None) == (not by_producer):
        raise click.UsageError("Give either --start-offset, or --producer-id and --producer-epoch.")

    async def work(cluster: Cluster) -> Mapping[str, Any]:
        from barnabas.client.admin.producers import ProducerState
        from barnabas.client.records import TopicPartition
        from barnabas.operations.transaction_aborts import open_at, propose_abort

        assert topic is not None
        assert partition is not None
        if start_offset is None:
            assert producer_id is not None
            assert producer_epoch is not None
            wanted = TopicPartition(topic, partition)
            found = ProducerState(producer_id, producer_epoch, -1, -1, coordinator_epoch, None)
        else:
            (wanted,) = await topic_partitions(cluster, topic, (partition,))
            found = await open_at(cluster, wanted, start_offset)
        found = (await carry_out(propose_abort(cluster, wanted, found), dry_run=dry_run, yes=yes))[wanted]
        return {
            "topic": topic,
            "partition": partition,
            "producerId": found.producer_id,
            "producerEpoch": found.producer_epoch,
            "coordinatorEpoch": found.coordinator_epoch,
            "currentTxnStartOffset": found.current_txn_start_offset,
        }

    output.one(run(connection, work))


def _abort_by_id(connection: Connection, output: Output, transactional_id: str, *, dry_run: bool, yes: bool) -> None:
    async def work(cluster: Cluster) -> Mapping[str, Any]:
        from barnabas.operations.transaction_aborts import propose_fencing

        proposal = await propose_fencing(cluster, transactional_id)
        return _description_row((await carry_out(proposal, dry_run=dry_run, yes=yes))[transactional_id])

    output.one(run(connection, work))
