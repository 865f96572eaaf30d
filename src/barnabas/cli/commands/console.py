"""`barnabas console`: clusters in a browser."""

from __future__ import annotations

import asyncio
import secrets
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from barnabas.cli.connection import profiles
from barnabas.cli.node.log_lines import begin_logging
from barnabas.cli.terminal.failures import Failure
from barnabas.cli.terminal.repeated_options import unique_keys

if TYPE_CHECKING:
    from barnabas.console.settings import ClusterEntry, ConsoleSettings

TOKEN_VARIABLE = "BARNABAS_CONSOLE_TOKEN"
_MIN_TOKEN_LENGTH = 16


@click.command(short_help="Show clusters in a browser.")
@click.option(
    "--bootstrap-server",
    "-b",
    "servers",
    multiple=True,
    metavar="HOST:PORT,...",
    help="Brokers of a cluster; may be repeated for several clusters.  [default: localhost:9092]",
)
@click.option("--profile", "names", multiple=True, metavar="NAME", help="Profile of a cluster; may be repeated.")
@click.option(
    "--command-config",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Properties file with client settings for all clusters.",
)
@click.option(
    "-X", "given", multiple=True, metavar="KEY=VALUE", help="Client setting for all clusters; may be repeated."
)
@click.option(
    "--listen", default="127.0.0.1:8080", show_default=True, metavar="HOST:PORT", help="Address to listen on."
)
@click.option(
    "--host-name",
    "host_names",
    multiple=True,
    metavar="NAME",
    help="Name under which browsers may reach the console, besides localhost; may be repeated.",
)
@click.option(
    "--certificate",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="PEM file with the certificate for HTTPS.",
)
@click.option("--key", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="PEM file with its key.")
@click.option("--allow-changes", is_flag=True, help="Allow changes. Each shows its plan and asks first.")
@click.option(
    "--lake",
    type=click.Path(file_okay=False, path_type=Path),
    help="Directory of a lake, for the page History; see barnabas lake.",
)
@click.option(
    "--report",
    type=click.Path(file_okay=False, path_type=Path),
    help="Directory that barnabas lake report writes to, for the page History; needs --lake.",
)
@click.option(
    "--declared",
    "-f",
    "declared",
    multiple=True,
    type=click.Path(exists=True, path_type=Path),
    help="File that declares the first cluster; the overview shows drift. May be repeated.",
)
@click.option(
    "--audit-log",
    "audit_logs",
    multiple=True,
    type=click.Path(dir_okay=False, path_type=Path),
    help="Audit log of a controller of the first cluster, to show who made a change. May be repeated.",
)
def console(
    servers: tuple[str, ...],
    names: tuple[str, ...],
    command_config: Path | None,
    given: tuple[str, ...],
    listen: str,
    host_names: tuple[str, ...],
    certificate: Path | None,
    key: Path | None,
    allow_changes: bool,
    lake: Path | None,
    report: Path | None,
    declared: tuple[Path, ...],
    audit_logs: tuple[Path, ...],
) -> None:
    """Show clusters of barnabas or Apache Kafka in a browser, until SIGINT or SIGTERM.

    The console only reads, unless it is started with --allow-changes. It prints an address with a token that starts a
    session; another token can be set in $BARNABAS_CONSOLE_TOKEN. If a cluster requires a login (security.protocol is SASL_SSL
    or SASL_PLAINTEXT), users log in with their own name and password instead. Credentials in profiles are not used.

    \b
    Examples:
      barnabas console
      barnabas console -b localhost:9092 --allow-changes
      barnabas console --profile test --profile production --listen 127.0.0.1:8081
      barnabas console --lake lake -f cluster.yaml
    """
    try:
        import starlette  # noqa: F401
        import uvicorn  # noqa: F401
    except ModuleNotFoundError as error:
        raise Failure(
            f"{error.name} is not installed, and the console needs it", advice="pip install 'barnabas[console]'"
        ) from error
    from barnabas.console.settings import ConsoleError, ConsoleSettings

    if (certificate is None) != (key is None):
        raise click.UsageError("--certificate and --key belong together.")
    if report is not None and lake is None:
        raise click.UsageError("--report needs --lake, which it was made of.")
    begin_logging("INFO")
    host, port = _address(listen)
    entries = tuple(_entries(servers, names, command_config, given, declared, audit_logs))
    try:
        settings = ConsoleSettings(
            entries, _token(), host, port, host_names, allow_changes, certificate, key, lake, report
        )
        asyncio.run(_run(settings))
    except ConsoleError as error:
        raise Failure(str(error)) from error


async def _run(settings: ConsoleSettings) -> None:
    from barnabas.console.server import lines_of, running

    told = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, told.set)
    async with running(settings) as found:
        for line in lines_of(found):
            click.echo(line)
        sys.stdout.flush()
        await told.wait()


def _entries(
    servers: tuple[str, ...],
    names: tuple[str, ...],
    command_config: Path | None,
    given: tuple[str, ...],
    declared: tuple[Path, ...],
    audit_logs: tuple[Path, ...],
) -> Iterator[ClusterEntry]:
    from barnabas.console.settings import ClusterEntry, unique_names

    env = profiles.environment()
    own = unique_keys((_pair(text) for text in given), "-X")
    extra = [word for text in given for word in ("-X", text)]
    if command_config is not None:
        extra += ["--command-config", str(command_config)]
    found: list[tuple[str, profiles.Connection, tuple[str, ...]]] = []
    for name in names or (() if servers else (None,)):
        profile = profiles.load_profile(env, name)
        connection = profiles.resolve(env, profile, command_config=command_config, given=own)
        _require_brokers(connection)
        address = connection.settings[profiles.BOOTSTRAP_SERVERS].value
        found.append(
            (profile.name or address, connection, ("--profile", profile.name) if profile.name else ("-b", address))
        )
    for text in servers:
        connection = profiles.resolve(env, bootstrap_servers=text, command_config=command_config, given=own)
        found.append((text, connection, ("-b", text)))
    unique = unique_names(name for name, _, _ in found)
    for at, (name, (_, connection, arguments)) in enumerate(zip(unique, found, strict=True)):
        yield ClusterEntry(
            name, connection.values(), (*arguments, *extra), *((declared, audit_logs) if at == 0 else ())
        )


def _require_brokers(connection: profiles.Connection) -> None:
    if profiles.BOOTSTRAP_CONTROLLERS in connection.settings:
        raise Failure("a console needs brokers, not controllers", resource=connection.address)


def _pair(text: str) -> tuple[str, str]:
    key, sign, value = text.partition("=")
    if not sign or not key:
        raise click.UsageError(f"-X {text}: must be KEY=VALUE.")
    return key.strip(), value


def _address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    if not port.isdecimal() or int(port) > 65535:
        raise click.UsageError(f"--listen {text}: must be HOST:PORT.")
    return host.strip("[]") or "127.0.0.1", int(port)


def _token() -> str:
    given = profiles.environment().get(TOKEN_VARIABLE, "")
    if given and len(given) < _MIN_TOKEN_LENGTH:
        raise Failure(f"{TOKEN_VARIABLE} must have at least {_MIN_TOKEN_LENGTH} characters")
    return given or secrets.token_urlsafe(24)
