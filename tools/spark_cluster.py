"""A standalone Spark cluster on this machine: a master and workers, each a process of its own, for tests and the benchmark."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pyspark

HOST = "127.0.0.1"
SPARK_HOME = Path(pyspark.__path__[0])
SMALL_JVM = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Xss1m"
WORKERS = 2
START_TIMEOUT_S = 90.0


class SparkCluster(NamedTuple):
    master: str
    work_dirs: tuple[Path, ...]
    """Of the workers; each has a directory for each of its executors."""

    @property
    def settings(self) -> dict[str, str]:
        """What a driver says to run here."""
        return {
            "spark.master": self.master,
            "spark.executor.memory": "512m",
            "spark.executor.extraJavaOptions": SMALL_JVM,
            "spark.driver.host": HOST,
            "spark.driver.bindAddress": HOST,
        }

    def executors(self) -> list[list[Path]]:
        """For each worker, the directories of the executors that it has run."""
        return [sorted(each.glob("app-*/*")) for each in self.work_dirs]


def environment() -> dict[str, str]:
    """Of what is started here: this Python, and nobody's settings."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("SPARK_", "PYSPARK_"))}
    own = {
        "SPARK_HOME": str(SPARK_HOME),
        "SPARK_LOCAL_IP": HOST,
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_DAEMON_JAVA_OPTS": SMALL_JVM,
        "PYSPARK_PYTHON": sys.executable,
    }
    return {**inherited, **own}


@contextmanager
def spark_cluster(directory: Path, workers: int = WORKERS, memory: str = "1g") -> Iterator[SparkCluster]:
    processes: list[subprocess.Popen[bytes]] = []

    def start(name: str, main: str, *arguments: str) -> Path:
        log = directory / f"{name}.log"
        command = [str(SPARK_HOME / "bin" / "spark-class"), f"org.apache.spark.deploy.{main}", "--host", HOST]
        command += ["--port", "0", "--webui-port", "0", *arguments]
        with log.open("wb") as output:
            processes.append(subprocess.Popen(command, stdout=output, stderr=output, env=environment(), cwd=directory))
        return log

    try:
        log = start("master", "master.Master")
        master = _wait(log, "Starting Spark master at ").split()[0]
        work_dirs = tuple(directory / f"worker-{number}" for number in range(workers))
        logs = [
            start(each.name, "worker.Worker", "--cores", "1", "--memory", memory, "--work-dir", str(each), master)
            for each in work_dirs
        ]
        for each in logs:
            _wait(each, "Successfully registered with master ")
        yield SparkCluster(master, work_dirs)
    finally:
        for process in reversed(processes):
            process.terminate()
        for process in processes:
            process.wait(30)


def _wait(log: Path, text: str) -> str:
    """What the log says after this text."""
    deadline = time.monotonic() + START_TIMEOUT_S
    while time.monotonic() < deadline:
        said = log.read_text()
        if text in said:
            return said.partition(text)[2]
        time.sleep(0.1)
    raise TimeoutError(f"{log.name} does not say {text!r}:\n{log.read_text()[-2000:]}")
