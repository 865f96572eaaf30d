"""Log dirs at an address, mirrored on this machine: what is new is fetched, once, and what is gone goes."""

from __future__ import annotations

from pathlib import Path

from barnabas.lake.keeping.folders import folder_at
from barnabas.lake.keeping.mirrors import mirror, mirror_of, place_of
from tests.lake.s3_server import s3_server


def test_a_mirror_has_what_the_address_has_and_fetches_each_file_once(tmp_path: Path) -> None:
    mirrored = tmp_path / "mirror"
    with s3_server() as bucket:
        folder = folder_at(f"{bucket}/node1")
        assert mirror(folder, mirrored) == 0
        assert not mirrored.exists()
        folder.write("meta.properties", b"cluster.id=some")
        folder.write("orders-0/00000000000000000000.log", b"x" * 3_000_000)
        assert [mirror(folder, mirrored) for _ in range(2)] == [2, 0]
        assert (mirrored / "orders-0" / "00000000000000000000.log").read_bytes() == b"x" * 3_000_000
        folder.write("orders-0/00000000000000000000.log", b"longer" * 600_000)
        folder.write("orders-0/00000000000000000009.log", b"")
        assert mirror(folder, mirrored) == 2
        assert (mirrored / "orders-0" / "00000000000000000000.log").read_bytes() == b"longer" * 600_000
        folder.remove(["orders-0/00000000000000000000.log"])
        assert mirror(folder, mirrored) == 0
        assert sorted(path.name for path in mirrored.rglob("*") if path.is_file()) == [
            "00000000000000000009.log",
            "meta.properties",
        ]


def test_the_mirror_of_an_address_has_a_place_of_its_own(tmp_path: Path) -> None:
    places = {mirror_of(address) for address in ("s3a://bucket/node1", "s3a://bucket/node1/", "s3a://bucket/node/1")}
    assert len(places) == 2
    assert place_of("s3a://bucket/node1") in places
    assert place_of(str(tmp_path)) == tmp_path
