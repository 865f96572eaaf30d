"""The metadata quorum as this replica sees it."""

from __future__ import annotations

from collections import Counter

from barnabas.broker.metrics.exposition import Exposition, Metric, gauge, labels
from barnabas.broker.metrics.observed import Observed
from barnabas.raft.roles import Leader
from barnabas.slices import Slices


def _raft(name: str, help: str, *names: str) -> Metric:
    return gauge(f"kafka_server_raft_metrics_{name}", help, *names)


STATE = _raft("current_state", "1 for the role of this replica.", "state")
LEADER = _raft("current_leader", "Node id of the quorum's leader, or -1.")
EPOCH = _raft("current_epoch", "Epoch of the quorum.")
HIGH_WATERMARK = _raft("high_watermark", "End of the committed records of the metadata log.")
END_OFFSET = _raft("log_end_offset", "End of the metadata log on this node.")
VOTERS = _raft("number_of_voters", "Voters of the quorum.")
OBSERVERS = _raft("number_of_observers", "Observers of the quorum, as its leader knows them.")
LAG = gauge("barnabas_quorum_voter_lag", "Records that a voter has not fetched yet; only the leader knows.", "voter")
SNAPSHOT = gauge("barnabas_metadata_snapshot_end_offset", "End of the newest snapshot of the metadata.")
METRICS = (STATE, LEADER, EPOCH, HIGH_WATERMARK, END_OFFSET, VOTERS, OBSERVERS, LAG, SNAPSHOT)


def collect(node: Observed, out: Exposition, left_out: Counter[str]) -> Slices[None]:
    if node.quorum is None or not node.quorum.driver.is_started:
        return
    core = node.quorum.driver.core
    leader_id = core.leadership.leader_id
    out.add(STATE, 1, labels(state=type(core.role).__name__.lower()))
    out.add(LEADER, -1 if leader_id is None else leader_id)
    out.add(EPOCH, core.epoch)
    out.add(HIGH_WATERMARK, node.quorum.driver.high_watermark)
    out.add(END_OFFSET, core.log.end_offset)
    out.add(VOTERS, len(core.voters.current.ids))
    if isinstance(core.role, Leader):
        out.add(OBSERVERS, len(core.role.observers))
        for voter_id, progress in core.role.voters.items():
            behind = 0 if voter_id == core.key.id else core.log.end_offset - max(progress.end_offset, 0)
            out.add(LAG, behind, labels(voter=voter_id))
    snapshot_id = core.log.snapshot_id
    out.add(SNAPSHOT, 0 if snapshot_id is None else snapshot_id.offset)
    yield
