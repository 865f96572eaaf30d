"""`barnabas configs`: settings of topics, brokers, their loggers, client metrics and groups.

Parses arguments and prints. Settings come from `client.admin.configs`, their history from `operations.configs.history`.
Values of sensitive settings are never shown.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from barnabas.cli.connection.completion import complete_topic_config
from barnabas.cli.connection.config_resources import (
    TYPES,
    complete_resource,
    note_misspelt_settings,
    parse_pairs,
    resource_row,
    to_resource,
)
from barnabas.cli.connection.connecting import run, through_controllers
from barnabas.cli.connection.options import common_options, dry_run_option, yes_option
from barnabas.cli.connection.profiles import Connection
from barnabas.cli.terminal.changes import announce, confirm_losses, show_results
from barnabas.cli.terminal.command_groups import CommandGroup
from barnabas.cli.terminal.exit_codes import EXIT_FAILED, EXIT_NO
from barnabas.cli.terminal.failures import Failure, JudgingCommand, failure_of, failures
from barnabas.cli.terminal.output import Column, Output, columns, note, utc_time
from barnabas.cli.terminal.parsing import moment_of
from barnabas.client.admin.config_values import (
    AlterConfigOp,
    AlterConfigOpType,
    Config,
    ConfigEntry,
    ConfigResource,
    ConfigSource,
)
from barnabas.config.resource_type import ConfigResourceType
from barnabas.operations.configs.alterations import alteration_sentence, is_secret, resource_text
from barnabas.operations.configs.diff import HIDDEN, default_of, differences, differences_from_defaults
from barnabas.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from barnabas.client.cluster import Cluster
    from barnabas.metadata.as_of import AsOf
    from barnabas.operations.audit_trail import AuditTrail
    from barnabas.operations.configs.history import ConfigEvent, History

_RESOURCE: dict[str, Any] = {"callback": to_resource, "shell_complete": complete_resource}


@click.group(cls=CommandGroup, short_help="Show, change, compare and roll back settings.")
def configs() -> None:
    """Show, change, compare and roll back settings.

    RESOURCE is topic:NAME or just NAME, broker:ID, brokers (the default for all brokers), broker-logger:ID,
    client-metrics:NAME or group:NAME.

    \b
    Examples:
      barnabas configs describe orders                     the settings made for a topic
      barnabas configs describe broker:1 --all --name 'log.*'
      barnabas configs set orders retention.ms=86400000 --dry-run
      barnabas configs append orders cleanup.policy=compact
      barnabas configs diff orders payments
      barnabas configs history orders --log-dir data
      barnabas configs rollback orders --log-dir data --to 2026-01-31T12:00
    """


# --- show ------------------------------------------------------------------------------------------------------------


@configs.command("list", short_help="List the resources that have settings.")
@click.option(
    "--type", "types", multiple=True, type=click.Choice(list(TYPES)), help="Only this resource type; may be repeated."
)
@common_options
def list_(types: tuple[str, ...], connection: Connection, output: Output) -> None:
    """List the resources that have settings: topics, brokers, and the groups and client metrics with own settings."""
    wanted = [TYPES[each] for each in types] or None

    async def look(cluster: Cluster) -> list[ConfigResource]:
        from barnabas.client.admin.configs import Configs

        return await Configs(cluster).list_config_resources(wanted)

    output.listing("resource", map(resource_row, run(connection, look)))


@configs.command("describe")
@click.argument("resources", nargs=-1, required=True, metavar="RESOURCE...", **_RESOURCE)
@click.option(
    "--all", "show_all", is_flag=True, help="Also show inherited values: defaults, server.properties, brokers."
)
@click.option(
    "--name",
    "pattern",
    metavar="PATTERN",
    help="Only settings whose name matches this shell pattern, wherever they are set.",
)
@click.option("--docs", is_flag=True, help="Also show the documentation of each setting.")
@common_options
def describe(
    resources: tuple[ConfigResource, ...],
    show_all: bool,
    pattern: str | None,
    docs: bool,
    connection: Connection,
    output: Output,
) -> None:
    """Show settings, their values and where the values are set.

    Without --all, only settings made for the resource itself. SYNONYMS lists every place that sets a value; the first applies.
    DEFAULT is Kafka's default, in the unit of the setting.

    \b
    Examples:
      barnabas configs describe orders payments
      barnabas configs describe orders --name 'retention.*' --docs
      barnabas configs describe brokers broker:1 -o json
    """

    async def look(cluster: Cluster) -> dict[ConfigResource, Config | KafkaError]:
        from barnabas.client.admin.configs import Configs

        return await Configs(cluster).describe_configs(resources, include_synonyms=True, include_documentation=docs)

    found = run(connection, look)
    if len(found) == 1:
        _or_fail(*next(iter(found.items())))
    shown = columns(
        "resource", "name", "value", Column("source", style=_color_of_source), Column("synonyms", show=_synonyms_text)
    )
    failed = {each: config for each, config in found.items() if isinstance(config, KafkaError)}
    with output.table((*shown, *columns(*["documentation"][:docs], "default"))) as table:
        for resource, config in found.items():
            if isinstance(config, KafkaError):
                continue
            for entry in sorted(config.values(), key=lambda each: each.name):
                if _is_wanted(resource, entry, show_all, pattern):
                    table.add(_entry_row(resource, entry, output.is_for_people, docs))
    for resource, error in failed.items():
        _failure(resource, error).show()
    if failed:
        raise SystemExit(EXIT_FAILED)
    if not table.count and output.is_for_people:
        note("nothing is set; --all shows inherited values" if pattern is None else "no setting matches the pattern")


def _is_wanted(resource: ConfigResource, entry: ConfigEntry, show_all: bool, pattern: str | None) -> bool:
    if pattern is not None:
        return fnmatch.fnmatchcase(entry.name, pattern)
    return show_all or entry.source is resource.own_source


def _entry_row(resource: ConfigResource, entry: ConfigEntry, for_people: bool, docs: bool) -> dict[str, Any]:
    row = {
        **resource_row(resource),
        "name": entry.name,
        "value": HIDDEN if entry.is_sensitive and for_people else entry.value,
        "source": entry.source.name,
        "isSensitive": entry.is_sensitive,
        "isReadOnly": entry.is_read_only,
        "type": entry.type.name,
        "synonyms": [{"source": each.source.name, "name": each.name, "value": each.value} for each in entry.synonyms],
        "default": None if entry.is_sensitive else default_of(resource, entry),
    }
    return row | {"documentation": entry.documentation} if docs else row


def _synonyms_text(synonyms: Sequence[Mapping[str, Any]]) -> str:
    return ", ".join(f"{each['source']}:{each['name']}={each['value']}" for each in synonyms) or "-"


def _color_of_source(source: Any) -> str | None:
    if source == ConfigSource.DEFAULT_CONFIG.name:
        return "dim"
    return "green" if str(source).startswith("DYNAMIC") else None


@configs.command("diff", cls=JudgingCommand, short_help="Compare settings of two resources, or with the defaults.")
@click.argument("resource", **_RESOURCE)
@click.argument("other", required=False, **_RESOURCE)
@click.option("--exit-code", is_flag=True, help="Exit with 2 if there are differences.")
@common_options
def diff(
    resource: ConfigResource, other: ConfigResource | None, exit_code: bool, connection: Connection, output: Output
) -> None:
    """Compare the settings of two resources, or without OTHER, of one resource with Kafka's defaults.

    Effective values are compared, wherever they were set. Of passwords, only whether they are set can be compared.

    \b
    Examples:
      barnabas configs diff orders payments
      barnabas configs diff broker:1 broker:2 --exit-code
      barnabas configs diff broker:1                      settings that differ from Kafka's defaults
    """
    if other is not None and other.type is not resource.type:
        raise Failure(f"{resource_text(resource)} and {resource_text(other)} are of different types")
    wanted = [resource] if other is None else [resource, other]

    async def look(cluster: Cluster) -> dict[ConfigResource, Config | KafkaError]:
        from barnabas.client.admin.configs import Configs

        return await Configs(cluster).describe_configs(wanted, include_synonyms=True)

    found = {each: _or_fail(each, config) for each, config in run(connection, look).items()}
    if other is None:
        rows = list(differences_from_defaults(resource, found[resource]))
        shown = columns("name", "value", "source", "default")
    else:
        rows = list(differences(found[resource], found[other]))
        titles = [resource_text(each) for each in wanted]
        shown = (
            Column("name"),
            Column("value", titles[0]),
            Column("otherValue", titles[1]),
            *columns("source", "otherSource"),
        )
    if not output.rows(shown, rows) and output.is_for_people:
        note("no differences")
    if exit_code and rows:
        raise SystemExit(EXIT_NO)


# --- change ----------------------------------------------------------------------------------------------------------


def _change_command(name: str, metavar: str) -> Callable[[Callable[..., None]], click.Command]:
    def decorate(function: Callable[..., None]) -> click.Command:
        words = click.argument(
            "words", nargs=-1, required=name != "set", metavar=metavar, shell_complete=complete_topic_config
        )
        resource = click.argument("resource", **_RESOURCE)
        return configs.command(name)(resource(words(yes_option(dry_run_option(common_options(function))))))

    return decorate


@_change_command("set", "[KEY=VALUE...]")
@click.option(
    "--file",
    "-f",
    "file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Properties file with settings to set.",
)
def set_(
    resource: ConfigResource,
    words: tuple[str, ...],
    file: Path | None,
    yes: bool,
    dry_run: bool,
    connection: Connection,
    output: Output,
) -> None:
    """Set settings of a resource. Other settings are not changed. A change that deletes records asks for confirmation.

    \b
    Examples:
      barnabas configs set orders retention.ms=86400000 cleanup.policy=compact,delete
      barnabas configs set brokers -f dynamic.properties --dry-run
      barnabas configs set broker-logger:1 kafka.server.KafkaApis=DEBUG
    """
    ops = parse_pairs(words, AlterConfigOpType.SET)
    if file is not None:
        from barnabas.config.properties import loads

        with failures(str(file)):
            given = loads(file.read_text(encoding="latin-1"))
        ops += [AlterConfigOp(name, AlterConfigOpType.SET, value) for name, value in given.items()]
    if not ops:
        raise click.UsageError("Give settings as KEY=VALUE, or a properties file with --file.")
    _alter(resource, ops, yes, dry_run, connection, output)


@_change_command("unset", "KEY...")
def unset(
    resource: ConfigResource, words: tuple[str, ...], yes: bool, dry_run: bool, connection: Connection, output: Output
) -> None:
    """Unset settings of a resource. The inherited or default value applies again.

    \b
    Example:
      barnabas configs unset orders retention.ms segment.ms
    """
    _alter(
        resource, [AlterConfigOp(name, AlterConfigOpType.DELETE) for name in words], yes, dry_run, connection, output
    )


@_change_command("append", "KEY=VALUE...")
def append(
    resource: ConfigResource, words: tuple[str, ...], yes: bool, dry_run: bool, connection: Connection, output: Output
) -> None:
    """Append a value to settings of type list.

    \b
    Example:
      barnabas configs append orders cleanup.policy=compact
    """
    _alter(resource, parse_pairs(words, AlterConfigOpType.APPEND), yes, dry_run, connection, output)


@_change_command("subtract", "KEY=VALUE...")
def subtract(
    resource: ConfigResource, words: tuple[str, ...], yes: bool, dry_run: bool, connection: Connection, output: Output
) -> None:
    """Remove a value from settings of type list.

    \b
    Example:
      barnabas configs subtract orders leader.replication.throttled.replicas=0:1
    """
    _alter(resource, parse_pairs(words, AlterConfigOpType.SUBTRACT), yes, dry_run, connection, output)


def _alter(
    resource: ConfigResource,
    ops: list[AlterConfigOp],
    yes: bool,
    dry_run: bool,
    connection: Connection,
    output: Output,
) -> None:
    twice = sorted(name for name in {op.name for op in ops} if sum(op.name == name for op in ops) > 1)
    if twice:
        raise Failure(f"given more than once: {', '.join(twice)}", resource=resource_text(resource))
    before, result = run(connection, lambda cluster: _asked(cluster, resource, ops, yes, dry_run))
    is_refused = isinstance(result, KafkaError) and result.code is ErrorCode.INVALID_CONFIG
    note_misspelt_settings([op.name for op in ops if is_refused or op.type is AlterConfigOpType.DELETE], before)
    _show_changes(resource, ops, before, result, output)


async def _asked(
    cluster: Cluster, resource: ConfigResource, ops: list[AlterConfigOp], yes: bool, dry_run: bool
) -> tuple[Config, KafkaError | None]:
    from barnabas.client.admin.configs import Configs

    admin = Configs(cluster)
    before = _or_fail(resource, (await admin.describe_configs([resource]))[resource])
    announce((alteration_sentence(resource, op, before) for op in ops), dry_run=dry_run)
    await confirm_losses(cluster, {resource: ops}, yes=yes, dry_run=dry_run)
    return before, (await admin.incremental_alter_configs({resource: ops}, validate_only=dry_run))[resource]


def _show_changes(
    resource: ConfigResource, ops: list[AlterConfigOp], before: Config, result: KafkaError | None, output: Output
) -> None:
    def row(op: AlterConfigOp, _: Any) -> dict[str, Any]:
        entry = before.get(op.name)
        return {
            **resource_row(resource),
            "name": op.name,
            "operation": op.type.name,
            "value": HIDDEN if op.value is not None and is_secret(resource, op.name, before) else op.value,
            "before": HIDDEN if entry is not None and entry.is_sensitive else entry and entry.value,
        }

    show_results(output, ("resource", "name", "operation", "before", "value"), dict.fromkeys(ops, result), row)


# --- history ---------------------------------------------------------------------------------------------------------


_LOG_DIR = click.option(
    "--log-dir",
    type=click.Path(exists=True, path_type=Path),
    help="Log dir of a controller, or its __cluster_metadata-0.  [default: read from the running controllers]",
)


@configs.command("history", short_help="Show changes of settings in the metadata log.")
@click.argument("resource", required=False, **_RESOURCE)
@click.option(
    "--name", "pattern", default="*", metavar="PATTERN", help="Only settings whose name matches this shell pattern."
)
@_LOG_DIR
@click.option(
    "--audit-log",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Audit log of the node, to show who made each change.  [default: that of server.properties beside --log-dir]",
)
@common_options
def history(
    resource: ConfigResource | None,
    pattern: str,
    log_dir: Path | None,
    audit_log: Path | None,
    connection: Connection,
    output: Output,
) -> None:
    """Show the changes of settings in the metadata log, oldest first: of RESOURCE, or of all resources.

    The log is read from files, without writing or locking, or from running controllers. Settings made before the log starts
    are shown with the offset of its first snapshot. With an audit log, each change also has the principal, the address and the
    API of the request that made it.

    \b
    Examples:
      barnabas configs history orders --log-dir data
      barnabas configs history orders --log-dir data --audit-log audit.log
      barnabas configs history --name 'retention*' -b localhost:9092
    """
    from barnabas.metadata.as_of import EVERYTHING
    from barnabas.operations.configs.history import is_hidden

    found = _history(log_dir, connection, EVERYTHING)
    trail = _trail(log_dir, audit_log)

    def rows() -> Iterator[dict[str, Any]]:
        for event in found.events:
            if (resource or event.resource) != event.resource or not fnmatch.fnmatchcase(event.name, pattern):
                continue
            hidden = is_hidden(event.resource.type, event.name)
            yield {
                "offset": event.offset,
                "timestamp": event.timestamp_ms,
                **resource_row(event.resource),
                "name": event.name,
                "before": HIDDEN if hidden and event.before is not None else event.before,
                "after": HIDDEN if hidden and event.after is not None else event.after,
                **(_who(trail, event) if trail is not None else {}),
            }

    shown = columns("offset", Column("timestamp", "TIME", show=utc_time), "resource", "name", "before", "after")
    if trail is not None:
        shown = (*shown, *columns("principal", "address", "api"))
    if not output.rows(shown, rows()) and output.is_for_people:
        note("no matching change in the metadata log")


def _trail(log_dir: Path | None, audit_log: Path | None) -> AuditTrail | None:
    """Return the given audit log, or that of the node's settings, or None."""
    from barnabas.operations.audit_trail import find_audit_log, read_trail
    from barnabas.operations.configs.history import cluster_id_of
    from barnabas.operations.metadata_image import log_directory

    path = audit_log or (None if log_dir is None else find_audit_log(log_dir))
    if path is None:
        return None
    with failures(str(path)):
        cluster_id = None if log_dir is None else cluster_id_of(log_directory(log_dir))
        trail = read_trail(path, cluster_id)
    if trail.unreadable:
        note(f"warning: {trail.unreadable} lines of {path} cannot be read")
    return trail


