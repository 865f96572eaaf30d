"""History: changes in words from the metadata log and, with a lake, the past as of any moment, and the report."""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Mapping
from typing import Any

from starlette.responses import FileResponse, Response

from barnabas.client.admin.brokers import Brokers
from barnabas.client.cluster import Cluster
from barnabas.console.errors import RefusedError
from barnabas.console.followers import followed
from barnabas.console.forms import checked
from barnabas.console.history import DRIFT_COLUMNS, HEADS, MAX_ROWS, TABLES, Report
from barnabas.console.live import Question
from barnabas.console.visit import Visit
from barnabas.console.who import who_of
from barnabas.metadata.as_of import EVERYTHING, parse_as_of
from barnabas.operations.errors import OperationError
from barnabas.security.acl import AclOperation

_NOTHING: Mapping[str, Any] = {
    **dict.fromkeys(("followed", "trails", "answer", "wanted", "given", "command", "written_s")),
    "heads": HEADS,
    "tables": TABLES,
}
"""What the template knows of tabs that are not shown."""


async def history(visit: Visit) -> Response:
    tab = visit.query("tab", "log")
    if tab != "log":
        return await _from_lake(visit, tab)
    answer = await visit.ask(followed(visit.link))
    text, has_routine = visit.query("q").strip(), visit.query("routine") == "1"
    found = [] if answer.value is None else answer.value.changes
    rows = [each for each in found if text.lower() in each.sentence.lower() and (has_routine or not each.is_routine)]
    trails = await who_of(visit)
    given = {"q": text, "routine": "1" if has_routine else ""}
    values = {
        **_NOTHING,
        "tab": tab,
        "followed": answer.value,
        "page": visit.listed(rows),
        "hidden": 0 if has_routine else sum(each.is_routine for each in found),
        "given": given,
        "trails": trails,
    }
    return visit.page("history.html", "History", values, nav="history")


async def _from_lake(visit: Visit, tab: str) -> Response:
    reader, wanted, declared = visit.lake, TABLES.get(tab), visit.entry.declared
    if reader is None or (wanted is None and tab not in ("drift", "report")):
        raise RefusedError(404, "there is no such page, or the console was started without --lake")
    if tab == "report":
        return _report_page(visit)
    moment_text, subject = visit.query("as_of").strip(), visit.query("subject").strip()
    if wanted is not None and not wanted.has_moments:
        moment_text = ""
    with checked():
        moment = parse_as_of(moment_text) if moment_text else EVERYTHING

    async def ask(cluster: Cluster) -> list[dict[str, Any]]:
        cluster_id = await _visible_cluster(cluster)
        if wanted is None:
            return await reader.drift(declared, cluster_id, moment)
        return await reader.rows(wanted, cluster_id, moment, subject if wanted.subject else "")

    has_answer = wanted is not None or bool(declared)
    answer = await visit.ask(Question(f"lake:{tab}:{moment}:{subject}", ask, 300)) if has_answer else None
    trails = await who_of(visit) if wanted is not None and wanted.place else None
    values = {
        **_NOTHING,
        "tab": tab,
        "answer": answer,
        "wanted": wanted,
        "columns": DRIFT_COLUMNS if wanted is None else wanted.columns,
        "trails": trails,
        "given": {"as_of": moment_text, "subject": subject},
        "max_rows": MAX_ROWS,
        "progress": reader.progress,
    }
    return visit.page("history.html", "History", values, nav="history")


# --- the report


def _report_page(visit: Visit) -> Response:
    report = visit.settings.report
    words = ["barnabas", "lake", "report", "--lake", str(visit.settings.lake)]
    words += [] if report is None else ["--out", str(report)]
    values = {
        **_NOTHING,
        "tab": "report",
        "written_s": None if report is None else Report(report).written_s,
        "has_report": report is not None,
        "command": shlex.join(words),
    }
    return visit.page("history.html", "History", values, nav="history")


async def report(visit: Visit) -> Response:
    """Send the report on the lake, or a file of it."""
    if visit.lake is None or visit.settings.report is None:
        raise RefusedError(404, "the console was started without --lake and --report")
    await visit.now(_visible_cluster)
    if visit.entry.requires_login and len(await visit.lake.clusters()) > 1:
        raise RefusedError(403, "the report is about several clusters, and you are logged in to one of them")
    name = str(visit.request.path_params.get("name", "index.html"))
    try:
        file = await asyncio.to_thread(Report(visit.settings.report).file, name)
    except OSError:
        raise RefusedError(404, "the report has no such file") from None
    return FileResponse(file, headers={"Content-Security-Policy": Report.policy()})


async def _visible_cluster(cluster: Cluster) -> str:
    """Return the id of the cluster if its user may read the metadata log, which the lake is made of."""
    found = await Brokers(cluster).describe_cluster(include_authorized_operations=True)
    allowed = found.authorized_operations
    if allowed is not None and AclOperation.CLUSTER_ACTION not in allowed and AclOperation.ALL not in allowed:
        raise OperationError("the lake has all metadata: you need CLUSTER_ACTION on the cluster to see it")
    return found.cluster_id or ""


PAGES = {"/history": history, "/history/report/": report, "/history/report/{name:path}": report}
