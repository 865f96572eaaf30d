"""`barnabas kafka-reassign-partitions`: Kafka's script of this name, with its options and its lines."""

from __future__ import annotations

import re
import sys
from collections.abc import Coroutine
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import click

from barnabas.cli.connection import profiles
from barnabas.cli.connection.connecting import run
from barnabas.cli.kafka.java_text import exception_text
from barnabas.cli.kafka.java_tool import JavaTool, refuse
from barnabas.cli.terminal.exit_codes import EXIT_FAILED
from barnabas.cli.terminal.failures import Failure
from barnabas.cli.terminal.output import Output
from barnabas.wire.errors import KafkaError

if TYPE_CHECKING:
    from barnabas.client.cluster import Cluster

_FLAG: dict[str, Any] = {"is_flag": True}
_ACTIONS = ("generate", "execute", "verify", "cancel", "list")
_SERVERS = {"bootstrap-server", "bootstrap-controller"}
_REQUIRED = {
    "verify": ("reassignment-json-file",),
    "generate": ("topics-to-move-json-file", "broker-list"),
    "execute": ("reassignment-json-file",),
    "cancel": ("reassignment-json-file",),
    "list": (),
}
_PERMITTED = {
    "verify": {"bootstrap-server", "command-config", "preserve-throttles"},
    "generate": {"bootstrap-server", "broker-list", "command-config", "disable-rack-aware"},
    "execute": {
        *("additional", "bootstrap-server", "command-config", "throttle", "replica-alter-log-dirs-throttle", "timeout"),
        "disallow-replication-factor-change",
    },
    "cancel": {*_SERVERS, "command-config", "preserve-throttles", "timeout"},
    "list": {*_SERVERS, "command-config"},
}
_LONG = 2**63
_DEFAULTS = {"throttle": -1, "replica_alter_log_dirs_throttle": -1, "timeout": 10_000}


@click.command(
    "kafka-reassign-partitions",
    cls=JavaTool,
    error_prefix='Exception in thread "main" joptsimple.UnrecognizedOptionException: ',
    short_help="Move replicas between brokers as Kafka's script does.",
)
@click.option("--verify", **_FLAG, help="Check that a reassignment is complete, and if so remove throttles.")
@click.option("--generate", **_FLAG, help="Propose a reassignment of topics to brokers.")
@click.option("--execute", **_FLAG, help="Start a reassignment.")
@click.option("--cancel", **_FLAG, help="Cancel a reassignment.")
@click.option("--list", **_FLAG, help="List ongoing reassignments.")
@click.option("--bootstrap-server", metavar="HOST:PORT,...", help="Brokers to connect to.")
@click.option("--command-config", metavar="FILE", help="Properties file with client settings.")
@click.option("--reassignment-json-file", metavar="FILE", help="JSON file with the new replicas of partitions.")
@click.option(
    "--topics-to-move-json-file", metavar="FILE", help="JSON file with the topics to propose a reassignment for."
)
@click.option("--broker-list", metavar="ID,...", help="The brokers to which --generate moves topics.")
@click.option("--bootstrap-controller", metavar="HOST:PORT,...", help="Controllers, for --list and --cancel.")
@click.option("--disable-rack-aware", **_FLAG, help="Ignore racks.")
@click.option("--throttle", metavar="NUMBER", help="Maximum bytes per second between brokers.")
@click.option(
    "--replica-alter-log-dirs-throttle", metavar="NUMBER", help="Maximum bytes per second between log dirs of a broker."
)
@click.option("--timeout", metavar="NUMBER", help="Timeout in ms for replicas to start moving to log dirs [10000].")
@click.option("--additional", **_FLAG, help="Allow the reassignment in addition to ongoing ones.")
@click.option("--preserve-throttles", **_FLAG, help="Do not change throttles.")
@click.option("--disallow-replication-factor-change", **_FLAG, help="Reject a change of the replication factor.")
@click.pass_context
def kafka_reassign_partitions(ctx: click.Context, /, **values: Any) -> None:
    """Move replicas between brokers as Kafka's script of this name does. See also: barnabas reassign."""
    action = _check(ctx, {name.replace("_", "-"): value for name, value in values.items()})
    output = Output()
    from barnabas.cli.kafka.kafka_reassign_partitions.actions import ToolError

    try:
        values |= {name: _number(name, values[name], default) for name, default in _DEFAULTS.items()}
        config = values["command_config"]
        connection = profiles.resolve(
            {},
            bootstrap_servers=values["bootstrap_server"],
            bootstrap_controllers=values["bootstrap_controller"],
            command_config=None if config is None else Path(config),
        )
        file = values["topics_to_move_json_file" if action == "generate" else "reassignment_json_file"]
        text = "" if file is None else Path(file).read_text(encoding="utf-8")
        run(connection, lambda cluster: _act(cluster, action, text, values, output))
    except ToolError as error:
        _end(output, str(error))
    except (ValueError, OSError) as error:
        said = f"Unable to read file {error.filename}" if isinstance(error, OSError) else str(error)
        _end(output, f"Error: {said}")
    except Failure as failure:
        cause = failure.__cause__
        _end(output, f"Error: {exception_text(cause) if isinstance(cause, KafkaError) else failure.message}")
    output.flush()


