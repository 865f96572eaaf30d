"""`barnabas transactions`: what is open, what hangs, and how to end it.

Reads arguments and shows; what is asked is in `client.admin.transactions`.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from barnabas.cli.commands.producers import producer_row, topic_partitions
from barnabas.cli.connection.completion import complete_topic
from barnabas.cli.connection.connecting import run
from barnabas.cli.connection.options import common_options, dry_run_option, yes_option
from barnabas.cli.connection.profiles import Connection
from barnabas.cli.terminal.changes import announce, confirm
from barnabas.cli.terminal.exit_codes import EXIT_FAILED, EXIT_NO
from barnabas.cli.terminal.failures import Failure, JudgingCommand, failure_of
from barnabas.cli.terminal.output import Column, Output, columns, note, utc_time
from barnabas.cli.terminal.watch import watch_option, watched
from barnabas.operations.quantities import duration_text, parse_duration_ms
from barnabas.wire.errors import KafkaError

if TYPE_CHECKING:
    from barnabas.client.admin.producers import ProducerState
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
_DESCRIBED = columns(
    *("transactionalId", "coordinatorId", "producerId", "producerEpoch", _STATE, "transactionTimeoutMs"),
    *(Column("transactionStartTimeMs", "STARTED", show=utc_time), Column("durationMs", "DURATION", show=duration_text)),
    "topicPartitions",
)
_HANGING = columns(
    *("topic", "partition", "producerId", "producerEpoch", "coordinatorEpoch"),
    *(Column("currentTxnStartOffset", "START-OFFSET"), Column("lastTimestamp", show=utc_time)),
    Column("durationMs", "DURATION", show=duration_text),
)


@click.group(short_help="Transactions: find, describe and abort them.")
def transactions() -> None:
    """Transactions: what is open, who has it open, and what hangs because nobody will end it.

    \b
    Examples:
      barnabas transactions list --state Ongoing
      barnabas transactions list --longer-than 10m
      barnabas transactions describe payments-1
      barnabas transactions find-hanging
      barnabas transactions abort --topic orders --partition 0 --start-offset 4711
      barnabas transactions abort --transactional-id payments-1
    """


@transactions.command("list", short_help="Transactional ids and the state of each.")
@click.option("--state", "states", multiple=True, type=click.Choice(_STATES, case_sensitive=False), help="Only these.")
@click.option("--producer-id", "producer_ids", multiple=True, type=int, help="Only of this producer; may be repeated.")
@click.option("--longer-than", metavar="DURATION", help="Only what is open for longer: 30s, 10m, PT1H.")
@click.option("--transactional-id-pattern", metavar="REGEX", help="Only ids that it matches as a whole.")
@watch_option
@common_options
def list_(
    states: tuple[str, ...],
    producer_ids: tuple[int, ...],
    longer_than: str | None,
    transactional_id_pattern: str | None,
    watch: float | None,
    connection: Connection,
    output: Output,
) -> None:
    """List transactional ids that coordinators know, with the state of their last transaction."""
    longer_than_ms = -1 if longer_than is None else _duration_ms(longer_than)
    if longer_than is not None and not states:
        states = _OPEN  # for brokers, what never began has run since 1970

    async def show(cluster: Cluster) -> None:
        from barnabas.client.admin.transactions import Transactions

        found = await Transactions(cluster).list_transactions(
            states=states,
            producer_ids=producer_ids,
            running_longer_than_ms=longer_than_ms,
            transactional_id_pattern=transactional_id_pattern,
        )
        rows = (
            {
                "transactionalId": each.transactional_id,
                "coordinatorId": each.coordinator_id,
                "producerId": each.producer_id,
                "transactionState": each.state,
            }
            for each in sorted(found, key=lambda each: each.transactional_id)
        )
        output.rows(_LISTED, rows)

    run(connection, lambda cluster: watched(watch, lambda: show(cluster)))


def _duration_ms(text: str) -> int:
    try:
        return parse_duration_ms(text)
    except ValueError as error:
        raise click.UsageError(f"{error}.") from None


@transactions.command("describe", short_help="Producer, state and partitions of transactional ids.")
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
            sys.exit(EXIT_FAILED)

    run(connection, lambda cluster: watched(watch, lambda: show(cluster)))


def _description_row(each: TransactionDescription) -> dict[str, Any]:
    started = each.transaction_start_time_ms
    is_open = started is not None and each.state in _OPEN
    return {
        "transactionalId": each.transactional_id,
        "coordinatorId": each.coordinator_id,
        "producerId": each.producer_id,
        "producerEpoch": each.producer_epoch,
        "transactionState": each.state,
        "transactionTimeoutMs": each.transaction_timeout_ms,
        "transactionStartTimeMs": started,
        "durationMs": int(time.time() * 1000) - (started or 0) if is_open else None,
        "topicPartitions": [str(partition) for partition in each.topic_partitions],
    }


@transactions.command("find-hanging", cls=JudgingCommand, short_help="Find what is open and nobody will end.")
@click.option("--topic", shell_complete=complete_topic, help="Look there; without it at all topics.")
@click.option("--partition", "partitions", multiple=True, type=click.IntRange(0), help="Of the topic; may be repeated.")
@click.option("--broker-id", type=int, help="Look at the replicas there, in place of the leaders.")
@click.option(
    "--max-transaction-timeout",
    default="15m",
    show_default=True,
    metavar="DURATION",
    help="What is younger is not looked at: transaction.max.timeout.ms of the brokers.",
)
@common_options
def find_hanging(
    topic: str | None,
    partitions: tuple[int, ...],
    broker_id: int | None,
    max_transaction_timeout: str,
    connection: Connection,
    output: Output,
) -> None:
    """Find transactions that are open in a partition, but that no coordinator will end. Exit code 2 if there are some.

    They hold up every consumer that reads committed records alone. End them with: barnabas transactions abort.
    """
    if partitions and topic is None:
        raise click.UsageError("--partition is of a --topic.")
    timeout_ms = _duration_ms(max_transaction_timeout)

    async def look(cluster: Cluster) -> list[OpenTransaction]:
        from barnabas.client.admin.transactions import Transactions

        wanted = None if topic is None else await topic_partitions(cluster, topic, partitions, broker_id)
        return await Transactions(cluster).find_hanging_transactions(
            partitions=wanted, broker_id=broker_id, max_transaction_timeout_ms=timeout_ms
        )

    if output.rows(_HANGING, map(_hanging_row, run(connection, look))):
        raise SystemExit(EXIT_NO)


def _hanging_row(found: OpenTransaction) -> dict[str, Any]:
    from barnabas.client.records import TopicPartition

    row = producer_row(TopicPartition(found.topic, found.partition), found.producer)
    return {**row, "durationMs": int(time.time() * 1000) - found.producer.last_timestamp}


# --- ending them


@transactions.command("abort", short_help="Abort a transaction, by its place or its id.")
@click.option("--transactional-id", help="Abort what is open under this id, by fencing its producer.")
@click.option("--topic", shell_complete=complete_topic, help="Where a transaction hangs.")
@click.option("--partition", type=click.IntRange(0), help="Where a transaction hangs.")
@click.option("--start-offset", type=click.IntRange(0), help="Where in the partition it begins.")
@click.option("--producer-id", type=int, help="Its producer, where brokers are older than Kafka 3.0.")
@click.option("--producer-epoch", type=int, help="Of that producer.")
@click.option("--coordinator-epoch", type=int, help="Of the coordinator that knew it [0].")
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
    """Abort a transaction: one that hangs in a partition, or whatever is open under a transactional id.

    A transaction that hangs is named by --topic, --partition and --start-offset, as find-hanging shows them; only a
    marker is written there, so a transaction that its coordinator still knows should be ended by its id.
    """
    if (transactional_id is None) == (topic is None or partition is None):
        raise click.UsageError("Say which: --transactional-id, or --topic, --partition and --start-offset.")
    if transactional_id is not None:
        _abort_by_id(connection, output, transactional_id, dry_run=dry_run, yes=yes)
        return
    by_producer = producer_id is not None and producer_epoch is not None
    if (start_offset is None) == (not by_producer):
        raise click.UsageError("Say which: --start-offset, or --producer-id and --producer-epoch.")

    async def work(cluster: Cluster) -> Mapping[str, Any]:
        from barnabas.client.admin.producers import ProducerState
        from barnabas.client.admin.transactions import Transactions

        assert topic is not None
        assert partition is not None
        if start_offset is None:
            assert producer_id is not None
            assert producer_epoch is not None
            found = ProducerState(producer_id, producer_epoch, -1, -1, coordinator_epoch, None)
        else:
            found = await _open_at(cluster, topic, partition, start_offset)
        announce(
            [
                f"abort the transaction of producer {found.producer_id} (epoch {found.producer_epoch}) in {topic}-{partition}"
            ],
            dry_run=dry_run,
        )
        if not dry_run:
            confirm("What it has written there will not be read. Abort it?", yes=yes)
            await Transactions(cluster).abort_transaction(
                topic,
                partition,
                producer_id=found.producer_id,
                producer_epoch=found.producer_epoch,
                coordinator_epoch=found.coordinator_epoch or 0,
            )
        return {
            "topic": topic,
            "partition": partition,
            "producerId": found.producer_id,
            "producerEpoch": found.producer_epoch,
            "coordinatorEpoch": found.coordinator_epoch,
            "currentTxnStartOffset": found.current_txn_start_offset,
        }

    output.one(run(connection, work))


async def _open_at(cluster: Cluster, topic: str, partition: int, start_offset: int) -> ProducerState:
    from barnabas.client.admin.producers import Producers

    (wanted,) = await topic_partitions(cluster, topic, (partition,))
    states = (await Producers(cluster).describe_producers([wanted]))[wanted]
    if isinstance(states, KafkaError):
        raise failure_of(states, str(wanted))
    found = [state for state in states if state.current_txn_start_offset == start_offset]
    if not found:
        raise Failure(
            f"no transaction is open that begins at offset {start_offset}",
            resource=str(wanted),
            advice=f"barnabas producers list {topic} --partition {partition} --open",
        )
    return found[0]


def _abort_by_id(connection: Connection, output: Output, transactional_id: str, *, dry_run: bool, yes: bool) -> None:
    async def work(cluster: Cluster) -> Mapping[str, Any]:
        from barnabas.client.admin.transactions import Transactions

        found = (await Transactions(cluster).describe_transactions([transactional_id]))[transactional_id]
        if isinstance(found, KafkaError):  # to fence an id that nobody knows would make it
            raise failure_of(found, f"transactional id {transactional_id}")
        announce([f"fence the producer of {transactional_id}, whose transaction is {found.state}"], dry_run=dry_run)
        if not dry_run:
            confirm("A producer that uses this id now will fail. Fence it?", yes=yes)
            await Transactions(cluster).force_terminate_transaction(transactional_id)
        return _description_row(found)

    output.one(run(connection, work))
