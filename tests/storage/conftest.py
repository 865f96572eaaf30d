"""What the tests of this folder share."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture(scope="module", autouse=True)
def no_fsync() -> Iterator[None]:
    """No test cuts the power, so none needs to wait for the disk; a process that is killed does its own flushing."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda descriptor: None)
        yield


@pytest.fixture
def flushed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the files and directories that are flushed, in order."""
    if not Path("/proc/self/fd").exists():
        pytest.skip("needs /proc to name descriptors")
    names: list[str] = []
    monkeypatch.setattr(
        os, "fsync", lambda descriptor: names.append(Path(f"/proc/self/fd/{descriptor}").readlink().name)
    )
    return names
