"""`barnabas storage` beside kafka-storage, on the same settings and the same paths: what they print and what they write."""

from __future__ import annotations

import re
import shutil
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from tools.apache_kafka import ApacheKafka, run_tool

from barnabas.storage import SnapshotReader
from tests.command_line import invoke

pytestmark = pytest.mark.interop

CLUSTER_ID = "MkU3OEVBNTcwNTJENDM2Qg"
FORMAT = ("format", "-t", CLUSTER_ID)
ROLES = "process.roles=broker,controller\nlisteners=PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093\n"
ANYWHERE = "process.roles=broker,controller\nlisteners=PLAINTEXT://:9092,CONTROLLER://:9093\n"
BROKER = "process.roles=broker\nlisteners=PLAINTEXT://127.0.0.1:9092\n"
COMMON = "node.id=1\ncontroller.listener.names=CONTROLLER\n"
DYNAMIC = "controller.quorum.bootstrap.servers=127.0.0.1:9093\n"
STATIC = "controller.quorum.voters=1@127.0.0.1:9093\n"
VOTERS = "1@localhost:9093:JEXY6aqzQY-32P5TStzaFg,2@[::1]:9094:MvDxzVmcRsaTz33bUuRU6A"
SCRAM = (
    "SCRAM-SHA-256=[name=alice,password=alice-secret,salt=MWx2NWM2ZTV2]",
    'SCRAM-SHA-512=[name=bob,iterations=8192,salt="N3E=",saltedpassword="YCE="]',
)

WRITES = {
    "one voter": (ROLES + DYNAMIC, ("--standalone",)),
    "one voter on every interface": (ANYWHERE + DYNAMIC, ("-s",)),
    "several voters": (ROLES + DYNAMIC, ("--initial-controllers", VOTERS)),
    "voters without this node": (ROLES + DYNAMIC, ("-I", VOTERS.replace("1@", "7@", 1))),
    "a node that joins": (ROLES + DYNAMIC, ("-N",)),
    "a static quorum of an old release": (ROLES + STATIC, ("-r", "3.7")),
    "a broker": (BROKER + DYNAMIC, ()),
    "credentials": (ROLES + DYNAMIC, ("-s", "-S", SCRAM[0], "--add-scram", SCRAM[1])),
    "no new features": (ROLES + DYNAMIC, ("-s", "-f", "share.version=0", "-f", "streams.version=0")),
    "features": (
        ROLES + DYNAMIC,
        ("-s", "-f", "metadata.version=25", "-f", "group.version=0", "--feature", "share.version=1"),
    ),
}
REFUSALS: dict[str, tuple[str, Sequence[str]]] = {
    "no voters said": (ROLES + DYNAMIC, ()),
    "voters said twice": (ROLES + STATIC, ("--standalone",)),
    "a broker alone": (BROKER + DYNAMIC, ("--standalone",)),
    "an unknown release": (ROLES + DYNAMIC, ("-N", "-r", "9.9")),
    "a release and a version": (ROLES + DYNAMIC, ("-N", "-r", "4.3", "-f", "metadata.version=20")),
    "an unknown feature": (ROLES + DYNAMIC, ("-N", "-f", "foo=3")),
    "a feature without a level": (ROLES + DYNAMIC, ("-N", "-f", "foo")),
    "a level that is no number": (ROLES + DYNAMIC, ("-N", "-f", "foo=x")),
    "kraft.version 0 for a dynamic quorum": (ROLES + DYNAMIC, ("-N", "-f", "kraft.version=0")),
    "kraft.version 1 for a static quorum": (ROLES + STATIC, ("-f", "kraft.version=1")),
    "an unknown level": (ROLES + DYNAMIC, ("-N", "-f", "group.version=5")),
    "a level that needs another": (ROLES + DYNAMIC, ("-N", "-f", "eligible.leader.replicas.version=1", "-r", "3.9")),
    "credentials in an old release": (ROLES + DYNAMIC, ("-N", "-r", "3.4", "-S", SCRAM[0])),
    "too few iterations": (ROLES + DYNAMIC, ("-N", "-S", "SCRAM-SHA-256=[name=a,password=x,iterations=1]")),
    "no voter": (ROLES + DYNAMIC, ("-I", "5")),
    "a voter without a directory": (ROLES + DYNAMIC, ("-I", "5@localhost:9093")),
}
QUESTIONS = [
    ("version-mapping",),
    ("version-mapping", "-r", "3.9"),
    ("version-mapping", "--release-version", "4.1-IV0"),
    (
        "feature-dependencies",
        "-f",
        "metadata.version=20",
        "-f",
        "eligible.leader.replicas.version=1",
        "-f",
        "group.version=1",
    ),
    ("feature-dependencies", "-f", "group"),
    ("feature-dependencies", "-f", "group.version=x"),
    ("feature-dependencies", "--feature", "group.version=9"),
    ("feature-dependencies", "-f", "metadata.version=99"),
    ("feature-dependencies", "-f", "zoo=9"),
]


