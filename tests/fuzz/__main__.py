"""python -m tests.fuzz [TARGET ...] [--seconds N] [--seed N] [--input HEX|@FILE] [--keep]

Runs the targets one after the other for so many seconds each, guided by coverage where atheris is installed, and prints
how many inputs were checked. A failure prints the line that repeats it. `--keep` adds what was found to the corpus, minimised.
The target `live` runs campaigns of requests against a node: `--requests` for each, and `--input @FILE` sends a file of them.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
import zlib
from importlib.util import find_spec
from pathlib import Path
from random import Random

from tests.fuzz.loop import pool_of, run, tried
from tests.fuzz.target import NAMES, Failure, keep, kept, load

LIVE = "live"
BATCH = 500
MAX_RSS_MB = 2048
MAX_SECONDS_PER_INPUT = 25
MAX_KEPT_BYTES = 2048
MAX_FIRST = 300  # inputs to begin with: each may be another message, whose reader is compiled and instrumented


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=", ".join(NAMES))
    parser.add_argument("--seconds", type=int, default=30, help="for each target")
    parser.add_argument("--seed", type=int, default=int.from_bytes(os.urandom(3)), help="of the mutations")
    parser.add_argument("--input", help="check only this input: hexadecimal digits, or @ and a file")
    parser.add_argument("--requests", type=int, default=3000, help="of each campaign of `live`")
    parser.add_argument(
        "--unsettling", action="store_true", help="`live`: also what fences brokers and moves the quorum"
    )
    parser.add_argument("--keep", action="store_true", help="add what covers more to the corpus")
    chosen = parser.parse_args()
    known = (*NAMES, LIVE)
    if unknown := {*chosen.targets} - {*known}:
        parser.error(f"there is no target {', '.join(sorted(unknown))}; there are {', '.join(known)}")
    names = chosen.targets or known
    if chosen.input is not None:
        if names[0] == LIVE:
            return _send_again(Path(chosen.input.removeprefix("@")))
        load(names[0]).check(_input(chosen.input))
        return 0
    failed = [name for name in names if not _fuzz(name, chosen)]
    return 1 if failed else 0


def _fuzz(name: str, chosen: argparse.Namespace) -> bool:
    if name == LIVE:
        return _live(chosen.seconds, chosen.seed, chosen.requests, unsettling=chosen.unsettling)
    fuzz = _guided if find_spec("atheris") else _unguided
    return fuzz(name, chosen.seconds, chosen.seed, chosen.keep)


def _live(seconds: int, seed: int, requests: int, *, unsettling: bool) -> bool:
    """Run campaigns until the time is over, at least one. For each finding, print the few requests that are enough."""
    from tests.fuzz.live import campaign  # noqa: PLC0415
    from tests.fuzz.live.again import Step, enough_for  # noqa: PLC0415

    end, is_good = time.monotonic() + seconds, True
    while is_good:
        with tempfile.TemporaryDirectory(dir=campaign.IN_MEMORY, prefix="fuzz-") as directory:
            report = campaign.run(seed, requests, Path(directory, "data"), unsettling=unsettling)
        print(f"{LIVE}: {report}", flush=True)
        is_good = not report.findings
        steps = [Step(*each) for each in report.sent_steps]
        for finding in report.findings.values():
            options = f"--seed {seed} --requests {requests}{' --unsettling' if unsettling else ''}"
            print(f"{finding.what}: again with: python -m tests.fuzz live {options}", flush=True)
            is_of_one = finding.what.startswith("log: ") or " answers " in finding.what
            enough = enough_for(finding.what, steps[: finding.number + 1]) if is_of_one else None
            if enough is not None:
                path = Path(tempfile.gettempdir(), f"live-{seed}-{zlib.crc32(finding.what.encode()):08x}.requests")
                path.write_text("".join(f"{step}\n" for step in enough))
                print(f"  {len(enough)} requests are enough: python -m tests.fuzz live --input @{path}", flush=True)
        seed += 1
        if time.monotonic() > end:
            break
    return is_good


def _send_again(path: Path) -> int:
    from tests.fuzz.live.again import read_steps, send_again  # noqa: PLC0415

    report = send_again(read_steps(path))
    print(report)
    return 1 if report.findings else 0


def _input(text: str) -> bytes:
    return Path(text[1:]).read_bytes() if text.startswith("@") else bytes.fromhex(text)


def _unguided(name: str, seconds: int, seed: int, keep_found: bool) -> bool:
    target = load(name)
    pool = pool_of(name, target)
    end, count, failure = time.monotonic() + seconds, 0, None
    while failure is None and time.monotonic() < end:
        failure = run(name, target, pool, seed + count, BATCH)
        count += BATCH
    return _report(name, count, seed, failure, "without coverage")


def _report(name: str, count: int, seed: int, failure: Failure | None, how: str) -> bool:
    print(f"{name}: {count:,} inputs {how}, seed {seed}: {'nothing found' if failure is None else failure}", flush=True)
    return failure is None


def _guided(name: str, seconds: int, seed: int, keep_found: bool) -> bool:
    target = load(name)
    with tempfile.TemporaryDirectory(prefix="fuzz-") as directory:
        found, artifacts = Path(directory, "found"), Path(directory, "artifacts")
        for path in (found, artifacts):
            path.mkdir()
        pool = pool_of(name, target)
        if len(pool) > MAX_FIRST:
            pool = Random(seed).sample(pool, MAX_FIRST)
        for number, data in enumerate(pool):
            (found / f"{number:06d}").write_bytes(data)
        options = (
            f"-max_total_time={seconds}",
            f"-seed={seed}",
            f"-rss_limit_mb={MAX_RSS_MB}",
            f"-timeout={MAX_SECONDS_PER_INPUT}",
            f"-max_len={4 * max(map(len, pool))}",
            f"-artifact_prefix={artifacts}/",
            "-print_final_stats=1",
        )
        done = _run(name, *options, str(found))
        count = sum(map(int, re.findall(r"stat::number_of_executed_units:\s*(\d+)", done.stderr)))
        covered = re.findall(r"\bcov: (\d+) ft: (\d+)", done.stderr)
        failure = _failure(name, artifacts, done)
        if keep_found and failure is None:
            _keep(name, found, pool)
        how = "guided by coverage" + (f" ({covered[-1][0]} edges, {covered[-1][1]} features)" if covered else "")
        return _report(name, count, seed, failure, how)


def _run(name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tests.fuzz.guided", name, *arguments]
    return subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)


def _failure(name: str, artifacts: Path, done: subprocess.CompletedProcess[str]) -> Failure | None:
    for path in sorted(artifacts.iterdir()):
        data = path.read_bytes()
        reason = RuntimeError(f"{path.name.partition('-')[0]} in libFuzzer: too slow, or too much memory")
        return tried(name, load(name), data) or Failure(name, data, reason)
    if done.returncode:
        return Failure(name, b"", RuntimeError(f"exit code {done.returncode}: {done.stderr[-500:]}"))
    return None


def _keep(name: str, found: Path, pool: list[bytes]) -> None:
    """Keep the inputs that cover what neither the seeds nor each other cover."""
    known = {*load(name).seeds()}
    with tempfile.TemporaryDirectory(prefix="fuzz-") as directory:
        for number, data in enumerate(known):
            Path(directory, f"seed-{number:06d}").write_bytes(data)
        _run(name, "-merge=1", f"-max_len={MAX_KEPT_BYTES}", directory, str(found))
        merged = [path.read_bytes() for path in Path(directory).iterdir()]
    keep(name, [*kept(name), *(data for data in merged if data not in known and len(data) <= MAX_KEPT_BYTES)])


if __name__ == "__main__":
    sys.exit(main())
