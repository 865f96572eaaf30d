"""`barnabas kafka-configs`: Kafka's script of this name, with its options and its lines."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import click

from barnabas.cli.connection import profiles
from barnabas.cli.connection.connecting import run
from barnabas.cli.kafka.drop_in import KafkaTool
from barnabas.cli.kafka.kafka_configs import rules as config_command
from barnabas.cli.kafka.kafka_configs.rules import (
    BROKER_LOGGERS,
    BROKERS,
    CLIENT_METRICS,
    CLIENTS,
    GROUPS,
    IPS,
    QUOTA_TYPES,
    RESOURCE_TYPES,
    SCRAM_MECHANISMS,
    TOPICS,
    MisusedError,
    Options,
    RefusedError,
)
from barnabas.cli.terminal.exit_codes import EXIT_FAILED
from barnabas.cli.terminal.failures import Failure
from barnabas.cli.terminal.output import Output, note
from barnabas.client.admin.config_values import AlterConfigOp, AlterConfigOpType, ConfigResource
from barnabas.config.hash_order import hash_order
from barnabas.config.resource_type import ConfigResourceType
from barnabas.wire.errors import ErrorCode, KafkaError, UnsupportedVersionError

if TYPE_CHECKING:
    from barnabas.client.cluster import Cluster

_ALTER_TIMEOUT_MS = 30_000
_MANY: dict[str, Any] = {"multiple": True}


class _Said(click.ClickException):
    """A message printed without a prefix, and exit code 1."""

    exit_code = EXIT_FAILED

    def show(self, file: IO[Any] | None = None) -> None:
        click.echo(self.message, file=file or sys.stderr)


class _ConfigsTool(KafkaTool):
    """Keeps the order of --entity-name and --entity-default, and reports usage errors with Kafka's messages."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        ctx.meta[_ARGS] = list(args)
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            raise _Said(f"{error.option_name.lstrip('-')} is not a recognized option") from None
        except click.BadOptionUsage as error:
            raise _Said(f"Option {error.option_name.lstrip('-')} requires an argument") from None


_ARGS = "barnabas.kafka_configs.args"


@click.command("kafka-configs", cls=_ConfigsTool, short_help="Show and change settings as Kafka's script does.")
@click.option("--bootstrap-server", **_MANY, metavar="HOST:PORT,...", help="Brokers to connect to.")
@click.option("--bootstrap-controller", **_MANY, metavar="HOST:PORT,...", help="Controllers to connect to.")
@click.option("--command-config", **_MANY, metavar="FILE", help="Properties file with client settings.")
@click.option("--alter", is_flag=True, help="Change settings of an entity.")
@click.option("--describe", is_flag=True, help="List settings of an entity.")
@click.option("--all", is_flag=True, help="Also list settings that are not set on the entity itself.")
@click.option(
    "--entity-type", **_MANY, help="topics, clients, users, brokers, broker-loggers, ips, client-metrics or groups."
)
@click.option("--entity-name", **_MANY, help="Name of the entity.")
@click.option("--entity-default", is_flag=True, help="The default of clients, users, brokers or ips.")
@click.option("--add-config", **_MANY, metavar="K=V,...", help="Settings to set: 'k1=v1,k2=[v1,v2]'.")
@click.option("--add-config-file", **_MANY, metavar="FILE", help="Properties file with settings to set.")
@click.option("--delete-config", **_MANY, metavar="K,...", help="Settings to unset.")
@click.option("--topic", **_MANY, help="A topic.")
@click.option("--client", **_MANY, help="A client id.")
@click.option("--client-defaults", is_flag=True, help="The default of all client ids.")
@click.option("--user", **_MANY, help="A user.")
@click.option("--user-defaults", is_flag=True, help="The default of all users.")
@click.option("--broker", **_MANY, help="The id of a broker.")
@click.option("--broker-defaults", is_flag=True, help="The default of all brokers.")
@click.option("--broker-logger", **_MANY, help="The id of a broker, for its loggers.")
@click.option("--ip", **_MANY, help="An address.")
@click.option("--ip-defaults", is_flag=True, help="The default of all addresses.")
@click.option("--group", **_MANY, help="A group.")
@click.option("--client-metrics", **_MANY, help="A subscription to client metrics.")
@click.pass_context
def kafka_configs(ctx: click.Context, /, **given: Any) -> None:
    """Show and change settings, users and quotas as Kafka's script of this name does.

    See also: barnabas configs, barnabas users, barnabas quotas.
    """
    args: list[str] = ctx.meta[_ARGS]
    options = _options(given, args)
    try:
        config_command.check(options, config_command.is_host)
        _execute(options)
    except MisusedError as problem:
        note(str(problem))
        note(ctx.get_help())
        sys.exit(EXIT_FAILED)
    except RefusedError as problem:
        raise _Said(str(problem)) from None
    except (Failure, KafkaError) as error:
        text = error.message if isinstance(error, Failure) else f"{error.code.name}: {error.message}"
        raise _Said(f"{config_command.failed_line(args)}\n{text}") from error


