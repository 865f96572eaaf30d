"""Silver of the coordinators' logs: groups, their members and offsets, and transactions; what was true of each, and when.

Each row has the log that says so, as offsets are those of a partition of `__consumer_offsets` or `__transaction_state`.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from barnabas.lake.facts import groups, transactions
from barnabas.lake.facts.schema import PLACE, VALIDITY, Kind
from barnabas.lake.tables.declaration import Mode, Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_CLUSTER, _, _LOG, _ = PLACE


def build(kind: Kind, facts: DataFrame) -> DataFrame:
    """The facts of a kind, as rows of its table."""
    of_kind = facts.where(facts["kind"] == kind.name)
    values = (of_kind[kind.name][column.name].alias(column.name) for column in kind.columns)
    return of_kind.select(_CLUSTER.name, _LOG.name, *values, *(column.name for column in VALIDITY))


def declare(kind: Kind) -> Table:
    """The silver table of a kind."""
    keys = tuple(column.name for column in kind.keys)
    return Table(
        name=kind.name,
        layer="silver",
        question=kind.question,
        columns=(_CLUSTER, _LOG, *kind.columns, *VALIDITY),
        inputs=("facts",),
        build=partial(build, kind),
        mode=Mode.HISTORY,
        keys=(_CLUSTER.name, _LOG.name, *keys, "valid_from_offset"),
        not_null=(_CLUSTER.name, _LOG.name, *keys, "valid_from_offset", "exact"),
    )


GROUP_TABLES = tuple(declare(kind) for kind in groups.KINDS)
TRANSACTION_TABLES = tuple(declare(kind) for kind in transactions.KINDS)
TABLES = (*GROUP_TABLES, *TRANSACTION_TABLES)
