"""A check that the executors of a Spark cluster have all that the lake needs.

Its one rule: the function sent to executors uses only Python's standard library, so that it also runs, and reports, where
barnabas is not installed. It checks the executors that are registered at the moment. Java is not checked: an executor has it.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PACKAGES = ("barnabas", "pyspark", "pyarrow", "numpy", "numba", "pandas")
SAME_VERSION = ("barnabas", "pyspark")
"""Packages that must have the same version on the driver and on executors."""
_MAX_TASKS = 1000


class ExecutorsError(RuntimeError):
    """Executors cannot run the lake. The text has one line for each problem."""


@dataclass(frozen=True, slots=True)
class Executor:
    """The environment of one executor: versions in `packages`, and reasons in `missing` for those it lacks."""

    host: str
    directory: str
    python: str
    python_version: str
    packages: dict[str, str]
    missing: dict[str, str]
    missing_paths: tuple[str, ...]


def check(spark: SparkSession, paths: Iterable[str | Path] = ()) -> list[Executor]:
    """Return what each executor has. Raises ExecutorsError if anything is missing. All must be able to read `paths`."""
    look = looker([str(path) for path in paths], PACKAGES)
    context = spark.sparkContext
    count = min(max(2 * context.defaultParallelism, 2), _MAX_TASKS)
    try:
        told = context.parallelize(range(count), count).mapPartitions(look).collect()
    except Exception as error:
        reason = _why_no_python(str(error))
        if reason is None:
            raise
        raise ExecutorsError(reason) from None
    found = {(each["host"], each["directory"]): Executor(**each) for each in told}
    executors = [found[key] for key in sorted(found)]
    problems = [line for executor in executors for line in complaints(executor, versions_here())]
    if problems:
        raise ExecutorsError("\n".join(dict.fromkeys(problems)))
    return executors


def looker(paths: list[str], packages: Iterable[str]) -> Callable[[Iterable[Any]], Iterator[dict[str, Any]]]:
    """Return the function that runs in an executor. It is a closure, so that Spark sends its code and not a module name."""
    names = list(packages)

    def look(_: Iterable[Any]) -> Iterator[dict[str, Any]]:
        import importlib
        import importlib.metadata
        import os
        import platform
        import socket
        import sys

        versions, missing = {}, {}
        for name in names:
            try:
                module = importlib.import_module(name)
                versions[name] = str(getattr(module, "__version__", ""))
            except Exception as error:  # a broken installation may raise anything
                missing[name] = f"{type(error).__name__}: {error}"
        yield {
            "host": socket.gethostname(),
            "directory": os.getcwd(),  # noqa: PTH109
            "python": sys.executable,
            "python_version": platform.python_version(),
            "packages": versions,
            "missing": missing,
            "missing_paths": tuple(path for path in paths if not os.access(path, os.R_OK)),
        }

    return look


def versions_here() -> dict[str, str]:
    """Return the driver's versions of `SAME_VERSION`."""
    from importlib import import_module

    return {name: str(import_module(name).__version__) for name in SAME_VERSION}


def complaints(executor: Executor, here: dict[str, str]) -> Iterator[str]:
    """Yield a line for each problem, with its remedy.

    >>> had = Executor("w1", "/work", "/usr/bin/python3", "3.11.2", {"barnabas": "1.0"}, {}, ("/data",))
    >>> print(*complaints(had, {"barnabas": "1.0"}))
    w1: /data does not exist or cannot be read; mount it at the same path on the executor
    """
    where = f"{executor.host}: {executor.python} (Python {executor.python_version})"
    advice = f"install barnabas[lake]=={here['barnabas']} there, or set PYSPARK_PYTHON to another Python"
    if executor.missing:
        yield f"{where} cannot import {', '.join(executor.missing)} ({next(iter(executor.missing.values()))}); {advice}"
    for name, version in here.items():
        if executor.packages.get(name, version) != version:
            yield f"{where} has {name} {executor.packages[name]}, the driver has {version}; {advice}"
    for path in executor.missing_paths:
        yield f"{executor.host}: {path} does not exist or cannot be read; mount it at the same path on the executor"


def _why_no_python(said: str) -> str | None:
    """Explain why no Python worker started; None if the failure has another reason."""
    host = re.search(r"\(TID \d+\) \(([^) ]+)", said)
    where = f"on executor {host[1]}" if host else "on an executor"
    advice = f"executors need the driver's Python ({sys.version_info[0]}.{sys.version_info[1]}, {sys.executable})"
    if found := re.search(r'Cannot run program "([^"]+)"', said):
        return f"{where} {found[1]} does not exist; {advice}: install it, or set PYSPARK_PYTHON"
    if found := re.search(r"Python in worker has different (?:minor )?version:? ([\d.]+)", said):
        return f"{where} Python has version {found[1]}; {advice}"
    if found := re.search(r"No module named '?(pyspark[\w.]*)'?", said):
        return f"{where} Python lacks {found[1]}; {advice}, with barnabas[lake]"
    return None
