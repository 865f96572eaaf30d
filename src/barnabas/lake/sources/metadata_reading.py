"""`kafka_metadata` in batch: its reader, and the filters that narrow what is read.

Its one rule: only what no filter would pass is pruned. Options and pushed-down filters narrow what is read; Spark applies its
filters again to the rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import (
    DataSourceReader,
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    InputPartition,
    LessThan,
    LessThanOrEqual,
)

from barnabas.lake.reading.metadata_options import MetadataOptions
from barnabas.lake.reading.metadata_parts import FilePart, observe, parts_of, plan, read_part, wanted_of
from barnabas.lake.reading.metadata_rows import RowFormat, Wanted
from barnabas.lake.reading.options import to_ms
from barnabas.lake.sources.filters import PushFilters

if TYPE_CHECKING:
    from pyarrow import RecordBatch
    from pyspark.sql.types import StructType

    from barnabas.lake.reading.metadata_live import LivePiece


class MetadataReader(DataSourceReader):
    def __init__(self, options: MetadataOptions, schema: StructType) -> None:
        self._options = options
        self._format = row_format(schema, options)
        self._wanted = wanted_of(options)
        if options.push_filters:
            self.pushFilters = PushFilters(self._take)  # type: ignore[method-assign]

    def _take(self, filters: list[Filter]) -> None:
        for each in filters:
            self._wanted = narrow(self._wanted, each)

    def partitions(self) -> Sequence[InputPartition]:
        if self._options.is_live:
            from barnabas.lake.reading.metadata_live import plan_live

            return tasks_of(plan_live(self._options, self._wanted))
        pieces = [piece for each in observe(self._options) for piece in plan(each, self._wanted)]
        # For an empty list Spark makes one partition that is None.
        return tasks_of(parts_of(pieces, self._wanted) or [None])

    def read(self, partition: InputPartition) -> Iterator[RecordBatch]:
        return read_task(partition, self._options, self._format)


def tasks_of(parts: Iterable[FilePart | LivePiece | None]) -> list[InputPartition]:
    """Return one task for each part."""
    return [InputPartition(part) for part in parts]


def read_task(partition: InputPartition | None, options: MetadataOptions, form: RowFormat) -> Iterator[RecordBatch]:
    """Yield the rows of a task. Spark passes None if nothing was planned."""
    return read_part(None if partition is None else partition.value, options, form)


def row_format(schema: StructType, options: MetadataOptions) -> RowFormat:
    """Return the format of rows with this schema. Raises ValueError for a type that no column has."""
    columns = [(each.name, each.dataType.simpleString(), each.nullable) for each in schema.fields]
    return RowFormat.of(
        columns, include_secrets=options.include_secrets, fail_fast=options.fail_fast, to_variant=to_variant
    )


def to_variant(text: str) -> dict[str, bytes]:
    """Convert a JSON text to a value of Spark's type variant."""
    from pyspark.sql.types import VariantVal

    parsed = VariantVal.parseJson(text)
    return {"value": parsed.value, "metadata": parsed.metadata}


# Filters


def narrow(wanted: Wanted, given: Filter) -> Wanted:
    """Return what is wanted when this filter holds too; unchanged if the filter cannot be used."""
    attribute: tuple[str, ...] = getattr(given, "attribute", ())
    name = attribute[0] if len(attribute) == 1 else None
    match given:
        case EqualTo(value=value) | EqualNullSafe(value=value) if value is not None:
            return _within(wanted, name, [value])
        case In(value=values):
            return _within(wanted, name, [value for value in values if value is not None])
        case GreaterThan(value=value) if _is_known(name, value):
            return _from(wanted, name, value, 1)
        case GreaterThanOrEqual(value=value) if _is_known(name, value):
            return _from(wanted, name, value, 0)
        case LessThan(value=value) if _is_known(name, value):
            return _before(wanted, name, value, 0)
        case LessThanOrEqual(value=value) if _is_known(name, value):
            return _before(wanted, name, value, 1)
    return wanted


def _is_known(name: str | None, value: Any) -> bool:
    return (name == "offset" and isinstance(value, int)) or (name == "append_time" and isinstance(value, datetime))


def _within(wanted: Wanted, name: str | None, values: list[Any]) -> Wanted:
    match name:
        case "record_type":
            found = frozenset(values)
            return replace(wanted, types=found if wanted.types is None else wanted.types & found)
        case "node_id":
            nodes = frozenset(values)
            return replace(wanted, node_ids=nodes if wanted.node_ids is None else wanted.node_ids & nodes)
        case "is_snapshot" if len(values) == 1:
            return replace(wanted, snapshots=bool(values[0]))
        case "offset" | "append_time" if values and all(_is_known(name, value) for value in values):
            return _before(_from(wanted, name, min(values), 0), name, max(values), 1)
    return wanted


def _from(wanted: Wanted, name: str | None, value: Any, more: int) -> Wanted:
    if name == "offset":  # rows of snapshots have none
        return replace(wanted, start=max(wanted.start, value + more), snapshots=False)
    start = to_ms(value)
    return replace(wanted, time_start_ms=max(wanted.time_start_ms or start, start))


def _before(wanted: Wanted, name: str | None, value: Any, more: int) -> Wanted:
    if name == "offset":
        end = value + more
        return replace(wanted, end=end if wanted.end is None else min(wanted.end, end), snapshots=False)
    end = to_ms(value) + 1  # the value may have microseconds; Spark filters again
    return replace(wanted, time_end_ms=end if wanted.time_end_ms is None else min(wanted.time_end_ms, end))
