"""Small answers that the plots and the key figures need, as SQL over the tables of silver and gold.

Its one rule: an answer stays small however long the log is: time is cut into at most `BUCKETS` pieces, the width of which
follows from how long the log is, and what is counted by name is cut after the first `TOP`.
"""

from __future__ import annotations

from dataclasses import dataclass

from barnabas.lake.declared_column import Column

BUCKETS = 72
TOP = 12
_WIDTHS_SECONDS = (60, 300, 900, 3600, 3 * 3600, 6 * 3600, 12 * 3600, 86400, 7 * 86400, 28 * 86400)

_CLUSTER = Column("cluster_id", "string", "The cluster.")


@dataclass(frozen=True, slots=True)
class Query:
    name: str
    tables: tuple[str, ...]
    """What it reads; a caller that has not all of them leaves the query out."""
    columns: tuple[Column, ...]
    sql: str


def _over_time(table: str, series: str, time: str = "time", values: str = "count(*) as count") -> str:
    """What the rows of a table come to in each piece of time, by series."""
    widths = " ".join(f"when seconds <= {width * BUCKETS} then {width}" for width in _WIDTHS_SECONDS)
    return f"""
with ranges as (
  select cluster_id, case {widths} else {364 * 86400} end as width from (
    select cluster_id, unix_seconds(max({time})) - unix_seconds(min({time})) as seconds
    from `{table}` where {time} is not null group by cluster_id
  )
)
select t.cluster_id, timestamp_seconds(floor(unix_seconds(t.{time}) / r.width) * r.width) as start,
  cast(r.width as bigint) as seconds, {series} as series, {values}
from `{table}` t join ranges r on t.cluster_id = r.cluster_id
where t.{time} is not null
group by all order by cluster_id, start, series"""


def _top(inner: str, order: str) -> str:
    """The first `TOP` rows of each cluster."""
    ranked = f"row_number() over (partition by cluster_id order by {order})"
    return (
        f"select * except (`_rank`) from (select *, {ranked} as `_rank` from ({inner}))"
        f" where `_rank` <= {TOP} order by cluster_id, `_rank`"
    )


def _over_time_columns(series: str) -> tuple[Column, ...]:
    return (
        _CLUSTER,
        Column("start", "timestamp", "When the piece of time begins."),
        Column("seconds", "bigint", "How long it is."),
        Column("series", "string", series),
        Column("count", "bigint", "How many."),
    )


_INVENTORY = """
select cluster_id, sum(topics) as topics, sum(partitions) as partitions, sum(brokers) as brokers,
  sum(fenced_brokers) as fenced_brokers
from (
  select cluster_id, 1 as topics, 0 as partitions, 0 as brokers, 0 as fenced_brokers from topics
    where valid_to_offset is null
  union all select cluster_id, 0, 1, 0, 0 from partitions where valid_to_offset is null
  union all select cluster_id, 0, 0, 1, if(fenced, 1, 0) from brokers where valid_to_offset is null
) group by cluster_id"""

_TROUBLE_TOTALS = """
select cluster_id,
  sum(if(offline, minutes, 0)) as offline_minutes,
  sum(if(below_min_isr, minutes, 0)) as below_min_isr_minutes,
  sum(if(under_replicated, minutes, 0)) as under_replicated_minutes,
  count(distinct if(offline, struct(topic_id, partition), null)) as offline_partitions,
  count(distinct if(below_min_isr, struct(topic_id, partition), null)) as below_min_isr_partitions,
  count(distinct if(under_replicated, struct(topic_id, partition), null)) as under_replicated_partitions,
  count_if(offline and not is_over) as offline_now,
  count_if(below_min_isr and not is_over) as below_min_isr_now,
  count_if(under_replicated and not is_over) as under_replicated_now
from partition_trouble group by cluster_id"""

_LAG_OF_NODES = f"""
select * except (`_worst`, `_rank`) from (
  select *, dense_rank() over (partition by cluster_id order by `_worst` desc, series) as `_rank` from (
    select *, max(lag) over (partition by cluster_id, series) as `_worst` from ({
    _over_time(
        "quorum_lag",
        "t.replica_id",
        "observed_at",
        "max(t.lag) as lag, max(t.seconds_since_caught_up) as seconds_since_caught_up",
    )
})
  )
) where `_rank` <= {TOP} order by cluster_id, start, series"""

_LAG_BY_GROUP = """
select cluster_id, group_id, sum(lag) as lag, max(lag_minutes) as lag_minutes,
  if(count(lag_before) = count(*), sum(lag_before), null) as lag_before,
  count_if(lag > 0) as partitions_behind,
  case when count_if(trend = 'stopped') > 0 then 'stopped' when count_if(trend = 'growing') > 0 then 'growing'
    when count_if(trend = 'steady') > 0 then 'steady' when count_if(trend = 'falling') > 0 then 'falling'
    when count_if(trend = 'unknown') > 0 then 'unknown'
    else 'none' end as trend
from group_lag group by cluster_id, group_id"""

_COUNTED = (_CLUSTER, Column("name", "string", "What is counted."), Column("count", "bigint", "How many."))


def _counted(table: str, name: str) -> str:
    return f"select cluster_id, {name} as name, count(*) as count from `{table}` group by cluster_id, {name}"


def _numbers(**docs: str) -> tuple[Column, ...]:
    return _CLUSTER, *(
        Column(name, "double" if name.endswith("minutes") else "bigint", doc) for name, doc in docs.items()
    )


