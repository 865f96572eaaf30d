"""The report in a few lines of text: problems first, then what is good, in one line, then other figures."""

from __future__ import annotations

from barnabas.lake.report.chapters import key_figures
from barnabas.lake.report.charts import answer_of
from barnabas.lake.report.content import ClusterContent, ReportContent
from barnabas.lake.report.figures import KeyFigure, Verdict
from barnabas.lake.report.queries import INVENTORY
from barnabas.lake.report.text import count, counted, iso, visible


def summarize(content: ReportContent) -> str:
    """Return lines for a terminal. Control characters from logs are escaped."""
    if not content.clusters:
        return "The lake has no cluster yet.\n"
    return "\n".join(_cluster(cluster) for cluster in content.clusters)


def _cluster(cluster: ClusterContent) -> str:
    figures = key_figures(cluster)
    signs = {Verdict.ACT: "!!", Verdict.AWARE: "! "}
    look = [figure for figure in figures if figure.verdict in signs]
    good = [figure for figure in figures if figure.verdict is Verdict.GOOD]
    plain = [figure for figure in figures if figure.verdict is Verdict.PLAIN]
    lines = [_head(cluster)]
    wide = max((len(_value(figure)) for figure in look), default=0)
    lines += [f"  {signs[figure.verdict]} {_value(figure):<{wide}}  {visible(figure.sentence)}" for figure in look]
    if not look and good:
        lines.append("  Nothing to look at.")
    if good:
        lines.append(f"  good: {', '.join(figure.name for figure in good)}")
    lines += [f"  {_value(figure)}: {visible(figure.sentence)}" for figure in plain]
    return "\n".join(lines) + "\n"


def _value(figure: KeyFigure) -> str:
    return visible(f"{figure.name} {figure.value}")


def _head(cluster: ClusterContent) -> str:
    parts = [f"cluster {visible(cluster.cluster_id)}"]
    if rows := answer_of(cluster, INVENTORY):
        parts.append(", ".join(counted(rows[0][f"{noun}s"], noun) for noun in ("broker", "topic", "partition")))
    log = cluster.log
    if log.last_time is None:
        return ": ".join(parts) + "; nothing of its metadata log has been read"
    place = "" if log.last_offset is None else f" (offset {count(log.last_offset)})"
    return ": ".join(parts) + f"; up to {iso(log.last_time)}{place}"
