"""`barnabas kafka-transactions`: Kafka's script of this name, with its commands, its options and its lines."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Coroutine, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from barnabas.cli.connection import profiles
from barnabas.cli.connection.connecting import run
from barnabas.cli.kafka.argparse_tool import INTEGER, LONG, SHORT, ArgparseGroup
from barnabas.cli.kafka.drop_in import KAFKA_VERSION
from barnabas.cli.terminal.exit_codes import EXIT_FAILED
from barnabas.cli.terminal.failures import Failure
from barnabas.cli.terminal.output import note
from barnabas.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from barnabas.client.admin.producers import ProducerState
    from barnabas.client.admin.transactions import OpenTransaction
    from barnabas.client.cluster import Cluster
    from barnabas.client.records import TopicPartition

_PROGRAM = "kafka-transactions.sh"
_MINUTE_MS = 60_000
_DETAIL = "Enable debug logging for additional detail."


def _show_version(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    if value:
        click.echo(KAFKA_VERSION)
        ctx.exit()


def _topic_options(is_required: bool) -> Callable[[Any], Any]:
    def decorate(command: Any) -> Any:
        command = click.option("--partition", type=INTEGER, required=is_required, help="Partition.")(command)
        return click.option("--topic", required=is_required, help="Topic.")(command)

    return decorate


@click.group(
    "kafka-transactions",
    cls=ArgparseGroup,
    program=_PROGRAM,
    short_help="Find, describe and abort transactions as Kafka's script does.",
)
@click.option("-v", "--version", is_flag=True, is_eager=True, expose_value=False, callback=_show_version)
@click.option("--command-config", metavar="FILE", help="Properties file with client settings.")
@click.option("--bootstrap-server", metavar="HOST:PORT,...", required=True, help="Brokers to connect to.")
@click.pass_context
def kafka_transactions(ctx: click.Context, command_config: str | None, bootstrap_server: str) -> None:
    """Find, describe and abort transactions as Kafka's script of this name does. See also: barnabas transactions."""
    config = Path(command_config) if command_config else None
    ctx.obj = (bootstrap_server, config)


def _run(ctx: click.Context, what: str, work: Callable[[Cluster], Coroutine[Any, Any, str]]) -> None:
    """Run the work, and print its result or Kafka's error message."""
    bootstrap_server, config = ctx.obj
    try:
        connection = profiles.resolve({}, bootstrap_servers=bootstrap_server, command_config=config)
        click.echo(run(connection, work), nl=False)
    except _Refused as refused:
        note(str(refused))
        sys.exit(EXIT_FAILED)
    except Failure as failure:
        note(f"{what}: {failure.message}. {_DETAIL}")
        sys.exit(EXIT_FAILED)


class _Refused(Exception):  # noqa: N818 - it is what the tool ends with
    """The message of Kafka's tool before it exits with 1."""

    @classmethod
    def because(cls, what: str, why: str) -> _Refused:
        return cls(f"{what}: {why}. {_DETAIL}")


