"""Load a declared cluster from files and folders.

Its one rule: no file is left out silently, because `--delete` deletes what is not declared. A folder stands for all its
`*.yaml`, `*.yml` and `*.json` files, also those in subfolders, in the order of their paths. Hidden files and folders, whose
names start with a dot, are not read.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO

from barnabas.declared.document import Document, load_document, read_document
from barnabas.declared.merge import merge
from barnabas.declared.yaml_nodes import DocumentError, FilePosition, Problem

STDIN = "-"
SUFFIXES = (".yaml", ".yml", ".json")
MAX_FILES = 10_000


def load_documents(paths: Iterable[str], stdin: IO[str]) -> Document:
    """Load these files and folders as one document; `-` is `stdin`. A file that is named twice is read once.

    Raises `DocumentError` with the problems of all files, and `OSError`.
    """
    names = [name for path in paths for name in ([STDIN] if path == STDIN else _files(Path(path)))]
    once: dict[str, str] = {}
    for name in names:
        once.setdefault(name if name == STDIN else os.path.realpath(name), name)
    found: list[Document] = []
    problems: list[Problem] = []
    for name in once.values():
        try:
            is_stdin = name == STDIN
            found.append(read_document(stdin.read(), "standard input") if is_stdin else load_document(Path(name)))
        except DocumentError as error:
            problems += error.problems
    if problems:
        raise DocumentError(problems)
    return merge(found)


def _files(path: Path) -> list[str]:
    """Return the file itself, or the files of a folder."""
    if not path.is_dir():
        return [str(path)]
    found: list[str] = []
    for name in _walk(path):
        found.append(name)
        if len(found) > MAX_FILES:
            raise DocumentError(
                [Problem(FilePosition(str(path), 1, 1), f"this folder has more than {MAX_FILES} files")]
            )
    if not found:
        suffixes = ", ".join(f"*{suffix}" for suffix in SUFFIXES)
        raise DocumentError([Problem(FilePosition(str(path), 1, 1), f"this folder has no files {suffixes}")])
    return sorted(found)


def _walk(top: Path) -> Iterator[str]:
    """Yield the files of a folder. Links to folders are followed, each folder once."""
    seen: set[str] = set()
    for folder, folders, files in os.walk(top, onerror=_raise, followlinks=True):
        real = os.path.realpath(folder)
        folders[:] = sorted(name for name in folders if not name.startswith(".") and real not in seen)
        if real in seen:
            continue
        seen.add(real)
        yield from (
            str(Path(folder, name)) for name in files if not name.startswith(".") and name.lower().endswith(SUFFIXES)
        )


def _raise(error: OSError) -> None:
    raise error