def _options(given: dict[str, Any], args: list[str]) -> Options:
    named = {name.replace("_", "-"): value for name, value in given.items()}
    names, ordered = iter(named["entity-name"]), []
    for arg in args:
        if arg == "--entity-name" or arg.startswith("--entity-name="):
            ordered.append(next(names, ""))
        elif arg == "--entity-default":
            ordered.append("")
    return Options(
        values={name: value for name, value in named.items() if isinstance(value, tuple)},
        flags=frozenset(name for name, value in named.items() if value is True),
        ordered_names=ordered,
    )


def _execute(options: Options) -> None:
    config = Path(options.one("command-config")) if options.has("command-config") else None
    connection = profiles.resolve(
        {},
        bootstrap_servers=options.one("bootstrap-server") if options.has("bootstrap-server") else None,
        bootstrap_controllers=options.one("bootstrap-controller") if options.has("bootstrap-controller") else None,
        command_config=config,
    )
    types, names = options.entity_types, options.entity_names
    if options.has("describe"):
        work = _describe_resources if types[0] in RESOURCE_TYPES else _describe_quotas_and_users
        run(connection, lambda cluster: work(cluster, types, names, options.has("all")))
        return
    if len(types) != len(names):
        raise RefusedError("An entity name must be specified for every entity type")
    added = _added(options)
    deleted = config_command.to_delete(options.values["delete-config"])
    alter = _alteration(types, names, added, deleted)
    run(connection, alter)
    click.echo(config_command.completed_line(types[0], names[0]))


def _added(options: Options) -> dict[str, str]:
    found: dict[str, str] = {}
    if options.has("add-config-file"):
        from barnabas.config.properties import loads

        path = Path(options.one("add-config-file"))
        try:
            found = loads(path.read_text(encoding="latin-1"))
        except OSError as error:
            raise Failure(str(error.strerror), resource=str(path)) from None
    if options.has("add-config"):
        found = config_command.to_add(options.one("add-config"))
    config_command.check_keys(found)
    return found


# --- describe --------------------------------------------------------------------------------------------------------


async def _describe_resources(cluster: Cluster, types: list[str], names: list[str], show_all: bool) -> None:
    from barnabas.client.admin.configs import Configs

    kind, name = types[0], names[0] if names else None
    if kind == TOPICS and name is not None:
        config_command.check_topic_name(name)
    if name is not None and not show_all and not await _is_there(cluster, kind, name):
        click.echo(f"The {kind[:-1]} '{name}' doesn't exist and doesn't have dynamic config.")
        return
    entities = [name] if name is not None else await _entities(cluster, kind)
    resources = [ConfigResource(RESOURCE_TYPES[kind], entity) for entity in entities]
    found = await Configs(cluster).describe_configs(resources, include_synonyms=True)
    output = Output()
    try:
        for resource, config in found.items():
            output.write(config_command.heading(kind, resource.name, show_all))
            if isinstance(config, KafkaError):
                raise config
            for entry in sorted(config.values(), key=lambda each: each.name):
                if config_command.is_shown(resource, entry, show_all):
                    output.write(config_command.entry_line(entry))
    finally:
        output.flush()


async def _is_there(cluster: Cluster, kind: str, name: str) -> bool:
    if kind in (BROKERS, BROKER_LOGGERS) and not name:
        return True
    if kind == GROUPS:
        configured = await _configured_groups(cluster)
        return configured is None or name in configured or name in await _groups(cluster)
    return name in await _entities(cluster, kind)


async def _entities(cluster: Cluster, kind: str) -> list[str]:
    """Return the existing names, in the order of Kafka's tool."""
    if kind == TOPICS:
        return hash_order((await cluster.metadata(None)).topics)
    if kind in (BROKERS, BROKER_LOGGERS):
        return [*(str(node_id) for node_id in sorted((await cluster.refresh()).nodes)), ""]
    if kind == CLIENT_METRICS:
        from barnabas.client.admin.configs import Configs

        resources = await Configs(cluster).list_config_resources([ConfigResourceType.CLIENT_METRICS])
        return [resource.name for resource in resources]
    return list(dict.fromkeys([*await _groups(cluster), *(await _configured_groups(cluster) or ())]))


async def _groups(cluster: Cluster) -> list[str]:
    from barnabas.client.admin.groups import Groups

    return [group.group_id for group in await Groups(cluster).list_groups()]


async def _configured_groups(cluster: Cluster) -> list[str] | None:
    """Return the groups with settings, or None if brokers are too old to list them or deny access."""
    from barnabas.client.admin.configs import Configs

    try:
        return [each.name for each in await Configs(cluster).list_config_resources([ConfigResourceType.GROUP])]
    except UnsupportedVersionError:
        return None
    except KafkaError as error:
        if error.code in (ErrorCode.CLUSTER_AUTHORIZATION_FAILED, ErrorCode.UNSUPPORTED_VERSION):
            return None
        raise


