"""Changes, drift, the way back, audits and plans, asked of a lake of real clusters."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import yaml

from barnabas.client import sync
from barnabas.client.admin.config_values import AlterConfigOp, AlterConfigOpType, ConfigResource
from barnabas.testing import Broker
from tests.lake import metadata_golden
from tests.lake.commands import rows, run

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

GOLDEN = ("--cluster-id", metadata_golden.CLUSTER_ID)


def test_changes_are_told_in_words_and_can_be_narrowed(lake: Path) -> None:
    told = rows(lake, "changes", "--kind", "configs", *GOLDEN)
    assert {row["kind"] for row in told} == {"configs"}
    assert any(" -> " in row["sentence"] and "in epoch" in row["sentence"] for row in told)
    middle = told[len(told) // 2]["offset"]
    later = rows(lake, "changes", "--kind", "configs", "--since", middle, *GOLDEN)
    assert later == [row for row in told if row["offset"] >= middle]
    result = run("changes", "--lake", lake, "--cluster-id", "none")
    assert result.exit_code == 1
    assert "is not in the lake" in result.stderr


def test_acls_are_audited_and_a_reassignment_is_proposed(lake: Path) -> None:
    findings = rows(lake, "audit", "acls", *GOLDEN)
    assert {"wildcard", "no-such-resource"} <= {row["finding"] for row in findings}
    result = run("plan", "reassignment", "--lake", lake, *GOLDEN)
    assert result.exit_code == 0, result.stderr
    proposed = json.loads(result.stdout)
    assert proposed["version"] == 1
    assert all(len(set(move["replicas"])) == len(move["replicas"]) for move in proposed["partitions"])


def test_what_was_set_is_taken_back_and_drift_is_seen(spark: SparkSession, tmp_path: Path) -> None:
    lake, file = tmp_path / "lake", tmp_path / "back.yaml"
    with Broker({"orders": 1}, data_dir=tmp_path / "data") as node:
        orders = ConfigResource.topic("orders")
        with sync.Admin({"bootstrap.servers": node.bootstrap_servers}) as admin:

            def set_to(name: str, value: str) -> None:
                op = AlterConfigOp(name, AlterConfigOpType.SET, value)
                assert admin.incremental_alter_configs({orders: [op]}) == {orders: None}

            set_to("retention.ms", "1000")
            then = admin.describe_quorum().high_watermark - 1
            set_to("retention.ms", "2000")
            set_to("max.message.bytes", "5000")
            assert run("run", node.data_dir, "--lake", lake).exit_code == 0
            result = run("rollback-plan", "--to", then, "-f", file, "--lake", lake)
            assert result.exit_code == 0, result.stderr
            wanted = {"orders": {"configs": {"retention.ms": 1000, "max.message.bytes": None}}}
            assert yaml.safe_load(file.read_text())["topics"] == wanted

            assert run("drift", "-f", file, "--lake", lake).exit_code == 2
            assert run("drift", "-f", file, "--as-of", then, "--lake", lake).exit_code == 0
            applied = run("apply", "-f", file, "--yes", "-b", node.bootstrap_servers, group=None)
            assert applied.exit_code == 0, applied.stderr
            found = admin.describe_configs([orders])[orders]
            assert found["retention.ms"].value == "1000"
            assert run("plan", "-f", file, "-b", node.bootstrap_servers, group=None).exit_code == 0


def test_a_report_is_written_of_a_real_lake(lake: Path, tmp_path: Path) -> None:
    result = run("report", "--out", tmp_path / "report", "--lake", lake)
    assert result.exit_code == 0, result.stderr
    assert f"cluster {metadata_golden.CLUSTER_ID}" in result.stdout
    assert "unclean" in result.stdout
    page = (tmp_path / "report" / "index.html").read_text()
    assert metadata_golden.CLUSTER_ID in page
    assert page.count("<svg") > 4
    assert (tmp_path / "report" / "rows" / "changes.csv").read_text().count("\n") > 1000
