"""History: changes in words from the metadata log and, with a lake, the past of the cluster as of any moment."""

from __future__ import annotations

from typing import Any

from starlette.responses import Response

from barnabas.client.admin.brokers import Brokers
from barnabas.client.cluster import Cluster
from barnabas.console.errors import RefusedError
from barnabas.console.followers import followed
from barnabas.console.formats import query
from barnabas.console.history import MAX_ROWS, TABLES
from barnabas.console.listing import page_of
from barnabas.console.live import Question
from barnabas.console.visit import Visit
from barnabas.metadata.as_of import EVERYTHING, parse_as_of
from barnabas.operations.errors import OperationError
from barnabas.security.acl import AclOperation


async def history(visit: Visit) -> Response:
    tab = visit.query("tab", "log")
    if tab != "log":
        return await _from_lake(visit, tab)
    answer = await visit.ask(followed(visit.link))
    text, has_routine = visit.query("q").strip(), visit.query("routine") == "1"
    found = [] if answer.value is None else answer.value.changes
    rows = [each for each in found if text.lower() in each.sentence.lower() and (has_routine or not each.is_routine)]
    given = {"q": text, "routine": "1" if has_routine else ""}
    values = {
        "tab": tab,
        "followed": answer.value,
        "page": page_of(rows, visit.number("page", 1, least=1)),
        "hidden": 0 if has_routine else sum(each.is_routine for each in found),
        "given": given,
        "page_link": lambda number: query(**given, page=number),
        "tables": TABLES,
        "answer": None,
        "wanted": None,
    }
    return visit.page("history.html", "History", values, nav="history")


async def _from_lake(visit: Visit, tab: str) -> Response:
    reader, wanted = visit.lake, TABLES.get(tab)
    if reader is None or wanted is None:
        raise RefusedError(404, "there is no such page, or the console was started without --lake")
    moment_text = visit.query("as_of").strip() if wanted.has_moments else ""
    try:
        moment = parse_as_of(moment_text) if moment_text else EVERYTHING
    except ValueError as error:
        raise RefusedError(400, str(error)) from None

    async def ask(cluster: Cluster) -> list[dict[str, Any]]:
        return await reader.rows(wanted, await _visible_cluster(cluster), moment)

    answer = await visit.ask(Question(f"lake:{tab}:{moment}", ask, 300))
    values = {
        "tab": tab,
        "followed": None,
        "tables": TABLES,
        "answer": answer,
        "wanted": wanted,
        "given": {"as_of": moment_text},
        "max_rows": MAX_ROWS,
        "command": visit.entry.command("lake", "report") if visit.settings.lake else "",
    }
    return visit.page("history.html", "History", values, nav="history")


async def _visible_cluster(cluster: Cluster) -> str:
    """Return the id of the cluster if its user may read the metadata log, which the lake is made of."""
    found = await Brokers(cluster).describe_cluster(include_authorized_operations=True)
    allowed = found.authorized_operations
    if allowed is not None and AclOperation.CLUSTER_ACTION not in allowed and AclOperation.ALL not in allowed:
        raise OperationError("the lake has all metadata: you need CLUSTER_ACTION on the cluster to see it")
    return found.cluster_id or ""


PAGES = {"/history": history}
