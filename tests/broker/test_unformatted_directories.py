"""Directories without a usable `meta.properties`: only those without files of Kafka are formatted."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from barnabas.testing import AsyncBroker, BrokerError
from tests.command_line import spawn


def start(*dirs: Path) -> None:
    async def run() -> None:
        async with AsyncBroker(config={"log.dirs": ",".join(map(str, dirs))}):
            pass

    asyncio.run(run())


def content(path: Path) -> dict[str, bytes | None]:
    return {str(each.relative_to(path)): each.read_bytes() if each.is_file() else None for each in path.rglob("*")}


def make(path: Path) -> None:
    if path.suffix == ".dir":
        path = path.with_suffix("")
        path.mkdir(parents=True)
    else:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"")


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("orders-0/00000000000000000000.log", "orders-0"),
        ("orders-0.dir", "orders-0"),
        ("orders-0.5e9b-stray.dir", "orders-0.5e9b-stray"),
        ("__cluster_metadata-0/00000000000000000000-0000000000.checkpoint", "__cluster_metadata-0"),
        ("bootstrap.checkpoint", "bootstrap.checkpoint"),
        ("recovery-point-offset-checkpoint", "recovery-point-offset-checkpoint"),
        (".kafka_cleanshutdown", ".kafka_cleanshutdown"),
    ],
)
def test_a_directory_with_data_is_not_formatted(tmp_path: Path, name: str, shown: str) -> None:
    data = tmp_path / "data"
    make(data / name)
    before = content(data)
    with pytest.raises(BrokerError) as refused:
        start(data)
    assert str(refused.value) == (
        f"{data} has no meta.properties, but it has {shown}, so it is not formatted: "
        "restore meta.properties from a backup, or format an empty directory"
    )
    assert content(data) == before


@pytest.mark.parametrize("text", ["", "\n", "#only a comment\n", "cluster.id=MkU3OEVBNTcwNTJENDM2Qg\n"])
def test_meta_properties_without_an_owner_are_refused(tmp_path: Path, text: str) -> None:
    data = tmp_path / "data"
    data.mkdir()
    (data / "meta.properties").write_text(text)
    with pytest.raises(BrokerError) as refused:
        start(data)
    assert f"{data / 'meta.properties'} has no " in str(refused.value)
    assert content(data) == {"meta.properties": text.encode()}


def test_files_of_others_do_not_matter(tmp_path: Path) -> None:
    data = tmp_path / "data"
    for name in ("lost+found.dir", ".hidden/x", "notes.txt", ".lock", "remote-log-index-cache.dir"):
        make(data / name)
    start(data)
    assert (data / "meta.properties").exists()


def test_one_of_two_directories_has_lost_its_file(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    start(one, two)
    for lost, other in ((one, two), (two, one)):
        text = (lost / "meta.properties").read_bytes()
        (lost / "meta.properties").unlink()
        before = content(lost), content(other)
        with pytest.raises(BrokerError, match=f"^{lost} has no meta.properties, but it has .* and [0-9] more"):
            start(one, two)
        assert (content(lost), content(other)) == before
        (lost / "meta.properties").write_bytes(text)
    start(one, two)


def test_serve_and_demo_refuse_in_one_line(tmp_path: Path) -> None:
    data = tmp_path / "data"
    start(data)
    (data / "meta.properties").unlink()
    before = content(data)
    serve = ("serve", "--port", "0", "--log-level", "warning", "--override", f"log.dirs={data}")
    for command in (serve, ("demo", "--no-lake", "--port", "0", "--data", str(data))):
        done = spawn(*command)
        assert done.exit_code == 1
        (line,) = done.stderr.splitlines()
        assert line.startswith(f"Error: {data} has no meta.properties, but it has ")
    assert content(data) == before
