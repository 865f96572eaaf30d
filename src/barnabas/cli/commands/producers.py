"""`barnabas producers`: list the producers of partitions, as their replicas track them.

Parses arguments and prints; the requests are in `client.admin.producers`.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from barnabas.cli.connection.completion import complete_topic
from barnabas.cli.connection.connecting import run
from barnabas.cli.connection.options import common_options
from barnabas.cli.connection.profiles import Connection
from barnabas.cli.terminal.command_groups import CommandGroup
from barnabas.cli.terminal.exit_codes import EXIT_FAILED
from barnabas.cli.terminal.failures import Failure, failure_of
from barnabas.cli.terminal.output import Column, Output, columns, note, utc_time
from barnabas.cli.terminal.watch import watch_option, watched
from barnabas.wire.errors import KafkaError

if TYPE_CHECKING:
    from barnabas.client.admin.producers import ProducerState
    from barnabas.client.cluster import Cluster
    from barnabas.client.records import TopicPartition

_COLUMNS = columns(
    *("topic", "partition", "producerId", "producerEpoch", "lastSequence", Column("lastTimestamp", show=utc_time)),
    *("coordinatorEpoch", Column("currentTxnStartOffset", style=lambda offset: None if offset is None else "yellow")),
)


@click.group(cls=CommandGroup, short_help="List the producers of partitions.")
def producers() -> None:
    """List the producers of partitions, and their open transactions.

    \b
    Examples:
      barnabas producers list orders
      barnabas producers list orders --partition 0 --partition 3
      barnabas producers list orders --broker-id 2              from the replicas on broker 2
    """


@producers.command("list", short_help="List the producers of a topic's partitions.")
@click.argument("topic", shell_complete=complete_topic)
@click.option(
    "--partition", "partitions", multiple=True, type=click.IntRange(0), help="Only this partition; may be repeated."
)
@click.option("--broker-id", type=int, help="Ask the replicas on this broker instead of the leaders.")
@click.option("--open", "only_open", is_flag=True, help="Only producers with an open transaction.")
@watch_option
@common_options
def list_(
    topic: str,
    partitions: tuple[int, ...],
    broker_id: int | None,
    only_open: bool,
    watch: float | None,
    connection: Connection,
    output: Output,
) -> None:
    """List the idempotent and transactional producers of a topic's partitions. Brokers do not track other producers."""

    async def show(cluster: Cluster) -> None:
        from barnabas.client.admin.producers import Producers

        wanted = await topic_partitions(cluster, topic, partitions, broker_id)

        async def once() -> None:
            found = await Producers(cluster).describe_producers(wanted, broker_id=broker_id)
            with output.table(_COLUMNS) as table:
                for each, states in found.items():
                    for state in [] if isinstance(states, KafkaError) else states:
                        if state.current_txn_start_offset is not None or not only_open:
                            table.add(producer_row(each, state))
            errors = {each: states for each, states in found.items() if isinstance(states, KafkaError)}
            for each, error in errors.items():
                note(f"Error: {each}: {error.code.name}: {error.message}")
            if errors and watch is None:
                sys.exit(EXIT_FAILED)

        await watched(output, watch, once)

    run(connection, show)


async def topic_partitions(
    cluster: Cluster, topic: str, partitions: tuple[int, ...] = (), broker_id: int | None = None
) -> list[TopicPartition]:
    """Return the given partitions of a topic, or all; with `broker_id`, only those with a replica there. Raises Failure."""
    from barnabas.client.records import TopicPartition

    state = await cluster.metadata([topic])
    if (code := state.errors.get(topic)) is not None:
        raise failure_of(KafkaError(code), f"topic {topic}")
    there = state.topics[topic].partitions
    missing = [number for number in partitions if number not in there]
    if missing:
        raise Failure(f"no partition {missing[0]}; number of partitions: {len(there)}", resource=f"topic {topic}")
    if broker_id is not None and broker_id not in state.nodes:
        known = ", ".join(map(str, sorted(state.nodes)))
        raise Failure(f"is not in the cluster; its brokers are {known}", resource=f"broker {broker_id}")
    return [
        TopicPartition(topic, number)
        for number in partitions or sorted(there)
        if broker_id is None or broker_id in there[number].replicas
    ]


def producer_row(each: TopicPartition, state: ProducerState) -> dict[str, Any]:
    return {
        "topic": each.topic,
        "partition": each.partition,
        "producerId": state.producer_id,
        "producerEpoch": state.producer_epoch,
        "lastSequence": state.last_sequence if state.last_sequence >= 0 else None,
        "lastTimestamp": state.last_timestamp,
        "coordinatorEpoch": state.coordinator_epoch,
        "currentTxnStartOffset": state.current_txn_start_offset,
    }
