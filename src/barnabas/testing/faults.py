"""Faults of a `Broker` or a `Cluster`: requests that fail, wait or lose their connection, isolated nodes, disks, and time.

Its one rule: every change is made in the event loop of the nodes, whichever thread asks for it. Faults stay when a node is
started again, until `clear`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from barnabas.broker.faults import faults as broker_faults
from barnabas.broker.faults.rules import ActiveRule, Rule, RuleError, api_name
from barnabas.broker.surroundings import REAL_WORLD, Surroundings
from barnabas.wire import ErrorCode

T = TypeVar("T")

__all__ = ["FaultRule", "Faults", "RuleError"]


class FaultRule:
    """A rule that was set. `seen` counts the requests that it is about, `hits` those that it hit."""

    def __init__(self, faults: Faults, active: ActiveRule) -> None:
        self._faults = faults
        self._active = active

    @property
    def seen(self) -> int:
        return self._active.seen

    @property
    def hits(self) -> int:
        return self._active.hits

    def remove(self) -> None:
        """Remove the rule. Does nothing if it is gone."""
        self._faults.run(lambda: self._faults.state.remove(self._active.id))

    def __repr__(self) -> str:
        return f"<FaultRule {self._active.rule}, {self.hits} hits>"


class Faults:
    """`Broker.faults` and `Cluster.faults`. A wrong rule is a `RuleError`, a ValueError that says what is wrong."""

    def __init__(self, base: Surroundings = REAL_WORLD) -> None:
        self.state = broker_faults.Faults(base)
        self.in_loop: Callable[[Callable[[], object]], object] | None = None  # set while the nodes run in a thread

    def run(self, change: Callable[[], T]) -> T:
        """Make a change in the event loop of the nodes."""
        if self.in_loop is None:
            return change()
        results: list[T] = []
        self.in_loop(lambda: results.append(change()))
        return results[0]

    # --- requests

    def fail(
        self,
        api: str | int,
        error: str | ErrorCode,
        *,
        client_id: str | None = None,
        topic: str | None = None,
        node: int | None = None,
        nth: int = 1,
        times: int | None = 1,
        after: bool = False,
    ) -> FaultRule:
        """Fail the n-th request of an API with an error, and the next ones if `times` is more than 1, or None for all.

        The requests are counted by client id, topic and node, if these are given. With `after`, a request is carried out first.
        """
        name = error.name if isinstance(error, ErrorCode) else error
        rule = Rule(
            api=api_name(api),
            error=name,
            client_id=client_id,
            topic=topic,
            node=node,
            nth=nth,
            times=times,
            after=after,
        )
        return self.add(rule)

    def delay(
        self,
        api: str | int,
        delay_ms: int,
        *,
        client_id: str | None = None,
        topic: str | None = None,
        node: int | None = None,
        nth: int = 1,
        times: int | None = 1,
        after: bool = False,
    ) -> FaultRule:
        """Delay the n-th request of an API, or its answer with `after`. The arguments are those of `fail`."""
        rule = Rule(
            api=api_name(api),
            delay_ms=delay_ms,
            client_id=client_id,
            topic=topic,
            node=node,
            nth=nth,
            times=times,
            after=after,
        )
        return self.add(rule)

    def drop(
        self,
        api: str | int,
        *,
        client_id: str | None = None,
        topic: str | None = None,
        node: int | None = None,
        nth: int = 1,
        times: int | None = 1,
        after: bool = False,
    ) -> FaultRule:
        """Close the connection at the n-th request of an API instead of an answer. The arguments are those of `fail`."""
        rule = Rule(
            api=api_name(api), drop=True, client_id=client_id, topic=topic, node=node, nth=nth, times=times, after=after
        )
        return self.add(rule)

    def add(self, rule: Rule) -> FaultRule:
        """Set a rule."""
        return FaultRule(self, self.run(lambda: self.state.add(rule)))

    def clear(self) -> None:
        """Remove all rules, end all isolations and heal all disks. Time does not go back."""
        self.run(self.state.clear)

    # --- nodes, disks and time

    def isolate(self, node: int, *, others: Iterable[int] | None = None, clients: bool | None = None) -> None:
        """Isolate a node from `others`, or from all other nodes and from clients. Its connections are closed once."""
        self.run(lambda: self.state.isolate(node, others, from_clients=clients))

    def heal(self, node: int | None = None) -> None:
        """End the isolation of a node, or of all."""
        self.run(lambda: self.state.heal(node))

    def fill_disk(self, node: int = 1) -> None:
        """Make the log dirs of a node full. As on a real disk, they fail at the next write that needs room."""
        self.run(lambda: self.state.set_disk(node, is_full=True))

    def slow_disk(self, slow_ms: int, node: int = 1) -> None:
        """Make each flush and each read from disk of a node take longer."""
        self.run(lambda: self.state.set_disk(node, slow_ms=slow_ms))

    def heal_disk(self, node: int = 1) -> None:
        self.run(lambda: self.state.set_disk(node))

    def advance_time(self, ms: int) -> None:
        """Let time pass at once, for all nodes: retention, sessions of groups, transactions, tokens."""
        self.run(lambda: self.state.clock.advance(ms))
