"""Silver tables of the metadata log: the histories of topics, partitions, configs and all its other facts.

The state as of an offset X at which a batch ends: the rows with `valid_from_offset` <= X and `valid_to_offset` null or > X.
"""

from __future__ import annotations

from typing import Final

from barnabas.lake.facts import metadata_kinds
from barnabas.lake.facts.schema import PLACE, Kind
from barnabas.lake.tables.declaration import Reference, Table
from barnabas.lake.tables.histories import declare
from barnabas.storage.log_dirs import CLUSTER_METADATA

_CLUSTER: Final = PLACE[0]
_MAY_BE_NULL: Final = {"rack", "cordoned_log_dirs"}
_REFERENCES: Final = {
    "partitions": (Reference(("cluster_id", "topic_id"), "topics", ("cluster_id", "topic_id")),),
}


def _declare(kind: Kind) -> Table:
    not_null = [column.name for column in kind.columns if column.name not in _MAY_BE_NULL]
    return declare(kind, (_CLUSTER,), not_null, _REFERENCES.get(kind.name, ()), str(CLUSTER_METADATA))


TABLES: Final = tuple(_declare(kind) for kind in metadata_kinds.KINDS)
