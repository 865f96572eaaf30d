"""Run several `barnabas` commands in one process until one fails, so that Spark starts only once:

python -m barnabas.cli.node.in_turn lake run data --then lake report
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from itertools import groupby

from barnabas.cli.main import main

THEN = "--then"


def run_in_turn(arguments: Sequence[str]) -> None:
    """Run the commands, and raise the SystemExit of the first one that fails."""
    for is_between, words in groupby(arguments, THEN.__eq__):
        if not is_between:
            try:
                main(list(words), prog_name="barnabas")
            except SystemExit as ended:
                if ended.code:
                    raise


if __name__ == "__main__":
    run_in_turn(sys.argv[1:])
