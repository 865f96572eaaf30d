"""Bytes that Apache Kafka's own classes wrote, with the same content as JSON: every message, every version."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from barnabas import wire

DATA = Path(__file__).parent / "data"


def vectors(name: str) -> Iterator[dict[str, Any]]:
    with gzip.open(DATA / name, "rt") as lines:
        for line in lines:
            yield json.loads(line)


def grouped(name: str) -> list[Any]:
    groups: dict[str, list[dict[str, Any]]] = {}
    for vector in vectors(name):
        groups.setdefault(vector["name"], []).append(vector)
    return [pytest.param(group, id=key) for key, group in groups.items()]


def label(vector: dict[str, Any]) -> str:
    return f"{vector['name']} v{vector['version']} {vector['case']}"


@pytest.mark.parametrize("group", grouped("messages.jsonl.gz") + grouped("records.jsonl.gz"))
def test_bytes_and_json_of_kafka_agree_both_ways(group: list[dict[str, Any]]) -> None:
    for vector in group:
        cls, version, data = wire.message_class(vector["name"]), vector["version"], bytes.fromhex(vector["hex"])
        message = wire.decode(cls, version, data)
        assert message.to_json(version) == vector["json"], label(vector)
        assert wire.encode(message, version) == data, label(vector)  # unknown tagged fields included
        built = cls.from_json(vector["json"], version)
        if vector["case"] != "tags":
            assert built == message, label(vector)
            assert wire.encode(built, version) == data, label(vector)
        if vector["case"] == "default":
            assert wire.encode(cls(), version) == data, label(vector)


@pytest.mark.parametrize("group", grouped("records.jsonl.gz"))
def test_framed_records_of_kafka_are_read_and_written(group: list[dict[str, Any]]) -> None:
    for vector in group:
        if vector["name"] == "QuorumStateData":  # kept as JSON in its file
            continue
        cls, version = wire.message_class(vector["name"]), vector["version"]
        frame = bytes.fromhex(vector.get("frame", vector["hex"]))
        record = wire.decode(cls, version, bytes.fromhex(vector["hex"]))
        assert wire.encode_record(record, version) == frame, label(vector)
        if "frame" not in vector:
            continue  # the version is a field of the body there, and holds a drawn value
        decoded = wire.decode_record(frame, cls)
        assert decoded == (record, version), label(vector)
        if vector["group"] == "metadata":
            assert wire.decode_record(frame) == decoded


def test_every_message_and_version_of_the_schema_has_vectors() -> None:
    seen = {(v["name"], v["version"]) for name in ("messages", "records") for v in vectors(f"{name}.jsonl.gz")}
    declared = set()
    for name in wire.message_names():
        versions = wire.message_class(name).schema().versions
        declared |= {(name, version) for version in range(versions.first, versions.last + 1)}
    assert declared == seen
