"""Base of the parts of `Admin`: the cluster, and results per item.

Its one rule: the failure of one item is a value. A method for several items returns a dict with the result of each item, or its
`KafkaError`. It raises only errors of the whole call: no broker reached, a timeout, a broker that is too old. `checked` returns
such a dict if it has no errors, or raises the first one.

Each part can be used alone, as in `Topics(cluster)`, which imports only what it needs. `Admin` has all of them.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

from barnabas.client.arguments import checks_arguments
from barnabas.client.cluster import Cluster
from barnabas.client.errors import CallTimeoutError, error_code
from barnabas.client.retry import maybe_done
from barnabas.wire.errors import ErrorCode, KafkaError, UnsupportedVersionError

K = TypeVar("K")
T = TypeVar("T")


class Part:
    """The methods of one subject. Their arguments are checked against their annotations; see `arguments`."""

    def __init_subclass__(cls) -> None:
        for name, method in list(vars(cls).items()):
            if inspect.isfunction(method) and not name.startswith("_"):
                setattr(cls, name, checks_arguments(method))

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster


class TimedOutError(KafkaError):
    """A change was not confirmed in time. `happened` tells whether it is in effect now; None if that is unknown."""

    def __init__(self, what: str, happened: bool | None, said: str | None = None) -> None:
        """`said` is the broker's error message."""
        self.happened = happened
        found = {
            True: "it is in effect",
            False: "it is not in effect yet, but may still be",
            None: "whether it is in effect is unknown",
        }[happened]
        super().__init__(
            ErrorCode.REQUEST_TIMED_OUT, f"{what} was not confirmed in time{f' ({said})' if said else ''}; {found}"
        )


def failed(code: int, message: str | None = None) -> KafkaError | None:
    """Return the error of an item, or None if its code is 0."""
    if code == ErrorCode.NONE:
        return None
    known = error_code(code)
    return KafkaError(known, message or known.message)


def checked(results: Mapping[K, T | KafkaError]) -> dict[K, T]:
    """Return the results if none is an error, else raise the first error."""
    for result in results.values():
        if isinstance(result, KafkaError):
            raise result
    return {key: result for key, result in results.items() if not isinstance(result, KafkaError)}


def errors(results: Mapping[K, T | KafkaError]) -> dict[K, KafkaError]:
    """Return the items that failed, with their errors."""
    return {key: result for key, result in results.items() if isinstance(result, KafkaError)}


def pieces(items: Iterable[T], size: int) -> Iterator[list[T]]:
    """Split items into lists of at most `size`."""
    whole: Sequence[T] = list(items)
    for start in range(0, len(whole), size):
        yield list(whole[start : start + size])


async def change(
    keys: Sequence[K],
    ask: Callable[[], Awaitable[dict[K, T | KafkaError]]],
    look: Callable[[list[K]], Awaitable[Mapping[K, bool]]],
    what: Callable[[K], str],
) -> dict[K, T | KafkaError]:
    """Request a change. If it is not confirmed in time, check whether it happened; the item's result is a `TimedOutError`.

    `look` returns for each item whether the change is in effect. If `look` fails, that is unknown.
    """
    results: dict[K, T | KafkaError] = {}
    try:
        results = await ask()
        late = [key for key, result in results.items() if _is_late(result)]
    except (CallTimeoutError, OSError) as error:
        if not maybe_done(error):
            raise
        late = list(keys)
    if not late:
        return results
    try:
        found = await look(late)
    except (KafkaError, UnsupportedVersionError, OSError):
        found = {}
    return {**results, **{key: TimedOutError(what(key), found.get(key), _said(results.get(key))) for key in late}}


async def change_one(ask: Callable[[], Awaitable[T]], look: Callable[[], Awaitable[bool]], what: str) -> T:
    """Like `change` for a single item: returns its result or raises its error."""

    async def asked() -> dict[None, T | KafkaError]:
        try:
            return {None: await ask()}
        except KafkaError as error:
            return {None: error}

    async def looked(_: list[None]) -> dict[None, bool]:
        return {None: await look()}

    result = (await change([None], asked, looked, lambda _: what))[None]
    if isinstance(result, KafkaError):
        raise result
    return result


def _said(result: object) -> str | None:
    """Return the broker's error message, if it sent one."""
    has_words = isinstance(result, KafkaError) and result.message != result.code.message
    return result.message if has_words and isinstance(result, KafkaError) else None


def _is_late(result: object) -> bool:
    return isinstance(result, KafkaError) and result.code == ErrorCode.REQUEST_TIMED_OUT
