"""Partitions as arguments of commands, and as fields of rows: `orders`, `orders:0` or `orders:0,2`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import click

from barnabas.cli.connection.completion import complete_topic
from barnabas.operations.partitions import Selection, parse_selection


def parse_partitions(ctx: click.Context, param: click.Parameter, values: Iterable[str]) -> tuple[Selection, ...]:
    """Parse the values of `partitions_argument`; a click callback."""
    try:
        return tuple(map(parse_selection, values))
    except ValueError as error:
        raise click.BadParameter(str(error), ctx, param) from None


partitions_argument = click.argument(
    "partitions",
    nargs=-1,
    metavar="[TOPIC[:PARTITION,...]]...",
    callback=parse_partitions,
    shell_complete=complete_topic,
)


def partitions_by_topic(partitions: Iterable[tuple[str, int]]) -> list[dict[str, Any]]:
    """Return partitions as a field of a row: one object per topic.

    >>> partitions_by_topic([("orders", 2), ("orders", 0)])
    [{'topic': 'orders', 'partitions': [0, 2]}]
    """
    found: dict[str, list[int]] = {}
    for topic, partition in sorted(partitions):
        found.setdefault(topic, []).append(partition)
    return [{"topic": topic, "partitions": numbers} for topic, numbers in found.items()]
