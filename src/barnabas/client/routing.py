"""Which node a request goes to. Pure: the state of the cluster in, a node or what is missing out.

>>> from barnabas.client.state import EMPTY_STATE
>>> resolve(node(3), EMPTY_STATE, {})
<Missing.NODE: 'node'>
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum, IntEnum
from typing import NamedTuple, TypeAlias

from barnabas.client.state import NO_LEADER, ClusterState


class CoordinatorType(IntEnum):
    """What a coordinator coordinates, by the number FindCoordinator has for it."""

    GROUP = 0
    TRANSACTION = 1
    SHARE = 2


@dataclass(frozen=True, slots=True)
class AnyBroker:
    """Whichever node has the least to do."""


@dataclass(frozen=True, slots=True)
class Controller:
    """The active controller, or the broker that stands for it."""


@dataclass(frozen=True, slots=True)
class Leader:
    """Whoever leads a partition."""

    topic: str
    partition: int


@dataclass(frozen=True, slots=True)
class Coordinator:
    """Whoever coordinates a group or a transactional id."""

    key: str
    type: CoordinatorType


@dataclass(frozen=True, slots=True)
class NodeId:
    """One given node."""

    id: int


Destination: TypeAlias = AnyBroker | Controller | Leader | Coordinator | NodeId


def any_broker() -> Destination:
    return AnyBroker()


def controller() -> Destination:
    return Controller()


def leader(topic: str, partition: int) -> Destination:
    return Leader(topic, partition)


def coordinator(key: str, type: CoordinatorType = CoordinatorType.GROUP) -> Destination:
    """The coordinator of a group, or with a type that of a transactional id (or of a share group's partition)."""
    return Coordinator(key, type)


def node(id: int) -> Destination:
    return NodeId(id)


class Missing(Enum):
    """What must be learnt before a destination is a node."""

    NODE = "node"
    LEADER = "leader"
    COORDINATOR = "coordinator"


def resolve(to: Destination, state: ClusterState, coordinators: Mapping[Coordinator, int]) -> int | Missing | None:
    """The id of a node, or what is missing; None when any node will do."""
    match to:
        case AnyBroker():
            return None
        case Controller():
            return state.controller_id if state.controller_id in state.nodes else Missing.NODE
        case Leader(topic, partition):
            found = state.partition(topic, partition)
            known = found is not None and found.leader_id != NO_LEADER and found.leader_id in state.nodes
            return found.leader_id if found is not None and known else Missing.LEADER
        case Coordinator():
            if to not in coordinators:
                return Missing.COORDINATOR
            return coordinators[to] if coordinators[to] in state.nodes else Missing.NODE
        case NodeId(id):
            return id if id in state.nodes else Missing.NODE


class Load(NamedTuple):
    """How busy a node is: requests under way, and how long until it may be connected to, 0 if it may or is."""

    node_id: int
    is_open: bool
    in_flight: int = 0
    ready_in_s: float = 0.0


def least_loaded(loads: Iterable[Load], random: Callable[[], float]) -> list[int]:
    """Nodes in the order to try them: connected ones by what they have to do, then those that may be connected to, then
    those that failed a moment ago. Chance decides among equals.

    >>> least_loaded([Load(1, False), Load(2, True, 5), Load(3, True, 1), Load(4, False, 0, 0.5)], lambda: 0.0)
    [3, 2, 1, 4]
    """
    order = sorted((not each.is_open, each.ready_in_s, each.in_flight, random(), each.node_id) for each in loads)
    return [node_id for *_, node_id in order]
