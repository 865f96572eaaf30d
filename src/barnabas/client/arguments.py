"""Checks of the arguments that users pass to `Admin`, `Producer` and `Consumer`.

Its one rule: a wrong type is a `TypeError` that names the argument, the type it has, and what to pass instead, before anything
is sent. Most checks come from the annotations of a method (`checks_arguments`). `producing.encoding` has
the checks of records. Pure.

>>> @checks_arguments
... def describe(topics: Iterable[str]) -> list[str]:
...     return list(topics)
>>> describe("orders")
Traceback (most recent call last):
TypeError: describe: topics must be an iterable of str, not the str 'orders': pass ['orders']
"""

from __future__ import annotations

import functools
import inspect
import sys
import types
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from enum import IntEnum
from typing import Any, NamedTuple, TypeVar, Union, get_args, get_origin, get_type_hints

F = TypeVar("F", bound=Callable[..., Any])

_MAX_SHOWN = 60


class Kind(NamedTuple):
    """A type of arguments. `fits` raises `_WrongError`, or returns the value, in which an iterator is replaced by a list."""

    name: str
    fits: Callable[[Any], Any]
    is_mapping: bool = False


class _WrongError(Exception):
    """A value of a wrong type: the value, its place in the argument, as in `[0]`, the expected type, and what to pass."""

    def __init__(self, value: object, expected: str, at: str = "", remedy: str = "") -> None:
        super().__init__(value, expected, at, remedy)
        self.value = value
        self.expected = expected
        self.at = at
        self.remedy = remedy


# --- methods


def checks_arguments(method: F) -> F:
    """Check the arguments of a function or a method against its annotations, at each call. Raises TypeError."""

    @functools.cache
    def plan() -> tuple[inspect.Signature, dict[str, Kind]]:
        return inspect.signature(method), _kinds_of(method)

    def checked(args: tuple[Any, ...], given: dict[str, Any]) -> inspect.BoundArguments:
        signature, kinds = plan()
        try:
            bound = signature.bind(*args, **given)
        except TypeError as error:
            raise TypeError(f"{method.__name__}: {error}") from None
        for name, value in bound.arguments.items():
            if name in kinds:
                try:
                    bound.arguments[name] = kinds[name].fits(value)
                except _WrongError as wrong:
                    raise TypeError(f"{method.__name__}: {_text(name, wrong)}") from None
        return bound

    if inspect.iscoroutinefunction(method):

        @functools.wraps(method)
        async def call_later(*args: Any, **given: Any) -> Any:
            bound = checked(args, given)
            return await method(*bound.args, **bound.kwargs)

        return call_later  # type: ignore[return-value]

    @functools.wraps(method)
    def call(*args: Any, **given: Any) -> Any:
        bound = checked(args, given)
        return method(*bound.args, **bound.kwargs)

    return call  # type: ignore[return-value]


def _kinds_of(method: Callable[..., Any]) -> dict[str, Kind]:
    annotations = {name: text for name, text in method.__annotations__.items() if name != "return"}
    names = vars(sys.modules[method.__module__])
    holder = type("holder", (), {"__annotations__": annotations})
    hints = get_type_hints(holder, globalns=names, localns=names)
    of_each = {
        name
        for name, parameter in inspect.signature(method).parameters.items()
        if parameter.kind is parameter.VAR_POSITIONAL
    }
    return {name: _items(_kind(hint), "values") if name in of_each else _kind(hint) for name, hint in hints.items()}


# --- types


def _kind(hint: Any) -> Kind:
    origin, inner = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return _one_of([_kind(each) for each in inner])
    if hint is type(None):
        return _instance("None", type(None))
    if origin is tuple and inner[-1] is ...:
        return _items(_kind(inner[0]), "a tuple")
    if origin is tuple:
        return _row("a tuple", [_kind(each) for each in inner], None)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return _pairs(*map(_kind, inner))
    if isinstance(origin, type) and issubclass(origin, Iterable) and not issubclass(origin, AsyncIterator):
        return _items(_kind(inner[0]), "an iterable")
    if isinstance(origin, type):
        return _instance(origin.__name__, origin)
    if hint is Any or not isinstance(hint, type):
        return Kind("anything", lambda value: value)
    if hint is float:
        return _instance("a number", (int, float))
    if issubclass(hint, IntEnum):
        return _instance(hint.__name__, int)
    if issubclass(hint, tuple) and hasattr(hint, "_fields"):
        fields = get_type_hints(hint)
        return _row(hint.__name__, [_kind(fields[name]) for name in hint._fields], hint)
    return _instance(hint.__name__, hint)


