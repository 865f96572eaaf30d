"""The history of the metadata log: each change leads to what its batch changed."""

from __future__ import annotations

import html
import re

from barnabas.testing import Broker
from tests.console.running_console import NAME, RunningConsole, entry

ROW = re.compile(r'href="[^"]*(/metadata\?tab=difference[^"]*)">\d+</a></td><td class="wide">([^<]*)</td>')


def test_a_change_leads_to_the_difference_that_its_batch_made() -> None:
    """The records of one batch are applied together, so there is no state between them."""
    with Broker(topics={"orders": 3}) as broker, RunningConsole(entry(broker)) as console:
        rows = ROW.findall(console.enter().get(f"/c/{NAME}/history").text)
        paths = [path for path, sentence in rows if "orders" in sentence]
        assert len(paths) == 4  # of the topic and its partitions
        for path in paths:
            assert "<li>topic orders created with 3 partitions" in console.get(f"/c/{NAME}{html.unescape(path)}").text
