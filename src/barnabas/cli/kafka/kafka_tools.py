"""`barnabas kafka-tools`: install the drop-ins under the names of Kafka's scripts, list them, and remove them again.

Its one rule: only files with the marker line of a launcher are replaced or removed. A launcher contains the absolute path of
the Python that wrote it, so it works without activating a virtual environment.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click

from barnabas.cli.connection.options import output_options
from barnabas.cli.kafka.without_drop_in import WITHOUT_DROP_IN
from barnabas.cli.terminal.failures import Failure, failures
from barnabas.cli.terminal.output import Output, Row, columns, note

_MARKER = "# Launcher written by `barnabas kafka-tools install`; `barnabas kafka-tools uninstall` removes it."
_ENDINGS = ("", ".sh")
_MODE = 0o755
_MAX_SHOWN = 5
_DIRECTORY = click.Path(file_okay=False, path_type=Path)


@click.group("kafka-tools", short_help="Install drop-ins under the names of Kafka's scripts.")
def kafka_tools() -> None:
    """Install the drop-ins under the names of Kafka's scripts, so that existing shell scripts keep working.

    \b
    Examples:
      barnabas kafka-tools list
      barnabas kafka-tools install ~/kafka/bin && export PATH=~/kafka/bin:$PATH
      kafka-topics.sh --bootstrap-server localhost:9092 --list
      barnabas kafka-tools uninstall ~/kafka/bin
    """


@kafka_tools.command("list")
@output_options
@click.pass_context
def list_(ctx: click.Context, /, output: Output) -> None:
    """List the drop-ins, and the scripts of Kafka 4.3.1 that have none.

    A script without a drop-in is shown with the reason and what to use instead.
    """
    rows: list[Row] = []
    for name in _drop_ins(ctx):
        command = _root(ctx).get_command(ctx, name)
        assert command is not None, name
        rows.append({"name": name, "dropIn": True, "description": command.short_help, "instead": None})
    for name, (reason, instead) in WITHOUT_DROP_IN.items():
        rows.append({"name": name, "dropIn": False, "description": reason, "instead": instead})
    output.rows(columns("name", "dropIn", "description", "instead"), rows)


@kafka_tools.command("install")
@click.argument("directory", metavar="DIR", type=_DIRECTORY)
@click.option("--force", is_flag=True, help="Also replace files that are not launchers of barnabas.")
@click.pass_context
def install(ctx: click.Context, /, directory: Path, force: bool) -> None:
    """Write launchers for all drop-ins to DIR, as kafka-topics and kafka-topics.sh and so on.

    DIR is created if it does not exist. Existing launchers are replaced. If another file has one of the names, nothing is
    written, unless --force is given. The launchers run the Python that runs this command, also from a virtual environment.

    \b
    Examples:
      barnabas kafka-tools install ~/kafka/bin
      barnabas kafka-tools install /usr/local/bin --force
    """
    directory = directory.absolute()
    launchers = {directory / f"{name}{end}": _launcher(name) for name in _drop_ins(ctx) for end in _ENDINGS}
    foreign = [path for path in launchers if os.path.lexists(path) and not _is_launcher(path)]
    if folders := [path for path in foreign if path.is_dir() and not path.is_symlink()]:
        raise Failure(
            "this is a directory, and a launcher needs its name. Nothing was written", resource=str(folders[0])
        )
    if foreign and not force:
        names = ", ".join(path.name for path in foreign[:_MAX_SHOWN])
        more = f" and {len(foreign) - _MAX_SHOWN} more" if len(foreign) > _MAX_SHOWN else ""
        raise Failure(
            f"files with these names exist and are not launchers of barnabas: {names}{more}. Nothing was written",
            resource=str(directory),
            advice="choose another directory, or replace them with --force",
        )
    with failures(str(directory)):
        directory.mkdir(parents=True, exist_ok=True)
        _check_import(directory)
        for path, text in launchers.items():
            _write(path, text)
    note(f"wrote {len(launchers)} launchers to {directory}")
    _advise(directory)


@kafka_tools.command("uninstall")
@click.argument("directory", metavar="DIR", type=_DIRECTORY)
def uninstall(directory: Path) -> None:
    """Remove the launchers that `install` wrote to DIR. Other files stay, and so does DIR.

    \b
    Example:
      barnabas kafka-tools uninstall ~/kafka/bin
    """
    with failures(str(directory)):
        found = [path for path in sorted(directory.iterdir()) if _is_launcher(path)]
        for path in found:
            path.unlink()
    note(f"removed {len(found)} launchers from {directory}")


def _root(ctx: click.Context) -> click.Group:
    barnabas = ctx.find_root().command
    assert isinstance(barnabas, click.Group)
    return barnabas


def _drop_ins(ctx: click.Context) -> list[str]:
    """Return the names of the commands that replace a script."""
    names = _root(ctx).list_commands(ctx)
    return [name for name in names if name.startswith("kafka-") and name != kafka_tools.name]


def _launcher(name: str) -> str:
    # -P: a file or folder called barnabas in the working directory must not be imported instead.
    return f'#!/bin/sh\n{_MARKER}\nexec {shlex.quote(sys.executable)} -P -m barnabas {name} "$@"\n'


def _is_launcher(path: Path) -> bool:
    if path.is_symlink() or not path.is_file():
        return False
    try:
        with path.open("rb") as file:
            return _MARKER.encode() in file.read(len(_MARKER) + 64)
    except PermissionError:
        return False


def _check_import(directory: Path) -> None:
    """Raise Failure if the launchers would not find barnabas, because it was found through the working directory."""
    done = subprocess.run(
        [sys.executable, "-P", "-c", "import barnabas"], cwd=directory, capture_output=True, check=False
    )
    if done.returncode:
        raise Failure(
            "barnabas is not installed for this Python, so launchers would not find it",
            resource=sys.executable,
            advice="install it, for example with: pip install .",
        )


def _write(path: Path, text: str) -> None:
    """Replace the file in one step, so that a script that starts meanwhile finds the old or the new one."""
    new = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        new.write_text(text)
        new.chmod(_MODE)
        new.replace(path)
    finally:
        new.unlink(missing_ok=True)


def _advise(directory: Path) -> None:
    if directory not in (Path(each).absolute() for each in _path()):
        note(f"Try: export PATH={shlex.quote(str(directory))}:$PATH")
        return
    found = shutil.which("kafka-topics.sh")
    if found is not None and Path(found).absolute().parent != directory:
        note(f"warning: {found} comes first on PATH; put {directory} before it")


def _path() -> Iterator[str]:
    return (each for each in os.environ.get("PATH", "").split(os.pathsep) if each)
