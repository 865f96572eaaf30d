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
    kind: Kind,
    place: Sequence[Column],
    not_null: Sequence[str],
    references: tuple[Reference, ...] = (),
    log: str | None = None,
) -> Table:
    """Return the silver table of a kind; `place` are the columns that locate its facts. `log` is that of all, if it is one."""
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
        reopen=partial(reopen, kind, log),
    )


def build(kind: Kind, where: Sequence[str], facts: DataFrame) -> DataFrame:
    """Return the facts of a kind as rows of its table."""
    of_kind = facts.where(facts["kind"] == kind.name)
    values = (of_kind[kind.name][column.name].alias(column.name) for column in kind.columns)
    return of_kind.select(*where, *values, *(column.name for column in VALIDITY))


def reopen(kind: Kind, log: str | None, rows: DataFrame) -> DataFrame:
    """Return rows of the table of a kind as facts again. Their keys are null: folds make them from the values."""
    from pyspark.sql import functions as f

    return rows.select(
        "cluster_id",
        f.lit(kind.name).alias("kind"),
        f.lit(log).alias("log") if log is not None else f.col("log"),
        f.lit(None).cast("string").alias("key"),
        *(column.name for column in VALIDITY),
        f.struct(*(column.name for column in kind.columns)).alias(kind.name),
    )
