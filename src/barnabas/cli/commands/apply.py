"""`barnabas apply`: change a cluster to what a file declares.

Carries out the changes that `plan` shows, in that order, and stops at the first failure. `declared.execute` sends them.
"""

from __future__ import annotations

import asyncio
import os
import sys
from typing import TYPE_CHECKING, Any

import click

from barnabas.cli.connection.connecting import run
from barnabas.cli.connection.options import common_options, dry_run_option, yes_option
from barnabas.cli.connection.profiles import Connection
from barnabas.cli.terminal.changes import confirm, confirm_count
from barnabas.cli.terminal.declared_plan import delete_option, file_option, load, show, summary
from barnabas.cli.terminal.failures import Failure, ItemsFailed
from barnabas.cli.terminal.output import Column, Output, columns, note
from barnabas.wire.errors import KafkaError

if TYPE_CHECKING:
    from barnabas.client.cluster import Cluster
    from barnabas.declared.difference import Change, Plan
    from barnabas.declared.document import Document, Password
    from barnabas.declared.execute import Outcome

_SETTLING_ATTEMPTS = 30
_SETTLING_S = 0.1
_COLORS = {"done": "green", "failed": "red", "not tried": "yellow"}
_RESULT = columns(
    "action", "kind", "name", Column("result", style=lambda value: _COLORS.get(str(value))), "error", "message"
)


@click.command("apply", short_help="Change a cluster to what a file declares.")
@file_option
@delete_option
@yes_option
@dry_run_option
@common_options
def apply(
    connection: Connection, output: Output, files: tuple[str, ...], delete: bool, yes: bool, dry_run: bool
) -> None:
    """Change a cluster to what a file declares: show the plan, ask for confirmation, and carry it out.

    Additions and alterations come first (topics, partitions, replicas, settings, quotas, users, ACLs), deletions last. What
    the file declares absent is deleted. With --delete, so is what exists but is not declared: within `manages` if the file
    has it, else within the sections of the file. Deletions are confirmed by their number. The command stops at the first
    failure and lists what was done and what was not; run it again to do the rest. `barnabas plan --help` has an example of
    a file.

    \b
    Examples:
      barnabas apply -f cluster.yaml
      barnabas apply -f cluster/                     all files of a folder
      barnabas apply -f cluster.yaml --dry-run       show the plan, and let the brokers validate it
      barnabas apply -f cluster.yaml --delete --yes
    """
    document = load(files)
    run(connection, lambda cluster: _apply(cluster, output, document, delete=delete, yes=yes, dry_run=dry_run))


async def _apply(
    cluster: Cluster,
    output: Output,
    document: Document,
    *,
    delete: bool,
    yes: bool,
    dry_run: bool,
) -> None:
    from barnabas.declared.execute import read_passwords
    from barnabas.operations.declared import compare, losses_of

    plan = await compare(cluster, document, delete=delete)
    show(Output(file=sys.stderr), plan)
    if not plan.changes:
        note(f"nothing to do: the cluster matches {document.file}")
        if not output.is_for_people:
            output.rows(_RESULT, ())
        return
    try:
        passwords = read_passwords(plan.changes, os.environ)
    except ValueError as error:
        raise Failure(str(error)) from None
    for sentence in await losses_of(cluster, plan):
        note(f"warning: {sentence}")
    if dry_run:
        await _validate(cluster, plan, passwords)
        note(f"dry run, nothing was changed: {summary(plan.changes)}")
        return
    question = f"Apply these changes ({summary(plan.changes)})?"
    deletions = sum(change.deletes for change in plan.changes)
    if deletions:
        confirm_count(question, deletions, "resources to delete", yes=yes)
    else:
        confirm(question, yes=yes)
    await _do(cluster, output, plan, passwords)
    await _settle(cluster, document, delete)


async def _validate(cluster: Cluster, plan: Plan, passwords: dict[Password, str]) -> None:
    """Ask the brokers to validate the changes. Raises Failure with every change they would reject."""
    from barnabas.declared.execute import execute

    refused = [
        f"{outcome.change}: {_words(outcome.error)}"
        async for outcome in execute(cluster, plan.changes, passwords, validate_only=True)
        if outcome.error is not None
    ]
    if refused:
        raise Failure("\n".join(refused))


async def _do(cluster: Cluster, output: Output, plan: Plan, passwords: dict[Password, str]) -> None:
    from barnabas.declared.difference import ChangeReplicationFactor
    from barnabas.declared.execute import execute

    outcomes: list[Outcome] = []
    with output.table(_RESULT) as table:
        try:
            async for outcome in execute(cluster, plan.changes, passwords):
                outcomes.append(outcome)
                table.add(_row(outcome.change, "done" if outcome.is_done else "failed", outcome.error))
        except asyncio.CancelledError:
            table.close()
            note(
                f"interrupted: {len(outcomes)} of {len(plan.changes)} changes were sent and answered;"
                " see what is left with: barnabas plan"
            )
            raise
        for change in plan.changes[len(outcomes) :]:
            table.add(_row(change, "not tried", None))
    if any(isinstance(outcome.change, ChangeReplicationFactor) and outcome.is_done for outcome in outcomes):
        note("replicas are being moved; see their progress with: barnabas reassign status")
    failures = [outcome.error for outcome in outcomes if not outcome.is_done]
    if not failures:
        return
    left = len(plan.changes) - len(outcomes)
    note(f"{len(outcomes) - len(failures)} done, {len(failures)} failed, {left} not tried")
    raise ItemsFailed(error.code for error in failures if isinstance(error, KafkaError))


def _row(change: Change, result: str, error: Exception | None) -> dict[str, Any]:
    values = [{"field": value.field, "before": value.before, "after": value.after} for value in change.values]
    return {
        "action": change.action,
        "kind": change.kind,
        "name": change.name,
        "result": result,
        "error": None if error is None else error.code.name if isinstance(error, KafkaError) else type(error).__name__,
        "message": None if error is None else error.message if isinstance(error, KafkaError) else str(error),
        "values": values,
    }


def _words(error: Exception | None) -> str:
    return f"{error.code.name}: {error.message}" if isinstance(error, KafkaError) else str(error)


async def _settle(cluster: Cluster, document: Document, delete: bool) -> None:
    """Wait until the brokers show the declared state: they replay a change shortly after the controller committed it."""
    from barnabas.operations.declared import compare

    for _ in range(_SETTLING_ATTEMPTS):
        if not (await compare(cluster, document, delete=delete)).changes:
            note(f"the cluster matches {document.file}")
            return
        await asyncio.sleep(_SETTLING_S)
    note("all changes were made, but the brokers do not show all of them yet; check again with: barnabas plan")
