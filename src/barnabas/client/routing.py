"""Choose the node that a request goes to. Pure.

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
    """Type of a coordinator, by its number in FindCoordinator."""

    GROUP = 0
    TRANSACTION = 1
    SHARE = 2


@dataclass(frozen=True, slots=True)
class AnyBroker:
    """The node with the least load."""


@dataclass(frozen=True, slots=True)
class Controller:
    """The active controller, or a broker that forwards to it."""


@dataclass(frozen=True, slots=True)
class Leader:
    """The leader of a partition."""

    topic: str
    partition: int


@dataclass(frozen=True, slots=True)
class Coordinator:
    """The coordinator of a group or a transactional id."""

    key: str
    type: CoordinatorType


@dataclass(frozen=True, slots=True)
class NodeId:
    """The node with this id."""

    id: int


Destination: TypeAlias = AnyBroker | Controller | Leader | Coordinator | NodeId


def any_broker() -> Destination:
    return AnyBroker()


def controller() -> Destination:
    return Controller()


def leader(topic: str, partition: int) -> Destination:
    return Leader(topic, partition)


def coordinator(key: str, type: CoordinatorType = CoordinatorType.GROUP) -> Destination:
    """Return the coordinator of a group, or by `type` of a transactional id or a share group's partition."""
    return Coordinator(key, type)


def node(id: int) -> Destination:
    return NodeId(id)


class Missing(Enum):
    """What is not known yet about a destination."""

    NODE = "node"
    LEADER = "leader"
    COORDINATOR = "coordinator"


def resolve(to: Destination, state: ClusterState, coordinators: Mapping[Coordinator, int]) -> int | Missing | None:
    """Return the id of a node, or what is missing, or None if any node will do."""
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
    """Load of a node: requests in flight, and seconds until it may be connected to, or sent requests if it throttles them."""

    node_id: int
    is_open: bool
    in_flight: int = 0
    ready_in_s: float = 0.0


def least_loaded(loads: Iterable[Load], random: Callable[[], float]) -> list[int]:
    """Return node ids in the order to try them: connected ones by load, then those that can be connected to now, then those
    that failed a moment ago. Equal ones are in random order.

    >>> least_loaded([Load(1, False), Load(2, True, 5), Load(3, True, 1), Load(4, False, 0, 0.5)], lambda: 0.0)
    [3, 2, 1, 4]
    """
    order = sorted((not each.is_open, each.ready_in_s, each.in_flight, random(), each.node_id) for each in loads)
    return [node_id for *_, node_id in order]
