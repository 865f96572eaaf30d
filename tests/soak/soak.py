"""One run: clients at work, first in peace and then with kills, until all of it comes to rest and is checked.

It ends within `AFTER_S` of its time, whatever happens: what is not at rest by then is reported as violated.
"""

from __future__ import annotations

import contextlib
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import confluent_kafka as ck
from confluent_kafka.admin import OffsetSpec
from tools.apache_kafka import HOST, ROOT, Barnabas, NotStarted

from barnabas.client import KafkaError, sync
from tests.crash.clients import admin, consumer, create_topic, offsets, place_of
from tests.soak.ledger import Ledger
from tests.soak.measure import MIB, PATIENCE, Lag, Sample, directory_bytes, grown, memory, other_descriptors, sample
from tests.soak.short_connections import ShortConnections
from tests.soak.worker import MEMBERS, PARTITIONS

KIB_OF_A_PARTITION = 4096
SETTINGS = {
    "auto.create.topics.enable": "false",
    "group.initial.rebalance.delay.ms": "100",
    "offsets.topic.num.partitions": "3",
    "offsets.topic.segment.bytes": str(MIB),
    "transaction.state.log.num.partitions": "3",
    "transaction.state.log.segment.bytes": str(MIB),
    "log.retention.check.interval.ms": "5000",
    "log.segment.delete.delay.ms": "1000",
    "log.cleaner.backoff.ms": "2000",
    "metadata.log.max.record.bytes.between.snapshots": str(MIB),
    "metadata.max.retention.bytes": str(4 * MIB),
}
TOPIC = {"retention.bytes": str(KIB_OF_A_PARTITION * 1024), "segment.bytes": str(MIB)}
KINDS = ("once", "txn")

PEACE = 0.6  # of the time: without kills, to see whether memory grows
WARM_UP = 0.3  # of the peace
SHORT_CONNECTIONS_PER_MINUTE = 1667  # 100,000 in an hour
KILL_EVERY_S, LAST_KILL_BEFORE_END_S = (15.0, 45.0), 10.0
OFFSETS_EVERY_S, PROGRESS_EVERY_S, SAMPLE_EVERY_S, DISK_EVERY_S = 20.0, 60.0, 1.0, 15.0
REST_S, AFTER_S = 110.0 * PATIENCE, 180.0 * PATIENCE  # to come to rest; and in all, with the ends of all processes
START_S, END_S, STOP_S, IDLE_S = 90.0 * PATIENCE, 15.0 * PATIENCE, 30.0 * PATIENCE, 15.0 * PATIENCE
CALL_MS = round(30_000 * PATIENCE)


class LateError(Exception):
    """The run takes longer than it may."""


class Plan(NamedTuple):
    minutes: float
    seed: int

    @property
    def duration_s(self) -> float:
        return self.minutes * 60


class Program:
    """A client's process. What it says goes to the ledger."""

    def __init__(self, name: str, command: list[str], ledger: Ledger, mutex: threading.Lock, errors: Path) -> None:
        self.name = name
        self.rests = threading.Event()
        self._ledger, self._mutex = ledger, mutex
        self._errors = errors.open("wb")
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(command, cwd=ROOT, stdin=pipe, stdout=pipe, stderr=self._errors)
        self._reading = threading.Thread(target=self._read, daemon=True)
        self._reading.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for raw in self.process.stdout:
            line = raw.decode(errors="replace").rstrip("\n")
            if line == "rests":
                self.rests.set()
                continue
            with self._mutex:
                self._ledger.said(self.name, line)

    def rest(self) -> None:
        assert self.process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.write(b"rest\n")
            self.process.stdin.flush()

    def leave(self) -> None:
        """It leaves its group and ends."""
        assert self.process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()

    def end(self, deadline_s: float) -> None:
        try:
            self.process.wait(max(0.0, deadline_s - time.monotonic()))
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self._reading.join()
        assert self.process.stdout is not None
        self.process.stdout.close()
        self._errors.close()


