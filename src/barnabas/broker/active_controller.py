"""The controller on the node that leads the metadata quorum: runs decisions and waits for their commits."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from random import Random
from typing import Any, TypeVar

from barnabas.config.server_config import ServerConfig
from barnabas.controller.heartbeats import NO_HEARTBEATS, Heartbeats
from barnabas.controller.situation import Situation
from barnabas.metadata.image import MetadataImage, Provenance
from barnabas.metadata.replay import replay_in_slices
from barnabas.replicated.decision import Result
from barnabas.replicated.loop import Appended, Appender, Batch, Loop, ignore_appended
from barnabas.steps import Slices
from barnabas.wire import ErrorCode, KafkaError

R = TypeVar("R")

# The timeout of a request limits the time until the decision, as in Kafka. The commit is given at least this time.
MIN_COMMIT_TIMEOUT_MS = 60_000


def check_deadline(timeout_ms: int) -> None:
    """Raise REQUEST_TIMED_OUT if the timeout of a request is over before it starts. Nothing is changed then."""
    if timeout_ms <= 0:
        raise KafkaError(ErrorCode.REQUEST_TIMED_OUT)


def apply_batch(image: MetadataImage, batch: Batch) -> Slices[MetadataImage]:
    return replay_in_slices(image, batch.records, Provenance(batch.last_offset, batch.epoch, batch.timestamp_ms))


class ActiveController:
    """Implements `broker.context.Controller` over a `Loop`.

    `monotonic_ms` defaults to `now_ms`. `kraft_version` returns the voters' kraft.version.
    """

    def __init__(
        self,
        image: MetadataImage,
        config: ServerConfig,
        log: Appender,
        now_ms: Callable[[], int],
        random: Random,
        *,
        monotonic_ms: Callable[[], int] | None = None,
        cluster_id: str = "",
        kraft_version: Callable[[], int] = lambda: 0,
        raise_kraft_version: Callable[[int], None] = lambda epoch: None,
        end_offset: Callable[[], int] | None = None,
        on_failure: Callable[[Exception], None] = lambda error: None,
    ) -> None:
        self.loop = Loop(image, apply_batch, log, now_ms, on_failure=on_failure)
        self.heartbeats: Heartbeats = NO_HEARTBEATS
        self._heartbeats_epoch = -1
        self._config = config
        self._now_ms = now_ms
        self._monotonic_ms = monotonic_ms or now_ms
        self._random = random
        self._cluster_id = cluster_id
        self._kraft_version = kraft_version
        self._raise_kraft_version = raise_kraft_version
        self._end_offset = end_offset

    @property
    def image(self) -> MetadataImage:
        """The committed image."""
        return self.loop.image

    async def write(
        self,
        decision: Callable[..., Result[R] | Slices[Result[R]]],
        *arguments: Any,
        timeout_ms: int | None = None,
        accepted: Callable[[R], None] = lambda response: None,
        appended: Appended = ignore_appended,
    ) -> R:
        def decide(head: MetadataImage) -> Result[R] | Slices[Result[R]]:
            return decision(self._situation(head), *arguments)

        if timeout_ms is None:
            return await self.loop.write(decide, accepted, appended)
        check_deadline(timeout_ms)
        try:
            async with asyncio.timeout(max(timeout_ms, MIN_COMMIT_TIMEOUT_MS) / 1000):
                return await self.loop.write(decide, accepted, appended)
        except TimeoutError:
            raise KafkaError(ErrorCode.REQUEST_TIMED_OUT) from None

    def write_nowait(self, decision: Callable[..., Result[R] | Slices[Result[R]]], *arguments: Any) -> R:
        """Decide and append at once, before anyone else. The response is returned before the commit."""
        return self.loop.write_nowait(lambda head: decision(self._situation(head), *arguments))

    @contextmanager
    def heard(self, broker_id: int, broker_epoch: int) -> Iterator[None]:
        """Note a heartbeat before its decision, which may have to wait, and again when it is answered."""
        heartbeats = self.heartbeats
        if not self.loop.is_leader or self._heartbeats_epoch != self.loop.epoch:
            yield  # the decision refuses it, or starts new sessions
            return
        heartbeats.arrived(broker_id, broker_epoch, self._monotonic_ms())
        try:
            yield
        except BaseException:
            heartbeats.dropped(broker_id, broker_epoch)
            raise
        heartbeats.answered(broker_id, broker_epoch, self._monotonic_ms())

    def until_session_expires_ms(self, timeout_ms: int) -> int | None:
        """Return the time until the next session of a broker expires, if it stays silent. None if none can."""
        if not self.loop.is_leader or self._heartbeats_epoch != self.loop.epoch:
            return None
        expiry_ms = self.heartbeats.next_expiry_ms(timeout_ms)
        return None if expiry_ms is None else expiry_ms - self._monotonic_ms()

    def raise_kraft_version(self, level: int) -> None:
        """Raise kraft.version if it is lower, with the next records. A decision must have allowed the level."""
        if level > self._kraft_version():
            self._raise_kraft_version(self.loop.epoch)

    def _situation(self, head: MetadataImage) -> Situation:
        monotonic_ms = self._monotonic_ms()
        if self._heartbeats_epoch != self.loop.epoch:
            # Soft state is valid for one term of leadership only.
            self.heartbeats = Heartbeats.started(head, monotonic_ms)
            self._heartbeats_epoch = self.loop.epoch
        return Situation(
            head,
            self._config,
            self._now_ms(),
            self._random,
            self.heartbeats,
            monotonic_ms,
            self._cluster_id,
            self._kraft_version(),
            None if self._end_offset is None else self._end_offset(),
        )
