"""Fault rules: which requests fail, are delayed or lose their connection. Pure, apart from the counters of each rule.

A rule is about one API, or about all, and perhaps about one client id, topic or node. It counts the requests that it is about,
and hits `times` of them from the `nth` on. The first rule that hits decides; the others count the request all the same.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Final, NamedTuple

from barnabas.similar_names import did_you_mean
from barnabas.wire import APIS, ApiKey, ErrorCode

MAX_RULES: Final = 1000
MAX_DELAY_MS: Final = 600_000
MAX_COUNT: Final = 1_000_000_000

_NO_ERROR: Final = (ErrorCode.NONE,)


class RuleError(ValueError):
    """A rule that cannot be. The text says what is wrong with it."""


class Request(NamedTuple):
    """What a rule can ask about a request. The topics are looked up only if a rule needs them."""

    api: str
    client_id: str | None
    node_id: int
    topics: Callable[[], Collection[str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """Which requests, and what happens to them. Raises RuleError.

    `times` is None for all requests from the `nth` on. With `after`, the request is carried out before it fails, waits or
    loses its connection: the client does not know of it.
    """

    api: str | None = None
    client_id: str | None = None
    topic: str | None = None
    node: int | None = None
    nth: int = 1
    times: int | None = 1
    error: str | None = None
    delay_ms: int = 0
    drop: bool = False
    after: bool = False

    def __post_init__(self) -> None:
        for name, kinds in _KINDS.items():
            value = getattr(self, name)
            if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
                raise RuleError(f"{name} must be {_KIND_NAMES[kinds]}, not {value!r}")
        if self.api is not None and self.api not in _API_NAMES:
            raise RuleError(f"there is no API {self.api!r}{did_you_mean(self.api, _API_NAMES)}")
        if self.error is not None and (self.error not in ErrorCode.__members__ or self.code in _NO_ERROR):
            raise RuleError(f"there is no error {self.error!r}{did_you_mean(self.error, ErrorCode.__members__)}")
        if not 1 <= self.nth <= MAX_COUNT or not 1 <= (1 if self.times is None else self.times) <= MAX_COUNT:
            raise RuleError(f"nth and times count from 1, and not beyond {MAX_COUNT}")
        if not 0 <= self.delay_ms <= MAX_DELAY_MS:
            raise RuleError(f"delay_ms must be between 0 and {MAX_DELAY_MS}, not {self.delay_ms}")
        if self.error is not None and self.drop:
            raise RuleError("a request cannot both fail with an error and lose its connection: choose error or drop")
        if self.error is None and not self.drop and not self.delay_ms:
            raise RuleError("a rule needs an error, a delay_ms or drop")

    @property
    def code(self) -> ErrorCode | None:
        return None if self.error is None else ErrorCode[self.error]

    def is_about(self, request: Request) -> bool:
        return (
            self.api in (None, request.api)
            and self.client_id in (None, request.client_id)
            and self.node in (None, request.node_id)
            and (self.topic is None or self.topic in request.topics())
        )


_TEXT, _OPTIONAL_TEXT = (str,), (str, type(None))
_NUMBER, _OPTIONAL_NUMBER, _FLAG = (int,), (int, type(None)), (bool,)
_KINDS: Final[Mapping[str, tuple[type, ...]]] = {
    "api": _OPTIONAL_TEXT,
    "client_id": _OPTIONAL_TEXT,
    "topic": _OPTIONAL_TEXT,
    "node": _OPTIONAL_NUMBER,
    "nth": _NUMBER,
    "times": _OPTIONAL_NUMBER,
    "error": _OPTIONAL_TEXT,
    "delay_ms": _NUMBER,
    "drop": _FLAG,
    "after": _FLAG,
}
_KIND_NAMES: Final = {
    _OPTIONAL_TEXT: "a text",
    _NUMBER: "a whole number",
    _OPTIONAL_NUMBER: "a whole number",
    _FLAG: "true or false",
}
_API_NAMES: Final = frozenset(api.name for api in APIS.values())


def api_name(api: str | int | None) -> str | None:
    """Return the name of an API from its name, its name in snake case or its key. Raises RuleError."""
    if api is None:
        return None
    if isinstance(api, int):
        if isinstance(api, bool) or api not in APIS:
            raise RuleError(f"there is no API with key {api!r}")
        return APIS[api].name
    if isinstance(api, str) and api.upper() in ApiKey.__members__:  # JSON may have anything here
        return APIS[ApiKey[api.upper()]].name
    return api


def rule_of(given: Mapping[str, Any]) -> Rule:
    """Return the rule that JSON describes. Raises RuleError."""
    known = [field.name for field in fields(Rule)]
    for name in given:
        if name not in known:
            raise RuleError(f"a rule has no {name!r}{did_you_mean(name, known)}")
    return Rule(**{**given, "api": api_name(given.get("api"))})


class ActiveRule:
    """A rule that was set. `seen` counts the requests that it is about, `hits` those that it hit."""

    def __init__(self, id: int, rule: Rule) -> None:
        self.id = id
        self.rule = rule
        self.seen = 0
        self.hits = 0

    @property
    def is_spent(self) -> bool:
        """True if it will hit no further request."""
        return self.rule.times is not None and self.hits >= self.rule.times

    def count(self, request: Request) -> bool:
        """Count the request if the rule is about it, and return whether the rule hits it."""
        if self.is_spent or not self.rule.is_about(request):
            return False
        self.seen += 1
        if self.seen < self.rule.nth:
            return False
        self.hits += 1
        return True

    def as_json(self) -> dict[str, Any]:
        return {"id": self.id, **asdict(self.rule), "seen": self.seen, "hits": self.hits}


class Rules:
    """All rules, in the order in which they were set."""

    def __init__(self) -> None:
        self._next_id = 1
        self.all: dict[int, ActiveRule] = {}

    @property
    def is_any(self) -> bool:
        """True if a rule may still hit a request."""
        return any(not each.is_spent for each in self.all.values())

    def add(self, rule: Rule) -> ActiveRule:
        """Set a rule. Raises RuleError if there are too many."""
        if len(self.all) >= MAX_RULES:
            raise RuleError(f"there are {MAX_RULES} rules already: remove some, or clear them")
        active = self.all[self._next_id] = ActiveRule(self._next_id, rule)
        self._next_id += 1
        return active

    def remove(self, id: int) -> None:
        """Remove a rule. Does nothing if it is gone."""
        self.all.pop(id, None)

    def clear(self) -> None:
        self.all.clear()

    def hit(self, request: Request) -> Rule | None:
        """Count a request, and return the rule that decides what happens to it."""
        hits = [each for each in self.all.values() if each.count(request)]
        for unused in hits[1:]:  # an earlier rule decides; this one hits the next request
            unused.hits -= 1
        return hits[0].rule if hits else None
