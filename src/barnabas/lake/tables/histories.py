"""The common form of all silver tables: the facts of one kind as rows, with the time for which each was true."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from barnabas.lake.declared_column import Column
from barnabas.lake.facts.schema import VALIDITY, Kind
from barnabas.lake.tables.declaration import Mode, Reference, Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def declare(
    kind: Kind, place: Sequence[Column], not_null: Sequence[str], references: tuple[Reference, ...] = ()
) -> Table:
    """Return the silver table of a kind; `place` are the columns that locate its facts."""
    where = tuple(column.name for column in place)
    keys = tuple(column.name for column in kind.keys)
    return Table(
        name=kind.name,
        layer="silver",
        question=kind.question,
        columns=(*place, *kind.columns, *VALIDITY),
        inputs=("facts",),
        build=partial(build, kind, where),
        mode=Mode.HISTORY,
        keys=(*where, *keys, "valid_from_offset"),
        not_null=(*where, *not_null, "valid_from_offset", "exact"),
        references=references,
    )


def build(kind: Kind, where: Sequence[str], facts: DataFrame) -> DataFrame:
    """Return the facts of a kind as rows of its table."""
    of_kind = facts.where(facts["kind"] == kind.name)
    values = (of_kind[kind.name][column.name].alias(column.name) for column in kind.columns)
    return of_kind.select(*where, *values, *(column.name for column in VALIDITY))
