"""Metadata: the tree, live or as of a moment, with search; the difference between two moments; the log as it grows."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from functools import partial
from itertools import islice
from typing import Any

from starlette.responses import Response

from barnabas.client.cluster import Cluster
from barnabas.console.errors import EXPECTED, RefusedError, problem_of
from barnabas.console.followers import followed, image_as_of
from barnabas.console.live import Question
from barnabas.console.visit import Visit
from barnabas.metadata import tree
from barnabas.metadata.as_of import parse_as_of
from barnabas.metadata.configs import ConfigResource
from barnabas.metadata.image import MetadataImage
from barnabas.operations.configs.history import is_hidden
from barnabas.operations.errors import OperationError
from barnabas.operations.metadata_difference import Difference, difference_between

ROOT = "image"
_MAX_FOUND = 500


async def metadata(visit: Visit) -> Response:
    tab = visit.query("tab", "tree")
    if tab not in ("tree", "log", "difference"):
        raise RefusedError(404, "there is no such page")
    if tab == "difference":
        return await _difference(visit)
    path, text = visit.query("path").strip("/") or ROOT, visit.query("find").strip()
    values = {**_NOTHING, "tab": tab, "path": path, "text": text}
    if tab == "log":
        answer = await visit.ask(followed(visit.link))
        wanted = visit.query("type")
        logged = [] if answer.value is None else answer.value.records
        values |= {
            "followed": answer.value,
            "wanted": wanted,
            "page": visit.listed([each for each in logged if not wanted or each.type == wanted]),
        }
        return visit.page("metadata.html", "Metadata", values, nav="metadata")
    return visit.page("metadata.html", "Metadata", values | await _tree(visit, path, text), nav="metadata")


_NOTHING: Mapping[str, Any] = {
    **dict.fromkeys(("followed", "image", "content", "problem", "difference")),
    "given": {},
    "crumbs": [],
}
"""What the template knows of tabs that are not shown."""


async def _tree(visit: Visit, path: str, text: str) -> dict[str, Any]:
    """Return the place in the tree: of the log as it grows, or as of a moment."""
    moment_text = visit.query("as_of").strip()
    values: dict[str, Any] = {"given": {"as_of": moment_text}, "page": visit.listed([]), "found": []}
    image: MetadataImage | None = None
    try:
        if moment_text:
            image = await image_as_of(visit.link, parse_as_of(moment_text))
        else:
            answer = await visit.ask(followed(visit.link))
            image = None if answer.value is None else answer.value.image
        if image is None:
            return values
        if text:
            sought = await visit.once(_search(visit, image if moment_text else None, path, text))
            values |= {"found": sought.value or [], "problem": sought.problem}
        else:
            seen = tree.look(image, path, _is_hidden)
            values |= {"content": seen} if isinstance(seen, str) else {"page": visit.listed(seen)}
    except (tree.NoSuchPathError, ValueError) as error:
        values["problem"] = str(error)
    except EXPECTED as error:
        values["problem"] = problem_of(error)
    parts = path.split("/")
    crumbs = [(part, "/".join(parts[: at + 1])) for at, part in enumerate(parts)]
    return {**values, "image": image, "crumbs": crumbs}


def _search(visit: Visit, then: MetadataImage | None, path: str, text: str) -> Question[list[str]]:
    """Return the question for paths, now or then. It is asked once for all visits, because it takes long."""
    pattern = text if "*" in text else f"*{text}*"
    follow = followed(visit.link)

    async def ask(cluster: Cluster) -> list[str]:
        image = (await follow.ask(cluster)).image if then is None else then
        try:
            return await asyncio.to_thread(lambda: list(islice(tree.find(image, path, pattern), _MAX_FOUND)))
        except tree.NoSuchPathError as error:
            raise OperationError(str(error)) from None

    return Question(f"find:{'now' if then is None else then.offset}:{path}:{pattern}", ask, 15)


def _is_hidden(resource: ConfigResource, name: str) -> bool:
    return is_hidden(resource.type, name)


async def _difference(visit: Visit) -> Response:
    given = {name: visit.query(name).strip() for name in ("from", "to")}
    found: Difference | None = None
    problem = None
    if given["from"]:
        try:
            begin, end = parse_as_of(given["from"]), parse_as_of(given["to"] or None)
            ask = partial(difference_between, begin=begin, end=end)
            answer = await visit.once(Question(f"difference:{begin}:{end}", ask, 60))
            found, problem = None if answer.problem else answer.value, answer.problem
        except ValueError as error:
            problem = str(error)
    values = {**_NOTHING, "tab": "difference", "difference": found, "problem": problem, "given": given}
    return visit.page("metadata.html", "Metadata", values, nav="metadata")


PAGES = {"/metadata": metadata}
