"""A controller to add as a voter: its id, directory id and endpoints, read from its own files.

Its one rule: error messages are those of Kafka's tool. Settings are read as plain text: host names are not resolved.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from barnabas.client.admin.quorum import RaftEndpoint
from barnabas.config import properties
from barnabas.storage.errors import StorageError
from barnabas.storage.log_dirs import read_meta_properties
from barnabas.wire.primitives import Uuid

_ENDPOINT = re.compile(r"(?P<name>[^:/]*)://\[?(?P<host>[^\[\]]*?)\]?:(?P<port>\d{1,5})")
_NOT_A_CONTROLLER = "Is this a valid controller configuration file?"


class ControllerError(ValueError):
    """A problem with the files of a controller, or with its endpoint."""


class Controller(NamedTuple):
    """The arguments of AddRaftVoter."""

    id: int
    directory_id: Uuid
    endpoints: tuple[RaftEndpoint, ...]

    def __str__(self) -> str:
        return f"{self.id} ({self.directory_id}) at {', '.join(map(str, self.endpoints))}"


def load_controller(path: Path) -> Controller:
    """Read the server.properties of a controller, and its formatted directory on this machine. Raises ControllerError."""
    try:
        return controller_of(properties.loads(path.read_text(encoding="utf-8")))
    except (OSError, UnicodeDecodeError) as error:
        raise ControllerError(str(error)) from error


def controller_of(settings: Mapping[str, str]) -> Controller:
    node_id = _controller_id(settings)
    directory_id = _directory_id(_metadata_directory(settings))
    return Controller(node_id, directory_id, _endpoints(settings))


def parse_endpoint(text: str) -> RaftEndpoint:
    """Parse `LISTENER://HOST:PORT`. Raises ControllerError.

    >>> parse_endpoint("CONTROLLER://[::1]:9093")
    RaftEndpoint(name='CONTROLLER', host='::1', port=9093)
    """
    found = _ENDPOINT.fullmatch(text.strip())
    if found is None or int(found["port"]) > 65535:
        raise ControllerError(f"{text!r} is not an endpoint such as CONTROLLER://host:9093")
    return RaftEndpoint(found["name"].upper(), found["host"] or "localhost", int(found["port"]))


def _controller_id(settings: Mapping[str, str]) -> int:
    text = settings.get("node.id")
    if text is None:
        raise ControllerError(f"node.id not found in configuration file. {_NOT_A_CONTROLLER}")
    if not re.fullmatch(r"[+-]?\d+", text.strip()):
        raise ControllerError(f'For input string: "{text}"')
    if int(text) < 0:
        raise ControllerError(f"node.id was negative in configuration file. {_NOT_A_CONTROLLER}")
    if "controller" not in settings.get("process.roles", ""):
        raise ControllerError(f"process.roles did not contain 'controller' in configuration file. {_NOT_A_CONTROLLER}")
    return int(text)


def _metadata_directory(settings: Mapping[str, str]) -> Path:
    if "metadata.log.dir" in settings:
        return Path(settings["metadata.log.dir"])
    if "log.dirs" in settings:
        return Path(settings["log.dirs"].strip().split(",")[0])
    raise ControllerError(f"Neither metadata.log.dir nor log.dirs were found. {_NOT_A_CONTROLLER}")


def _directory_id(directory: Path) -> Uuid:
    try:
        meta = read_meta_properties(directory)
    except StorageError as error:
        raise ControllerError(str(error)) from error
    if meta is None:
        raise ControllerError(f"Unable to read meta.properties from {directory}")
    if meta.directory_id is None:
        raise ControllerError(f"No directory id found in {directory}")
    return meta.directory_id


def _endpoints(settings: Mapping[str, str]) -> tuple[RaftEndpoint, ...]:
    """Return the advertised listeners of the controller, or the bound address of a listener that is not advertised."""
    known: dict[str, RaftEndpoint] = {}
    for name in ("listeners", "advertised.listeners"):
        for text in filter(None, (part.strip() for part in settings.get(name, "").split(","))):
            endpoint = parse_endpoint(text)
            known[endpoint.name] = endpoint
    names = settings.get("controller.listener.names")
    if names is None:
        raise ControllerError(f"controller.listener.names was not found. {_NOT_A_CONTROLLER}")
    found: dict[RaftEndpoint, None] = {}
    for name in names.split(","):
        if name.strip().upper() not in known:
            raise ControllerError(f"Cannot find information about controller listener name: {name.strip().upper()}")
        found[known[name.strip().upper()]] = None
    return tuple(found)
