"""Every check of log dirs: a healthy directory is silent, and each kind of damage has its finding. Nothing is changed."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from barnabas.config import server
from barnabas.config.unsupported import STANDARD_AUTHORIZER
from barnabas.metadata.versions import LATEST_VERSION
from barnabas.operations.doctor.findings import Finding, Severity, findings
from barnabas.operations.doctor.log_dirs import CHECKS, LogDirs
from barnabas.raft.formatting import Formatting, bootstrap_records, effective_features, write_format
from barnabas.storage.log_dirs import DirectoryLock
from barnabas.testing import Security
from barnabas.wire.message import Message
from barnabas.wire.primitives import Uuid
from barnabas.wire.records.metadata import ConfigRecord
from tests.broker.damages import CASES, DAMAGES, FIRST, METADATA, SPECIAL, Outcome, fill
from tests.storage.golden import extract_node

SPACE = {"disk-space"}  # of the machine that runs the tests


def found_in(*paths: Path, config: dict[str, str] | None = None, deep: bool = False) -> list[Finding]:
    chosen = [each for each in CHECKS if each.name not in SPACE]
    loaded = None if config is None else server.load({**server.EMBEDDED_DEFAULTS, **config})
    return list(findings(chosen, LogDirs(paths, loaded, deep=deep)))


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    data = tmp_path_factory.mktemp("whole") / "data"
    asyncio.run(fill(data))
    return data


@pytest.fixture
def data(whole: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(whole, tmp_path / "data"))


def content(path: Path) -> dict[str, tuple[int, int]]:
    found = {str(each): each.stat() for each in path.rglob("*")}
    return {name: (stat.st_size, stat.st_mtime_ns) for name, stat in found.items()}


@pytest.mark.parametrize("deep", [False, True])
def test_a_healthy_directory_is_silent_and_stays_as_it_is(data: Path, deep: bool) -> None:
    before = content(data)
    assert found_in(data, deep=deep) == []
    assert found_in(data, config={"log.dirs": str(data)}, deep=deep) == []
    assert content(data) == before


def test_a_healthy_directory_of_apache_kafka_is_silent(tmp_path: Path) -> None:
    node = extract_node(tmp_path)
    assert found_in(node / "d0", node / "d1", deep=True) == []


@pytest.mark.parametrize(("name", "damage", "outcome"), CASES)
def test_what_a_start_refuses_or_loses_is_an_error_that_names_the_file(
    data: Path, name: str, damage: str, outcome: Outcome
) -> None:
    (path,) = data.glob(name)
    (DAMAGES | SPECIAL)[damage](path)
    found = found_in(data)
    errors = [each for each in found if each.severity is Severity.ERROR]
    is_lost = outcome.refused is not None or outcome.failed is not None or outcome.records < 20
    is_metadata_log = name == f"{METADATA}/{FIRST}.log"
    if is_lost or (is_metadata_log and damage in ("random", "truncated")):
        assert errors, found
        partition = name.partition("/")[0]
        assert any(str(path) in f"{each.subject} {each.message}" or partition in each.subject for each in errors) or (
            damage == "missing" and any(path.name in each.message for each in errors)
        )
        assert all(each.remedy for each in errors)
    elif not is_metadata_log and not name.endswith(("index", "partition.metadata")):
        assert errors == [], errors


REBUILT = ["missing", "truncated"]


@pytest.mark.parametrize("damage", REBUILT)
def test_a_damaged_index_is_a_note_because_a_start_rebuilds_it(data: Path, damage: str) -> None:
    path = data / f"t-0/{FIRST}.timeindex"
    path.write_bytes(bytes(18))
    DAMAGES[damage](path)
    (one,) = found_in(data)
    assert (one.severity, one.check, one.subject) == (Severity.NOTE, "rebuilt-files", str(path))


def test_an_entry_of_an_index_that_contradicts_the_log_is_found_with_deep(data: Path) -> None:
    (data / f"t-0/{FIRST}.index").write_bytes(bytes.fromhex("0000000300000007"))
    assert found_in(data) == []
    (one,) = found_in(data, deep=True)
    assert (one.severity, one.check) == (Severity.NOTE, "every-batch")


def test_a_flipped_bit_in_a_log_is_found_with_deep(data: Path) -> None:
    DAMAGES["flipped"](data / f"t-0/{FIRST}.log")
    assert found_in(data) == []
    errors = {(each.check, each.subject) for each in found_in(data, deep=True) if each.severity is Severity.ERROR}
    assert errors == {("every-batch", str(data / f"t-0/{FIRST}.log"))}


def test_deep_reports_its_progress(data: Path) -> None:
    seen: list[tuple[int, int]] = []
    list(findings(CHECKS, LogDirs((data,), deep=True, progressed=lambda done, total: seen.append((done, total)))))
    assert seen[-1][0] == seen[-1][1] == sum(each.stat().st_size for each in data.rglob("*.log"))


# --- directories


def test_a_missing_directory_is_a_note_and_a_file_is_an_error(tmp_path: Path) -> None:
    (note,) = found_in(tmp_path / "none")
    assert (note.severity, note.check) == (Severity.NOTE, "directories")
    (tmp_path / "file").touch()
    (error,) = found_in(tmp_path / "file")
    assert (error.severity, error.message) == (Severity.ERROR, "it is not a directory")
    (error,) = found_in(tmp_path / "file" / "below")
    assert (error.severity, error.check) == (Severity.ERROR, "directories")
    assert "is not a directory" in error.message


@pytest.mark.skipif(not os.geteuid(), reason="root may write everywhere")
def test_a_directory_without_permission_is_an_error(data: Path) -> None:
    data.chmod(0o500)
    try:
        assert "directories" in {each.check for each in found_in(data) if each.severity is Severity.ERROR}
    finally:
        data.chmod(0o700)


@pytest.mark.skipif(bool(os.geteuid()), reason="only root can give files away")
def test_files_of_another_user_are_a_warning(data: Path) -> None:
    os.chown(data / "meta.properties", 12345, -1)
    (one,) = found_in(data)
    assert (one.severity, one.check, one.subject) == (Severity.WARNING, "directories", str(data / "meta.properties"))


def test_an_empty_directory_is_not_formatted(tmp_path: Path) -> None:
    (one,) = found_in(tmp_path)
    assert (one.severity, one.check) == (Severity.NOTE, "formatted")


@pytest.mark.parametrize("exists", [False, True])
def test_an_empty_directory_of_one_of_several_controllers_is_an_error(tmp_path: Path, exists: bool) -> None:
    if exists:
        (tmp_path / "d").mkdir()
    voters = "1@127.0.0.1:9093,2@127.0.0.1:9094"
    config = {
        "log.dirs": str(tmp_path / "d"),
        "listeners": "PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:9093",
        "controller.quorum.voters": voters,
    }
    (one,) = found_in(tmp_path / "d", config=config)
    assert (one.severity, one.check) == (Severity.ERROR, "formatted")
    assert "barnabas serve would refuse it: the log dirs of node 1 are not formatted" in one.message
    assert "kafka-storage format" in one.remedy


def test_directories_of_different_nodes_are_an_error(data: Path, tmp_path: Path) -> None:
    other = Path(shutil.copytree(data, tmp_path / "other"))
    (one,) = [each for each in found_in(data, other) if each.check == "formatted"]
    assert "same directory.id" in one.message
    (wrong,) = [
        each for each in found_in(data, config={"log.dirs": str(data), "node.id": "7"}) if each.check == "formatted"
    ]
    assert (wrong.severity, wrong.message) == (Severity.ERROR, f"{data}/meta.properties belongs to node 1, not node 7")


def test_a_formatted_directory_beside_an_empty_one_is_an_error(data: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert "was not formatted, but other log dirs were" in "".join(
        each.message for each in found_in(data, tmp_path / "empty") if each.severity is Severity.ERROR
    )


def test_a_directory_in_use_is_a_note(data: Path) -> None:
    with DirectoryLock(data):
        (one,) = found_in(data)
        assert (one.severity, one.check) == (Severity.NOTE, "locked")
        assert f"process {os.getpid()} is using it" in one.message


def test_a_full_disk_is_found(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.statvfs(data)

    def disk(free: int) -> Callable[[object], os.statvfs_result]:
        values = list(real)
        values[1], values[2], values[4], values[5], values[7] = 4096, 1_000_000, free, 1_000_000, 10
        return lambda path: os.statvfs_result(values)

    (space,) = [each for each in CHECKS if each.name == "disk-space"]
    monkeypatch.setattr(os, "statvfs", disk(0))
    found = list(space.find(LogDirs((data,))))
    assert [each.severity for each in found] == [Severity.ERROR, Severity.WARNING]
    assert "full" in found[0].message and "inodes" in found[1].message
    monkeypatch.setattr(os, "statvfs", disk(500))
    assert [each.severity for each in space.find(LogDirs((data,)))] == [Severity.WARNING, Severity.WARNING]


# --- after a kill, and leftovers


def test_after_a_kill_an_incomplete_batch_is_a_note(data: Path) -> None:
    (data / ".kafka_cleanshutdown").unlink()
    log = data / f"t-0/{FIRST}.log"
    with log.open("ab") as file:
        file.write(log.read_bytes()[:30])
    found = found_in(data)
    assert [(each.severity, each.check) for each in found] == [
        (Severity.NOTE, "clean-stop"),
        (Severity.NOTE, "log-ends"),
    ]


def test_a_log_that_starts_after_its_end_is_an_error(data: Path) -> None:
    (data / "log-start-offset-checkpoint").write_text("0\n1\nt 0 99\n")
    (one,) = found_in(data)
    assert (one.severity, one.check) == (Severity.ERROR, "log-ends")
    assert "starts at offset 99, after its end 20" in one.message


def test_leftovers_are_found(data: Path) -> None:
    unique = "0" * 32
    for state in ("stray", "delete", "future"):
        shutil.copytree(data / "t-0", data / f"t-0.{unique}-{state}")
    (data / "odd").mkdir()
    (data / f"t-0/{FIRST}.log.deleted").touch()
    (data / f"t-0/{FIRST}.index.cleaned").touch()
    (data / f"t-0/{FIRST}.log.swap").touch()
    found = [each for each in found_in(data) if each.check == "leftovers"]
    assert [each.severity.value for each in found].count("warning") == 1
    names = {Path(each.subject).name.removeprefix(f"t-0.{unique}-") for each in found}
    files = {f"{FIRST}{suffix}" for suffix in (".log.deleted", ".index.cleaned", ".log.swap")}
    assert names == {"stray", "delete", "future", "odd"} | files


# --- metadata


def test_a_log_that_the_cluster_does_not_know_is_a_warning(data: Path) -> None:
    (data / "t-0").rename(data / "unknown-0")
    found = {each.check: each for each in found_in(data)}
    assert found["replicas"].message == "its log is gone, which ended at offset 20: a start creates it empty"
    texts = [each.message for each in found_in(data)]
    assert "the cluster has no unknown-0: a start renames it to a stray" in texts


def test_a_log_of_an_earlier_topic_of_the_same_name_is_a_warning(data: Path) -> None:
    path = data / "t-0/partition.metadata"
    path.write_text("version: 0\ntopic_id: AAAAAAAAAAEAAAAAAAAAQQ")
    (one,) = found_in(data)
    assert (one.severity, one.check) == (Severity.WARNING, "replicas")
    assert "it is of a deleted topic" in one.message


def test_a_copy_whose_directory_id_changed_could_not_lead(data: Path) -> None:
    path = data / "meta.properties"
    lines = [line for line in path.read_text().splitlines() if not line.startswith("directory.id")]
    path.write_text("\n".join([*lines, "directory.id=AAAAAAAAAAEAAAAAAAAAQQ"]))
    found = [each for each in found_in(data, config={"log.dirs": str(data)}) if each.check == "sole-voter"]
    assert [each.severity for each in found] == [Severity.ERROR]
    assert "the directory id does not match" in found[0].message


def test_an_authorizer_that_locks_out_the_node_is_an_error(data: Path) -> None:
    config = {"log.dirs": str(data), "authorizer.class.name": STANDARD_AUTHORIZER}
    (one,) = found_in(data, config=config)
    assert (one.severity, one.check) == (Severity.ERROR, "own-permission")
    assert found_in(data, config={**config, "super.users": "User:ANONYMOUS"}) == []


def formatted_with(data: Path, records: list[Message]) -> None:
    """Make a directory whose metadata has these records."""
    write_format(Formatting("AAAAAAAAAAEAAAAAAAAAQQ", 1, data, {data: Uuid(b"\1" * 16)}, records, None), lambda: 0)
    metadata = data / METADATA
    metadata.mkdir(exist_ok=True)
    shutil.copy(data / "bootstrap.checkpoint", metadata / f"{FIRST[:-1]}1-0000000001.checkpoint")


@pytest.mark.parametrize("protocol", ["SASL_SSL", "SASL_PLAINTEXT", "SSL"])
def test_the_node_is_known_by_its_certificate_or_its_login(data: Path, protocol: str) -> None:
    security = Security(protocol, client_auth="required" if protocol == "SSL" else "none")
    own = security.server_settings(("localhost",), is_authorizing=True)
    listeners = {"listeners": f"{protocol}://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093"}
    config = {**own, **listeners, "log.dirs": str(data), "authorizer.class.name": STANDARD_AUTHORIZER}
    assert found_in(data, config=config) == []
    (one,) = found_in(data, config={**config, "super.users": "User:alice"})
    assert one.check == "own-permission" and one.remedy.startswith("add User:node to super.users")
    if protocol != "SASL_PLAINTEXT":
        (one,) = found_in(data, config={**config, "listener.name.controller.ssl.client.auth": "none"})
        assert one.remedy.startswith("add User:ANONYMOUS to super.users")


def test_metadata_of_a_newer_release_is_an_error(tmp_path: Path) -> None:
    features = {**effective_features(), "metadata.version": LATEST_VERSION.value + 70}
    formatted_with(tmp_path / "other", bootstrap_records(features))
    found = [each for each in found_in(tmp_path / "other") if each.check == "metadata-log"]
    assert [each.severity for each in found] == [Severity.ERROR]
    assert "metadata.version" in found[0].message


@pytest.mark.parametrize(
    ("settings", "severity", "message"),
    [
        ({"num.io.threads": "9"}, None, ""),
        (
            {"listeners": "PLAINTEXT://127.0.0.1:7,CONTROLLER://127.0.0.1:0"},
            Severity.ERROR,
            "listeners cannot be changed",
        ),
        ({"log.retention.ms": "0"}, Severity.WARNING, "a start ignores the dynamic settings of this node"),
    ],
)
def test_dynamic_settings_that_a_start_refuses_or_ignores_are_found(
    tmp_path: Path, settings: dict[str, str], severity: Severity | None, message: str
) -> None:
    data = tmp_path / "data"
    stored = [ConfigRecord(resource_type=4, resource_name="1", name=n, value=v) for n, v in settings.items()]
    formatted_with(data, [*bootstrap_records(effective_features()), *stored])
    found = [each for each in found_in(data, config={"log.dirs": str(data)}) if each.check == "dynamic-settings"]
    assert [each.severity for each in found] == ([] if severity is None else [severity])
    assert all(message in each.message for each in found)


def test_every_check_of_log_dirs_is_named_here() -> None:
    text = Path(__file__).read_text()
    assert [each.name for each in CHECKS if f'"{each.name}"' not in text and each.name != "small-files"] == []
