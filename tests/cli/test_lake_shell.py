"""Queries of `barnabas lake shell`, which are typed or come from a pipe, and options that need others; without Spark."""

from __future__ import annotations

from pathlib import Path

import pytest

from barnabas.cli.lake.shell import split_queries
from tests.command_line import invoke


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("select 1", ["select 1"]),
        ("select 1; select 2;", ["select 1", " select 2", ""]),
        ("select ';' as `a;b`, \";\"; x", ["select ';' as `a;b`, \";\"", " x"]),
        ("select 'it\\';s'; x", ["select 'it\\';s'", " x"]),
        ("select 1 -- a; comment\n; x", ["select 1 -- a; comment\n", " x"]),
        ("", [""]),
    ],
)
def test_semicolons_in_quotes_and_comments_end_no_query(text: str, parts: list[str]) -> None:
    assert split_queries(text) == parts


def test_a_directory_that_is_no_lake_ends_the_shell_before_anything_is_read(tmp_path: Path) -> None:
    done = invoke("lake", "shell", "--lake", tmp_path, stdin="select 1;", code=1)
    assert "is not a lake" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--serve", "9405"), "--serve and --report need --follow"),
        (("--report", "out"), "--serve and --report need --follow"),
    ],
)
def test_what_is_served_needs_follow(tmp_path: Path, arguments: tuple[str, ...], message: str) -> None:
    done = invoke("lake", "run", *arguments, "--lake", tmp_path / "lake")
    assert (done.exit_code, message in done.stderr) == (2, True), done.stderr
    assert not (tmp_path / "lake").exists()
