"""One Spark session for each process, and one lake of real clusters, for all tests of the lake that need them."""

from __future__ import annotations

import re
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from barnabas.client import sync
from barnabas.client.admin.config_values import AlterConfigOp, AlterConfigOpType, ConfigResource
from barnabas.testing import Broker
from tests.lake import metadata_golden
from tests.lake.commands import SECRET, run
from tests.lake.few_rows import FEW_ROWS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Before tests are chosen by their marks."""
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.spark)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """With --dist loadscope: files of tests that ask for the lake go to one process, so that it is made once."""
    if config.getoption("dist") != "loadscope":
        return None
    from xdist.scheduler import LoadScopeScheduling

    class OneLake(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file = nodeid.partition("::")[0]
            return "lake" if "lake: Path" in (config.rootpath / file).read_text() else file

    return OneLake(config, log)


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """Two cores, push-down on, sources registered; made once."""
    from barnabas import lake

    session = lake.session(**FEW_ROWS, **{"spark.master": "local[2]"})
    lake.register(session)
    yield session
    session.stop()


@pytest.fixture(scope="session")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Log dirs of nodes 1, 2 and 4: their copies of the metadata log, and the coordinators' logs of node 2."""
    directory = tmp_path_factory.mktemp("nodes")
    with tarfile.open(metadata_golden.DATA / "coordinators.tar.gz") as archive:
        archive.extractall(directory, filter="data")
    return [*metadata_golden.unpack(directory).values(), directory / "node2" / "d1"]


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    with Broker({"orders": 3}, data_dir=tmp_path_factory.mktemp("broker")) as node:
        with sync.Admin({"bootstrap.servers": node.bootstrap_servers}) as admin:
            secret = [AlterConfigOp("listener.name.plaintext.ssl.key.password", AlterConfigOpType.SET, SECRET)]
            assert admin.incremental_alter_configs({ConfigResource.broker(1): secret}) == {
                ConfigResource.broker(1): None
            }
        yield node


@pytest.fixture(scope="session")
def lake(spark: SparkSession, nodes: list[Path], broker: Broker, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Both clusters, with one run; the records of topics are summed up, and the node of barnabas is observed."""
    directory = tmp_path_factory.mktemp("lake") / "lake"
    observed = ("--traffic", "--observe", "-b", broker.bootstrap_servers)
    result = run("run", *nodes, broker.data_dir, "--lake", directory, *observed)
    assert result.exit_code == 0, result.stderr
    assert f"{metadata_golden.CLUSTER_ID}/kafka_metadata: 5,224 new records" in result.stderr.splitlines()
    assert re.search(rf"^{broker.cluster_id}/kafka_metadata: \d+ new records?$", result.stderr, re.MULTILINE)
    return directory
