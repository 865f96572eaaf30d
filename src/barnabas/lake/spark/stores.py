"""What Spark needs to reach the address of a lake: a jar, and the settings of the server.

Its one rule: an S3 server is named by the environment variables that all of its clients read (AWS_ENDPOINT_URL, AWS_REGION), so
that Spark and the lake's own reading reach the same one. Credentials are not passed on: Hadoop's S3A reads the same variables.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DEFAULT_REGION: Final = "us-east-1"
"""What servers other than Amazon's take for any region."""

_S3A: Final = "spark.hadoop.fs.s3a"
_JARS: Final = {"s3a": "org.apache.hadoop:hadoop-aws:{hadoop}"}


class UnreachableError(RuntimeError):
    """Spark cannot reach the address of a lake. The text says what helps."""


def s3_endpoint(environment: Mapping[str, str] = os.environ) -> str:
    """Return the address of the S3 server of the environment, or nothing for Amazon's."""
    return environment.get("AWS_ENDPOINT_URL_S3") or environment.get("AWS_ENDPOINT_URL") or ""


def settings_of(environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return settings of Spark for the S3 server of the environment, if it names one.

    >>> settings_of({"AWS_ENDPOINT_URL": "http://minio:9000"})["spark.hadoop.fs.s3a.path.style.access"]
    'true'
    >>> settings_of({})
    {}
    """
    found = {}
    endpoint, region = s3_endpoint(environment), environment.get("AWS_REGION") or environment.get("AWS_DEFAULT_REGION")
    if endpoint:
        found[f"{_S3A}.endpoint"] = endpoint
        found[f"{_S3A}.path.style.access"] = "true"
        found[f"{_S3A}.connection.ssl.enabled"] = str(not endpoint.startswith("http:")).lower()
    if region or endpoint:
        found[f"{_S3A}.endpoint.region"] = region or DEFAULT_REGION
    return found


def check_reachable(spark: SparkSession, url: str) -> None:
    """Raise UnreachableError if Spark cannot read this address."""
    jvm, configuration = spark.sparkContext._jvm, spark.sparkContext._jsc.hadoopConfiguration()
    assert jvm is not None
    hadoop = jvm.org.apache.hadoop
    try:
        hadoop.fs.FileSystem.get(jvm.java.net.URI(url), configuration).exists(hadoop.fs.Path(url))
    except Exception as error:  # of py4j, which is Java's with its stack trace
        java = getattr(error, "java_exception", None)
        text = str(error) if java is None else str(java.toString())
        scheme = url.partition(":")[0]
        if "not found" in text or "No FileSystem for scheme" in text:
            jar = _JARS.get(scheme, "").format(hadoop=hadoop.util.VersionInfo.getVersion())
            wanted = f": --conf spark.jars.packages={jar}" if jar else ", in spark.jars or spark.jars.packages"
            raise UnreachableError(f"Spark has no jar for {scheme}://; give it one{wanted}") from None
        raise UnreachableError(f"Spark cannot reach {url}: {' '.join(text.split())[:500]}") from None
