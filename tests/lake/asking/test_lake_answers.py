"""Inventories, changes, drift, the way back, audits and plans, asked of a lake of real clusters."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml

import barnabas.lake
from barnabas.client import sync
from barnabas.client.admin.config_values import AlterConfigOp, AlterConfigOpType, ConfigResource
from barnabas.client.admin.part import checked
from barnabas.lake.asking.opened import NoMomentError
from barnabas.metadata.loader import MetadataLoader
from barnabas.security.acl import PatternType, ResourceType
from barnabas.security.authorizer import SUPPORTED_OPERATIONS, AuthorizerSettings, authorize
from barnabas.security.principal import parse_principal
from barnabas.testing import Broker
from barnabas.wire.records.metadata import ConfigRecord, TopicRecord
from tests.lake import metadata_golden
from tests.lake.commands import rows, run
from tests.metadata import golden

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from barnabas.metadata.image import MetadataImage

GOLDEN = ("--cluster-id", metadata_golden.CLUSTER_ID)
MOST_ACLS = 1384
"""At this offset of the golden log the last ACL of three rounds was created; most were deleted soon after."""


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
    assert "must be one of topics, " in run("changes", "--lake", lake, "--kind", "topic").stderr


def _image(offset: int) -> MetadataImage:
    """What a broker believed after this offset of the golden log."""
    loader = MetadataLoader()
    loader.load([batch for batch in golden.log() if batch.last_offset <= offset])
    return loader.image


def test_access_of_a_moment_is_what_a_broker_would_have_decided(lake: Path) -> None:
    image = _image(MOST_ACLS)
    acls, principals = image.acls.index, {entry.principal for entry in image.acls.by_id.values()} | {"User:nobody"}
    hosts = {entry.host for entry in image.acls.by_id.values()} | {"10.9.9.9"}
    found: dict[tuple[str, str], dict[str, dict[str, list[str]]]] = {}
    for row in rows(lake, "audit", "access", "--as-of", MOST_ACLS, *GOLDEN):
        if row["pattern_type"] == "LITERAL" and row["resource_name"] != "*":
            of_resource = found.setdefault((row["resource_type"], row["resource_name"]), {})
            of_resource.setdefault(row["principal"], {})[row["host"]] = row["operations"]
    resources = [(ResourceType.TOPIC, topic.name) for topic in image.topics.by_id.values()]
    resources += [
        (entry.resource_type, entry.resource_name)
        for entry in image.acls.by_id.values()
        if entry.pattern_type == PatternType.LITERAL
        and entry.resource_type not in (ResourceType.TOPIC, ResourceType.GROUP)
    ]
    decided = 0
    for resource_type, name in resources:
        rows_of = found.get((resource_type.name, name), {})
        for principal in principals - {"User:*"}:
            by_host = rows_of.get(principal, rows_of.get("User:*", {}))
            for host in hosts - {"*"}:
                allowed = by_host.get(host, by_host.get("*", []))
                for operation in SUPPORTED_OPERATIONS[resource_type]:
                    user, settings = parse_principal(principal), AuthorizerSettings(enabled=True)
                    decision = authorize(acls, settings, user, host, operation, resource_type, name)
                    assert (operation.name in allowed) == decision.allowed, (name, principal, host, operation)
                    decided += decision.allowed
    assert decided > 10


def test_the_offset_of_a_change_includes_the_change(lake: Path) -> None:
    batch, topic = next(
        (batch, batch.records[0].name)
        for batch in golden.log()
        if len(batch.records) > 2
        and isinstance(batch.records[0], TopicRecord)
        and isinstance(batch.records[1], ConfigRecord)
    )
    offset = batch.base_offset + 1
    assert offset < batch.last_offset, "the change is within its batch"
    changed = rows(lake, "changes", "--kind", "configs", "--since", offset, "--until", offset, *GOLDEN)
    assert [row["offset"] for row in changed] == [offset]
    then = barnabas.lake.open(lake).as_of(offset, metadata_golden.CLUSTER_ID)
    settings = {row["name"]: row["value"] for row in then["configs"].collect() if row["resource_name"] == topic}
    assert settings == {each.name: each.value for each in batch.records if isinstance(each, ConfigRecord)}
    assert then["partitions"].where(then["partitions"]["topic_name"] == topic).count() > 0, "applied as a whole"


def test_gold_of_a_moment_is_what_it_would_have_been_then(lake: Path) -> None:
    then, image = barnabas.lake.open(lake).as_of(MOST_ACLS, metadata_golden.CLUSTER_ID), _image(MOST_ACLS)
    partitions = [each for topic in image.topics.by_id.values() for each in topic.partitions]
    assert {row.broker_id: (row.replicas, row.leaders) for row in then["broker_balance"].collect()} == {
        broker: (
            sum(broker in each.replicas for each in partitions),
            sum(broker == each.leader for each in partitions),
        )
        for broker in image.brokers
    }
    (leader,) = then["quorum_leaders"].where("not is_over").collect()
    assert leader.epoch == image.provenance.last_contained_epoch, "what ended later had not ended"
    assert 1000 < then["config_history"].agg({"offset": "max"}).collect()[0][0] <= MOST_ACLS
    assert "acls" in then and "traffic" not in then
    with pytest.raises(NoMomentError, match="topic_traffic is made of traffic, which have no state as of a moment"):
        then["topic_traffic"]
    grants = rows(lake, "as-of", MOST_ACLS, "acl_grants_by_resource", *GOLDEN)
    assert {(row["resource_type"], row["resource_name"]) for row in grants} == {
        (entry.resource_type.name, entry.resource_name) for entry in image.acls.by_id.values()
    }
    assert {"User:dave": ["ALL"]} in [row["allowed"] for row in grants]
    findings = rows(lake, "audit", "acls", "--as-of", MOST_ACLS, *GOLDEN)
    assert {row["finding"] for row in findings} >= {"wildcard", "never-denies", "no-such-resource"}


def test_an_inventory_is_what_the_cluster_showed(lake: Path) -> None:
    shown = golden.expected()
    moment = shown["metadata_offset_before"] - 1
    then = barnabas.lake.open(lake).as_of(moment, metadata_golden.CLUSTER_ID)
    topics = then["topic_inventory"].collect()
    assert {row.topic: (row.topic_id, row.partitions) for row in topics} == {
        topic["name"]: (topic["topicId"], len(topic["partitions"])) for topic in shown["topics"]
    }
    assert {row.topic: row.settings for row in topics if row.settings} == {
        name: settings for name, settings in shown["topic_configs"].items() if settings
    }
    brokers = then["broker_inventory"].orderBy("broker_id").collect()
    assert [[row.broker_id, row.rack, row.fenced] for row in brokers] == [
        [broker, rack, fenced] for broker, _, _, rack, fenced in shown["brokers"]
    ]
    for row, (_, host, port, _, _) in zip(brokers, shown["brokers"], strict=True):
        assert f"PLAINTEXT://{host}:{port}" in row.endpoints
    entries = rows(lake, "inventory", "acls", "--as-of", moment, *GOLDEN)
    assert len(entries) == sum(len(pattern["acls"]) for pattern in shown["acls"])
    result = run("inventory", "topics", "--lake", lake, *GOLDEN)
    assert result.exit_code == 0, result.stderr
    assert result.stdout.startswith("TOPIC ")


def test_drift_of_acls_is_seen_in_the_command_and_as_a_frame(lake: Path, tmp_path: Path) -> None:
    file = tmp_path / "cluster.yaml"
    declared = [
        {"principal": "User:alice", "operations": ["READ"], "resource": "topic:acl-keep"},
        {"principal": "User:eve", "operations": ["WRITE"], "resource": "topic:acl-keep"},
    ]
    file.write_text(yaml.safe_dump({"acls": declared}))
    result = run("drift", "-f", file, "--lake", lake, "--as-of", MOST_ACLS, *GOLDEN, "-o", "json")
    assert result.exit_code == 2, result.stderr
    assert [(row["action"], row["kind"]) for row in json.loads(result.stdout)] == [("create", "acl")] * 2
    tables = barnabas.lake.open(lake)
    frame = tables.drift(file, cluster_id=metadata_golden.CLUSTER_ID, prune=True)
    assert frame.columns == ["action", "kind", "name", "field", "before", "after"]
    found = frame.collect()
    assert [row.name for row in found if row.action == "create"] == ["ALLOW User:eve to WRITE topic:acl-keep"]
    present = tables.as_of(None, metadata_golden.CLUSTER_ID)["acls"].count()
    assert sum(row.action == "delete" for row in found) == present - 1
    with pytest.raises(ValueError, match="the lake has 2 clusters"):
        tables.drift(file)


def test_a_reassignment_is_proposed_and_partitions_where_there_is_traffic(lake: Path) -> None:
    result = run("plan", "reassignment", "--lake", lake, *GOLDEN)
    assert result.exit_code == 0, result.stderr
    proposed = json.loads(result.stdout)
    assert proposed["version"] == 1
    assert all(len(set(move["replicas"])) == len(move["replicas"]) for move in proposed["partitions"])
    result = run("plan", "partitions", "--lake", lake, "-o", "json")
    assert (result.exit_code, json.loads(result.stdout)) == (0, [])
    assert "lake run --traffic" in result.stderr


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
            found = checked(admin.describe_configs([orders]))[orders]
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
