"""Writes the classes of barnabas.wire from schema/*.txt: `python tools/generate.py [--check]`.

It writes one module per API (request and response), one per group of records, and wire/apis.py, which lists them all
without importing any. With --check nothing is written, and the exit code is 1 if the files are out of date.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "src"))

from barnabas.wire.schema import FieldSchema, MessageSchema, StructSchema, Versions, parse  # noqa: E402

WIRE = ROOT / "src" / "barnabas" / "wire"
HEAD = '"""{doc}\n\nGenerated from schema/{source} by `make generate`; do not edit.\n"""\n\n'
PYTHON_TYPES = {
    "bool": "bool",
    "string": "str",
    "bytes": "bytes",
    "records": "bytes",
    "uuid": "Uuid",
    "float64": "float",
}


def snake(name: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


def api_name(message: MessageSchema) -> str:
    return message.name.removesuffix("Request").removesuffix("Response")


def module_of(message: MessageSchema) -> str:
    if message.kind == "record":
        return f"records.{message.group}"
    if message.kind == "header":
        return "messages.header"
    return "messages." + snake(api_name(message))


def python_type(field: FieldSchema, owner: str) -> str:
    element = PYTHON_TYPES.get(field.type) or (f"{owner}.{field.type}" if field.is_struct else "int")
    if field.is_array:
        element = f"list[{element}]"
    nullable = field.nullable.last >= field.nullable.first or field.default is None
    return f"{element} | None" if nullable else element


def parameter(field: FieldSchema, owner: str) -> tuple[str, str]:
    """Return the parameter of __init__, and the statement that stores it."""
    name, annotation = field.name, python_type(field, owner)
    if field.is_array and field.default is not None:
        return f"{name}: {annotation} = EMPTY", f"self.{name} = [] if {name} is EMPTY else {name}"
    if field.default is ...:
        if annotation.endswith("| None"):  # None would be ambiguous: a nullable struct is null only if passed
            kind = f"{owner}.{field.type}"
            return f"{name}: {annotation} | EllipsisType = ...", f"self.{name} = {kind}() if {name} is ... else {name}"
        return (
            f"{name}: {annotation} | None = None",
            f"self.{name} = {owner}.{field.type}() if {name} is None else {name}",
        )
    if field.type == "uuid" and field.default is not None:
        default = "ZERO_UUID"
    elif field.type in ("bytes", "records") and field.default is not None:
        default = 'b""'
    else:
        default = repr(field.default).replace("'", '"')
    return f"{name}: {annotation} = {default}", f"self.{name} = {name}"


def class_body(struct: StructSchema, owner: str, indent: str) -> list[str]:
    names = ", ".join(f'"{f.name}"' for f in struct.fields)
    lines = [f"__slots__ = ({names}{',' if len(struct.fields) == 1 else ''})", ""]
    lines += [f"{f.name}: {python_type(f, owner)}" for f in struct.fields]
    parameters = [parameter(f, owner) for f in struct.fields]
    if not parameters:
        lines += ["def __init__(self) -> None:", "    self.unknown_tagged_fields = None"]
    else:
        lines += ["", "def __init__(", "    self,", "    *,"]
        lines += [f"    {text}," for text, _ in parameters]
        lines += [") -> None:"]
        lines += [f"    {store}" for _, store in parameters]
        lines += ["    self.unknown_tagged_fields = None"]
    return [indent + line if line else "" for line in lines]


def describe(message: MessageSchema) -> str:
    what = {
        "request": f"{api_name(message)} request, API key {message.key}",
        "response": f"{api_name(message)} response, API key {message.key}",
        "record": f"Record type {message.key}" if message.key is not None else "Record",
    }.get(message.kind, message.kind.capitalize())
    return f"{what}, versions {message.versions}, flexible {message.flexible}."


def message_class(message: MessageSchema, source: list[str]) -> str:
    lines = [f"class {message.name}(Message):", f'    """{describe(message)}"""', ""]
    lines += class_body(message.root, message.name, "    ")
    lines += ["", '    SCHEMA = """', *source, '"""', ""]
    for struct in message.structs.values():
        lines += [f"    class {struct.name}(Struct):"]
        lines += class_body(struct, message.name, "        ")
        lines += [""]
    return "\n".join(lines).rstrip() + "\n"


def module(messages: list[MessageSchema], sources: dict[str, list[str]], source_file: str, doc: str) -> str:
    classes = [message_class(m, sources[m.name]) for m in messages]
    text = "\n\n".join(classes)
    imports = []
    if "EllipsisType" in text:
        imports.append("from types import EllipsisType\n")
    names = [n for n, used in (("EMPTY", "EMPTY" in text), ("Message", True), ("Struct", "(Struct)" in text)) if used]
    imports.append(f"from barnabas.wire.message import {', '.join(names)}")
    uuids = [n for n in ("ZERO_UUID", "Uuid") if re.search(rf"\b{n}\b", text)]
    if uuids:
        imports.append(f"from barnabas.wire.primitives import {', '.join(uuids)}")
    names_all = ", ".join(f'"{m.name}"' for m in messages)
    return (
        HEAD.format(doc=doc, source=source_file)
        + "from __future__ import annotations\n\n"
        + "\n".join(imports)
        + f"\n\n__all__ = [{names_all}]\n\n\n"
        + text
    )


def apis_module(messages: list[MessageSchema], records: list[MessageSchema]) -> str:
    requests = [m for m in messages if m.kind == "request"]
    lines = [
        HEAD.format(
            doc="Every API with its key and versions, and where each message and record is defined.", source="*.txt"
        )
    ]
    lines += ["from __future__ import annotations", "", "from enum import IntEnum", "from typing import Final", ""]
    lines += ["from barnabas.wire.api import Api", "from barnabas.wire.schema import Versions", "", ""]
    lines += ["class ApiKey(IntEnum):", '    """The number of each API."""', ""]
    lines += [f"    {snake(api_name(m)).upper()} = {m.key}" for m in requests]
    lines += ["", "", "APIS: Final[dict[int, Api]] = {"]
    for m in requests:
        lines.append(
            f'    {m.key}: Api("{api_name(m)}", {pair(m.versions)}, {pair(m.kafka)}, '
            f"{m.flexible.first if m.flexible.last >= 0 else None}, {m.listeners!r}, {m.unstable}),".replace("'", '"')
        )
    lines += ["}", "", "MODULES: Final[dict[str, str]] = {"]
    lines += [f'    "{m.name}": "{module_of(m)}",' for m in [*messages, *records]]
    lines += ["}", "", "RECORD_NAMES: Final[dict[str, dict[int, str]]] = {"]
    for group in dict.fromkeys(m.group for m in records):
        rows = ", ".join(
            f'{m.key}: "{m.name}"'
            for m in records
            if m.group == group and m.key is not None and not m.name.endswith("Value")
        )
        if rows:
            lines.append(f'    "{group}": {{{rows}}},')
    lines += ["}", ""]
    return "\n".join(lines)


def pair(versions: Versions) -> str:
    return f"Versions({versions.first}, {versions.last})"


def sources_by_name(text: str) -> dict[str, list[str]]:
    sources: dict[str, list[str]] = {}
    for block in text.split("\n\n"):
        lines = [line for line in block.splitlines() if not line.startswith("#")]
        if lines:
            sources[lines[0].split()[0]] = lines
    return sources


def generated() -> dict[Path, str]:
    files: dict[Path, str] = {}
    parsed: dict[str, list[MessageSchema]] = {}
    for source_file in ("messages.txt", "records.txt"):
        text = (ROOT / "schema" / source_file).read_text()
        sources = sources_by_name(text)
        parsed[source_file] = parse(text)
        modules: dict[str, list[MessageSchema]] = {}
        for message in parsed[source_file]:
            modules.setdefault(module_of(message), []).append(message)
        for name, members in modules.items():
            folder, _, stem = name.partition(".")
            doc = (
                " and ".join(m.name for m in members) + "." if folder == "messages" else f"Records of the group {stem}."
            )
            files[WIRE / folder / f"{stem}.py"] = module(members, sources, source_file, doc)
    files[WIRE / "apis.py"] = apis_module(parsed["messages.txt"], parsed["records.txt"])
    for folder, what in (
        ("messages", "Requests, responses and headers, one module per API"),
        ("records", "Records, one module per group"),
    ):
        files[WIRE / folder / "__init__.py"] = f'"""{what}; generated by `make generate`."""\n'
    return files


def main() -> int:
    files = generated()
    stale = [p for folder in ("messages", "records") for p in (WIRE / folder).glob("*.py") if p not in files]
    different = [p for p, text in files.items() if not p.exists() or p.read_text() != text]
    if "--check" in sys.argv:
        for path in [*stale, *different]:
            print(f"{path.relative_to(ROOT)} is out of date; run `make generate`", file=sys.stderr)
        return 1 if stale or different else 0
    for path in stale:
        path.unlink()
    for path in different:
        path.write_text(files[path])
    print(f"{len(files)} files, {len(different)} written, {len(stale)} removed")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
