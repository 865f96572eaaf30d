"""Options of commands that copy to another cluster: `--to-bootstrap-server`, `--to-command-config`, `--to-profile`.

Its one rule: the other cluster inherits nothing. Settings of the source, BARNABAS_* variables and the default profile do not
apply to it, so that no password is sent to the wrong cluster.
"""

from __future__ import annotations

import functools
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from barnabas.cli.connection import profiles
from barnabas.cli.connection.connecting import connected
from barnabas.cli.connection.profiles import BOOTSTRAP_SERVERS, Connection, Setting
from barnabas.cli.terminal.failures import Failure

if TYPE_CHECKING:
    from barnabas.client.cluster import Cluster

F = TypeVar("F", bound=Callable[..., Any])


def target_options(command: F) -> F:
    """Add the options that select another cluster; the command receives `target`, None for the same cluster."""

    @click.option("--to-bootstrap-server", metavar="HOST:PORT,...", help="Brokers of the cluster to copy to.")
    @click.option(
        "--to-command-config",
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        help="Properties file with client settings for the cluster to copy to.",
    )
    @click.option("--to-profile", metavar="NAME", help="Profile of the cluster to copy to.")
    @functools.wraps(command)
    def wrapped(
        *args: Any,
        to_bootstrap_server: str | None,
        to_command_config: Path | None,
        to_profile: str | None,
        **kwargs: Any,
    ) -> Any:
        target = None
        if to_bootstrap_server or to_command_config or to_profile:
            target = _resolve(to_bootstrap_server, to_command_config, to_profile)
        return command(*args, target=target, **kwargs)

    return wrapped  # type: ignore[return-value]


def _resolve(bootstrap_servers: str | None, command_config: Path | None, profile: str | None) -> Connection:
    env = profiles.environment()
    of_profile = profiles.NO_PROFILE if profile is None else profiles.load_profile(env, profile)
    found = profiles.resolve({}, of_profile, bootstrap_servers=bootstrap_servers, command_config=command_config)
    settings = dict(found.settings)
    if bootstrap_servers:
        settings[BOOTSTRAP_SERVERS] = Setting(bootstrap_servers, "--to-bootstrap-server")
    if BOOTSTRAP_SERVERS not in settings or settings[BOOTSTRAP_SERVERS].origin == "by default":
        raise Failure(f"no {BOOTSTRAP_SERVERS} for the cluster to copy to", advice="pass --to-bootstrap-server")
    return Connection(settings)


@asynccontextmanager
async def target_cluster(source: Cluster, target: Connection | None) -> AsyncIterator[Cluster]:
    """Yield a client of the cluster to copy to, which is the source itself if `target` is None."""
    if target is None:
        yield source
    else:
        async with connected(target) as cluster:
            yield cluster
