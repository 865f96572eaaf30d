"""`barnabas metadata`: browse the metadata of a cluster as a tree, from its metadata log or a snapshot.

Parses arguments and prints; sources are in `operations.metadata_image`, the tree in `metadata.tree`, differences in
`metadata.changes` and `metadata.changed_fields`. Passwords in settings are not shown.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from barnabas.cli.commands.metadata_mirror import mirror
from barnabas.cli.connection.connecting import run, through_controllers
from barnabas.cli.connection.options import common_options
from barnabas.cli.connection.profiles import BOOTSTRAP_CONTROLLERS, BOOTSTRAP_SERVERS, Connection
from barnabas.cli.terminal.command_groups import CommandGroup
from barnabas.cli.terminal.exit_codes import EXIT_NO
from barnabas.cli.terminal.failures import Failure, JudgingCommand, Misunderstood, failures
from barnabas.cli.terminal.output import Format, Output, cell, columns, note
from barnabas.cli.terminal.parsing import moment_of
from barnabas.metadata import tree
from barnabas.metadata.as_of import AsOf
from barnabas.metadata.changed_fields import changed_fields, is_routine, summary
from barnabas.metadata.changes import Change, changes
from barnabas.metadata.configs import ConfigResource
from barnabas.metadata.image import MetadataImage
from barnabas.operations.configs.history import is_hidden
from barnabas.operations.metadata_following import without_secrets
from barnabas.operations.metadata_image import Loaded, load_files, read_image

Source = Path | Connection
"""A file, a directory, or the connection to a running cluster."""

_ROOT = "image"
_ON_THE_COMMAND_LINE = ("--bootstrap-controller", "--bootstrap-server", "-X")


_MOMENT: dict[str, Any] = {"metavar": "OFFSET|TIME|AGE", "callback": moment_of}
_AS_OF = click.option(
    "--as-of",
    **_MOMENT,
    help="Offset of the metadata log, or time (ISO 8601, milliseconds since 1970, or an age such as 1h)."
    "  [default: end of the log]",
)


@click.group(cls=CommandGroup, short_help="Browse and compare the metadata of a cluster.")
def metadata() -> None:
    """Browse and compare the metadata of a cluster.

    SOURCE is a snapshot (a *.checkpoint file), the directory of a metadata log (__cluster_metadata-0), or a log dir that
    contains one. With -b or --bootstrap-controller, omit it: the metadata is read from the running controllers of Apache
    Kafka or barnabas, which are found through the brokers. Paths are those of Kafka's metadata shell; the leading image/ is
    optional.

    \b
    Examples:
      barnabas metadata ls data topics/byName
      barnabas metadata cat data topics/byName/orders/0
      barnabas metadata find data configs --name 'retention*'
      barnabas metadata ls -b localhost:9092 cluster/brokers
      barnabas metadata diff data --from 2026-01-31T12:00 --to 2026-01-31T13:00
      barnabas metadata diff old/bootstrap.checkpoint data
      barnabas metadata diff backup -b localhost:9092
      barnabas metadata mirror history -b localhost:9092
    """


@metadata.command("ls")
@click.argument("words", nargs=-1, metavar="[SOURCE] [PATH]")
@_AS_OF
@common_options
def ls(words: tuple[str, ...], as_of: AsOf, connection: Connection, output: Output) -> None:
    """List the entries of a directory in the tree."""
    source, path = _source_and_path(words, connection)
    image = _image(source, as_of)
    with _paths():
        output.listing("name", ({"name": name} for name in tree.ls(image, _full(path))))


@metadata.command("cat")
@click.argument("words", nargs=-1, metavar="[SOURCE] PATH...")
@_AS_OF
@common_options
def cat(words: tuple[str, ...], as_of: AsOf, connection: Connection, output: Output) -> None:
    """Show the contents of files in the tree."""
    source, paths = _source(words, connection)
    if not paths:
        raise click.UsageError("Missing argument 'PATH...'.")
    image = _image(source, as_of)
    with _paths():
        texts = {path: tree.cat(image, _full(path), _is_hidden) for path in paths}
    if output.format is Format.TABLE:
        for text in texts.values():
            output.write(text)
        output.flush()
    else:
        output.listing("value", ({"path": _full(path), "value": _value(text)} for path, text in texts.items()))


@metadata.command("find")
@click.argument("words", nargs=-1, metavar="[SOURCE] [PATH]")
@click.option("--name", default="*", metavar="PATTERN", help="Only paths whose last name matches this shell pattern.")
@_AS_OF
@common_options
def find(words: tuple[str, ...], name: str, as_of: AsOf, connection: Connection, output: Output) -> None:
    """List PATH and all paths below it."""
    source, path = _source_and_path(words, connection)
    image = _image(source, as_of)
    with _paths():
        output.listing("path", ({"path": found} for found in tree.find(image, _full(path), name)))


@metadata.command("diff", cls=JudgingCommand, short_help="Show what changed between two moments or sources.")
@click.argument("words", nargs=-1, metavar="[SOURCE] [OTHER]")
@click.option("--from", "from_", **_MOMENT, help="SOURCE as of this offset or time.")
@click.option("--to", **_MOMENT, help="OTHER, or else SOURCE, as of this offset or time.")
@click.option("--exit-code", is_flag=True, help="Exit with 2 if there are differences.")
@click.option("--verbose", is_flag=True, help="Also show the changes that every restart makes, one by one.")
@common_options
def diff(
    words: tuple[str, ...],
    from_: AsOf,
    to: AsOf,
    exit_code: bool,
    verbose: bool,
    connection: Connection,
    output: Output,
) -> None:
    """Show what changed between two offsets or times of SOURCE, or from SOURCE to OTHER.

    Changes that every restart makes (new epochs of brokers, controllers and leaders) are counted in one line at the end. The
    other formats have all changes, one row per field. With -b or --bootstrap-controller, the running quorum is OTHER, or
    without SOURCE, the only source.
    """
    sources: list[Source] = [_path(word) for word in words]
    if _is_live(connection):
        sources.append(connection)
    if not 1 <= len(sources) <= 2:
        raise Misunderstood("Give one source, or two to compare.", click.get_current_context())
    before_source, after_source = sources[0], sources[-1]
    if len(sources) == 1 and from_ == to:
        name = connection.address if isinstance(before_source, Connection) else str(before_source)
        raise Failure("nothing to compare with", resource=name, advice="pass --from, or give a second source")
    before, after = _image(before_source, from_), _image(after_source, to)
    found = [without_secrets(change) for change in changes(before, after)]
    found.sort(key=is_routine)
    if output.is_for_people:
        _show_changes(output, found, verbose)
    else:
        output.rows(_CHANGED, _change_rows(found))
    if exit_code and found:
        raise SystemExit(EXIT_NO)


_CHANGED = columns("action", "kind", "name", "field", "before", "after", "text")


def _change_rows(found: Iterable[Change]) -> Iterator[dict[str, Any]]:
    for change in found:
        for field in changed_fields(change):
            yield {**field._asdict(), "text": str(change)}


def _show_changes(output: Output, found: Iterable[Change], verbose: bool) -> None:
    routine = []
    for change in found:
        if is_routine(change) and not verbose:
            routine.append(change)
        else:
            output.write(cell(str(change)))
    output.flush()
    if routine:
        note(f"as after every restart: {summary(routine)} (--verbose shows each)")


metadata.add_command(mirror)


def _is_hidden(resource: ConfigResource, name: str) -> bool:
    return is_hidden(resource.type, name)


def _is_live(connection: Connection) -> bool:
    """Return whether a cluster is given on the command line. That of a profile does not replace SOURCE."""
    return _is_given(connection, BOOTSTRAP_CONTROLLERS) or _is_given(connection, BOOTSTRAP_SERVERS)


def _is_given(connection: Connection, name: str) -> bool:
    setting = connection.settings.get(name)
    return setting is not None and setting.origin in _ON_THE_COMMAND_LINE


def _source(words: tuple[str, ...], connection: Connection) -> tuple[Source, tuple[str, ...]]:
    """Return the source, and the arguments after it."""
    if _is_live(connection):
        return connection, words
    if not words:
        raise click.UsageError("Missing argument 'SOURCE' or option '--bootstrap-server'.")
    return _path(words[0]), words[1:]


def _path(word: str) -> Path:
    path = Path(word)
    if not path.exists():
        raise Misunderstood(f"Invalid value for 'SOURCE': Path {word!r} does not exist.", click.get_current_context())
    return path


def _source_and_path(words: tuple[str, ...], connection: Connection) -> tuple[Source, str]:
    source, rest = _source(words, connection)
    if len(rest) > 1:
        raise click.UsageError(f"Got unexpected extra argument ({rest[1]})")
    return source, rest[0] if rest else ""


def _image(source: Source, as_of: AsOf) -> MetadataImage:
    """Read the metadata of a source, with a warning if it is damaged. Raises Failure."""
    if isinstance(source, Connection):
        return run(through_controllers(source), lambda cluster: read_image(cluster, as_of))
    with failures():
        found: Loaded = load_files(source, as_of)
    if found.problem is not None:
        note(f"warning: {found.problem}")
    return found.image


def _full(path: str) -> str:
    names = [name for name in path.split("/") if name and name != "."]
    return "/".join(names if names[:1] == [_ROOT] else [_ROOT, *names])


def _value(text: str) -> Any:
    return json.loads(text) if text.startswith(("{", "[")) else text


@contextmanager
def _paths() -> Iterator[None]:
    """Turn an unknown path into a Failure."""
    try:
        yield
    except tree.NoSuchPathError as error:
        raise Failure(str(error), advice="list paths with: barnabas metadata ls SOURCE PATH") from None
