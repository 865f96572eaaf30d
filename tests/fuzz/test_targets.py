"""A fixed budget of fuzzing: what was kept, and the same few mutations in each run. `make fuzz` makes new ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fuzz.live import campaign
from tests.fuzz.loop import pool_of, run, tried
from tests.fuzz.target import CORPUS, NAMES, kept, load

MUTATIONS = {"codec": 4000, "frames": 300, "batches": 1500, "records": 3000, "recovery": 700}
SEEDS = range(2)
REQUESTS = 600
MAX_CORPUS_BYTES = 1 << 20


@pytest.mark.parametrize("name", NAMES)
def test_what_was_kept_breaks_nothing(name: str) -> None:
    target = load(name)
    assert [str(failure) for data in kept(name) if (failure := tried(name, target, data))] == []


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", NAMES)
def test_mutated_inputs_break_nothing(name: str, seed: int) -> None:
    target = load(name)
    failure = run(name, target, pool_of(name, target), seed, MUTATIONS[name] // len(SEEDS))
    assert failure is None, str(failure)


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="sockets are counted where Linux lists them")
@pytest.mark.parametrize("unsettling", [False, True], ids=["settled", "unsettling"])
def test_a_node_withstands_a_campaign_of_requests(tmp_path: Path, unsettling: bool) -> None:
    report = campaign.run(1, REQUESTS, tmp_path / "data", unsettling=unsettling)
    assert report.findings == {}, str(report)
    assert report.sent == REQUESTS and report.answered > REQUESTS // 3


def test_the_corpus_is_small() -> None:
    assert sum(path.stat().st_size for path in CORPUS.iterdir()) <= MAX_CORPUS_BYTES
