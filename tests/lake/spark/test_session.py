"""Sessions as the lake likes them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.lake.spark.session import FEW_ROWS, FOR_FEW_ROWS, for_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_for_few_rows_nothing_is_compiled_unless_the_caller_said_otherwise(spark: SparkSession) -> None:
    before = {name: str(spark.conf.get(name)) for name in FOR_FEW_ROWS}
    others = {"spark.sql.codegen.wholeStage": "true", "spark.sql.codegen.factoryMode": "FALLBACK"}
    for name, value in others.items():
        spark.conf.set(name, value)
    try:
        with for_rows(spark, FEW_ROWS - 1, given=["spark.sql.codegen.wholeStage"]):
            seen = {name: spark.conf.get(name) for name in others}
        with for_rows(spark, FEW_ROWS):
            assert {name: spark.conf.get(name) for name in others} == others
        assert seen == {**others, "spark.sql.codegen.factoryMode": "NO_CODEGEN"}
    finally:
        for name, value in before.items():
            spark.conf.set(name, value)
