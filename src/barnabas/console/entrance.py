"""The way in: the start token, logins with SASL credentials, logout, and the list of clusters.

Its one rule: no secret travels over plain HTTP, except within this machine. A new session id follows every login.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit

from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from barnabas.client.errors import AuthenticationError
from barnabas.console.errors import EXPECTED, RefusedError, problem_of
from barnabas.console.forms import form_fields, read_form
from barnabas.console.links import Link
from barnabas.console.live import Answer, Question
from barnabas.console.security.hosts import is_loopback
from barnabas.console.security.sessions import Login, Session, is_same_token
from barnabas.console.settings import ClusterEntry
from barnabas.operations.broker_states import running_brokers

if TYPE_CHECKING:
    from barnabas.console.app import Console

NO_LOGIN_OVER_HTTP = (
    "This connection is not encrypted, and does not come from the machine of the console. Logins and tokens are refused: "
    "start the console with --certificate and --key, or reach it through an SSH tunnel."
)
_PATIENCE_S = 2.0
_TOO_MANY = "too many failed attempts from your address: wait a minute"


class LoginNeededError(Exception):
    """The session may not see this cluster yet."""

    def __init__(self, entry: ClusterEntry) -> None:
        super().__init__(entry.name)
        self.entry = entry


def routes(console: Console) -> list[Route]:
    async def home(request: Request) -> Response:
        if (token := request.query_params.get("token")) is not None:
            return await enter(request, token, "/")
        session = console.session_of(request)
        seen = [each for each in console.settings.clusters if console.may_see(session, each)]
        if session is None or not seen:
            return login_needed(console, request, console.settings.clusters[0])
        if len(console.settings.clusters) == 1:
            return RedirectResponse(f"/c/{quote(seen[0].name, safe='')}", 303)
        states = dict(zip((each.name for each in seen), await _states(console, session, seen), strict=True))
        values = {"clusters": console.settings.clusters, "states": states, "session": session}
        return _render(console, request, "clusters.html", values)

    async def enter(request: Request, token: str, target: str) -> Response:
        if not _is_private(console, request):
            return console.error_page(request, 403, NO_LOGIN_OVER_HTTP)
        peer = _peer(request)
        if not console.attempts.may_try(peer):
            return console.error_page(request, 429, _TOO_MANY)
        if not is_same_token(token, console.settings.token):
            console.attempts.failed(peer)
            return _token_page(console, request, target, "that is not the token", 403)
        session = console.sessions.begin(console.session_of(request))
        session.has_token = True
        return _with_cookie(console, RedirectResponse(target, 303), session)

    async def token_form(request: Request) -> Response:
        fields = await form_fields(request)
        return await enter(request, fields.get("token", "").strip(), local(fields.get("next", "/")))

    async def login_form(request: Request) -> Response:
        fields = await form_fields(request)
        entry = console.settings.cluster(request.path_params["cluster"])
        if entry is None or not entry.requires_login:
            return console.error_page(request, 404, "there is no such login")
        target = local(fields.get("next", "/"))
        if not _is_private(console, request):
            return console.error_page(request, 403, NO_LOGIN_OVER_HTTP)
        peer = _peer(request)
        if not console.attempts.may_try(peer):
            return console.error_page(request, 429, _TOO_MANY)
        login = Login(fields.get("user", "")[:500], fields.get("password", "")[:2000])
        link = Link(entry, login, console.links.thread)
        try:
            await link.connect()
        except AuthenticationError as error:
            console.attempts.failed(peer)
            return _login_page(console, request, entry, target, problem_of(error), 403)
        except EXPECTED as error:
            if isinstance(error.__cause__, AuthenticationError) or _is_refused(error):
                console.attempts.failed(peer)
            return _login_page(console, request, entry, target, problem_of(error), 502)
        finally:
            await asyncio.shield(link.close())
        session = console.sessions.begin(console.session_of(request))
        session.logins[entry.name] = login
        return _with_cookie(console, RedirectResponse(target, 303), session)

    async def logout(request: Request) -> Response:
        session = console.session_of(request)
        if session is not None:
            try:
                await read_form(request, session)
            except RefusedError as error:
                return console.error_page(request, error.status, str(error))
            console.sessions.end(session)
            console.forget_gone()
        response = RedirectResponse("/", 303)
        response.delete_cookie(console.cookie)
        return response

    return [
        Route("/", home),
        Route("/token", token_form, methods=["POST"]),
        Route("/login/{cluster}", login_form, methods=["POST"]),
        Route("/logout", logout, methods=["POST"]),
    ]


async def _states(console: Console, session: Session, seen: list[ClusterEntry]) -> list[Answer[frozenset[int]]]:
    """Ask each cluster which of its brokers run. One that does not answer soon is shown without an answer."""
    question = Question("running brokers", running_brokers, 3, patience_s=_PATIENCE_S)
    links = [console.links.link(each, session.logins.get(each.name)) for each in seen]
    return await asyncio.gather(*(console.live.answer(each, question) for each in links))


def login_needed(console: Console, request: Request, entry: ClusterEntry) -> Response:
    """Return the page on which to log in to a cluster, or to type the start token."""
    if not _is_private(console, request):
        return _render(console, request, "refused.html", {"message": NO_LOGIN_OVER_HTTP}, 403)
    target = request.url.path + (f"?{request.url.query}" if request.url.query else "")
    if request.method != "GET" or request.url.path.endswith("/events"):
        target = came_from(request) or "/"  # the page of the form
    if entry.requires_login:
        return _login_page(console, request, entry, target, None, 401)
    return _token_page(console, request, target, None, 401)


def _login_page(
    console: Console, request: Request, entry: ClusterEntry, target: str, problem: str | None, status: int
) -> Response:
    values = {"entry": entry, "target": target, "problem": problem, "clusters": console.settings.clusters}
    return _render(console, request, "login.html", values, status)


def _token_page(console: Console, request: Request, target: str, problem: str | None, status: int) -> Response:
    return _render(console, request, "token.html", {"target": target, "problem": problem}, status)


def _render(
    console: Console, request: Request, template: str, values: dict[str, Any], status: int = 200
) -> HTMLResponse:
    everything = {**values, "theme": request.cookies.get("theme", "")}
    return HTMLResponse(console.templates.get_template(template).render(everything), status)


def _with_cookie(console: Console, response: Response, session: Session) -> Response:
    # Lax: links from elsewhere to a page work. Forms are protected by their token and the Origin header.
    response.set_cookie(
        console.cookie, session.id, httponly=True, samesite="lax", secure=console.settings.has_tls, path="/"
    )
    return response


def _is_private(console: Console, request: Request) -> bool:
    return console.settings.has_tls or is_loopback(_peer(request))


def _is_refused(error: BaseException) -> bool:
    return isinstance(getattr(error, "last_error", None), AuthenticationError)


def _peer(request: Request) -> str:
    return "" if request.client is None else request.client.host


def came_from(request: Request) -> str | None:
    """Return the address of the page of this console that led here, if a browser says which."""
    referrer, own = request.headers.get("referer", ""), str(request.base_url)
    return local(f"/{referrer.removeprefix(own)}") if referrer.startswith(own) else None


def local(target: str) -> str:
    """Return an address of this console: whatever leads elsewhere becomes the first page.

    >>> local("/c/a?q=1"), local("//evil.example"), local("https://evil.example")
    ('/c/a?q=1', '/', '/')
    """
    parts = urlsplit(target)
    is_local = target.startswith("/") and not target.startswith(("//", "/\\")) and not parts.scheme and not parts.netloc
    return target if is_local and "\\" not in target and target.isprintable() else "/"
