"""What a process that runs a node asks of the system and of Python. Each test is a process of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

BEGIN = """
import gc, logging, resource, sys
logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stdout)
from barnabas.broker.process_limits import raise_open_file_limit, spare_long_lived_objects
from barnabas.storage.files import open_files
"""


def run(code: str) -> list[str]:
    done = subprocess.run([sys.executable, "-c", BEGIN + code], capture_output=True, text=True, check=True, timeout=60)
    return done.stdout.splitlines()


def test_the_limit_of_open_files_is_raised_to_what_is_allowed_and_logs_get_their_share() -> None:
    assert run("""
resource.setrlimit(resource.RLIMIT_NOFILE, (400, 900))
open_files.limit = 100
raise_open_file_limit()
print(resource.getrlimit(resource.RLIMIT_NOFILE), open_files.limit)
raise_open_file_limit()
""") == ["raised the limit of open files from 400 to 900", "(900, 900) 225", "this process may open 900 files"]


def test_a_limit_that_cannot_be_raised_is_reported_and_left_as_it_is() -> None:
    assert run("""
def refuse(*arguments):
    raise ValueError("not allowed")
resource.getrlimit, resource.setrlimit = (lambda which: (400, resource.RLIM_INFINITY)), refuse
raise_open_file_limit()
""") == ["the limit of open files stays at 400, and could not be raised to any number: not allowed"]


def test_what_the_start_has_made_is_left_out_of_collections_and_later_garbage_is_not() -> None:
    assert run("""
class Cycle:
    def __init__(self):
        self.itself = self
kept = [Cycle() for _ in range(1000)]
before = len(gc.get_objects())
spare_long_lived_objects()
print(gc.get_freeze_count() > before * 0.9, len(gc.get_objects()) < before / 10)
for _ in range(1000):
    Cycle()
print(gc.collect() >= 1000)
""") == ["True True", "True"]


def test_all_objects_are_collected_in_a_quiet_moment_only() -> None:
    """A collection of all objects is one turn of the event loop, and long while a large request is worked on."""
    assert run("""
import asyncio
from barnabas.broker import process_limits
spare_long_lived_objects()
made, due = [], [0, 100, 600, 1100, 1101, 1, 5600]
process_limits.LOOK_EVERY_S = 0
gc.get_count = lambda: (0, 0, due[0])
gc.collect = lambda: made.append(due[0])
async def main():
    collecting = asyncio.create_task(process_limits.collect_when_quiet())
    while len(due) > 1:
        await asyncio.sleep(0)
        due.pop(0)
    await asyncio.sleep(0)
    collecting.cancel()
real = process_limits.asyncio.sleep
asyncio.run(main())
print(made, gc.get_threshold()[2] > 1_000_000)
""") == ["[1101, 5600] True"]


def test_a_served_node_says_how_many_files_it_may_open(tmp_path: Path) -> None:
    command = f"ulimit -S -n 300; exec {sys.executable} -m barnabas serve --override log.dirs={tmp_path}/data --port 0"
    lines: list[str] = []
    with subprocess.Popen(["sh", "-c", command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as node:
        try:
            assert node.stdout is not None
            for line in node.stdout:
                lines.append(line)
                if line.startswith("reach it with"):
                    break
        finally:
            node.terminate()
    assert any("raised the limit of open files from 300 to" in line for line in lines), lines


def test_collections_that_happen_by_themselves_are_small_and_the_first_one_is_not_made_at_all() -> None:
    assert run("""
passes = []
gc.callbacks.append(lambda phase, info: passes.append(info["generation"]))
spare_long_lived_objects()
print(passes)
young, middle, _ = gc.get_threshold()
print(young * middle <= 50_000, gc.get_freeze_count() > 10_000)
kept = [[] for _ in range(1_000_000)]
print(2 in passes, 1 in passes)
""") == ["[]", "True True", "False True"]
