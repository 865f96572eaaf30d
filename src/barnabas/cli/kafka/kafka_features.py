"""`barnabas kafka-features`: Kafka's script of this name, with its options and its lines."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from barnabas.cli.connection import profiles
from barnabas.cli.connection.connecting import run
from barnabas.cli.kafka.drop_in import KafkaToolGroup, Terse
from barnabas.cli.kafka.java_text import exception_text
from barnabas.client.admin.features import Features, FeatureUpdate, UpgradeType
from barnabas.metadata.versions import FEATURES, METADATA_VERSION
from barnabas.operations.features import level_text, parse_level, parse_release, updates_for_release, updates_of
from barnabas.wire.errors import KafkaError

if TYPE_CHECKING:
    from barnabas.client.cluster import Cluster


class _Tool(KafkaToolGroup):
    def misunderstood(self, error: click.UsageError) -> click.ClickException:
        text = error.format_message().rstrip(".")
        if isinstance(error, click.MissingParameter) and error.param is not None:
            text = f"argument {error.param.opts[0]} is required"
        elif isinstance(error, click.NoSuchOption):
            text = f"unrecognized arguments: '{error.option_name}'"
        return _misused(text)


@click.group("kafka-features", cls=_Tool, short_help="Describe and change features as Kafka's script does.")
@click.option("--bootstrap-server", metavar="HOST:PORT,...", help="Brokers to connect to.")
@click.option("--bootstrap-controller", metavar="HOST:PORT,...", help="Controllers to connect to.")
@click.option(
    "--command-config", type=click.Path(exists=True, path_type=Path), help="Properties file with client settings."
)
@click.pass_context
def kafka_features(
    ctx: click.Context, bootstrap_server: str | None, bootstrap_controller: str | None, command_config: Path | None
) -> None:
    """Describe and change levels of features as Kafka's script of this name does. See also: barnabas cluster features."""
    if bootstrap_server and bootstrap_controller:
        raise _misused("argument --bootstrap-controller: not allowed with argument --bootstrap-server")
    ctx.obj = (bootstrap_server, bootstrap_controller, command_config)


def _misused(message: str) -> Terse:
    return Terse(f"Command line error: {message}. Type --help for help.")


def _connection(ctx: click.Context) -> profiles.Connection:
    servers, controllers, command_config = ctx.obj
    if not servers and not controllers:
        raise _misused("You must specify either --bootstrap-controller or --bootstrap-server.")
    return profiles.resolve(
        {}, bootstrap_servers=servers, bootstrap_controllers=controllers, command_config=command_config
    )


@kafka_features.command("describe")
@click.option("--node-id", type=int, help="The node to ask; any by default.")
@click.pass_context
def describe(ctx: click.Context, node_id: int | None) -> None:
    """Describe the levels of features."""
    connection = _connection(ctx)
    if node_id is not None and node_id < 0:
        raise Terse(f"Invalid node id {node_id}: must be non-negative.")

    async def work(cluster: Cluster) -> list[str]:
        try:
            found = await Features(cluster).describe_features(node_id=node_id)
        except KafkaError as error:
            raise Terse(exception_text(error)) from None
        epoch = "-" if found.finalized_features_epoch is None else found.finalized_features_epoch
        return [
            f"Feature: {name:<40}  SupportedMinVersion: {level_text(name, levels.first):<15}  "
            f"SupportedMaxVersion: {level_text(name, levels.last):<15}  "
            f"FinalizedVersionLevel: {level_text(name, found.level(name)):<15}  Epoch: {epoch}"
            for name, levels in sorted(found.supported_features.items())
        ]

    for line in run(connection, work):
        click.echo(line)


_METADATA = click.option("--metadata", help="The level of metadata.version, by its name. Deprecated.")
_RELEASE = click.option("--release-version", help="Set all features to the levels of this release.")
_FEATURE = click.option("--feature", "features", multiple=True, metavar="FEATURE=LEVEL", help="May be repeated.")
_DRY_RUN = click.option("--dry-run", is_flag=True, help="Only validate the change.")
_UNSAFE = click.option("--unsafe", is_flag=True, help="Allow changes that may lose metadata.")


