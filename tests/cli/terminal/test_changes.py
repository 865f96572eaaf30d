"""Deletions are confirmed by their number."""

from __future__ import annotations

import click
import pytest
from click.testing import CliRunner

from barnabas.cli.terminal.changes import confirm_count


@click.command()
@click.option("--yes", is_flag=True)
def delete(yes: bool) -> None:
    confirm_count("Delete?", 12, "topics", yes=yes)
    click.echo("deleted")


@pytest.mark.parametrize(
    ("answer", "is_done"), [("12", True), ("yes", True), ("YES", True), ("y", False), ("11", False), ("", False)]
)
def test_a_number_or_yes_is_needed(answer: str, is_done: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("barnabas.cli.terminal.changes.is_terminal", lambda: True)
    result = CliRunner().invoke(delete, input=f"{answer}\n")
    assert ("deleted" in result.stdout) is is_done
    assert "Delete? Type 12, the number of topics, or yes" in result.stderr
    assert is_done or "not confirmed: nothing was changed" in result.stderr


def test_scripts_say_yes() -> None:
    assert CliRunner().invoke(delete, ["--yes"]).stdout == "deleted\n"
    refused = CliRunner().invoke(delete)
    assert refused.exit_code == 1
    assert "standard input is not a terminal" in refused.stderr
