"""The examples in docstrings of the console."""

from __future__ import annotations

import doctest
from importlib import import_module

import pytest

MODULES = ("entrance", "formats", "forms", "listing", "pages.overview", "settings", "security.hosts")


@pytest.mark.parametrize("name", MODULES)
def test_examples_hold(name: str) -> None:
    found = doctest.testmod(import_module(f"barnabas.console.{name}"))
    assert found.attempted > 0
    assert found.failed == 0
