"""Kafka's sticky assignor of tasks.

A task goes to the member that had it, then to one that had a standby of it, as long as that member has less than its
share; the rest goes to the process with the least load, and there to the member with the fewest tasks. Standbys are
assigned after all active tasks, never to a process that has the task already. Members of one process share its state
directory, so the load is that of processes. The order of Kafka's tables and queues decides among equals, and is kept here.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from barnabas.config.hash_order import text_hash
from barnabas.groups.hash_tables import HashTable, name_order
from barnabas.groups.streams.priority_queue import PriorityQueue
from barnabas.groups.streams.tasks import Task, Tasks, each_task
from barnabas.steps import ROWS_PER_STEP, Slices


class MemberSpecification(NamedTuple):
    """A member before the assignment, with its tasks in the last one."""

    process_id: str
    target: Tasks


class SubtopologySpecification(NamedTuple):
    task_count: int
    is_stateful: bool


class _Member(NamedTuple):
    process_id: str
    member_id: str


class _Process:
    """The tasks of a process while they are assigned."""

    def __init__(self, member_ids: list[str]) -> None:
        self.counts = dict.fromkeys(name_order(member_ids), 0)  # tasks by member
        self.active: dict[str, list[Task]] = defaultdict(list)
        self.standby: dict[str, list[Task]] = defaultdict(list)
        self.tasks: set[Task] = set()
        self.load = 0.0
        self._task_count = 0
        self._by_count: PriorityQueue[str] | None = None

    def add(self, member_id: str, task: Task, *, is_active: bool) -> int:
        """Give a task to a member, and return its number of tasks."""
        self._by_count = None
        return self._add(member_id, task, is_active=is_active)

    def add_to_least(self, task: Task, *, is_active: bool) -> int:
        """Give a task to the member with the fewest tasks, and return its number of tasks."""
        if len(self.counts) == 1:
            return self._add(next(iter(self.counts)), task, is_active=is_active)
        if self._by_count is None:
            self._by_count = PriorityQueue(self.counts.__getitem__, self.counts)
        member_id = self._by_count.poll()
        count = self._add(member_id, task, is_active=is_active)
        self._by_count.add(member_id)
        return count

    def _add(self, member_id: str, task: Task, *, is_active: bool) -> int:
        self.tasks.add(task)
        (self.active if is_active else self.standby)[member_id].append(task)
        self.counts[member_id] += 1
        self._task_count += 1
        self.load = self._task_count / len(self.counts)
        return self.counts[member_id]


class _Share:
    """The number of tasks that a member may have. Members that have reached it leave the rest to the others."""

    def __init__(self, task_count: int, member_count: int) -> None:
        self._task_count = task_count
        self._member_count = member_count
        self._update()

    def _update(self) -> None:
        self.size = -(-self._task_count // self._member_count) if self._member_count else 0

    def given(self, count: int) -> None:
        """Note that a member has so many tasks now."""
        if count == self.size:
            self._member_count -= 1
            self._task_count -= count
            self._update()


def assign(
    members: Mapping[str, MemberSpecification],
    subtopologies: Mapping[str, SubtopologySpecification],
    standby_replicas: int,
) -> Slices[dict[str, Tasks]]:
    """Return the tasks of each member. `members` are in the order of Kafka's table, `subtopologies` sorted by id."""
    assignment = _Assignment(members, subtopologies, standby_replicas)
    yield from assignment.assign_active()
    if standby_replicas:
        yield from assignment.assign_standbys()
    return (yield from assignment.finish())


