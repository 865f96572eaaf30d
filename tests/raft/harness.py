"""One core by hand: told things, and asked what it says. Plus the golden data."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from random import Random
from typing import Any

from barnabas.raft import records
from barnabas.raft.core import RaftCore
from barnabas.raft.disk import Disk
from barnabas.raft.log import BOOTSTRAP_SNAPSHOT_ID, MemoryLog
from barnabas.raft.quorum_state import Election
from barnabas.raft.ready import Answer, RaftConfig, Ready, Request, Response, Send
from barnabas.raft.voters import VoterSet
from barnabas.wire import Message
from tests.raft.simulation import LISTENER, START_MS, config_of, voter_set
from tests.raft.snapshots import bootstrap_snapshot

DATA = Path(__file__).parent / "data"


def golden(name: str) -> list[dict[str, Any]]:
    with gzip.open(DATA / f"{name}.jsonl.gz", "rt") as lines:
        return [json.loads(line) for line in lines]


class Replica:
    """A core with a log in memory that is flushed at once, unless told otherwise."""

    def __init__(
        self,
        node_id: int = 1,
        voters: VoterSet | None = None,
        *,
        election: Election | None = None,
        log: MemoryLog | None = None,
        static_voters: VoterSet | None = None,
        config: RaftConfig | None = None,
        flushes: bool = True,
    ) -> None:
        self.now_ms = START_MS
        self.flushes = flushes
        self.log = MemoryLog() if log is None else log
        if log is None and static_voters is None:
            writer = self.log.create_snapshot(BOOTSTRAP_SNAPSHOT_ID)
            writer.append(bootstrap_snapshot(1, voter_set(1, 2, 3) if voters is None else voters, START_MS))
            writer.freeze()
        self.saved = election
        self.sends: list[Send] = []
        self.answers: list[Answer] = []
        self.readies: list[Ready] = []
        self.disk = Disk(self.log, VoterSet() if static_voters is None else static_voters)
        view, history = records.load(self.log, static_voters)
        self.core = RaftCore(config or config_of(node_id), view, history, election, self.now_ms, Random(1))
        self._requests = 0
        self.process()

    def process(self) -> None:
        while True:
            ready = self.core.ready()
            self.readies.append(ready)
            if ready.quorum_state is not None:
                self.saved = ready.quorum_state.election
            if ready.disk is not None:
                voters = self.disk.write(ready.disk)
                if voters is not None:
                    assert ready.disk.chunk is not None
                    self.core.on_snapshot_installed(self.now_ms, ready.disk.chunk.snapshot_id, voters)
                else:
                    self.core.on_appended(self.now_ms)
                    if self.flushes:
                        self.flush()
            self.sends += ready.sends
            self.answers += ready.answers
            if not (ready.quorum_state or ready.disk or ready.sends or ready.answers):
                return

    def flush(self) -> None:
        self.log.flush()
        self.core.on_flushed(self.now_ms)

    def after(self, duration_ms: int) -> None:
        self.now_ms += duration_ms
        self.core.tick(self.now_ms)
        self.process()

    def ask(self, message: Message, version: int, listener_name: str = LISTENER) -> Any:
        """The answer to a request; None while it waits."""
        self._requests += 1
        before = len(self.answers)
        self.core.step(self.now_ms, Request(self._requests, message, version, listener_name))
        self.process()
        found = [answer for answer in self.answers[before:] if answer.request_id == self._requests]
        return self.disk.fill(found[0]) if found else None

    def take_sends(self) -> list[Send]:
        sends, self.sends = self.sends, []
        return sends

    def respond(self, send: Send, message: Message | None) -> None:
        self.core.step(self.now_ms, Response(send.correlation_id, message))
        self.process()

    def propose(self, *values: bytes) -> int:
        offset = self.core.propose(self.now_ms, self.core.epoch, list(values))
        self.process()
        return offset