class Reader:
    """Reads all that is committed, all the time, before retention deletes it."""

    def __init__(self, bootstrap: str, ledger: Ledger, mutex: threading.Lock) -> None:
        self._ledger, self._mutex = ledger, mutex
        self.positions = {
            (f"{name}-{kind}", part): 0 for name in ledger.names for kind in KINDS for part in range(PARTITIONS)
        }
        self._bootstrap = bootstrap
        self._consumer = self._made()
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _made(self) -> ck.Consumer:
        made = consumer(
            self._bootstrap,
            isolation_level="read_committed",
            auto_offset_reset="error",
            fetch_wait_max_ms=500,
            enable_partition_eof=True,
        )
        made.assign([ck.TopicPartition(*place, offset) for place, offset in self.positions.items()])
        return made

    def _run(self) -> None:
        idle_since_s = time.monotonic()
        while not self._end.is_set():
            messages = self._consumer.consume(1000, 0.5)
            if messages:
                idle_since_s = time.monotonic()
            elif time.monotonic() - idle_since_s > IDLE_S:
                # librdkafka 2.16 was seen to stop for good after the node had answered NOT_LEADER_OR_FOLLOWER.
                self._consumer.close()
                self._consumer, idle_since_s = self._made(), time.monotonic()
            for message in messages:
                error = message.error()
                with self._mutex:
                    if error is None:
                        self._saw(message)
                    elif error.code() == ck.KafkaError._PARTITION_EOF:  # past the markers of transactions
                        place, offset = place_of(message)
                        self.positions[place] = max(offset, self.positions[place])
                    elif error.code() == ck.KafkaError._AUTO_OFFSET_RESET:
                        self._ledger.violated(f"the reader lost its place: {error.str()}")

    def _saw(self, message: ck.Message) -> None:
        place, offset = place_of(message)
        topic, partition = place
        name, _, kind = topic.rpartition("-")
        if offset < self.positions[place]:
            self._ledger.violated(f"{topic}-{partition}: {offset} was read after {self.positions[place]}")
        self.positions[place] = offset + 1
        see = self._ledger.saw_once if kind == "once" else self._ledger.saw_transacted
        see(name, partition, offset, message.value() or b"")

    def close(self) -> None:
        self._end.set()
        self._thread.join(END_S)
        self._consumer.close()


