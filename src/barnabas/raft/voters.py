"""Voters: replica keys, voter sets, and the voter sets in the log so far.

Its one rule: a voter set takes effect when its record is appended, not when it is committed, and a truncation of the
log undoes it. With kraft.version 0 the set comes from the configuration and is in no record. With version 1 it is in
the log and in snapshots, and every voter has a directory id.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar

from barnabas.wire import ZERO_UUID, Uuid
from barnabas.wire.records.control import VotersRecord

KRAFT_VERSION_FEATURE = "kraft.version"
MIN_KRAFT_VERSION = 0
MAX_KRAFT_VERSION = 1
RECONFIGURATION_VERSION = 1
"""Since this kraft.version the voters are in the log and can be changed."""


class ReplicaKey(NamedTuple):
    """A replica, identified by node id and directory id. The directory id is None if unknown."""

    id: int
    directory_id: Uuid | None = None

    @classmethod
    def of(cls, replica_id: int, directory_id: Uuid) -> ReplicaKey:
        """Return the key for values from the wire, where the zero UUID is an unknown directory."""
        return cls(replica_id, None if directory_id == ZERO_UUID else directory_id)

    @property
    def wire_directory_id(self) -> Uuid:
        return ZERO_UUID if self.directory_id is None else self.directory_id

    def is_known_as(self, other: ReplicaKey) -> bool:
        """Whether `other` matches this key. A key without a directory matches any directory of that id."""
        return self.id == other.id and self.directory_id in (None, other.directory_id)

    def __str__(self) -> str:
        directory = "<undefined>" if self.directory_id is None else str(self.directory_id)
        return f"ReplicaKey(id={self.id}, directoryId={directory})"


class Endpoint(NamedTuple):
    """The address of one of a node's listeners."""

    name: str
    host: str
    port: int


Endpoints = tuple[Endpoint, ...]


class Node(NamedTuple):
    """The destination of a request. A server known only by its address has a negative id."""

    id: int
    host: str
    port: int


def node_of(node_id: int, listeners: Endpoints, listener_name: str) -> Node | None:
    """Return the address of a node on the listener of that name, or None."""
    for name, host, port in listeners:
        if name == listener_name:
            return Node(node_id, host, port)
    return None


@dataclass(frozen=True, slots=True)
class Voter:
    """A replica that counts for majorities, its endpoints, and the kraft.versions that it supports."""

    key: ReplicaKey
    listeners: Endpoints = ()
    min_kraft_version: int = MIN_KRAFT_VERSION
    max_kraft_version: int = MAX_KRAFT_VERSION

    @property
    def id(self) -> int:
        return self.key.id


class VoterSet:
    """The voters, with unique ids.

    Immutable: `add`, `remove` and `update` return a new set, or None if not possible.
    """

    __slots__ = ("_voters",)

    def __init__(self, voters: Iterable[Voter] = ()) -> None:
        self._voters = {voter.id: voter for voter in sorted(voters, key=lambda voter: voter.id)}

    def __iter__(self) -> Iterator[Voter]:
        return iter(self._voters.values())

    def __len__(self) -> int:
        return len(self._voters)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, VoterSet) and self._voters == other._voters

    def __hash__(self) -> int:
        return hash(tuple(self._voters.values()))

    def __repr__(self) -> str:
        return f"VoterSet({list(self._voters.values())!r})"

    @property
    def ids(self) -> frozenset[int]:
        return frozenset(self._voters)

    @property
    def keys(self) -> tuple[ReplicaKey, ...]:
        return tuple(voter.key for voter in self)

    @property
    def majority(self) -> int:
        return len(self._voters) // 2 + 1

    def get(self, voter_id: int) -> Voter | None:
        return self._voters.get(voter_id)

    def listeners_of(self, voter_id: int) -> Endpoints:
        voter = self._voters.get(voter_id)
        return () if voter is None else voter.listeners

    def is_voter(self, replica: ReplicaKey) -> bool:
        voter = self._voters.get(replica.id)
        return voter is not None and voter.key.is_known_as(replica)

    def is_only_voter(self, replica: ReplicaKey) -> bool:
        return len(self._voters) == 1 and self.is_voter(replica)

    def add(self, voter: Voter) -> VoterSet | None:
        """Return a set with this voter added, or None if its id exists."""
        return None if voter.id in self._voters else VoterSet((*self, voter))

    def remove(self, key: ReplicaKey) -> VoterSet | None:
        """Return a set without this voter, or None if it does not exist or is the last one."""
        found = self._voters.get(key.id)
        if found is None or found.key != key or len(self._voters) == 1:
            return None
        return VoterSet(voter for voter in self if voter.id != key.id)

    def update(self, voter: Voter) -> VoterSet | None:
        """Return a set with new endpoints and versions of this voter, or None if it does not exist."""
        if not self.is_voter(voter.key):
            return None
        return VoterSet(voter if old.id == voter.id else old for old in self)

    def to_record(self) -> VotersRecord:
        return VotersRecord(
            voters=[
                VotersRecord.Voter(
                    voter_id=voter.id,
                    voter_directory_id=voter.key.wire_directory_id,
                    endpoints=[VotersRecord.Endpoint(name=n, host=h, port=p) for n, h, p in voter.listeners],
                    k_raft_version_feature=VotersRecord.KRaftVersionFeature(
                        min_supported_version=voter.min_kraft_version, max_supported_version=voter.max_kraft_version
                    ),
                )
                for voter in self
            ]
        )

    @classmethod
    def from_record(cls, record: VotersRecord) -> VoterSet:
        return cls(
            Voter(
                ReplicaKey.of(voter.voter_id, voter.voter_directory_id),
                tuple(Endpoint(endpoint.name, endpoint.host, endpoint.port) for endpoint in voter.endpoints),
                voter.k_raft_version_feature.min_supported_version,
                voter.k_raft_version_feature.max_supported_version,
            )
            for voter in record.voters
        )

    @classmethod
    def parse(cls, text: str, listener_name: str) -> VoterSet:
        """Parse `controller.quorum.voters`: `1@host:port,2@host:port`, reached on the listener of that name."""
        voters: dict[int, Voter] = {}
        for item in filter(None, (part.strip() for part in text.split(","))):
            id_text, at, address = item.partition("@")
            host, colon, port = address.rpartition(":")
            if not (at and colon and host and id_text.isdecimal() and port.isdecimal() and int(port) < 1 << 16):
                raise ValueError(f"not a voter in the form id@host:port: {item!r}")
            if int(id_text) in voters:
                raise ValueError(f"the voter {id_text} is listed twice")
            host = host[1:-1] if host.startswith("[") and host.endswith("]") else host
            key = ReplicaKey(int(id_text))
            voters[key.id] = Voter(key, (Endpoint(listener_name, host, int(port)),))
        return cls(voters.values())


