"""What docs/testing.md shows is run as it stands there."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from barnabas.config.server import FAULTS
from barnabas.testing import Cluster

pytest_plugins = ["pytester"]

PAGE = Path(__file__).parents[2] / "docs" / "testing.md"


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)


PROGRAMS = [block for block in blocks("python") if "def test_" not in block]


@pytest.mark.parametrize("number", range(len(PROGRAMS)))
def test_a_program_runs(number: int) -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAMS[number]], capture_output=True, text=True, check=False)
    assert (done.returncode, "Traceback" in done.stderr) == (0, False), done.stderr


def test_the_tests_pass_with_the_settings(pytester: pytest.Pytester) -> None:
    (ini,) = blocks("ini")
    (tests,) = (block for block in blocks("python") if "def test_" in block)
    pytester.makeini(ini)
    pytester.makepyfile(tests)
    pytester.runpytest_subprocess("-W", "error").assert_outcomes(passed=4)


# --- faults over HTTP

REQUEST = re.compile(r"`(GET|POST|DELETE) (/[^`]*)`")


def requests_of_the_table() -> list[tuple[str, str, object]]:
    """Each request of the table of faults over HTTP with each body that it shows; what breaks a node comes last."""
    table = PAGE.read_text().partition("### Faults in other languages")[2].partition("\n## ")[0]
    found: list[tuple[str, str, object]] = []
    for row in (
        [each.strip() for each in line.strip("|").split("|")] for line in table.splitlines() if line.startswith("| `")
    ):
        bodies = [json.loads(each) for each in re.findall(r"`(\{.*?\})`", row[1])] or [None]
        found += [(method, path, body) for method, path in REQUEST.findall(row[0]) for body in bodies]
        if "`DELETE`" in row[2]:
            found.append(("DELETE", REQUEST.findall(row[0])[0][1], None))
    return sorted(found, key=lambda each: each[2] == {"full": True})


def test_every_request_of_the_table_is_taken() -> None:
    found = requests_of_the_table()
    assert len(found) >= 12
    config = {"barnabas.faults.listener": ":0"}
    with Cluster(nodes=3, topics={"orders": 1}, config=config) as cluster:
        host, port = cluster._cluster.nodes[1].addresses[FAULTS]
        if cluster.leader("orders") != 1:
            cluster.move_leader("orders", to=1)

        def ask(method: str, path: str, body: object = None) -> Any:
            data = None if body is None else json.dumps(body).encode()
            headers = {"Content-Type": "application/json"}
            request = urllib.request.Request(f"http://{host}:{port}{path}", data, headers, method=method)
            with urllib.request.urlopen(request, timeout=60) as response:
                return json.load(response)

        for method, path, body in found:
            if path == "/rules/1":  # the number of the rule that it removes
                number = ask("POST", "/rules", {"api": "Produce", "drop": True})["id"]
                assert ask(method, f"/rules/{number}")["rules"] == []
                continue
            answer = ask(method, path, body)
            if path == "/leader":
                assert cluster.leader("orders") == 2, answer
        faults = ask("GET", "/faults")
        assert (faults["rules"], faults["isolation"]) == ([], None)


# --- other languages

STANDS_IN_FOR_KCAT = """#!{python}
import sys
from barnabas.client import sync

if sys.argv[1] == "-P":
    _, _, _, servers, _, topic = sys.argv
    with sync.Producer({{"bootstrap.servers": servers}}) as producer:
        for line in sys.stdin.buffer.read().splitlines():
            producer.send_and_wait(topic, line)
else:
    _, _, _, servers, _, topic, *_ = sys.argv
    with sync.Consumer({{"bootstrap.servers": servers, "auto.offset.reset": "earliest"}}) as consumer:
        consumer.assign([(topic, 0)])
        for _ in range(consumer.end_offsets([(topic, 0)])[topic, 0]):
            print(next(consumer).value.decode())
"""

GO = """package main

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

{block}

func TestBroker(t *testing.T) {{
	connection, err := net.Dial("tcp", startBroker(t))
	if err != nil {{
		t.Fatal(err)
	}}
	connection.Close()
}}
"""

JAVA = """import java.io.*;
import java.net.Socket;
import java.nio.file.*;
import java.util.*;
import java.util.concurrent.*;

class Main {{
{block}
    public static void main(String[] args) throws Exception {{
        startBroker(Path.of(args[0]));
        String[] at = client.getProperty("bootstrap.servers").split(":");
        new Socket(at[0], Integer.parseInt(at[1])).close();
        stopBroker();
        System.out.println("exit " + broker.exitValue());
    }}
}}
"""

NODE = """
import {{ connect }} from 'node:net'
{block}
const broker = await startBroker()
const [host, port] = broker.bootstrapServers.split(':')
const socket = connect(Number(port), host)
await once(socket, 'connect')
socket.destroy()
await broker.stop()
console.log('connected')
"""


def run(command: list[str], directory: Path, **more: str) -> str:
    """The output of a program that finds `barnabas` in its PATH."""
    temporary = directory / "temporary"
    temporary.mkdir()
    path = os.pathsep.join([str(directory), str(Path(sys.executable).parent), os.environ["PATH"]])
    env = {**os.environ, "PATH": path, "TMPDIR": str(temporary), "PYTHONPATH": os.pathsep.join(sys.path), **more}
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        env=env,
        cwd=directory,
        check=False,
        timeout=240,
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert not any(each.name.startswith(("barnabas", "tmp")) for each in temporary.iterdir()), (
        "it leaves nothing behind"
    )
    return done.stdout


def test_the_script_prints_what_it_wrote(tmp_path: Path) -> None:
    (script,) = blocks("sh")
    if shutil.which("kcat") is None:
        (tmp_path / "kcat").write_text(STANDS_IN_FOR_KCAT.format(python=sys.executable))
        (tmp_path / "kcat").chmod(0o755)
    assert run(["sh", "-ec", script], tmp_path) == "two apples\n"


@pytest.mark.skipif(shutil.which("go") is None, reason="Go is not installed")
def test_the_code_in_go_starts_a_broker(tmp_path: Path) -> None:
    (block,) = blocks("go")
    (tmp_path / "broker_test.go").write_text(GO.format(block=block))
    (tmp_path / "go.mod").write_text("module broker\n\ngo 1.20\n")
    assert run(["go", "test", "./..."], tmp_path, GOTOOLCHAIN="local", GOFLAGS="-mod=mod").startswith("ok")


@pytest.mark.skipif(shutil.which("java") is None, reason="Java is not installed")
def test_the_code_in_java_starts_a_broker(tmp_path: Path) -> None:
    (block,) = blocks("java")
    (tmp_path / "Main.java").write_text(JAVA.format(block=block))
    assert run(["java", "Main.java", str(tmp_path)], tmp_path) == "exit 0\n"


@pytest.mark.skipif(shutil.which("node") is None, reason="Node is not installed")
def test_the_code_in_node_starts_a_broker(tmp_path: Path) -> None:
    (block,) = blocks("js")
    (tmp_path / "main.mjs").write_text(NODE.format(block=block))
    assert run(["node", "main.mjs"], tmp_path) == "connected\n"
