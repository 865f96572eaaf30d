"""More rows for the sample: what there is, and what observations of the live cluster have told."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

START = datetime(2026, 11, 9, 6, 0, tzinfo=UTC)
END = datetime(2026, 11, 16, 9, 42, 17, tzinfo=UTC)
BROKERS = range(1, 7)

Row = dict[str, Any]


NODES = {101: "voter", 102: "leader", 103: "voter", **dict.fromkeys(BROKERS, "observer")}


def quorum_lag() -> list[Row]:
    """Node 103 fell behind for some hours, and node 4, an observer, never caught up again; for a day nobody looked."""
    rows = []
    for hour in (*range(0, 70), *range(94, 170)):
        at = START + timedelta(hours=hour, minutes=7)
        for node, role in NODES.items():
            lag = (
                (hour - 98) * 210
                if node == 103 and 98 < hour < 110
                else (hour - 20) * 35
                if node == 4 and hour > 20
                else 0
            )
            rows.append(
                {
                    "observation_id": f"{hour:03d}",
                    "observed_at": at,
                    "replica_id": node,
                    "directory_id": None,
                    "role": role,
                    "lag": lag,
                    "seconds_since_caught_up": 0.0 if node == 102 else lag * 1.7 + 0.4,
                    "leader_epoch": 7,
                    "seconds_since_previous": None if not hour else 3600.0,
                }
            )
    return rows


def watched_rows() -> dict[str, list[Row]]:
    """What observations have told."""
    seen = quorum_lag()
    quorum = []
    for node, role in NODES.items():
        mine = [row for row in seen if row["replica_id"] == node]
        quorum.append(
            {
                **{name: mine[-1][name] for name in ("replica_id", "directory_id", "lag", "seconds_since_caught_up")},
                "role": role,
                "most_lag": max(row["lag"] for row in mine),
                "most_seconds_since_caught_up": max(row["seconds_since_caught_up"] for row in mine),
                "times_leader": len(mine) if role == "leader" else 0,
                "observations": len(mine),
                "first_seen": mine[0]["observed_at"],
                "last_seen": mine[-1]["observed_at"],
                "is_there": True,
            }
        )
    quorum.sort(key=lambda row: (row["is_there"], -row["lag"], -row["most_lag"], row["replica_id"]))
    sizes = {
        (broker, log_dir): 10**11 * (3 if broker == 3 else 1) // (1 + log_dir)
        for broker in BROKERS
        for log_dir in (0, 1)
    }
    mean = sum(sizes.values()) / len(sizes)
    disks: list[Row] = [
        {
            "broker_id": broker,
            "log_dir": f"/var/lib/kafka/data-{log_dir}",
            "replicas": 40 + broker,
            "bytes": size,
            "skew": size / mean,
            "volume_bytes": 4 * 10**11,
            "usable_bytes": 4 * 10**11 - size - 6 * 10**10,
            "used_share": (size + 6 * 10**10) / (4 * 10**11),
            "bytes_per_day": size / 90,
            "observed_at": END,
        }
        for (broker, log_dir), size in sizes.items()
    ]
    disks.sort(key=lambda row: (row["used_share"] < 0.85, -row["skew"], row["broker_id"]))
    verdicts = {
        "billing": "growing",
        "search-indexer": "stopped",
        "mailer": "falling",
        "etl-nightly": "steady",
        "web": "none",
    }
    groups: list[Row] = [
        {
            "group_id": group,
            "state": "Empty" if verdict == "stopped" else "Stable",
            "observations": 146,
            "first_seen": START,
            "last_seen": END,
            "first_lag": {"growing": 40_000, "falling": 900_000, "none": 0}.get(verdict, 61_000),
            "lag": {"growing": 8_400_000, "stopped": 2_100_000, "falling": 12_000, "steady": 61_000}.get(verdict, 0),
            "most_lag": 8_400_000,
            "records_per_minute": {"growing": 816.4, "falling": -87.2}.get(verdict, 0.0),
            "lag_minutes": {"growing": 4_021.0, "none": 0.0}.get(verdict),
            "verdict": verdict,
        }
        for group, verdict in verdicts.items()
    ]
    groups.sort(key=lambda row: (row["verdict"] not in ("growing", "stopped"), -row["lag"]))
    return {"quorum_health": quorum, "disk_balance": disks, "group_lag_growth": groups}


def inventory_rows(topics: list[str]) -> dict[str, list[Row]]:
    """Maps as Arrow gives them: pairs."""
    brokers = [
        {
            "broker_id": broker,
            "rack": f"eu-central-1{'abc'[broker % 3]}",
            "endpoints": [f"PLAINTEXT://kafka-{broker}.example.com:9092", f"SSL://kafka-{broker}.example.com:9093"],
            "fenced": broker == 5,
            "in_controlled_shutdown": False,
            "log_dirs": 2,
            "replicas": 140 + broker,
            "leaders": 48,
            "settings": [("log.cleaner.threads", "2")] if broker == 2 else [],
            "since": START,
        }
        for broker in BROKERS
    ]
    found: list[Row] = [
        {
            "topic": topic,
            "topic_id": f"id-{n}",
            "created": START,
            "partitions": 12 if n < 4 else 6,
            "replication_factor": 1 if topic == "returns" else 3,
            "min_insync_replicas": 3 if topic == "audit" else 2,
            "settings": [("cleanup.policy", "compact"), ("retention.ms", "604800000")] if n % 5 == 0 else [],
            "acl_entries": n % 7,
            "groups": [f"group-{n}", "etl-nightly"][: n % 3],
        }
        for n, topic in enumerate(topics)
    ]
    found.sort(key=lambda row: (row["replication_factor"] >= 2, -row["partitions"], row["topic"]))
    return {"broker_inventory": brokers, "topic_inventory": found}
