"""The console as an ASGI application: addresses, sessions, and errors as pages.

Its one rule: a page is reached only with a session that may see its cluster, and a form only with that session's token.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Final

import jinja2
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from barnabas.console import changes, entrance
from barnabas.console.errors import RefusedError, expected, is_refusal, problem_of
from barnabas.console.forms import read_form
from barnabas.console.history import LakeReader
from barnabas.console.links import Links
from barnabas.console.live import Live
from barnabas.console.pages import (
    access,
    brokers,
    groups,
    history,
    metadata,
    overview,
    reassignments,
    records,
    rehearsal,
    topics,
    transactions,
)
from barnabas.console.security.guard import Guard
from barnabas.console.security.sessions import Attempts, Session, Sessions
from barnabas.console.settings import ClusterEntry, ConsoleSettings
from barnabas.console.visit import LIVE_HEADER, Visit, environment

_log = logging.getLogger(__name__)

PageFunction = Callable[[Visit], Awaitable[Response]]
FormFunction = Callable[[Visit, Mapping[str, str]], Awaitable[Response]]
PAGES: Final[Mapping[str, PageFunction]] = {
    **overview.PAGES,
    **topics.PAGES,
    **records.PAGES,
    **groups.PAGES,
    **brokers.PAGES,
    **rehearsal.PAGES,
    **reassignments.PAGES,
    **access.PAGES,
    **metadata.PAGES,
    **transactions.PAGES,
    **history.PAGES,
    "/changes/{plan_id}": changes.plan_page,
}
"""Pages by their address below that of a cluster."""
FORMS: Final[Mapping[str, FormFunction]] = {
    **topics.FORMS,
    **records.FORMS,
    **groups.FORMS,
    **reassignments.FORMS,
    **access.FORMS,
    **transactions.FORMS,
    "/changes/{plan_id}": changes.confirm,
}
"""Forms, which plan or make changes."""
MAX_STREAMS = 200
"""Pages that are kept up to date at the same time."""
_MIN_PAUSE_S = 1.0
_HEARTBEAT_S = 20.0
_SWEEP_S = 60.0


class Console:
    """What the application keeps while it runs."""

    def __init__(self, settings: ConsoleSettings) -> None:
        self.settings = settings
        self.templates: jinja2.Environment = environment()
        self.sessions, self.attempts = Sessions(), Attempts()
        self.links, self.live = Links(), Live(settings.patience_s)
        self.lake = None if settings.lake is None else LakeReader(settings.lake)
        self.streams = 0
        self.is_closing = False

    @property
    def cookie(self) -> str:
        """The name of the cookie. Cookies are shared by all ports of a host, so it has the port."""
        return f"barnabas_console_{self.settings.port}"

    def session_of(self, request: Request) -> Session | None:
        return self.sessions.find(request.cookies.get(self.cookie))

    def may_see(self, session: Session | None, entry: ClusterEntry) -> bool:
        if session is None:
            return False
        return entry.name in session.logins if entry.requires_login else session.has_token

    def visit(self, request: Request) -> Visit:
        """Return the visit of a request to a cluster. Raises RefusedError, or `entrance.LoginNeededError`."""
        entry = self.settings.cluster(str(request.path_params["cluster"]))
        if entry is None:
            raise RefusedError(404, "there is no such cluster in this console")
        session = self.session_of(request)
        if session is None or not self.may_see(session, entry):
            raise entrance.LoginNeededError(entry)
        link = self.links.link(entry, session.logins.get(entry.name))
        return Visit(request, self.settings, self.templates, self.live, session, entry, link, self.lake)

    def forget_gone(self) -> None:
        """Close clients, and forget answers, of principals that have no session any more, and those that nobody uses."""
        self.live.forget(self.links.keep_only(self.sessions.principals()))

    def error_page(self, request: Request, status: int, message: str) -> Response:
        values = {
            "status": status,
            "message": message,
            "theme": request.cookies.get("theme", ""),
            "back": entrance.came_from(request),
            "cluster": self.settings.cluster(str(request.path_params.get("cluster", ""))),
        }
        # The script of a page that is open shows the message, and browsers report other statuses on their consoles.
        status = 200 if LIVE_HEADER in request.headers else status
        return HTMLResponse(self.templates.get_template("error.html").render(values), status)

    def begin_closing(self) -> None:
        """End all streams: a server waits for its open responses."""
        self.is_closing = True
        self.live.wake()

    async def close(self) -> None:
        await self.live.close()
        await self.links.close()
        if self.lake is not None:
            await asyncio.to_thread(self.lake.close)


def build(settings: ConsoleSettings) -> Starlette:
    """Return the application."""
    console = Console(settings)

    @contextlib.asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        async def sweep() -> None:
            while True:
                await asyncio.sleep(_SWEEP_S)
                console.forget_gone()

        sweeping = asyncio.create_task(sweep())
        try:
            yield
        finally:
            sweeping.cancel()
            await console.close()

    routes: list[Route | Mount] = [
        Mount("/static", StaticFiles(directory=Path(__file__).parent / "static")),
        Route("/favicon.ico", lambda request: RedirectResponse("/static/icon.svg", 301)),
        *entrance.routes(console),
        Route("/c/{cluster}/events", partial(_events, console)),
        *(
            Route(f"/c/{{cluster}}{path}", partial(_form, console, form), methods=["POST"])
            for path, form in FORMS.items()
        ),
        *(Route(f"/c/{{cluster}}{path}", partial(_page, console, page)) for path, page in PAGES.items()),
    ]
    app = Starlette(
        routes=routes,
        lifespan=lifespan,
        middleware=[Middleware(Guard, settings=settings)],
        exception_handlers={404: partial(_missing, console)},
    )
    app.state.console = console
    return app


# --- pages and forms


async def _page(console: Console, page: PageFunction, request: Request) -> Response:
    return await _answered(console, request, lambda: page(console.visit(request)))


async def _form(console: Console, form: FormFunction, request: Request) -> Response:
    async def answer() -> Response:
        visit = console.visit(request)
        return await form(visit, await read_form(request, visit.session))

    return await _answered(console, request, answer)


async def _answered(console: Console, request: Request, answer: Callable[[], Awaitable[Response]]) -> Response:
    """Return the answer, or the page of its error."""
    try:
        return await answer()
    except entrance.LoginNeededError as needed:
        return entrance.login_needed(console, request, needed.entry)
    except RefusedError as error:
        return console.error_page(request, error.status, str(error))
    except Exception as error:
        if (known := expected(error)) is not None:
            return console.error_page(request, 409 if is_refusal(known) else 502, problem_of(known))
        _log.exception("%s %s failed", request.method, request.url.path)
        return console.error_page(request, 500, "this console has failed: its log has the reason")


async def _missing(console: Console, request: Request, error: Exception) -> Response:
    return console.error_page(request, 404, "there is no such page")


# --- live updates


async def _events(console: Console, request: Request) -> Response:
    async def answer() -> Response:
        visit = console.visit(request)
        if console.streams >= MAX_STREAMS:
            raise RefusedError(503, "too many pages are open: this one is not kept up to date")
        keys = [each for each in visit.query("keys").split(",") if each]
        shown_ms = [int(each) for each in visit.query("shown").split(",") if each.isdecimal()][: len(keys)]
        return StreamingResponse(_stream(console, visit, keys, shown_ms), media_type="text/event-stream")

    return await _answered(console, request, answer)


async def _stream(console: Console, visit: Visit, keys: list[str], shown_ms: list[int]) -> AsyncIterator[str]:
    """Yield an event for each new answer, at most one in a second, and one if there are answers that the page does not have."""
    console.streams += 1
    try:
        with console.live.watch(visit.link.key, keys, shown_ms) as event:
            if event is None:
                yield "event: gone\ndata: {}\n\n"
                return
            yield "retry: 3000\n\n"
            while not console.is_closing:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(_HEARTBEAT_S):
                        await event.wait()
                if console.is_closing:
                    return
                if console.session_of(visit.request) is not visit.session:
                    yield "event: gone\ndata: {}\n\n"
                    return
                if event.is_set():
                    event.clear()
                    yield f"data: {json.dumps({'requests': visit.link.requests_per_minute})}\n\n"
                    await asyncio.sleep(_MIN_PAUSE_S)
                else:
                    yield ": nothing new\n\n"
    finally:
        console.streams -= 1
