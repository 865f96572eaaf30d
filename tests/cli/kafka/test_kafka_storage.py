"""`barnabas storage`: what it writes, says and refuses. tests/interop compares it with Kafka's own tool."""

from __future__ import annotations

import base64
import hashlib
import hmac
from functools import partial
from pathlib import Path

import pytest

from barnabas.raft.voters import VoterSet
from barnabas.storage import SnapshotReader
from barnabas.storage.log_dirs import MetaProperties, read_meta_properties
from barnabas.wire import Uuid, decode_record
from barnabas.wire.records.metadata import FeatureLevelRecord, UserScramCredentialRecord
from tests.command_line import Done, invoke

CLUSTER_ID = "MkU3OEVBNTcwNTJENDM2Qg"
FIRST_SNAPSHOT = "__cluster_metadata-0/00000000000000000000-0000000000.checkpoint"


storage = partial(invoke, "storage")


def settings(tmp_path: Path, *lines: str, dirs: tuple[str, ...] = ("data",)) -> str:
    path = tmp_path / "server.properties"
    log_dirs = ",".join(str(tmp_path / name) for name in dirs)
    roles = ["process.roles=broker,controller", "node.id=4", "controller.listener.names=CONTROLLER"]
    roles += ["listeners=PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093", f"log.dirs={log_dirs}"]
    path.write_text("\n".join([*roles, *(lines or ["controller.quorum.bootstrap.servers=127.0.0.1:9093"])]))
    return str(path)


def formatted(tmp_path: Path, *options: str, dirs: tuple[str, ...] = ("data",)) -> Done:
    return storage("format", "-t", CLUSTER_ID, "-c", settings(tmp_path, dirs=dirs), *options)


def bootstrap(tmp_path: Path, name: str = "data") -> list[object]:
    with SnapshotReader(tmp_path / name / "bootstrap.checkpoint") as reader:
        return [decode_record(value).record for value in reader.values()]


def meta(log_dir: Path) -> MetaProperties:
    found = read_meta_properties(log_dir)
    assert found is not None
    return found


def test_a_standalone_node_is_the_voter_of_its_first_snapshot(tmp_path: Path) -> None:
    result = formatted(tmp_path, "--standalone")
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout.splitlines()[1:] == [
        f"Formatting dynamic metadata voter directory {tmp_path / 'data'} with metadata.version 4.3-IV0."
    ]
    with SnapshotReader(tmp_path / "data" / FIRST_SNAPSHOT) as reader:
        assert reader.kraft_version == 1
        assert reader.voters is not None
        (voter,) = VoterSet.from_record(reader.voters)
    assert (voter.id, voter.listeners) == (4, (("CONTROLLER", "127.0.0.1", 9093),))
    assert meta(tmp_path / "data") == MetaProperties(CLUSTER_ID, 4, voter.key.directory_id)


def test_every_directory_gets_its_own_id_and_the_bootstrap_records(tmp_path: Path) -> None:
    assert formatted(tmp_path, "-s", dirs=("one", "two")).exit_code == 0
    assert bootstrap(tmp_path, "one") == bootstrap(tmp_path, "two")
    assert bootstrap(tmp_path, "one")[0] == FeatureLevelRecord(name="metadata.version", feature_level=30)
    assert meta(tmp_path / "one").directory_id != meta(tmp_path / "two").directory_id
    assert not (tmp_path / "two" / "__cluster_metadata-0").exists()


def test_initial_controllers_give_the_node_its_directory_id(tmp_path: Path) -> None:
    voters = "3@[::1]:9094:MvDxzVmcRsaTz33bUuRU6A,4@localhost:9093:JEXY6aqzQY-32P5TStzaFg"
    assert formatted(tmp_path, "--initial-controllers", voters).exit_code == 0
    assert meta(tmp_path / "data").directory_id == Uuid.parse("JEXY6aqzQY-32P5TStzaFg")
    with SnapshotReader(tmp_path / "data" / FIRST_SNAPSHOT) as reader:
        assert reader.voters is not None
        hosts = {voter.id: voter.listeners[0].host for voter in VoterSet.from_record(reader.voters)}
    assert hosts == {3: "0:0:0:0:0:0:0:1", 4: "localhost"}


def test_a_node_that_joins_has_no_first_snapshot(tmp_path: Path) -> None:
    assert formatted(tmp_path, "--no-initial-controllers").exit_code == 0
    assert sorted(path.name for path in (tmp_path / "data").iterdir()) == ["bootstrap.checkpoint", "meta.properties"]


