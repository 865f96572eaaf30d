"""Memory, descriptors and disk of the node, and whether they grow."""

from __future__ import annotations

import os
import re
import statistics
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

MIB = 1 << 20
PATIENCE = float(os.environ.get("BARNABAS_SOAK_PATIENCE", "1"))  # time limits are so many times as long
MAX_POINTS = 200
MAX_GROWTH = 0.1
MIN_GROWTH_BYTES, MIN_GROWTH_DESCRIPTORS = 16 * MIB, 20  # of a smaller growth nothing is said
LATE = re.compile(r"late by (\d+) ms, of which it worked (\d+) ms")


class Sample(NamedTuple):
    at_s: float
    rss_bytes: int
    descriptors: int
    sockets: int
    log_files: int  # of the descriptors: there are more while logs grow to what retention allows

    @property
    def other_descriptors(self) -> int:
        return self.descriptors - self.log_files


def sample(at_s: float, pid: int, directory: Path) -> Sample | None:
    """None if the process has just ended. A file of the directory that was deleted and is still open is no log file."""
    descriptors = sockets = log_files = 0
    inside = f"{directory.resolve()}/"
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
        for each in Path(f"/proc/{pid}/fd").iterdir():
            descriptors += 1
            try:
                target = str(each.readlink())
            except FileNotFoundError:
                continue
            sockets += target.startswith("socket:")
            log_files += target.startswith(inside) and not target.endswith(" (deleted)")
    except (OSError, IndexError):
        return None
    return Sample(at_s, pages * os.sysconf("SC_PAGE_SIZE"), descriptors, sockets, log_files)


def directory_bytes(directory: Path) -> int:
    """What the files take on disk; indexes are sparse."""
    total = 0
    for folder, _, names in os.walk(directory):
        for name in names:
            try:
                total += Path(folder, name).lstat().st_blocks * 512
            except FileNotFoundError:
                continue
    return total


class Growth(NamedTuple):
    """`growth` is the median slope of all pairs (Theil and Sen), over the whole time: a few outliers change nothing."""

    over_s: float
    median: float
    growth: float
    highest: float


def growth(points: Sequence[tuple[float, float]]) -> Growth:
    if not points:
        return Growth(0, 0, 0, 0)
    some = points[:: max(1, len(points) // MAX_POINTS)]
    slopes = [(b - a) / (t - s) for i, (s, a) in enumerate(some) for t, b in some[i + 1 :] if t > s]
    over_s = points[-1][0] - points[0][0]
    values = [value for _, value in points]
    return Growth(over_s, statistics.median(values), (statistics.median(slopes) if slopes else 0) * over_s, max(values))


def memory(samples: Iterable[Sample]) -> Growth:
    return growth([(each.at_s, each.rss_bytes) for each in samples])


def other_descriptors(samples: Iterable[Sample]) -> Growth:
    return growth([(each.at_s, each.other_descriptors) for each in samples])


def grown(samples: Sequence[Sample]) -> Iterator[str]:
    """What grew, of the samples of one process that does the same all the time."""
    found = memory(samples)
    if found.growth > max(MIN_GROWTH_BYTES, MAX_GROWTH * found.median):
        yield f"memory grew by {found.growth / MIB:.1f} MiB in {found.over_s:.0f} s"
    found = other_descriptors(samples)
    if found.growth > max(MIN_GROWTH_DESCRIPTORS, MAX_GROWTH * found.median):
        yield f"descriptors beside those of log files grew by {found.growth:.0f} in {found.over_s:.0f} s"


class Lag:
    """What the node logs about its event loop. On a busy machine it is late without having worked."""

    def __init__(self, log: Path) -> None:
        self._log = log
        self._read = 0
        self.longest_late_ms = self.longest_worked_ms = 0

    def look(self) -> tuple[int, int]:
        """The longest since the last look: late, and worked."""
        late = worked = 0
        with self._log.open("rb") as file:
            file.seek(self._read)
            data = file.read()
            self._read += len(data)
        for found in LATE.finditer(data.decode(errors="replace")):
            late, worked = max(late, int(found[1])), max(worked, int(found[2]))
        self.longest_late_ms = max(self.longest_late_ms, late)
        self.longest_worked_ms = max(self.longest_worked_ms, worked)
        return late, worked
