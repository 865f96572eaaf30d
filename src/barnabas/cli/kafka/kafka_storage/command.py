"""`barnabas kafka-storage`: Kafka's script of this name. `barnabas storage` has the same commands."""

from __future__ import annotations

import time
from pathlib import Path
from random import SystemRandom

import click

from barnabas.cli.kafka.drop_in import KafkaToolGroup, Terse
from barnabas.cli.kafka.kafka_storage import tool
from barnabas.cli.kafka.kafka_storage.tool import FormatError, FormatOptions
from barnabas.cli.terminal.exit_codes import EXIT_FAILED
from barnabas.config import server
from barnabas.config.definitions import ConfigError
from barnabas.config.server_config import ServerConfig
from barnabas.metadata.versions import LATEST_VERSION, MINIMUM_VERSION
from barnabas.wire import random_uuid

_CONFIG = click.option(
    "--config", "-c", required=True, type=click.Path(path_type=Path), help="The server.properties of the node."
)
_RELEASE_HELP = f"The minimum is {MINIMUM_VERSION}, the default {LATEST_VERSION}."


@click.group("kafka-storage", cls=KafkaToolGroup, short_help="Format directories as Kafka's script does.")
def kafka_storage() -> None:
    """Format the directories of a node, and show their state, as Kafka's script of this name does.

    See also: barnabas storage.
    """


@kafka_storage.command("format", short_help="Format the log directories of a node.")
@_CONFIG
@click.option("--cluster-id", "-t", required=True, help="The id of the cluster.")
@click.option("--standalone", "-s", is_flag=True, help="This controller is the only voter of a new dynamic quorum.")
@click.option("--no-initial-controllers", "-N", is_flag=True, help="The node joins an existing dynamic quorum.")
@click.option(
    "--initial-controllers",
    "-I",
    metavar="ID@HOST:PORT:DIRECTORY,...",
    help="The voters of a new dynamic quorum, the same for all its nodes.",
)
@click.option("--release-version", "-r", help=f"The release of the initial feature levels. {_RELEASE_HELP}")
@click.option("--feature", "-f", "features", multiple=True, metavar="NAME=LEVEL", help="The level of one feature.")
@click.option(
    "--add-scram",
    "-S",
    "scram",
    multiple=True,
    metavar="MECHANISM=[...]",
    help="An initial credential of the cluster: 'SCRAM-SHA-256=[name=alice,password=secret]'.",
)
@click.option("--ignore-formatted", "-g", is_flag=True, help="Skip directories that are already formatted.")
def format_(
    config: Path,
    cluster_id: str,
    standalone: bool,
    no_initial_controllers: bool,
    initial_controllers: str | None,
    release_version: str | None,
    features: tuple[str, ...],
    scram: tuple[str, ...],
    ignore_formatted: bool,
) -> None:
    """Format the log directories of a node.

    A controller needs one of --standalone, --initial-controllers and --no-initial-controllers, unless its file has
    controller.quorum.voters.
    """
    if standalone + no_initial_controllers + (initial_controllers is not None) > 1:
        raise click.UsageError(
            "Only one of --standalone, --no-initial-controllers and --initial-controllers is possible."
        )
    options = FormatOptions(
        cluster_id=cluster_id,
        release_version=release_version,
        features=features,
        is_standalone=standalone,
        initial_controllers=initial_controllers,
        has_no_initial_controllers=no_initial_controllers,
        scram=scram,
        ignore_formatted=ignore_formatted,
    )
    try:
        tool.format_storage(_load(config), options, SystemRandom(), _now_ms, click.echo)
    except FormatError as error:
        raise Terse(str(error)) from None


@kafka_storage.command()
@_CONFIG
def info(config: Path) -> None:
    """Show the directories of a node and their cluster. Fails if there is a problem with them."""
    if not tool.describe_storage(_load(config), click.echo):
        raise SystemExit(EXIT_FAILED)


@kafka_storage.command("version-mapping")
@click.option("--release-version", "-r", help=f"The release. {_RELEASE_HELP}")
def version_mapping(release_version: str | None) -> None:
    """List the level of each feature in a new cluster of a release."""
    try:
        lines = tool.version_mapping(release_version)
    except FormatError as error:
        raise Terse(str(error)) from None
    click.echo("\n".join(lines))


@kafka_storage.command("feature-dependencies")
@click.option(
    "--feature", "-f", "features", required=True, multiple=True, metavar="NAME=LEVEL", help="May be repeated."
)
def feature_dependencies(features: tuple[str, ...]) -> None:
    """List the levels of other features that feature levels depend on."""
    try:
        lines = tool.feature_dependencies(features)
    except FormatError as error:
        raise Terse(str(error)) from None
    click.echo("\n".join(lines))


@kafka_storage.command("random-uuid")
def print_random_uuid() -> None:
    """Print a random uuid, for a cluster or a directory."""
    click.echo(str(random_uuid(SystemRandom())))


def _load(path: Path) -> ServerConfig:
    try:
        return server.load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise Terse(f"{path}: {error.strerror}") from None
    except (ConfigError, UnicodeDecodeError) as error:
        raise Terse(f"{path}: {error}") from None


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