def test_a_static_quorum_of_an_old_release_has_its_version_alone(tmp_path: Path) -> None:
    config = settings(tmp_path, "controller.quorum.voters=4@127.0.0.1:9093")
    assert storage("format", "-t", CLUSTER_ID, "-c", config, "-r", "3.7").exit_code == 0
    assert bootstrap(tmp_path) == [FeatureLevelRecord(name="metadata.version", feature_level=19)]


def test_a_password_becomes_a_credential_by_which_it_can_be_checked(tmp_path: Path) -> None:
    assert formatted(tmp_path, "-s", "-S", "SCRAM-SHA-512=[name=alice,password=alice-secret]").exit_code == 0
    record = bootstrap(tmp_path)[-1]
    assert isinstance(record, UserScramCredentialRecord)
    assert (record.name, record.mechanism, record.iterations) == ("alice", 2, 4096)
    assert len(record.salt) > 20
    salted = hashlib.pbkdf2_hmac("sha512", b"alice-secret", record.salt, 4096)
    assert record.server_key == hmac.digest(salted, b"Server Key", "sha512")
    assert record.stored_key == hashlib.sha512(hmac.digest(salted, b"Client Key", "sha512")).digest()


def test_a_salted_password_is_taken_as_it_is(tmp_path: Path) -> None:
    salted = base64.b64encode(b"any salted password").decode()
    argument = f'SCRAM-SHA-256=[name=bob,iterations=8192,salt="N3E=",saltedpassword="{salted}"]'
    assert formatted(tmp_path, "-s", "-S", argument).exit_code == 0
    record = bootstrap(tmp_path)[-1]
    assert isinstance(record, UserScramCredentialRecord)
    assert (record.salt, record.iterations) == (b"7q", 8192)
    assert record.server_key == hmac.digest(b"any salted password", b"Server Key", "sha256")


@pytest.mark.parametrize(
    ("argument", "reason"),
    [
        ("SCRAM-SHA-256", "Failed to find equals sign in SCRAM argument 'SCRAM-SHA-256'"),
        ("SCRAM-MD5=[name=a]", "The add-scram mechanism SCRAM-MD5 is not supported."),
        ("SCRAM-SHA-256=name=a]", "Expected configuration string to start with ["),
        ("SCRAM-SHA-256=[name=a", "Expected configuration string to end with ]"),
        ("SCRAM-SHA-256=[password=a]", "You must supply 'name' to add-scram"),
        ("SCRAM-SHA-256=[name=a,password]", "No equals sign found in SCRAM component: password"),
        ("SCRAM-SHA-256=[name=a]", "You must supply one of 'password' or 'saltedpassword' to add-scram"),
        ("SCRAM-SHA-256=[name=a,saltedpassword=YCE=]", "You must supply 'salt' with 'saltedpassword' to add-scram"),
        ("SCRAM-SHA-256=[name=a,password=b,salt=$]", "Failed to decode given salt: $"),
        ("SCRAM-SHA-256=[name=a,password=b,iterations=x]", "Failed to parse iterations count: x"),
        ("SCRAM-SHA-256=[name=a,password=b,color=red]", "Unknown SCRAM configurations: color"),
        (
            "SCRAM-SHA-512=[name=a,password=b,iterations=16385]",
            "The 'iterations' value must be <= 16384 for add-scram using SCRAM_SHA_512",
        ),
    ],
)
def test_a_credential_that_is_none_is_refused_and_nothing_is_written(
    argument: str, reason: str, tmp_path: Path
) -> None:
    result = formatted(tmp_path, "-s", "-S", argument)
    assert (result.exit_code, result.stdout, result.stderr) == (1, "", f"{reason}\n")
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize(
    ("voters", "reason"),
    [
        ("", "No voters given."),
        ("1", "No @ found in dynamic voter string."),
        ("@a:1:x", "Invalid @ at beginning of dynamic voter string."),
        ("x@a:1:x", "Failed to parse node id in dynamic voter string."),
        ("-1@a:1:x", "Invalid negative node id -1 in dynamic voter string."),
        ("1@", "No hostname found after node id."),
        ("1@[::1:1:x", "Hostname began with left bracket, but no right bracket was found."),
        ("1@[::1]1:x", "Port section must start with a colon."),
        ("1@a", "No colon following hostname could be found."),
        ("1@a:1", "No colon following port could be found."),
        ("1@a:x:x", "Failed to parse port in dynamic voter string."),
        ("1@a:65536:x", "Invalid port 65536 in dynamic voter string."),
        ("1@a:1:x", "Failed to parse directory ID in dynamic voter string."),
        (
            "1@a:1:JEXY6aqzQY-32P5TStzaFg,1@b:1:MvDxzVmcRsaTz33bUuRU6A",
            "Node id 1 was specified more than once.",
        ),
    ],
)
def test_voters_that_are_none_are_refused(voters: str, reason: str, tmp_path: Path) -> None:
    result = formatted(tmp_path, "--initial-controllers", voters)
    assert (result.exit_code, result.stderr) == (1, f"{reason}\n")


