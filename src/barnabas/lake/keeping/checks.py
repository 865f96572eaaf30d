"""Checks of a batch's rows before they become part of the lake: unique keys, no nulls, references that resolve.

Its one rule: a check reads only the rows of one batch, and that is enough. The rows of a batch are those that it added, those
that ended in it, and all that are open after it. A row that begins in a batch has an offset that no row of an earlier batch
has; a row that continues was checked when it began. So keys that are unique in the batch are unique in the table. The row
that another refers to was open where that one began, so it is among the rows of that batch too. Only if it seems to be
missing, the whole table is read.

The first pass over all tables is one job on 64-bit hashes of the keys. Keys with equal hashes are compared in the second
pass, which reads only the tables that failed the first, and names rows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import reduce
from typing import TYPE_CHECKING, NamedTuple

from barnabas.lake.tables.declaration import Reference, Table

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_NAMED_ROWS = 5


class CheckFailedError(Exception):
    """Rows that break a rule. The text names the table, the rule and a few rows."""


class Checked(NamedTuple):
    """A table and its rows of this batch."""

    table: Table
    rows: DataFrame


def check(tables: Mapping[str, Checked], whole_table: Callable[[str], DataFrame]) -> None:
    """Raise CheckFailedError if a row breaks a rule. `tables` by name; `whole_table(name)` reads all rows of a table."""
    for name, place in _doubts(tables):
        table, rows = tables[name]
        if place is None:
            _check_not_null(table, rows)
            _check_keys(table, rows)
        else:
            _check_reference(table, rows, table.references[place], whole_table)


def _doubts(tables: Mapping[str, Checked]) -> list[tuple[str, int | None]]:
    """Return tables with a duplicate key or a forbidden null (None), and the numbers of references that do not resolve."""
    frames = []
    for name, (table, rows) in tables.items():
        frames.append(_marked(rows, name, None, table.keys, bad=_any_null(table.not_null)))
        for place, reference in enumerate(table.references):
            frames.append(_marked(rows.where(_all_set(reference.columns)), name, place, reference.columns, refers=True))
            if reference.table in tables:
                frames.append(_marked(tables[reference.table].rows, name, place, reference.its_columns))
    if not frames:
        return []
    is_doubtful = "bad or (refers and not is_there) or (place is null and rows > 1)"
    found = (
        reduce(lambda one, other: one.unionAll(other), frames)
        .groupBy("name", "place", "hash")
        .agg(
            *map(_expr, ("count(*) as rows", "max(bad) as bad", "max(refers) as refers", "max(not refers) as is_there"))
        )
        .where(is_doubtful)
        .select("name", "place")
        .distinct()
    )
    return [(row["name"], row["place"]) for row in found.collect()]


def _marked(
    rows: DataFrame,
    name: str,
    place: int | None,
    columns: tuple[str, ...],
    bad: Column | None = None,
    refers: bool = False,
) -> DataFrame:
    from pyspark.sql import functions as f

    return rows.select(
        f.lit(name).alias("name"),
        f.lit(place).cast("int").alias("place"),
        f.xxhash64(*columns).alias("hash"),
        (f.lit(False) if bad is None else bad).alias("bad"),
        f.lit(refers).alias("refers"),
    )


def _expr(text: str) -> Column:
    from pyspark.sql import functions as f

    return f.expr(text)


def _any_null(columns: tuple[str, ...]) -> Column:
    from pyspark.sql import functions as f

    return reduce(lambda one, other: one | other, (f.col(column).isNull() for column in columns), f.lit(False))


def _all_set(columns: tuple[str, ...]) -> Column:
    from pyspark.sql import functions as f

    return reduce(lambda one, other: one & other, (f.col(column).isNotNull() for column in columns))


def _check_keys(table: Table, rows: DataFrame) -> None:
    from pyspark.sql import functions as f

    twice = rows.groupBy(*table.keys).agg(f.count("*").alias("rows")).where("rows > 1")
    _fail_if_any(table, f"has several rows with the same {', '.join(table.keys)}", twice)


def _check_not_null(table: Table, rows: DataFrame) -> None:
    for column in table.not_null:
        shown = [*table.keys, *(() if column in table.keys else (column,))]
        _fail_if_any(table, f"has rows without {column}", rows.where(f"`{column}` is null").select(*shown))


def _check_reference(
    table: Table, rows: DataFrame, reference: Reference, whole_table: Callable[[str], DataFrame]
) -> None:
    from pyspark.sql import functions as f

    there = whole_table(reference.table).select(*reference.its_columns).distinct().alias("there")
    here = rows.where(_all_set(reference.columns)).alias("here")
    pairs = zip(reference.columns, reference.its_columns, strict=True)
    same = reduce(
        lambda one, other: one & other, (f.col(f"here.{mine}") == f.col(f"there.{its}") for mine, its in pairs)
    )
    shown = list(dict.fromkeys((*table.keys, *reference.columns)))
    rule = f"refers by {', '.join(reference.columns)} to rows that {reference.table} does not have"
    _fail_if_any(table, rule, here.join(there, same, "left_anti").select(*shown))


def _fail_if_any(table: Table, rule: str, bad: DataFrame) -> None:
    found = bad.limit(_NAMED_ROWS + 1).collect()
    if found:
        rows = "; ".join(
            ", ".join(f"{name}={value}" for name, value in row.asDict().items()) for row in found[:_NAMED_ROWS]
        )
        more = " and more" if len(found) > _NAMED_ROWS else ""
        raise CheckFailedError(f"table {table.name} {rule}: {rows}{more}")
