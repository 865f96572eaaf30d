"""Clusters of processes on this machine, for tests that run `barnabas cluster`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from barnabas.operations.local_cluster import processes
from barnabas.operations.local_cluster.directory import read
from tests.command_line import invoke


def ended_afterwards(path: Path) -> Iterator[Path]:
    """Yield a directory whose cluster is gone at the end, whatever happens."""
    yield path
    local = read(path)
    if local is not None:
        processes.stop(local, local.nodes)


def rows(directory: Path) -> dict[int, dict[str, Any]]:
    """Return what `cluster status` says of each node."""
    found = json.loads(invoke("cluster", "status", "--dir", directory, "-o", "json").stdout)
    return {row["node"]: row for row in found}
