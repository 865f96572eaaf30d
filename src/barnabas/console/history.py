"""The lake of a console: tables of a cluster's past, read by Spark in a thread of its own.

Its one rule: Spark starts with the first question, and questions are asked one after another. `barnabas.lake` is imported only
then, so that a console without a lake needs neither Spark nor Java.
"""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from barnabas.metadata.as_of import EVERYTHING, AsOf
from barnabas.operations.errors import OperationError

if TYPE_CHECKING:
    from barnabas.lake.asking.opened import OpenLake

MAX_ROWS = 500


@dataclass(frozen=True, slots=True)
class LakeTable:
    """A question to a lake: a table, the columns to show, and the order; `-` before a column is descending."""

    table: str
    title: str
    columns: tuple[str, ...]
    order: tuple[str, ...]
    has_moments: bool = False
    """Whether it is a state, which can be asked for as of a moment."""


TABLES = {
    "changes": LakeTable("changes", "Changes", ("time", "offset", "kind", "sentence"), ("-offset",)),
    "availability": LakeTable(
        "topic_availability",
        "Availability",
        ("topic_name", "partitions", "under_replicated_minutes", "offline_minutes", "below_min_isr_minutes", "is_over"),
        ("-offline_minutes", "-below_min_isr_minutes", "topic_name"),
    ),
    "incidents": LakeTable(
        "partition_trouble",
        "Incidents",
        ("topic_name", "partition", "began", "until", "minutes", "offline", "below_min_isr", "is_over"),
        ("-began",),
    ),
    "brokers": LakeTable(
        "broker_fences", "Brokers fenced", ("broker_id", "began", "until", "minutes", "cause", "is_over"), ("-began",)
    ),
    "topics": LakeTable(
        "topic_inventory",
        "Topics then",
        ("topic", "partitions", "replication_factor", "min_insync_replicas", "acl_entries", "created", "settings"),
        ("topic",),
        has_moments=True,
    ),
    "configs": LakeTable(
        "configs",
        "Settings then",
        ("resource_type", "resource_name", "name", "value", "valid_from_time"),
        ("resource_type", "resource_name", "name"),
        has_moments=True,
    ),
    "acls": LakeTable(
        "acls",
        "ACLs then",
        ("resource_type", "resource_name", "pattern_type", "principal", "host", "operation", "permission"),
        ("resource_type", "resource_name", "principal"),
        has_moments=True,
    ),
}


class LakeReader:
    """Reads one lake."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="lake")
        self._open = ExitStack()
        self._has_session = False

    async def rows(self, wanted: LakeTable, cluster_id: str, moment: AsOf = EVERYTHING) -> list[dict[str, Any]]:
        """Return the rows of a table for one cluster. Raises OperationError."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._rows, wanted, cluster_id, moment)

    def _rows(self, wanted: LakeTable, cluster_id: str, moment: AsOf) -> list[dict[str, Any]]:
        try:
            from pyspark.errors import PySparkException

            from barnabas.lake.asking.rows import plain_value
            from barnabas.lake.keeping.store import LakeError
            from barnabas.lake.spark.masters import MasterError
            from barnabas.lake.spark.session import JavaMissingError, SessionError
        except ModuleNotFoundError as error:
            raise OperationError(
                f"{error.name} is not installed, and the lake needs it", advice="pip install 'barnabas[lake]'"
            ) from error
        try:
            tables = self._tables()
            frame = tables.as_of(moment, cluster_id)[wanted.table] if wanted.has_moments else tables[wanted.table]
            frame = frame.where(frame["cluster_id"] == cluster_id)
            order = [frame[name.lstrip("-")].desc() if name.startswith("-") else frame[name] for name in wanted.order]
            names = [name for name in wanted.columns if name in frame.columns]
            found = frame.orderBy(*order).select(*names).limit(MAX_ROWS).collect()
            return [{name: plain_value(value) for name, value in zip(names, row, strict=True)} for row in found]
        except (LakeError, JavaMissingError, MasterError, SessionError, ValueError) as error:
            raise OperationError(str(error), resource=str(self._directory)) from error
        except PySparkException as error:
            raise OperationError(str(error).partition("\n")[0], resource=str(self._directory)) from error

    def _tables(self) -> OpenLake:
        """Return the tables of the lake's last commit."""
        from barnabas.lake.asking.opened import OpenLake
        from barnabas.lake.asking.sessions import lake_session
        from barnabas.lake.keeping.store import Lake

        found = Lake(self._directory)
        spark = self._open.enter_context(lake_session(self._directory, {})) if not self._has_session else None
        if spark is not None:
            self._has_session, self._spark = True, spark
        return OpenLake(self._spark, found)

    def close(self) -> None:
        """Stop Spark. A question that runs is ended with it."""
        self._thread.submit(self._open.close)
        self._thread.shutdown(wait=True, cancel_futures=False)
