"""One writer of a lake at an address: the lease is kept, given back, lost by a killed writer, and missed by a paused one."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas.lake.keeping.folders import folder_at
from barnabas.lake.keeping.locks import WRITERS, LakeLockedError, Lease
from barnabas.lake.keeping.store import Lake, Writer
from tests.lake.keeping.hindered_writer import LEASE_S
from tests.lake.keeping.lake_writer import rows, write_batch
from tests.lake.s3_server import s3_server

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def bucket() -> Iterator[str]:
    with s3_server() as address:
        yield address


def test_a_lease_is_kept_until_it_is_given_back(tmp_path: Path) -> None:
    folder, told = folder_at(tmp_path), list[str]()
    first = Lease(folder, lease_s=3)
    for _ in range(2):
        with pytest.raises(LakeLockedError, match=r"is being written by pid \d+ on .+ since 2\d{3}-.*one writer"):
            Lease(folder, lease_s=3, tell=told.append)
    first.check()
    first.release()
    second = Lease(folder, lease_s=3)
    assert (first.is_taken_over, second.is_taken_over) == (False, False)
    assert len(folder.files(WRITERS)) == 1, "older entries are removed"
    with pytest.raises(LakeLockedError, match="was taken over by pid"):
        first.check()
    second.check()
    second.release()
    assert all("waiting for up to 3 s: pid" in line for line in told)


def test_of_two_writers_at_an_address_the_second_is_told_who_the_first_is(bucket: str) -> None:
    place = f"{bucket}/two"
    with Writer(place, lease_s=6) as writer:
        writer.open()
        with pytest.raises(LakeLockedError, match=r"two is being written by pid \d+ on .*; a lake has one writer"):
            Writer(place, lease_s=6)
        write_batch(writer, 0)
    lake = Lake(place)
    assert rows(lake, lake.manifest())["bronze/added"] == [0]


def hindered(place: str, step: str, number: signal.Signals) -> subprocess.Popen[str]:
    """A writer that has got this signal after this step."""
    command = [sys.executable, "-m", "tests.lake.keeping.hindered_writer", place, step, number.name]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    _, status = os.waitpid(process.pid, os.WUNTRACED)
    if number is signal.SIGKILL:
        process.returncode = -signal.SIGKILL
        assert os.WIFSIGNALED(status)
    else:
        assert os.WIFSTOPPED(status)
    return process


def test_a_killed_writer_is_followed_after_its_lease(bucket: str) -> None:
    place, told = f"{bucket}/killed", list[str]()
    process = hindered(place, "parts synced", signal.SIGKILL)
    assert process.stdout is not None
    process.stdout.close()
    with Writer(place, lease_s=LEASE_S, tell=told.append) as writer:
        writer.open()
        write_batch(writer, 1)
    (line,) = told
    assert line.startswith("waiting for up to 2 s: pid ")
    assert line.endswith(f" has not ended its writing to {place}")
    lake = Lake(place)
    assert rows(lake, lake.manifest())["bronze/added"] == [0, 1]


@pytest.mark.parametrize(
    ("step", "said", "found"),
    [
        ("staged", "was taken over by pid", [0, 5]),
        ("parts synced", "was taken over by pid", [0, 5]),
        ("lock checked", "another process has written to this lake", [0, 5]),
        ("manifest named", "was taken over by pid", [0, 1, 5]),
    ],
)
def test_a_paused_writer_whose_lease_has_ended_commits_nothing_more(
    bucket: str, step: str, said: str, found: list[int]
) -> None:
    place = f"{bucket}/paused/{step.replace(' ', '-')}"
    process = hindered(place, step, signal.SIGSTOP)
    with Writer(place, lease_s=LEASE_S) as writer:
        writer.open()
        if step != "lock checked":  # there, its own first commit is enough to keep the other one from committing
            write_batch(writer, 5)
        process.send_signal(signal.SIGCONT)
        output, _ = process.communicate()
        assert process.returncode == 3, output
        assert said in output
        if step == "lock checked":
            write_batch(writer, 5)
        writer.sweep()
        manifest = writer.manifest
    lake = Lake(place)
    assert lake.manifest() == manifest
    assert rows(lake, manifest)["bronze/added"] == found
