"""Whether the executors of a Spark cluster have what the lake needs there, and clear words where they have not.

Its one rule: what is sent to them needs nothing of ours, so that it can run, and tell, where barnabas is missing. It sees the
executors that are there when it is asked; Java they have, or there would be none.
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
"""What has to be the same here and there."""
_MOST_TASKS = 1000


class ExecutorsError(RuntimeError):
    """Executors cannot run the lake; the text has a line for each thing that is missing."""


@dataclass(frozen=True, slots=True)
class Executor:
    """What one executor has. `packages` has a version, or in `missing` why there is none."""

    host: str
    directory: str
    python: str
    python_version: str
    packages: dict[str, str]
    missing: dict[str, str]
    missing_paths: tuple[str, ...]


def check(spark: SparkSession, paths: Iterable[str | Path] = ()) -> list[Executor]:
    """What each executor has; raises `ExecutorsError` if anything is missing. `paths` have to be readable on all of them."""
    look = looker([str(path) for path in paths], PACKAGES)
    context = spark.sparkContext
    count = min(max(2 * context.defaultParallelism, 2), _MOST_TASKS)
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
    """What runs in an executor. It is inside of a function so that it is sent whole, and not by the name of this module."""
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
            except Exception as error:  # whatever a broken installation raises
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
    """What the driver has of what has to be the same."""
    from importlib import import_module

    return {name: str(import_module(name).__version__) for name in SAME_VERSION}


def complaints(executor: Executor, here: dict[str, str]) -> Iterator[str]:
    """A line for each thing that is missing, with what to do.

    >>> had = Executor("w1", "/work", "/usr/bin/python3", "3.11.2", {"barnabas": "1.0"}, {}, ("/data",))
    >>> print(*complaints(had, {"barnabas": "1.0"}))
    w1: /data is not there or cannot be read; mount it there, at the same path
    """
    where = f"{executor.host}: {executor.python} (Python {executor.python_version})"
    advice = f"install barnabas[lake]=={here['barnabas']} into it, or name another with PYSPARK_PYTHON"
    if executor.missing:
        yield f"{where} cannot import {', '.join(executor.missing)} ({next(iter(executor.missing.values()))}); {advice}"
    for name, version in here.items():
        if executor.packages.get(name, version) != version:
            yield f"{where} has {name} {executor.packages[name]}, the driver has {version}; {advice}"
    for path in executor.missing_paths:
        yield f"{executor.host}: {path} is not there or cannot be read; mount it there, at the same path"


def _why_no_python(said: str) -> str | None:
    """In plain words why no Python ran at all; None if it is something else."""
    host = re.search(r"\(TID \d+\) \(([^) ]+)", said)
    where = f"on executor {host[1]}" if host else "on an executor"
    advice = f"the same Python as here ({sys.version_info[0]}.{sys.version_info[1]}, {sys.executable}) has to be there"
    if found := re.search(r'Cannot run program "([^"]+)"', said):
        return f"{where} there is no {found[1]}; {advice}: install it, or name another with PYSPARK_PYTHON"
    if found := re.search(r"Python in worker has different (?:minor )?version:? ([\d.]+)", said):
        return f"{where} Python is {found[1]}; {advice}"
    if found := re.search(r"No module named '?(pyspark[\w.]*)'?", said):
        return f"{where} Python has no {found[1]}; {advice}, with barnabas[lake]"
    return None
