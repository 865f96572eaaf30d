"""Partitions as arguments of commands: `orders`, `orders:0` or `orders:0,2`."""

from __future__ import annotations

from collections.abc import Iterable

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