def settings(tmp_path: Path, text: str) -> str:
    path = tmp_path / "server.properties"
    path.write_text(f"{COMMON}{text}log.dirs={tmp_path / 'one'},{tmp_path / 'two'}\n")
    return str(path)


def kafka_storage(*arguments: str) -> tuple[int, str, str]:
    """What Kafka's tool does; of a stack trace only what it says."""
    done = run_tool("kafka-storage", *arguments)
    return done.returncode, done.stdout, re.sub(r"^Exception in thread \S+ \S+: (.*)\n(\s.*\n)+", r"\1\n", done.stderr)


def barnabas_storage(*arguments: str) -> tuple[int, str, str]:
    return invoke("storage", *arguments)[:3]


def files(tmp_path: Path) -> dict[str, Any]:
    """What is in the directories, without what is random or depends on the time."""
    found: dict[str, Any] = {}
    for path in sorted(path for name in ("one", "two") for path in (tmp_path / name).rglob("*") if path.is_file()):
        content: Any = None
        if path.suffix == ".checkpoint":
            with SnapshotReader(path) as reader:
                has_time = reader.last_contained_log_timestamp > 0
                content = (has_time, reader.kraft_version, str(reader.voters), list(reader.values()), reader.size)
        elif path.name == "meta.properties":
            content = re.sub(r"directory.id=\S{22}\n", "", path.read_text().split("\n", 2)[2])
        found[f"{path.relative_to(tmp_path)} {stat.S_IMODE(path.stat().st_mode):o}"] = content
    return found


def without_ids(found: dict[str, Any]) -> str:
    return re.sub(r"Uuid\('\S{22}'\)", "Uuid", str(found))


@pytest.mark.parametrize("case", WRITES)
def test_both_write_the_same_files_and_say_the_same(case: str, tmp_path: Path) -> None:
    text, options = WRITES[case]
    config = settings(tmp_path, text)
    theirs = kafka_storage(*FORMAT, "-c", config, *options)
    their_files = files(tmp_path)
    for name in ("one", "two"):
        shutil.rmtree(tmp_path / name)
    ours = barnabas_storage(*FORMAT, "-c", config, *options)
    assert theirs[0] == 0, theirs
    assert ours == theirs
    hide = without_ids if "-s" in options or "--standalone" in options else str
    assert hide(files(tmp_path)) == hide(their_files)
    info = kafka_storage("info", "-c", config)
    assert barnabas_storage("info", "-c", config) == info
    assert info[0] == 0
    assert barnabas_storage(*FORMAT, "-c", config, *options) == kafka_storage(*FORMAT, "-c", config, *options)
    assert barnabas_storage(*FORMAT, "-g", "-c", config, *options) == kafka_storage(
        *FORMAT, "-g", "-c", config, *options
    )


@pytest.mark.parametrize("case", REFUSALS)
def test_both_refuse_in_the_same_words(case: str, tmp_path: Path) -> None:
    text, options = REFUSALS[case]
    config = settings(tmp_path, text)
    theirs = kafka_storage(*FORMAT, "-c", config, *options)
    assert theirs[0] == 1
    assert barnabas_storage(*FORMAT, "-c", config, *options) == theirs
    assert sorted(path.name for path in tmp_path.iterdir()) == ["server.properties"]


@pytest.mark.parametrize("question", QUESTIONS, ids=" ".join)
def test_both_give_the_same_answer(question: tuple[str, ...]) -> None:
    assert barnabas_storage(*question) == kafka_storage(*question)


def test_both_see_the_same_problems(tmp_path: Path) -> None:
    config = settings(tmp_path, ROLES + DYNAMIC)
    (tmp_path / "one").mkdir()
    assert barnabas_storage("info", "-c", config) == kafka_storage("info", "-c", config)
    (tmp_path / "two").write_text("no directory")
    (tmp_path / "one" / "meta.properties").write_text("broker.id=1\nversion=0\n")
    assert barnabas_storage("info", "-c", config) == kafka_storage("info", "-c", config)


def test_apache_kafka_starts_on_what_barnabas_formatted(tmp_path: Path) -> None:
    node = ApacheKafka(directory=tmp_path)
    text = "".join(f"{name}={value}\n" for name, value in node.properties.items())
    (tmp_path / "of-barnabas.properties").write_text(text)
    config = str(tmp_path / "of-barnabas.properties")
    options = ("-s", "-S", "SCRAM-SHA-256=[name=alice,password=alice-secret]")
    assert barnabas_storage(*FORMAT, "-c", config, *options)[0] == 0
    with node:
        users = node.tool("kafka-configs", "--describe", "--entity-type", "users")
    assert "SCRAM-SHA-256=iterations=4096" in users.stdout
