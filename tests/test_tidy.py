"""What no linter checks: one definition of names and rules, one form of names, no measured time in tests, nothing unused.

Each test reads the sources and lists the places that break its rule.
"""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from barnabas.config.internal_topics import CLUSTER_METADATA_TOPIC, INTERNAL_TOPICS

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src"
FOLDERS = ("src", "tests", "bench", "tools")
GENERATED = ("src/barnabas/wire/messages/", "src/barnabas/wire/records/", "src/barnabas/wire/apis.py")


@cache
def files(*folders: str) -> dict[str, str]:
    """The text of every module, by its path in the repository."""
    paths = sorted(path for folder in folders for path in (ROOT / folder).rglob("*.py"))
    return {path.relative_to(ROOT).as_posix(): path.read_text() for path in paths}


@cache
def written() -> dict[str, str]:
    """The modules of barnabas that people write."""
    return {name: text for name, text in files("src").items() if not name.startswith(GENERATED)}


def lines_with(texts: dict[str, str], pattern: str, *, but: tuple[str, ...] = ()) -> list[str]:
    """`path:line: text` of every match, without the files that are named."""
    found = []
    for name, text in texts.items():
        if name not in but:
            for match in re.finditer(pattern, text, re.MULTILINE):
                start = text.rfind("\n", 0, match.start()) + 1
                line = text[start : text.find("\n", start)]
                found.append(f"{name}:{text.count(chr(10), 0, start) + 1}: {line.strip()}")
    return found


# --- one definition


def test_names_of_internal_topics_are_written_once() -> None:
    literal = re.compile(rf"({'|'.join(sorted({*INTERNAL_TOPICS, CLUSTER_METADATA_TOPIC}))})(-\d+)?")
    found = [
        f"{path}:{node.lineno}: {node.value}"
        for path, text in written().items()
        if path != "src/barnabas/config/internal_topics.py" and literal.search(text)
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and literal.fullmatch(node.value)
    ]
    assert found == [], "import the name from barnabas.config.internal_topics"


def test_the_rule_for_topic_names_is_written_once() -> None:
    rule = r"\[a-zA-Z0-9\._-\]|\[a-zA-Z0-9\._\\-\]|\b249\b"
    found = lines_with(written(), rule, but=("src/barnabas/config/topic_names.py",))
    assert found == [], "call is_valid or check of barnabas.config.topic_names, or use its MAX_LENGTH"


# --- one form of names


def test_log_dirs_are_accessed_in_one_place() -> None:
    """So that a simulation can replace the disk. Readers of other nodes' files are no part of a running node."""
    own = ("src/barnabas/storage/", "src/barnabas/raft/", "src/barnabas/replicas/")
    texts = {name: text for name, text in written().items() if name.startswith(own)}
    calls = r"(open|close|p?readv?|p?writev?|fsync|rename|replace|unlink|mkdir|scandir|stat|statvfs|ftruncate)\("
    path_calls = r"(?<!file)\.(exists|is_dir|is_file|iterdir|rmdir|read_bytes|write_bytes|read_text|write_text)\("
    offline = ("src/barnabas/storage/offline.py", "src/barnabas/storage/log_dirs.py", "src/barnabas/storage/files.py")
    found = lines_with(texts, rf"\bos\.{calls}|shutil\.|{path_calls}", but=offline)
    of_files = ("self.file.exists()", "self._file(TXN_INDEX_SUFFIX).exists()")
    assert not [line for line in found if not any(each in line for each in of_files)]


CONSTANT = re.compile(r"^_?[A-Z][A-Z0-9_]*(?=(?:, _?[A-Z][A-Z0-9_]*)*(?:: [^=\n]+)? = )", re.MULTILINE)


def constants() -> Iterator[tuple[str, str]]:
    for path, text in written().items():
        for match in CONSTANT.finditer(text):
            yield f"{path}:{text.count(chr(10), 0, match.start()) + 1}", match[0].lstrip("_")


