"""docs/client.md says what happens: its code runs, block after block, against a node."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from barnabas.testing import Broker

PAGE = Path(__file__).resolve().parents[2] / "docs" / "client.md"


def test_the_code_of_the_guide_runs(capsys: pytest.CaptureFixture[str]) -> None:
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert len(blocks) >= 6
    names: dict[str, object] = {"__name__": "guide"}
    with Broker() as broker:
        for block in blocks:
            exec(compile(block.replace("localhost:9092", broker.bootstrap_servers), str(PAGE), "exec"), names)
    printed = capsys.readouterr().out.splitlines()
    assert printed[:4] == ["orders 3", "1", "orders TOPIC_ALREADY_EXISTS", "payments created"]
    assert sum("b'order" in line for line in printed) == 4
    assert "alice {'apples': 2}" in printed
    assert "payments 1" in printed
