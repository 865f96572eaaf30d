"""What a start imports in threads: no turn of the event loop has it to do. Each start needs a process of its own."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

from barnabas.config.internal_topics import GROUP_METADATA_TOPIC, SHARE_GROUP_STATE_TOPIC, TRANSACTION_STATE_TOPIC
from barnabas.testing import AsyncBroker

# Prints where each of these modules was imported before the node served, without what imports nothing else.
STARTED = """
import asyncio, importlib.abc, sys, threading

from barnabas.testing import AsyncBroker

WATCHED = ("barnabas.broker.coordinators", "barnabas.groups.coordinator", "barnabas.transactions.coordinator")


class Watch(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name in WATCHED:
            is_of_loop = threading.current_thread() is threading.main_thread()
            print(name, "by the event loop" if is_of_loop else "in a thread")
        return None


async def main(data_dir):
    sys.meta_path.insert(0, Watch())
    async with AsyncBroker(data_dir=data_dir):
        print("served")


asyncio.run(main(sys.argv[1]))
"""


def lines_of_a_start(data_dir: Path) -> list[str]:
    command = [sys.executable, "-c", STARTED, str(data_dir)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def create(data_dir: Path, *topics: str) -> None:
    async def scenario() -> None:
        async with AsyncBroker(topics, data_dir=data_dir):
            pass

    asyncio.run(scenario())


@pytest.mark.parametrize("topic", [GROUP_METADATA_TOPIC, TRANSACTION_STATE_TOPIC, SHARE_GROUP_STATE_TOPIC])
def test_a_start_that_finds_groups_or_transactions_imports_the_coordinators_in_a_thread(
    tmp_path: Path, topic: str
) -> None:
    create(tmp_path / "data", topic)

    lines = lines_of_a_start(tmp_path / "data")

    before = lines[: lines.index("served")]
    assert "barnabas.broker.coordinators in a thread" in before
    assert "barnabas.groups.coordinator in a thread" in before
    assert not any(line.endswith("by the event loop") for line in lines)


def test_a_start_without_them_does_not_import_the_coordinators(tmp_path: Path) -> None:
    create(tmp_path / "data", "orders")
    lines = lines_of_a_start(tmp_path / "data")
    assert lines[0] == "served"