def _who(trail: AuditTrail, event: ConfigEvent) -> dict[str, Any]:
    who = trail.who(event.offset, event.epoch)
    if who is None:
        return {"principal": None, "address": None, "api": None, "client_id": None}
    return who._asdict()


@configs.command("rollback", short_help="Restore the settings of a resource from the metadata log.")
@click.argument("resource", **_RESOURCE)
@click.option(
    "--to",
    "as_of",
    required=True,
    metavar="OFFSET|TIME|AGE",
    callback=moment_of,
    help="Offset of the metadata log, or time (ISO 8601, milliseconds since 1970, or an age such as 1h), to return to.",
)
@_LOG_DIR
@yes_option
@dry_run_option
@common_options
def rollback(
    resource: ConfigResource,
    as_of: AsOf,
    log_dir: Path | None,
    yes: bool,
    dry_run: bool,
    connection: Connection,
    output: Output,
) -> None:
    """Restore the settings that a resource had at an earlier offset or time of the metadata log.

    Settings changed since then are set to their old value or unset. Current values are read from the cluster, not the log. A
    change that deletes records asks for confirmation.

    \b
    Examples:
      barnabas configs rollback orders --log-dir data --to 1234 --dry-run
      barnabas configs rollback brokers -b localhost:9092 --to 2026-01-31T12:00
    """
    from barnabas.operations.configs.history import own_config
    from barnabas.operations.configs.history import rollback as plan

    found = _history(log_dir, connection, as_of)
    _check_that_it_was_there(resource, found)

    async def work(cluster: Cluster) -> tuple[list[AlterConfigOp], Config, KafkaError | None]:
        from barnabas.client.admin.configs import Configs

        _check_same_cluster(cluster, log_dir)
        present = _or_fail(resource, (await Configs(cluster).describe_configs([resource]))[resource])
        ops = plan(resource, own_config(found.then, resource), own_config(found.last, resource), present)
        if not ops:
            return [], present, None
        return ops, *await _asked(cluster, resource, ops, yes, dry_run)

    ops, before, result = run(connection, work)
    if not ops:
        note(f"nothing to do: {resource_text(resource)} has the same settings as then")
    _show_changes(resource, ops, before, result, output)


