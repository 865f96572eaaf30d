"""One library at work: `python -m tests.soak.worker NAME BOOTSTRAP READ SEED`, until standard input ends.

It produces with idempotence, transacts, reads topic READ in a group of two members, and creates and deletes topics. What
was answered is written to standard output, one line each; what is not written there was not answered. Programs for Java
and Go write the same lines:

    A partition:offset:number ...      acknowledged records of NAME-once
    T number c|a|u count               a transaction of NAME-txn: committed, aborted (or never ended), or unknown
    R count                            records that members have read
    C partition:offset ...             offsets that the group NAME has committed
    N topic / D topic / X topic        created, deleted, or the answer is not known
    E text                             an error that the program could handle, for the report
    V text                             what must never happen

A line `rest` on standard input ends all but the members.
"""

from __future__ import annotations

import sys
import threading
import time
from collections import defaultdict
from collections.abc import Callable
from random import Random
from typing import Any

from tests.compat.clients import Client, Record
from tests.crash.loads import content, number_of
from tests.soak.libraries import LIBRARIES, Library

PARTITIONS = 2
BATCH = 20
PRODUCE_EVERY_S, TRANSACT_EVERY_S, ADMINISTER_EVERY_S = 0.5, 1.0, 8.0
MEMBERS = 2
MEMBER_LIVES_S = (20.0, 60.0)
RETRY_S = 0.5
CLOSE_S = 10.0
MAX_FAILED_COMMITS = 5
KEPT_TOPICS = 3


