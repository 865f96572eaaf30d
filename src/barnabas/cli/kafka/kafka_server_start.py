"""`barnabas kafka-server-start`: Kafka's script of this name; it runs `barnabas serve`.

Its one rule: the node is a process of its own command, `serve`, so this module does not import the broker.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import click

from barnabas.cli.terminal.exit_codes import EXIT_FAILED
from barnabas.cli.terminal.failures import Failure
from barnabas.cli.terminal.output import note

_USAGE = "USAGE: kafka-server-start [-daemon] server.properties [--override property=value]*"
_IGNORED = ("-loggc",)
_LOG = "kafkaServer.out"


class _Tool(click.Command):
    """A command with the usage errors of the script."""

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        try:
            # The script accepts these with one dash, and only before the file.
            words = ["--daemon" if arg == "-daemon" else arg for arg in args if arg not in _IGNORED]
            return super().make_context(info_name, words, parent, **extra)
        except click.UsageError as error:
            if args:
                note(error.format_message())
            note(_USAGE)
            sys.exit(EXIT_FAILED)


@click.command("kafka-server-start", cls=_Tool, short_help="Start a node as Kafka's script does.")
@click.argument("properties", metavar="server.properties", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--daemon", is_flag=True, help="(or -daemon) Run in the background, with output in $LOG_DIR or ./logs.")
@click.option("--override", multiple=True, metavar="KEY=VALUE", help="A setting that replaces the one of the file.")
def kafka_server_start(properties: Path, daemon: bool, override: tuple[str, ...]) -> None:
    """Start a node of barnabas as Kafka's script of this name starts a node of Kafka. See also: barnabas serve."""
    if not properties.is_file():
        raise Failure("no such file", resource=str(properties))
    options = [word for pair in override for word in ("--override", pair)]
    command = [sys.executable, "-P", "-m", "barnabas", "serve", str(properties), *options]
    if not daemon:
        sys.stdout.flush()
        os.execv(sys.executable, command)
    log = Path(os.environ.get("LOG_DIR", "logs")) / _LOG
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("wb") as out:
        subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT, start_new_session=True
        )
