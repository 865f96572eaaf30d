"""What the parts of `Admin` have in common: the cluster they ask, and how per-item results look.

Its one rule: the failure of one item is a value. A method that is about several things answers a dict with, for each of
them, what was found or done, or the `KafkaError` that its broker gave; it raises only what concerns the whole call (no broker
reached, no time left, a broker too old). `checked` turns such a dict into one without errors, or raises the first.

Each part can be used alone, as `Topics(cluster)`: that imports only what it needs. `Admin` is all of them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

from barnabas.client.cluster import Cluster
from barnabas.client.errors import CallTimeoutError, error_code
from barnabas.client.retry import maybe_done
from barnabas.wire.errors import ErrorCode, KafkaError, UnsupportedVersionError

K = TypeVar("K")
T = TypeVar("T")


class Part:
    """Methods about one kind of thing."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster


class TimedOutError(KafkaError):
    """A change was not confirmed in time. `happened` says whether it is there now; None: that could not be found out."""

    def __init__(self, what: str, happened: bool | None, said: str | None = None) -> None:
        """`said` is what the broker gave as its reason."""
        self.happened = happened
        found = {
            True: "it was done all the same",
            False: "it was not done so far; it may still be",
            None: "whether it was done could not be found out",
        }[happened]
        super().__init__(
            ErrorCode.REQUEST_TIMED_OUT, f"{what} was not confirmed in time{f' ({said})' if said else ''}; {found}"
        )


def failed(code: int, message: str | None = None) -> KafkaError | None:
    """The error of an item; None if its code is 0."""
    if code == ErrorCode.NONE:
        return None
    known = error_code(code)
    return KafkaError(known, message or known.message)


def checked(results: Mapping[K, T | KafkaError]) -> dict[K, T]:
    """The results without errors; raises the first error there is."""
    for result in results.values():
        if isinstance(result, KafkaError):
            raise result
    return {key: result for key, result in results.items() if not isinstance(result, KafkaError)}


def errors(results: Mapping[K, T | KafkaError]) -> dict[K, KafkaError]:
    """The items that failed."""
    return {key: result for key, result in results.items() if isinstance(result, KafkaError)}


def pieces(items: Iterable[T], size: int) -> Iterator[list[T]]:
    """A long list in pieces that each fit into one request."""
    whole: Sequence[T] = list(items)
    for start in range(0, len(whole), size):
        yield list(whole[start : start + size])


async def change(
    keys: Sequence[K],
    ask: Callable[[], Awaitable[dict[K, T | KafkaError]]],
    look: Callable[[list[K]], Awaitable[Mapping[K, bool]]],
    what: Callable[[K], str],
) -> dict[K, T | KafkaError]:
    """Ask for a change; where it was not confirmed in time, look whether it happened: that item is a `TimedOutError`.

    `look` says of each item whether it is now as it was asked to be. An error of `look` means that nobody knows.
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
    """As `change`, of one thing whose error is the whole answer's: what it gave, or its error raised."""

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
    """The broker's own words, if it had any."""
    has_words = isinstance(result, KafkaError) and result.message != result.code.message
    return result.message if has_words and isinstance(result, KafkaError) else None


def _is_late(result: object) -> bool:
    return isinstance(result, KafkaError) and result.code == ErrorCode.REQUEST_TIMED_OUT
