"""The server-side assignors of the consumer protocol: they decide which member of a group reads which partitions.

Pure, and generators, because a group may have thousands of members and partitions. Each member gets the same
partitions as from Kafka's own assignors. Members, topics and partitions come and are
returned in the order of Kafka's hash tables. Racks are ignored, as in Kafka.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from barnabas.groups.assignors import range as range_assignor
from barnabas.groups.assignors import uniform
from barnabas.groups.assignors.specification import Assignment, AssignorError, GroupSpecification, MemberSpecification
from barnabas.steps import Slices

__all__ = ["ASSIGNORS", "Assignment", "AssignorError", "GroupSpecification", "MemberSpecification"]

Assignor = Callable[[GroupSpecification], Slices[dict[str, Assignment]]]

ASSIGNORS: Mapping[str, Assignor] = {"uniform": uniform.assign, "range": range_assignor.assign}