def _number(name: str, text: str | None, default: int) -> int:
    """Parse the number of an option. Raises ValueError with the message of Kafka's tool."""
    if text is None:
        return default
    if not re.fullmatch(r"[+-]?\d+", text, re.ASCII) or not -_LONG <= int(text) < _LONG:
        raise ValueError(f"Cannot parse argument '{text}' of option {name.replace('_', '-')}")
    return int(text)


def _end(output: Output, line: str) -> None:
    """Print the error on the standard output, as Kafka's tool does."""
    output.write(line)
    output.flush()
    sys.exit(EXIT_FAILED)


def _check(ctx: click.Context, values: dict[str, Any]) -> str:
    """Return the action. Exits with an error if the options do not fit it."""
    given = [name for name, value in values.items() if value is not None and value is not False]
    actions = [each for each in _ACTIONS if each in given]
    if len(actions) != 1:
        refuse(ctx, f"Command must include exactly one action: {', '.join(f'--{each}' for each in _ACTIONS)}")
    if len(_SERVERS & set(given)) > 1:
        refuse(ctx, "Please don't specify both --bootstrap-server and --bootstrap-controller")
    if not _SERVERS & set(given):
        refuse(ctx, "Please specify either --bootstrap-server or --bootstrap-controller")
    action = actions[0]
    for name in _REQUIRED[action]:
        if name not in given:
            refuse(ctx, f'Missing required argument "[{name}]"')
    for name in given:
        if name not in {action, *_REQUIRED[action], *_PERMITTED[action]}:
            refuse(ctx, f'Option "[{name}]" can\'t be used with action "[{action}]"')
    return action


async def _act(cluster: Cluster, action: str, text: str, values: dict[str, Any], output: Output) -> None:
    from barnabas.cli.kafka.kafka_reassign_partitions import actions as tool

    def out(line: str, end: str = "\n") -> None:
        output.write(line, end)
        output.flush()

    work: Coroutine[Any, Any, None]
    match action:
        case "list":
            work = tool.list_reassignments(cluster, out)
        case "generate":
            rack_aware = not values["disable_rack_aware"]
            work = tool.generate(cluster, text, values["broker_list"], rack_aware, out, Random())
        case "execute":
            work = tool.execute(
                cluster,
                text,
                out,
                additional=values["additional"],
                throttle=values["throttle"],
                log_dirs_throttle=values["replica_alter_log_dirs_throttle"],
                timeout_ms=values["timeout"],
                disallow_replication_factor_change=values["disallow_replication_factor_change"],
            )
        case "verify":
            preserve = values["preserve_throttles"]
            work = tool.verify(cluster, text, out, preserve_throttles=preserve)
        case _:
            work = tool.cancel(
                cluster,
                text,
                out,
                preserve_throttles=values["preserve_throttles"],
                timeout_ms=values["timeout"],
            )
    await work
