"""Options and output that `plan`, `apply`, `export` and `lake drift` share: the declaring file and the plan."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from barnabas.cli.terminal.exit_codes import EXIT_NO
from barnabas.cli.terminal.failures import Failure
from barnabas.cli.terminal.output import Column, Output, columns, note

if TYPE_CHECKING:
    from barnabas.declared.difference import Change, Plan
    from barnabas.declared.document import Document


_COLORS = {"create": "green", "alter": "yellow", "delete": "red"}
PLAN_COLUMNS = columns(
    Column("action", style=lambda value: _COLORS.get(str(value))), "kind", "name", "field", "before", "after"
)

file_option = click.option(
    "--file",
    "-f",
    "files",
    required=True,
    multiple=True,
    type=click.Path(exists=True, allow_dash=True),
    metavar="FILE",
    help="File that declares the cluster (cluster.yaml), or a folder of such files; - is standard input. May be repeated.",
)
delete_option = click.option(
    "--delete",
    "--prune",
    "delete",
    is_flag=True,
    help="Also delete what exists but is not declared: within `manages` if the file has it, else within its sections.",
)


def load(files: Sequence[str]) -> Document:
    """Load declaring files and folders of them as one document. Raises Failure with every error in them."""
    from barnabas.declared.files import load_documents

    with documents():
        return load_documents(files, sys.stdin)


@contextmanager
def documents() -> Iterator[None]:
    """Turn errors in a file into a Failure."""
    from barnabas.declared.yaml_nodes import DocumentError

    try:
        yield
    except DocumentError as error:
        raise Failure(str(error)) from None
    except OSError as error:
        raise Failure(error.strerror or str(error), resource=error.filename) from None


def show(output: Output, plan: Plan) -> None:
    """Show the plan, value by value, with notes. Raises Failure if the plan cannot be carried out."""
    from barnabas.declared.difference import AddPartitions

    if plan.changes or not output.is_for_people:
        output.rows(PLAN_COLUMNS, plan.rows())
    if any(isinstance(change, AddPartitions) for change in plan.changes):
        note("note: after partitions are added, records with the same key may go to another partition than before")
    if plan.undeclared:
        kinds = Counter(what.partition(" ")[0] for what in plan.undeclared)
        words = ", ".join(f"{kind}s {count}" for kind, count in sorted(kinds.items()))
        note(f"note: resources that are not declared are ignored ({words}); --delete would delete them")
    if plan.problems:
        raise Failure("\n".join(map(str, plan.problems)))


def judge(output: Output, plan: Plan, agreement: str, warnings: Sequence[str] = ()) -> None:
    """Show the plan and warnings, or the note `agreement` if it is empty. Exits with 2 if it has changes."""
    show(output, plan)
    for warning in warnings:
        note(f"warning: {warning}")
    if not plan.changes:
        note(agreement)
        return
    note(summary(plan.changes))
    sys.exit(EXIT_NO)


def summary(changes: tuple[Change, ...]) -> str:
    """Count changes by action: `2 to create, 1 to alter`."""
    counts = Counter(change.action for change in changes)
    return ", ".join(f"{counts[action]} to {action}" for action in _COLORS if counts[action])
