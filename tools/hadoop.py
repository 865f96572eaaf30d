"""Jars of Hadoop from Maven, of the version that Spark includes: for Spark on S3, and a small HDFS for the interop tests.

The one rule is that of apache_kafka: nothing is installed and nothing is left behind.
"""

from __future__ import annotations

import subprocess
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import Self

from tools.apache_kafka import HOST, SMALL_JVM, Missing, NotStarted, free_ports, maven_jars

VERSION = "3.5.0"
AWS_SDK = "2.35.4"
"""The version that hadoop-aws names. Its bundle of all services has 690 MB; these modules are what S3A uses."""
AWS_MODULES = ("s3", "s3-transfer-manager", "sts", "apache-client", "netty-nio-client")
ACCELERATOR = ("software.amazon.s3.analyticsaccelerator", "analyticsaccelerator-s3", "1.3.1")

_HADOOP = "org.apache.hadoop"


def s3a_jars() -> str:
    """Return what Spark needs for s3a://, in the form of `spark.jars`."""
    modules = [("software.amazon.awssdk", name, AWS_SDK) for name in AWS_MODULES]
    folder = maven_jars(f"hadoop-aws-{VERSION}", modules, alone=[(_HADOOP, "hadoop-aws", VERSION), ACCELERATOR])
    return ",".join(map(str, sorted(folder.glob("*.jar"))))


class Hdfs:
    """A name node and a data node in one process; a context manager. `address` is hdfs://HOST:PORT."""

    def __init__(self) -> None:
        self._work = tempfile.TemporaryDirectory(prefix="hdfs-")
        (port,) = free_ports(1)
        self.address = f"hdfs://{HOST}:{port}"
        cluster = maven_jars(
            f"hadoop-minicluster-{VERSION}", [], alone=[(_HADOOP, "hadoop-client-minicluster", VERSION)]
        )
        told = Path(self._work.name) / "details.json"
        command = ["java", *SMALL_JVM, "-cp", f"{cluster}/*:{_spark_jars()}/*", f"{_HADOOP}.test.MiniDFSClusterManager"]
        command += ["-format", "-datanodes", "1", "-nnport", str(port), "-writeDetails", str(told)]
        command += ["-D", "dfs.replication=1", "-D", "dfs.permissions.enabled=false"]
        command += ["-D", f"hdfs.minidfs.basedir={self._work.name}/dfs"]
        self.log = Path(self._work.name) / "log"
        with self.log.open("wb") as log:
            self._process = subprocess.Popen(command, cwd=self._work.name, stdout=log, stderr=log)
        try:
            self._wait(told)
        except BaseException:
            self.stop()
            raise

    def _wait(self, told: Path) -> None:
        for _ in range(1200):
            if self._process.poll() is not None:
                raise NotStarted(f"HDFS ended:\n{self.log.read_text()[-3000:]}")
            if told.exists():
                return
            time.sleep(0.5)
        raise NotStarted(f"HDFS did not start:\n{self.log.read_text()[-3000:]}")

    def stop(self) -> None:
        self._process.kill()
        self._process.wait()
        self._work.cleanup()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


def _spark_jars() -> Path:
    """Return the folder of Spark's jars, which has Hadoop's client of the same version."""
    found = find_spec("pyspark")
    if found is None or found.origin is None:
        raise Missing("pyspark is missing: pip install 'barnabas[lake]'")
    return Path(found.origin).parent / "jars"
