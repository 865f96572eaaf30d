"""kcat against a node; collected where kcat is installed."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable

from confluent_kafka.admin import AdminClient, NewTopic
from tools.apache_kafka import Barnabas

if shutil.which("kcat") is not None:

    def test_kcat_lists_brokers_and_topics(node: Barnabas, fresh_name: Callable[[str], str]) -> None:
        topic = fresh_name("kcat")
        admin = AdminClient({"bootstrap.servers": node.bootstrap, "log_level": 0})
        for future in admin.create_topics([NewTopic(topic, 2, 1)]).values():
            future.result(10)
        command = ["kcat", "-L", "-J", "-b", node.bootstrap]
        done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=True)
        listed = json.loads(done.stdout)
        assert listed["brokers"] == [{"id": 1, "name": node.bootstrap}]
        (found,) = [each for each in listed["topics"] if each["topic"] == topic]
        assert [(p["partition"], p["leader"], p["isrs"]) for p in found["partitions"]] == [
            (0, 1, [{"id": 1}]),
            (1, 1, [{"id": 1}]),
        ]
