"""`barnabas users`: list and change SCRAM credentials of users.

Parses arguments and prints; the work is in `client.admin.users`. A password is read from the terminal or standard input,
never from an argument, which other processes could see. It is hashed here and never shown.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import click

from barnabas.cli.connection.connecting import run
from barnabas.cli.connection.options import common_options, dry_run_option, never_asks_option, yes_option
from barnabas.cli.connection.profiles import Connection
from barnabas.cli.terminal.changes import carry_out, show_results
from barnabas.cli.terminal.command_groups import CommandGroup
from barnabas.cli.terminal.failures import Failure
from barnabas.cli.terminal.output import Output, columns, note
from barnabas.similar_names import did_you_mean
from barnabas.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from barnabas.client.admin.users import ScramCredentialInfo, ScramCredentialKey
    from barnabas.client.cluster import Cluster

    Described = dict[str, tuple[ScramCredentialInfo, ...] | KafkaError]

_MECHANISMS = ("SCRAM-SHA-256", "SCRAM-SHA-512")
_MIN_ITERATIONS, _MAX_ITERATIONS = 4096, 16384


@click.group(cls=CommandGroup, short_help="List and change SCRAM credentials of users.")
def users() -> None:
    """List and change SCRAM credentials of users.

    Brokers do not store passwords. Of a credential they return only the mechanism and the number of iterations.

    \b
    Examples:
      barnabas users list
      barnabas users set alice                             asks for the password
      pass show kafka/alice | barnabas users set alice --password-stdin --mechanism SCRAM-SHA-256
      barnabas users delete alice --mechanism SCRAM-SHA-256
    """


@users.command("list")
@common_options
def list_(connection: Connection, output: Output) -> None:
    """List all users with credentials."""
    _show(output, run(connection, lambda cluster: _described(cluster, None)))


@users.command("describe")
@click.argument("names", nargs=-1, required=True, metavar="USER...")
@common_options
def describe(names: tuple[str, ...], connection: Connection, output: Output) -> None:
    """Show the credentials of users."""
    found = run(connection, lambda cluster: _described(cluster, dict.fromkeys(names)))
    _show(output, found)
    missing = {name: error for name, error in found.items() if isinstance(error, KafkaError)}
    known = list(run(connection, lambda cluster: _described(cluster, None))) if missing else []
    for name, error in missing.items():
        note(f"user {name}: {error.code.name}: {error.message}{did_you_mean(name, known)}")
    if missing:
        raise Failure(f"{len(missing)} of {len(found)} users could not be described", advice=_advice(missing.values()))


@users.command("set")
@click.argument("name", metavar="USER")
@click.option(
    "--mechanism",
    type=click.Choice(_MECHANISMS),
    default="SCRAM-SHA-512",
    show_default=True,
    help="SCRAM mechanism.",
)
@click.option(
    "--iterations",
    type=click.IntRange(_MIN_ITERATIONS, _MAX_ITERATIONS),
    default=_MIN_ITERATIONS,
    show_default=True,
    help="Number of hash iterations.",
)
@click.option("--password-stdin", is_flag=True, help="Read the password from the first line of standard input.")
@never_asks_option
@dry_run_option
@common_options
def set_(
    name: str,
    mechanism: str,
    iterations: int,
    password_stdin: bool,
    dry_run: bool,
    connection: Connection,
    output: Output,
) -> None:
    """Set the password of a user. Creates the credential, or replaces it.

    Prompts for the password on the terminal, or reads it with --password-stdin. It is hashed before it is sent.

    \b
    Examples:
      barnabas users set alice
      barnabas users set alice --mechanism SCRAM-SHA-256 --iterations 8192 --password-stdin < secret
    """
    from barnabas.client.admin.users import ScramMechanism, ScramUpsertion

    password = _read_password(name, password_stdin)
    upsertion = ScramUpsertion(name, ScramMechanism.of(mechanism), password, iterations)

    async def work(cluster: Cluster) -> Mapping[ScramCredentialKey, KafkaError | None]:
        from barnabas.operations.user_changes import propose_credential

        return await carry_out(await propose_credential(cluster, upsertion), dry_run=dry_run)

    _show_results(output, run(connection, work), "SET")


@users.command("delete")
@click.argument("name", metavar="USER")
@click.option("--mechanism", type=click.Choice(_MECHANISMS), help="Mechanism to delete.  [default: all of the user]")
@yes_option
@dry_run_option
@common_options
def delete(name: str, mechanism: str | None, yes: bool, dry_run: bool, connection: Connection, output: Output) -> None:
    """Delete credentials of a user. The user can no longer log in with them; open connections stay open.

    \b
    Example:
      barnabas users delete alice --yes
    """
    from barnabas.client.admin.users import ScramMechanism

    async def work(cluster: Cluster) -> Mapping[ScramCredentialKey, KafkaError | None]:
        from barnabas.operations.user_changes import propose_credential_deletion

        wanted = None if mechanism is None else ScramMechanism.of(mechanism)
        return await carry_out(await propose_credential_deletion(cluster, name, wanted), dry_run=dry_run, yes=yes)

    _show_results(output, run(connection, work), "DELETE")


async def _described(cluster: Cluster, names: Iterable[str] | None) -> Described:
    from barnabas.client.admin.users import Users

    return await Users(cluster).describe_user_scram_credentials(names)


def _infos(result: tuple[ScramCredentialInfo, ...] | KafkaError | None) -> tuple[ScramCredentialInfo, ...]:
    if isinstance(result, KafkaError):
        if result.code is not ErrorCode.RESOURCE_NOT_FOUND:
            raise result
        return ()
    return result or ()


def _read_password(name: str, from_stdin: bool) -> str:
    if from_stdin:
        password = sys.stdin.readline().rstrip("\r\n")
    elif sys.stdin.isatty():
        password = click.prompt(f"Password of {name}", hide_input=True, confirmation_prompt=True, err=True)
    else:
        raise Failure(
            "cannot prompt for the password: standard input is not a terminal",
            resource=f"user {name}",
            advice="pass --password-stdin",
        )
    if not password:
        raise Failure("the password is empty", resource=f"user {name}")
    return password


def _show(output: Output, found: Described) -> None:
    rows = (
        {"user": name, "mechanism": info.mechanism.sasl_name, "iterations": info.iterations}
        for name, infos in sorted(found.items())
        if not isinstance(infos, KafkaError)
        for info in sorted(infos)
    )
    output.rows(columns("user", "mechanism", "iterations"), rows)


def _show_results(output: Output, results: Mapping[ScramCredentialKey, KafkaError | None], operation: str) -> None:
    def row(key: ScramCredentialKey, _: Any) -> dict[str, Any]:
        return {"user": key.user, "mechanism": key.mechanism.sasl_name, "operation": operation}

    show_results(output, ("user", "mechanism", "operation"), results, row)


def _advice(missing: Iterable[KafkaError]) -> str | None:
    known = any(error.code is ErrorCode.RESOURCE_NOT_FOUND for error in missing)
    return "list users with: barnabas users list" if known else None
