"""Metadata: the live tree with search, the difference between two moments, and the log as it grows."""

from __future__ import annotations

from functools import partial
from itertools import islice
from typing import Any

from starlette.responses import Response

from barnabas.console.errors import EXPECTED, RefusedError, problem_of
from barnabas.console.followers import followed
from barnabas.console.visit import Visit
from barnabas.metadata import tree
from barnabas.metadata.as_of import parse_as_of
from barnabas.metadata.configs import ConfigResource
from barnabas.operations.configs.history import is_hidden
from barnabas.operations.metadata_difference import Difference, difference_between

ROOT = "image"
_MAX_NAMES = 1_000
_MAX_FOUND = 500


async def metadata(visit: Visit) -> Response:
    tab = visit.query("tab", "tree")
    if tab not in ("tree", "log", "difference"):
        raise RefusedError(404, "there is no such page")
    if tab == "difference":
        return await _difference(visit)
    answer = await visit.ask(followed(visit.link))
    path, text = visit.query("path").strip("/") or ROOT, visit.query("find").strip()
    names: list[str] = []
    content = problem = None
    found: list[str] = []
    if answer.value is not None and tab == "tree":
        image = answer.value.image
        try:
            if text:
                pattern = text if "*" in text else f"*{text}*"
                found = list(islice(tree.find(image, path, pattern), _MAX_FOUND))
            names = tree.ls(image, path)
            try:
                content = tree.cat(image, path, _is_hidden)
                names = []
            except tree.NoSuchPathError:
                pass  # a directory
        except tree.NoSuchPathError as error:
            problem = str(error)
    parts = path.split("/")
    values: dict[str, Any] = {
        "tab": tab,
        "followed": answer.value,
        "path": path,
        "crumbs": [(part, "/".join(parts[: at + 1])) for at, part in enumerate(parts)],
        "names": names[:_MAX_NAMES],
        "count": len(names),
        "content": content,
        "problem": problem,
        "text": text,
        "found": found,
        "wanted": visit.query("type"),
        "difference": None,
        "given": {},
    }
    return visit.page("metadata.html", "Metadata", values, nav="metadata")


def _is_hidden(resource: ConfigResource, name: str) -> bool:
    return is_hidden(resource.type, name)


async def _difference(visit: Visit) -> Response:
    given = {name: visit.query(name).strip() for name in ("from", "to")}
    found: Difference | None = None
    problem = None
    if given["from"]:
        try:
            begin, end = parse_as_of(given["from"]), parse_as_of(given["to"] or None)
            found = await visit.now(partial(difference_between, begin=begin, end=end))
        except ValueError as error:
            problem = str(error)
        except EXPECTED as error:
            problem = problem_of(error)
    values: dict[str, Any] = {
        "tab": "difference",
        "difference": found,
        "problem": problem,
        "given": given,
        "followed": None,
        "crumbs": [],
        "text": "",
        "path": ROOT,
    }
    return visit.page("metadata.html", "Metadata", values, nav="metadata")


PAGES = {"/metadata": metadata}
