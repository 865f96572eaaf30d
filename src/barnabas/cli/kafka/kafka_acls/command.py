"""`barnabas kafka-acls`: Kafka's script of this name, with its options and its lines."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click

from barnabas.cli.connection import profiles
from barnabas.cli.connection.connecting import run
from barnabas.cli.kafka.java_text import exception_text
from barnabas.cli.kafka.java_tool import JavaTool, refuse
from barnabas.cli.kafka.kafka_acls import lines as acl_command
from barnabas.cli.kafka.kafka_acls.lines import Entry, Options, Pattern, UsageProblem
from barnabas.cli.terminal.changes import interruptible
from barnabas.cli.terminal.exit_codes import EXIT_FAILED
from barnabas.cli.terminal.failures import Failure
from barnabas.cli.terminal.output import Output
from barnabas.security.acl import PatternType
from barnabas.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from barnabas.client.cluster import Cluster

_MANY: dict[str, Any] = {"multiple": True}


@click.command("kafka-acls", cls=JavaTool, short_help="List, add and remove ACLs as Kafka's script does.")
@click.option("--bootstrap-server", metavar="HOST:PORT,...", help="Brokers to connect to.")
@click.option("--bootstrap-controller", metavar="HOST:PORT,...", help="Controllers to connect to.")
@click.option("--command-config", metavar="FILE", help="Properties file with client settings.")
@click.option("--add", is_flag=True, help="Add ACLs.")
@click.option("--remove", is_flag=True, help="Remove ACLs.")
@click.option("--list", "list_", is_flag=True, help="List the ACLs of the given resources, or all.")
@click.option("--topic", **_MANY, help="A topic; '*' for all.")
@click.option("--group", **_MANY, help="A group; '*' for all.")
@click.option("--cluster", is_flag=True, help="The cluster.")
@click.option("--transactional-id", **_MANY, help="A transactional id; '*' for all.")
@click.option("--delegation-token", **_MANY, help="A delegation token; '*' for all.")
@click.option("--user-principal", **_MANY, help="A principal that owns delegation tokens.")
@click.option(
    "--resource-pattern-type",
    default="LITERAL",
    metavar="ANY|MATCH|LITERAL|PREFIXED",
    help="Pattern type of the resource names [LITERAL].",
)
@click.option("--allow-principal", **_MANY, help="Principal to allow, such as User:alice.")
@click.option("--deny-principal", **_MANY, help="Principal to deny.")
@click.option("--allow-host", **_MANY, help="Host from which the allowed principals may connect [*].")
@click.option("--deny-host", **_MANY, help="Host from which the denied principals may not connect [*].")
@click.option("--operation", **_MANY, help="Operation: Read, Write, ... [All].")
@click.option("--principal", **_MANY, help="With --list: only ACLs of this principal.")
@click.option("--producer", is_flag=True, help="The ACLs of a producer: Write, Describe and Create on topics.")
@click.option("--consumer", is_flag=True, help="The ACLs of a consumer: Read and Describe on topics, Read on groups.")
@click.option("--idempotent", is_flag=True, help="With --producer: IdempotentWrite on the cluster.")
@click.option("--force", is_flag=True, help="Do not ask for confirmation.")
@click.pass_context
def kafka_acls(ctx: click.Context, /, **given: Any) -> None:
    """List, add and remove ACLs as Kafka's script of this name does. See also: barnabas acls."""
    try:
        _check(given)
        options = _options(given)
        wanted = None if given["list_"] else (acl_command.to_add if given["add"] else acl_command.to_remove)(options)
        principals = acl_command.parse_principals(given["principal"])
    except UsageProblem as problem:
        refuse(ctx, str(problem))
    except ValueError as error:
        raise _failed(str(error)) from None
    config = Path(given["command_config"]) if given["command_config"] else None
    try:
        connection = profiles.resolve(
            {},
            bootstrap_servers=given["bootstrap_server"],
            bootstrap_controllers=given["bootstrap_controller"],
            command_config=config,
        )
        if wanted is None:
            run(connection, lambda cluster: _list(cluster, acl_command.patterns(options), principals))
        elif given["add"]:
            run(connection, lambda cluster: _add(cluster, wanted))
        else:
            run(connection, lambda cluster: _remove(cluster, wanted, given["force"]))
    except Failure as failure:
        raise _failed(_words(failure, "deleteAcls" if given["remove"] else "describeAcls")) from failure


def _words(failure: Failure, call: str) -> str:
    """Return Kafka's own error if no node could be reached."""
    from barnabas.client.errors import CallTimeoutError

    if not isinstance(failure.__cause__, CallTimeoutError):
        return failure.message
    late = KafkaError(ErrorCode.REQUEST_TIMED_OUT, f"Timed out waiting for a node assignment. Call: {call}")
    return exception_text(late)


