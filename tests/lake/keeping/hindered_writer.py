"""Writes two batches into a lake, and gets a signal after a step of the second: the place, the step, SIGKILL or SIGSTOP.

Prints why it could not go on, and ends with 3.
"""

from __future__ import annotations

import os
import signal
import sys

from barnabas.lake.keeping.folders import LakeError
from barnabas.lake.keeping.store import Writer
from tests.lake.keeping.lake_writer import write_batch

LEASE_S = 2.0
"""How long its lease is."""


def main(place: str, last: str, number: signal.Signals) -> int:
    is_second = False

    def on_step(step: str) -> None:
        if is_second and step == last:
            os.kill(os.getpid(), number)

    try:
        with Writer(place, on_step=on_step, lease_s=LEASE_S) as writer:
            writer.open()
            write_batch(writer, 0)
            is_second = True
            write_batch(writer, 1)
            write_batch(writer, 2)
    except LakeError as error:
        print(error)
        return 3
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2], signal.Signals[sys.argv[3]]))
