"""A real cluster's log gives what the cluster showed, and its snapshots."""

from __future__ import annotations

from functools import cache

import pytest

from barnabas import wire
from barnabas.metadata.changes import changes
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.loader import MetadataLoader
from barnabas.metadata.snapshot import from_records, to_records
from barnabas.security.acl import AclEntry
from barnabas.steps import at_once
from barnabas.wire.message import Message
from tests.metadata import golden
from tests.metadata.stories import check_derived


@cache
def image_at(offset: int) -> MetadataImage:
    """The image of all batches up to an offset, included."""
    loader = MetadataLoader()
    loader.load(batch for batch in golden.log() if batch.last_offset <= offset)
    assert loader.image.offset == offset
    return loader.image


@cache
def final_image() -> MetadataImage:
    # The offset is a high watermark, so the record before it is the last one.
    return image_at(golden.expected()["metadata_offset_before"] - 1)


def test_topics_and_partitions_are_what_the_cluster_showed() -> None:
    shown = {topic["name"]: topic for topic in golden.expected()["topics"]}
    topics = final_image().topics
    assert topics.names == tuple(sorted(shown))
    for name, topic in shown.items():
        found = topics.get(name)
        assert found is not None and str(found.topic_id) == topic["topicId"]
        mine = [
            [i, p.leader, p.leader_epoch, list(p.replicas), sorted(p.isr), list(p.elr), list(p.last_known_elr)]
            for i, p in enumerate(found.partitions)
        ]
        theirs = [[*fields[:4], sorted(fields[4]), *fields[5:]] for fields in topic["partitions"]]
        assert mine == theirs, name
    assert at_once(topics.reassigning()) == golden.expected()["reassignments"] == []


def test_settings_are_what_the_cluster_showed() -> None:
    image = final_image()
    for name, config in golden.expected()["topic_configs"].items():
        assert dict(image.config(2, name)) == config, name
    for key, config in golden.expected()["other_configs"].items():
        kind, _, name = key.partition(":")
        mine = dict(image.config(int(kind), name))
        if kind == "4" and name == "":
            assert mine == config["default"]
        else:
            mine.pop("no.such.config", None)  # shown without its value, as a setting that nobody knows
            assert mine == config["set"], key


def test_acls_are_what_the_cluster_showed() -> None:
    def shown(acl: AclEntry) -> str:
        return str(acl).replace("no host", "")

    theirs = [
        f"{acl['permission']} {acl['principal']} from {acl['host']} to {acl['operation']}"
        f" on {pattern['resource_type']} {pattern['pattern_type']} {pattern['name']!r}"
        for pattern in golden.expected()["acls"]
        for acl in pattern["acls"]
    ]
    assert sorted(map(shown, final_image().acls.by_id.values())) == sorted(theirs)


def test_quotas_scram_users_and_features_are_what_the_cluster_showed() -> None:
    image = final_image()
    assert {entity: dict(values) for entity, values in image.quotas.items()} == {
        tuple(sorted((part["entityType"], part["entityName"]) for part in entry["entity"])): {
            value["key"]: value["value"] for value in entry["values"]
        }
        for entry in golden.expected()["quotas"]
    }
    assert {(user.name, user.mechanism): credential.iterations for user, credential in image.scram.items()} == {
        (user, int(mechanism)): iterations
        for user, credentials in golden.expected()["scram"].items()
        for mechanism, iterations in credentials.items()
    }
    assert dict(image.features) | {"kraft.version": 1} == golden.expected()["features"]
    assert image.metadata_version == 30 and image.is_elr_enabled


def test_brokers_and_controllers_are_what_the_cluster_showed() -> None:
    image = final_image()
    assert [
        [b.broker_id, *b.listeners["PLAINTEXT"][1:3], b.rack, b.fenced] for _, b in sorted(image.brokers.items())
    ] == golden.expected()["brokers"]
    assert [
        [c.controller_id, *c.listeners["CONTROLLER"][1:3]] for _, c in sorted(image.controllers.items())
    ] == golden.expected()["controllers"]


@pytest.mark.parametrize("index", range(len(golden.snapshots())))
def test_a_snapshot_is_the_image_of_the_log_up_to_it(index: int) -> None:
    snapshot = golden.snapshots()[index]
    assert from_records((record for record, _ in snapshot.records), snapshot.provenance) == image_at(
        snapshot.provenance.last_contained_offset
    )


@pytest.mark.parametrize("index", range(len(golden.snapshots())))
def test_a_snapshot_is_written_with_the_records_and_versions_of_kafka(index: int) -> None:
    snapshot = golden.snapshots()[index]
    image = image_at(snapshot.provenance.last_contained_offset)
    mine = [(encoded(record, version), type(record)) for record, version in to_records(image)]
    theirs = [(encoded(record, version), type(record)) for record, version in snapshot.records]
    assert sorted(data for data, _ in mine) == sorted(data for data, _ in theirs)
    assert list(dict.fromkeys(kind for _, kind in mine)) == list(dict.fromkeys(kind for _, kind in theirs))


def encoded(record: Message, version: int) -> bytes:
    """The bytes, with lists whose order means nothing sorted."""
    content = record.to_json(version)
    for name, key in (("entity", "entityType"), ("endPoints", "name"), ("features", "name")):
        if name in content:
            content[name].sort(key=lambda item, key=key: item[key])
    return wire.encode_record(type(record).from_json(content, version), version)


def test_the_last_image_survives_being_written_and_read() -> None:
    image = image_at(golden.log()[-1].last_offset)
    assert from_records((record for record, _ in to_records(image)), image.provenance) == image


def test_every_image_of_the_log_has_its_indexes_right_and_knows_what_changed() -> None:
    loader, reassigned, seen = MetadataLoader(), set(), 0
    for batch in golden.log():
        for published in loader.load([batch]):
            found = changes(published.before, published.image, published.touched)
            seen += len(found)
            assert found == changes(published.before, published.image)
            if found:
                check_derived(published.image)
            reassigned |= {
                f"{item.topic.name}-{item.partition_id}" for item in at_once(published.image.topics.reassigning())
            }
    assert loader.image == image_at(golden.log()[-1].last_offset)
    assert reassigned and seen > 3000
