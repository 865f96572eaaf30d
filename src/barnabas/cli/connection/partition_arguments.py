"""Partitions as arguments: `orders` for a topic, `orders:0` or `orders:0,2` for some of its partitions.

Its one rule: what a command names must be there. A topic or partition that is not ends the command, by name.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

import click

from barnabas.cli.connection.completion import complete_topic
from barnabas.cli.terminal.failures import ADVICE, Failure
from barnabas.wire.errors import ErrorCode

if TYPE_CHECKING:
    from barnabas.client.cluster import Cluster
    from barnabas.client.state import ClusterState

Key = tuple[str, int]


class Wanted(NamedTuple):
    """A topic, and some of its partitions; None: all."""

    topic: str
    partitions: tuple[int, ...] | None = None


def parse_partitions(ctx: click.Context, param: click.Parameter, values: Iterable[str]) -> tuple[Wanted, ...]:
    """The callback of an argument."""
    return tuple(_parse(ctx, param, value) for value in values)


partitions_argument = click.argument(
    "partitions",
    nargs=-1,
    metavar="[TOPIC[:PARTITION,...]]...",
    callback=parse_partitions,
    shell_complete=complete_topic,
)


def _parse(ctx: click.Context, param: click.Parameter, value: str) -> Wanted:
    topic, colon, numbers = value.partition(":")
    if not colon:
        return Wanted(topic)
    try:
        return Wanted(topic, tuple(int(each) for each in numbers.split(",")))
    except ValueError:
        raise click.BadParameter(
            f"{value!r}: partitions are numbers, as in orders:0 or orders:0,2", ctx, param
        ) from None


class Found(NamedTuple):
    """The state of the topics, and the partitions that were asked for, in order."""

    state: ClusterState
    keys: list[Key]


def require_brokers(cluster: Cluster) -> None:
    """Controllers do not tell about topics and disks."""
    if not cluster.state.brokers:
        raise Failure("only brokers can tell that, and these are controllers", advice="give --bootstrap-server")


async def find_partitions(cluster: Cluster, wanted: Iterable[Wanted]) -> Found:
    """The partitions that are meant; all of the cluster if none is named."""
    require_brokers(cluster)
    asked = list(wanted)
    state = await cluster.metadata([each.topic for each in asked] if asked else None)
    for topic, code in state.errors.items():
        if asked or code is not ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:  # one may just have been deleted
            raise Failure(f"{code.name}: {code.message}", resource=f"topic {topic}", advice=ADVICE.get(code))
    keys: dict[Key, None] = {}
    for topic, numbers in asked or [Wanted(name) for name in sorted(state.topics)]:
        there = state.topics[topic].partitions
        for number in sorted(there) if numbers is None else numbers:
            if number not in there:
                raise Failure(f"it has partitions 0 to {len(there) - 1}, not {number}", resource=f"topic {topic}")
            keys[topic, number] = None
    return Found(state, list(keys))