class Soak:
    def __init__(self, plan: Plan, programs: dict[str, list[str]], directory: Path, say: Callable[[str], None]) -> None:
        self._plan = plan
        self._commands = programs
        names = list(programs)
        self._read_by = dict(zip(names, (f"{name}-once" for name in [*names[1:], names[0]]), strict=True))
        self._directory = directory
        self._say = say
        self._random = Random(plan.seed)
        self._mutex = threading.Lock()
        self.ledger = Ledger(programs)
        self.node = Barnabas(SETTINGS, directory=directory / "node")
        self._lag = Lag(self.node.log)
        self._programs: list[Program] = []
        self._samples: list[Sample] = []
        self._kills = self._stops = 0
        self._starts_s: list[float] = []
        self._disk_bytes: list[int] = []
        self._sampling_ends = threading.Event()

    def run(self) -> dict[str, Any]:
        """The report; `violations` in it is empty if all is well."""
        self._start_node()
        try:
            self._started_s = time.monotonic()
            idle, is_up = self._sample(), True
            peace_s = self._plan.duration_s * PEACE
            count = int(self._plan.minutes * SHORT_CONNECTIONS_PER_MINUTE)
            self.short = ShortConnections((HOST, self.node.address[1]), count, peace_s * 0.95)
            with contextlib.ExitStack() as stack, _late_after(self._plan.duration_s + AFTER_S - END_S - STOP_S - 10):
                try:
                    self._run_clients(stack)
                except LateError:
                    self.ledger.violated("the run did not come to its end in time")
                except NotStarted as error:
                    is_up = False
                    self.ledger.violated(f"the node did not start again: {error}")
                except (KafkaError, OSError, ck.KafkaException) as error:
                    self.ledger.violated(f"the node does not answer after {self._now_s():.0f} s: {error}")
            left = None
            if is_up:
                left = self._left(idle.sockets if idle is not None else 0)
                self._stop_node()
        finally:
            self.node.kill()
        return self._report(left)

    def _run_clients(self, stack: contextlib.ExitStack) -> None:
        bootstrap = self.node.bootstrap
        for name in self.ledger.names:
            for kind in KINDS:
                create_topic(bootstrap, f"{name}-{kind}", PARTITIONS, TOPIC)
        sampling = threading.Thread(target=self._keep_sampling, daemon=True)
        sampling.start()
        stack.callback(self._sampling_ends.set)
        reader = Reader(bootstrap, self.ledger, self._mutex)
        stack.callback(reader.close)
        self._admin = stack.enter_context(sync.Admin({"bootstrap.servers": bootstrap}))
        stack.callback(self._end_programs)
        self._start_programs()
        self._work()
        self._rest(reader)

    def _now_s(self) -> float:
        return time.monotonic() - self._started_s

    def _sample(self) -> Sample | None:
        return sample(self._now_s(), self.node.pid, self.node.directory / "data")

    def _start_node(self) -> None:
        self.node.start(START_S)
        self._starts_s.append(self.node.started_s)

    def _stop_node(self) -> None:
        if self.node.stop(STOP_S) != 0:
            self.ledger.violated("the node did not stop with exit code 0")

    def _start_programs(self) -> None:
        for name, command in self._commands.items():
            arguments = [self.node.bootstrap, self._read_by[name], str(self._random.randrange(1 << 31))]
            errors = self._directory / f"{name}.err"
            self._programs.append(Program(name, [*command, *arguments], self.ledger, self._mutex, errors))

    def _end_programs(self) -> None:
        for program in self._programs:
            program.leave()
        deadline_s = time.monotonic() + END_S
        for program in self._programs:
            program.end(deadline_s)

    def _keep_sampling(self) -> None:
        next_disk_s = 0.0
        while not self._sampling_ends.wait(SAMPLE_EVERY_S):
            with contextlib.suppress(AssertionError):  # between two starts
                found = self._sample()
                if found is not None:
                    self._samples.append(found)
            if self._now_s() >= next_disk_s:
                self._disk_bytes.append(directory_bytes(self.node.directory / "data"))
                next_disk_s = self._now_s() + DISK_EVERY_S

    # --- the phases

    def _work(self) -> None:
        duration_s, peace_s = self._plan.duration_s, self._plan.duration_s * PEACE
        self.short.start()
        next_progress_s, next_offsets_s = PROGRESS_EVERY_S, OFFSETS_EVERY_S
        next_kill_s = peace_s
        while self._now_s() < duration_s:
            time.sleep(0.5)
            for program in self._programs:
                if program.process.poll() is not None:
                    self.ledger.violated(f"{program.name} ended with {program.process.returncode}")
                    return
            if self._now_s() >= next_offsets_s:
                self._check_offsets()
                next_offsets_s = self._now_s() + OFFSETS_EVERY_S
            if self._now_s() >= next_progress_s:
                self._progress()
                next_progress_s += PROGRESS_EVERY_S
            if next_kill_s <= self._now_s() < duration_s - LAST_KILL_BEFORE_END_S:
                self.short.finish(END_S)  # they belong to the peace
                self._restart()
                next_kill_s = self._now_s() + self._random.uniform(*KILL_EVERY_S)

    def _restart(self) -> None:
        if self._random.random() < 0.6:
            self.node.kill()
            self._kills += 1
        else:
            self._stop_node()
            self._stops += 1
        self._start_node()
        self._check_offsets()

    def _committed(self) -> dict[str, dict[int, int]]:
        """What each group has committed; a partition without a commit is left out."""
        found: dict[str, dict[int, int]] = {}
        for name, rows in self._admin.list_consumer_group_offsets(self.ledger.names, timeout_ms=CALL_MS).items():
            if isinstance(rows, KafkaError):
                raise rows
            found[name] = {}
            for place, row in rows.items():
                if isinstance(row, KafkaError):
                    raise row
                found[name][place.partition] = row.offset
        return found

    def _check_offsets(self) -> None:
        with self._mutex:
            acknowledged = {name: dict(offsets) for name, offsets in self.ledger.committed.items()}
        try:
            found = self._committed()
        except (KafkaError, OSError) as error:
            self.ledger.violated(f"offsets of groups cannot be fetched after {self._now_s():.0f} s: {error}")
            return
        with self._mutex:
            for name, offsets in found.items():
                self.ledger.check_offsets(name, acknowledged[name], offsets)

    def _rest(self, reader: Reader) -> None:
        """Producers end, groups read to the end, and the reader too."""
        self.short.finish(END_S)
        for program in self._programs:
            program.rest()
        deadline_s = time.monotonic() + REST_S
        for program in self._programs:
            if not program.rests.wait(max(0.1, deadline_s - time.monotonic())):
                self.ledger.violated(f"{program.name} did not come to rest")
            self._say(f"{program.name} rests {self._now_s() - self._plan.duration_s:.0f} s after the end")
        ends = self._ends()
        _until(deadline_s, lambda: self._lags(ends), self.ledger, "groups do not read to the end")
        _until(deadline_s, self._unsettled, self.ledger, "groups do not settle")
        _until(deadline_s, lambda: self._unread(ends, reader), self.ledger, "the reader does not come to the end")
        self._say(f"all was read {self._now_s() - self._plan.duration_s:.0f} s after the end")
        self._check_offsets()
        there = set(admin(self.node.bootstrap).list_topics(timeout=CALL_MS / 1000).topics)
        with self._mutex:
            self.ledger.check_topics(there)
            self.ledger.check_records()

    def _ends(self) -> dict[tuple[str, int], int]:
        places = [
            (f"{name}-{kind}", part) for name in self.ledger.names for kind in KINDS for part in range(PARTITIONS)
        ]
        ends = offsets(self.node.bootstrap, places, OffsetSpec.latest())
        if ends != (stable := offsets(self.node.bootstrap, places, OffsetSpec.latest(), stable=True)):
            open_at = {place: stable[place] for place, end in ends.items() if stable[place] != end}
            self.ledger.violated(f"transactions are open when all have ended: {open_at}")
        return stable

    def _lags(self, ends: dict[tuple[str, int], int]) -> dict[Any, Any]:
        return {
            (name, partition): (committed.get(partition), ends[self._read_by[name], partition])
            for name, committed in self._committed().items()
            for partition in range(PARTITIONS)
            if committed.get(partition, 0) < ends[self._read_by[name], partition]
        }

    def _unsettled(self) -> dict[Any, Any]:
        """Groups that are not stable with all members, each with a partition."""
        found = {}
        for name, group in self._admin.describe_consumer_groups(self.ledger.names, timeout_ms=CALL_MS).items():
            if isinstance(group, KafkaError):
                found[name] = str(group)
                continue
            counts = sorted(len(each.assignment) for each in group.members)
            if group.state.lower() != "stable" or counts != [PARTITIONS // MEMBERS] * MEMBERS:
                found[name] = f"{group.state}, members with {counts} partitions"
        return found

    def _unread(self, ends: dict[tuple[str, int], int], reader: Reader) -> dict[Any, Any]:
        with self._mutex:
            at = dict(reader.positions)
        return {place: (at[place], end) for place, end in ends.items() if at[place] < end}

    def _left(self, sockets_idle: int) -> Sample | None:
        """When all clients have gone, the sockets have gone with them."""
        deadline_s = time.monotonic() + 5
        found = self._sample()
        while found is not None and found.sockets > sockets_idle and time.monotonic() < deadline_s:
            time.sleep(0.2)
            found = self._sample()
        if found is not None and found.sockets > sockets_idle:
            self.ledger.violated(f"{found.sockets} sockets are open without clients, {sockets_idle} at the start")
        return found

    # --- what is reported

    def _progress(self) -> None:
        late, worked = self._lag.look()
        last = self._samples[-1]
        clients = ", ".join(
            f"{name} {self.ledger.acknowledged[name]}/{self.ledger.read[name]}" for name in self.ledger.names
        )
        self._say(
            f"{self._now_s() / 60:5.1f} min  rss {last.rss_bytes / MIB:.0f} MiB  fds {last.descriptors}  "
            f"disk {self._disk_bytes[-1] / MIB:.0f} MiB  kills {self._kills}  stops {self._stops}  "
            f"short {self.short.opened}  loop late {late} ms, worked {worked} ms  violations {len(self.ledger.violations)}  "
            f"acknowledged/read: {clients}"
        )

    def _peaceful(self) -> list[Sample]:
        peace_s = self._plan.duration_s * PEACE
        return [each for each in self._samples if peace_s * WARM_UP <= each.at_s < peace_s]

    def _report(self, left: Sample | None) -> dict[str, Any]:
        ledger, short = self.ledger, self.short
        peaceful = self._peaceful()
        for each in grown(peaceful):
            ledger.violated(f"{each} without kills")
        partitions = len(ledger.names) * len(KINDS) * PARTITIONS
        max_disk = partitions * (KIB_OF_A_PARTITION * 1024 + 3 * MIB) + 64 * MIB
        if max(self._disk_bytes, default=0) > max_disk:
            ledger.violated(f"the directory has {max(self._disk_bytes) / MIB:.0f} MiB, more than {max_disk / MIB:.0f}")
        if short.answered + short.broken_off < short.wanted:
            ledger.violated(f"of {short.wanted} short connections {short.opened} were opened, {short.failed} failed")
        said = self.node.log.read_text(errors="replace")
        if "Traceback" in said:
            ledger.violated("the node logged: " + said[said.index("Traceback") :][:1500])
        self._lag.look()
        rss, fds = memory(peaceful), other_descriptors(peaceful)
        return {
            "minutes": self._plan.minutes,
            "seed": self._plan.seed,
            "took_s": round(self._now_s()),
            "violations": ledger.violations,
            "clients": {name: ledger.counts(name) for name in ledger.names},
            "records_seen": ledger.records_seen,
            "kills": self._kills,
            "clean_stops": self._stops,
            "longest_start_s": round(max(self._starts_s), 1),
            "short_connections": {
                "opened": short.opened,
                "answered": short.answered,
                "broken off": short.broken_off,
                "failed": short.failed,
            },
            "memory": {
                "median_mib": round(rss.median / MIB, 1),
                "growth_mib": round(rss.growth / MIB, 2),
                "highest_mib": round(max((each.rss_bytes for each in self._samples), default=0) / MIB, 1),
                "window_s": round(rss.over_s),
            },
            "descriptors": {
                "beside_log_files_median": fds.median,
                "beside_log_files_growth": round(fds.growth, 1),
                "highest": max((each.descriptors for each in self._samples), default=0),
                "highest_of_log_files": max((each.log_files for each in self._samples), default=0),
                "without_clients": None if left is None else left.descriptors,
                "sockets_without_clients": None if left is None else left.sockets,
            },
            "directory_highest_mib": round(max(self._disk_bytes, default=0) / MIB, 1),
            "loop": {"longest_late_ms": self._lag.longest_late_ms, "longest_worked_ms": self._lag.longest_worked_ms},
            "errors_of_clients": dict(ledger.errors.most_common(30)),
        }


def _until(deadline_s: float, left: Callable[[], dict[Any, Any]], ledger: Ledger, what: str) -> None:
    found = left()
    while found:
        if time.monotonic() > deadline_s:
            ledger.violated(f"{what}: {found}")
            return
        time.sleep(1)
        found = left()


@contextlib.contextmanager
def _late_after(seconds: float) -> Iterator[None]:
    def raise_late(*_: object) -> None:
        raise LateError

    before = signal.signal(signal.SIGALRM, raise_late)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