def _failed(message: str) -> SystemExit:
    """Print the error on the standard output, as Kafka's tool does."""
    click.echo(f"Error while executing ACL command: {message}")
    return SystemExit(EXIT_FAILED)


def _check(given: dict[str, Any]) -> None:
    """Check which options can be combined, in Kafka's order. Raises UsageProblem."""
    servers = bool(given["bootstrap_server"]), bool(given["bootstrap_controller"])
    if servers[0] == servers[1]:
        words = "Only one of" if servers[0] else "One of"
        raise UsageProblem(f"{words} --bootstrap-server or --bootstrap-controller must be specified")
    if sum((given["add"], given["remove"], given["list_"])) != 1:
        raise UsageProblem("Command must include exactly one action: --list, --add, --remove. ")
    with_list = ("producer", "consumer", "allow_host", "allow_principal", "deny_host", "deny_principal")
    with_roles = ("operation", "deny_principal", "deny_host")
    for used, forbidden in (("list_", with_list), ("producer", with_roles), ("consumer", with_roles)):
        for other in forbidden:
            if given[used] and given[other]:
                names = [name.strip("_").replace("_", "-") for name in (used, other)]
                raise UsageProblem(f'Option "[{names[0]}]" can\'t be used with option "[{names[1]}]"')
    if given["principal"] and not given["list_"]:
        raise UsageProblem("The --principal option is only available if --list is set")
    if given["producer"] and not given["topic"]:
        raise UsageProblem("With --producer you must specify a --topic")
    if given["idempotent"] and not given["producer"]:
        raise UsageProblem("The --idempotent option is only available if --producer is set")
    others = not given["producer"] and (given["cluster"] or given["transactional_id"])
    if given["consumer"] and (not given["topic"] or not given["group"] or others):
        raise UsageProblem(
            "With --consumer you must specify a --topic and a --group and no --cluster or --transactional-id option"
            " should be specified."
        )


def _options(given: dict[str, Any]) -> Options:
    names = {pattern.name: pattern for pattern in PatternType if pattern != PatternType.UNKNOWN}
    text = given["resource_pattern_type"]
    if text.upper() not in names:
        raise ValueError(f"Cannot parse argument '{text}' of option resource-pattern-type")
    return Options(
        pattern_type=names[text.upper()],
        operation=given["operation"] or ("All",),
        **{
            name: given[name]
            for name in Options.__dataclass_fields__
            if name in given and name not in ("operation", "pattern_type")
        },
    )


# --- actions


def _print(lines: Sequence[str]) -> None:
    output = Output()
    for line in lines:
        output.write(line)
    output.flush()


def _raise(error: KafkaError) -> NoReturn:
    raise Failure(exception_text(error))


async def _list(cluster: Cluster, patterns: Sequence[Pattern], principals: Sequence[str]) -> None:
    from barnabas.client.admin.acls import EVERY_ACL, Acls

    filters = [acl_command.filter_of(pattern) for pattern in patterns] or [EVERY_ACL]
    try:
        found = [entry for each in filters for entry in await Acls(cluster).describe_acls(each)]
    except KafkaError as error:
        _raise(error)
    if not principals:
        _print(acl_command.listing_lines(acl_command.by_pattern(found)))
    for principal in principals:
        mine = acl_command.by_pattern(entry for entry in found if entry.principal == principal)
        _print([f"ACLs for principal `{principal}`", *acl_command.listing_lines(mine)])


async def _add(cluster: Cluster, wanted: acl_command.Wanted) -> None:
    from barnabas.client.admin.acls import Acls
    from barnabas.client.admin.part import checked

    acls = Acls(cluster)
    try:
        for pattern, entries in wanted.items():
            present = set(await acls.describe_acls(acl_command.filter_of(pattern)))
            new: list[Entry] = []
            for entry in entries:
                if acl_command.entry_of(pattern, entry) in present:
                    _print([acl_command.exists_line(pattern, entry)])
                else:
                    new.append(entry)
            if new:
                _print(acl_command.adding_lines(pattern, new))
                checked(await acls.create_acls(acl_command.entry_of(pattern, entry) for entry in new))
    except KafkaError as error:
        _raise(error)


async def _remove(cluster: Cluster, wanted: acl_command.Wanted, force: bool) -> None:
    from barnabas.client.admin.acls import Acls
    from barnabas.client.admin.part import checked

    try:
        for pattern, entries in wanted.items():
            if not force and not _is_confirmed(acl_command.question_lines(pattern, entries)):
                continue
            filters = [acl_command.filter_of(pattern, entry) for entry in entries] or [acl_command.filter_of(pattern)]
            checked(await Acls(cluster).delete_acls(filters))
    except KafkaError as error:
        _raise(error)


def _is_confirmed(lines: Sequence[str]) -> bool:
    with interruptible():
        _print(lines)
        if not sys.stdin.isatty():
            raise Failure("there is no terminal to confirm on: use --force")
        return sys.stdin.readline().strip().lower() == "y"
