"""A master that Spark could not use is refused before Spark starts."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from barnabas.lake.spark.masters import MasterError, check_master
from tests.command_line import spawn


@pytest.mark.parametrize("master", ["local", "local[2]", "local[*]", "local[2, 4]", "yarn", "k8s://https://host:443"])
def test_masters_that_only_spark_can_judge_pass(master: str) -> None:
    check_master(master)


@pytest.mark.parametrize(
    "master", ["", "nowhere", "local[two]", "spark://", "spark://host", "spark://host:port", "mesos://h:1"]
)
def test_what_is_no_master_is_refused(master: str) -> None:
    with pytest.raises(MasterError, match=r"must be local, local\[N\], spark://HOST:PORT, yarn or k8s://URL"):
        check_master(master)


def test_one_of_several_masters_has_to_answer() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        check_master(f"spark://127.0.0.1:1,127.0.0.1:{port}")
    with pytest.raises(MasterError, match=rf"127\.0\.0\.1:{port} cannot be reached \(Connection refused\)"):
        check_master(f"spark://127.0.0.1:{port}")


def test_a_wrong_master_is_one_line_and_leaves_no_lake(tmp_path: Path) -> None:
    source = tmp_path / "node"
    (source / "__cluster_metadata-0").mkdir(parents=True)
    (source / "meta.properties").write_text("version=1\ncluster.id=some\nnode.id=1\n")
    arguments = ("lake", "run", source, "--lake", tmp_path / "lake", "--conf", "spark.master=spark://127.0.0.1:1")
    done = spawn(*arguments, timeout_s=120)
    assert (done.exit_code, done.stdout) == (1, "")
    expected = "Error: spark.master spark://127.0.0.1:1: 127.0.0.1:1 cannot be reached (Connection refused)"
    assert done.stderr.splitlines() == [expected]
    assert not (tmp_path / "lake").exists()
