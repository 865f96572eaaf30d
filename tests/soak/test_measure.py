"""Growth of memory and descriptors is found; noise and a short step are not growth."""

from __future__ import annotations

import os
import socket
from pathlib import Path
from random import Random

from tests.soak.measure import MIB, Lag, Sample, grown, sample

RANDOM = Random(1)


def samples(mib: list[float], descriptors: list[int]) -> list[Sample]:
    return [
        Sample(float(at_s), int(one * MIB), many, 0, 10)
        for at_s, (one, many) in enumerate(zip(mib, descriptors, strict=True))
    ]


def test_noise_is_no_growth() -> None:
    mib = [100 + RANDOM.uniform(-20, 20) for _ in range(1000)]
    assert [*grown(samples(mib, [RANDOM.randint(100, 200) for _ in mib]))] == []


def test_growing_memory_is_found() -> None:
    mib = [100 + at_s * 0.03 + RANDOM.uniform(-5, 5) for at_s in range(1000)]
    (found,) = grown(samples(mib, [100] * 1000))
    assert found.startswith("memory grew by ")


def test_growing_descriptors_are_found() -> None:
    descriptors = [100 + at_s // 20 + RANDOM.randint(-5, 5) for at_s in range(1000)]
    (found,) = grown(samples([100.0] * 1000, descriptors))
    assert found.startswith("descriptors beside those of log files grew by ")


def test_descriptors_of_logs_that_grow_are_no_growth() -> None:
    assert [*grown([Sample(float(at_s), MIB, 100 + at_s, 0, at_s) for at_s in range(1000)])] == []


def test_a_step_of_a_tenth_of_the_time_is_no_growth() -> None:
    assert [*grown(samples([100.0] * 900 + [500.0] * 100, [100] * 900 + [900] * 100))] == []


def test_without_samples_nothing_grew() -> None:
    assert [*grown([])] == []


def test_a_sample_counts_the_descriptors_of_a_process_by_their_kind(tmp_path: Path) -> None:
    (tmp_path / "log").touch()
    (tmp_path / "deleted").touch()
    before = sample(0, os.getpid(), tmp_path)
    with socket.socket(), (tmp_path / "log").open(), (tmp_path / "deleted").open(), Path(__file__).open():
        (tmp_path / "deleted").unlink()
        after = sample(0, os.getpid(), tmp_path)
    assert before is not None and after is not None
    assert (after.descriptors - before.descriptors, after.sockets - before.sockets) == (4, 1)
    assert (before.log_files, after.log_files) == (0, 1)
    assert after.rss_bytes > MIB


def test_lag_is_the_longest_since_the_last_look_and_of_all(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text(
        "the event loop was late by 300 ms, of which it worked 120 ms\nlate by 200 ms, of which it worked 150 ms\n"
    )
    lag = Lag(log)
    assert (lag.look(), lag.look()) == ((300, 150), (0, 0))
    assert (lag.longest_late_ms, lag.longest_worked_ms) == (300, 150)
