"""Runs the words of a file into a lake, with a session of its own, and is killed when the first manifest has its name.

Run as a process of its own: the lake, the file.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

from barnabas.lake.keeping.runner import Runner
from barnabas.lake.keeping.store import Writer
from barnabas.lake.spark.quiet import start_quietly
from tests.lake.few_rows import FEW_ROWS
from tests.lake.keeping.words import Words, feed


def main(directory: Path, source: Path) -> None:
    def on_step(step: str) -> None:
        if step == "manifest named":
            os.kill(os.getpid(), signal.SIGKILL)

    spark = start_quietly(directory / "log", {**FEW_ROWS, "spark.master": "local[1]"})
    spark.dataSource.register(Words)
    with Writer(directory, on_step=on_step) as writer:
        Runner(spark, writer.open()).run([feed(source)])


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
