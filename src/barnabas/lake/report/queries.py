"""Building blocks of the chapters' queries: small answers for charts and key figures, as SQL over silver and gold tables.

Its one rule: an answer stays small however long the log is. Time is divided into at most `BUCKETS` intervals, whose width
depends on the length of the log; counts by name are limited to the first `TOP`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from barnabas.lake.declared_column import Column

BUCKETS = 72
TOP = 12
_WIDTHS_SECONDS = (60, 300, 900, 3600, 3 * 3600, 6 * 3600, 12 * 3600, 86400, 7 * 86400, 28 * 86400)

CLUSTER = Column("cluster_id", "string", "The cluster.")


@dataclass(frozen=True, slots=True)
class Query:
    name: str
    tables: tuple[str, ...]
    """The tables that it reads; a caller that lacks one skips the query."""
    columns: tuple[Column, ...]
    sql: str


def over_time(table: str, series: str, time: str = "time", values: str = "count(*) as count") -> str:
    """Aggregate the rows of a table per interval, by series."""
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


def top(inner: str, order: str) -> str:
    """Select the first `TOP` rows of each cluster."""
    ranked = f"row_number() over (partition by cluster_id order by {order})"
    return (
        f"select * except (`_rank`) from (select *, {ranked} as `_rank` from ({inner}))"
        f" where `_rank` <= {TOP} order by cluster_id, `_rank`"
    )


def over_time_columns(series: str) -> tuple[Column, ...]:
    return (
        CLUSTER,
        Column("start", "timestamp", "The start of the interval."),
        Column("seconds", "bigint", "The length of the interval."),
        Column("series", "string", series),
        Column("count", "bigint", "The number."),
    )


COUNTED = (CLUSTER, Column("name", "string", "What is counted."), Column("count", "bigint", "The number."))


def counted_by(table: str, name: str) -> str:
    """Count the rows of a table by the values of a column."""
    return f"select cluster_id, {name} as name, count(*) as count from `{table}` group by cluster_id, {name}"


def numbers(**docs: str) -> tuple[Column, ...]:
    """Return columns of numbers, by name, with their descriptions."""
    return CLUSTER, *(
        Column(name, "double" if name.endswith("minutes") else "bigint", doc) for name, doc in docs.items()
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

INVENTORY = Query(
    "inventory",
    ("topics", "partitions", "brokers"),
    numbers(
        topics="Topics at the end of the log.",
        partitions="Their partitions.",
        brokers="Registered brokers.",
        fenced_brokers="Fenced brokers.",
    ),
    _INVENTORY,
)
"""For the heads of page and summary, and for key figures of several chapters."""


def totals_sql(tables: Iterable[str]) -> str:
    """Count the rows of each table by cluster: cluster_id, name, total."""
    return " union all ".join(
        f"select cluster_id, '{table}' as name, count(*) as total from `{table}` group by cluster_id"
        for table in tables
    )


RANGE_TABLE = "metadata_records"
RANGE_SQL = (
    "select cluster_id, min(offset) as first_offset, max(offset) as last_offset,"
    f" min(append_time) as first_time, max(append_time) as last_time from {RANGE_TABLE} group by cluster_id"
)
"""The fields of `LogRange`, for each cluster."""
