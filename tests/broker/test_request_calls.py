"""What one small request costs, counted in calls of Python functions: a little more each time would go unnoticed otherwise."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from bench import request_cost

MOST = {"Produce of one record": 140, "Fetch of one partition": 150, "ApiVersions": 30}


def test_a_small_request_calls_few_functions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(request_cost, "REPEATS", 1)  # the time is of no interest here
    calls = {name: count for name, (_, count) in asyncio.run(request_cost.measured(tmp_path)).items()}
    assert {name: calls[name] for name in MOST if calls[name] > MOST[name]} == {}
    assert calls[f"Produce of one record to {request_cost.PARTITIONS} partitions"] > calls["Produce of one record"]
