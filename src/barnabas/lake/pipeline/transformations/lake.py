"""The file that `spark-pipelines` loads: it declares all tables of the lake."""

from pyspark.sql import SparkSession

from barnabas.lake import pipeline

pipeline.declare(SparkSession.active())
