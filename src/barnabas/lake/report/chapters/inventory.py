"""Inventory: brokers and topics."""

from __future__ import annotations

from barnabas.lake.report.content import ClusterContent
from barnabas.lake.report.figures import KeyFigure, judged, one
from barnabas.lake.report.queries import INVENTORY, Query, numbers
from barnabas.lake.report.section import Chapter, Section
from barnabas.lake.report.text import count, counted

# --- brokers

BROKER_INVENTORY = Section(
    "broker_inventory",
    question="Which brokers exist, and with which settings?",
    order="broker_id",
    empty="No broker is registered.",
    columns=("broker_id", "rack", "endpoints", "fenced", "log_dirs", "replicas", "leaders", "settings", "since"),
)


# --- topics

TOPIC_RISKS = Query(
    "topic_risks",
    ("topic_inventory",),
    numbers(
        topics="Topics.",
        single="Topics with one replica.",
        all_needed="Topics with several replicas, of which min.insync.replicas requires all.",
    ),
    "select cluster_id, count(*) as topics, count_if(replication_factor < 2) as single,"
    " count_if(replication_factor > 1 and min_insync_replicas >= replication_factor) as all_needed"
    " from topic_inventory group by cluster_id",
)


def topics_one_broker_can_stop(cluster: ClusterContent) -> KeyFigure | None:
    row, inventory = one(cluster, TOPIC_RISKS), one(cluster, INVENTORY)
    if row is None or inventory is None or inventory["brokers"] < 2:
        return None
    single, all_needed = row["single"], row["all_needed"]
    found = [f"{counted(single, 'topic')} with one replica"] if single else []
    found += [f"{count(all_needed)} that need all of theirs in sync"] if all_needed else []
    said = " and ".join(found) or f"None of {counted(row['topics'], 'topic')}"
    value = count(single + all_needed)
    return KeyFigure("topics one broker can stop", value, judged(found), f"{said}.")


TOPIC_INVENTORY = Section(
    "topic_inventory",
    question="Which topics exist, and with which settings, ACLs and consumer groups?",
    order="replication_factor < 2 desc, partitions desc, topic",
    empty="There are no topics.",
    columns=(
        "topic",
        "partitions",
        "replication_factor",
        "min_insync_replicas",
        "settings",
        "acl_entries",
        "groups",
        "created",
    ),
    queries=(TOPIC_RISKS,),
    figures=(topics_one_broker_can_stop,),
)


CHAPTER = Chapter("Inventory", (BROKER_INVENTORY, TOPIC_INVENTORY))
