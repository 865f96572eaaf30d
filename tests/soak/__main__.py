"""`python -m tests.soak --minutes 60 --seed 1`: exit code 1 if anything was lost, doubled, reordered or grew."""

from __future__ import annotations

import argparse
import json
import random
import shutil
import signal
import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.soak.programs import NAMES, commands
from tests.soak.soak import Plan, Soak


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--seed", type=int, default=None, help="what is sent and when kills come follows from it")
    parser.add_argument("--clients", nargs="+", choices=NAMES, default=NAMES, help="all by default")
    parser.add_argument("--json", type=Path, default=None, help="write the report to this file, too")
    arguments = parser.parse_args()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, interrupted)
    seed = random.randrange(1 << 31) if arguments.seed is None else arguments.seed
    say(f"{arguments.minutes:g} minutes with seed {seed}")
    directory = Path(tempfile.mkdtemp(prefix="barnabas-soak-"))
    is_kept = False
    try:
        found, missing = commands(arguments.clients, directory / "classes")
        for why in missing:
            say(why)
        say(f"clients: {', '.join(found)}")
        report = Soak(Plan(arguments.minutes, seed), found, directory, say).run()
        report["missing_clients"] = missing
        is_kept = bool(report["violations"])
    except Exception:  # not if it was interrupted
        is_kept = True
        raise
    finally:
        if is_kept:
            say(f"logs and data are kept in {directory}")
        else:
            shutil.rmtree(directory, ignore_errors=True)
    print("\n".join(text(report)))
    if arguments.json is not None:
        arguments.json.write_text(json.dumps(report, indent=1) + "\n")
    return 1 if report["violations"] else 0


def interrupted(*_: object) -> None:
    """End in order, so that nothing is left behind, and once."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    sys.exit("interrupted")


def say(line: str) -> None:
    print(line, flush=True)


def text(report: dict[str, Any]) -> list[str]:
    """The report, without the errors that clients could handle."""
    lines = [f"{'client':14}" + "".join(f"{name:>32}" for name in next(iter(report["clients"].values())))]
    lines += [
        f"{name:14}" + "".join(f"{each:>32,}" for each in row.values()) for name, row in report["clients"].items()
    ]
    for name, value in report.items():
        if name not in ("clients", "violations", "errors_of_clients"):
            shown = ", ".join(f"{a} {b}" for a, b in value.items()) if isinstance(value, dict) else value
            lines.append(f"{name.replace('_', ' ')}: {shown}")
    lines.append(f"errors that clients could handle: {sum(report['errors_of_clients'].values())}")
    lines += [f"VIOLATED: {each}" for each in report["violations"]] or ["nothing was violated"]
    return lines


if __name__ == "__main__":
    sys.exit(main())