def _history(log_dir: Path | None, connection: Connection, as_of: AsOf) -> History:
    from barnabas.operations.configs.history import read_history, read_live_history

    if log_dir is not None:
        with failures(str(log_dir)):
            found = read_history(log_dir, as_of)
    else:
        found = run(through_controllers(connection), lambda cluster: read_live_history(cluster, as_of))
    if found.problem is not None:
        note(f"warning: {found.problem}")
    return found


def _check_that_it_was_there(resource: ConfigResource, found: History) -> None:
    """Raise Failure if the log does not reach back to that moment, or if the topic did not exist then."""
    from barnabas.operations.configs.history import require_that_it_was_there

    with failures():
        require_that_it_was_there(resource, resource_text(resource), found)
    if resource.type is not ConfigResourceType.TOPIC:
        return
    then, now = (image.topics.get(resource.name) for image in (found.then, found.last))
    if now is not None and then is not None and now.topic_id != then.topic_id:
        note(f"warning: {resource_text(resource)} has been deleted and created again since then")


def _check_same_cluster(cluster: Cluster, log_dir: Path | None) -> None:
    from barnabas.operations.configs.history import cluster_id_of
    from barnabas.operations.metadata_image import log_directory

    if log_dir is None:
        return
    of_log, of_cluster = cluster_id_of(log_directory(log_dir)), cluster.state.cluster_id
    if of_log is not None and of_cluster is not None and of_log != of_cluster:
        raise Failure(f"this log belongs to cluster {of_log}, not to {of_cluster}", resource=str(log_dir))


def _or_fail(resource: ConfigResource, result: Config | KafkaError) -> Config:
    if isinstance(result, KafkaError):
        raise _failure(resource, result)
    return result


def _failure(resource: ConfigResource, error: KafkaError) -> Failure:
    return failure_of(error, resource_text(resource))
