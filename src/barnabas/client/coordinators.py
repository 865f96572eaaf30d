"""Cache of the coordinators of groups and transactional ids: many are found in one request, and kept until they fail."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence

from barnabas.client.errors import error_code
from barnabas.client.routing import Coordinator, CoordinatorType
from barnabas.client.shared import begin, end, join
from barnabas.wire import ErrorCode, KafkaError
from barnabas.wire.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse

Found = dict[Coordinator, int | KafkaError]
Ask = Callable[[CoordinatorType, Sequence[str]], Awaitable[Found]]

_FIRST_WITH_MANY = 4
_FIRST_WITH_TYPES = 1
_FIRST_WITH_SHARE = 6
MAX_KNOWN = 100_000


class Coordinators:
    """The known coordinators. `ask` sends a request for several keys of one type."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask
        self.known: dict[Coordinator, int] = {}
        self._asking: dict[Coordinator, asyncio.Task[Found]] = {}

    async def find(self, wanted: Iterable[Coordinator]) -> Found:
        """Return the node id of each coordinator, or its error."""
        wanted = list(dict.fromkeys(wanted))
        unknown = [each for each in wanted if each not in self.known and each not in self._asking]
        for kind in {each.type for each in unknown}:
            keys = [each for each in unknown if each.type is kind]
            self._asking.update(dict.fromkeys(keys, begin(self._learn(kind, keys))))
        found: Found = {each: self.known[each] for each in wanted if each in self.known}
        for task in {self._asking[each]: None for each in wanted if each not in found}:
            found.update(await join(task))
        return {each: found[each] for each in wanted}

    async def _learn(self, type: CoordinatorType, wanted: list[Coordinator]) -> Found:
        try:
            found = await self._ask(type, [each.key for each in wanted])
            if len(self.known) > MAX_KNOWN:
                self.known.clear()
            self.known.update((each, node_id) for each, node_id in found.items() if isinstance(node_id, int))
            return found
        finally:
            for each in wanted:
                self._asking.pop(each, None)

    def forget(self, coordinator: Coordinator) -> None:
        self.known.pop(coordinator, None)

    async def close(self) -> None:
        await end(set(self._asking.values()))


def find_requests(type: CoordinatorType, keys: Sequence[str], version: int) -> list[FindCoordinatorRequest]:
    """Return the requests to send: one for all keys, or in versions before 4 one for each key."""
    if version >= _FIRST_WITH_MANY:
        return [FindCoordinatorRequest(key_type=type, coordinator_keys=list(keys))]
    return [FindCoordinatorRequest(key_type=type, key=key) for key in keys]


def least_version(type: CoordinatorType) -> int:
    """Return the first version that supports this type."""
    return {
        CoordinatorType.GROUP: 0,
        CoordinatorType.TRANSACTION: _FIRST_WITH_TYPES,
        CoordinatorType.SHARE: _FIRST_WITH_SHARE,
    }[type]


def found_in(type: CoordinatorType, request: FindCoordinatorRequest, response: FindCoordinatorResponse) -> Found:
    if not request.coordinator_keys:
        one = response.node_id if not response.error_code else _error(request.key, response)
        return {Coordinator(request.key, type): one}
    unanswered = FindCoordinatorResponse.Coordinator(error_code=ErrorCode.COORDINATOR_NOT_AVAILABLE)
    rows = {row.key: row for row in response.coordinators}
    told = {key: rows.get(key, unanswered) for key in request.coordinator_keys}
    return {
        Coordinator(key, type): row.node_id if not row.error_code else _error(key, row) for key, row in told.items()
    }


def _error(key: str, row: FindCoordinatorResponse | FindCoordinatorResponse.Coordinator) -> KafkaError:
    code = error_code(row.error_code)
    return KafkaError(code, f"{key}: {row.error_message or code.message}")
