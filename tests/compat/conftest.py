"""A node as a process of its own, for clients that others wrote."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from itertools import count

import pytest
from tools.apache_kafka import Barnabas

with warnings.catch_warnings():  # its own way to read its schemas is deprecated in Python 3.11
    warnings.simplefilter("ignore", DeprecationWarning)
    import kafka.admin  # noqa: F401

WITH_ACLS = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
}


@pytest.fixture(scope="session")
def node() -> Iterator[Barnabas]:
    """One node with an authorizer, shared: tests use names of their own."""
    with Barnabas(WITH_ACLS) as running:
        yield running


@pytest.fixture(scope="session")
def fresh_name() -> Callable[[str], str]:
    """Names that no other test has used."""
    numbers = count(1)
    return lambda prefix: f"{prefix}-{next(numbers)}"
