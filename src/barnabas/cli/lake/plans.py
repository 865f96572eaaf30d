"""`barnabas lake plan`: recommended partition counts and reassignments, computed from the logs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from barnabas.cli.connection.options import output_options
from barnabas.cli.lake.asked import CLUSTER, FILE, checked_cluster, cluster_of, give, only
from barnabas.cli.lake.session import CONF, LAKE, answering, lake_failures, show
from barnabas.cli.terminal.command_groups import CommandGroup
from barnabas.cli.terminal.failures import Failure
from barnabas.cli.terminal.output import Output, note
from barnabas.metadata.as_of import EVERYTHING

if TYPE_CHECKING:
    from barnabas.lake.keeping.folders import Folder


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
    directory: Folder, is_all: bool, cluster_id: str | None, conf: tuple[str, ...], output: Output
) -> None:
    """List topics that need more partitions, with the recommended number and the reason.

    Computed from the records of topics, so the lake must have them (lake run --traffic). Add partitions with
    `barnabas topics alter`. They cannot be removed, and records with the same key may go to another partition afterwards.
    """
    with lake_failures(directory), answering(directory, conf, ("partition_plan",)) as answers:
        from barnabas.lake.asking.selection import Selection

        found = answers.select(
            Selection("partition_plan", order=("cluster_id", "topic")), None, checked_cluster(answers, cluster_id)
        )
        rows = list(found.rows)
        recommended, partitions = found.names.index("recommended"), found.names.index("partitions")
        wanted = rows if is_all else [row for row in rows if row[recommended] > row[partitions]]
        found = found._replace(rows=wanted)
        if output.is_for_people:
            found = only(found, [name for name in found.names if name not in ("cluster_id", "topic_id")])
            found = found._replace(rows=[tuple(map(_rounded, row)) for row in found.rows])
        if show(found, output):
            return
        if not rows:
            note("the lake has no records of topics; read them with: barnabas lake run --traffic")
        else:
            note("no topic needs more partitions")


def _rounded(value: Any) -> Any:
    return round(value, 1) if isinstance(value, float) else value


@plan.command("reassignment", short_help="Print a reassignment that balances brokers and racks.")
@LAKE
@CLUSTER
@FILE
@CONF
def plan_reassignment(directory: Folder, cluster_id: str | None, file: Path | None, conf: tuple[str, ...]) -> None:
    """Print the smallest reassignment that balances brokers and fixes rack placement, as JSON for `barnabas reassign run`."""
    with lake_failures(directory), answering(directory, conf, ("brokers", "partitions")) as answers:
        from barnabas.client.reassignment_plan import PlanError
        from barnabas.client.reassignment_plan import plan as made
        from barnabas.lake.asking.selection import Condition, Selection, as_dicts

        cluster = cluster_of(answers, cluster_id)
        there = Selection("brokers", (Condition("fenced", "=", False),), (), ("broker_id", "rack"))
        racks = {row["broker_id"]: row["rack"] for row in as_dicts(answers.select(there, EVERYTHING, cluster))}
        columns = ("topic_name", "partition", "replicas", "isr", "leader")
        rows = as_dicts(answers.select(Selection("partitions", columns=columns), EVERYTHING, cluster))
    partitions = {(row["topic_name"], row["partition"]): row for row in rows}
    try:
        found = made(
            {key: row["replicas"] for key, row in partitions.items()},
            racks,
            rebalance=True,
            isr={key: row["isr"] for key, row in partitions.items()},
            leaders={key: row["leader"] for key, row in partitions.items()},
        )
    except PlanError as error:
        raise Failure(str(error)) from None
    moves = [
        {"topic": topic, "partition": partition, "replicas": list(replicas)}
        for (topic, partition), replicas in found.targets.items()
    ]
    note(f"{len(moves)} of {len(rows)} partitions change" if moves else "nothing to move: the brokers are balanced")
    give(json.dumps({"version": 1, "partitions": moves}, indent=1) + "\n", file)
