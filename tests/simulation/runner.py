"""Runs seeds, each in a process of its own, and shrinks the plans of those that fail.

A process is forked for each run: it starts with everything imported, and what a run leaves behind ends with it.
"""

from __future__ import annotations

import os
import pickle
import select
import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib import import_module
from typing import NamedTuple

from barnabas.broker.served import served_apis
from barnabas.wire import APIS, ApiKey, message_class
from barnabas.wire.codec import reader, sliced_reader, sliced_writer, writer
from tests.simulation.plan import Fault
from tests.simulation.scenario import Result, Settings, run

MAX_REAL_S = 300.0
LOADED = (  # what nodes and clients import when they first need it, beside the handlers
    "barnabas.broker.coordinators",
    "barnabas.broker.txn_markers",
    "barnabas.client.producer",
    "barnabas.client.consumer",
    "barnabas.client.admin.admin",
    "barnabas.client.consuming.assignors",
    "barnabas.client.consuming.classic",
    "barnabas.client.consuming.heartbeats",
    "barnabas.client.producing.offsets",
    "barnabas.client.producing.transactions",
    "barnabas.replicas.waiting",
    "barnabas.wire.faults",
)


class Job(NamedTuple):
    """One run to do: a seed, and the plan if it is not the seed's own."""

    seed: int
    settings: Settings
    plan: Sequence[Fault] | None = None
    plant: Callable[[], None] | None = None  # changes the product before the run, in its process only


class _Child(NamedTuple):
    job: Job
    pid: int
    pipe: int
    until_s: float


def run_jobs(jobs: Iterable[Job], at_once: int = 1) -> Iterator[Result]:
    """Run jobs in processes, and yield their results as they end."""
    _load()
    waiting, running = iter(jobs), dict[int, _Child]()
    contents: dict[int, bytes] = {}
    try:
        while True:
            while len(running) < at_once and (job := next(waiting, None)) is not None:
                child = _fork(job, list(running))
                running[child.pipe], contents[child.pipe] = child, b""
            if not running:
                return
            for pipe in select.select(list(running), [], [], 1.0)[0]:
                part = os.read(pipe, 1 << 20)
                contents[pipe] += part
                if not part:
                    child = running.pop(pipe)
                    yield _ended(child, contents.pop(pipe))
            for child in [each for each in running.values() if time.monotonic() > each.until_s]:
                os.kill(child.pid, signal.SIGKILL)
    finally:
        for child in running.values():
            os.kill(child.pid, signal.SIGKILL)
            os.waitpid(child.pid, 0)


def run_job(job: Job) -> Result:
    return next(run_jobs([job]))


def _load() -> None:
    for name in LOADED:
        import_module(name)
    for kind in ("broker", "controller"):
        for key in served_apis(kind):
            _compile(ApiKey(key))


def _compile(key: ApiKey) -> None:
    """Import the handler of an API, and compile what reads and writes its newest version."""
    import_module(f"barnabas.broker.api.{key.name.lower()}")
    api = APIS[key]
    for name in (api.request, api.response):
        for each in (reader, writer, sliced_reader, sliced_writer):
            each(message_class(name), api.kafka.last)


def _fork(job: Job, others: Sequence[int]) -> _Child:
    read_end, write_end = os.pipe()
    sys.stdout.flush()
    sys.stderr.flush()
    pid = os.fork()
    if pid:
        os.close(write_end)
        return _Child(job, pid, read_end, time.monotonic() + MAX_REAL_S)
    code = 1
    try:
        for each in (read_end, *others):
            os.close(each)
        if job.plant is not None:
            job.plant()
        result = run(job.seed, job.plan, job.settings)
        with os.fdopen(write_end, "wb") as pipe:
            pickle.dump(result, pipe)
        code = 0
    finally:
        os._exit(code)


def _ended(child: _Child, content: bytes) -> Result:
    os.close(child.pipe)
    _, status = os.waitpid(child.pid, 0)
    if content and not status:
        return pickle.loads(content)  # type: ignore[no-any-return]
    return Result(child.job.seed, [], [f"the process of this run ended with {status}"], "", 0.0, 0, {})


def shrink(job: Job, result: Result) -> Result:
    """Leave out faults of the plan as long as a run still fails, and return the last failing run."""
    smallest, size = result, max(1, len(result.plan) // 2)
    while size:
        position, has_changed = 0, False
        while position < len(smallest.plan):
            fewer = [*smallest.plan[:position], *smallest.plan[position + size :]]
            tried = run_job(job._replace(plan=fewer))
            if tried.violations:
                smallest, has_changed = tried, True
            else:
                position += size
        size = size // 2 if size > 1 else int(has_changed)
    return smallest
