"""`barnabas metadata`: what a cluster is, from its metadata log or a snapshot of it, as a tree to look around in.

Reads arguments and shows; sources are in `cli.metadata_sources`, the tree in `metadata.tree`, differences in
`metadata.changes`. Passwords among settings are not shown.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from barnabas.cli.failures import Failure, Verdict
from barnabas.cli.metadata_sources import Loaded, load_source, parse_as_of
from barnabas.cli.options import output_options
from barnabas.cli.output import EXIT_NO, Format, Output, note
from barnabas.config import broker
from barnabas.metadata import tree
from barnabas.metadata.changes import Change, ConfigChanged, changes
from barnabas.metadata.configs import ConfigResource, ConfigResourceType
from barnabas.metadata.image import MetadataImage
from barnabas.raft.offline_metadata import EVERYTHING, AsOf

_ROOT = "image"
_NEVER_SHOWN = "[hidden]"


def _moment(ctx: click.Context, param: click.Parameter, value: str | None) -> AsOf:
    try:
        return EVERYTHING if value is None else parse_as_of(value)
    except ValueError as error:
        raise click.BadParameter(str(error), ctx, param) from None


_MOMENT: dict[str, Any] = {"metavar": "OFFSET|TIME", "callback": _moment}
_SOURCE = click.argument("source", type=click.Path(exists=True, path_type=Path))
_AS_OF = click.option(
    "--as-of",
    **_MOMENT,
    help="After this offset of the log, or at this time (ISO 8601, or ms).",
)


@click.group(short_help="Browse and compare the metadata of a cluster.")
def metadata() -> None:
    """Browse and compare the metadata of a cluster.

    SOURCE is a snapshot (a *.checkpoint file), the directory of a metadata log (__cluster_metadata-0), or a log dir that has
    it. Paths are those of Kafka's metadata shell; image/ in front of them may be left out.

    \b
    Examples:
      barnabas metadata ls data topics/byName
      barnabas metadata cat data topics/byName/orders/0
      barnabas metadata find data configs --name 'retention*'
      barnabas metadata diff data --from 2026-01-31T12:00 --to 2026-01-31T13:00
      barnabas metadata diff old/bootstrap.checkpoint data
    """


@metadata.command("ls")
@_SOURCE
@click.argument("path", default="")
@_AS_OF
@output_options
def ls(source: Path, path: str, as_of: AsOf, output: Output) -> None:
    """List the names in a directory of the tree."""
    image = _image(source, as_of)
    with _paths():
        output.listing("name", ({"name": name} for name in tree.ls(image, _full(path))))


@metadata.command("cat")
@_SOURCE
@click.argument("paths", nargs=-1, required=True, metavar="PATH...")
@_AS_OF
@output_options
def cat(source: Path, paths: tuple[str, ...], as_of: AsOf, output: Output) -> None:
    """Show what is in files of the tree."""
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
@_SOURCE
@click.argument("path", default="")
@click.option(
    "--name", default="*", metavar="PATTERN", help="What the last name of a path has to fit, as in the shell."
)
@_AS_OF
@output_options
def find(source: Path, path: str, name: str, as_of: AsOf, output: Output) -> None:
    """List a path and all paths below it."""
    image = _image(source, as_of)
    with _paths():
        output.listing("path", ({"path": found} for found in tree.find(image, _full(path), name)))


@metadata.command("diff", cls=Verdict)
@_SOURCE
@click.argument("other", required=False, type=click.Path(exists=True, path_type=Path))
@click.option("--from", "from_", **_MOMENT, help="SOURCE as of this offset or time.")
@click.option("--to", **_MOMENT, help="OTHER, or else SOURCE, as of this offset or time.")
@click.option("--exit-code", is_flag=True, help="Exit with 2 if there are differences.")
@output_options
def diff(source: Path, other: Path | None, from_: AsOf, to: AsOf, exit_code: bool, output: Output) -> None:
    """Say what has changed, between two moments of one log, or from SOURCE to OTHER."""
    if other is None and from_ == to:
        raise Failure(
            "there is nothing to compare it with", resource=str(source), advice="give --from, or another source"
        )
    before, after = _image(source, from_), _image(other or source, to)
    count = output.listing("text", _change_rows(before, after))
    if exit_code and count:
        raise SystemExit(EXIT_NO)


def _change_rows(before: MetadataImage, after: MetadataImage) -> Iterator[dict[str, Any]]:
    for change in changes(before, after):
        shown = _without_secrets(change)
        yield {"kind": type(change).__name__, "text": str(shown)}


def _without_secrets(change: Change) -> Change:
    if isinstance(change, ConfigChanged) and _is_hidden(change.resource, change.name):
        hidden = (None if value is None else _NEVER_SHOWN for value in (change.before, change.after))
        return ConfigChanged(change.resource, change.name, *hidden)
    return change


def _is_hidden(resource: ConfigResource, name: str) -> bool:
    """As Kafka: the passwords among the settings of brokers, and what nobody knows and so might be one."""
    if resource.type != ConfigResourceType.BROKER:
        return False
    definition = broker.find(name)
    return definition is None or definition.sensitive


def _image(source: Path, as_of: AsOf) -> MetadataImage:
    found: Loaded = load_source(source, as_of)
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
    """What is not in the tree is a failure."""
    try:
        yield
    except tree.NoSuchPathError as error:
        raise Failure(str(error), advice="look around with: barnabas metadata ls SOURCE PATH") from None
