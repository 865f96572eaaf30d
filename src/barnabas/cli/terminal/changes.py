"""Commands that change something: they show what they will do, do nothing if told so, and ask before what cannot be undone.

Its one rule: the plan goes to the standard error before anything is sent, so that the output is the result alone. A result
is a row per item with `error` and `message`, null where it went well; the command fails if one of them did.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

import click

from barnabas.cli.terminal.exit_codes import EXIT_FAILED
from barnabas.cli.terminal.failures import ADVICE, Failure
from barnabas.cli.terminal.output import Column, Output, columns, note
from barnabas.operations.proposal import Proposal
from barnabas.wire.errors import KafkaError

K = TypeVar("K")
R = TypeVar("R")


def announce(lines: Iterable[str], *, dry_run: bool = False) -> None:
    """Say what is about to be done, or would be."""
    for line in lines:
        note(f"{'would ' if dry_run else ''}{line}")


def confirm(question: str, *, yes: bool) -> None:
    """Ask before what cannot be undone; where nobody can answer, say which option does."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise Failure(f"{question} Nobody is there to answer", advice="say it with --yes")
    if not click.confirm(question, err=True):
        raise Failure("nothing was done")


def show_results(
    output: Output,
    keys: Iterable[str | Column],
    results: Mapping[K, object],
    row: Callable[[K, Any], Mapping[str, Any]],
) -> None:
    """A row per item; `row` gives the fields of an item, with its result or None if it failed. Ends with 1 if one failed.

    A change that was not confirmed in time and is there all the same counts as done, and says so.
    """
    from barnabas.client.admin.part import TimedOutError  # brings the event loop

    failures: list[KafkaError] = []
    with output.table((*columns(*keys), *columns("error", "message"))) as table:
        for key, result in results.items():
            if not isinstance(result, KafkaError):
                table.add({**row(key, result), "error": None, "message": None})
                continue
            is_done = isinstance(result, TimedOutError) and result.happened
            table.add({**row(key, None), "error": None if is_done else result.code.name, "message": result.message})
            if not is_done:
                failures.append(result)
    for code in dict.fromkeys(failure.code for failure in failures):
        if code in ADVICE:
            note(f"Try: {ADVICE[code]}")
    if failures:
        sys.exit(EXIT_FAILED)


async def carry_out(proposal: Proposal[K, R], *, dry_run: bool, yes: bool = True) -> Mapping[K, R]:
    """Show what is proposed, ask if it needs confirmation, do it, and return the results; with `dry_run` only show it."""
    for line in proposal.notes:
        note(line)
    announce(proposal.steps, dry_run=dry_run)
    if dry_run or not proposal.steps or proposal.carry_out is None:
        return proposal.expected
    if proposal.warning is not None:
        note(proposal.warning)
    if proposal.question is not None:
        confirm(proposal.question, yes=yes)
    results = await proposal.carry_out()
    for line in proposal.done_notes:
        note(line)
    return results
