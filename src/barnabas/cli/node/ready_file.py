"""The file by which a program that started `barnabas serve` learns that the node answers, and where.

It is there while the node answers, whole or not at all. Lines of `key=value`, as in a client's configuration: Java's Properties
read them, and so does a line of shell. After a kill it stays, and the next node with the same file removes it first.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

import click

from barnabas.config.endpoints import reachable_text
from barnabas.config.server_config import ServerConfig


class Announced(Protocol):
    """What is told of a node."""

    config: ServerConfig
    cluster_id: str
    addresses: dict[str, tuple[str, int]]


def prepare_ready_file(path: Path) -> None:
    """Before the node starts: nobody may take the word of an earlier one for its own."""
    if not path.parent.is_dir():
        raise click.BadParameter(f"there is no directory {path.parent}; make it first", param_hint="--ready-file")
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        raise click.BadParameter(f"{path} cannot be replaced: {error.strerror}", param_hint="--ready-file") from None


@contextmanager
def announced(path: Path | None, node: Announced) -> Iterator[None]:
    """The file is there as long as this lasts."""
    if path is None:
        yield
        return
    unfinished = path.with_name(f"{path.name}.{os.getpid()}")
    unfinished.write_text("".join(f"{name}={value}\n" for name, value in ready_facts(node).items()))
    unfinished.replace(path)
    try:
        yield
    finally:
        path.unlink(missing_ok=True)


def ready_facts(node: Announced) -> Mapping[str, str]:
    """Where a node is reached, by the names that Kafka's clients and servers have for it, and its process."""
    config = node.config
    places = {e.listener_name: reachable_text(e.host, node.addresses[e.listener_name][1]) for e in config.listeners}
    clients = [name for name in places if name not in config.controller_listener_names]
    facts = {"bootstrap.servers": places[clients[0]]} if clients else {}
    return facts | {
        "cluster.id": node.cluster_id,
        "node.id": str(config.node_id),
        "listeners": ",".join(f"{name}://{place}" for name, place in places.items()),
        "pid": str(os.getpid()),
    }
