"""`barnabas lake plan`: recommended partition counts and reassignments, computed from the logs."""

from __future__ import annotations

import json
from pathlib import Path

import click

from barnabas.cli.connection.options import output_options
from barnabas.cli.lake.asked import CLUSTER, FILE, cluster_of, give, rows_of
from barnabas.cli.lake.session import CONF, LAKE, lake_failures, opened, show
from barnabas.cli.terminal.command_groups import CommandGroup
from barnabas.cli.terminal.failures import Failure
from barnabas.cli.terminal.output import Output, note


@click.group("plan", cls=CommandGroup)
def plan() -> None:
    """Recommend partition counts and reassignments."""


@plan.command("partitions", short_help="List topics that need more partitions.")
@LAKE
@click.option("--all", "is_all", is_flag=True, help="Include topics that have enough partitions.")
@CLUSTER
@CONF
@output_options
def plan_partitions(
    directory: Path, is_all: bool, cluster_id: str | None, conf: tuple[str, ...], output: Output
) -> None:
    """List topics that need more partitions, with the recommended number and the reason.

    Computed from the records of topics, so the lake must have them (lake run --traffic). Add partitions with
    `barnabas topics alter`. They cannot be removed, and records with the same key may go to another partition afterwards.
    """
    with lake_failures(directory), opened(directory, conf) as tables:
        found = rows_of(tables, "partition_plan", cluster_id)
        rows = (found if is_all else found.where("recommended > partitions")).orderBy("cluster_id", "topic")
        if show(rows.drop("cluster_id", "topic_id") if output.is_for_people else rows, output):
            return
        if is_all or found.isEmpty():
            note("the lake has no records of topics; read them with: barnabas lake run --traffic")
        else:
            note("no topic needs more partitions")


@plan.command("reassignment", short_help="Print a reassignment that balances brokers and racks.")
@LAKE
@CLUSTER
@FILE
@CONF
def plan_reassignment(directory: Path, cluster_id: str | None, file: Path | None, conf: tuple[str, ...]) -> None:
    """Print the smallest reassignment that balances brokers and fixes rack placement, as JSON for `barnabas reassign run`."""
    with lake_failures(directory), opened(directory, conf) as tables:
        from barnabas.client.reassignment_plan import PlanError
        from barnabas.client.reassignment_plan import plan as made

        state = tables.as_of(None, cluster_of(tables, cluster_id))
        racks = {
            row.broker_id: row.rack
            for row in state["brokers"].where("not fenced").select("broker_id", "rack").collect()
        }
        rows = state["partitions"].select("topic_name", "partition", "replicas", "isr", "leader").collect()
    partitions = {(row.topic_name, row.partition): row for row in rows}
    try:
        found = made(
            {key: row.replicas for key, row in partitions.items()},
            racks,
            rebalance=True,
            isr={key: row.isr for key, row in partitions.items()},
            leaders={key: row.leader for key, row in partitions.items()},
        )
    except PlanError as error:
        raise Failure(str(error)) from None
    moves = [
        {"topic": topic, "partition": partition, "replicas": list(replicas)}
        for (topic, partition), replicas in found.targets.items()
    ]
    note(f"{len(moves)} of {len(rows)} partitions change" if moves else "nothing to move: the brokers are balanced")
    give(json.dumps({"version": 1, "partitions": moves}, indent=1) + "\n", file)
