"""The check that this node is the only voter of its metadata log. Clusters of several nodes are not supported yet.

Its one rule: a node that can never lead says so at once, before anything is written. Without this check it would wait
for a leader forever.
"""

from __future__ import annotations

from barnabas.raft.voters import ReplicaKey, VoterHistory, VoterSet

_READ = "to only read the directory, use barnabas serve --read-only"


def why_not_sole_voter(own: ReplicaKey, voters: VoterHistory) -> str | None:
    """Return what does not match and what to do, or None if this node is the only voter."""
    current = voters.current
    if current.is_only_voter(own):
        return None
    if voters.current_offset is None:
        return _why_not_static(own, voters)
    shown = f"its metadata log has {_shown(current)}, but this node is {_key(own)}"
    if len(current) > 1:
        return (
            f"{shown}, and clusters of several nodes are not supported yet. Remove the other voters with "
            f"kafka-metadata-quorum remove-controller, while Apache Kafka runs on the directory; {_READ}"
        )
    voter = current.get(own.id)
    if voter is None:
        return (
            f"{shown}: the node id does not match. Set node.id to the id of the voter, in the settings and in "
            f"meta.properties, or use a new directory in log.dirs; {_READ}"
        )
    return (
        f"{shown}: the directory id does not match, so the directory is a copy or was formatted again. Set directory.id in "
        f"meta.properties to that of the voter, if no other node uses it, or use a new directory in log.dirs; {_READ}"
    )


def why_not_several(node_id: int, voter_ids: tuple[int, ...]) -> str:
    """Return the error for several voters in controller.quorum.voters."""
    ids = ", ".join(map(str, sorted(voter_ids)))
    return (
        f"controller.quorum.voters names the voters {ids}, and clusters of several nodes are not supported yet: "
        f"leave only {node_id}@host:port in controller.quorum.voters"
    )


def _why_not_static(own: ReplicaKey, voters: VoterHistory) -> str:
    if voters.can_reconfigure:
        return (
            "its metadata log has no voters: it was formatted with --no-initial-controllers, to join other controllers, and "
            "clusters of several nodes are not supported yet. Format it with --standalone"
        )
    if len(voters.static) > 1:
        return why_not_several(own.id, tuple(voters.static.ids))
    return (
        "its metadata log has kraft.version 0, so that the voters are those of controller.quorum.voters, and these are "
        f"not set. Set controller.quorum.voters={own.id}@host:port"
    )


def _shown(voters: VoterSet) -> str:
    if len(voters) == 1:
        return f"the voter {_key(next(iter(voters)).key)}"
    return f"the voters {', '.join(_key(voter.key) for voter in voters)}"


def _key(key: ReplicaKey) -> str:
    return f"{key.id} (directory {key.directory_id})" if key.directory_id is not None else str(key.id)