@kafka_features.command("upgrade")
@_METADATA
@_RELEASE
@_FEATURE
@_DRY_RUN
@click.pass_context
def upgrade(
    ctx: click.Context, metadata: str | None, release_version: str | None, features: tuple[str, ...], dry_run: bool
) -> None:
    """Raise levels of features."""
    _update(ctx, "upgrade", lambda: _wanted(metadata, release_version, features, UpgradeType.UPGRADE), dry_run)


@kafka_features.command("downgrade")
@_METADATA
@_RELEASE
@_FEATURE
@_UNSAFE
@_DRY_RUN
@click.pass_context
def downgrade(
    ctx: click.Context,
    metadata: str | None,
    release_version: str | None,
    features: tuple[str, ...],
    unsafe: bool,
    dry_run: bool,
) -> None:
    """Lower levels of features."""
    kind = _downgrade_type(unsafe)
    _update(ctx, "downgrade", lambda: _wanted(metadata, release_version, features, kind), dry_run)


@kafka_features.command("disable")
@click.option("--feature", "features", multiple=True, metavar="FEATURE", help="May be repeated.")
@_UNSAFE
@_DRY_RUN
@click.pass_context
def disable(ctx: click.Context, features: tuple[str, ...], unsafe: bool, dry_run: bool) -> None:
    """Disable features: lower their levels to 0."""
    levels = [(name, 0) for name in features]
    _update(ctx, "disable", lambda: updates_of(levels, _downgrade_type(unsafe)), dry_run)


def _downgrade_type(unsafe: bool) -> UpgradeType:
    return UpgradeType.UNSAFE_DOWNGRADE if unsafe else UpgradeType.SAFE_DOWNGRADE


def _wanted(
    metadata: str | None, release_version: str | None, features: Sequence[str], upgrade_type: UpgradeType
) -> dict[str, FeatureUpdate]:
    if release_version is not None:
        if metadata is not None or features:
            raise ValueError("Can not specify `release-version` with other feature flags.")
        return updates_for_release(parse_release(release_version), upgrade_type)
    levels = []
    if metadata is not None:
        click.echo(" `metadata` flag is deprecated and may be removed in a future release.")
        levels.append((METADATA_VERSION, parse_release(metadata).value))
    return updates_of([*levels, *map(parse_level, features)], upgrade_type)


def _update(ctx: click.Context, verb: str, wanted: Callable[[], Mapping[str, FeatureUpdate]], dry_run: bool) -> None:
    connection = _connection(ctx)
    try:
        updates = wanted()
    except ValueError as error:
        raise Terse(str(error)) from None
    if not updates:
        raise Terse(f"You must specify at least one feature to {verb}")

    async def work(cluster: Cluster) -> Mapping[str, KafkaError | None]:
        return await Features(cluster).update_features(updates, validate_only=dry_run)

    failures = 0
    for name, refused in sorted(run(connection, work).items()):
        to = "" if verb == "disable" else f" to {updates[name].max_version_level}"
        if refused is None:
            click.echo(f"{name} {'can be' if dry_run else 'was'} {verb}d{to}.")
        else:
            click.echo(f"{'Can not' if dry_run else 'Could not'} {verb} {name}{to}. {refused.message}")
            failures += 1
    if failures:
        raise Terse(f"{failures} out of {len(updates)} operation(s) failed.")


@kafka_features.command("version-mapping")
@click.option("--release-version", help="The release.")
def version_mapping(release_version: str | None) -> None:
    """List the level of each feature in a new cluster of a release."""
    from barnabas.cli.kafka.kafka_storage import tool as storage_command  # imports storage

    try:
        if release_version is not None:
            parse_release(release_version)
        click.echo("\n".join(storage_command.version_mapping(release_version)))
    except ValueError as error:
        raise Terse(str(error)) from None


@kafka_features.command("feature-dependencies")
@click.option("--feature", "features", required=True, multiple=True, metavar="FEATURE=LEVEL", help="May be repeated.")
def feature_dependencies(features: tuple[str, ...]) -> None:
    """List the levels of other features that feature levels depend on."""
    from barnabas.cli.kafka.kafka_storage import tool as storage_command
    from barnabas.cli.kafka.kafka_storage.tool import FormatError

    for feature in features:
        try:
            name, level = parse_level(feature)
            known = {each.level for each in FEATURES.get(name, ())}
            if known and level not in known:
                raise ValueError(f"No feature:{name} with feature level {level}")
            click.echo("\n".join(storage_command.feature_dependencies([feature])))
        except (ValueError, FormatError) as error:
            raise Terse(str(error)) from None