def test_a_formatted_directory_is_left_alone_and_the_others_are_formatted(tmp_path: Path) -> None:
    assert formatted(tmp_path, "-s").exit_code == 0
    before = {path: path.read_bytes() for path in (tmp_path / "data").rglob("*") if path.is_file()}
    refused = formatted(tmp_path, "-s", dirs=("data", "more"))
    assert "is already formatted. Use --ignore-formatted" in refused.stderr
    assert not (tmp_path / "more").exists()
    result = formatted(tmp_path, "-s", "--ignore-formatted", dirs=("data", "more"))
    assert result.stdout.splitlines()[1:] == [
        f"Formatting data directory {tmp_path / 'more'} with metadata.version 4.3-IV0."
    ]
    assert {path: path.read_bytes() for path in before} == before
    assert "already formatted" in formatted(tmp_path, "-s", "-g", dirs=("data", "more")).stdout


def test_a_directory_of_another_cluster_is_refused(tmp_path: Path) -> None:
    assert formatted(tmp_path, "-s").exit_code == 0
    result = storage("format", "-t", "AAAABBBBCCCCDDDDEEEEFg", "-c", str(tmp_path / "server.properties"), "-s", "-g")
    assert result.exit_code == 1
    assert f"belongs to cluster {CLUSTER_ID}, not AAAABBBBCCCCDDDDEEEEFg" in result.stderr


def test_only_one_way_to_name_the_voters_is_possible(tmp_path: Path) -> None:
    assert formatted(tmp_path, "-s", "-N").exit_code == 2


def test_info_names_the_problems_and_fails(tmp_path: Path) -> None:
    config = settings(tmp_path, dirs=("one", "two"))
    (tmp_path / "one").mkdir()
    result = storage("info", "-c", config)
    assert (result.exit_code, result.stdout.splitlines()) == (
        1,
        [
            "Found log directory:",
            f"  {tmp_path / 'one'}",
            "",
            "Found problems:",
            f"  {tmp_path / 'one'} is not formatted.",
            f"  {tmp_path / 'two'} does not exist",
            "",
        ],
    )


def test_info_shows_to_which_cluster_the_directories_belong(tmp_path: Path) -> None:
    assert formatted(tmp_path, "-s").exit_code == 0
    result = storage("info", "-c", str(tmp_path / "server.properties"))
    directory_id = meta(tmp_path / "data").directory_id
    shown = f"{{cluster.id={CLUSTER_ID}, directory.id={directory_id}, node.id=4, version=1}}"
    assert result.stdout.splitlines()[3:] == [f"Found metadata: {shown}", ""]


def test_settings_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    missing = tmp_path / "missing.properties"
    result = storage("info", "-c", str(missing))
    assert (result.exit_code, result.stderr) == (1, f"{missing}: No such file or directory\n")


def test_features_of_a_release_are_listed() -> None:
    assert storage("version-mapping", "-r", "4.0").stdout.splitlines() == [
        "metadata.version=25 (4.0)",
        "kraft.version=1",
        "transaction.version=2",
        "group.version=1",
        "eligible.leader.replicas.version=0",
        "share.version=0",
        "streams.version=0",
    ]


def test_dependencies_of_a_feature_are_listed() -> None:
    result = storage("feature-dependencies", "-f", "eligible.leader.replicas.version=1", "-f", "share.version=1")
    assert result.stdout.splitlines() == [
        "eligible.leader.replicas.version=1 requires:",
        "    metadata.version=23 (4.0-IV1)",
        "share.version=1 has no dependencies.",
    ]


def test_a_random_uuid_is_another_one_each_time_and_is_no_option() -> None:
    found = {storage("random-uuid").stdout.strip() for _ in range(100)}
    assert len(found) == 100
    assert not any(text.startswith("-") for text in found)
    assert {len(Uuid.parse(text)) for text in found} == {16}


def test_a_directory_with_data_and_without_meta_properties_is_not_formatted(tmp_path: Path) -> None:
    assert formatted(tmp_path, "--standalone").exit_code == 0
    data = tmp_path / "data"
    (data / "meta.properties").unlink()
    before = {path: path.read_bytes() for path in data.rglob("*") if path.is_file()}
    result = formatted(tmp_path, "--standalone")
    assert (result.exit_code, result.stdout) == (1, "")
    assert f"{data} has no meta.properties, but it has __cluster_metadata-0, bootstrap.checkpoint, " in result.stderr
    assert {path: path.read_bytes() for path in data.rglob("*") if path.is_file()} == before
