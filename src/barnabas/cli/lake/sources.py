"""Sources of a lake: those given on the command line, recorded in the lake for later runs.

For each cluster the lake records `paths` (log dirs, or addresses to which they were copied) or `controllers` (the address of
its quorum), the `options` of the sources, whether `traffic` is read, and the address that it `observes`. What a run gives
replaces the record; the rest stays.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from barnabas.cli.connection.connecting import through_controllers
from barnabas.cli.connection.profiles import BOOTSTRAP_CONTROLLERS, BOOTSTRAP_SERVERS, Connection
from barnabas.cli.terminal.failures import Failure, failures
from barnabas.cli.terminal.output import note
from barnabas.cli.terminal.stages import Stages

if TYPE_CHECKING:
    from barnabas.lake.keeping.feeds import Feed
    from barnabas.lake.keeping.store import Writer

_ON_THE_COMMAND_LINE = ("--bootstrap-controller", "--bootstrap-server", "-X")
_ADDRESSES = (BOOTSTRAP_SERVERS, BOOTSTRAP_CONTROLLERS)


class Named(NamedTuple):
    """Sources given on the command line; None means as recorded."""

    paths: tuple[Path | str, ...]
    """Directories, and addresses as texts."""
    options: Mapping[str, str]
    cluster_id: str | None
    traffic: bool | None
    observe: bool | None


def chosen_feeds(writer: Writer, named: Named, connection: Connection) -> list[Feed]:
    """Return the feeds to read now, and record their sources for later runs. Raises click.UsageError without any source."""
    known = writer.settings.sources
    found = _found(named, connection)
    if not found and not known:
        raise click.UsageError(
            "Missing argument 'SOURCE...', or the address of a running cluster with '-b' or '--bootstrap-controller'."
        )
    feeds: list[Feed] = []
    for cluster in found or known:
        source = {**known.get(cluster, {}), **found.get(cluster, {})}
        if "paths" in found.get(cluster, {}):
            source.pop("controllers", None)
        if "controllers" in found.get(cluster, {}):
            source.pop("paths", None)
        if named.traffic is not None:
            source["traffic"] = named.traffic
        if named.observe is False:
            source.pop("observes", None)
        writer.remember(cluster, source)
        feeds += _feeds_of(cluster, source, connection)
    return feeds


def remembered_feeds(
    known: Mapping[str, Mapping[str, Any]], connection: Connection, *, without_missing: bool
) -> list[Feed]:
    """Return the feeds of all recorded sources, except observations, which cannot be repeated."""
    feeds: list[Feed] = []
    for cluster, source in known.items():
        feeds += _feeds_of(cluster, {**source, "observes": None}, connection, without_missing=without_missing)
    return feeds


def _found(named: Named, connection: Connection) -> dict[str, dict[str, Any]]:
    """Return the sources given on the command line, by cluster id."""
    from barnabas.lake.keeping.feeds import cluster_behind, cluster_of, find_feeds
    from barnabas.lake.tables.all import STREAMS, TRAFFIC

    # Client settings may be passwords, so they are not recorded: each run needs them again.
    options = {name: value for name, value in named.options.items() if not name.lower().startswith("kafka.")}
    given = {name for name in _ADDRESSES if name in connection.settings and _is_on_the_command_line(connection, name)}
    if named.paths and given and not named.observe:
        raise click.UsageError("SOURCE and an address cannot both be given, except with --observe.")
    found: dict[str, dict[str, Any]] = {}
    if named.paths:
        places = list(map(here, named.paths))
        find_feeds(places, (*STREAMS, TRAFFIC), named.options, named.cluster_id)  # raises SourceError
        for path, place in zip(named.paths, places, strict=True):
            source = found.setdefault(cluster_of(place, named.cluster_id), {"paths": [], "options": options})
            source["paths"] = sorted({*source["paths"], path if isinstance(path, str) else str(path.absolute())})
    elif BOOTSTRAP_CONTROLLERS in given or (given and not named.observe):
        controllers = through_controllers(connection).values()[BOOTSTRAP_CONTROLLERS]
        cluster = cluster_behind(_client(connection, {BOOTSTRAP_CONTROLLERS: controllers}))
        found[cluster] = {"controllers": controllers, "options": options}
    if named.observe:
        values = connection.values()
        addresses = {name: values[name] for name in _ADDRESSES if name in values}
        found.setdefault(cluster_behind(_client(connection, addresses)), {})["observes"] = addresses
    return found


def _is_on_the_command_line(connection: Connection, name: str) -> bool:
    """True if the address is of this command. Those of profiles and variables are only for what asks for a cluster."""
    return connection.settings[name].origin in _ON_THE_COMMAND_LINE


def _feeds_of(
    cluster: str, source: Mapping[str, Any], connection: Connection, *, without_missing: bool = False
) -> list[Feed]:
    from barnabas.lake.keeping.feeds import find_feeds, live_feed, observing_feeds
    from barnabas.lake.tables.all import OBSERVING, STREAMS, TRAFFIC

    options = source.get("options", {})
    feeds: list[Feed] = []
    if "controllers" in source:
        client = _client(connection, {BOOTSTRAP_CONTROLLERS: source["controllers"]})
        feeds.append(_same(cluster, live_feed(client, STREAMS, options)))
    elif paths := _present(source.get("paths", ()), without_missing=without_missing):
        streams = (*STREAMS, TRAFFIC) if source.get("traffic") else STREAMS
        feeds += find_feeds(paths, streams, options, cluster)
    if observes := source.get("observes"):
        try:
            with failures():
                feeds += [_same(cluster, feed) for feed in observing_feeds(_client(connection, observes), OBSERVING)]
        except Failure as failure:
            note(f"warning: cluster {cluster} cannot be observed in this run: {failure.message}")
    return feeds


def addresses_of(known: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return the addresses among the recorded sources."""
    from barnabas.lake.keeping.folders import is_address

    return [path for source in known.values() for path in source.get("paths", ()) if is_address(path)]


def here(path: Path | str) -> Path:
    """Return the directory to read for a source. What is at an address is fetched first. Raises LakeError."""
    from barnabas.lake.keeping.folders import folder_at, is_address
    from barnabas.lake.keeping.mirrors import mirror, mirror_of

    if not is_address(str(path)):
        return Path(path)
    directory = mirror_of(str(path))
    with Stages(f"fetching {path}"):
        mirror(folder_at(path), directory)
    if not directory.is_dir():
        raise Failure("has no files", resource=str(path))
    return directory


def _present(paths: list[str], *, without_missing: bool) -> list[Path]:
    from barnabas.lake.keeping.folders import is_address

    gone = [path for path in paths if not is_address(path) and not Path(path).is_dir()]
    if gone and not without_missing:
        raise Failure(
            "no longer exists, but is a recorded source of the lake",
            resource=gone[0],
            advice="restore it, give the existing sources to lake run, or use lake rebuild --without-missing",
        )
    return [here(path) for path in paths if path not in gone]


def _same(cluster: str, feed: Feed) -> Feed:
    if feed.cluster_id != cluster:
        raise Failure(f"the address now belongs to cluster {feed.cluster_id}, but the lake recorded it for {cluster}")
    return feed


def _client(connection: Connection, addresses: Mapping[str, str]) -> dict[str, str]:
    """Return the client settings, with their addresses replaced by these."""
    return {**{name: value for name, value in connection.values().items() if name not in _ADDRESSES}, **addresses}
