"""Runs a metadata log into a lake at an address, and is killed after a step: the lake, the log dir, the step, Spark's jars."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

from barnabas.lake.keeping.feeds import find_feeds
from barnabas.lake.keeping.runner import Runner
from barnabas.lake.keeping.store import Writer
from barnabas.lake.spark.session import start
from barnabas.lake.tables.all import STREAMS
from tests.lake.few_rows import FEW_ROWS


def main(place: str, log_dir: Path, last: str, jars: str) -> None:
    from barnabas import lake

    def on_step(step: str) -> None:
        if step == last:
            os.kill(os.getpid(), signal.SIGKILL)

    spark = start({**FEW_ROWS, "spark.master": "local[1]", "spark.jars": jars})
    lake.register(spark)
    with Writer(place, on_step=on_step, lease_s=10) as writer:
        Runner(spark, writer.open()).run(find_feeds([log_dir], STREAMS, {}))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), sys.argv[3], sys.argv[4])
