"""One command line, run against Apache Kafka and against barnabas: what it prints must be the same."""

from __future__ import annotations

import re
import shlex
import subprocess
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from tools.apache_kafka import ApacheKafka, Barnabas, run_tool

WITH_ACLS = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
}
# What a member or a producer waits for is soon.
IN_A_HURRY = {
    "group.initial.rebalance.delay.ms": "100",
    "group.min.session.timeout.ms": "500",
    "group.consumer.min.heartbeat.interval.ms": "100",
    "group.consumer.heartbeat.interval.ms": "100",
    "group.consumer.min.session.timeout.ms": "500",
    "group.consumer.assignment.interval.ms": "0",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "100",
}
# What differs between any two clusters: ids, offsets and the time.
ALWAYS_DIFFERENT = (
    (re.compile(r"(TopicId: |Cluster ID: |ClusterId: +)[\w-]{22}"), r"\1..."),
    (re.compile(r"(Epoch: )\d+"), r"\1..."),
    (re.compile(r"^\[\d{4}-\d\d-\d\d [\d:,]+\] ", re.MULTILINE), ""),
    (re.compile(r"^\s+at .*\n", re.MULTILINE), ""),  # lines of a stack trace
)


class Printed(NamedTuple):
    code: int
    out: str
    err: str


def run(node: ApacheKafka | Barnabas, command: str, stdin: str | None = None) -> Printed:
    """Run a tool; `{server}` and `{controller}` stand for the option with this node's address."""
    line = command.format(
        server=f"--bootstrap-server {node.bootstrap}", controller=f"--bootstrap-controller {node.controller}"
    )
    name, *args = shlex.split(line)
    done = run_tool(name, *args, stdin=stdin, timeout_s=120)
    return Printed(done.returncode, _common(done.stdout, node), _common(done.stderr, node))


def _common(text: str, node: ApacheKafka | Barnabas) -> str:
    text = text.replace(str(node.directory), "DIRECTORY")
    for address, word in ((node.bootstrap, "SERVER"), (node.controller, "CONTROLLER")):
        port = address.rpartition(":")[2]
        text = re.sub(rf"\b{port}\s*(?=\s)", word, text.replace(address, word))
    for pattern, instead in ALWAYS_DIFFERENT:
        text = pattern.sub(instead, text)
    return text


class SideBySide:
    """Both nodes; whoever shares them keeps them in the same state by running everything on both."""

    def __init__(self, kafka: ApacheKafka, barnabas: Barnabas) -> None:
        self.kafka = kafka
        self.barnabas = barnabas

    def each(self, command: str, stdin: str | None = None) -> tuple[Printed, Printed]:
        """What it prints about Kafka and about barnabas."""
        with ThreadPoolExecutor(2) as pool:
            both = [pool.submit(run, node, command, stdin) for node in (self.kafka, self.barnabas)]
            return both[0].result(), both[1].result()

    def same(self, command: str, *, code: int = 0, order: Callable[[str], str] = str, stdin: str | None = None) -> str:
        """What it prints about both, which is the same."""
        theirs, ours = self.each(command, stdin)
        assert (command, ours._replace(out=order(ours.out))) == (command, theirs._replace(out=order(theirs.out)))
        assert ours.code == code, ours
        return ours.out


def sorted_lines(text: str) -> str:
    return "\n".join(sorted(text.splitlines()))


def ok(done: subprocess.CompletedProcess[str] | Printed) -> str:
    """The output of a tool that ended well."""
    code, out, err = done if isinstance(done, Printed) else (done.returncode, done.stdout, done.stderr)
    assert code == 0, out + err
    return out
