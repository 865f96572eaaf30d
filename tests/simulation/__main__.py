"""`python -m tests.simulation --seeds 100`: exit code 1 if anything was violated. `--seed S` replays one, with its trace."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from tests.simulation.mutations import MUTATIONS
from tests.simulation.plan import Kind
from tests.simulation.runner import Job, run_job, run_jobs, shrink
from tests.simulation.scenario import Result, Settings

HASH = "PYTHONHASHSEED"
MAX_SHOWN = 5
TOLD = 10  # runs between two lines about the progress
REPEATED = 25  # one of so many seeds is run twice, and must be the same
COUNTED = 25, 12  # one of so many seeds, those with this rest, is run again with turns of the event loop counted


def main() -> int:
    options = parse()
    only = Kind[options.only.upper()] if options.only else None
    if options.plant and only is None:
        only = MUTATIONS[options.plant].only
    counts_turns = options.count_turns or bool(options.plant and MUTATIONS[options.plant].counts_turns)
    settings = Settings(options.nodes, options.duration, options.seed is not None, only, counts_turns)
    seeds = [options.seed] if options.seed is not None else range(options.first, options.first + options.seeds)
    plant = MUTATIONS[options.plant].plant if options.plant else None
    jobs = [Job(seed, settings, plant=plant) for seed in seeds]
    if options.seed is None:
        jobs += [*(job for job in jobs if job.seed % REPEATED == 0), *_counted(jobs)]
    began_s, virtual_s, digests, failed = time.monotonic(), 0.0, dict[int, str](), list[Result]()
    totals: dict[str, int] = {}
    runs = 0
    for count, result in enumerate(run_jobs(jobs, options.jobs), 1):
        runs, virtual_s = count, virtual_s + result.virtual_s
        for name, number in result.counts.items():
            totals[name] = totals.get(name, 0) + number
        if not result.is_counted and digests.setdefault(result.seed, result.digest) != result.digest:
            result.violations.append(f"two runs of seed {result.seed} differ")
        if count % TOLD == 0:
            print(f"{count} of {len(jobs)} runs, {len(failed)} failed", file=sys.stderr, flush=True)
        if result.violations:
            failed.append(result)
            show(result, options)
            if options.stop:
                break
        elif options.seed is not None:
            print(f"seed {result.seed}: nothing violated; digest {result.digest}")
    took_s = time.monotonic() - began_s
    print(
        f"{runs} runs of {options.nodes} nodes, {len(failed)} failed, {virtual_s / 3600:.2f} virtual hours "
        f"in {took_s:.0f} s: {', '.join(f'{count} {name}' for name, count in sorted(totals.items()))}"
    )
    if options.seed is not None:
        write_trace(run_job(jobs[0]) if not failed else failed[0], options.trace)
    if failed and options.shrink:
        same = (each for each in jobs if each.settings.counts_turns == failed[0].is_counted)
        job = next(each for each in same if each.seed == failed[0].seed)
        smallest = shrink(job, failed[0])
        print(f"shrunk to {len(smallest.plan)} faults:")
        show(smallest, options)
        write_trace(
            run_job(job._replace(plan=smallest.plan, settings=settings._replace(keeps_trace=True))), options.trace
        )
    return 1 if failed else 0


def _counted(jobs: Sequence[Job]) -> list[Job]:
    divisor, rest = COUNTED
    counted = [job for job in jobs if job.seed % divisor == rest and not job.settings.counts_turns]
    return [job._replace(settings=job.settings._replace(counts_turns=True)) for job in counted]


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("--seeds", type=int, default=100, help="number of seeds to run (default: 100)")
    parser.add_argument("--first", type=int, default=1, help="the first of them (default: 1)")
    parser.add_argument("--seed", type=int, help="run only this one, and write its trace")
    parser.add_argument("--nodes", type=int, default=3, help="number of nodes (default: 3)")
    parser.add_argument("--duration", type=float, default=20.0, help="virtual seconds with faults (default: 20)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="runs at once (default: one per CPU)")
    parser.add_argument("--stop", action="store_true", help="stop at the first seed that fails")
    parser.add_argument("--shrink", action="store_true", help="leave out faults of the first failing plan")
    parser.add_argument("--plant", choices=sorted(MUTATIONS), help="plant a bug, to see that it is found")
    parser.add_argument("--count-turns", action="store_true", help="check how much is done in a turn of the event loop")
    kinds = [kind.name.lower() for kind in Kind]
    parser.add_argument("--only", choices=kinds, help="draw faults of one kind alone")
    parser.add_argument("--trace", type=Path, default=Path("simulation.trace"), help="where to write a trace")
    return parser.parse_args()


def show(result: Result, options: argparse.Namespace) -> None:
    print(f"seed {result.seed}: {len(result.violations)} violated, replay with")
    planted = f" --plant {options.plant}" if options.plant else ""
    planted += f" --only {options.only}" if options.only else ""
    planted += " --count-turns" if result.is_counted else ""
    print(
        f"  python -m tests.simulation --seed {result.seed} --nodes {options.nodes} --duration {options.duration}{planted}"
    )
    for what in result.violations[:MAX_SHOWN]:
        first, *_, last = [*what.splitlines(), ""]
        print(f"  {first[:400]}{' ... ' + last[:200] if last else ''}")
    if options.shrink or options.seed is not None:
        for fault in result.plan:
            print(f"    {fault}")
    sys.stdout.flush()


def write_trace(result: Result, path: Path) -> None:
    path.write_text("\n".join(result.trace) + "\n")
    print(f"{path}: the last {len(result.trace)} events")


if __name__ == "__main__":
    if HASH not in os.environ:  # the order of sets and maps of texts
        os.execve(sys.executable, [sys.executable, "-m", "tests.simulation", *sys.argv[1:]], {**os.environ, HASH: "0"})
    sys.exit(main())
