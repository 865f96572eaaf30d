"""The time that one request takes of the event loop, for the quota `request_percentage`.

100 % is the whole event loop, the one thread in which a node decodes requests, handles them, and encodes and writes
responses. While a request waits for a disk, a commit or a thread, others are served, and its time stands still. Time is
measured only while someone has such a quota.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator
from typing import Any, Final, TypeVar

from barnabas.quotas.clients import ClientQuota
from barnabas.steps import Slices

R = TypeVar("R")

_PERCENT_PER_NS: Final = 100 / 1e9  # of a second


class RequestTime:
    """The time of a request. It runs from the beginning until `pause`, and then within the steps of its work."""

    __slots__ = ("_client_id", "_clock", "_quota", "_since_ns", "_spent_ns", "_user", "was_recorded")

    def __init__(self, quota: ClientQuota, user: str, clock: Callable[[], int]) -> None:
        self._quota = quota
        self._user = user
        self._client_id: str | None = None
        self._clock = clock
        self._spent_ns = 0
        self._since_ns: int | None = clock()
        self.was_recorded = False

    def pause(self) -> None:
        if self._since_ns is not None:
            self._spent_ns += self._clock() - self._since_ns
            self._since_ns = None

    def record(self, client_id: str | None, now_ms: int) -> int:
        """Record the time so far and return the throttle time, or 0. The rest counts for later requests."""
        self._client_id = client_id
        self.was_recorded = True
        return self._quota.record(self._user, client_id, self._take(), now_ms)

    def settle(self, now_ms: int) -> None:
        """Record what the request took after `record`: the time to encode and write its response."""
        if self.was_recorded:
            self._quota.add(self._user, self._client_id, self._take(), now_ms)

    def of_steps(self, work: Slices[R]) -> Slices[R]:
        """Return the work, which is measured."""
        try:
            while True:
                is_inner = self.begin()
                try:
                    awaited = next(work)
                except StopIteration as end:
                    result: R = end.value
                    return result
                finally:
                    if not is_inner:
                        self.pause()
                yield awaited
        finally:
            work.close()

    def of(self, work: Awaitable[R]) -> Awaitable[R]:
        """Return the work, which is measured."""
        return _Measured(self, work)

    def begin(self) -> bool:
        """Let the time run, and return True if it did already."""
        if self._since_ns is not None:
            return True
        self._since_ns = self._clock()
        return False

    def _take(self) -> float:
        is_running = self._since_ns is not None
        self.pause()
        spent_ns, self._spent_ns = self._spent_ns, 0
        if is_running:
            self.begin()
        return spent_ns * _PERCENT_PER_NS


class _Measured(Awaitable[R]):
    def __init__(self, time: RequestTime, work: Awaitable[R]) -> None:
        self._time = time
        self._work = work

    def __await__(self) -> Generator[Any, Any, R]:
        steps: Any = self._work.__await__()
        error: BaseException | None = None  # such as a cancellation
        while True:
            is_inner = self._time.begin()
            try:
                awaited = next(steps) if error is None else steps.throw(error)
            except StopIteration as end:
                result: R = end.value
                return result
            finally:
                if not is_inner:
                    self._time.pause()
            error = None
            try:
                yield awaited
            except BaseException as thrown:
                error = thrown