_DECLARED = (
    Query(
        "inventory",
        ("topics", "partitions", "brokers"),
        _numbers(
            topics="Topics at the end of the log.",
            partitions="Their partitions.",
            brokers="Registered brokers.",
            fenced_brokers="Those of them that are fenced.",
        ),
        _INVENTORY,
    ),
    Query(
        "changes_over_time",
        ("changes",),
        _over_time_columns("The kind of what changed."),
        _over_time("changes", "t.kind"),
    ),
    Query(
        "leader_changes_over_time",
        ("leader_changes",),
        _over_time_columns("The cause, without the broker's number."),
        _over_time("leader_changes", "regexp_replace(t.cause, '^broker -?[0-9]+ ', 'broker ')"),
    ),
    Query(
        "trouble_totals",
        ("partition_trouble",),
        _numbers(
            offline_minutes="Without a leader, summed over partitions.",
            below_min_isr_minutes="Below the minimum in sync.",
            under_replicated_minutes="With a replica out of sync.",
            offline_partitions="How many partitions that concerned.",
            below_min_isr_partitions="How many partitions that concerned.",
            under_replicated_partitions="How many partitions that concerned.",
            offline_now="Those of them for which it goes on.",
            below_min_isr_now="Those of them for which it goes on.",
            under_replicated_now="Those of them for which it goes on.",
        ),
        _TROUBLE_TOTALS,
    ),
    Query(
        "fence_totals",
        ("broker_fences",),
        _numbers(
            fences="How often a broker was fenced while it ran.",
            silent="How often because it was not heard of.",
            open="How many still are.",
        ),
        "select cluster_id, count_if(cause != 'start') as fences, count_if(cause = 'silence') as silent,"
        " count_if(not is_over) as open from broker_fences group by cluster_id",
    ),
    Query(
        "config_changes_by_setting",
        ("config_history",),
        _COUNTED,
        _top(_counted("config_history", "name"), "count desc, name"),
    ),
    Query(
        "isr_flaps_by_broker",
        ("isr_flaps",),
        (
            _CLUSTER,
            Column("broker_id", "int", "The broker."),
            Column("times", "bigint", "How often one of its replicas left."),
            Column("replicas", "bigint", "How many of its replicas did."),
        ),
        _top(
            "select cluster_id, broker_id, sum(times) as times, count(*) as replicas from isr_flaps group by all",
            "times desc, broker_id",
        ),
    ),
    Query(
        "lag_by_group",
        ("group_lag",),
        (
            _CLUSTER,
            Column("group_id", "string", "The group."),
            Column("lag", "bigint", "Over all of its partitions."),
            Column("lag_minutes", "double", "At the worst."),
            Column("lag_before", "bigint", "Its lag at the commits before the last; null: not known of all."),
            Column("partitions_behind", "bigint", "Partitions that it has not read to the end."),
            Column("trend", "string", "The worst of its partitions."),
        ),
        _top(_LAG_BY_GROUP, "trend in ('growing', 'stopped') desc, lag desc, group_id"),
    ),
    Query(
        "groups_by_trend",
        ("group_lag",),
        _COUNTED,
        f"select cluster_id, trend as name, count(*) as count from ({_LAG_BY_GROUP}) group by cluster_id, trend",
    ),
    Query(
        "quorum_lag_over_time",
        ("quorum_lag",),
        (
            *_over_time_columns("")[:-2],
            Column("series", "int", "The node; those that were furthest behind."),
            Column("lag", "bigint", "At the worst."),
            Column("seconds_since_caught_up", "double", "At the worst."),
        ),
        _LAG_OF_NODES,
    ),
    Query("topics_by_verdict", ("topic_use",), _COUNTED, _counted("topic_use", "verdict")),
    Query(
        "topic_risks",
        ("topic_inventory",),
        _numbers(
            topics="Topics.",
            single="Those with one replica.",
            all_needed="Those with several, of which min.insync.replicas wants all.",
        ),
        "select cluster_id, count(*) as topics, count_if(replication_factor < 2) as single,"
        " count_if(replication_factor > 1 and min_insync_replicas >= replication_factor) as all_needed"
        " from topic_inventory group by cluster_id",
    ),
    Query("groups_by_verdict", ("group_lag_growth",), _COUNTED, _counted("group_lag_growth", "verdict")),
    Query("findings_by_kind", ("acl_findings",), _COUNTED, _counted("acl_findings", "finding")),
    Query(
        "grants_by_principal",
        ("acl_grants",),
        _COUNTED,
        _top(_counted("acl_grants", "principal"), "count desc, name"),
    ),
    Query("reassignments_by_outcome", ("reassignments",), _COUNTED, _counted("reassignments", "outcome")),
    Query(
        "violations_by_topic",
        ("rack_violations",),
        _COUNTED,
        _top(_counted("rack_violations", "topic_name"), "count desc, name"),
    ),
    Query(
        "traffic_totals",
        ("topic_traffic",),
        _numbers(topics="Topics with records.", records="Records.", bytes="Bytes of them."),
        "select cluster_id, count(*) as topics, sum(records) as records, sum(bytes) as bytes"
        " from topic_traffic group by cluster_id",
    ),
    Query(
        "plan_totals",
        ("partition_plan",),
        _numbers(topics="Topics that want more partitions.", partitions="How many more, together."),
        "select cluster_id, count_if(recommended > partitions) as topics, sum(recommended - partitions) as partitions"
        " from partition_plan group by cluster_id",
    ),
)
QUERIES = {query.name: query for query in _DECLARED}
