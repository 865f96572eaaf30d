"""The server side assignors of the consumer protocol: which member of a group reads which partitions.

Pure, and with the results of Kafka's own, member by member. The order of members, of topics and of partitions in what is
given and in what comes back is that of Kafka's tables. Racks are not looked at, as in Kafka.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from barnabas.groups.assignors import range as range_assignor
from barnabas.groups.assignors import uniform
from barnabas.groups.assignors.specification import Assignment, AssignorError, GroupSpecification, MemberSpecification

__all__ = ["ASSIGNORS", "Assignment", "AssignorError", "GroupSpecification", "MemberSpecification"]

Assignor = Callable[[GroupSpecification], dict[str, Assignment]]

ASSIGNORS: Mapping[str, Assignor] = {"uniform": uniform.assign, "range": range_assignor.assign}