class _Assignment:
    def __init__(
        self,
        members: Mapping[str, MemberSpecification],
        subtopologies: Mapping[str, SubtopologySpecification],
        standby_replicas: int,
    ) -> None:
        self._members = members
        self._subtopologies = subtopologies
        self._standby_replicas = standby_replicas
        by_process: dict[str, list[str]] = defaultdict(list)
        for member_id, given in members.items():
            by_process[given.process_id].append(member_id)
        order = HashTable(text_hash, len(members), by_process)
        self._processes = {process_id: _Process(by_process[process_id]) for process_id in order}
        self._had_active: dict[Task, _Member] = {}
        self._had_standby: dict[Task, list[_Member]] = defaultdict(list)
        for member_id, specification in members.items():
            member = _Member(specification.process_id, member_id)
            self._had_active.update(dict.fromkeys(each_task(specification.target.active), member))
            for task in each_task(specification.target.standby):
                self._had_standby[task].append(member)
        active_count = sum(each.task_count for each in subtopologies.values())
        stateful_count = sum(each.task_count for each in subtopologies.values() if each.is_stateful)
        self._active_share = _Share(active_count, len(members))
        self._share = _Share(active_count + stateful_count * standby_replicas, len(members))

    def _tasks(self, *, stateful_only: bool) -> list[Task]:
        return [
            (subtopology_id, partition)
            for subtopology_id, each in self._subtopologies.items()
            if each.is_stateful or not stateful_only
            for partition in range(each.task_count)
        ]

    def _by_load(self) -> PriorityQueue[_Process]:
        return PriorityQueue(lambda process: process.load, self._processes.values())

    # --- active tasks

    def assign_active(self) -> Slices[None]:
        tasks = sorted(self._tasks(stateful_only=False), key=_by_partition)
        tasks = yield from self._keep(tasks, self._had_active.get)
        tasks = yield from self._keep(tasks, lambda task: self._least_loaded(self._had_standby.get(task), None))
        queue = self._by_load()
        for number, task in enumerate(sorted(tasks)):
            if number % ROWS_PER_STEP == 0:
                yield
            process = queue.poll()
            self._given_active(process.add_to_least(task, is_active=True))
            queue.add(process)

    def _keep(self, tasks: Iterable[Task], find: Callable[[Task], _Member | None]) -> Slices[list[Task]]:
        """Give tasks to the members that `find` returns, if these have less than their share. Returns the other tasks."""
        rest = []
        for number, task in enumerate(tasks):
            if number % ROWS_PER_STEP == 0:
                yield
            member = find(task)
            if member is not None and self._count(member) < self._active_share.size:
                process = self._processes[member.process_id]
                self._given_active(process.add(member.member_id, task, is_active=True))
            else:
                rest.append(task)
        return rest

    def _count(self, member: _Member) -> int:
        return self._processes[member.process_id].counts[member.member_id]

    def _given_active(self, count: int) -> None:
        self._active_share.given(count)
        self._share.given(count)

    def _least_loaded(self, members: list[_Member] | None, task: Task | None) -> _Member | None:
        """Return the member with the least load. With a task, none whose process has it."""
        if not members:
            return None
        first = candidate = members[0]
        load, count = self._processes[first.process_id].load, self._count(first)
        for member in members[1:]:
            process = self._processes[member.process_id]
            if process.load >= load or (task is not None and task in process.tasks) or self._count(member) >= count:
                continue
            candidate, load, count = member, process.load, self._count(member)
        # Kafka looks at the process of the first member here, whichever was chosen.
        return None if task is not None and task in self._processes[first.process_id].tasks else candidate

    # --- standby tasks

    def assign_standbys(self) -> Slices[None]:
        rest: list[tuple[Task, int]] = []
        for number, task in enumerate(sorted(self._tasks(stateful_only=True), key=_by_partition, reverse=True)):
            if number % ROWS_PER_STEP == 0:
                yield
            for replica in range(self._standby_replicas):
                if not self._return_standby(task):
                    rest.append((task, self._standby_replicas - replica))
                    break
        queue = self._by_load()
        for number, (task, count) in enumerate(sorted(rest, key=lambda row: row[0], reverse=True)):
            if number % ROWS_PER_STEP == 0:
                yield
            for _ in range(count):
                if not self._add_standby(queue, task):
                    break

    def _return_standby(self, task: Task) -> bool:
        """Give a standby to the member that had the task or a standby of it, if it has less than its share."""
        active = self._had_active.get(task)
        if active is not None:
            process = self._processes[active.process_id]
            if task not in process.tasks and self._count(active) < self._share.size:
                self._share.given(process.add(active.member_id, task, is_active=False))
                return True
        standby = self._least_loaded(self._had_standby.get(task), task)
        if standby is not None and self._count(standby) < self._share.size:
            process = self._processes[standby.process_id]
            self._share.given(process.add(standby.member_id, task, is_active=False))
            return True
        return False

    def _add_standby(self, queue: PriorityQueue[_Process], task: Task) -> bool:
        """Give a standby to the process with the least load that does not have the task. False if there is none."""
        taken = []
        is_found = False
        while queue and not is_found:
            process = queue.poll()
            taken.append(process)
            if task not in process.tasks:
                self._share.given(process.add_to_least(task, is_active=False))
                is_found = True
        for process in reversed(taken):
            queue.add(process)
        return is_found

    # --- the result

    def finish(self) -> Slices[dict[str, Tasks]]:
        found = {}
        for member_id, member in self._members.items():
            yield
            process = self._processes[member.process_id]
            active, standby = process.active.get(member_id, ()), process.standby.get(member_id, ())
            found[member_id] = Tasks(_compacted(active), _compacted(standby))
        return found


def _by_partition(task: Task) -> tuple[int, str]:
    return task[1], task[0]


def _compacted(tasks: Iterable[Task]) -> dict[str, frozenset[int]]:
    partitions: dict[str, set[int]] = defaultdict(set)
    for subtopology_id, partition in tasks:
        partitions[subtopology_id].add(partition)
    return {each: frozenset(partitions[each]) for each in name_order(sorted(partitions))}
