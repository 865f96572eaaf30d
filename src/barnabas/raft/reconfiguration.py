"""Adding, removing and updating voters: checks with Kafka's error messages, and the pending change.

Its one rule: one voter changes at a time, and only after the previous change is committed, so that any two majorities
share a voter. The checks are pure: they take a request and a VoterSituation, and return the error response, or None.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from barnabas.raft.voters import (
    KRAFT_VERSION_FEATURE,
    RECONFIGURATION_VERSION,
    Endpoint,
    Endpoints,
    ReplicaKey,
    Voter,
    VoterSet,
)
from barnabas.wire import ZERO_UUID, ErrorCode
from barnabas.wire.messages.add_raft_voter import AddRaftVoterRequest, AddRaftVoterResponse
from barnabas.wire.messages.api_versions import ApiVersionsResponse
from barnabas.wire.messages.remove_raft_voter import RemoveRaftVoterRequest, RemoveRaftVoterResponse
from barnabas.wire.messages.update_raft_voter import UpdateRaftVoterRequest

_HASH_BITS = 0xFFFFFFFF


class VoterSituation(NamedTuple):
    """The state that decides about a change of voters."""

    cluster_id: str
    listener_name: str
    leader_error: ErrorCode = ErrorCode.NONE  # NONE if this replica leads the epoch of the request
    is_change_pending: bool = False
    high_watermark: int | None = None
    kraft_version: int = 0
    voters: VoterSet = VoterSet()
    voters_offset: int | None = None


@dataclass(slots=True)
class AddVoter:
    """A voter being added: first it is asked for its supported versions, then its record must be committed."""

    request_id: int
    key: ReplicaKey
    listeners: Endpoints
    ack_when_committed: bool
    deadline_ms: int
    offset: int | None = None


class RemoveVoter(NamedTuple):
    """A voter being removed: the record without it must be committed."""

    request_id: int
    deadline_ms: int
    offset: int


VoterChange = AddVoter | RemoveVoter


def requested_listeners(
    listeners: Iterable[AddRaftVoterRequest.Listener | UpdateRaftVoterRequest.Listener],
) -> Endpoints:
    return tuple(Endpoint(each.name, each.host, each.port) for each in listeners)


def check_add(request: AddRaftVoterRequest, situation: VoterSituation) -> AddRaftVoterResponse | None:
    """Return the error response to a request to add a voter, or None."""
    error = ErrorCode.INVALID_REQUEST
    if (refusal := _check_leader(request.cluster_id, situation)) is not None:
        return add_response(*refusal)
    if request.voter_id < 0 or request.voter_directory_id == ZERO_UUID:
        return add_response(error, "Add voter request didn't include a valid voter")
    listeners = requested_listeners(request.listeners)
    if situation.listener_name not in {listener.name for listener in listeners}:
        return add_response(
            error,
            f"Add voter request didn't include the endpoint ({_java_endpoints(listeners)}) for the default listener "
            f"ListenerName({situation.listener_name})",
        )
    if (refusal := _check_change(situation, "adding")) is not None:
        return add_response(*refusal)
    key = ReplicaKey(request.voter_id, request.voter_directory_id)
    if key.id in situation.voters.ids:
        return add_response(
            ErrorCode.DUPLICATE_VOTER,
            f"The voter id for {key} is already part of the set of voters {_java_set(situation.voters.keys)}.",
        )
    return None


def check_remove(
    request: RemoveRaftVoterRequest, situation: VoterSituation
) -> tuple[RemoveRaftVoterResponse, None] | tuple[None, VoterSet]:
    """Return the error response to a request to remove a voter, or the voters without it."""
    if (refusal := _check_leader(request.cluster_id, situation)) is not None:
        return remove_response(*refusal), None
    if request.voter_id < 0 or request.voter_directory_id == ZERO_UUID:
        return remove_response(ErrorCode.INVALID_REQUEST, "Remove voter request didn't include a valid voter"), None
    if (refusal := _check_change(situation, "removing")) is not None:
        return remove_response(*refusal), None
    key = ReplicaKey(request.voter_id, request.voter_directory_id)
    voters = situation.voters.remove(key)
    if voters is None:
        text = f"Cannot remove voter {key} from the set of voters {_java_set(situation.voters.keys)}"
        return remove_response(ErrorCode.VOTER_NOT_FOUND, text), None
    return None, voters


def check_update(
    request: UpdateRaftVoterRequest, situation: VoterSituation
) -> tuple[ErrorCode, None] | tuple[None, VoterSet]:
    """Return the error of a request to update a voter, or the updated voters."""
    if request.cluster_id is not None and request.cluster_id != situation.cluster_id:
        return ErrorCode.INCONSISTENT_CLUSTER_ID, None
    if situation.leader_error is not ErrorCode.NONE:
        return situation.leader_error, None
    listeners = requested_listeners(request.listeners)
    versions = request.k_raft_version_feature
    low, high = versions.min_supported_version, versions.max_supported_version
    if (
        request.voter_id < 0
        or request.voter_directory_id == ZERO_UUID
        or situation.listener_name not in {listener.name for listener in listeners}
        or not 0 <= low <= high
    ):
        return ErrorCode.INVALID_REQUEST, None
    is_recorded = situation.kraft_version >= RECONFIGURATION_VERSION
    if situation.is_change_pending or situation.high_watermark is None or (is_recorded and _is_uncommitted(situation)):
        return ErrorCode.REQUEST_TIMED_OUT, None
    if not low <= situation.kraft_version <= high:
        return ErrorCode.INVALID_REQUEST, None
    key = ReplicaKey(request.voter_id, request.voter_directory_id)
    voters = situation.voters.update(Voter(key, listeners, low, high))
    return (ErrorCode.VOTER_NOT_FOUND, None) if voters is None else (None, voters)


def check_api_versions(
    change: AddVoter, response: ApiVersionsResponse | None, situation: VoterSituation, *, is_caught_up: bool
) -> AddRaftVoterResponse | Voter:
    """Return the voter to add, given its supported versions, or the error response."""
    code = ErrorCode.NETWORK_EXCEPTION if response is None else ErrorCode(response.error_code)
    if response is None or code is not ErrorCode.NONE:
        return add_response(
            ErrorCode.REQUEST_TIMED_OUT,
            f"Aborted add voter operation for since API_VERSIONS returned an error {code.name}",
        )
    feature = next((each for each in response.supported_features if each.name == KRAFT_VERSION_FEATURE), None)
    if feature is None or not feature.min_version <= situation.kraft_version <= feature.max_version:
        low, high = (0, 0) if feature is None else (feature.min_version, feature.max_version)
        closing = ")" if feature is None else ""  # the unbalanced parenthesis is Kafka's
        return add_response(
            ErrorCode.INVALID_REQUEST,
            f"Aborted add voter operation for {change.key} since the {KRAFT_VERSION_FEATURE} range "
            f"(min: {low}, max: {high}{closing} doesn't support the finalized version {situation.kraft_version}",
        )
    if not is_caught_up:
        return add_response(
            ErrorCode.REQUEST_TIMED_OUT, f"Aborted add voter operation for {change.key} since it is lagging behind"
        )
    return Voter(change.key, change.listeners, feature.min_version, feature.max_version)


def add_response(error: ErrorCode, message: str | None) -> AddRaftVoterResponse:
    return AddRaftVoterResponse(error_code=error, error_message=message)


def remove_response(error: ErrorCode, message: str | None) -> RemoveRaftVoterResponse:
    return RemoveRaftVoterResponse(error_code=error, error_message=message)


def _check_leader(cluster_id: str | None, situation: VoterSituation) -> tuple[ErrorCode, str] | None:
    if cluster_id is not None and cluster_id != situation.cluster_id:
        text = f'The given id "{cluster_id}" doesn\'t match the cluster id "{situation.cluster_id}"'
        return ErrorCode.INCONSISTENT_CLUSTER_ID, text
    return None if situation.leader_error is ErrorCode.NONE else (situation.leader_error, "")


def _check_change(situation: VoterSituation, verb: str) -> tuple[ErrorCode, str] | None:
    error = ErrorCode.REQUEST_TIMED_OUT
    if situation.is_change_pending:
        return error, "Request timed out waiting for leader to handle previous voter change request"
    if situation.high_watermark is None:
        return error, "Request timed out waiting for leader to establish HWM and fence previous voter changes"
    if situation.kraft_version < RECONFIGURATION_VERSION:
        return (
            ErrorCode.UNSUPPORTED_VERSION,
            f"Cluster doesn't support {verb} voter because the {KRAFT_VERSION_FEATURE} feature is "
            f"{situation.kraft_version}",
        )
    if _is_uncommitted(situation):
        offset = situation.voters_offset
        where = "Optional.empty" if offset is None else f"Optional[{offset}]"
        return (
            error,
            f"Request timed out waiting for voters to commit the latest voter change at {where} with HWM "
            f"{situation.high_watermark}",
        )
    return None


def _is_uncommitted(situation: VoterSituation) -> bool:
    return situation.voters_offset is None or situation.voters_offset >= (situation.high_watermark or 0)


def _java_endpoints(listeners: Endpoints) -> str:
    inner = ", ".join(f"ListenerName({name})={host}/<unresolved>:{port}" for name, host, port in listeners)
    return f"Endpoints(endpoints={{{inner}}})"


def _java_set(keys: Iterable[ReplicaKey]) -> str:
    """Format replicas as Java prints a hash set of them, in hash order, so that the text equals Kafka's."""
    found = list(keys)
    buckets = 16
    while len(found) > buckets * 3 // 4:
        buckets *= 2
    found.sort(key=lambda key: (_java_hash(key) ^ _java_hash(key) >> 16) & (buckets - 1))
    return f"[{', '.join(map(str, found))}]"


def _java_hash(key: ReplicaKey) -> int:
    directory = key.directory_id or bytes(16)
    folded = 0
    for word in range(0, 16, 4):
        folded ^= int.from_bytes(directory[word : word + 4], "big")
    return (31 * (31 + key.id) + folded) & _HASH_BITS
