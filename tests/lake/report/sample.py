"""A cluster as one might find it, for the tests of the report: rows as the tables of gold have them, of any size.

Six brokers on three racks; broker 4 was silent twice, broker 2 was restarted, two partitions were without a leader, groups
have stopped, and one key makes half of a topic. The answers are counted from the rows here, so that a test can compare.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from barnabas.lake.declared_column import Column
from barnabas.lake.report.chapters import QUERIES, SECTIONS
from barnabas.lake.report.chapters.changes import DRIFT_COLUMNS
from barnabas.lake.report.content import ClusterContent, LogRange, ReportContent, Rows
from barnabas.lake.report.section import ALIKE, LIMIT
from barnabas.lake.tables.all import GOLD
from barnabas.lake.tables.declaration import Table
from tests.lake.report.sample_watched import BROKERS, END, START, inventory_rows, quorum_lag, watched_rows

TABLES: dict[str, Table] = {table.name: table for module in GOLD for table in module.TABLES if table.name in SECTIONS}
TABLES["drift"] = replace(TABLES["changes"], name="drift", question="", columns=DRIFT_COLUMNS)
EVIL = "</title><script>alert(1)</script>\"'><img src=x onerror=alert(2)>\u202e\x00\ud800"
CLUSTER = "5L6g3nShT-eMCtK--X86sw"
NAMES = (
    "orders", "payments", "clicks", "inventory.updates", "user-profiles", "emails.outbox", "fraud-scores",
    "shipping.events", "search.queries", "audit", "invoices", "web.sessions.v2", "recommendations", "returns",
    "customer-service.tickets.created.enriched-with-customer-and-order.v3",
)  # fmt: skip
KINDS = ("partitions", "configs", "topics", "acls", "brokers", "leader_epochs", "quotas", "users", "features")

Row = dict[str, Any]


def topic_names(count: int) -> list[str]:
    return [NAMES[n] if n < len(NAMES) else f"tenant-{n % 97:02d}.stream-{n:05d}" for n in range(count)]


def _spread(rng: random.Random, count: int) -> list[datetime]:
    """Times of the log; a third of them in the two hours of a rolling restart."""
    whole, restart = (END - START).total_seconds(), START + timedelta(days=4, hours=3)
    begins = [(restart, 7200.0) if rng.random() < 0.33 else (START, whole) for _ in range(count)]
    return sorted(begin + timedelta(seconds=rng.uniform(0, seconds)) for begin, seconds in begins)


def _minutes(began: datetime, until: datetime) -> float:
    return (until - began).total_seconds() / 60


def _changes(rng: random.Random, topics: list[str], count: int) -> list[Row]:
    rows = []
    for n, time in enumerate(_spread(rng, count)):
        kind = rng.choices(KINDS, (60, 14, 9, 7, 4, 1, 2, 2, 1))[0]
        topic = rng.choice(topics)
        sentence = (
            f"partition {topic}-{rng.randrange(12)}: leader 4 -> 2, isr [4, 2, 6] -> [2, 6] at {time:%FT%TZ} in epoch 7"
        )
        if kind == "configs":
            sentence = f"{topic}: retention.ms 604800000 -> 86400000 at {time:%FT%TZ} in epoch 7"
        row = {
            "offset": n * 3,
            "time": time,
            "epoch": 7,
            "kind": kind,
            "resource": topic,
            "change": "changed",
            "before": "604800000",
            "after": "86400000",
            "sentence": sentence,
            "exact": True,
        }
        rows.append(row)
    return rows[::-1]


def _config_history(rng: random.Random, topics: list[str], count: int) -> list[Row]:
    settings = ("retention.ms", "min.insync.replicas", "cleanup.policy", "max.message.bytes", "segment.bytes")
    return [
        {
            "resource_type": "TOPIC",
            "resource_name": rng.choice(topics),
            "name": rng.choices(settings, (50, 20, 12, 10, 8))[0],
            "before": None if n % 3 == 0 else "604800000",
            "after": "86400000",
            "offset": n * 5,
            "time": time,
            "epoch": 7,
            "exact": n % 40 != 0,
        }
        for n, time in enumerate(_spread(rng, count))
    ][::-1]


def _availability(rng: random.Random, topics: list[str]) -> tuple[list[Row], list[Row]]:
    troubled = topics[: max(9, len(topics) // 20)]
    trouble: list[Row] = []
    by_topic: list[Row] = []
    for rank, topic in enumerate(troubled):
        began = START + timedelta(days=4, hours=3, minutes=rank % 60)
        until = END if rank == 1 else began + timedelta(minutes=rng.uniform(2, 180) / (rank + 1))
        offline = rank < 2
        row = {
            "topic_id": f"id-{rank}",
            "topic_name": topic,
            "partition": rank % 6,
            "valid_from_offset": 1000 + rank,
            "began": began,
            "until": until,
            "minutes": _minutes(began, until),
            "is_over": until != END,
            "under_replicated": True,
            "offline": offline,
            "below_min_isr": rank < 4,
            "min_isr": 2,
            "missing": [4],
        }
        trouble.append(row)
        minutes = row["minutes"]
        by_topic.append(
            {
                "topic_id": row["topic_id"],
                "topic_name": topic,
                "partitions": 1,
                "under_replicated_minutes": minutes,
                "offline_minutes": minutes if offline else 0.0,
                "below_min_isr_minutes": minutes if row["below_min_isr"] else 0.0,
                "is_over": row["is_over"],
            }
        )
    trouble.sort(key=lambda row: (row["is_over"], not row["offline"], not row["below_min_isr"], -row["minutes"]))
    by_topic.sort(
        key=lambda row: (-row["offline_minutes"], -row["below_min_isr_minutes"], -row["under_replicated_minutes"])
    )
    return trouble, by_topic


def _fences() -> list[Row]:
    spells = [
        (4, 1.2, 95.0, "silence"),
        (4, 4.13, 210.0, "silence"),
        (2, 4.2, 14.0, "shutdown"),
        (2, 4.21, 3.0, "start"),
    ]
    spells += [(broker, 0.001 * broker, 1.5, "start") for broker in BROKERS]
    rows = []
    for n, (broker, day, minutes, cause) in enumerate(spells):
        began = START + timedelta(days=day)
        rows.append(
            _lasting(began, began + timedelta(minutes=minutes), broker_id=broker, valid_from_offset=n, cause=cause)
        )
    rows.append(_lasting(END - timedelta(minutes=37), END, broker_id=5, valid_from_offset=99, cause="silence"))
    return sorted(rows, key=lambda row: (row["is_over"], -row["began"].timestamp()))


def _incidents() -> list[Row]:
    """Broker 5 is fenced; broker 4 was silent while broker 2 was restarted, and once by itself; a setting was too high."""
    nothing: Row = {
        "brokers": [],
        "causes": [],
        "offline_minutes": 0.0,
        "offline_partitions": 0,
        "below_min_isr_partitions": 0,
        "under_replicated_partitions": 0,
        "topics": 0,
        "leader_changes": 0,
        "stalled_groups": [],
    }
    silent = {"brokers": [5], "causes": ["silence"], "under_replicated_partitions": 3, "topics": 2, "leader_changes": 1}
    worst = {
        "brokers": [2, 4], "causes": ["shutdown", "silence"], "offline_minutes": 95.5, "offline_partitions": 2,
        "below_min_isr_partitions": 4, "under_replicated_partitions": 9, "topics": 9, "leader_changes": 31,
        "stalled_groups": ["billing", "search-index"],
    }  # fmt: skip
    alone = {
        "brokers": [4],
        "causes": ["silence"],
        "leader_changes": 12,
        "under_replicated_partitions": 12,
        "topics": 5,
    }
    began = [START + timedelta(days=day) for day in (4.125, 1.2, 6)]
    return [
        _lasting(END - timedelta(minutes=37), END, **{**nothing, **silent}),
        _lasting(began[0], began[0] + timedelta(minutes=210), **{**nothing, **worst}),
        _lasting(began[2], began[2] + timedelta(minutes=20), **{**nothing, "below_min_isr_partitions": 6, "topics": 1}),
        _lasting(began[1], began[1] + timedelta(minutes=95), **{**nothing, **alone}),
    ]


def _lasting(began: datetime, until: datetime, **more: Any) -> Row:
    return {"began": began, "until": until, "minutes": _minutes(began, until), "is_over": until != END, **more}


def _leader_changes(rng: random.Random, topics: list[str], count: int) -> list[Row]:
    causes = (
        "broker 4 fenced",
        "broker 2 shut down",
        "preferred leader election",
        "reassignment",
        "unknown",
        "unclean election",
    )
    return [
        {
            "topic_id": "id",
            "topic_name": rng.choice(topics),
            "partition": rng.randrange(12),
            "offset": n * 4,
            "time": time,
            "epoch": 7,
            "leader_before": 4,
            "leader": rng.choice((1, 2, 3, -1)),
            "leader_epoch": rng.randrange(3, 40),
            "cause": rng.choices(causes, (40, 30, 20, 7, 3, 0.4))[0],
        }
        for n, time in enumerate(_spread(rng, count))
    ][::-1]


def _isr_flaps(rng: random.Random, topics: list[str], count: int) -> list[Row]:
    rows = [
        {
            "topic_id": "id",
            "topic_name": rng.choice(topics),
            "partition": rng.randrange(12),
            "broker_id": rng.choices(tuple(BROKERS), (1, 4, 1, 12, 5, 1))[0],
            "times": 1 + int(rng.expovariate(0.4)),
            "first_time": START,
            "last_time": END,
            "shortest_minutes": rng.uniform(0.4, 300),
        }
        for _ in range(count)
    ]
    return sorted(rows, key=lambda row: -row["times"])


def _balance(partitions: int) -> list[Row]:
    weights = {1: 1.0, 2: 1.42, 3: 0.96, 4: 0.38, 5: 1.12, 6: 1.12}
    leaders = {broker: round(partitions / len(weights) * weight) for broker, weight in weights.items()}
    replicas = {broker: round(partitions / 2 * (1 + (weight - 1) / 6)) for broker, weight in weights.items()}
    mean_leaders, mean_replicas = sum(leaders.values()) / 6, sum(replicas.values()) / 6
    rows = [
        {
            "broker_id": broker,
            "rack": f"eu-central-1{'abc'[broker % 3]}",
            "fenced": broker == 5,
            "replicas": replicas[broker],
            "leaders": leaders[broker],
            "preferred_leaders": round(partitions / 6),
            "replica_skew": replicas[broker] / mean_replicas,
            "leader_skew": leaders[broker] / mean_leaders,
        }
        for broker in weights
    ]
    return sorted(rows, key=lambda row: -max(abs(row["leader_skew"] - 1), abs(row["replica_skew"] - 1)))


def _reassignments(rng: random.Random, topics: list[str], count: int) -> list[Row]:
    rows = []
    for n in range(count):
        began = START + timedelta(days=5, minutes=n * 3 % 400)
        running = n < 2
        until = END if running else began + timedelta(minutes=rng.uniform(4, 700))
        lasting = _lasting(began, until)
        del lasting["is_over"]
        rows.append(
            {
                "topic_id": "id",
                "topic_name": topics[n % len(topics)],
                "partition": n % 12,
                "valid_from_offset": n,
                **lasting,
                "adding_replicas": [6],
                "removing_replicas": [2],
                "added_in_sync": [] if running else [6],
                "outcome": "running" if running else rng.choices(("done", "cancelled", "deleted"), (9, 1, 0.5))[0],
            }
        )
    return sorted(rows, key=lambda row: (row["outcome"] != "running", -row["minutes"]))


def _quorum() -> list[Row]:
    terms = ((1, 101, 0.0), (2, 102, 1.3), (3, 101, 1.32), (5, 103, 4.1), (6, 101, 4.14), (7, 102, 5.9))
    starts = [START + timedelta(days=day) for *_, day in terms] + [END]
    return [
        _lasting(starts[n], starts[n + 1], epoch=epoch, leader_id=leader, voters=3, granting_voters=2 + n % 2)
        for n, (epoch, leader, _) in enumerate(terms)
    ][::-1]


def _access(rng: random.Random, topics: list[str], count: int) -> tuple[list[Row], list[Row]]:
    grants = [
        {
            "principal": f"User:{rng.choice(('orders-service', 'billing', 'etl', 'anna', 'ops', 'search'))}",
            "resource_type": "TOPIC",
            "pattern_type": "LITERAL",
            "resource_name": topic,
            "allowed": ["DESCRIBE", "READ"],
            "denied": [],
            "hosts": ["*"],
            "since": START,
        }
        for topic in (rng.choice(topics) for _ in range(count))
    ]
    kinds = ("wildcard", "shadowed", "duplicated", "no-such-resource", "replaceable", "never-denies")
    findings = [
        {
            "finding": kind,
            "entries": [f"User:etl may READ TOPIC {topics[n % len(topics)]} from *"],
            "message": "everybody may do everything with every topic"
            if kind == "wildcard"
            else "another entry says the same",
            "because": None if kind == "wildcard" else "User:etl may ALL TOPIC * from *",
        }
        for n, kind in enumerate(kinds[min(int(rng.expovariate(0.5)), 5)] for _ in range(max(count // 8, 7)))
    ]
    return grants, findings


def _traffic(rng: random.Random, topics: list[str]) -> dict[str, list[Row]]:
    whole: list[Row] = []
    plan: list[Row] = []
    for n, topic in enumerate(topics):
        size, partitions = int(9e11 / (n + 1) ** 1.2), 12 if n < 4 else 6
        peak = size / 3e5
        whole.append(
            {
                "topic": topic,
                "partitions": partitions,
                "records": size // 900,
                "bytes": size,
                "mean_record_bytes": 900.4,
                "first_time": START,
                "last_time": END,
                "mean_bytes_per_second": peak / 4,
                "peak_bytes_per_second": peak,
                "peak_hour": datetime(2026, 11, 13, 9, tzinfo=UTC),
            }
        )
        wanted = max(partitions, 18 - 2 * n) if n < 5 else partitions
        reason = (
            f"its busiest hour has {peak / 2**20:.1f} MB/s, and a partition should carry 5 MB/s"
            if wanted > partitions
            else "enough"
        )
        plan.append(
            {
                "topic": topic,
                "partitions": partitions,
                "recommended": wanted,
                "reason": reason,
                "peak_bytes_per_second": peak,
                "most_members": 4,
            }
        )
    plan.sort(key=lambda row: row["partitions"] - row["recommended"])
    hot = [
        {
            "topic": topics[n],
            "partition": n,
            "bytes": 10**9 // (n + 1),
            "share": 0.6 - n / 20,
            "times_even": 6.1 - n * 0.4,
        }
        for n in range(min(9, len(topics)))
    ]
    keys = [
        {"topic": "orders", "key": "customer-0", "records": 93_212_000, "share": 0.52},
        {"topic": "clicks", "key": "bot", "records": 12_100_000, "share": 0.17},
    ]
    return {"topic_traffic": whole, "partition_plan": plan, "hot_partitions": hot, "key_skew": keys}


def _consumption(rng: random.Random, topics: list[str], groups: int) -> dict[str, list[Row]]:
    lag: list[Row] = []
    for n in range(groups):
        trend = ("growing", "stopped", "falling", "falling", "none", "none", "unknown")[n % 7]
        for partition in range(3):
            behind = 0 if trend == "none" else int(4_200_000 / (n + 1)) + partition
            lag.append(
                {
                    "group_id": f"group-{n}" if n > 3 else ("billing", "search-indexer", "etl-nightly", "mailer")[n],
                    "topic": topics[n % len(topics)],
                    "partition": partition,
                    "committed_offset": 10**7,
                    "end_offset": 10**7 + behind,
                    "lag": behind,
                    "committed_at": END - timedelta(minutes=3 if trend != "stopped" else 900),
                    "lag_minutes": 0.0 if trend == "none" else (900.0 if trend == "stopped" else 3.0),
                    "lag_is_interpolated": trend != "none",
                    "lag_before": None if trend == "unknown" else int(behind * (0.6 if trend == "growing" else 1.3)),
                    "trend": trend,
                }
            )
    lag.sort(key=lambda row: (row["trend"] not in ("growing", "stopped"), -row["lag"]))
    use = [
        {
            "topic_id": f"id-{n}",
            "topic": topic,
            "created": START,
            "last_written": None if verdict == "never written" else END,
            "last_committed": END if verdict == "used" else None,
            "groups": 2 if verdict == "used" else 0,
            "verdict": verdict,
        }
        for n, topic in enumerate(topics)
        for verdict in [rng.choices(("used", "idle", "never consumed", "never written"), (80, 8, 7, 5))[0]]
    ]
    use.sort(key=lambda row: (row["verdict"] == "used", row["verdict"]))
    hanging = [
        {
            "transactional_id": name,
            "producer_id": 4000 + n,
            "producer_epoch": n,
            "state": "Ongoing",
            "started": END - timedelta(minutes=minutes),
            "minutes": minutes,
            "timeout_minutes": 15.0,
        }
        for n, (name, minutes) in enumerate((("payments-tx-3", 412.0), ("orders-tx-11", 38.5)))
    ]
    return {"group_lag": lag, "topic_use": use, "hanging_transactions": hanging}


def all_rows(topics: int = 42, changes: int = 1800) -> dict[str, list[Row]]:
    """Every row of every table, ranked as the page wants them."""
    rng, names = random.Random(7), topic_names(topics)
    trouble, by_topic = _availability(rng, names)
    grants, findings = _access(rng, names, max(60, topics // 2))
    fences = _fences()
    return {
        "changes": _changes(rng, names, changes),
        "config_history": _config_history(rng, names, changes // 8),
        "drift": [
            {"action": "alter", "kind": "topic", "name": name, "field": field, "before": before, "after": after}
            for name, field, before, after in (
                ("orders", "retention.ms", "86400000", "604800000"),
                ("payments", "partitions", "12", "18"),
                ("returns", "", None, "3 partitions"),
            )
        ],
        "partition_trouble": trouble,
        "topic_availability": by_topic,
        "broker_fences": fences,
        "incidents": _incidents(),
        "broker_availability": [
            {
                "broker_id": broker,
                "out_of_sync_minutes": {4: 6120.5, 2: 84.0, 5: 310.2}.get(broker, 0.0),
                "offline_minutes": 22.5 if broker == 4 else 0.0,
                "below_min_isr_minutes": 71.0 if broker == 4 else 0.0,
                "partitions": {4: 38, 2: 40, 5: 37}.get(broker, 0),
                "fenced_minutes": sum(row["minutes"] for row in fences if row["broker_id"] == broker),
                "fences": sum(row["broker_id"] == broker for row in fences),
            }
            for broker in (4, 5, 2, 1, 3, 6)
        ],
        "leader_changes": _leader_changes(rng, names, changes // 4),
        "isr_flaps": _isr_flaps(rng, names, max(40, topics)),
        "broker_balance": _balance(topics * 7),
        "rack_violations": [
            {
                "topic_id": "id",
                "topic_name": names[n // 3],
                "partition": n,
                "replicas": [1, 4],
                "racks": ["eu-central-1b"],
                "possible_racks": 2,
            }
            for n in range(14)
        ],
        "reassignments": _reassignments(rng, names, 40),
        "quorum_leaders": _quorum(),
        "acl_grants": grants,
        "acl_findings": findings,
        **inventory_rows(names),
        **watched_rows(),
        **_traffic(rng, names),
        **_consumption(rng, names, max(9, topics // 40)),
    }


def _counted(values: Iterable[Any]) -> list[Row]:
    return [{"name": name, "count": count} for name, count in Counter(values).most_common()]


def _over_time(rows: list[Row], series: str) -> list[Row]:
    seconds = 3 * 3600
    found: Counter[tuple[int, str]] = Counter()
    for row in rows:
        cause = row[series].split(" ", 2)
        name = f"broker {cause[2]}" if cause[0] == "broker" else row[series]
        found[int(row["time"].timestamp()) // seconds * seconds, name] += 1
    return [
        {"start": datetime.fromtimestamp(start, UTC), "seconds": seconds, "series": name, "count": count}
        for (start, name), count in sorted(found.items())
    ]


def _worst_over_time(rows: list[Row]) -> list[Row]:
    seconds = 3 * 3600
    found: dict[tuple[int, int], list[Row]] = {}
    for row in rows:
        found.setdefault((int(row["observed_at"].timestamp()) // seconds * seconds, row["replica_id"]), []).append(row)
    return [
        {
            "start": datetime.fromtimestamp(start, UTC),
            "seconds": seconds,
            "series": node,
            **{name: max(row[name] for row in mine) for name in ("lag", "seconds_since_caught_up")},
        }
        for (start, node), mine in sorted(found.items())
    ]


def _lag_by_group(rows: list[Row]) -> list[Row]:
    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault(row["group_id"], []).append(row)
    return [
        {
            "group_id": group,
            "lag": sum(row["lag"] for row in mine),
            "lag_minutes": max(row["lag_minutes"] for row in mine),
            "lag_is_interpolated": any(row["lag_is_interpolated"] for row in mine),
            "lag_before": None if mine[0]["lag_before"] is None else sum(row["lag_before"] for row in mine),
            "partitions_behind": sum(row["lag"] > 0 for row in mine),
            "trend": mine[0]["trend"],
        }
        for group, mine in groups.items()
    ]


def answers(rows: dict[str, list[Row]], topics: int) -> dict[str, list[Row]]:
    """What the queries would have given, of these rows."""
    trouble, fences, plan = rows["partition_trouble"], rows["broker_fences"], rows["partition_plan"]
    totals: Row = {}
    for kind in ("offline", "below_min_isr", "under_replicated"):
        mine = [row for row in trouble if row[kind]]
        totals[f"{kind}_partitions"] = len(mine)
        totals[f"{kind}_now"] = sum(not row["is_over"] for row in mine)
    flaps: Counter[int] = Counter()
    for row in rows["isr_flaps"]:
        flaps[row["broker_id"]] += row["times"]
    by_group = _lag_by_group(rows["group_lag"])
    return {
        "inventory": [{"topics": topics, "partitions": topics * 7, "brokers": 6, "fenced_brokers": 1}],
        "changes_over_time": _over_time(rows["changes"], "kind"),
        "leader_changes_over_time": _over_time(rows["leader_changes"], "cause"),
        "trouble_totals": [totals],
        "outages": [_outage(kind, [row for row in trouble if row[kind]]) for kind in ("offline", "below_min_isr")],
        "fence_totals": [
            {
                "fences": sum(row["cause"] != "start" for row in fences),
                "silent": sum(row["cause"] == "silence" for row in fences),
                "open": sum(not row["is_over"] for row in fences),
            }
        ],
        "config_changes_by_setting": _counted(row["name"] for row in rows["config_history"]),
        "isr_flaps_by_broker": [
            {"broker_id": broker, "times": times, "replicas": sum(row["broker_id"] == broker for row in rows["isr_flaps"])}
            for broker, times in flaps.most_common()
        ],
        "lag_by_group": by_group[:12],
        "groups_by_trend": _counted(row["trend"] for row in by_group),
        "topics_by_verdict": _counted(row["verdict"] for row in rows["topic_use"]),
        "topic_risks": [{"topics": topics, "single": 1, "all_needed": 1}],
        "groups_by_verdict": _counted(row["verdict"] for row in rows["group_lag_growth"]),
        "quorum_lag_over_time": _worst_over_time(quorum_lag()),
        "findings_by_kind": _counted(row["finding"] for row in rows["acl_findings"]),
        "grants_by_principal": _counted(row["principal"] for row in rows["acl_grants"]),
        "reassignments_by_outcome": _counted(row["outcome"] for row in rows["reassignments"]),
        "violations_by_topic": _counted(row["topic_name"] for row in rows["rack_violations"]),
        "traffic_totals": [
            {
                "topics": len(rows["topic_traffic"]),
                "records": sum(row["records"] for row in rows["topic_traffic"]),
                "bytes": sum(row["bytes"] for row in rows["topic_traffic"]),
            }
        ],
        "plan_totals": [
            {
                "topics": sum(row["recommended"] > row["partitions"] for row in plan),
                "partitions": sum(row["recommended"] - row["partitions"] for row in plan),
            }
        ],
    }  # fmt: skip


def _outage(kind: str, rows: list[Row]) -> Row:
    """All of it as one: what `rows` have overlaps."""
    began, until = min(row["began"] for row in rows), max(row["until"] for row in rows)
    return {"kind": kind, "outages": 1, "minutes": _minutes(began, until), "began": began, "until": until}


def cluster(rows: dict[str, list[Row]], topics: int = 42, cluster_id: str = CLUSTER) -> ClusterContent:
    tables = {
        name: Rows(
            (*TABLES[name].columns, *((ALIKE,) if name in SECTIONS and SECTIONS[name].alike else ())),
            [
                {"cluster_id": cluster_id, ALIKE.name: 1, **row}
                for row in found[: SECTIONS[name].limit if name in SECTIONS else LIMIT]
            ],
            len(found),
            f"report-files/{name}.csv",
            TABLES[name].question,
        )
        for name, found in rows.items()
    }
    return ClusterContent(cluster_id, LogRange(0, 48_211, START, END), tables, answers(rows, topics))


def content(topics: int = 42, changes: int = 1800) -> ReportContent:
    return ReportContent((cluster(all_rows(topics, changes), topics),))


def quiet() -> ReportContent:
    """A cluster of which there is nothing to tell: all tables are there, and empty."""
    tables = {name: Rows(table.columns, [], 0, f"report-files/{name}.csv") for name, table in TABLES.items()}
    answered: dict[str, list[Row]] = {name: [] for name in QUERIES}
    return ReportContent((ClusterContent(CLUSTER, LogRange(0, 12, START, END), tables, answered),))


def _poisoned(value: Any) -> Any:
    """The same value with every text replaced by one that would run a script."""
    if isinstance(value, str):
        return EVIL
    if isinstance(value, list):
        return [_poisoned(each) for each in value]
    return value


def hostile() -> ReportContent:
    """The same, but every text would run a script, if anything let it."""
    whole = content().clusters[0]

    def rows(found: Any) -> list[dict[str, Any]]:
        return [{name: _poisoned(value) for name, value in row.items()} for row in found]

    columns = (Column(EVIL, "string", EVIL), Column("n", "int", EVIL))
    tables = {
        name: replace(table, rows=rows(table.rows), file=EVIL, question=EVIL) for name, table in whole.tables.items()
    }
    tables[EVIL] = Rows(columns, [{EVIL: EVIL, "n": 1}], 9, EVIL, EVIL)
    answered = {name: rows(found) for name, found in whole.answers.items()}
    return ReportContent((replace(whole, cluster_id=EVIL, tables=tables, answers=answered),))
