"""Findings: numbers about the clusters of a lake that somebody should watch, read without Spark, as Prometheus metrics.

Its one rule: a finding that cannot be read now, because its table is not stored or not current, has no samples. It is never 0.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from barnabas.lake.asking.stored import StoredLake
from barnabas.lake.keeping.manifest import NotStoredError

PREFIX: Final = "barnabas_lake_"
_NOW: Final = '"valid_to_offset" IS NULL'


class Finding(NamedTuple):
    name: str
    help: str
    table: str
    query: str
    """Its last column is the value; the others are labels."""
    type: str = "gauge"


FINDINGS: Final = (
    Finding(
        "partitions",
        "Partitions of the cluster.",
        "partitions",
        f"SELECT cluster_id, count(*) FROM partitions WHERE {_NOW} GROUP BY 1",
    ),
    Finding(
        "partitions_without_leader",
        "Partitions that have no leader.",
        "partitions",
        f"SELECT cluster_id, count(*) FILTER (leader < 0) FROM partitions WHERE {_NOW} GROUP BY 1",
    ),
    Finding(
        "partitions_under_replicated",
        "Partitions with fewer in-sync replicas than replicas.",
        "partitions",
        f"SELECT cluster_id, count(*) FILTER (len(isr) < len(replicas)) FROM partitions WHERE {_NOW} GROUP BY 1",
    ),
    Finding(
        "brokers_fenced",
        "Registered brokers that are fenced.",
        "brokers",
        f"SELECT cluster_id, count(*) FILTER (fenced) FROM brokers WHERE {_NOW} GROUP BY 1",
    ),
    Finding(
        "acl_findings",
        "Findings about ACLs, by kind.",
        "acl_findings",
        "SELECT cluster_id, finding, count(*) FROM acl_findings GROUP BY ALL",
    ),
    Finding(
        "group_lag",
        "Records that a group has not read.",
        "group_lag",
        "SELECT cluster_id, group_id, topic, sum(lag) FROM group_lag GROUP BY ALL",
    ),
    Finding(
        "group_lag_minutes",
        "Age of the oldest record that a group has not read.",
        "group_lag",
        "SELECT cluster_id, group_id, max(lag_minutes) FROM group_lag GROUP BY ALL",
    ),
    Finding(
        "groups_stopped",
        "Groups with unread records that have read nothing for a while.",
        "group_lag",
        "SELECT cluster_id, count(DISTINCT group_id) FILTER (trend = 'stopped') FROM group_lag GROUP BY 1",
    ),
    Finding(
        "changes_total",
        "Changes in the metadata log, by kind.",
        "changes",
        "SELECT cluster_id, kind, count(*) FROM changes GROUP BY ALL",
        "counter",
    ),
    Finding(
        "quarantined_total",
        "Places in logs that could not be read.",
        "quarantine",
        "SELECT cluster_id, count(*) FROM quarantine GROUP BY 1",
        "counter",
    ),
)


class Sample(NamedTuple):
    finding: str
    labels: Mapping[str, str]
    value: float


def samples(stored: StoredLake) -> list[Sample]:
    """Return what the stored tables say, and how current the lake is."""
    found = list[Sample]()
    for finding in FINDINGS:
        try:
            stored.view(finding.table)
        except NotStoredError:
            continue
        rows = stored.run(f"{finding.query} ORDER BY ALL")
        for *labels, value in rows.rows:
            if value is not None:
                named = dict(zip(rows.names, map(str, labels), strict=False))
                found.append(Sample(finding.name, named, float(value)))
    found += [Sample("end_offset", {"cluster_id": cluster}, float(end)) for cluster, _, end in stored.places()]
    return [*found, Sample("commit_timestamp_seconds", {}, stored.manifest.time_ms / 1000)]


_OTHERS: Final = {
    "end_offset": ("The last offset of the metadata log that the lake has read.", "gauge"),
    "commit_timestamp_seconds": ("When the lake was last written.", "gauge"),
}
TYPES: Final = {finding.name: (finding.help, finding.type) for finding in FINDINGS} | _OTHERS


def exposition(found: Iterable[Sample]) -> str:
    """Return samples in the text format of Prometheus."""
    by_name: dict[str, list[Sample]] = {}
    for sample in found:
        by_name.setdefault(sample.finding, []).append(sample)
    lines = list[str]()
    for name, group in by_name.items():
        explained, kind = TYPES[name]
        lines += [f"# HELP {PREFIX}{name} {explained}", f"# TYPE {PREFIX}{name} {kind}"]
        for sample in group:
            labels = ",".join(f'{label}="{_escaped(value)}"' for label, value in sample.labels.items())
            lines.append(f"{PREFIX}{name}{f'{{{labels}}}' if labels else ''} {number_text(sample.value)}")
    return "\n".join(lines) + "\n"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def number_text(value: float) -> str:
    """Return a number as short as possible."""
    return str(int(value)) if math.isfinite(value) and value == int(value) else repr(value)


# --- limits


class Limit(NamedTuple):
    """No sample of the finding may be above this number."""

    finding: str
    most: float


class Breach(NamedTuple):
    sample: Sample
    limit: Limit

    def sentence(self) -> str:
        value, most = number_text(self.sample.value), number_text(self.limit.most)
        where = ", ".join(f"{label} {value}" for label, value in self.sample.labels.items()) or "the lake"
        return f"{self.sample.finding} is {value}, above {most}: {where}"


def parse_limit(text: str) -> Limit:
    """Parse NAME=NUMBER. Raises ValueError.

    >>> parse_limit("partitions_without_leader=0")
    Limit(finding='partitions_without_leader', most=0.0)
    """
    name, sign, number = text.partition("=")
    name = name.strip().removeprefix(PREFIX)
    if not sign or name not in TYPES:
        raise ValueError(f"{text}: must be NAME=NUMBER with one of {', '.join(TYPES)}")
    try:
        most = float(number)
    except ValueError:
        raise ValueError(f"{text}: {number!r} is not a number") from None
    if math.isnan(most):
        raise ValueError(f"{text}: {number!r} is not a number")
    return Limit(name, most)


def breaches(found: Iterable[Sample], limits: Sequence[Limit]) -> Iterator[Breach]:
    """Yield the samples that are above their limit."""
    for sample in found:
        for limit in limits:
            if sample.finding == limit.finding and sample.value > limit.most:
                yield Breach(sample, limit)
