"""The checks that the metadata log of a node can have a leader at all, and never two of them.

Its one rule: a node that would wait forever says so at once, before anything is written. A node that is no voter waits for
others to lead, as an observer, so it is refused only if there are no others.
"""

from __future__ import annotations

from collections.abc import Collection

from barnabas.raft.voters import ReplicaKey, VoterHistory

_READ = "to only read the directory, use barnabas serve --read-only"


def why_never_led(own: ReplicaKey, voters: VoterHistory, *, knows_others: bool) -> str | None:
    """Return what does not match and what to do, or None if there can be a leader.

    `knows_others` is true if the settings name servers of the quorum other than this node.
    """
    current = voters.current
    if not current:
        return None if knows_others else _why_no_voters(own, voters)
    if len(current) > 1 or current.is_only_voter(own):
        return None
    voter = next(iter(current))
    shown = f"its metadata log has the voter {_key(voter.key)}, but this node is {_key(own)}"
    if voter.id == own.id:
        return (
            f"{shown}: the directory id does not match, so the directory is a copy or was formatted again. Set directory.id "
            "in meta.properties to that of the voter, if no other node uses it, or use a new directory in log.dirs; "
            f"{_READ}"
        )
    if own.directory_id is not None and voter.key.directory_id == own.directory_id:
        return (
            f"{shown}: the node id does not match. Set node.id to the id of the voter, in the settings and in "
            f"meta.properties, or use a new directory in log.dirs; {_READ}"
        )
    return None


def why_two_leaders(recorded: Collection[int], configured: Collection[int]) -> str | None:
    """Return why these voters may elect a leader beside that of the voters before, or None.

    `recorded` are the voters in `quorum-state`, `configured` those of controller.quorum.voters. Any two majorities have a voter
    in common if the lists differ by one voter at most.
    """
    changed = set(recorded) ^ set(configured)
    if not recorded or not configured or len(changed) <= 1:
        return None
    before, now = (", ".join(map(str, sorted(each))) for each in (recorded, configured))
    return (
        f"controller.quorum.voters names the voters {now}, but its last election was among {before}: both could elect a "
        "leader. Set it to the same list on all nodes, and add or remove one voter at a time, everywhere before the next one"
    )


def why_not_formatted(node_id: int, voter_ids: tuple[int, ...]) -> str:
    """Return the error for empty directories of a node whose cluster has other nodes: all need the same cluster id."""
    ids = ", ".join(map(str, sorted(voter_ids)))
    what = (
        f"controller.quorum.voters names the voters {ids}" if len(voter_ids) > 1 else "its controllers are other nodes"
    )
    return (
        f"the log dirs of node {node_id} are not formatted, and {what}: format the log dirs of every node for one cluster "
        "with barnabas kafka-storage format -t CLUSTER_ID"
    )


def _why_no_voters(own: ReplicaKey, voters: VoterHistory) -> str:
    if voters.can_reconfigure:
        return (
            "its metadata log has no voters: it was formatted with --no-initial-controllers, to join other controllers, and "
            "controller.quorum.bootstrap.servers names none. Name them, or format it with --standalone"
        )
    return (
        "its metadata log has kraft.version 0, so that the voters are those of controller.quorum.voters, and these are "
        f"not set. Set controller.quorum.voters={own.id}@host:port"
    )


def _key(key: ReplicaKey) -> str:
    return f"{key.id} (directory {key.directory_id})" if key.directory_id is not None else str(key.id)
