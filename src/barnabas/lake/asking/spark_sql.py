"""Queries of Spark SQL that DuckDB can run with the same result, translated by sqlglot.

Its one rule: only what is known to mean the same in both is translated: the kinds of expressions below. All else, such as a
cast, a division or a function of time, raises NotStoredError, and Spark runs it. Names that do not exist, and what is no
query, are told at once.
"""

from __future__ import annotations

import logging
import re
from typing import TYPE_CHECKING, Final

from sqlglot import exp, parse
from sqlglot.errors import SqlglotError

from barnabas.lake.keeping.folders import LakeError
from barnabas.lake.keeping.manifest import NotStoredError

if TYPE_CHECKING:
    from barnabas.lake.asking.selection import Found
    from barnabas.lake.asking.stored import StoredLake

_SAME: Final[tuple[type[exp.Expr], ...]] = (
    *(exp.Select, exp.From, exp.Table, exp.TableAlias, exp.Identifier, exp.Column, exp.Star, exp.Alias, exp.Subquery),
    *(exp.With, exp.CTE, exp.Union, exp.Where, exp.Group, exp.Having, exp.Order, exp.Ordered, exp.Limit, exp.Distinct),
    *(exp.Join, exp.And, exp.Or, exp.Not, exp.Paren, exp.Is, exp.In, exp.Between, exp.Like, exp.Null, exp.Boolean),
    *(
        exp.EQ,
        exp.NEQ,
        exp.GT,
        exp.GTE,
        exp.LT,
        exp.LTE,
        exp.NullSafeEQ,
        exp.Literal,
        exp.Neg,
        exp.Add,
        exp.Sub,
        exp.Mul,
    ),
    *(exp.Case, exp.If, exp.Coalesce, exp.Count, exp.Sum, exp.Min, exp.Max, exp.Lower, exp.Upper),
)
_NO_COLUMN: Final = re.compile(r'(?:Referenced column|column named) "([^"]+)"')
"""What DuckDB says of a column that no table has."""
_NAMED_BY_SPARK: Final = (exp.Count, exp.Sum, exp.Min, exp.Max, exp.Lower, exp.Upper)


_CHANGES: Final = (
    *(exp.Insert, exp.Update, exp.Delete, exp.Merge, exp.Create, exp.Drop, exp.Alter, exp.TruncateTable, exp.LoadData),
)
"""Statements that write. Views of a session are no tables, and may come and go."""

# It warns of statements that it does not know, which Spark may know.
logging.getLogger("sqlglot").setLevel(logging.ERROR)


class UnknownNameError(LakeError):
    """A query names a table or a column that does not exist."""


class NoQueryError(LakeError):
    """A text that is no query, or a statement that would write."""


def check_query(query: str) -> None:
    """Raise NoQueryError for what Spark would refuse after it has started, or would carry out beside the lake."""
    try:
        found = _statements(query)
    except SqlglotError:
        return  # Spark may know it
    if not found:
        raise NoQueryError("the query is empty")
    if len(found) > 1:
        raise NoQueryError("these are several queries; barnabas lake shell runs one after another")
    (tree,) = found
    if isinstance(tree, exp.Column):
        raise NoQueryError("this is no query: queries begin with SELECT or WITH")
    if isinstance(tree, _CHANGES) and not _is_of_a_view(tree):
        raise NoQueryError(f"{tree.key.upper()} is refused: the tables are only for reading")


def _statements(query: str) -> list[exp.Expr]:
    """Parse a text; what has only comments is no statement. Raises SqlglotError."""
    return [tree for tree in parse(query, read="spark") if tree is not None and not isinstance(tree, exp.Semicolon)]


def _is_of_a_view(tree: exp.Expr) -> bool:
    is_temporary = isinstance(tree, exp.Drop) or tree.find(exp.TemporaryProperty) is not None
    return tree.args.get("kind") == "VIEW" and is_temporary


