"""Rules that every command follows: --yes and --dry-run of changes, one parser of times, shared options."""

from __future__ import annotations

import re

import click
import pytest

from barnabas.cli.terminal.parsing import age_ms, duration_ms, moment_of, moment_or_none, time_ms
from tests.cli.command_tree import leaves, names_of, option_names

LEAVES = leaves()

READS = (
    r"(topics|groups|users|quotas|configs|transactions|cluster|log-dirs) describe|\w+(-\w+)? list|offsets find|topics idle"
    r"|topics plan-partitions|configs (diff|history)|acls (audit|by-principal|by-resource|explain|test)|groups (members|state)"
    r"|transactions find-hanging|cluster (api-versions|brokers|features|safe-to-stop)|quorum status|reassign (plan|status)"
    r"|plan|rehearse|export|metadata \w+|doctor"
)
EXCEPTIONS = {
    "records produce": "its input is what it changes; --dry-run checks it, and it asks nothing",
    "records consume": "it reads; with --group it commits what it has shown, as every consumer does",
    "lake run": "it writes a lake, not a cluster",
    "lake rebuild": "it writes a lake, not a cluster",
}


def test_every_command_that_connects_is_a_reading_one_or_a_change() -> None:
    changes = [name for name in LEAVES if is_change(name)]
    assert "topics create" in changes
    assert not [name for name in changes if name.split()[-1] in ("list", "describe", "status")]
    assert set(EXCEPTIONS) <= set(LEAVES)


def is_change(name: str) -> bool:
    connects = "bootstrap_server" in names_of(LEAVES[name])
    return connects and name not in EXCEPTIONS and re.fullmatch(READS, name) is None


@pytest.mark.parametrize("name", [name for name in LEAVES if is_change(name)])
def test_every_change_takes_yes_and_dry_run(name: str) -> None:
    assert {"--yes", "--dry-run"} <= option_names(LEAVES[name])


TIMES = (time_ms, moment_of, moment_or_none)
DURATIONS = (age_ms, duration_ms)


def test_every_time_and_duration_is_read_by_the_one_parser() -> None:
    seen = set()
    for name, command in LEAVES.items():
        for param in command.params:
            metavar = getattr(param, "metavar", None) or ""
            words = set(re.split(r"[^A-Z]+", metavar))
            if words & {"TIME", "AGE", "DATETIME", "DATE", "TIMESTAMP"}:
                assert param.callback in TIMES, f"{name}: {param.name}"
                assert "AGE" in words, f"{name}: {param.name} takes an age, and its metavar does not say so"
                seen.add(f"{name} {param.name}")
            elif words & {"DURATION"}:
                assert param.callback in DURATIONS, f"{name}: {param.name}"
            assert not isinstance(param.type, click.DateTime), f"{name}: {param.name}"
            named = param.name in (
                "since",
                "until",
                "until_ms",
                "before_ms",
                "from_ms",
                "at",
                "as_of",
                "to_datetime",
                "moment",
            )
            assert not named or metavar, f"{name}: {param.name} is a time without a metavar that says so"
    assert {"topics idle since", "groups reset to_datetime", "serve as_of", "metadata ls as_of"} <= seen


def test_an_age_is_accepted_where_the_metadata_log_is_read_as_of_a_time() -> None:
    command = LEAVES["metadata ls"]
    as_of = next(param for param in command.params if param.name == "as_of")
    assert as_of.callback is not None
    found = as_of.callback(click.Context(command), as_of, "1h")
    earlier = as_of.callback(click.Context(command), as_of, "2h")
    assert found.offset is None
    assert earlier.timestamp_ms < found.timestamp_ms
