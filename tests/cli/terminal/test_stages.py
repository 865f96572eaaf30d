"""Progress of long work: a line that changes on a terminal, lines in a pipe, and nothing of short work."""

from __future__ import annotations

import io
import re

from barnabas.cli.terminal.stages import Stages


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_a_line_has_the_stage_the_amount_the_rate_and_the_time() -> None:
    clock = Clock()
    stages = Stages("starting", file=io.StringIO(), clock=clock)
    assert stages.line() == "starting, 0 s"
    clock.now += 5
    stages.begin("metadata: folding")
    stages.update(12_000, "records")
    clock.now += 5
    assert stages.line() == "metadata: folding, 12,000 records, 1,200/s, 10 s"


def test_with_a_total_it_has_a_bar_and_the_time_that_is_left() -> None:
    clock = Clock()
    stages = Stages(file=io.StringIO(), clock=clock)
    clock.now += 60
    stages.begin("answers", 12, "tables")
    stages.update(3)
    clock.now += 30
    assert stages.line() == "answers [#####...............], 3 of 12 tables, 1 min, 1 min left"
    stages.update(12)
    assert "left" not in stages.line()


def test_on_a_terminal_a_line_is_replaced_and_removed_before_a_message() -> None:
    terminal = Terminal()
    with Stages("a long name", file=terminal) as stages:
        stages.show()
        stages.begin("short")
        stages.show()
        stages.note("said")
    shown = terminal.getvalue()
    assert shown.startswith("\ra long name, 0 s\rshort, 0 s")
    assert re.search(r"short, 0 s *\r *\rsaid\n$", shown), repr(shown)


def test_in_a_pipe_each_is_a_line() -> None:
    pipe = io.StringIO()
    with Stages("reading", file=pipe) as stages:
        stages.show()
        stages.note("said")
    assert pipe.getvalue() == "reading, 0 s\nsaid\n"


def test_short_work_shows_nothing() -> None:
    for file in (io.StringIO(), Terminal()):
        with Stages("reading", file=file):
            pass
        assert file.getvalue() == ""


def test_work_that_waits_says_so_once_in_a_pipe() -> None:
    file, clock = io.StringIO(), Clock()
    stages = Stages("reading", file=file, clock=clock)
    for _ in range(2):
        stages.show()
        for _ in range(3):
            stages.rest("waiting")
            stages.show()
        stages.begin("reading")
    assert [line.partition(",")[0] for line in file.getvalue().splitlines()] == ["reading", "waiting"] * 2
