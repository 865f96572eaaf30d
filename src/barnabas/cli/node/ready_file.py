"""The ready file: it tells the program that started `barnabas serve` that the node answers, and at which address.

Its one rule: the file exists only while the node answers, and is written atomically. It has lines of `key=value`, which Java's
Properties and a shell can read. A killed node leaves its file behind; the next node with the same file removes it first.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

import click

from barnabas.config.endpoints import reachable_text
from barnabas.config.server import FAULTS, METRICS
from barnabas.config.server_config import ServerConfig


class Announced(Protocol):
    """The attributes of a node that the file needs."""

    config: ServerConfig
    cluster_id: str
    addresses: dict[str, tuple[str, int]]


def prepare_ready_file(path: Path) -> None:
    """Remove the file of an earlier node, before this one starts. Raises BadParameter if that is not possible."""
    if not path.parent.is_dir():
        raise click.BadParameter(f"there is no directory {path.parent}; create it first", param_hint="--ready-file")
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        raise click.BadParameter(f"{path} cannot be replaced: {error.strerror}", param_hint="--ready-file") from None


@contextmanager
def announced(path: Path | None, node: Announced) -> Iterator[None]:
    """Write the file on entry, and remove it on exit."""
    if path is None:
        yield
        return
    unfinished = path.with_name(f"{path.name}.{os.getpid()}")
    unfinished.write_text("".join(f"{name}={value}\n" for name, value in ready_facts(node).items()))
    unfinished.replace(path)
    try:
        yield
    finally:
        tell_not_ready(path)


def tell_not_ready(path: Path | None) -> None:
    """Remove the file."""
    if path is not None:
        path.unlink(missing_ok=True)


def ready_facts(node: Announced) -> Mapping[str, str]:
    """Return the addresses, ids and pid of a node, with Kafka's names of these settings."""
    config = node.config
    places = {e.listener_name: reachable_text(e.host, node.addresses[e.listener_name][1]) for e in config.listeners}
    clients = [name for name in places if name not in config.controller_listener_names]
    facts = {"bootstrap.servers": places[clients[0]]} if clients else {}
    if METRICS in node.addresses:
        facts["metrics.url"] = f"http://{reachable_text(*node.addresses[METRICS])}/metrics"
    if FAULTS in node.addresses:
        facts["faults.url"] = f"http://{reachable_text(*node.addresses[FAULTS])}"
    return facts | {
        "cluster.id": node.cluster_id,
        "node.id": str(config.node_id),
        "listeners": ",".join(f"{name}://{place}" for name, place in places.items()),
        "pid": str(os.getpid()),
    }