def test_constants_for_limits_begin_with_max_or_min() -> None:
    found = []
    for place, name in constants():
        words = name.replace("MIN_ISR", "").split("_")  # the one limit that Kafka names in another way
        is_limit = {"MAX", "MIN", "MOST", "LEAST"} & set(words)
        if is_limit and words[0] not in ("MAX", "MIN") and words[:2] not in (["DEFAULT", "MAX"], ["DEFAULT", "MIN"]):
            found.append(f"{place}: {name}")
    assert found == [], "write MAX_ or MIN_ first: MAX_WAITING_BYTES, MIN_ITERATIONS, DEFAULT_MAX_LAG_MS"


def test_constants_for_versions_say_what_the_first_or_last_one_has() -> None:
    found = [
        f"{place}: {name}"
        for place, name in constants()
        if name.endswith("_SINCE") or name == "SINCE" or re.search(r"^(FIRST|LAST)_(\w+_)?VERSION(_|$)", name)
    ]
    assert found == [], "write FIRST_WITH_, FIRST_WITHOUT_, LAST_WITH_: FIRST_WITH_TOPIC_IDS, LAST_FETCH_WITH_NAMES"


def test_loggers_have_one_name() -> None:
    found = lines_with(written(), r"^(?!_log = )\w+(: [\w.]+)? = (logging\.)?getLogger\(__name__\)")
    assert found == [], "write _log = logging.getLogger(__name__)"


# --- nothing unused

DECLARED = re.compile(r"command|group|fixture|hookimpl|register")  # decorators that make a function known elsewhere
IMPORT = re.compile(r"^\s*from (barnabas[\w.]*) import (\([^)]*\)|.*)$", re.MULTILINE)
IMPORT_MODULE = re.compile(r"^\s*import (barnabas[\w.]*)(?: as (\w+))?", re.MULTILINE)
ATTRIBUTE = re.compile(r"\b([a-zA-Z_]\w*)\.(\w+)")
WHOLE_PATH = re.compile(r"\b(barnabas(?:\.\w+)+)[.:](\w+)")


def module_of(path: str) -> str:
    return path.removeprefix("src/").removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def uses(path: str, text: str, modules: set[str]) -> Iterator[tuple[str, str]]:
    """(module, name) for every name that the text takes from a module of barnabas. The module "" stands for any."""
    known: dict[str, str] = {}
    own = module_of(path)
    for module, names in IMPORT.findall(text):
        for name, alias in re.findall(r"(\w+)(?: as (\w+))?", names):
            if module != own:
                yield module, name
            known[alias or name] = f"{module}.{name}"
    known.update({alias or module: module for module, alias in IMPORT_MODULE.findall(text)})
    for owner, name in ATTRIBUTE.findall(text):
        if known.get(owner) in modules:
            yield known[owner], name
        elif name.isupper():
            yield "", name  # of modules in a loop
    yield from WHOLE_PATH.findall(text)


def definitions(tree: ast.Module) -> Iterator[tuple[str, int]]:
    """The public names of a module with their lines."""
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            yield node.name, node.lineno
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            if not any(DECLARED.search(ast.unparse(each)) for each in node.decorator_list):
                yield node.name, node.lineno
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for target in targets:
                yield from ((each.id, node.lineno) for each in ast.walk(target) if isinstance(each, ast.Name))


def test_every_public_name_is_used() -> None:
    modules = {module_of(path) for path in files("src")}
    pages = {str(path): path.read_text() for path in (*(ROOT / "docs").rglob("*.md"), ROOT / "README.md")}
    pages["pyproject.toml"] = (ROOT / "pyproject.toml").read_text()
    used = {use for path, text in {**files(*FOLDERS), **pages}.items() for use in uses(path, text, modules)}
    found = []
    for path, text in written().items():
        is_package, is_handler = path.endswith("__init__.py"), path.startswith("src/barnabas/broker/api/")
        if is_package:  # its `__all__` is for users
            continue
        tree, module = ast.parse(text), module_of(path)
        here = {each.id for each in ast.walk(tree) if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Load)}
        for name, line in definitions(tree):
            if name.startswith(("_", "pytest_")) or name in here or (is_handler and name == "handle"):
                continue
            if (module, name) not in used and ("", name) not in used:
                found.append(f"{path}:{line}: {name}")
    assert found == [], "remove it, or use it"


