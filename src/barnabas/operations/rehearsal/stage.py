"""A copy of a cluster's metadata on which the controller decides. Time and randomness are those of the rehearsal.

Its one rule: all changes of the image are records of a decision of `controller`. Like the active controller, the stage decides
nothing when a majority of the voters has died.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from random import Random
from typing import Any, NamedTuple, TypeVar

from barnabas.config.server_config import ServerConfig
from barnabas.controller.heartbeats import Heartbeats
from barnabas.controller.situation import Situation
from barnabas.metadata.brokers import Broker
from barnabas.metadata.image import MetadataImage, Provenance
from barnabas.metadata.replay import replay
from barnabas.replicated.decision import Result
from barnabas.steps import Slices, at_once, result_of
from barnabas.wire import KafkaError, Message

R = TypeVar("R")


class Written(NamedTuple):
    """A record that would be written, and the version to write it in."""

    record: Message
    version: int


class Step(NamedTuple):
    """Something that happens: the records that would be written because of it, and what would be refused."""

    what: str
    records: list[Written]
    refusals: list[str]


class NoQuorumError(Exception):
    """A majority of the voters has died, so nothing can be decided."""


class Stage:
    """The copy. `voters` are the ids of the voters of the quorum, empty if they are not known."""

    def __init__(
        self, image: MetadataImage, config: ServerConfig, *, voters: Iterable[int] = (), seed: int = 0
    ) -> None:
        self.image = image
        self.config = config
        self.voters = frozenset(voters)
        self.dead: set[int] = set()
        self.silent: set[int] = set()
        """Nodes whose broker sends no heartbeats: the dead, and those that have not registered again yet."""
        self.killed: set[int] = set()
        """Those of the dead that had no time to write down that they stop."""
        self.returned: set[int] = set()
        self.steps: list[Step] = []
        self.random = Random(seed)
        self.monotonic_ms = 0
        self.heartbeats = Heartbeats.started(image, 0)

    @property
    def situation(self) -> Situation:
        now_ms = self.image.provenance.last_contained_timestamp_ms + self.monotonic_ms
        return Situation(self.image, self.config, now_ms, self.random, self.heartbeats, self.monotonic_ms)

    @contextmanager
    def step(self, what: str, *, is_shown_if_empty: bool = True) -> Iterator[Step]:
        """Collect what is decided inside as one step. Errors of the controller become its refusals."""
        step = Step(what, [], [])
        self.steps.append(step)
        try:
            yield step
        except KafkaError as error:
            step.refusals.append(f"{error.code.name}: {error.message}")
        except NoQuorumError as error:
            step.refusals.append(str(error))
        if not (is_shown_if_empty or step.records or step.refusals):
            self.steps.remove(step)

    def decide(self, decision: Callable[..., Result[R] | Slices[Result[R]]], *arguments: Any) -> R:
        """Apply the records of a decision, and return its response. Raises KafkaError and NoQuorumError."""
        if self.has_lost_quorum:
            alive = len(self.voters - self.dead)
            raise NoQuorumError(
                f"{alive} of {len(self.voters)} voters of the metadata quorum would be left: nothing could be decided"
            )
        result = at_once(result_of(decision(self.situation, *arguments)))
        written = [Written(record, version) for record, version in result.records]
        if written:
            end = self.image.provenance
            after = Provenance(
                end.last_contained_offset + len(written), end.last_contained_epoch, self.situation.now_ms
            )
            self.image = replay(self.image, (each.record for each in written), after)
            self.steps[-1].records.extend(written)
        return result.response

    @property
    def has_lost_quorum(self) -> bool:
        return bool(self.voters) and 2 * len(self.voters - self.dead) <= len(self.voters)

    def lose(self, nodes: Iterable[int], *, cleanly: bool = False) -> None:
        """Note that nodes are gone."""
        some = set(nodes)
        self.dead |= some
        self.silent |= some
        self.returned -= some
        if not cleanly:
            self.killed |= some

    def alive(self) -> list[Broker]:
        """The brokers that send heartbeats: the unfenced ones that are not silent."""
        brokers = (broker for _, broker in sorted(self.image.brokers.items()))
        return [broker for broker in brokers if not broker.fenced and broker.broker_id not in self.silent]
