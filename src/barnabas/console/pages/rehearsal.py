"""Rehearsal: what the controller would decide, and what would become of the cluster, if something happened. Nothing is sent."""

from __future__ import annotations

import asyncio
from itertools import islice
from typing import NamedTuple

from starlette.responses import RedirectResponse, Response

from barnabas.client.cluster import Cluster
from barnabas.console.followers import followed
from barnabas.console.formats import query
from barnabas.console.live import Question
from barnabas.console.visit import Visit
from barnabas.operations.errors import OperationError
from barnabas.operations.rehearsal.asked import ELECTIONS, KINDS, happening
from barnabas.operations.rehearsal.happenings import Happening
from barnabas.operations.rehearsal.live import look_around
from barnabas.operations.rehearsal.outcome import BrokerOutcome, PartitionOutcome
from barnabas.operations.rehearsal.rehearse import Rehearsal, Scene, rehearse
from barnabas.operations.rehearsal.words import ShownRecord, notes_of, records_of, summary, then, worst_first

MAX_STEPS = 20
_MAX_PARTITIONS = 2_000
_MAX_RECORDS = 200


class _Rehearsed(NamedTuple):
    """What a page shows of a rehearsal, made once for all visits. `problem` says why there is none."""

    problem: str | None
    summary: str = ""
    is_worse: bool = False
    steps: tuple[tuple[str, int, tuple[str, ...]], ...] = ()
    """What happens, the number of records that it writes, and what is refused."""
    partitions: tuple[PartitionOutcome, ...] = ()
    partition_count: int = 0
    brokers: tuple[BrokerOutcome, ...] = ()
    records: tuple[ShownRecord, ...] = ()
    record_count: int = 0
    warnings: tuple[str, ...] = ()


async def rehearsal(visit: Visit) -> Response:
    asked = visit.request.query_params.getlist("do")[:MAX_STEPS]
    kind, subject = visit.query("kind"), visit.query("subject").strip()
    at_once = visit.query("at_once") == "1"
    if kind and subject and len(asked) < MAX_STEPS:
        # One address for one rehearsal, that can be sent to somebody else.
        return RedirectResponse(f"{visit.base}/rehearsal{_query([*asked, f'{kind}:{subject}'], at_once)}", 303)
    pairs = [(name, about) for name, _, about in (each.partition(":") for each in asked)]
    happenings, problem = [], None
    try:
        happenings = [happening(*pair) for pair in pairs]
    except ValueError as error:
        problem = str(error)
    found = await visit.ask(_question(visit, asked, happenings, at_once)) if happenings else None
    words = [word for name, about in pairs for word in (f"--{name}", about)] or ["--kill", "NODE"]
    values = {
        "asked": [
            (name, about, _query([*asked[:at], *asked[at + 1 :]], at_once)) for at, (name, about) in enumerate(pairs)
        ],
        "given": asked,
        "at_once": at_once,
        "kinds": KINDS,
        "elections": ELECTIONS,
        "problem": problem,
        "found": None if found is None else found.value,
        "page": visit.listed([] if found is None or found.value is None else found.value.partitions),
        "then": then,
        "notes_of": notes_of,
        "command": visit.entry.command("rehearse", *words, *(["--at-once"] if at_once else [])),
    }
    return visit.page("rehearsal.html", "Rehearsal", values, nav="brokers")


def _query(asked: list[str], at_once: bool) -> str:
    parts = "&".join(query(do=each)[1:] for each in asked)
    return f"?{parts}{'&' if parts and at_once else ''}{'at_once=1' if at_once else ''}".rstrip("?")


def _question(visit: Visit, asked: list[str], happenings: list[Happening], at_once: bool) -> Question[_Rehearsed]:
    follow = followed(visit.link)

    async def ask(cluster: Cluster) -> _Rehearsed:
        now, around = await follow.ask(cluster), await look_around(cluster)
        scene = Scene(now.image, around.config, around.voters, around.sizes)
        # In a thread of its own: the clients go on while the partitions of a large cluster are decided about.
        try:
            return await asyncio.to_thread(_rehearsed, scene, happenings, at_once, tuple(around.warnings))
        except OperationError as error:
            return _Rehearsed(str(error))

    return Question(f"rehearsal:{at_once}:{asked}", ask, 15)


def _rehearsed(scene: Scene, happenings: list[Happening], at_once: bool, warnings: tuple[str, ...]) -> _Rehearsed:
    found: Rehearsal = rehearse(scene, happenings, at_once=at_once)
    partitions = worst_first(found)
    return _Rehearsed(
        None,
        summary(found),
        bool(found.refusals or found.outcome.worse),
        tuple((each.what, len(each.records), tuple(each.refusals)) for each in found.steps),
        tuple(partitions[:_MAX_PARTITIONS]),
        len(partitions),
        tuple(found.outcome.brokers),
        tuple(islice(records_of(found), _MAX_RECORDS)),
        sum(len(each.records) for each in found.steps),
        warnings,
    )


PAGES = {"/rehearsal": rehearsal}