def to_duckdb(query: str) -> tuple[str, list[str]]:
    """Return the query for DuckDB, and the names of the tables that it reads. Raises NotStoredError."""
    try:
        found = _statements(query)
    except SqlglotError as error:
        raise NotStoredError(_mistake(error)) from None
    if len(found) != 1 or not isinstance(found[0], exp.Select | exp.Union):
        raise NotStoredError("it is no SELECT")
    tree = found[0]
    for node in tree.walk():
        _check(node)
    _name_columns(tree)
    inner = {cte.alias.lower() for cte in tree.find_all(exp.CTE)}
    tables = sorted({name for table in tree.find_all(exp.Table) if (name := table.name.lower()) not in inner})
    for identifier in tree.find_all(exp.Identifier):
        identifier.set("quoted", True)  # `offset` is a keyword of DuckDB
    return tree.sql(dialect="duckdb"), tables


def _mistake(error: SqlglotError) -> str:
    """Return where a query cannot be parsed: it may be a mistake, or something that only Spark knows."""
    for place in getattr(error, "errors", ()):
        if place.get("highlight"):
            return f"only Spark knows what to make of {place['highlight']!r} in line {place['line']} of the query"
    return "the query is not one that is known to work without it"


def run_without_spark(stored: StoredLake, query: str) -> Found:
    """Run a query of Spark SQL on what is stored. Raises UnknownNameError for a table or column that does not exist, and
    NotStoredError, also for what else DuckDB reports: Spark says it better."""
    import duckdb

    translated, tables = to_duckdb(query)
    columns = list[str]()
    for table in tables:
        try:
            columns += stored.view(table).columns
        except NotStoredError:
            if (declared := _columns_of_empty(stored, table)) is None:
                raise
            stored.view_empty(table, declared)
            columns += declared
    try:
        return stored.run(translated)
    except duckdb.Error as error:
        found = _NO_COLUMN.search(str(error))
        if found is None or found[1].startswith("_"):  # Spark has hidden columns
            raise NotStoredError("the query could not be run without it") from None
        there = f"{', '.join(tables)} {'has' if len(tables) == 1 else 'have'} {', '.join(dict.fromkeys(columns))}"
        raise UnknownNameError(f"there is no column {found[1]}: {there}") from None


def _columns_of_empty(stored: StoredLake, name: str) -> dict[str, str] | None:
    """Return the columns of a table that a run would fill, and that nothing has filled yet; None if it is another one.

    Raises UnknownNameError.
    """
    from barnabas.lake.tables.all import TABLES  # imports pyspark, which the tables that are stored do without

    if (table := TABLES.get(name)) is None:
        raise UnknownNameError(f"there is no table {name}; see: barnabas lake tables")
    if table.layer == "gold" or table.path in stored.manifest.tables:
        return None
    return {column.name: column.type for column in table.columns}


def _check(node: exp.Expr) -> None:
    if not isinstance(node, _SAME):
        name = "cast" if isinstance(node, exp.TryCast) else node.key.replace("_", " ")
        raise NotStoredError(f"the query has {name}, which only Spark evaluates")
    if isinstance(node, exp.Literal) and not node.is_string and not node.name.isdecimal():
        raise NotStoredError("the query has a number that is not whole")
    if isinstance(node, exp.Literal) and node.is_string and "\\" in node.name:
        raise NotStoredError("the query has a backslash")
    if isinstance(node, exp.Table) and (node.args.get("db") or len(node.parts) != 1):
        raise NotStoredError("the query names a database")
    if isinstance(node, exp.Join) and (node.args.get("using") or node.args.get("method")):
        raise NotStoredError("the query has a join that is not by ON")
    if isinstance(node, exp.Group) and any(value for key, value in node.args.items() if key != "expressions"):
        raise NotStoredError("the query groups in several ways")
    if isinstance(node, exp.Select) and node.args.get("hint"):
        raise NotStoredError("the query has a hint")


def _name_columns(tree: exp.Expr) -> None:
    """Give columns without a name the one that Spark gives them: count(1), max(offset)."""
    for select in tree.find_all(exp.Select):
        for index, shown in enumerate(select.expressions):
            if isinstance(shown, exp.Column | exp.Alias | exp.Star):
                continue
            if not isinstance(shown, _NAMED_BY_SPARK) or not isinstance(shown.this, exp.Column | exp.Star):
                raise NotStoredError("the query has a column without a name")
            inner = "1" if isinstance(shown.this, exp.Star) else shown.this.sql(dialect="spark").replace("`", "")
            select.expressions[index] = exp.alias_(shown.copy(), f"{shown.key}({inner})", quoted=True)