async def _describe_quotas_and_users(cluster: Cluster, types: list[str], names: list[str], show_all: bool) -> None:
    from barnabas.client.admin.quotas import QuotaFilter, Quotas
    from barnabas.client.admin.users import Users

    filters = []
    for at, kind in enumerate(types):
        entity_type = QUOTA_TYPES[kind]
        if at >= len(names):
            filters.append(QuotaFilter.any(entity_type))
        else:
            filters.append(QuotaFilter.exact(entity_type, names[at]) if names[at] else QuotaFilter.default(entity_type))
    if len(names) > len(types):
        raise RefusedError("More entity names specified than entity types")
    for line in config_command.quota_lines(await Quotas(cluster).describe_client_quotas(filters, strict=True)):
        click.echo(line)
    if types[0] == IPS or CLIENTS in types or "" in names:
        return
    for user, infos in (await Users(cluster).describe_user_scram_credentials(names or None)).items():
        if isinstance(infos, KafkaError):
            if infos.code is not ErrorCode.RESOURCE_NOT_FOUND:
                text = f"{infos.code.name}: {infos.message}"
                click.echo(f"Error retrieving SCRAM credential configs for user-principal '{user}': {text}")
            continue
        text = ", ".join(f"{info.mechanism.sasl_name}=iterations={info.iterations}" for info in infos)
        click.echo(f"SCRAM credential configs for user-principal '{user}' are {text}")


# --- alter -----------------------------------------------------------------------------------------------------------


def _alteration(
    types: list[str], names: list[str], added: dict[str, str], deleted: list[str]
) -> Callable[[Cluster], Any]:
    """Return the coroutine function that makes the change. Raises RefusedError for errors found without the cluster."""
    if types[0] in RESOURCE_TYPES:
        resource = ConfigResource(RESOURCE_TYPES[types[0]], names[0])
        ops = [AlterConfigOp(name, AlterConfigOpType.DELETE, "") for name in deleted]
        ops += [AlterConfigOp(name, AlterConfigOpType.SET, value) for name, value in added.items()]
        return lambda cluster: _alter_resource(cluster, resource, ops)
    if types[0] == IPS:
        config_command.check_ip([*added, *deleted])
    elif not config_command.check_user_or_client(types, names, added, deleted):
        return _scram_alteration(names[0], added, deleted)
    return lambda cluster: _alter_quotas(cluster, types, names, added, deleted)


async def _alter_resource(cluster: Cluster, resource: ConfigResource, ops: list[AlterConfigOp]) -> None:
    from barnabas.client.admin.configs import Configs

    configs = Configs(cluster)
    if resource.type is ConfigResourceType.BROKER_LOGGER:
        present = (await configs.describe_configs([resource]))[resource]
        if isinstance(present, KafkaError):
            raise present
        odd = [op.name for op in ops if op.name not in present]
        if odd:
            raise _Said(f"Invalid broker logger(s): {','.join(odd)}")
    result = (await configs.incremental_alter_configs({resource: ops}, timeout_ms=_ALTER_TIMEOUT_MS))[resource]
    if result is not None:
        raise result


async def _alter_quotas(
    cluster: Cluster, types: list[str], names: list[str], added: dict[str, str], deleted: list[str]
) -> None:
    from barnabas.client.admin.quotas import QuotaFilter, Quotas

    quotas = Quotas(cluster)
    entity = tuple(sorted((QUOTA_TYPES[kind], name or None) for kind, name in zip(types, names, strict=True)))
    present = (await quotas.describe_client_quotas(QuotaFilter.of(entity), strict=True)).get(entity, {})
    values = config_command.quota_values(added, deleted, present)
    result = (await quotas.alter_client_quotas({entity: values}))[entity]
    if result is not None:
        raise result


def _scram_alteration(user: str, added: dict[str, str], deleted: list[str]) -> Callable[[Cluster], Awaitable[None]]:
    credentials = {
        mechanism: config_command.scram_credential(mechanism, text)
        for mechanism, text in added.items()
        if mechanism in SCRAM_MECHANISMS
    }

    async def alter(cluster: Cluster) -> None:
        from barnabas.client.admin.users import (
            ScramAlteration,
            ScramDeletion,
            ScramMechanism,
            ScramUpsertion,
            Users,
        )

        alterations: list[ScramAlteration] = [ScramDeletion(user, ScramMechanism.of(name)) for name in deleted]
        for name, (iterations, password) in credentials.items():
            alterations.append(ScramUpsertion(user, ScramMechanism.of(name), password, iterations))
        if len(alterations) > 1:  # Kafka's tool sends one request, in which brokers accept a user only once
            text = "A user credential cannot be altered twice in the same request"
            raise KafkaError(ErrorCode.DUPLICATE_RESOURCE, text)
        for result in (await Users(cluster).alter_user_scram_credentials(alterations)).values():
            if result is not None:
                raise result

    return alter
