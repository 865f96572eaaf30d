"""Writes the reference pages, docs/reference/*.md, from docstrings and the command line's help: `[--check]`.

Nothing is written by hand here: to change a page, change the docstring.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterable, Iterator
from enum import Enum
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "src"))

import click  # noqa: E402

from barnabas.cli.main import COMMANDS, main  # noqa: E402
from barnabas.lake.declared_column import Column  # noqa: E402

FOLDER = ROOT / "docs" / "reference"
WIDTH = 100

CLIENT = {
    "Cluster": "barnabas.client.cluster:Cluster",
    "Admin": "barnabas.client.admin.admin:Admin",
    "Producer": "barnabas.client.producer:Producer",
    "Consumer": "barnabas.client.consumer:Consumer",
    "sync.Producer": "barnabas.client.sync.producer:Producer",
}


def pages() -> dict[Path, str]:
    return {FOLDER / "client.md": client_page(), FOLDER / "cli.md": cli_page(), FOLDER / "lake.md": lake_page()}


# --- client


def client_page() -> str:
    lines = [
        "# Reference of the client",
        "",
        "Generated from the docstrings by `make generate`. [The client](../client.md) explains how to use it.",
        "",
    ]
    for name, target in CLIENT.items():
        module_name, _, class_name = target.partition(":")
        found = getattr(import_module(module_name), class_name)
        lines += [f"## {name}", "", _doc(found), ""]
        if name == "Admin":
            for part in import_module(module_name).PARTS:
                lines += [f"### {part.__name__}", "", _doc(import_module(part.__module__)), ""]
                lines += _methods(part)
                lines += _values(import_module(part.__module__))
        else:
            lines += _methods(found)
    return "\n".join(lines).rstrip() + "\n"


def _methods(found: type) -> list[str]:
    lines = []
    for name, method in vars(found).items():
        if name.startswith("_") or not callable(getattr(found, name)):
            continue
        lines += ["```python", _definition(name, method), "```", "", _doc(method), ""]
    return lines


def _definition(name: str, method: Any) -> str:
    function = inspect.unwrap(method.__func__ if isinstance(method, classmethod | staticmethod) else method)
    is_coroutine = inspect.iscoroutinefunction(function)
    signature = inspect.signature(function)
    parts, is_keyword = [], False
    for parameter in list(signature.parameters.values())[1:]:
        if parameter.kind is parameter.KEYWORD_ONLY and not is_keyword:
            is_keyword = True
            parts.append("*")
        parts.append(_parameter(parameter))
    answer = "" if signature.return_annotation is signature.empty else f" -> {signature.return_annotation}"
    prefix = "async " if is_coroutine else ""
    line = f"{prefix}{name}({', '.join(parts)}){answer}"
    if len(line) <= WIDTH:
        return line
    inner = "".join(f"    {part},\n" for part in parts)
    return f"{prefix}{name}(\n{inner}){answer}"


def _parameter(parameter: inspect.Parameter) -> str:
    text = f"{'*' if parameter.kind is parameter.VAR_POSITIONAL else ''}{parameter.name}: {parameter.annotation}"
    if parameter.default is not parameter.empty:
        default = parameter.default
        text += f" = {default.__name__ if callable(default) else repr(default)}"
    return text


def _values(module: ModuleType) -> list[str]:
    """Return the classes of the module that have fields: parameters and results of methods."""
    lines = []
    for name, found in vars(module).items():
        if name.startswith("_") or not isinstance(found, type) or found.__module__ != module.__name__:
            continue
        if issubclass(found, Enum):
            shown = ", ".join(f"`{member.name}`" for member in found)
        else:
            fields = getattr(found, "__dataclass_fields__", None) or getattr(found, "_fields", None)
            annotations = inspect.get_annotations(found)
            if not fields:
                continue
            shown = ", ".join(f"`{field}: {annotations.get(field, '')}`" for field in fields)
        lines += [f"**{name}**: {_first_line(found)} {shown}", ""]
    return lines


def _first_line(found: Any) -> str:
    text = inspect.getdoc(found) or ""
    return "" if text.startswith(f"{found.__name__}(") else text.partition("\n\n")[0].replace("\n", " ")


def _doc(found: Any) -> str:
    """Return a docstring as Markdown. Examples and indented text become code blocks."""
    text = inspect.getdoc(found) or ""
    lines, is_example = [], False
    for line in text.splitlines():
        if line.startswith(">>>") and not is_example:
            is_example = True
            lines.append("```python")
        elif is_example and not line.strip():
            is_example = False
            lines.append("```")
        lines.append(line)
    return "\n".join([*lines, "```"] if is_example else lines)


# --- command line


def cli_page() -> str:
    lines = [
        "# Reference of the command line",
        "",
        "The `--help` of every command, generated by `make generate`. [The command line](../cli.md) has the conventions.",
        "",
    ]
    root = click.Context(main, info_name="barnabas", max_content_width=WIDTH, terminal_width=WIDTH)
    for name in COMMANDS:
        command = main.get_command(root, name)
        assert command is not None
        for path, each in _leaves(command, name, root):
            lines += [f"## {path}", "", "```", each, "```", ""]
    return "\n".join(lines).rstrip() + "\n"


def _leaves(command: click.Command, name: str, parent: click.Context) -> Iterator[tuple[str, str]]:
    ctx = click.Context(command, parent=parent, info_name=name, max_content_width=WIDTH, terminal_width=WIDTH)
    yield ctx.command_path.removeprefix("barnabas "), command.get_help(ctx)
    if isinstance(command, click.Group):
        for each in command.list_commands(ctx):
            inner = command.get_command(ctx, each)
            assert inner is not None
            yield from _leaves(inner, each, ctx)


# --- lake


def lake_page() -> str:
    from barnabas.lake.reading.cluster_tables import TABLES as OBSERVED
    from barnabas.lake.sources import SOURCES  # needs the extra `lake`
    from barnabas.lake.tables.all import TABLES

    lines = [
        "# Reference of the lake",
        "",
        "The columns of each data source and table; generated by `make generate`. [The lake](../lake.md) explains its use.",
        "",
        "## Data sources",
        "",
    ]
    for name, place in SOURCES.items():
        module = import_module(place.partition(":")[0])
        lines += [f"### {name}", "", _doc(module), ""]
        if name == "kafka_cluster":
            for table, columns in OBSERVED.items():
                lines += [f"#### `table` = {table}", "", *_columns(columns)]
        else:
            lines += _columns(module.COLUMNS)
    lines += ["## Tables", ""]
    for table in TABLES.values():
        keys = ", ".join(table.keys)
        lines += [f"### {table.path}", "", f"{table.question} One row for each {keys}.", "", *_columns(table.columns)]
    return "\n".join(lines).rstrip() + "\n"


def _columns(columns: Iterable[Column]) -> list[str]:
    rows = [f"| {column.name} | {column.type} | {column.doc} |" for column in columns]
    return ["| column | type | |", "|---|---|---|", *(row.replace("<", "&lt;") for row in rows), ""]


def run() -> int:
    stale = {path: text for path, text in pages().items() if not path.exists() or path.read_text() != text}
    if "--check" in sys.argv:
        for path in stale:
            print(f"{path.relative_to(ROOT)} is out of date; run `make generate`", file=sys.stderr)
        return 1 if stale else 0
    FOLDER.mkdir(exist_ok=True)
    for path, text in stale.items():
        path.write_text(text)
    return 0


if __name__ == "__main__":
    raise SystemExit(run())