def _instance(name: str, cls: type | tuple[type, ...]) -> Kind:
    def fits(value: Any) -> Any:
        if not isinstance(value, cls):
            raise _WrongError(value, name)
        return value

    return Kind(name, fits)


def _one_of(kinds: list[Kind]) -> Kind:
    name = " or ".join(each.name for each in kinds)

    def fits(value: Any) -> Any:
        wrong = []
        mappings = [kind for kind in kinds if kind.is_mapping] if isinstance(value, Mapping) else []
        for kind in mappings or kinds:  # a mapping is also an iterable of its keys
            try:
                return kind.fits(value)
            except _WrongError as error:
                wrong.append(error)
        inside = [error for error in wrong if error.at]
        if inside:
            raise inside[0]
        raise _WrongError(value, name, remedy=next((error.remedy for error in wrong if error.remedy), ""))

    return Kind(name, fits)


def _row(name: str, kinds: list[Kind], cls: type[tuple[Any, ...]] | None) -> Kind:
    """A tuple with these items. An instance of `cls` is not checked further."""
    expected = f"({', '.join(kind.name for kind in kinds)})" if cls is None else name

    def fits(value: Any) -> Any:
        if cls is not None and isinstance(value, cls):
            return value
        if not isinstance(value, tuple) or len(value) != len(kinds):
            raise _WrongError(value, expected)
        for kind, each in zip(kinds, value, strict=True):
            try:
                kind.fits(each)
            except _WrongError:
                raise _WrongError(value, expected) from None
        return value

    return Kind(expected, fits)


def _items(kind: Kind, name: str) -> Kind:
    expected = f"{name} of {kind.name}"

    def fits(value: Any) -> Any:
        if isinstance(value, str | bytes | bytearray) or not isinstance(value, Iterable):
            raise _WrongError(value, expected, remedy=f"pass [{shown(value)}]")
        if isinstance(value, tuple) and hasattr(value, "_fields"):  # one TopicPartition, not several
            raise _WrongError(value, expected, remedy=f"pass [{shown(value)}]")
        items = value if hasattr(value, "__len__") else list(value)
        for at, each in enumerate(items):
            try:
                kind.fits(each)
            except _WrongError as wrong:
                raise _WrongError(wrong.value, wrong.expected, f"[{at}]{wrong.at}", wrong.remedy) from None
        return items

    return Kind(expected, fits)


def _pairs(keys: Kind, values: Kind) -> Kind:
    expected = f"a mapping of {keys.name} to {values.name}"

    def fits(value: Any) -> Any:
        if not isinstance(value, Mapping):
            raise _WrongError(value, expected)
        found = {}
        for key, each in value.items():
            try:
                keys.fits(key)
            except _WrongError as wrong:
                raise _WrongError(key, wrong.expected, f"[{shown(key)}]", "it is a key") from None
            try:
                found[key] = values.fits(each)
            except _WrongError as wrong:
                raise _WrongError(wrong.value, wrong.expected, f"[{shown(key)}]{wrong.at}", wrong.remedy) from None
        return found

    return Kind(expected, fits, is_mapping=True)


def _text(name: str, wrong: _WrongError) -> str:
    remedy = f": {wrong.remedy}" if wrong.remedy else ""
    return f"{name}{wrong.at} must be {wrong.expected}, not {described(wrong.value)}{remedy}"


def described(value: object) -> str:
    """Return the type of a value, and its repr if that is short."""
    return "None" if value is None else f"the {type(value).__name__} {shown(value)}"


def shown(value: object) -> str:
    """Return the repr of a value, cut off after 60 characters."""
    text = repr(value)
    return text if len(text) <= _MAX_SHOWN else f"{text[:_MAX_SHOWN]}..."


# --- settings


def check_config(config: object, *others: type) -> None:
    """Raise TypeError if the settings of a client are neither a mapping nor an instance of one of the other classes."""
    if not isinstance(config, (Mapping, *others)):
        names = ", ".join(["a mapping of settings", *(other.__name__ for other in others)])
        remedy = 'pass {"bootstrap.servers": "localhost:9092"}'
        raise TypeError(f"config must be one of {names}, not {described(config)}: {remedy}")


# --- numbers


def check_number(name: str, value: object) -> None:
    """Raise TypeError if an argument is not a number."""
    if not isinstance(value, int | float):
        raise TypeError(f"{name} must be a number, not {described(value)}")
