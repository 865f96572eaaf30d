"""`barnabas doctor`: check a server.properties, log dirs and a running cluster.

Parses arguments and prints findings; the checks are in `operations.doctor`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem

from barnabas.cli.connection.connecting import run
from barnabas.cli.connection.options import common_options
from barnabas.cli.connection.profiles import Connection
from barnabas.cli.terminal.command_groups import given_before
from barnabas.cli.terminal.exit_codes import EXIT_NO
from barnabas.cli.terminal.failures import Failure, JudgingCommand, failure_of
from barnabas.cli.terminal.output import Column, Output, Progress, cell, columns, note
from barnabas.config.definitions import ConfigError

if TYPE_CHECKING:
    from barnabas.client.cluster import Cluster
    from barnabas.operations.doctor.findings import Check, Finding

_SEVERITIES = ("error", "warning", "note")
_COLORS = {"error": "red", "warning": "yellow", "note": "cyan"}
_NOTHING = "nothing to do"
_SELECTING = ("bootstrap_server", "bootstrap_controller", "profile")


def _complete_check(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    return [CompletionItem(name) for name in _names() if name.startswith(incomplete)]


def _checks() -> dict[str, tuple[Check[Any], ...]]:
    """Return all checks, by what they check."""
    from barnabas.operations.doctor import cluster, log_dirs, settings

    return {
        "settings": settings.CHECKS,
        "log dirs": log_dirs.CHECKS,
        "cluster": cluster.CHECKS,
    }


def _names() -> list[str]:
    return [check.name for checks in _checks().values() for check in checks]


@click.command("doctor", cls=JudgingCommand, short_help="Check settings, log dirs and clusters, and say what to do.")
@click.argument("paths", nargs=-1, metavar="[PATH]...", type=click.Path(exists=True, path_type=Path))
@click.option("--deep", is_flag=True, help="Also check every batch and index entry in log dirs.")
@click.option(
    "--only", multiple=True, metavar="CHECK", shell_complete=_complete_check, help="Only this check; may be repeated."
)
@click.option(
    "--skip", multiple=True, metavar="CHECK", shell_complete=_complete_check, help="Not this check; may be repeated."
)
@click.option("--list", "lists", is_flag=True, help="List the checks, and check nothing.")
@click.option(
    "--fail-on",
    type=click.Choice(_SEVERITIES),
    default="error",
    show_default=True,
    help="Least severity of a finding that makes the exit code 2.",
)
@common_options
@click.pass_context
def doctor(
    ctx: click.Context,
    paths: tuple[Path, ...],
    deep: bool,
    only: tuple[str, ...],
    skip: tuple[str, ...],
    lists: bool,
    fail_on: str,
    connection: Connection,
    output: Output,
) -> None:
    """Say what is wrong, how bad it is, and what to type next. Nothing is changed.

    PATH is a server.properties, which is checked together with the log dirs it names, or a log dir of barnabas or Apache
    Kafka. Several log dirs are those of one node. Without a PATH, or with -b, --bootstrap-controller or --profile, the
    running cluster is checked.

    An error stops a node, a client or a write, or has lost data; a warning may do so later; a note is worth knowing. Exits
    with 0 if there is no error, with 2 if there is one, and with 1 if something could not be checked.

    \b
    Examples:
      barnabas doctor                                       the cluster of the profile, or localhost:9092
      barnabas doctor server.properties && barnabas serve server.properties
      barnabas doctor --deep /var/lib/kafka/d0 /var/lib/kafka/d1
      barnabas doctor server.properties -b localhost:9092 -o json
      barnabas doctor --list
    """
    from barnabas.operations.doctor.findings import UnknownCheckError, require_known, worst_first

    if lists:
        _list(output)
        return
    try:
        require_known((*only, *skip), _names())
    except UnknownCheckError as error:
        raise click.UsageError(f"{error}; --list shows all") from None
    examination = _Examination(frozenset(only), frozenset(skip), deep)
    failure: Failure | None = None
    found: list[Finding] = []
    try:
        found += examination.files(paths)
        if not paths or _names_a_cluster(ctx):
            found += examination.cluster(connection)
    except Failure as error:
        failure = error
    if failure is None or found:
        _show(output, worst_first(found), examination.count)
    if failure is not None:
        raise failure
    limit = _SEVERITIES.index(fail_on)
    if any(each.severity.rank <= limit for each in found):
        raise SystemExit(EXIT_NO)


def _names_a_cluster(ctx: click.Context) -> bool:
    before = given_before(ctx)
    return any(ctx.params.get(each) or before.get(each) for each in _SELECTING)


class _Examination:
    """The chosen checks, and the number of those that were made."""

    def __init__(self, only: frozenset[str], skip: frozenset[str], deep: bool) -> None:
        self._only, self._skip, self._deep = only, skip, deep
        self.count = 0

    def _found(self, checks: Iterable[Check[Any]], subject: object) -> Iterator[Finding]:
        from barnabas.operations.doctor.findings import choose, findings

        chosen = choose(checks, self._only, self._skip)
        self.count += len(chosen)
        return findings(chosen, subject)

    def files(self, paths: tuple[Path, ...]) -> Iterator[Finding]:
        """Check settings files with their log dirs, and the other log dirs as those of one node."""
        from barnabas.operations.doctor import log_dirs, settings

        with Progress("checking", unit="bytes") as progress:

            def progressed(done: int, total: int) -> None:
                progress.update(done, total=total)

            for path in paths:
                if path.is_dir():
                    continue
                try:
                    file = settings.read_settings(path)
                except (ConfigError, UnicodeDecodeError) as error:
                    raise Failure(f"this is not a server.properties: {error}", resource=str(path)) from None
                except OSError as error:
                    raise failure_of(error, str(path)) from None
                yield from self._found(settings.CHECKS, file)
                if file.log_dirs:
                    dirs = log_dirs.LogDirs(file.log_dirs, file.config, deep=self._deep, progressed=progressed)
                    yield from self._found(log_dirs.CHECKS, dirs)
            if alone := tuple(each for each in paths if each.is_dir()):
                _require_log_dirs(alone)
                yield from self._found(log_dirs.CHECKS, log_dirs.LogDirs(alone, deep=self._deep, progressed=progressed))

    def cluster(self, connection: Connection) -> list[Finding]:
        from barnabas.operations.doctor.cluster_facts import ClusterFacts, look_at_cluster

        async def look(cluster: Cluster) -> ClusterFacts:
            return await look_at_cluster(cluster, connection.address)

        return list(self._found(_checks()["cluster"], run(connection, look)))


def _require_log_dirs(paths: Iterable[Path]) -> None:
    from barnabas.storage.loading import segment_offsets

    for path in paths:
        if segment_offsets(path):
            above = path.absolute().parent
            raise Failure("this is the log of one partition", resource=str(path), advice=f"barnabas doctor {above}")


def _list(output: Output) -> None:
    rows = [
        {"check": check.name, "of": area, "finds": check.about}
        for area, checks in _checks().items()
        for check in checks
    ]
    output.rows(columns("check", "of", "finds"), rows)


_COLUMNS = columns(
    Column("severity", style=lambda value: _COLORS.get(str(value))),
    "check",
    "subject",
    "message",
    Column("remedy", "TRY"),
)


def _show(output: Output, found: list[Finding], count: int) -> None:
    rows = ({**each._asdict(), "severity": each.severity.value} for each in found)
    if not output.is_for_people:
        output.rows(_COLUMNS, rows)
    for row in rows if output.is_for_people else ():
        # Sentences are too long for columns of a terminal.
        severity = output.painted(f"{row['severity']:<7}", _COLORS[row["severity"]])
        output.write(f"{severity}  {cell(row['subject'])}: {cell(row['message'])}  [{row['check']}]")
        if row["remedy"]:
            begin = "" if row["remedy"].startswith(_NOTHING) else "try: "
            output.write(f"         {begin}{cell(row['remedy'])}")
    output.flush()
    made = f"{count} check{'s' * (count != 1)} made"
    if not found:
        note(f"nothing found, {made}")
    else:
        kinds = Counter(each.severity.value for each in found)
        shown = ", ".join(f"{kinds[each]:,} {each}{'s' * (kinds[each] != 1)}" for each in _SEVERITIES if kinds[each])
        note(f"{shown}; {made}")
