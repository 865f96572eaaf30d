"""The example in the package's docstring works."""

from __future__ import annotations

import doctest

import barnabas.metadata


def test_the_example_of_the_package_works() -> None:
    results = doctest.testmod(barnabas.metadata)
    assert results.attempted > 5 and results.failed == 0
