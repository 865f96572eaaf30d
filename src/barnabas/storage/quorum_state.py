"""The file `quorum-state`, as Kafka writes it: a node's epoch in the metadata quorum, its vote, and the leader.

Its one rule: a vote is on disk before it is sent. Data version 0 belongs to kraft.version 0 and lists the voters.
Version 1 has the directory id of the voted replica instead, and the voters are in the log.
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
    """Return the content of the file, or None before the first election. Unknown fields are ignored."""
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
        raise StorageError(
            f"{path} cannot be read, so a vote may be lost: {error or type(error).__name__}; "
            "restore it from a backup, or delete it if this node is the only voter"
        ) from error


def recorded_voters(directory: Path) -> frozenset[int]:
    """Return the voters of the last election, or none if they are in the log or there was no election."""
    found = read_quorum_state(directory)
    return frozenset(voter.voter_id for voter in (found.current_voters if found is not None else None) or ())


def write_quorum_state(directory: Path, state: QuorumStateData, version: int) -> None:
    """Write the file durably."""
    content = state.to_json(version) | {_DATA_VERSION: version}
    write_atomically(directory / QUORUM_STATE, json.dumps(content, separators=(",", ":")).encode())
