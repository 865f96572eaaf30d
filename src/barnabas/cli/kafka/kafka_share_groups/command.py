"""`barnabas kafka-share-groups`: Kafka's script of this name, with its options and its lines.

Parses options. Requests and reports are in `cli.kafka.kafka_share_groups.actions`.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from barnabas.cli.connection import profiles
from barnabas.cli.connection.connecting import run
from barnabas.cli.kafka.drop_in import KafkaTool
from barnabas.cli.terminal.exit_codes import EXIT_FAILED
from barnabas.cli.terminal.failures import Failure
from barnabas.cli.terminal.output import note

_MANY: dict[str, Any] = {"multiple": True}


@click.command(
    "kafka-share-groups",
    cls=KafkaTool,
    context_settings={"allow_extra_args": True},
    short_help="List, describe, reset and delete share groups as Kafka's script does.",
)
@click.option("--bootstrap-server", metavar="HOST:PORT,...", help="Brokers to connect to.")
@click.option("--command-config", metavar="FILE", help="Properties file with client settings.")
@click.option("--timeout", metavar="MS", default="30000", help="Timeout in ms [30000].")
@click.option("--list", is_flag=True, help="List share groups.")
@click.option("--describe", is_flag=True, help="Describe groups, with the lag of each partition.")
@click.option("--delete", is_flag=True, help="Delete groups.")
@click.option("--reset-offsets", is_flag=True, help="Set the start offsets of a group that has no members.")
@click.option("--delete-offsets", is_flag=True, help="Delete the offsets of a group in topics.")
@click.option("--group", **_MANY, metavar="GROUP", help="A group; may be repeated.")
@click.option("--all-groups", is_flag=True, help="All share groups.")
@click.option("--topic", **_MANY, metavar="TOPIC[:0,1]", help="A topic, or for a reset some of its partitions.")
@click.option("--all-topics", is_flag=True, help="All topics of the group.")
@click.option("--members", is_flag=True, help="With --describe: show members.")
@click.option("--offsets", is_flag=True, help="With --describe: show offsets (the default).")
@click.option(
    "--state",
    is_flag=False,
    flag_value="",
    metavar="[STATE,...]",
    help="With --describe or --list: show the state; with --list, only these states.",
)
@click.option("--verbose", is_flag=True, help="With --describe: show more columns.")
@click.option("--dry-run", is_flag=True, help="With --reset-offsets: only show the new offsets.")
@click.option("--execute", is_flag=True, help="With --reset-offsets: set the new offsets.")
@click.option("--to-earliest", is_flag=True, help="Reset to the first offset.")
@click.option("--to-latest", is_flag=True, help="Reset to the end.")
@click.option("--to-datetime", metavar="TIME", help="Reset to a time, such as 2026-01-31T12:30:00.000.")
@click.pass_context
def kafka_share_groups(ctx: click.Context, /, **given: Any) -> None:
    """List, describe, reset and delete share groups as Kafka's script of this name does. See also: barnabas groups."""
    from barnabas.cli.kafka.group_tools import say_error  # imports asyncio
    from barnabas.cli.kafka.kafka_consumer_groups.lines import ToolProblem, Unavailable, UsageProblem, parse_long
    from barnabas.cli.kafka.kafka_share_groups.actions import act
    from barnabas.cli.kafka.kafka_share_groups.lines import check

    has = {name.replace("_", "-"): value for name, value in given.items() if value not in (None, False, ())}
    try:
        check(has)
        timeout_ms = parse_long("timeout", has["timeout"])
        connection = profiles.resolve(
            {},
            bootstrap_servers=has["bootstrap-server"],
            command_config=Path(has["command-config"]) if "command-config" in has else None,
            given={"default.api.timeout.ms": str(timeout_ms), "request.timeout.ms": str(min(timeout_ms, 30_000))},
        )
        run(connection, lambda cluster: act(cluster, has))
    except Unavailable as problem:
        note(f'Exception in thread "main" joptsimple.UnavailableOptionException: {problem}')
        sys.exit(EXIT_FAILED)
    except UsageProblem as problem:
        note(str(problem))
        note(ctx.get_help())
        sys.exit(EXIT_FAILED)
    except ToolProblem as problem:
        say_error(f"Executing share group command failed due to {problem}")
    except Failure as failure:
        say_error(f"Executing share group command failed due to {failure.message}")