def table_text(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Format a table as Kafka does.

    >>> table_text(["A", "B"], [["long", 1]])
    'A   \\tB\\t\\nlong\\t1\\t\\n'
    """
    lines = [list(header), *([str(cell) for cell in row] for row in rows)]
    widths = [max(len(line[at]) for line in lines) for at in range(len(header))]
    return "".join(
        "".join(f"{cell:<{width}}\t" for cell, width in zip(line, widths, strict=True)) + "\n" for line in lines
    )


# --- commands


@kafka_transactions.command("list")
@click.option("--duration-filter", type=LONG, help="Only transactions that have run longer than this, in ms.")
@click.option("--transactional-id-pattern", help="Only transactional ids that match this regular expression.")
@click.pass_context
def list_(ctx: click.Context, duration_filter: int | None, transactional_id_pattern: str | None) -> None:
    """List transactions."""
    what = "Failed to list transactions"

    async def work(cluster: Cluster) -> str:
        from barnabas.client.admin.transactions import Transactions

        try:
            found = await Transactions(cluster).list_transactions(
                running_longer_than_ms=-1 if duration_filter is None else duration_filter,
                transactional_id_pattern=transactional_id_pattern or None,
            )
        except KafkaError as error:
            broker = min(cluster.state.brokers, default=-1)
            text = f"ListTransactions request sent to broker {broker} failed with an unexpected exception"
            raise _Refused.because(what, text) from error
        rows = ([each.transactional_id, each.coordinator_id, each.producer_id, each.state] for each in found)
        return table_text(["TransactionalId", "Coordinator", "ProducerId", "TransactionState"], rows)

    _run(ctx, what, work)


@kafka_transactions.command("describe", short_help="Describe a transactional id.")
@click.option("--transactional-id", required=True, help="The transactional id.")
@click.pass_context
def describe(ctx: click.Context, transactional_id: str) -> None:
    """Describe the state of an active transactional id."""
    what = f"Failed to describe transaction state of transactional-id `{transactional_id}`"

    async def work(cluster: Cluster) -> str:
        from barnabas.client.admin.transactions import Transactions

        found = (await Transactions(cluster).describe_transactions([transactional_id]))[transactional_id]
        if isinstance(found, KafkaError):
            why = {
                ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: "due to authorization failure",
                ErrorCode.TRANSACTIONAL_ID_NOT_FOUND: "because the ID could not be found",
            }.get(found.code, "due to unexpected error")
            text = f"DescribeTransactions request for transactionalId `{transactional_id}` failed {why}"
            raise _Refused.because(what, text)
        started = found.transaction_start_time_ms
        duration = "None" if started is None else int(time.time() * 1000) - started
        row = [
            *(found.coordinator_id, transactional_id, found.producer_id, found.producer_epoch, found.state),
            *(found.transaction_timeout_ms, "None" if started is None else started, duration),
            ",".join(map(str, found.topic_partitions)),
        ]
        header = ["CoordinatorId", "TransactionalId", "ProducerId", "ProducerEpoch", "TransactionState"]
        header += ["TransactionTimeoutMs", "CurrentTransactionStartTimeMs", "TransactionDurationMs", "TopicPartitions"]
        return table_text(header, [row])

    _run(ctx, what, work)


@kafka_transactions.command("describe-producers", short_help="Describe the producers of a partition.")
@click.option("--broker-id", type=INTEGER, help="Ask the replica on this broker.")
@_topic_options(is_required=True)
@click.pass_context
def describe_producers(ctx: click.Context, topic: str, partition: int, broker_id: int | None) -> None:
    """Describe the states of active producers for a topic partition."""
    where = "leader" if broker_id is None else f"broker {broker_id}"
    what = f"Failed to describe producers for partition {topic}-{partition} on {where}"

    async def work(cluster: Cluster) -> str:
        states = await _producers(cluster, topic, partition, broker_id)
        if isinstance(states, KafkaError):
            raise _Refused.because(what, str(states.message))
        header = ["ProducerId", "ProducerEpoch", "LatestCoordinatorEpoch", "LastSequence", "LastTimestamp"]
        return table_text(
            [*header, "CurrentTransactionStartOffset"],
            (
                [
                    *(each.producer_id, each.producer_epoch, _or(each.coordinator_epoch, -1), each.last_sequence),
                    *(each.last_timestamp, _or(each.current_txn_start_offset, "None")),
                ]
                for each in states
            ),
        )

    _run(ctx, what, work)


async def _producers(
    cluster: Cluster, topic: str, partition: int, broker_id: int | None = None
) -> list[ProducerState] | KafkaError:
    """Return the producers of a partition, or an error with the message of Kafka's client."""
    from barnabas.client.admin.producers import Producers
    from barnabas.client.records import TopicPartition

    wanted = TopicPartition(topic, partition)
    found = (await Producers(cluster).describe_producers([wanted], broker_id=broker_id))[wanted]
    if not isinstance(found, KafkaError):
        return found
    texts = {
        ErrorCode.NOT_LEADER_OR_FOLLOWER: f"Failed to describe active producers for partition {wanted} on brokerId {broker_id}",
        ErrorCode.TOPIC_AUTHORIZATION_FAILED: f"Failed to describe active producers for partition {wanted} "
        f"due to authorization failure on topic `{topic}`",
    }
    return KafkaError(found.code, texts.get(found.code, found.message))


@kafka_transactions.command("abort")
@_topic_options(is_required=True)
@click.option("--start-offset", type=LONG, help="The first offset of the transaction.")
@click.option("--producer-id", type=LONG, help="The producer id, for brokers older than 3.0.")
@click.option("--producer-epoch", type=SHORT, help="The epoch of the producer.")
@click.option("--coordinator-epoch", type=INTEGER, help="The epoch of the coordinator.")
@click.pass_context
def abort(
    ctx: click.Context,
    topic: str,
    partition: int,
    start_offset: int | None,
    producer_id: int | None,
    producer_epoch: int | None,
    coordinator_epoch: int | None,
) -> None:
    """Abort a hanging transaction."""

    async def work(cluster: Cluster) -> str:
        from barnabas.client.admin.transactions import Transactions

        if start_offset is not None:
            found = await _open_at(cluster, topic, partition, start_offset)
            spec = found.producer_id, found.producer_epoch, _or(found.coordinator_epoch, 0)
        else:
            spec = _spec(producer_id, producer_epoch, coordinator_epoch)
        of_producer, epoch, of_coordinator = spec
        try:
            await Transactions(cluster).abort_transaction(
                topic, partition, producer_id=of_producer, producer_epoch=epoch, coordinator_epoch=of_coordinator
            )
        except KafkaError as error:
            text = (
                f"AbortTransactionSpec(topicPartition={topic}-{partition}, producerId={of_producer}, "
                f"producerEpoch={epoch}, coordinatorEpoch={of_coordinator})"
            )
            raise _Refused.because(
                f"Failed to abort transaction {text}", _abort_problem(error, text, of_coordinator)
            ) from error
        return ""

    _run(ctx, "Failed to abort transaction", work)


def _spec(producer_id: int | None, producer_epoch: int | None, coordinator_epoch: int | None) -> tuple[int, int, int]:
    if producer_id is None:
        raise _Refused(
            "The transaction to abort must be identified either with --start-offset (for brokers on 3.0 or above) or with "
            "--producer-id, --producer-epoch, and --coordinator-epoch (for older brokers)"
        )
    if producer_epoch is None:
        raise _Refused("Missing required argument --producer-epoch")
    if coordinator_epoch is None:
        raise _Refused("Missing required argument --coordinator-epoch")
    return producer_id, producer_epoch, max(coordinator_epoch, 0)


async def _open_at(cluster: Cluster, topic: str, partition: int, start_offset: int) -> ProducerState:
    states = await _producers(cluster, topic, partition)
    if isinstance(states, KafkaError):
        what = f"Failed to validate producer state for partition {topic}-{partition}"
        raise _Refused.because(what, str(states.message))
    for state in states:
        if state.current_txn_start_offset == start_offset:
            return state
    raise _Refused(
        f"Could not find any open transactions starting at offset {start_offset} on partition {topic}-{partition}"
    )


def _abort_problem(error: KafkaError, spec: str, coordinator_epoch: int) -> str:
    tail = {
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED: "failed due to cluster authorization error",
        ErrorCode.INVALID_PRODUCER_EPOCH: "failed due an invalid producer epoch",
        ErrorCode.TRANSACTION_COORDINATOR_FENCED: f"failed since the provided coordinator epoch {coordinator_epoch} "
        "has been fenced by the active coordinator",
    }.get(error.code, f"failed due to unexpected error: {error.message}")
    return f"WriteTxnMarkers request with {spec} {tail}"


@kafka_transactions.command("find-hanging")
@click.option("--broker-id", type=INTEGER, help="Search the replicas on this broker.")
@click.option(
    "--max-transaction-timeout",
    type=INTEGER,
    default="15",
    help="Maximum duration in minutes of a transaction that is not hanging [15].",
)
@_topic_options(is_required=False)
@click.pass_context
def find_hanging(
    ctx: click.Context,
    topic: str | None,
    partition: int | None,
    broker_id: int | None,
    max_transaction_timeout: int,
) -> None:
    """Find hanging transactions."""

    async def work(cluster: Cluster) -> str:
        from barnabas.client.admin.transactions import Transactions
        from barnabas.client.records import TopicPartition

        if topic is None and broker_id is None:
            raise _Refused(
                "The `find-hanging` command requires either --topic or --broker-id to limit the scope of the search"
            )
        if topic is None and partition is not None:
            raise _Refused("The --partition argument requires --topic to be provided")
        wanted: list[TopicPartition] | None = None
        if topic is not None and partition is not None:
            wanted = [TopicPartition(topic, partition)]
        try:
            found = await Transactions(cluster).find_hanging_transactions(
                topics=None if topic is None else [topic],
                partitions=wanted,
                broker_id=broker_id,
                max_transaction_timeout_ms=max_transaction_timeout * _MINUTE_MS,
            )
        except KafkaError as error:
            raise _Refused.because("Failed to describe 1 topics", str(error.code.message)) from error
        return _hanging_text(found)

    _run(ctx, "Failed to find hanging transactions", work)


def _hanging_text(found: Iterable[OpenTransaction]) -> str:
    now_ms = int(time.time() * 1000)
    header = ["Topic", "Partition", "ProducerId", "ProducerEpoch", "CoordinatorEpoch", "StartOffset", "LastTimestamp"]
    rows = (
        [
            *(each.topic, each.partition, each.producer.producer_id, each.producer.producer_epoch),
            *(_or(each.producer.coordinator_epoch, -1), _or(each.producer.current_txn_start_offset, -1)),
            *(each.producer.last_timestamp, (now_ms - each.producer.last_timestamp) // _MINUTE_MS),
        ]
        for each in found
    )
    return table_text([*header, "Duration(min)"], rows)


@kafka_transactions.command("forceTerminateTransaction")
@click.option("--transactionalId", "transactional_id", required=True, help="The transactional id.")
@click.pass_context
def force_terminate_transaction(ctx: click.Context, transactional_id: str) -> None:
    """Abort the ongoing transaction of a transactional id."""
    what = f"Failed to force terminate transactionalId `{transactional_id}`"

    async def work(cluster: Cluster) -> str:
        from barnabas.client.admin.transactions import Transactions

        try:
            await Transactions(cluster).force_terminate_transaction(transactional_id)
        except KafkaError as error:
            why = {
                ErrorCode.CLUSTER_AUTHORIZATION_FAILED: "cluster authorization failure",
                ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: "transactional ID authorization failure",
            }.get(error.code, "unexpected error")
            text = f"InitProducerId request for transactionalId `{transactional_id}` failed due to {why}"
            raise _Refused.because(what, text) from error
        return ""

    _run(ctx, what, work)


def _or(value: int | None, default: Any) -> Any:
    return default if value is None else value
