"""Silver tables of the coordinators' logs: the histories of groups, their members and offsets, of transactions, and of the
positions of share groups.

Each row names its log, since offsets are those of a partition of the coordinator's topic.
"""

from __future__ import annotations

from barnabas.lake.facts import groups, share_partitions, transactions
from barnabas.lake.facts.schema import PLACE, Kind
from barnabas.lake.tables.declaration import Table
from barnabas.lake.tables.histories import declare

_CLUSTER, _, _LOG, _ = PLACE


def _declare(kind: Kind) -> Table:
    return declare(kind, (_CLUSTER, _LOG), [column.name for column in kind.keys])


GROUP_TABLES = tuple(_declare(kind) for kind in groups.KINDS)
TRANSACTION_TABLES = tuple(_declare(kind) for kind in transactions.KINDS)
SHARE_TABLES = tuple(_declare(kind) for kind in share_partitions.KINDS)
TABLES = (*GROUP_TABLES, *TRANSACTION_TABLES, *SHARE_TABLES)
