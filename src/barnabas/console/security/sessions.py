"""Sessions of browsers: a start token or logins, the token of forms, and planned changes. In memory only.

Its one rule: passwords are in a session and nowhere else, and everything ends with it. All tables are bounded.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import time
from collections import OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from barnabas.console.changes import PlannedChange

MAX_SESSIONS = 1_000
MAX_PLANS = 20
IDLE_S = 8 * 3600.0
MAX_FAILURES_PER_MINUTE = 10
_MAX_PEERS = 10_000
_PROCESS_KEY = secrets.token_bytes(32)
"""Makes the identity of a principal useless outside of this process."""


@dataclass(frozen=True, slots=True)
class Login:
    """The user of a cluster. `principal` tells users with different passwords apart, without having one."""

    user: str
    password: str = field(repr=False)

    @property
    def principal(self) -> str:
        text = f"{len(self.user)}:{self.user}:{self.password}".encode("utf-8", "surrogatepass")
        return f"{self.user}:{hmac.new(_PROCESS_KEY, text, hashlib.sha256).hexdigest()}"


@dataclass(slots=True)
class Session:
    """One browser. `logins` are by the name of the cluster."""

    id: str = field(repr=False)
    used_s: float
    form_token: str = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)
    has_token: bool = False
    logins: dict[str, Login] = field(default_factory=dict)
    plans: OrderedDict[str, PlannedChange] = field(default_factory=OrderedDict, repr=False)

    def keep(self, plan: PlannedChange) -> str:
        """Keep a planned change until it is confirmed, and return its id."""
        plan_id = secrets.token_urlsafe(12)
        self.plans[plan_id] = plan
        while len(self.plans) > MAX_PLANS:
            self.plans.popitem(last=False)
        return plan_id

    def accepts(self, form_token: str) -> bool:
        return secrets.compare_digest(form_token.encode(), self.form_token.encode())


class Sessions:
    """All sessions, the least recently used first."""

    def __init__(self, now_s: Callable[[], float] = time.monotonic) -> None:
        self._now_s = now_s
        self._sessions: OrderedDict[str, Session] = OrderedDict()

    def find(self, session_id: str | None) -> Session | None:
        """Return the session of a cookie, unless it has ended."""
        found = None if session_id is None else self._sessions.get(session_id)
        if found is None:
            return None
        now_s = self._now_s()
        if now_s - found.used_s > IDLE_S:
            del self._sessions[found.id]
            return None
        found.used_s = now_s
        self._sessions.move_to_end(found.id)
        return found

    def begin(self, before: Session | None = None) -> Session:
        """Begin a session with a new id, which takes over what `before` had: an id from before a login is useless after it."""
        session = Session(secrets.token_urlsafe(32), self._now_s())
        if before is not None:
            session.has_token, session.logins = before.has_token, dict(before.logins)
            self.end(before)
        self._sessions[session.id] = session
        while len(self._sessions) > MAX_SESSIONS:
            self._sessions.popitem(last=False)
        return session

    def end(self, session: Session) -> None:
        self._sessions.pop(session.id, None)
        session.logins.clear()
        session.plans.clear()

    def principals(self) -> set[tuple[str, str]]:
        """Return the cluster and principal of every login that is in use."""
        return {(name, login.principal) for each in self._sessions.values() for name, login in each.logins.items()}


class Attempts:
    """Failed logins of each address in the last minute."""

    def __init__(self, now_s: Callable[[], float] = time.monotonic) -> None:
        self._now_s = now_s
        self._failures: OrderedDict[str, deque[float]] = OrderedDict()

    def may_try(self, peer: str) -> bool:
        failures = self._failures.get(peer, ())
        return sum(self._now_s() - each < 60 for each in failures) < MAX_FAILURES_PER_MINUTE

    def failed(self, peer: str) -> None:
        self._failures.setdefault(peer, deque(maxlen=MAX_FAILURES_PER_MINUTE)).append(self._now_s())
        self._failures.move_to_end(peer)
        while len(self._failures) > _MAX_PEERS:
            self._failures.popitem(last=False)


def is_same_token(given: str, token: str) -> bool:
    return secrets.compare_digest(given.encode("utf-8", "surrogatepass"), token.encode())
