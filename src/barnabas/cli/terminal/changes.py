"""Commands that change something: announce the changes, support --dry-run, ask for confirmation, show the results.

Its one rule: the plan goes to standard error before anything is sent, so that standard output has only the result. A result
has one row per item with `error` and `message`, null on success. The command exits with 1 if an item failed.
"""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import click

from barnabas.cli.terminal.failures import Failure, ItemsFailed
from barnabas.cli.terminal.output import Column, Output, columns, note
from barnabas.operations.proposal import Proposal
from barnabas.wire.errors import KafkaError

if TYPE_CHECKING:
    from barnabas.client.admin.config_values import AlterConfigOp, ConfigResource
    from barnabas.client.cluster import Cluster

K = TypeVar("K")
R = TypeVar("R")


def announce(lines: Iterable[str], *, dry_run: bool = False) -> None:
    """Print the changes that are about to be made, or with `dry_run` would be made."""
    for line in lines:
        note(f"{'would ' if dry_run else ''}{line}")


def is_terminal() -> bool:
    """Return whether standard input is a terminal, so that questions can be asked."""
    return sys.stdin.isatty()


@contextmanager
def interruptible() -> Iterator[None]:
    """Make Ctrl-C raise KeyboardInterrupt at once while a prompt waits for an answer.

    The event loop's own handler only cancels the task of the command, which has no effect before the next await.
    """
    before = signal.getsignal(signal.SIGINT)
    if before is None or threading.current_thread() is not threading.main_thread():
        yield
        return
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        if _is_cancelled():
            raise KeyboardInterrupt  # Ctrl-C was pressed just before the prompt
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _is_cancelled() -> bool:
    import asyncio  # slow to import

    try:
        task = asyncio.current_task()
    except RuntimeError:  # no event loop
        return False
    return task is not None and task.cancelling() > 0


@contextmanager
def _prompting() -> Iterator[None]:
    """Turn Ctrl-C and the end of the input at a prompt into a Failure: both are a no."""
    try:
        with interruptible():
            yield
    except (click.Abort, KeyboardInterrupt):
        note("")  # the answer has no line end
        raise Failure("not confirmed: nothing was changed") from None


def confirm(question: str, *, yes: bool) -> None:
    """Ask for confirmation unless `yes`. Raises Failure if the answer is no or standard input is not a terminal.

    Ctrl-C and the end of the input are a no.
    """
    if yes:
        return
    if not is_terminal():
        raise Failure(
            f"{question} This cannot be confirmed, because standard input is not a terminal", advice="pass --yes"
        )
    with _prompting():
        is_confirmed = click.confirm(question, err=True)
    if not is_confirmed:
        raise Failure("not confirmed: nothing was changed")


def confirm_count(question: str, count: int, what: str, *, yes: bool) -> None:
    """Ask for confirmation of deletions by their number or the word yes. Raises Failure as `confirm` does."""
    if yes or not is_terminal():
        confirm(question, yes=yes)
        return
    text = f"{question} Type {count}, the number of {what}, or yes"
    with _prompting():
        answer = click.prompt(text, err=True, default="", show_default=False)
    if str(answer).strip().lower() not in (str(count), "yes"):
        raise Failure("not confirmed: nothing was changed")


async def confirm_losses(
    cluster: Cluster, alterations: Mapping[ConfigResource, Iterable[AlterConfigOp]], *, yes: bool, dry_run: bool
) -> None:
    """Show which records a change of settings deletes, and ask for confirmation. Raises Failure as `confirm` does."""
    from barnabas.operations.configs.data_loss import losses

    found = await losses(cluster, alterations)
    for sentence in found:
        note(f"warning: {sentence}")
    if found and not dry_run:
        confirm("Delete these records?", yes=yes)


def show_results(
    output: Output,
    keys: Iterable[str | Column],
    results: Mapping[K, object],
    row: Callable[[K, Any], Mapping[str, Any]],
) -> None:
    """Show one row per item, with the fields that `row` returns for the item and its result (None if it failed).

    Exits with 1 if an item failed. A change that timed out but was made counts as success, with a message.
    """
    from barnabas.client.admin.part import TimedOutError  # slow to import: event loop

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
    if failures:
        raise ItemsFailed(failure.code for failure in failures)


async def carry_out(proposal: Proposal[K, R], *, dry_run: bool, yes: bool = True) -> Mapping[K, R]:
    """Show a proposal, ask for confirmation if it needs one, carry it out and return the results; `dry_run` only shows it."""
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