T = TypeVar("T")


class _History(Generic[T]):
    """Values by the offset of their record, in order."""

    __slots__ = ("_offsets", "_values")

    def __init__(self) -> None:
        self._offsets: list[int] = []
        self._values: list[T] = []

    def append(self, offset: int, value: T) -> None:
        self.truncate(offset)
        self._offsets.append(offset)
        self._values.append(value)

    def truncate(self, end_offset: int) -> None:
        while self._offsets and self._offsets[-1] >= end_offset:
            self._offsets.pop()
            self._values.pop()

    def forget(self, start_offset: int) -> None:
        """Drop values that were replaced before `start_offset`."""
        index = max(bisect_right(self._offsets, start_offset) - 1, 0)
        del self._offsets[:index], self._values[:index]

    def last(self, end_offset: int | None = None) -> tuple[int, T] | None:
        """Return offset and value of the last record, or of the last one before `end_offset`."""
        index = len(self._offsets) if end_offset is None else bisect_right(self._offsets, end_offset - 1)
        return (self._offsets[index - 1], self._values[index - 1]) if index else None


class VoterHistory:
    """The voter set and the kraft.version at each offset of the log, starting with the configuration.

    The content of a snapshot counts as appended right before its end, so that of a formatted checkpoint is at offset
    -1.
    """

    __slots__ = ("_sets", "_versions", "static")

    def __init__(self, static: VoterSet | None = None) -> None:
        self.static = VoterSet() if static is None else static
        self._sets: _History[VoterSet] = _History()
        self._versions: _History[int] = _History()

    def append_voters(self, offset: int, voters: VoterSet) -> None:
        self._sets.append(offset, voters)

    def append_kraft_version(self, offset: int, version: int) -> None:
        self._versions.append(offset, version)

    def truncate(self, end_offset: int) -> None:
        """Undo what was appended at `end_offset` or after it."""
        self._sets.truncate(end_offset)
        self._versions.truncate(end_offset)

    def forget(self, start_offset: int) -> None:
        """Drop values before the new start of the log, but keep those in effect there."""
        self._sets.forget(start_offset)
        self._versions.forget(start_offset)

    @property
    def current(self) -> VoterSet:
        """The set in effect, committed or not."""
        found = self._sets.last()
        return self.static if found is None else found[1]

    @property
    def current_offset(self) -> int | None:
        """The offset of the current set in the log, or None if it is the configured one."""
        found = self._sets.last()
        return None if found is None else found[0]

    @property
    def kraft_version(self) -> int:
        found = self._versions.last()
        return MIN_KRAFT_VERSION if found is None else found[1]

    @property
    def can_reconfigure(self) -> bool:
        return self.kraft_version >= RECONFIGURATION_VERSION

    def at(self, end_offset: int) -> tuple[int, VoterSet | None]:
        """Return the kraft.version and the recorded voters before `end_offset`, for a snapshot at that offset."""
        version = self._versions.last(end_offset)
        voters = self._sets.last(end_offset)
        return MIN_KRAFT_VERSION if version is None else version[1], None if voters is None else voters[1]
