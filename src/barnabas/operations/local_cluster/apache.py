"""Nodes of Apache Kafka in a local cluster: finds a distribution, and says how one of its nodes is started.

Its one rule: nothing is downloaded or installed. The distribution is named by `--kafka-home` or the environment variable
KAFKA_HOME. What a node prints goes to its `node.log`, and nothing is written into the distribution.
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Mapping
from pathlib import Path

from barnabas.client.connection import Connection
from barnabas.operations.errors import OperationError
from barnabas.operations.local_cluster.layout import HOST, LocalNode
from barnabas.wire import KafkaError
from barnabas.wire.messages.api_versions import ApiVersionsRequest

KAFKA_HOME = "KAFKA_HOME"
START_SCRIPT = Path("bin", "kafka-server-start.sh")
HEAP = "-Xmx256M -Xms256M"  # several nodes share one machine
ANSWER_TIMEOUT_MS = 2000


def find_home(given: Path | None, environment: Mapping[str, str]) -> Path:
    """Return the directory of a distribution of Apache Kafka. Raises OperationError if there is none, or no Java."""
    named = given or (Path(environment[KAFKA_HOME]) if environment.get(KAFKA_HOME) else None)
    if named is None:
        raise OperationError(
            "Apache Kafka was not found: name the directory of its distribution by --kafka-home or the environment "
            f"variable {KAFKA_HOME}; it has the file {START_SCRIPT}"
        )
    home = named.absolute()
    if not (home / START_SCRIPT).is_file():
        raise OperationError(f"{home} is not a distribution of Apache Kafka: there is no file {START_SCRIPT}")
    if shutil.which("java", path=environment.get("PATH")) is None and not environment.get("JAVA_HOME"):
        raise OperationError("Apache Kafka needs Java 17 or newer: there is no java on the PATH and no JAVA_HOME")
    return home


def start_command(home: Path, properties: Path) -> list[str]:
    return [str(home / START_SCRIPT), str(properties)]


def start_environment(directory: Path, environment: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of a node: a small heap unless one is set, and logs beside the node's directory."""
    return {"KAFKA_HEAP_OPTS": HEAP, **environment, "LOG_DIR": str(directory / "logs")}


def answers(node: LocalNode) -> bool:
    """Return whether the node responds to requests. Kafka does so when it has started."""
    port = node.ports[node.listener_names[0]]

    async def ask() -> None:
        async with asyncio.timeout(ANSWER_TIMEOUT_MS / 1000):
            connection = await Connection.open(HOST, port, "barnabas cluster")
            await connection.call(ApiVersionsRequest(), 0)
            connection.close()

    try:
        asyncio.run(ask())
    except (KafkaError, OSError, EOFError):
        return False
    return True
