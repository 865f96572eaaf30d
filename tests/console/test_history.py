"""The questions of the console to a lake name tables and columns that a lake has. Spark is not started."""

from __future__ import annotations

import pytest

from barnabas.console.history import TABLES
from barnabas.lake.tables.all import TABLES as LAKE_TABLES


@pytest.mark.parametrize("name", TABLES)
def test_the_columns_of_a_question_exist(name: str) -> None:
    wanted = TABLES[name]
    known = {column.name for column in LAKE_TABLES[wanted.table].columns}
    assert {*wanted.columns, *(each.lstrip("-") for each in wanted.order)} <= known
