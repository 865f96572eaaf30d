"""Answers of clusters, shared by all browsers of one principal, and kept up to date while somebody looks.

Its one rule: a question is asked once at a time for each cluster and principal, however many pages wait for the answer, and an
answer is only given to the principal that it was fetched for. Without a watcher nothing is asked.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any, Generic, NamedTuple, TypeVar

from barnabas.client.cluster import Cluster
from barnabas.console.errors import expected, is_refusal, problem_of
from barnabas.console.links import Link, LinkKey

T = TypeVar("T")
_log = logging.getLogger(__name__)

MAX_ANSWERS = 500
_MAX_SHARE = 10
"""A cluster is busy with one question for at most a tenth of the time, unless that needs a longer pause than the next ones."""
MAX_PAUSE_S = 60.0
MAX_PAUSE_AFTER_ERROR_S = 15.0
STALE_S = 120.0
"""An older answer is not shown any more while a new one is fetched."""


@dataclass(frozen=True, slots=True)
class Question(Generic[T]):
    """What to ask a cluster. `name` tells it apart from other questions, with its arguments."""

    name: str
    ask: Callable[[Cluster], Awaitable[T]]
    every_s: float = 10.0
    patience_s: float | None = None
    """How long a page waits for the answer, if not as long as for others."""
    combine: Callable[[T | None, T], T] | None = None
    """Makes the value to show of the last one and the new one, for rates and trends."""
    is_signal: bool = False
    """A small question that never waits for others. A new value of it makes all other answers of the principal new."""


class Answer(NamedTuple, Generic[T]):
    """The last value, if there is one, and why there is no newer one, if so. `at_s` is in seconds since 1970."""

    value: T | None
    problem: str | None
    at_s: float
    key: str
    is_refused: bool = False
    """Whether the problem is what the cluster has answered: it is not there, not allowed or not possible."""


@dataclass(slots=True)
class _Entry:
    question: Question[Any]
    link: Link
    value: Any = None
    has_value: bool = False
    problem: str | None = None
    is_refused: bool = False
    at_s: float = 0.0
    """When the value was fetched, in seconds since 1970."""
    began_s: float = float("-inf")
    """When the cluster was last asked."""
    asked_s: float = float("-inf")
    took_s: float = 0.0
    is_expired: bool = False
    asking: asyncio.Task[None] | None = None
    watchers: set[asyncio.Event] = field(default_factory=set)
    polling: asyncio.Task[None] | None = None

    @property
    def pause_s(self) -> float:
        """The pause between two questions: longer if the cluster needs long to answer."""
        longest_s = MAX_PAUSE_AFTER_ERROR_S if self.problem else MAX_PAUSE_S
        return max(self.question.every_s, min(_MAX_SHARE * self.took_s, longest_s))


class Live:
    """The answers."""

    def __init__(self, patience_s: float = 5.0) -> None:
        self._patience_s = patience_s
        self._entries: OrderedDict[tuple[LinkKey, str], _Entry] = OrderedDict()

    async def answer(self, link: Link, question: Question[T]) -> Answer[T]:
        """Return the last answer if it is young; else a new one, or the last while a new one is fetched."""
        key = key_of(question)
        entry = self._entries.get((link.key, key))
        if entry is None or entry.link is not link:
            entry = self._entries[link.key, key] = _Entry(question, link)
        self._entries.move_to_end((link.key, key))
        self._forget_some()
        if question.is_signal and not entry.watchers:
            entry.problem = None  # nobody has looked since, so it may be over
        age_s = time.monotonic() - entry.asked_s
        if entry.is_expired or age_s > entry.pause_s or (entry.problem and entry.asking is None and age_s > 1):
            asking = self._ask(entry)
            if not entry.has_value or entry.is_expired or age_s > STALE_S:
                patience_s = self._patience_s if question.patience_s is None else question.patience_s
                # Counted from the beginning: each visit of a page would wait as long for an answer that takes minutes.
                await asyncio.wait([asking], timeout=max(0.0, patience_s - (time.monotonic() - entry.began_s)))
        value = entry.value if entry.has_value else None
        return Answer(value, entry.problem, entry.at_s, key, entry.is_refused)

    def _ask(self, entry: _Entry) -> asyncio.Task[None]:
        if entry.asking is None:
            entry.began_s = time.monotonic()
            entry.asking = asyncio.create_task(self._fetch(entry))
        return entry.asking

    async def _fetch(self, entry: _Entry) -> None:
        entry.is_expired = False
        before, had_value, had_problem = entry.value, entry.has_value, entry.problem is not None
        is_signal = entry.question.is_signal
        try:
            value = await entry.link.ask(entry.question.ask, is_waiting=not is_signal)
            if entry.question.combine is not None:
                value = await asyncio.to_thread(entry.question.combine, entry.value, value)  # pages go on meanwhile
            entry.value = value
            entry.has_value, entry.problem, entry.at_s = True, None, time.time()
        except Exception as error:
            entry.problem, entry.is_refused = "this console failed to ask: its log has the reason", False
            if (known := expected(error)) is not None:
                entry.problem, entry.is_refused = problem_of(known), is_refusal(known)
            else:
                _log.exception("the question %s failed", entry.question.name)
        finally:
            entry.asked_s, entry.asking = time.monotonic(), None
            entry.took_s = entry.asked_s - entry.began_s
        if is_signal:
            has_problem = entry.problem is not None
            if had_problem == has_problem and (not had_value or before == entry.value):
                return
            if not has_problem:
                self.expire(entry.link)
        for watcher in entry.watchers:
            watcher.set()

    def expire(self, link: Link) -> None:
        """Show nothing from before a change: the next answers are new ones."""
        for (key, _), entry in self._entries.items():
            if key == link.key and not entry.question.is_signal:
                entry.is_expired = True
                if entry.watchers and entry.asking is None:
                    self._ask(entry)

    # --- watching

    @contextmanager
    def watch(
        self, link_key: LinkKey, keys: Iterable[str], shown_ms: Iterable[int] = ()
    ) -> Iterator[asyncio.Event | None]:
        """Keep these answers up to date. Yields an event that is set by each new one, or None if one is not known any more.

        `shown_ms` are the times of the answers that the page has. The event is set already if there is a newer one.
        """
        wanted = [self._entries.get((link_key, key)) for key in keys]
        found = [each for each in wanted if each is not None]
        if len(found) < len(wanted):
            yield None
            return
        event = asyncio.Event()
        for entry, at_ms in zip_longest(found, shown_ms):
            entry.watchers.add(event)
            if at_ms is not None and int(entry.at_s * 1000) > at_ms and not entry.question.is_signal:
                event.set()
            if entry.polling is None:
                entry.polling = asyncio.create_task(self._poll(entry))
        try:
            yield event
        finally:
            for entry in found:
                entry.watchers.discard(event)
                if not entry.watchers and entry.polling is not None:
                    entry.polling.cancel()
                    entry.polling = None

    async def _poll(self, entry: _Entry) -> None:
        while True:
            age_s = time.monotonic() - entry.asked_s
            await asyncio.sleep(max(entry.pause_s - age_s, 0.05))
            if time.monotonic() - entry.asked_s >= entry.pause_s:
                await asyncio.shield(self._ask(entry))

    def wake(self) -> None:
        """Wake all watchers, though there is nothing new."""
        for entry in self._entries.values():
            for watcher in entry.watchers:
                watcher.set()

    @property
    def watchers(self) -> int:
        return len({event for entry in self._entries.values() for event in entry.watchers})

    def forget(self, link_keys: Iterable[LinkKey]) -> None:
        """Forget all answers of principals that are gone."""
        gone = set(link_keys)
        for key in [key for key in self._entries if key[0] in gone]:
            self._remove(key)

    def _forget_some(self) -> None:
        for key in list(self._entries):
            if len(self._entries) <= MAX_ANSWERS:
                return
            if not self._entries[key].watchers:
                self._remove(key)

    def _remove(self, key: tuple[LinkKey, str]) -> None:
        entry = self._entries.pop(key)
        for task in (entry.polling, entry.asking):
            if task is not None:
                task.cancel()
        for watcher in entry.watchers:
            watcher.set()

    async def close(self) -> None:
        for key in list(self._entries):
            self._remove(key)


def key_of(question: Question[Any]) -> str:
    """Return the name of a question as a short text for addresses."""
    return hashlib.sha256(question.name.encode("utf-8", "surrogatepass")).hexdigest()[:16]
