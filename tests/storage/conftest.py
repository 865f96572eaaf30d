"""What the tests of this folder share."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest


@pytest.fixture(scope="module", autouse=True)
def no_fsync() -> Iterator[None]:
    """No test cuts the power, so none needs to wait for the disk; a process that is killed does its own flushing."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda descriptor: None)
        yield
