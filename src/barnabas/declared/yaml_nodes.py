"""Read YAML and keep the place of each value, so that a problem can be reported with its line.

Its one rule: a reader continues after a problem, and reports all problems at the end. Scalars stay text as written; the caller
decides whether one is a number or a name. It knows nothing of clusters.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable
from typing import Any, NamedTuple, TypeVar

import yaml

from barnabas.similar_names import did_you_mean

T = TypeVar("T")
Node = yaml.nodes.Node

_NULL = "tag:yaml.org,2002:null"
_BOOL = "tag:yaml.org,2002:bool"
_INT = "tag:yaml.org,2002:int"
_MERGE = "tag:yaml.org,2002:merge"
_TRUE = frozenset(("true", "yes", "on"))
_MAX_DEPTH = 50
_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class FilePosition(NamedTuple):
    """A place in a file. Lines and columns are counted from 1."""

    file: str
    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


NOWHERE = FilePosition("", 0, 0)
"""The place of a value that was not read from a file."""


class Problem(NamedTuple):
    """A problem in a file, and its place."""

    place: FilePosition
    message: str

    def __str__(self) -> str:
        return f"{self.place}: {self.message}"


class DocumentError(ValueError):
    """A file with errors. `problems` has all of them, in the order of the file."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(sorted(problems))
        super().__init__("\n".join(map(str, self.problems)))


