"""What happens in a rehearsal, as options and forms name it: a kind such as `kill`, and what it happens to."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from barnabas.operations.rehearsal.happenings import (
    DeleteTopics,
    Elect,
    FailLogDir,
    Happening,
    Kill,
    KillRack,
    Start,
    StartRack,
    Stop,
    Unregister,
)
from barnabas.wire import Uuid

ELECTIONS: Final = ("preferred", "unclean")


class Kind(NamedTuple):
    """A kind of happening: what it happens to, and how to make one of a text. Making it may raise ValueError."""

    subject: str
    make: Callable[[str], Happening]


def _node(text: str) -> int:
    if not (text.isascii() and text.isdecimal()):
        raise ValueError(f"{text!r} is not the id of a node")
    return int(text)


def _log_dir(text: str) -> FailLogDir:
    node, _, directory = text.partition(":")
    try:
        return FailLogDir(int(node), Uuid.parse(directory))
    except ValueError:
        raise ValueError(f"{text!r} is not NODE:ID, such as 3:zK5FDJ7sSuGiPbLuyS2LuA") from None


def _election(text: str) -> Elect:
    if text not in ELECTIONS:
        raise ValueError(f"{text!r} is none of {', '.join(ELECTIONS)}")
    return Elect(text)


KINDS: Final[Mapping[str, Kind]] = {
    "kill": Kind("NODE", lambda text: Kill([_node(text)])),
    "kill-rack": Kind("RACK", KillRack),
    "stop": Kind("NODE", lambda text: Stop(_node(text))),
    "start": Kind("NODE", lambda text: Start([_node(text)])),
    "start-rack": Kind("RACK", StartRack),
    "fail-log-dir": Kind("NODE:ID", _log_dir),
    "unregister": Kind("NODE", lambda text: Unregister(_node(text))),
    "delete-topic": Kind("TOPIC", lambda text: DeleteTopics([text])),
    "elect": Kind("TYPE", _election),
}


def happening(kind: str, subject: str) -> Happening:
    """Return what happens. Raises ValueError.

    >>> happening("kill", "3")
    Kill(nodes=[3], because='')
    """
    found = KINDS.get(kind)
    if found is None:
        raise ValueError(f"{kind!r} cannot be rehearsed; there are {', '.join(KINDS)}")
    return found.make(subject)