# --- tests measure no time

CLOCKS = {
    "monotonic",
    "perf_counter",
    "process_time",
    "thread_time",
    "time",
    "monotonic_ns",
    "perf_counter_ns",
    "time_ns",
}
A_CLOCK = re.compile(rf"\.({'|'.join(CLOCKS)})\(\)")


def reads_clock(node: ast.AST) -> bool:
    return any(
        isinstance(each, ast.Call)
        and isinstance(each.func, ast.Attribute)
        and each.func.attr in CLOCKS
        and not each.args
        for each in ast.walk(node)
    )


def measures(node: ast.AST) -> bool:
    """Whether the time that something took is computed: a difference of which one side is now."""
    return any(
        isinstance(each, ast.BinOp)
        and isinstance(each.op, ast.Sub)
        and (reads_clock(each.left) or reads_clock(each.right))
        for each in ast.walk(node)
    )


def measured_names(tree: ast.Module) -> set[str]:
    """Variables that hold a measured time, and functions that return one."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and measures(node.value):
            found |= {each.id for target in node.targets for each in ast.walk(target) if isinstance(each, ast.Name)}
        elif isinstance(node, ast.FunctionDef) and any(
            isinstance(each, ast.Return) and each.value is not None and measures(each.value) for each in ast.walk(node)
        ):
            found.add(node.name)
    return found


def timed_assertions(text: str) -> list[int]:
    tree = ast.parse(text)
    names = measured_names(tree)
    return [
        node.lineno
        for node in ast.walk(tree)
        if isinstance(node, ast.Assert)
        and (measures(node.test) or names & {each.id for each in ast.walk(node.test) if isinstance(each, ast.Name)})
    ]


def test_no_test_asserts_how_long_something_takes() -> None:
    found = [
        f"{path}:{line}"
        for path, text in files("tests").items()
        if A_CLOCK.search(text)
        for line in timed_assertions(text)
    ]
    assert found == [], "count the work instead (tests/instructions.py), or compare moments: before <= found <= after"


@pytest.mark.parametrize(
    ("body", "is_found"),
    [
        ("assert time.monotonic() - began < 5", True),
        ("took = time.perf_counter() - began\nassert took < 1", True),
        ("assert abs(stamp - time.time() * 1000) < 60_000", True),
        ("def seconds():\n    return time.perf_counter() - began\nassert min(seconds() for _ in range(3)) < 1", True),
        ("assert time.monotonic() < deadline, 'it hangs'", False),
        ("assert before_ms <= stamp <= time.time() * 1000", False),
        ("left = deadline - time.monotonic()", False),
    ],
)
def test_what_counts_as_such_an_assertion(body: str, is_found: bool) -> None:
    assert bool(timed_assertions(body)) is is_found


# --- sizes and exceptions


def test_modules_are_short_enough_to_read() -> None:
    data = ("src/barnabas/config/broker.py",)
    sizes = {name: text.count("\n") for name, text in files(*FOLDERS).items() if not name.startswith(GENERATED)}
    found = [f"{name}: {size} lines" for name, size in sizes.items() if size > 850 and name not in data]
    assert found == [], "split it: a module has at most 850 lines"


def test_exceptions_from_checks_name_the_check() -> None:
    hidden = r"# no" r"qa(?!: [A-Z]+[0-9]+)|# type: " r"ignore(?!\[[a-z])"
    found = lines_with(files(*FOLDERS), hidden)
    assert found == [], "write the code of the check behind it"


def test_contributing_lists_all_dependencies() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    names = [re.split(r"[^\w-]", each)[0] for each in (*project["dependencies"], *extras["lake"])]
    listed = set(re.findall(r"[\w-]+", (ROOT / "CONTRIBUTING.md").read_text()))
    assert sorted({*names, *extras} - listed) == []
