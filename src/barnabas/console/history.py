"""The lake of a console: tables of a cluster's past, read in a thread of its own, and the report that was made of it.

Its one rule: questions are asked one after another, and Spark starts with the first that what is stored does not answer.
`barnabas.lake` is imported with the first, so that a console without a lake needs neither Spark nor Java.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from barnabas.metadata.as_of import EVERYTHING, AsOf
from barnabas.operations.errors import OperationError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from barnabas.lake.asking.selection import Answers, Found
    from barnabas.lake.keeping.store import Lake

T = TypeVar("T")
MAX_ROWS = 500
_JOBS = "barnabas-console"
_CANCEL_EVERY_S = 0.5
"""One question has many jobs."""
_WRITTEN_BY = "a lake is written by: barnabas lake run"
_NO_TROUBLE = "No partition was under-replicated, below its minimum of in-sync replicas, or offline."
HEADS = {
    "isr": "In sync",
    "elr": "Eligible leaders",
    "valid_from_time": "Since",
    "topic_name": "Topic",
    "under_replicated_minutes": "Minutes under-replicated",
    "offline_minutes": "Minutes offline",
    "below_min_isr_minutes": "Minutes below min ISR",
    "below_min_isr": "Below min ISR",
    "below_min_isr_partitions": "Partitions below min ISR",
    "offline_partitions": "Partitions offline",
    "min_insync_replicas": "Min ISR",
    "acl_entries": "ACLs",
    "is_over": "Has ended",
}
"""Heads of columns whose names do not say it well."""
DRIFT_COLUMNS = ("action", "kind", "name", "field", "before", "after")


@dataclass(frozen=True, slots=True)
class LakeTable:
    """A question to a lake: a table, the columns to show, and the order; `-` before a column is descending."""

    table: str
    title: str
    columns: tuple[str, ...]
    order: tuple[str, ...]
    has_moments: bool = False
    """Whether it is a state, which can be asked for as of a moment."""
    subject: str = ""
    """The column whose value a visitor may choose."""
    empty: str = "The lake has nothing to show here."
    """What it means that there is no row."""
    place: tuple[str, ...] = ()
    """Columns that say which record of the metadata log a row is about. They are not shown."""

    numbers = frozenset(
        (
            *(
                "offset",
                "partition",
                "partitions",
                "leader",
                "leader_epoch",
                "broker_id",
                "replication_factor",
                "min_insync_replicas",
            ),
            *("minutes", "under_replicated_minutes", "offline_minutes", "below_min_isr_minutes", "acl_entries"),
            *("offline_partitions", "below_min_isr_partitions"),
        )
    )
    """Columns with numbers."""
    texts = frozenset(
        (
            *("sentence", "settings", "value", "cause", "resource_name", "topic", "topic_name", "principal"),
            "stalled_groups",
        )
    )
    """Columns with texts that may be long."""


TABLES = {
    "changes": LakeTable(
        "changes",
        "All changes",
        ("time", "offset", "kind", "sentence"),
        ("-offset",),
        place=("offset", "epoch", "exact"),
    ),
    "availability": LakeTable(
        "topic_availability",
        "Availability",
        ("topic_name", "partitions", "under_replicated_minutes", "offline_minutes", "below_min_isr_minutes", "is_over"),
        ("-offline_minutes", "-below_min_isr_minutes", "topic_name"),
        subject="topic_name",
        empty=_NO_TROUBLE,
    ),
    "incidents": LakeTable(
        "incidents",
        "Incidents",
        (
            *("began", "until", "minutes", "brokers", "causes", "offline_partitions", "below_min_isr_partitions"),
            *("stalled_groups", "is_over"),
        ),
        ("-began",),
        empty="No broker was fenced, and no partition was offline or below its minimum of in-sync replicas.",
    ),
    "trouble": LakeTable(
        "partition_trouble",
        "Partitions in trouble",
        ("topic_name", "partition", "began", "until", "minutes", "offline", "below_min_isr", "is_over"),
        ("-began",),
        subject="topic_name",
        empty=_NO_TROUBLE,
    ),
    "brokers": LakeTable(
        "broker_fences",
        "Brokers fenced",
        ("broker_id", "began", "until", "minutes", "cause", "is_over"),
        ("-began",),
        empty="No broker was fenced.",
    ),
    "topics": LakeTable(
        "topic_inventory",
        "Past topics",
        ("topic", "partitions", "replication_factor", "min_insync_replicas", "acl_entries", "created", "settings"),
        ("topic",),
        has_moments=True,
        subject="topic",
    ),
    "partitions": LakeTable(
        "partitions",
        "Past partitions",
        ("topic_name", "partition", "leader", "replicas", "isr", "elr", "leader_epoch", "valid_from_time"),
        ("topic_name", "partition"),
        has_moments=True,
        subject="topic_name",
    ),
    "configs": LakeTable(
        "configs",
        "Past settings",
        ("resource_type", "resource_name", "name", "value", "valid_from_time"),
        ("resource_type", "resource_name", "name"),
        has_moments=True,
        subject="resource_name",
    ),
    "acls": LakeTable(
        "acls",
        "Past ACLs",
        ("resource_type", "resource_name", "pattern_type", "principal", "host", "operation", "permission"),
        ("resource_type", "resource_name", "principal"),
        has_moments=True,
        subject="principal",
    ),
}


class LakeReader:
    """Reads one lake."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="lake")
        self._open = ExitStack()
        self._spark: SparkSession | None = None
        self._asked: set[Future[Any]] = set()
        """The question that runs, and those that wait."""
        self._stage: tuple[str, float] | None = None
        """What is under way, and since when on the monotonic clock."""

    @property
    def progress(self) -> str:
        """What is under way, in words."""
        if (stage := self._stage) is None:
            return "The lake is read."
        what, since_s = stage
        return f"{what}. This has taken {time.monotonic() - since_s:,.0f} s so far; one question is answered after another."

    @contextmanager
    def _under_way(self, what: str) -> Iterator[None]:
        self._stage = (what, time.monotonic())
        try:
            yield
        finally:
            self._stage = None

    async def rows(
        self, wanted: LakeTable, cluster_id: str, moment: AsOf = EVERYTHING, subject: str = ""
    ) -> list[dict[str, Any]]:
        """Return the rows of a table for one cluster, or those about one subject. Raises OperationError."""
        state = moment if wanted.has_moments else None

        def ask(answers: Answers) -> list[dict[str, Any]]:
            from barnabas.lake.asking.selection import Condition, Selection

            conditions = (Condition(wanted.subject, "=", subject),) if subject else ()
            selection = Selection(wanted.table, conditions, wanted.order)
            rows = _shown(wanted, answers.select(selection, state, cluster_id, MAX_ROWS))
            if not rows and state in (None, EVERYTHING) and not answers.places(EVERYTHING, cluster_id):
                raise OperationError("the lake has no data of this cluster", advice=_WRITTEN_BY)
            return rows

        return await self._run(lambda: self._answered((wanted.table,), state or EVERYTHING, ask))

    async def drift(self, files: Sequence[Path], cluster_id: str, moment: AsOf = EVERYTHING) -> list[dict[str, Any]]:
        """Return how the cluster differed from the files that declare it. Raises OperationError, DocumentError."""

        def compared() -> list[dict[str, Any]]:
            from barnabas.declared.difference import difference
            from barnabas.declared.files import load_documents
            from barnabas.lake.asking.declaring import TABLES as NEEDED
            from barnabas.lake.asking.declaring import observed
            from barnabas.lake.asking.selection import Selection, as_dicts

            document = load_documents([str(each) for each in files], StringIO())

            def ask(answers: Answers) -> list[dict[str, Any]]:
                if not answers.places(moment, cluster_id):
                    raise OperationError("the lake has no data of this cluster from before this moment")
                rows = {name: as_dicts(answers.select(Selection(name), moment, cluster_id)) for name in NEEDED}
                found = difference(document, observed(rows))
                if found.problems:
                    raise OperationError("; ".join(map(str, found.problems)))
                return list(found.rows())

            return self._answered(NEEDED, moment, ask)

        return await self._run(compared)

    async def clusters(self) -> list[str]:
        """Return the ids of all clusters of the lake. Raises OperationError."""
        return await self._run(
            lambda: self._answered((), EVERYTHING, lambda answers: sorted({each[0] for each in answers.places()}))
        )

    async def _run(self, ask: Callable[[], T]) -> T:
        asked = self._thread.submit(ask)
        self._asked.add(asked)
        asked.add_done_callback(self._asked.discard)
        return await asyncio.wrap_future(asked)

    def _answered(self, tables: Iterable[str], moment: AsOf, ask: Callable[[Answers], T]) -> T:
        """Ask what is stored of these tables, or Spark."""
        try:
            from barnabas.lake.asking.stored import StoredLake
            from barnabas.lake.keeping.folders import LakeError
            from barnabas.lake.keeping.manifest import NotStoredError
            from barnabas.lake.keeping.store import Lake

            try:
                lake = Lake(self._directory)
                try:
                    with StoredLake(lake) as stored:
                        stored.check(tables, moment)
                        return ask(stored)
                except NotStoredError as error:
                    return self._computed(lake, ask, str(error))
            except LakeError as error:
                raise OperationError(str(error), advice=_WRITTEN_BY) from error
            except ValueError as error:
                raise OperationError(str(error)) from error
        except ModuleNotFoundError as error:
            raise OperationError(
                f"{error.name} is not installed, and the lake needs it", advice="pip install 'barnabas[lake]'"
            ) from error

    def _computed(self, lake: Lake, ask: Callable[[Answers], T], why: str) -> T:
        """Ask Spark, which starts with the first such question."""
        from pyspark.errors import PySparkException

        from barnabas.lake.asking.frames import FrameAnswers
        from barnabas.lake.asking.opened import OpenLake
        from barnabas.lake.asking.sessions import lake_session
        from barnabas.lake.spark.masters import MasterError
        from barnabas.lake.spark.session import JavaMissingError, SessionError

        try:
            if self._spark is None:
                with self._under_way(f"Spark is starting, because {why}"):
                    self._spark = self._open.enter_context(lake_session(self._directory, {}))
            self._spark.sparkContext.setJobGroup(_JOBS, "questions of the console")
            with self._under_way(f"Spark is reading the lake, because {why}"):
                return ask(FrameAnswers(OpenLake(self._spark, lake)))
        except (JavaMissingError, MasterError, SessionError) as error:
            raise OperationError(str(error), resource=str(self._directory)) from error
        except PySparkException as error:
            raise OperationError(str(error).partition("\n")[0], resource=str(self._directory)) from error

    def close(self) -> None:
        """Stop Spark. Questions that wait are dropped, and the one that runs is cancelled."""
        self._thread.shutdown(wait=False, cancel_futures=True)
        while running := set(self._asked):
            if self._spark is not None:
                with suppress(Exception):  # it ends by itself at the same time
                    self._spark.sparkContext.cancelJobGroup(_JOBS)
            wait(running, _CANCEL_EVERY_S)
        self._open.close()


def _shown(wanted: LakeTable, found: Found) -> list[dict[str, Any]]:
    from barnabas.lake.asking.rows import plain_value

    names = dict.fromkeys((*wanted.columns, *wanted.place))
    places = [(name, found.names.index(name)) for name in names if name in found.names]
    return [{name: plain_value(row[place]) for name, place in places} for row in found.rows]


# --- the report


class Report:
    """The directory that `barnabas lake report` has written: a page, and files with all rows of its tables.

    Its one rule: only files of it are given out, and its page runs no script but the report's own, in an origin of its own.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    @property
    def written_s(self) -> float | None:
        """When the page was written, in seconds since 1970; None if it is not there."""
        try:
            return self.file("index.html").stat().st_mtime
        except OSError:
            return None

    def file(self, name: str) -> Path:
        """Return a file of the report. Raises FileNotFoundError, also for what is outside."""
        root = self._directory.resolve()
        found = (root / name).resolve()
        if not found.is_relative_to(root) or not found.is_file():
            raise FileNotFoundError(name)
        return found

    @staticmethod
    def policy() -> str:
        """Return the content security policy of the page."""
        from barnabas.lake.report.page import policy

        return f"sandbox allow-scripts allow-downloads; {policy()}; frame-ancestors 'none'"
