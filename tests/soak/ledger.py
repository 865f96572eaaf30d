"""What clients were answered beside what a reader sees: pure, one call for each line and each record.

Records that are seen and known to be acknowledged are forgotten at once, so that an hour fits into memory.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping

from tests.crash.loads import number_of

MAX_VIOLATIONS = 50
Place = tuple[str, int]


class Ledger:
    def __init__(self, names: Iterable[str]) -> None:
        self.names = tuple(names)
        self.violations: list[str] = []
        self.errors: Counter[str] = Counter()
        self.acknowledged: Counter[str] = Counter()
        self.read: Counter[str] = Counter()
        self.outcomes: dict[str, dict[int, tuple[str, int]]] = {name: {} for name in self.names}
        self.committed: dict[str, dict[int, int]] = {name: {} for name in self.names}
        self.topics: dict[str, str] = {}  # N, D or X
        self.records_seen = 0
        self._acknowledged_only: dict[Place, dict[int, int]] = defaultdict(dict)
        self._seen_only: dict[Place, dict[int, int]] = defaultdict(dict)
        self._numbers: dict[str, bytearray] = {name: bytearray() for name in self.names}
        self._members: dict[str, dict[int, set[int]]] = {name: {} for name in self.names}

    def violated(self, text: str) -> None:
        if len(self.violations) < MAX_VIOLATIONS:
            self.violations.append(text)

    # --- what clients say

    def said(self, name: str, line: str) -> None:
        sign, _, rest = line.partition(" ")
        words = rest.split()
        if sign == "A":
            for word in words:
                partition, offset, number = map(int, word.split(":"))
                self._acknowledge(name, partition, offset, number)
        elif sign == "T":
            self.outcomes[name][int(words[0])] = (words[1], int(words[2]))
        elif sign == "R":
            self.read[name] += int(words[0])
        elif sign == "C":
            for word in words:
                partition, offset = map(int, word.split(":"))
                self._commit(name, partition, offset)
        elif sign in ("N", "D", "X"):
            self.topics[words[0]] = sign
        elif sign == "E":
            self.errors[f"{name} {' '.join(words[:12])}"] += 1
        elif sign == "V":
            self.violated(f"{name}: {rest}")

    def _commit(self, name: str, partition: int, offset: int) -> None:
        """The members of a group say it each for itself, so that lines may come in another order than the answers."""
        self.committed[name][partition] = max(offset, self.committed[name].get(partition, 0))

    def _acknowledge(self, name: str, partition: int, offset: int, number: int) -> None:
        self.acknowledged[name] += 1
        place = (name, partition)
        found = self._seen_only[place].pop(offset, None)
        if found is None:
            self._acknowledged_only[place][offset] = number
        elif found != number:
            self.violated(f"{name}-once-{partition}: {number} was acknowledged at {offset}, where {found} is")

    # --- what a reader sees

    def saw_once(self, name: str, partition: int, offset: int, value: bytes) -> None:
        self.records_seen += 1
        try:
            number = number_of(value)
        except (AssertionError, ValueError):
            self.violated(f"{name}-once-{partition}: what is at {offset} was never sent")
            return
        numbers = self._numbers[name]
        if number >= len(numbers):
            numbers.extend(bytes(number + 1000 - len(numbers)))
        if numbers[number]:
            self.violated(f"{name}-once-{partition}: {number} is there twice, again at {offset}")
        numbers[number] = 1
        place = (name, partition)
        acknowledged = self._acknowledged_only[place].pop(offset, None)
        if acknowledged is None:
            self._seen_only[place][offset] = number
        elif acknowledged != number:
            self.violated(f"{name}-once-{partition}: {acknowledged} was acknowledged at {offset}, where {number} is")

    def saw_transacted(self, name: str, partition: int, offset: int, value: bytes) -> None:
        self.records_seen += 1
        number, index, _ = map(int, value.split(b":"))
        members = self._members[name].setdefault(number, set())
        if index in members:
            self.violated(f"{name}-txn-{partition}: record {index} of transaction {number} is there twice")
        members.add(index)

    # --- what must be true

    def check_offsets(self, name: str, acknowledged: Mapping[int, int], found: Mapping[int, int]) -> None:
        """`acknowledged` is of the time before the offsets were asked for. What is found once may not be less later."""
        for partition, offset in acknowledged.items():
            there = found.get(partition)
            if there is None or there < offset:
                self.violated(f"group {name}: committed {offset} of partition {partition}, and now it is {there}")
        for partition, offset in found.items():
            self._commit(name, partition, offset)

    def check_topics(self, there: set[str]) -> None:
        for topic, sign in self.topics.items():
            if sign == "N" and topic not in there:
                self.violated(f"{topic} was created, and is not there")
            if sign == "D" and topic in there:
                self.violated(f"{topic} was deleted, and is there")

    def check_records(self) -> None:
        """When everything was read."""
        for (name, partition), lost in self._acknowledged_only.items():
            if lost:
                some = dict(sorted(lost.items())[:5])
                self.violated(f"{name}-once-{partition}: {len(lost)} acknowledged records were never seen: {some}")
        for name in self.names:
            for number, (outcome, count) in self.outcomes[name].items():
                there = len(self._members[name].get(number, ()))
                allowed = {"c": {count}, "a": {0}, "u": {0, count}}[outcome]
                if there not in allowed:
                    self.violated(f"{name}-txn: transaction {number} ({outcome}) has {there} of {count} records")
            for number in self._members[name].keys() - self.outcomes[name].keys():
                there = len(self._members[name][number])
                self.violated(f"{name}-txn: transaction {number} has {there} records, and nobody said how it ended")

    def counts(self, name: str) -> dict[str, int]:
        outcomes = Counter(outcome for outcome, _ in self.outcomes[name].values())
        return {
            "acknowledged": self.acknowledged[name],
            "committed transactions": outcomes["c"],
            "aborted transactions": outcomes["a"],
            "transactions with unknown end": outcomes["u"],
            "read": self.read[name],
        }
