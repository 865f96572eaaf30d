"""Kinds of happenings as people name them, and results in words."""

from __future__ import annotations

import doctest

import pytest

from barnabas.operations.rehearsal import asked, words
from barnabas.operations.rehearsal.asked import KINDS, happening
from barnabas.operations.rehearsal.happenings import Elect, FailLogDir, Kill, StartRack


@pytest.mark.parametrize("module", [asked, words])
def test_examples_hold(module: object) -> None:
    found = doctest.testmod(module)  # type: ignore[arg-type]
    assert found.attempted > 0
    assert found.failed == 0


def test_each_kind_makes_what_happens() -> None:
    assert happening("kill", "3") == Kill([3])
    assert happening("start-rack", "a") == StartRack("a")
    assert happening("elect", "unclean") == Elect("unclean")
    made = happening("fail-log-dir", "3:zK5FDJ7sSuGiPbLuyS2LuA")
    assert isinstance(made, FailLogDir)
    assert (made.node, str(made.directory)) == (3, "zK5FDJ7sSuGiPbLuyS2LuA")


@pytest.mark.parametrize(
    ("kind", "subject", "said"),
    [
        *((kind, "x", "is not") for kind, each in KINDS.items() if each.subject in ("NODE", "NODE:ID")),
        ("kill", "-1", "is not the id of a node"),
        ("elect", "any", "preferred, unclean"),
        ("fly", "1", "cannot be rehearsed"),
    ],
)
def test_nonsense_is_refused_with_its_reason(kind: str, subject: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        happening(kind, subject)
