"""The lines that Kafka's script for the metadata quorum prints. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

from barnabas.client.admin.quorum import QuorumInfo, ReplicaState

_HEADINGS = ("NodeId", "DirectoryId", "LogEndOffset", "Lag", "LastFetchTimestamp", "LastCaughtUpTimestamp", "Status")


def status_lines(cluster_id: str, info: QuorumInfo, leader: ReplicaState) -> list[str]:
    last = min(info.voters, key=lambda voter: voter.log_end_offset)
    lag_ms = -1
    if last is leader:
        lag_ms = 0
    elif leader.last_caught_up_timestamp_ms is not None and last.last_caught_up_timestamp_ms is not None:
        lag_ms = leader.last_caught_up_timestamp_ms - last.last_caught_up_timestamp_ms
    values = {
        "ClusterId": cluster_id,
        "LeaderId": info.leader_id,
        "LeaderEpoch": info.leader_epoch,
        "HighWatermark": info.high_watermark,
        "MaxFollowerLag": leader.log_end_offset - last.log_end_offset,
        "MaxFollowerLagTimeMs": lag_ms,
        "CurrentVoters": nodes_text(info, info.voters),
        "CurrentObservers": nodes_text(info, info.observers),
    }
    return [f"{name + ':':24}{value}" for name, value in values.items()]


def nodes_text(info: QuorumInfo, replicas: Sequence[ReplicaState]) -> str:
    texts = []
    for each in replicas:
        text = f'"id": {each.replica_id}'
        if any(each.replica_directory_id):
            text += f', "directoryId": "{each.replica_directory_id}"'
        endpoints = info.nodes.get(each.replica_id, ())
        if endpoints:
            text += ', "endpoints": [' + ", ".join(f'"{endpoint}"' for endpoint in endpoints) + "]"
        texts.append(f"{{{text}}}")
    return f"[{', '.join(texts)}]"


def replication_lines(info: QuorumInfo, leader: ReplicaState, now_ms: int | None = None) -> list[str]:
    """Return a line per replica. If `now_ms` is given, times are shown as ages. Raises ValueError for times in the future."""
    followers = [each for each in info.voters if each.replica_id != info.leader_id]
    groups = (("Leader", [leader]), ("Follower", followers), ("Observer", info.observers))
    rows = [
        [
            str(each.replica_id),
            str(each.replica_directory_id),
            str(each.log_end_offset),
            str(leader.log_end_offset - each.log_end_offset),
            _time(each.last_fetch_timestamp_ms, "last fetch", now_ms),
            _time(each.last_caught_up_timestamp_ms, "last caught up", now_ms),
            status,
        ]
        for status, replicas in groups
        for each in replicas
    ]
    return table_lines(_HEADINGS, rows)


def _time(timestamp_ms: int | None, what: str, now_ms: int | None) -> str:
    if timestamp_ms is None:
        return "-1"
    if now_ms is None:
        return str(timestamp_ms)
    if not 0 < timestamp_ms <= now_ms:
        raise ValueError(
            "Error while computing relative time, possible drift in system clock.\n"
            f"Current timestamp is {now_ms}, {what} timestamp is {timestamp_ms}"
        )
    return f"{now_ms - timestamp_ms} ms ago"


def table_lines(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Format a table as Kafka does: columns as wide as their widest cell, each followed by a tab."""
    widths = [max(map(len, cells)) for cells in zip(headings, *rows, strict=True)]
    return ["\t".join(f"{cell:<{w}}" for cell, w in zip(row, widths, strict=True)) + "\t" for row in (headings, *rows)]


def uuid_problem(text: str) -> str:
    """Return Java's error message for a text that is not a uuid."""
    if len(text) > 24:
        return f"Input string with prefix `{text[:24]}` is too long to be decoded as a base64 UUID"
    odd = re.search(r"[^\w-]", text.rstrip("="), re.ASCII)
    if odd is not None:
        return f"Illegal base64 character {ord(odd[0]):x}"
    if len(text.rstrip("=")) % 4 == 1:
        return "Last unit does not have enough valid bits"
    size = len(text.rstrip("=")) * 6 // 8
    expected = "which is not equal to the expected 16 bytes of a base64-encoded UUID"
    return f"Input string `{text}` decoded as {size} bytes, {expected}"
