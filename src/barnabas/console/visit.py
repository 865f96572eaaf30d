"""One request to a page: who asks, about which cluster, and how the page is made.

Its one rule: pages reach a cluster only through `Visit.ask` (shared answers) or `Visit.now` (a question of this visit alone),
both with the principal of the session.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlencode

import jinja2
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from barnabas import __version__
from barnabas.console import formats
from barnabas.console.errors import RefusedError
from barnabas.console.history import LakeReader
from barnabas.console.links import Link
from barnabas.console.listing import ListPage, page_of
from barnabas.console.live import Answer, Live, Question
from barnabas.console.security.sessions import Session
from barnabas.console.settings import ClusterEntry, ConsoleSettings
from barnabas.operations.broker_states import BrokerState, broker_states

if TYPE_CHECKING:
    from barnabas.client.cluster import Cluster

T = TypeVar("T")
LIVE_HEADER = "x-console-live"
"""Sent by the script of a page that asks for its own content again."""
MAX_FIELD_LENGTH = 100_000
MAX_WAIT_S = 120.0
BROKERS: Question[frozenset[BrokerState]] = Question("broker states", broker_states, 3, patience_s=0, is_signal=True)
"""Asked often by every page that is open: a cluster or a broker that dies, returns or is removed is seen within seconds."""


class Nav:
    """The pages in the order of the navigation: name, title, and the key to press after g."""

    PAGES = (
        ("overview", "Overview", "o"),
        ("topics", "Topics", "t"),
        ("groups", "Groups", "g"),
        ("brokers", "Brokers", "b"),
        ("quorum", "Quorum", "q"),
        ("reassignments", "Reassignments", "r"),
        ("access", "Access", "a"),
        ("metadata", "Metadata", "m"),
        ("transactions", "Transactions", "x"),
        ("history", "History", "h"),
    )


def environment() -> jinja2.Environment:
    """Return the templates. Everything they show is escaped, and a missing value is an error."""
    found = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    found.filters.update(formats.FILTERS)
    found.globals.update(query=formats.query, version=__version__, nav_pages=Nav.PAGES)
    return found


@dataclass(slots=True)
class Visit:
    """A request of a session about one cluster."""

    request: Request
    settings: ConsoleSettings
    templates: jinja2.Environment
    live: Live
    session: Session
    entry: ClusterEntry
    link: Link
    lake: LakeReader | None = None
    _answers: list[Answer[Any]] = field(default_factory=list)
    _brokers: Answer[frozenset[BrokerState]] | None = None

    # --- what was asked for

    def path(self, name: str) -> str:
        return str(self.request.path_params[name])

    def query(self, name: str, default: str = "") -> str:
        return self.request.query_params.get(name, default)[:MAX_FIELD_LENGTH]

    def number(self, name: str, default: int, *, least: int = 0, most: int = 2**63 - 1) -> int:
        """Return a number of the query, within these bounds."""
        text = self.query(name)
        try:
            value = int(text) if text else default
        except ValueError:
            raise RefusedError(400, f"{name} must be a number") from None
        return max(least, min(value, most))

    @property
    def base(self) -> str:
        """The beginning of the addresses of this cluster."""
        return f"/c/{formats.segment(self.entry.name)}"

    @property
    def user(self) -> str | None:
        login = self.session.logins.get(self.entry.name)
        return None if login is None else login.user

    def listed(self, rows: Iterable[T], name: str = "page") -> ListPage[T]:
        """Return the part of a list that the address asks for. A page with two lists gives them different names."""
        return page_of(list(rows), self.number(name, 1, least=1), name)

    def other_page(self, page: ListPage[Any], number: int) -> str:
        """Return the query of this address for another page of a list."""
        kept = [(name, text) for name, text in self.request.query_params.multi_items() if text and name != page.name]
        return f"?{urlencode([*kept, (page.name, number)])}"

    # --- asking

    async def ask(self, question: Question[T]) -> Answer[T]:
        """Return the shared answer to a question. The page is brought up to date when there is a new one."""
        answer = await self.live.answer(self.link, question)
        self._answers.append(answer)
        if self._brokers is None:
            self._brokers = await self.live.answer(self.link, BROKERS)
        return answer

    async def once(self, question: Question[T]) -> Answer[T]:
        """Return the shared answer to a question that takes long, and which the page does not follow. It waits for it."""
        return await self.live.answer(self.link, replace(question, patience_s=MAX_WAIT_S))

    async def now(self, ask: Callable[[Cluster], Awaitable[T]]) -> T:
        """Ask the cluster for this visit alone. Raises the errors of the cluster."""
        return await self.link.ask(ask)

    # --- answering

    def require_changes(self) -> None:
        if not self.settings.allow_changes:
            raise RefusedError(403, "this console only reads: it was started without --allow-changes")

    def page(self, template: str, title: str, values: Mapping[str, Any], *, nav: str, status: int = 200) -> Response:
        """Return a page; for its own script, only the part that changes."""
        signals = [] if self._brokers is None else [self._brokers]
        # That nothing answers is said once.
        told = signals if signals and signals[0].problem else self._answers
        problems = dict.fromkeys((each.problem, each.is_refused) for each in told if each.problem)
        oldest_s = min((each.at_s for each in self._answers if each.at_s), default=None)
        followed = {each.key: int(each.at_s * 1000) for each in (*self._answers, *signals)}
        everything = {
            **values,
            "title": title,
            "nav": nav,
            "visit": self,
            "base": self.base,
            "allow_changes": self.settings.allow_changes,
            "has_lake": self.settings.lake is not None,
            "problems": list(problems),
            "asked_at": oldest_s,
            "live_keys": ",".join(followed),
            "live_shown": ",".join(map(str, followed.values())),
            "theme": self.request.cookies.get("theme", ""),
            "is_live": LIVE_HEADER in self.request.headers,
        }
        if status == 200 and problems and not any(each.at_s for each in self._answers):
            status = 404 if all(is_refused for _, is_refused in problems) else 503
        if everything["is_live"] and status in (404, 503):
            status = 200  # the part says it itself; browsers report other statuses on their consoles
        return HTMLResponse(self.templates.get_template(template).render(everything), status)
