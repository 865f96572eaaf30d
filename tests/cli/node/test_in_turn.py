"""Several commands in one process."""

from __future__ import annotations

import pytest

import barnabas
from barnabas.cli.node.in_turn import run_in_turn


def test_the_first_that_fails_ends_it(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        run_in_turn(["--version", "--then", "decode", "NoSuchRequest", "0", "00", "--then", "--version"])
    assert ended.value.code
    assert capsys.readouterr().out == f"barnabas {barnabas.__version__}\n"


def test_all_run_if_none_fails(capsys: pytest.CaptureFixture[str]) -> None:
    run_in_turn(["--version", "--then", "decode", "HeartbeatRequest", "0", "0000000000000000"])
    assert '"message": "HeartbeatRequest"' in capsys.readouterr().out
