"""Silver of the metadata log: topics, partitions, configs and all else that it knows; what was true, and from when to when.

As of an offset X at which a batch ends: the rows with `valid_from_offset` <= X and `valid_to_offset` null or > X.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from barnabas.lake.facts import metadata_kinds
from barnabas.lake.facts.schema import PLACE, VALIDITY, Kind
from barnabas.lake.tables.declaration import Mode, Reference, Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_CLUSTER: Final = PLACE[0]


def build(kind: Kind, facts: DataFrame) -> DataFrame:
    """The facts of a kind, as rows of its table."""
    of_kind = facts.where(facts["kind"] == kind.name)
    values = (of_kind[kind.name][column.name].alias(column.name) for column in kind.columns)
    return of_kind.select(_CLUSTER.name, *values, *(column.name for column in VALIDITY))


_MAY_BE_NULL: Final = {"rack", "cordoned_log_dirs"}
_REFERENCES: Final = {
    "partitions": (Reference(("cluster_id", "topic_id"), "topics", ("cluster_id", "topic_id")),),
}


def declare(kind: Kind) -> Table:
    """The silver table of a kind."""
    keys = tuple(column.name for column in kind.keys)
    values = tuple(column.name for column in kind.columns if column.name not in _MAY_BE_NULL)
    return Table(
        name=kind.name,
        layer="silver",
        question=kind.question,
        columns=(_CLUSTER, *kind.columns, *VALIDITY),
        inputs=("facts",),
        build=partial(build, kind),
        mode=Mode.HISTORY,
        keys=(_CLUSTER.name, *keys, "valid_from_offset"),
        not_null=(_CLUSTER.name, *values, "valid_from_offset", "exact"),
        references=_REFERENCES.get(kind.name, ()),
    )


TABLES: Final = tuple(declare(kind) for kind in metadata_kinds.KINDS)