class Worker:
    def __init__(self, library: Library, bootstrap: str, read: str, seed: int) -> None:
        self._library = library
        self._client: Client = library.client
        self._name = library.name
        self._bootstrap = bootstrap
        self._read = read
        self._seed = seed
        self._resting = threading.Event()
        self._ending = threading.Event()
        self._line = threading.Lock()
        self._committed: dict[int, int] = {}

    def say(self, *words: object) -> None:
        with self._line:
            print(*words, flush=True)

    def run(self) -> None:
        jobs: list[Callable[[Random], None]] = [self._produce, self._transact, self._administer]
        jobs += [lambda random, number=number: self._be_member(number, random) for number in range(MEMBERS)]  # type: ignore[misc]
        threads = [
            threading.Thread(target=job, args=(Random(f"{self._seed} {number}"),), daemon=True)
            for number, job in enumerate(jobs)
        ]
        for thread in threads:
            thread.start()
        for line in sys.stdin:
            if line.strip() == "rest":
                self._resting.set()
                for thread in threads[:-MEMBERS]:
                    thread.join()
                self.say("rests")
        self._resting.set()
        self._ending.set()
        for thread in threads:
            thread.join(CLOSE_S)

    def _failed(self, doing: str, error: BaseException) -> None:
        self.say("E", f"{doing}: {type(error).__name__}: {error}"[:300].replace("\n", " "))
        self._ending.wait(RETRY_S)

    def _produce(self, random: Random) -> None:
        producer: Any = None
        number = 0
        while not self._resting.wait(PRODUCE_EVERY_S):
            numbers = range(number, number + random.randint(1, 2 * BATCH))
            number = numbers.stop
            sent: dict[int, list[int]] = defaultdict(list)
            try:
                producer = producer or self._client.producer(self._bootstrap, self._library.idempotent)
                for each in numbers:
                    sent[each % PARTITIONS].append(each)
                    producer.send(f"{self._name}-once", Record(content(each), partition=each % PARTITIONS))
                placed: dict[int, list[int]] = defaultdict(list)
                for partition, offset in producer.flush():
                    placed[partition].append(offset)
            except Exception as error:
                self._failed("producing", error)
                self._discard(producer)
                producer = None
                continue
            self.say(
                "A",
                *(
                    f"{partition}:{offset}:{each}"
                    for partition, offsets in placed.items()
                    for offset, each in zip(offsets, sent[partition], strict=True)
                ),
            )
        self._discard(producer)

    def _transact(self, random: Random) -> None:
        producer: Any = None
        number = 0
        settings = {**self._library.transactional, "transactional.id": f"{self._name}-txn"}
        while not self._resting.wait(TRANSACT_EVERY_S):
            number += 1
            count = random.randint(1, 10)
            outcome = "a"
            try:
                producer = producer or self._client.producer(self._bootstrap, settings)
                producer.begin()
                for index in range(count):
                    record = Record(b"%d:%d:%d" % (number, index, count), partition=index % PARTITIONS)
                    producer.send(f"{self._name}-txn", record)
                producer.flush()
                if random.random() < 0.3:
                    producer.abort()
                else:
                    outcome = "u"
                    producer.commit()
                    outcome = "c"
            except Exception as error:
                self._failed("transacting", error)
                self._discard(producer)
                producer = None
            self.say("T", number, outcome, count)
        self._discard(producer)

    def _discard(self, client: Any) -> None:
        """Close it, but do not wait for long."""
        if client is None:
            return

        def close() -> None:
            try:
                client.close()
            except Exception as error:
                self._failed("closing", error)

        closing = threading.Thread(target=close, daemon=True)
        closing.start()
        closing.join(CLOSE_S)

    def _be_member(self, which: int, random: Random) -> None:
        """The first stays, the others come and go."""
        while not self._ending.is_set():
            member: Any = None
            until = time.monotonic() + (random.uniform(*MEMBER_LIVES_S) if which else float("inf"))
            try:
                member = self._client.consumer(self._bootstrap, {**self._library.member, "group.id": self._name})
                member.subscribe([self._read])
                self._poll(member, until)
            except Exception as error:
                self._failed("reading", error)
            self._discard(member)
            self._ending.wait(RETRY_S)

    def _poll(self, member: Any, until: float) -> None:
        failed = 0
        while not self._ending.is_set() and (time.monotonic() < until or self._resting.is_set()):
            records = member.poll(0.5)
            if not records:
                continue
            positions: dict[tuple[str, int], int] = {}
            for each in records:
                positions[each.topic, each.partition] = each.offset + 1
                self._check(each)
            self.say("R", len(records))
            # A client with a thread of its own hands out records of partitions that are another member's by now.
            positions = {place: at for place, at in positions.items() if at > self._committed.get(place[1], 0)}
            if not positions:
                continue
            try:
                member.commit(positions)
            except Exception as error:  # the node is away, or the partitions are another member's now
                self._failed("committing", error)
                failed += 1
                if failed > MAX_FAILED_COMMITS:
                    raise
            else:
                failed = 0
                self._committed.update((partition, offset) for (_, partition), offset in positions.items())
                self.say("C", *(f"{partition}:{offset}" for (_, partition), offset in positions.items()))

    def _check(self, record: Record) -> None:
        try:
            number = number_of(record.value or b"")
            assert number % PARTITIONS == record.partition
        except (AssertionError, ValueError):
            self.say("V", f"{record.topic}-{record.partition} has at {record.offset} what nobody sent")

    def _administer(self, random: Random) -> None:
        count = 0
        while not self._resting.wait(ADMINISTER_EVERY_S * random.uniform(0.5, 1.5)):
            count += 1
            self._change("N", self._library.create, count)
            if count > KEPT_TOPICS:
                self._change("D", self._library.delete, count - KEPT_TOPICS)

    def _change(self, sign: str, change: Callable[[str, str], None], number: int) -> None:
        topic = f"{self._name}-admin-{number}"
        try:
            change(self._bootstrap, topic)
        except Exception as error:
            self._failed("administering", error)
            sign = "X"
        self.say(sign, topic)


def main() -> None:
    name, bootstrap, read, seed = sys.argv[1:]
    Worker(LIBRARIES[name], bootstrap, read, int(seed)).run()


if __name__ == "__main__":
    main()
