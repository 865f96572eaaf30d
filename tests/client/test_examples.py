"""Examples in docstrings of the client run, each against a node of its own."""

from __future__ import annotations

import doctest
import pkgutil
from importlib import import_module

import pytest

import barnabas.client

MODULES = [each.name for each in pkgutil.walk_packages(barnabas.client.__path__, "barnabas.client.")]


def test_there_are_examples() -> None:
    finder = doctest.DocTestFinder()
    with_examples = [name for name in MODULES if any(each.examples for each in finder.find(import_module(name)))]
    assert {"barnabas.client.cluster", "barnabas.client.sync", "barnabas.client.admin.admin"} <= set(with_examples)


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_of_a_module_run(name: str) -> None:
    assert doctest.testmod(import_module(name)).failed == 0
