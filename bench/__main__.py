"""`python -m bench [SECTION ...] [--check]`: run the sections, print one table, keep it in results/latest.json.

Without names, all sections run except those that take very long: `stalls` (see `bench.stalls`).
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

from tools.apache_kafka import Missing, NotStarted

from bench import admin, cli, clients, codec, group_members, log, server, share
from bench.table import Row, render, write_json


def _lake() -> list[Row]:
    from bench import lake  # Spark and Arrow, which the other sections do without

    return lake.run()


def _lake_change() -> list[Row]:
    from bench import lake_change

    return lake_change.run()


def _lake_executors() -> list[Row]:
    from bench import lake_executors

    return lake_executors.run()


def _lake_scale() -> list[Row]:
    from bench import lake_scale

    return lake_scale.run()


def _console() -> list[Row]:
    from bench import console  # needs the extra `console`

    return console.run()


def _stalls() -> list[Row]:
    from bench import stalls

    return stalls.run(int(os.environ.get("BENCH_STALLS_ROUNDS", stalls.ROUNDS)))


def _cluster() -> list[Row]:
    from bench import cluster  # six nodes

    return cluster.run()


def _control_plane() -> list[Row]:
    from bench import control_plane

    return control_plane.run()


def _security() -> list[Row]:
    from bench import security, security_traffic  # needs the extra `security`

    return security.run() + security_traffic.run()


def _share() -> list[Row]:
    return share.run() + group_members.run()


SECTIONS: dict[str, Callable[[], list[Row]]] = {
    "codec": codec.run,
    "server": server.run,
    "admin": admin.run,
    "log": log.run,
    "cli": cli.run,
    "clients": clients.run,
    "share": _share,
    "security": _security,
    "cluster": _cluster,
    "control-plane": _control_plane,
    "lake": _lake,
    "lake-scale": _lake_scale,
    "lake-change": _lake_change,
    "lake-executors": _lake_executors,
    "console": _console,
    "stalls": _stalls,
}
ONLY_BY_NAME = {"stalls"}
HELP = f"{', '.join(SECTIONS)}; by default all except {', '.join(ONLY_BY_NAME)}"
RESULTS = Path(__file__).resolve().parent / "results" / "latest.json"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench", description=sys.modules["bench"].__doc__)
    parser.add_argument("sections", nargs="*", metavar="SECTION", help=HELP)
    parser.add_argument("--check", action="store_true", help="exit with 1 when a target is missed or a section failed")
    arguments = parser.parse_args()
    unknown = set(arguments.sections) - set(SECTIONS)
    if unknown:
        parser.error(f"no section is called {', '.join(sorted(unknown))}")
    rows: list[Row] = []
    notes: list[str] = []
    for name in arguments.sections or [each for each in SECTIONS if each not in ONLY_BY_NAME]:
        started = time.monotonic()
        print(f"{name} ...", file=sys.stderr, flush=True)
        try:
            rows += SECTIONS[name]()
        except (Missing, NotStarted) as error:
            notes.append(f"{name} was not measured: {error}")
        print(f"{name} took {time.monotonic() - started:.0f} s", file=sys.stderr, flush=True)
    print(render(rows))
    for note in notes:
        print(f"\n{note}")
    write_json(RESULTS, rows, notes)
    missed = [row for row in rows if row.ok is False]
    print(f"\n{len(missed)} of {sum(row.ok is not None for row in rows)} targets missed")
    return 1 if arguments.check and (missed or notes) else 0


if __name__ == "__main__":
    sys.exit(main())
