"""The file `quorum-state`: the epoch a node of the quorum is in, whom it voted for, and who leads, as Kafka writes it.

Its one rule: it is on disk before the vote is told to anybody. Data version 0 goes with kraft.version 0 and lists the
voters; version 1 has the directory of the vote instead, and the voters are in the log.
"""

from __future__ import annotations

import json
from pathlib import Path

from barnabas.storage.errors import StorageError
from barnabas.storage.files import read_whole, write_atomically
from barnabas.wire.errors import MalformedError, UnsupportedVersionError
from barnabas.wire.records.raft import QuorumStateData

QUORUM_STATE = "quorum-state"
_DATA_VERSION = "data_version"


def read_quorum_state(directory: Path) -> QuorumStateData | None:
    """What was written last; None before the first election. Fields that are not known are left out."""
    path = directory / QUORUM_STATE
    content = read_whole(path)
    if content is None:
        return None
    try:
        fields = json.loads(content)
        version = fields.pop(_DATA_VERSION)
        known = {field.json_name for field in QuorumStateData.schema().root.fields}
        return QuorumStateData.from_json({name: fields[name] for name in fields if name in known}, version)
    except (ValueError, TypeError, AttributeError, KeyError, MalformedError, UnsupportedVersionError) as error:
        raise StorageError(f"{path} cannot be read, so a vote may be lost: {error or type(error).__name__}") from error


def write_quorum_state(directory: Path, state: QuorumStateData, version: int) -> None:
    """Durable when it returns."""
    content = state.to_json(version) | {_DATA_VERSION: version}
    write_atomically(directory / QUORUM_STATE, json.dumps(content, separators=(",", ":")).encode())
