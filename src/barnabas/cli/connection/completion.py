"""Shell completion of names of topics, groups and settings.

Its one rule: the shell waits for it, so it times out after two seconds and returns nothing on any error.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable
from typing import TYPE_CHECKING, Any

import click

from barnabas.cli.terminal.command_groups import given_before, with_inner

if TYPE_CHECKING:
    from barnabas.client.cluster import Cluster

_PATIENCE_MS = 2000
_GIVEN = ("bootstrap_server", "bootstrap_controller", "command_config", "profile")


def complete_topic(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    async def topics(cluster: Cluster) -> Iterable[str]:
        return (await cluster.metadata(None, timeout_ms=_PATIENCE_MS)).topics

    return _complete(ctx, incomplete, topics)


def complete_group(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    async def groups(cluster: Cluster) -> Iterable[str]:
        from barnabas.client.admin.groups import Groups

        return [group.group_id for group in await Groups(cluster).list_groups(timeout_ms=_PATIENCE_MS)]

    return _complete(ctx, incomplete, groups)


def complete_topic_config(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    from barnabas.config import topic

    return sorted(name for name in topic.definitions() if name.startswith(incomplete))


def _complete(
    ctx: click.Context, incomplete: str, ask: Callable[[Cluster], Coroutine[Any, Any, Iterable[str]]]
) -> list[str]:
    from barnabas.cli.connection import profiles
    from barnabas.cli.connection.connecting import run

    try:
        given = with_inner(ctx, given_before(ctx), {name: ctx.params.get(name) for name in _GIVEN})
        connection = profiles.resolve(
            profiles.environment(),
            profiles.load_profile(profiles.environment(), given.get("profile")),
            bootstrap_servers=given.get("bootstrap_server"),
            bootstrap_controllers=given.get("bootstrap_controller"),
            command_config=given.get("command_config"),
            given={"default.api.timeout.ms": str(_PATIENCE_MS), "request.timeout.ms": str(_PATIENCE_MS)},
        )
        return sorted(name for name in run(connection, ask) if name.startswith(incomplete))
    except Exception:  # completion cannot show errors
        return []
