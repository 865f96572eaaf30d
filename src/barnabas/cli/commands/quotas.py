"""`barnabas quotas`: list and change quotas of users, client ids and IP addresses.

Parses arguments and prints; the work is in `client.admin.quotas`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import click

from barnabas.cli.connection.connecting import run
from barnabas.cli.connection.options import common_options, dry_run_option, never_asks_option
from barnabas.cli.connection.profiles import Connection
from barnabas.cli.terminal.changes import announce, show_results
from barnabas.cli.terminal.command_groups import CommandGroup
from barnabas.cli.terminal.failures import Failure
from barnabas.cli.terminal.output import Column, Output, columns, note
from barnabas.cli.terminal.repeated_options import unique_keys
from barnabas.operations.quota_sentences import quota_sentence, quota_text
from barnabas.similar_names import did_you_mean
from barnabas.wire.errors import KafkaError

if TYPE_CHECKING:
    from barnabas.client.admin.quotas import QuotaEntity, QuotaFilter
    from barnabas.client.cluster import Cluster

F = TypeVar("F", bound=Callable[..., Any])

_TYPES = ("user", "client-id", "ip")
_TYPE_TEXT = {"user": "user", "client-id": "client id", "ip": "IP address"}


def _entity_options(command: F) -> F:
    """Add --user, --user-default and so on; the command receives `user`, `user_default` and so on."""
    for kind in reversed(_TYPES):
        command = click.option(
            f"--{kind}-default",
            is_flag=True,
            help=f"The default for every {_TYPE_TEXT[kind]} without quotas of its own.",
        )(command)
        command = click.option(f"--{kind}", metavar="NAME", help=f"Quotas of this {_TYPE_TEXT[kind]}.")(command)
    return command


@click.group(cls=CommandGroup, short_help="List and change quotas of users, client ids and IP addresses.")
def quotas() -> None:
    """List and change quotas of users, client ids and IP addresses.

    Users and client ids have producer_byte_rate and consumer_byte_rate (bytes per second), request_percentage (of the time
    of a broker's threads; of barnabas's event loop) and controller_mutation_rate (partitions per second). IP addresses have
    connection_creation_rate (per second). The most specific quota applies: of user and client id, user, client id, defaults.

    \b
    Examples:
      barnabas quotas list
      barnabas quotas set --user alice producer_byte_rate=1000000
      barnabas quotas set --user alice --client-id-default request_percentage=50
      barnabas quotas set --ip-default connection_creation_rate=10
      barnabas quotas unset --user alice producer_byte_rate
    """


@quotas.command("list", short_help="List quotas of all or selected entities.")
@_entity_options
@click.option(
    "--with", "with_", multiple=True, type=click.Choice(_TYPES), help="Only entities with this type; may be repeated."
)
@click.option("--strict", is_flag=True, help="Only entities that have no other types than the given ones.")
@common_options
def list_(with_: tuple[str, ...], strict: bool, connection: Connection, output: Output, **given: Any) -> None:
    """List the quotas of all entities, or of those selected by the options.

    \b
    Examples:
      barnabas quotas list --user alice                    quotas of alice, also with a client id
      barnabas quotas list --user alice --strict           quotas of alice without a client id
      barnabas quotas list --with client-id
    """
    from barnabas.client.admin.quotas import QuotaFilter

    named = QuotaFilter.of(_entity(given))
    filters = named + [QuotaFilter.any(kind) for kind in with_ if kind not in {each.entity_type for each in named}]
    _show(output, run(connection, lambda cluster: _described(cluster, filters, strict)))


@quotas.command("describe")
@_entity_options
@common_options
def describe(connection: Connection, output: Output, **given: Any) -> None:
    """Show the quotas of one entity.

    \b
    Example:
      barnabas quotas describe --user alice --client-id-default
    """
    from barnabas.client.admin.quotas import QuotaFilter, entity_text

    entity = _needed(given)
    found = run(connection, lambda cluster: _described(cluster, QuotaFilter.of(entity), True))
    _show(output, found)
    if not found and output.is_for_people:
        note(f"{entity_text(entity)} has no quotas of its own")


@quotas.command("set")
@click.argument("pairs", nargs=-1, required=True, metavar="KEY=VALUE...")
@_entity_options
@never_asks_option
@dry_run_option
@common_options
def set_(pairs: tuple[str, ...], dry_run: bool, connection: Connection, output: Output, **given: Any) -> None:
    """Set quotas of an entity. Its other quotas are not changed.

    \b
    Example:
      barnabas quotas set --user alice producer_byte_rate=1000000 consumer_byte_rate=2000000
    """
    values: dict[str, float | None] = unique_keys(map(_parse_pair, pairs), "KEY=VALUE")
    _alter(_needed(given), values, dry_run, connection, output)


@quotas.command("unset")
@click.argument("keys", nargs=-1, metavar="[KEY...]")
@click.option("--all", "unset_all", is_flag=True, help="All quotas of the entity.")
@_entity_options
@never_asks_option
@dry_run_option
@common_options
def unset(
    keys: tuple[str, ...], unset_all: bool, dry_run: bool, connection: Connection, output: Output, **given: Any
) -> None:
    """Remove quotas of an entity. The default applies again, if there is one.

    \b
    Example:
      barnabas quotas unset --user alice --all
    """
    if bool(keys) == unset_all:
        raise click.UsageError("Give either the quotas to remove or --all.")
    _alter(_needed(given), dict.fromkeys(keys), dry_run, connection, output)


def _alter(
    entity: QuotaEntity, values: Mapping[str, float | None], dry_run: bool, connection: Connection, output: Output
) -> None:
    """Set or remove (None) the quotas of an entity; without values, remove all of them."""
    from barnabas.client.admin.quotas import QuotaFilter, Quotas, entity_text
    from barnabas.config.quotas import ip_definitions, user_or_client_definitions

    known = {**ip_definitions(), **user_or_client_definitions()}

    async def work(cluster: Cluster) -> tuple[dict[str, float], Mapping[str, float | None], KafkaError | None]:
        before = (await _described(cluster, QuotaFilter.of(entity), True)).get(entity, {})
        asked = values or dict.fromkeys(sorted(before))
        if not asked:
            raise Failure("has no quotas to remove", resource=entity_text(entity))
        announce(
            (quota_sentence(entity_text(entity), key, value, before) for key, value in asked.items()), dry_run=dry_run
        )
        results = await Quotas(cluster).alter_client_quotas({entity: asked}, validate_only=dry_run)
        for key in asked:
            if key not in known and (hint := did_you_mean(key, known)):
                note(f"there is no quota {key}{hint}")
        return before, asked, results[entity]

    before, asked, result = run(connection, work)

    def row(key: str, _: Any) -> dict[str, Any]:
        return {**_entity_row(entity), "key": key, "before": before.get(key), "value": asked[key]}

    shown = (Column("entity"), Column("key"), *(Column(key, show=quota_text) for key in ("before", "value")))
    show_results(output, shown, dict.fromkeys(asked, result), row)


async def _described(cluster: Cluster, filters: list[QuotaFilter], strict: bool) -> dict[QuotaEntity, dict[str, float]]:
    from barnabas.client.admin.quotas import Quotas

    return await Quotas(cluster).describe_client_quotas(filters, strict=strict)


def _entity(given: Mapping[str, Any]) -> QuotaEntity:
    from barnabas.client.admin.quotas import DEFAULT, quota_entity

    named: dict[str, Any] = {}
    for kind in _TYPES:
        word = kind.replace("-", "_")
        name, is_default = given[word], given[f"{word}_default"]
        if name is not None and is_default:
            raise click.UsageError(f"--{kind} and --{kind}-default cannot both be given.")
        if name == "":
            raise click.UsageError(f"--{kind} must not be empty; use --{kind}-default for the default.")
        named[word] = DEFAULT if is_default else name
    return quota_entity(**named)


def _needed(given: Mapping[str, Any]) -> QuotaEntity:
    entity = _entity(given)
    if not entity:
        raise click.UsageError("Give an entity with --user, --client-id or --ip, or their defaults.")
    return entity


def _parse_pair(pair: str) -> tuple[str, float]:
    key, sign, text = pair.partition("=")
    if not sign or not key:
        raise click.UsageError(f"{pair!r}: must be KEY=VALUE.")
    try:
        return key, float(text)
    except ValueError:
        raise click.UsageError(f"{pair!r}: {text!r} is not a number.") from None


def _entity_row(entity: QuotaEntity) -> dict[str, Any]:
    from barnabas.client.admin.quotas import entity_text

    parts = [{"entityType": kind, "entityName": name} for kind, name in entity]
    return {"entity": entity_text(entity), "entityParts": parts}


def _show(output: Output, found: dict[QuotaEntity, dict[str, float]]) -> None:
    rows = (
        {**_entity_row(entity), "key": key, "value": value}
        for entity, values in sorted(found.items(), key=lambda item: str(item[0]))
        for key, value in sorted(values.items())
    )
    output.rows((*columns("entity", "key"), Column("value", show=quota_text)), rows)