class Reader:
    """Reads values from the nodes of one file. A wrong value is read as None, and `finish` raises all problems."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.problems: list[Problem] = []

    def parse(self, text: str) -> Node | None:
        """Return the root of the document, or None if it is empty. Raises `DocumentError` if it is not YAML."""
        try:
            _check_depth(self.file, text)
            root: Node | None = yaml.compose(text, Loader=_Loader)
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            words = ", ".join(part for part in (error.problem, error.context) if part)
            place = (
                FilePosition(self.file, 1, 1)
                if mark is None
                else FilePosition(self.file, mark.line + 1, mark.column + 1)
            )
            raise DocumentError([Problem(place, f"this is not YAML: {words}")]) from None
        except yaml.YAMLError as error:
            raise DocumentError([Problem(FilePosition(self.file, 1, 1), f"this is not YAML: {error}")]) from None
        return root

    def finish(self) -> None:
        if self.problems:
            raise DocumentError(self.problems)

    def place(self, node: Node) -> FilePosition:
        return FilePosition(self.file, node.start_mark.line + 1, node.start_mark.column + 1)

    def wrong(self, node: Node, message: str) -> None:
        self.problems.append(Problem(self.place(node), message))

    # --- mappings and lists

    def entries(self, node: Node, what: str, _within: tuple[Node, ...] = ()) -> list[tuple[str, Node, Node]]:
        """Return each key of a mapping as written, the key's node, and the value's node."""
        if node in _within:
            self.wrong(node, f"{what}: this mapping is merged into itself")
            return []
        if not isinstance(node, yaml.MappingNode):
            self.wrong(node, f"{what}: expected a mapping, found {kind(node)}")
            return []
        found: dict[str, tuple[str, Node, Node]] = {}
        merged: dict[str, tuple[str, Node, Node]] = {}
        for key, value in node.value:
            if key.tag == _MERGE:
                for each in value.value if isinstance(value, yaml.SequenceNode) else [value]:
                    merged = {**_by_name(self.entries(each, what, (*_within, node))), **merged}
            elif not isinstance(key, yaml.ScalarNode):
                self.wrong(key, f"{what}: expected a name, found {kind(key)}")
            elif key.value in found:
                first = self.place(found[key.value][1])
                self.wrong(key, f"{what}: {key.value} is declared twice; the first is in line {first.line}")
            else:
                found[key.value] = (key.value, key, value)
        return list({**merged, **found}.values())

    def fields(self, node: Node, what: str, known: Collection[str], required: Collection[str] = ()) -> dict[str, Node]:
        """Return the values of a mapping by key. Keys that are not `known` are problems."""
        found: dict[str, Node] = {}
        for name, key, value in self.entries(node, what):
            if name in known:
                found[name] = value
                continue
            self.wrong(key, f"{what}: unknown field {name}: expected {', '.join(known)}{did_you_mean(name, known)}")
        if isinstance(node, yaml.MappingNode):
            for name in required:
                if name not in found:
                    self.wrong(node, f"{what}: {name} is missing")
        return found

    def items(self, node: Node, what: str) -> list[Node]:
        if not isinstance(node, yaml.SequenceNode):
            self.wrong(node, f"{what}: expected a list, found {kind(node)}")
            return []
        return list(node.value)

    # --- scalars

    def text(self, node: Node, what: str, expected: str = "a text") -> str | None:
        """Return a scalar as written."""
        if isinstance(node, yaml.ScalarNode) and not is_null(node):
            return str(node.value)
        self.wrong(node, f"{what}: expected {expected}, found {kind(node)}")
        return None

    def integer(self, node: Node, what: str, least: int) -> int | None:
        if isinstance(node, yaml.ScalarNode) and re.fullmatch(r"[-+]?\d[\d_]*", node.value):
            number = int(node.value)
            if number >= least:
                return number
        shown = node.value if isinstance(node, yaml.ScalarNode) and not is_null(node) else kind(node)
        self.wrong(node, f"{what}: expected a whole number of at least {least}, found {shown}")
        return None

    def truth(self, node: Node, what: str) -> bool | None:
        if isinstance(node, yaml.ScalarNode) and node.tag == _BOOL:
            return node.value.lower() in _TRUE
        self.wrong(node, f"{what}: expected true or false, found {kind(node)}")
        return None

    def parsed(self, node: Node, what: str, parse: Callable[[str], T], expected: str = "a text") -> T | None:
        """Return the text of a scalar parsed by a function, whose ValueError is a problem."""
        text = self.text(node, what, expected)
        if text is None:
            return None
        try:
            return parse(text)
        except ValueError as error:
            self.wrong(node, f"{what}: {error}")
            return None

    def texts(self, node: Node, what: str) -> list[tuple[str, Node]]:
        """Return one text, or the texts of a list, each with its node."""
        nodes = node.value if isinstance(node, yaml.SequenceNode) else [node]
        found = [(self.text(each, what, "a text or a list of them"), each) for each in nodes]
        return [(text, each) for text, each in found if text is not None]

    def setting(self, node: Node, what: str) -> str | None:
        """Return the value of a config as brokers expect it: a text, with commas between the items of a list. Null is None."""
        if is_null(node):
            return None
        if isinstance(node, yaml.SequenceNode):
            return ",".join(text for text, _ in self.texts(node, what))
        text = self.text(node, what, "a value, or a list of them")
        if text is None or node.tag == _BOOL:  # a quoted text has another tag
            return None if text is None else "true" if text.lower() in _TRUE else "false"
        return text.replace("_", "") if node.tag == _INT and re.fullmatch(r"[-+]?[\d_]+", text) else text


def _check_depth(file: str, text: str) -> None:
    """Raise `DocumentError` if the text is nested too deep: composing nodes is recursive, and would overflow the stack."""
    depth = 0
    for event in yaml.parse(text, Loader=_Loader):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > _MAX_DEPTH:
                mark = event.start_mark
                place = FilePosition(file, 1, 1) if mark is None else FilePosition(file, mark.line + 1, mark.column + 1)
                raise DocumentError([Problem(place, f"lists and mappings are nested more than {_MAX_DEPTH} deep")])
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1


def is_null(node: Node) -> bool:
    return isinstance(node, yaml.ScalarNode) and node.tag == _NULL


def kind(node: Node) -> str:
    """Describe a node for an error message."""
    if isinstance(node, yaml.MappingNode):
        return "a mapping"
    if isinstance(node, yaml.SequenceNode):
        return "a list"
    return "nothing" if is_null(node) else f"{node.value!r}"


def _by_name(entries: Iterable[tuple[str, Node, Node]]) -> dict[str, tuple[str, Node, Node]]:
    return {entry[0]: entry for entry in entries}
